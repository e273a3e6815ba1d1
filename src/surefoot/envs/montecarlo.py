"""Returns by simulation, compiled and vectorised, to hold beside the exact values."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.envs.dynamic import check_gamma, policy_probabilities
from surefoot.envs.finite import TabularMDP, cumulative_probability, step
from surefoot.errors import InputError, count_at_least, shown


class Rollouts(NamedTuple):
    """Monte-Carlo episodes; shape = broadcast shape of states and actions + [rollouts]."""

    returns: jax.Array
    terminated: jax.Array  # False: cut off at the horizon, the rest of the return is missing
    steps: jax.Array


def simulate_returns(
    mdp: TabularMDP,
    policy: Any,
    state: Any,
    action: Any = None,
    *,
    rollouts: int,
    horizon: int,
    gamma: float,
    key: jax.Array,
) -> Rollouts:
    """`rollouts` episodes from each (state, action), compiled and vectorised.

    `state` and `action` are integers or arrays that broadcast; without `action` the policy also
    takes the first one. Afterwards `policy` ([S, A] or [S]) acts, for at most `horizon` steps.
    """
    check_gamma(gamma)
    count_at_least(1, rollouts=rollouts, horizon=horizon)
    if not hasattr(key, "dtype") or not (key.ndim == 0 or key.shape == (2,)):
        raise InputError(f"key = {shown(key)}: pass a key of JAX, such as jax.random.key(0)")
    probs = policy_probabilities(mdp, policy)
    states, actions = np.broadcast_arrays(state, -1 if action is None else action)
    _check_indices("state", states, 0, mdp.num_states)
    _check_indices("action", actions, -1 if action is None else 0, mdp.num_actions)
    shape = (*states.shape, rollouts)
    flat_states, flat_actions = (
        jnp.asarray(np.broadcast_to(x[..., None], shape).ravel(), jnp.int32)
        for x in (states, actions)
    )
    keys = jax.random.split(key, flat_states.size)
    cdf = cumulative_probability(probs).astype(np.asarray(mdp.reward_mean).dtype)
    result = _simulate(mdp, cdf, flat_states, flat_actions, keys, float(gamma), horizon)
    return Rollouts(*(x.reshape(shape) for x in result))


@jax.jit
def _simulate(
    mdp: TabularMDP,
    policy_cdf: jax.Array,
    states: jax.Array,
    first_actions: jax.Array,  # -1: ask the policy
    keys: jax.Array,
    gamma: float,
    horizon: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    dtype = mdp.reward_mean.dtype

    def act_and_step(state: Any, first: Any, t: Any, key: Any) -> tuple[Any, Any, Any]:
        act_key, step_key = jax.random.split(jax.random.fold_in(key, t))
        drawn = jnp.sum(
            jax.random.uniform(act_key, (), dtype) >= policy_cdf[state][:-1], dtype=jnp.int32
        )
        action = jnp.where((t == 0) & (first >= 0), first, drawn)
        return step(mdp, state, action, step_key)

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        t, discount, state, alive, total, steps = carry
        step_all = jax.vmap(act_and_step, in_axes=(0, 0, None, 0))
        next_state, reward, terminated = step_all(state, first_actions, t, keys)
        total = total + jnp.where(alive, discount * reward, 0)
        steps = steps + alive
        return t + 1, discount * gamma, next_state, alive & ~terminated, total, steps

    alive = jnp.ones(states.shape, bool)
    carry = (0, jnp.ones((), dtype), states, alive, jnp.zeros(states.shape, dtype))
    *_, alive, total, steps = jax.lax.while_loop(
        lambda c: (c[0] < horizon) & jnp.any(c[3]), body, (*carry, jnp.zeros(states.shape, int))
    )
    return total, ~alive, steps


def _check_indices(name: str, values: np.ndarray, low: int, size: int) -> None:
    wrong = not np.issubdtype(values.dtype, np.integer)
    if wrong or (values < low).any() or (values >= size).any():
        raise InputError(f"{name} is {values}: it must hold integers 0..{size - 1}")
