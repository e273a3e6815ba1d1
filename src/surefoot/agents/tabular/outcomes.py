"""What has followed each state and action so far, in few numbers however long it is learned.

The particles of a pair rest on its last K transitions, and that is too little to tell two means
apart that lie close together. Here all transitions count: for each successor how often it came and
what reward came with it. From that follow the mean of the pair and its standard error, which
shrinks with every visit.

A pair keeps `MOST` successors. One more takes the place of the rarest, with the weight of that
one: the frequent ones are exact, the rare ones are stood for by those that came last, and the
standard error counts what was really seen of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core.array import pairwise_sum
from surefoot.core.evidence import Known

if TYPE_CHECKING:
    from surefoot.agents.tabular.algorithm import Transition

MOST = 16
# Products stay out of fused multiply-adds, which would differ between a trial and a batch of them.
as_it_is = jax.lax.optimization_barrier


class Outcomes(NamedTuple):
    """The successors of each pair: `[S, A, M]`."""

    state: jax.Array  # S where the episode ended
    action: jax.Array  # taken there, where learning is on-policy; else 0
    weight: jax.Array  # transitions it stands for; 0: free
    seen: jax.Array  # transitions that really led there
    reward: jax.Array  # mean of the rewards on the way
    square: jax.Array  # sum of their squared deviations


def no_outcomes(states: int, actions: int) -> Outcomes:
    slots = (states, actions, MOST)
    counts, values = jnp.zeros(slots, jnp.int32), jnp.zeros(slots)
    return Outcomes(counts, counts, values, values, values, values)


def at(tree: Any, place: Any) -> Any:
    """A tree of arrays at a place of them."""
    return jax.tree.map(lambda leaf: leaf[place], tree)


def remember_outcome(
    outcomes: Outcomes, step: Transition, on_policy: bool, active: jax.Array
) -> Outcomes:
    """With one more transition."""
    pair = step.obs_tm1, step.action_tm1
    old = at(outcomes, pair)
    state = jnp.where(step.discount_t > 0, step.obs_t, len(outcomes.state))
    action = jnp.where(on_policy, step.action_t, 0)
    same = (old.state == state) & (old.action == action) & (old.weight > 0)
    slot = jnp.where(same.any(), jnp.argmax(same), jnp.argmin(old.weight))
    before = at(old, slot)
    weight = before.weight + 1
    change = step.reward_t - before.reward
    reward = before.reward + change / weight
    square = before.square + as_it_is(change * (step.reward_t - reward))
    seen = jnp.where(same.any(), before.seen, 0.0) + 1
    new = Outcomes(state, action, weight, seen, reward, square)
    place = (*pair, slot)
    return jax.tree.map(
        lambda x, y: x.at[place].set(jnp.where(active, y, x[place]).astype(x.dtype)), outcomes, new
    )


def summed_up(outcomes: Outcomes, worth: jax.Array, error: jax.Array) -> tuple[jax.Array, Known]:
    """The mean of one pair, and how well it is known.

    `worth[M]` is what each successor is worth from there on, `error[M]` how well that is known.
    Errors of several successors may go together, so that they are added as if they did.
    """
    weight = outcomes.weight
    share = weight / _total(weight)
    value = outcomes.reward + as_it_is(worth)
    mean = _total(share * value)
    apart = jnp.where(weight > 0, value - mean, 0.0)
    square = outcomes.square / jnp.maximum(weight, 1) + as_it_is(apart * apart)
    variance = _total(share * square)
    n = 1 / _total(share * share / jnp.maximum(outcomes.seen, 1))
    later = _total(share * error * error)
    own = variance / jnp.maximum(n - 1, 1)
    return mean, Known(jnp.round(n).astype(jnp.int32), jnp.sqrt(own + later))


def _total(x: jax.Array) -> jax.Array:
    """The sum of `[M]`, always in the same order."""
    return pairwise_sum(as_it_is(x))
