"""The training loop around a Gymnasium environment: one compiled call per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from surefoot.errors import InputError, RunError
from surefoot.neural.config import NeuralConfig
from surefoot.neural.spaces import Spec
from surefoot.neural.state import Episode, RunState
from surefoot.neural.step import Seen, compiled


class Finished(NamedTuple):
    """A finished episode."""

    step: int  # environment steps of the run when it ended
    episode: int  # from 0
    total: float  # undiscounted return
    length: int
    loss: float  # of the last update


Listener = Callable[[Finished], bool]
"""Told of each finished episode; True asks the loop to stop."""


def run_gymnasium(
    config: NeuralConfig,
    spec: Spec,
    state: RunState,
    env: gym.Env[Any, Any],
    seed: int,
    steps: int,
    ended: Listener,
) -> RunState:
    """Up to `steps` environment steps; fewer if a listener asks to stop."""
    calls = compiled(config, spec)
    if not state.begun:
        obs, _ = env.reset(seed=seed)
        obs = _stored(obs, spec, env, 0)
        first = calls.begin(state.carry.params, state.key, obs)
        state = state._replace(obs=obs, action=np.int32(first), begun=np.bool_(True))
    carry, target_params, key, dtype = state.carry, state.target_params, state.key, spec.obs_dtype
    obs, action, done = state.obs, int(state.action), int(carry.steps)
    total, length = float(state.episode.total), int(state.episode.length)
    number = int(state.episode.number)
    stop, last, shape = False, done + steps, (3, *spec.obs_shape)
    while done < last and not stop:
        obs_t, reward, terminated, truncated, _ = env.step(action + spec.action_start)
        over = terminated or truncated
        obs_next = env.reset()[0] if over else obs_t
        both = np.empty(shape, dtype)  # new each time: the compiled call may still read the last
        both[0], both[1], both[2] = obs, obs_t, obs_next
        outcome = np.array((action, reward, terminated, truncated), np.float32)
        learns = done >= config.learning_starts and (done + 1) % config.update_every == 0
        call = calls.step if learns else calls.warm
        carry, told = call(carry, target_params, key, Seen(both, outcome))
        # The one wait: everything the step computed is there when its action is.
        chosen, loss, finite = told.tolist()
        done += 1
        if not finite:
            raise RunError(_complaint(env, done, obs_t, reward, loss))
        total, length, obs, action = total + float(reward), length + 1, both[2], int(chosen)
        if done % config.target_period == 0:
            target_params = calls.sync(target_params, carry.params)
        if over:
            stop = ended(Finished(done, number, total, length, loss))
            total, length, number = 0.0, 0, number + 1
    episode = Episode(np.float64(total), np.int64(length), np.int64(number))
    return state._replace(
        carry=carry, target_params=target_params, obs=obs, action=np.int32(action), episode=episode
    )


def _stored(obs: Any, spec: Spec, env: gym.Env[Any, Any], step: int) -> np.ndarray:
    try:
        return spec.check(obs)
    except InputError as error:
        raise RunError(f"{env_name(env)}, step {step}: {error}") from None


def _complaint(env: gym.Env[Any, Any], step: int, obs: Any, reward: Any, loss: float) -> str:
    where = f"{env_name(env)}, step {step}"
    if not np.isfinite(np.asarray(obs, float)).all():
        return f"{where}: the environment gave an observation that is NaN or infinite"
    if not np.isfinite(reward):
        return f"{where}: the environment gave the reward {reward}"
    return f"{where}: the loss is {loss}; lower learning_rate, or set max_grad_norm"


def env_name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
