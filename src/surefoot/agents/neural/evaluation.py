"""Evaluation episodes, apart from training: own environment, own key, no exploration."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.network import Params
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import particles
from surefoot.envs.classic import EnvState, PureEnv
from surefoot.errors import InputError
from surefoot.policies import Policy

if TYPE_CHECKING:
    from surefoot.agents.neural.agent import NeuralAgent


def separate_env(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Another environment of the same kind."""
    if env.spec is None:
        raise InputError(
            f"{type(env.unwrapped).__name__} is not registered: give eval_env for evaluation"
        )
    return gym.make(env.spec)


def evaluate_gymnasium(
    agent: NeuralAgent, env: gym.Env[Any, Any], episodes: int, seed: int
) -> np.ndarray:
    """Returns of `episodes` episodes, one environment after the other."""
    totals = np.zeros(episodes)
    for episode in range(episodes):
        obs, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(agent.predict(obs))
            totals[episode] += float(reward)
            over = terminated or truncated
    return totals


def evaluate_compiled(
    config: NeuralConfig,
    spec: Spec,
    env: PureEnv,
    params: Params,
    policy: Policy,
    episodes: int,
    seed: int,
) -> np.ndarray:
    """All episodes side by side, until the last one is over."""
    totals = _rollouts(config, spec, env, policy, episodes)(params, jax.random.key(seed))
    return np.asarray(totals, dtype=np.float64)


@lru_cache(maxsize=16)
def _rollouts(config: NeuralConfig, spec: Spec, env: PureEnv, policy: Policy, episodes: int) -> Any:
    def run(params: Params, key: jax.Array) -> jax.Array:
        key_start, key_ties = jax.random.split(key)
        start = jax.vmap(env.reset)(jax.random.split(key_start, episodes))

        def act(state: EnvState) -> jax.Array:
            z = particles(config, spec, params, state.x)
            return jax.vmap(lambda z: policy(z, key_ties, assume_sorted=True))(z)

        def again(place: Any) -> Any:
            state, total, going = place
            state, _, reward, terminated, truncated = jax.vmap(env.step)(state, act(state))
            total = total + jnp.where(going, reward, 0.0)
            return state, total, going & ~(terminated | truncated)

        begin = (start, jnp.zeros(episodes), jnp.ones(episodes, bool))
        return jax.lax.while_loop(lambda place: place[2].any(), again, begin)[1]

    return jax.jit(run)
