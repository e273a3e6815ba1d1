"""The training loop around a Gymnasium environment: one compiled call per step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.state import Episode, RunState
from surefoot.agents.neural.step import Seen, compiled
from surefoot.envs.faults import Fault, Stage, env_name, limited
from surefoot.errors import InputError
from surefoot.runs.logs import Finished

Listener = Callable[[Finished], bool]
"""Told of each finished episode; True asks the loop to stop."""
Commit = Callable[[RunState], None]
"""Told where the run is, before a listener is called and however the loop ends."""
FEW = 32
LARGEST = 3.4e38  # a reward must fit float32


def run_gymnasium(
    config: NeuralConfig,
    spec: Spec,
    state: RunState,
    stage: Stage,
    steps: int,
    ended: Listener,
    commit: Commit,
    timeout: float | None = None,
) -> None:
    """Up to `steps` environment steps; fewer if a listener asks to stop.

    A step that fails raises `Fault` and leaves the run as it was before that step.
    """
    calls = compiled(config, spec)
    if not state.begun:
        state = _begun(calls, spec, state, stage, timeout)
        commit(state)
    carry, target_params, key, dtype = state.carry, state.target_params, state.key, spec.obs_dtype
    obs, action, done = state.obs, int(state.action), int(carry.steps)
    total, length = float(state.episode.total), int(state.episode.length)
    number = int(state.episode.number)
    stop, last, shape, exact = (
        False,
        done + steps,
        (3, *spec.obs_shape),
        np.dtype(dtype).kind != "f",
    )
    step: Callable[[Any], Any] = stage.env.step
    reset = stage.reset
    if timeout is not None:
        step, reset = limited(step, timeout), limited(reset, timeout)

    def now() -> RunState:
        episode = Episode(np.float64(total), np.int64(length), np.int64(number))
        return state._replace(
            carry=carry,
            target_params=target_params,
            obs=obs,
            action=np.int32(action),
            episode=episode,
        )

    try:
        while done < last and not stop:
            try:
                obs_t, reward, terminated, truncated, _ = step(action + spec.action_start)
                over = terminated or truncated
                obs_next = reset(number + 1) if over else obs_t
                both = np.empty(shape, dtype)  # new each time: the last may still be read
                both[0], both[1], both[2] = obs, obs_t, obs_next
                # What is no number must not get into the replay: looked at before the call.
                if not (-LARGEST < reward < LARGEST and (exact or _finite(both, over))):
                    raise Fault(_complaint(both, reward))
                outcome = np.array((action, reward, terminated, truncated), np.float32)
            except Exception as error:
                raise _named(error, stage, done) from error
            learns = done >= config.learning_starts and (done + 1) % config.update_every == 0
            call = calls.step if learns else calls.warm
            carry, told = call(carry, target_params, key, Seen(both, outcome))
            # The one wait: everything the step computed is there when its action is.
            chosen, loss, finite = told.tolist()
            done += 1
            total, length, obs, action = total + float(reward), length + 1, both[2], int(chosen)
            if done % config.target_period == 0:
                target_params = calls.sync(target_params, carry.params)
            if over:
                finished = Finished(done, number, total, length, loss)
                total, length, number = 0.0, 0, number + 1
            if not finite:
                raise Fault(_where(stage, done) + loss_text(loss), lasting=True)
            if over:
                commit(now())
                stop = ended(finished)
    finally:
        commit(now())


def _begun(
    calls: Any, spec: Spec, state: RunState, stage: Stage, timeout: float | None
) -> RunState:
    """The first observation of an episode and the action to it."""
    start = stage.start if timeout is None else limited(stage.start, timeout)
    try:
        obs = spec.check(start(int(state.episode.number)))
        if obs.shape != spec.obs_shape:
            raise InputError(f"obs has shape {obs.shape}: it must be {spec.obs_shape}")
    except Exception as error:
        raise _named(error, stage, int(state.carry.steps) - 1) from error
    first = calls.begin(state.carry.params, state.key, obs)
    return state._replace(obs=obs, action=np.int32(first), begun=np.bool_(True))


def _finite(both: np.ndarray, over: bool) -> bool:
    """Whether what the environment showed (obs_t, and after a reset the next one) is numbers."""
    rows = both[1:] if over else both[1]
    if rows.size > FEW:
        return bool(np.isfinite(rows).all())
    return all(map(math.isfinite, rows.ravel().tolist()))  # the quicker way for a few


def _named(error: Exception, stage: Stage, done: int) -> Fault:
    """What went wrong, with its place."""
    if isinstance(error, Fault | InputError):
        return Fault(_where(stage, done + 1) + str(error))
    text = " ".join(str(error).split())
    return Fault(f"{_where(stage, done + 1)}the environment raised {type(error).__name__}: {text}")


def _where(stage: Stage, step: int) -> str:
    return f"{env_name(stage.env)}, seed {stage.seed}, step {step}: "


def _complaint(both: np.ndarray, reward: Any) -> str:
    if not np.isfinite(both).all():
        return "the environment gave an observation that is NaN or infinite"
    return f"the environment gave the reward {reward}"


def loss_text(loss: float) -> str:
    return f"the loss is {loss}; lower learning_rate, or set max_grad_norm"
