"""Algorithm 1, Online WGF Fitted Q-iteration, on a table of particles.

Unbatched and pure: one table, one transition. The line numbers are the paper's.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.agents.scale import Scale, initial_scale, observe, power_of_two, shown
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.outcomes import (
    Outcomes,
    as_it_is,
    at,
    no_outcomes,
    remember_outcome,
    summed_up,
)
from surefoot.core.array import divide, pairwise_sum
from surefoot.core.evidence import Known
from surefoot.core.losses import quantile_huber_slope
from surefoot.policies import Decision, Explore, Policy
from surefoot.transport import project, proximal_step


class Table(NamedTuple):
    """All that is learned. Particles ascend, always: no step below changes their order."""

    z: jax.Array  # [S, A, N]
    target_action: jax.Array  # [S] a* of line 7, renewed whenever z(s, :) changes
    memory: TransitionMemory  # the last K transitions of each pair
    visits: jax.Array  # [S, A]
    scale: Scale  # of the rewards
    known: Known | None  # [S, A] what the means rest on, where a policy asks for evidence
    outcomes: Outcomes | None  # what it is made of


class TransitionMemory(NamedTuple):
    """What a mixture target is made of; K = 1 for sample targets."""

    reward: jax.Array  # [S, A, K]
    discount: jax.Array  # [S, A, K] gamma * (1 - terminated)
    next_state: jax.Array  # [S, A, K]
    next_action: jax.Array  # [S, A, K] the action really taken there, for on-policy targets


class Transition(NamedTuple):
    obs_tm1: jax.Array
    action_tm1: jax.Array
    reward_t: jax.Array
    discount_t: jax.Array
    obs_t: jax.Array
    action_t: jax.Array  # taken in obs_t, for on-policy targets


def initial_table(
    config: TabularConfig,
    states: int,
    actions: int,
    key: jax.Array,
    mask: jax.Array | None = None,
) -> Table:
    """Lines 1-2, and a* of line 7 for every state: some are bootstrapped from before a visit."""
    shape = (states, actions, config.particles)
    z = jnp.zeros(shape, jnp.float32)
    if config.initial_std > 0:
        z = jnp.sort(config.initial_std * jax.random.normal(key, shape), axis=-1)
    slots = (states, actions, config.pooled)
    empty = TransitionMemory(
        jnp.zeros(slots), jnp.zeros(slots), jnp.zeros(slots, jnp.int32), jnp.zeros(slots, jnp.int32)
    )
    visits = jnp.zeros((states, actions), jnp.int32)
    known, outcomes = None, None
    if config.by_evidence:
        known, outcomes = Known(visits, jnp.zeros(visits.shape)), no_outcomes(states, actions)
    first = jnp.zeros(states, jnp.int32)
    scale = initial_scale(config.reward_scale)
    table = Table(z, first, empty, visits, scale, known, outcomes)
    best = target_actions(config, z, evidence(config, table), jax.random.fold_in(key, 1), mask)
    return table._replace(target_action=best)


def evidence(config: TabularConfig, table: Table) -> Known | jax.Array:
    """What the means `[S, A]` rest on; particles alone rest on the last K transitions."""
    return jnp.minimum(table.visits, config.memory) if table.known is None else table.known


def target_actions(
    config: TabularConfig,
    z: jax.Array,
    known: Known | jax.Array,
    key: jax.Array,
    mask: jax.Array | None,
) -> jax.Array:
    """Line 7, a* of every state: the best of the feasible actions, ties drawn state by state."""
    states, actions, _ = z.shape
    if config.on_policy:  # there a* is the action really taken
        return jnp.zeros(states, jnp.int32)
    assert isinstance(config.target, Policy)
    keys = jax.vmap(lambda state: jax.random.fold_in(key, state))(jnp.arange(states))
    feasible = jnp.ones((states, actions), bool) if mask is None else jnp.asarray(mask)
    choose = partial(config.target, assume_sorted=True)
    return jax.vmap(lambda z, key, mask, n: choose(z, key, mask, n=n))(z, keys, feasible, known)


def behaviour(config: TabularConfig) -> Policy:
    """The behaviour policy with exploration around it."""
    assert isinstance(config.behaviour, Policy)
    return Explore(config.behaviour, config.explore)


def act(
    config: TabularConfig, table: Table, state: Any, mask: jax.Array | None, key: jax.Array
) -> Decision:
    """Line 5, `a ~ B z(s, :)`."""
    feasible = None if mask is None else mask[state]
    n = at(evidence(config, table), state)
    return behaviour(config).decide(table.z[state], key, feasible, n=n, assume_sorted=True)


def learn_and_act(
    config: TabularConfig,
    table: Table,
    step: Transition,
    start: Any,
    over: Any,
    mask: jax.Array | None,
    keys: tuple[jax.Array, jax.Array],
    active: jax.Array,
) -> tuple[Table, Decision]:
    """Lines 5-10 for one transition: learn from it, then choose the next action.

    `start` is where that action is taken: `obs_t`, or the start of the next episode if this one
    is over. Compiled and stepped runs both go through here.
    """
    key_act, key_target = keys
    # On-policy targets use the action really taken next, so it is chosen before the update.
    before = act(config, table, step.obs_t, mask, key_act) if config.on_policy else None
    if before is not None:
        step = step._replace(action_t=before.action)
    table = update(config, table, step, mask, key_target, active)
    decision = act(config, table, start, mask, key_act)
    if before is not None:
        decision = jax.tree.map(lambda a, b: jnp.where(over, a, b), decision, before)
    return table, decision


def update(
    config: TabularConfig,
    table: Table,
    step: Transition,
    mask: jax.Array | None,
    key: jax.Array,
    active: jax.Array,
) -> Table:
    """Lines 7-10 for one transition; nothing changes unless `active`."""
    pair = step.obs_tm1, step.action_tm1
    memory, visits = _remember(table, step, active)
    rows = _targets(config, table._replace(memory=memory), pair, visits[pair])  # lines 7-8
    anchor_z = table.z[pair]
    if config.by_evidence:  # particles before the first visit are a start, and no observation
        anchor_z = jnp.where(visits[pair] > 1, anchor_z, rows[0])
    scale = table.scale
    if config.scaled:
        scale = jax.tree.map(partial(jnp.where, active), observe(scale, step.reward_t), scale)
        scale = scale._replace(unit=power_of_two(scale.square))
    unit = shown(scale)
    new_z = unit * fit(config, anchor_z / unit, rows / unit, visits[pair])  # line 10
    known, outcomes = table.known, table.outcomes
    if outcomes is not None:  # the mean of all that was seen, the dispersion of the last K
        outcomes = remember_outcome(outcomes, step, config.on_policy, active)
        mean, new = estimate(config, table, at(outcomes, pair))
        new_z = as_it_is(new_z)
        new_z = new_z + (mean - divide(pairwise_sum(new_z), config.particles))
        known = jax.tree.map(lambda x, y: x.at[pair].set(jnp.where(active, y, x[pair])), known, new)
    z = table.z.at[pair].set(jnp.where(active, new_z, table.z[pair]))
    table = Table(z, table.target_action, memory, visits, scale, known, outcomes)
    if not config.on_policy:
        assert isinstance(config.target, Policy)
        s = step.obs_tm1
        feasible, n = None if mask is None else mask[s], at(evidence(config, table), s)
        best = config.target(z[s], key, feasible, n=n, assume_sorted=True)
        table = table._replace(target_action=table.target_action.at[s].set(best))
    return table


def estimate(config: TabularConfig, table: Table, seen: Outcomes) -> tuple[jax.Array, Known]:
    """The mean of a pair with these outcomes `[M]`, and what it rests on."""
    assert table.known is not None
    states = jnp.minimum(seen.state, len(table.z) - 1)
    action = seen.action if config.on_policy else table.target_action[states]
    on = seen.state < len(table.z)  # the others ended
    worth = config.gamma * divide(pairwise_sum(table.z[states, action]), config.particles)
    error = config.gamma * table.known.error[states, action]
    return summed_up(seen, jnp.where(on, worth, 0.0), jnp.where(on, error, 0.0))


def fit(
    config: TabularConfig, anchor_z: jax.Array, rows: jax.Array, visits: jax.Array
) -> jax.Array:
    """Line 10: move the particles `[N]` towards the targets `[K, N]`, by the chosen loss."""
    if config.proximal is not None:
        potential, transport = config.proximal
        # The bellman potential pairs ranks, so it needs N targets; energy takes all K * N.
        kept = config.particles if potential == "bellman" else rows.size
        target_z = project(rows, kept, sorted_rows=True)
        return proximal_step(
            anchor_z,
            target_z,
            config.step_size,
            transport,
            potential,
            config.solver,
            assume_sorted=True,
        ).z
    rate = config.learning_rate / jnp.maximum(visits, 1) ** config.decay
    if config.loss == "qr":
        return anchor_z - rate * quantile_huber_slope(anchor_z, rows.reshape(-1), config.kappa)
    return anchor_z + rate * (rows[0] - anchor_z)  # q-learning, sarsa


def _remember(
    table: Table, step: Transition, active: jax.Array
) -> tuple[TransitionMemory, jax.Array]:
    """Write the transition over the pair's oldest one."""
    pair = step.obs_tm1, step.action_tm1
    slot = (*pair, table.visits[pair] % table.memory.reward.shape[-1])
    new = TransitionMemory(step.reward_t, step.discount_t, step.obs_t, step.action_t)
    memory = TransitionMemory(
        *(
            old.at[slot].set(jnp.where(active, value, old[slot]))
            for old, value in zip(table.memory, new, strict=True)
        )
    )
    return memory, table.visits.at[pair].add(active.astype(jnp.int32))


def _targets(
    config: TabularConfig, table: Table, pair: tuple[jax.Array, jax.Array], visits: jax.Array
) -> jax.Array:
    """Lines 7-8, `Tz = r + gamma z(s', a*)`, for each remembered transition: `[K, N]` rows.

    A pair seen fewer than K times repeats what it has seen in turn.
    """
    k = table.memory.reward.shape[-1]
    turn = jnp.arange(k) % jnp.clip(visits, 1, k)
    seen = TransitionMemory(*(part[pair][turn] for part in table.memory))
    action = seen.next_action if config.on_policy else table.target_action[seen.next_state]
    next_z = table.z[seen.next_state, action]
    if config.by_evidence:  # nor is their dispersion one
        untried = table.visits[seen.next_state, action] == 0
        middle = pairwise_sum(next_z)[:, None] / config.particles
        next_z = jnp.where(untried[:, None], middle, next_z)
    # A product with zero is not zero when the estimate has run away: say zero instead.
    tail = jnp.where(seen.discount[:, None] > 0, seen.discount[:, None] * next_z, 0.0)
    return seen.reward[:, None] + tail
