"""The training loop with the environment inside: whole stretches of steps in one compiled call.

The same `step` as in `loop.py`, run under a `while_loop` whose length is an argument: one
compilation serves every stretch between two changes of the target network.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.loop import Commit, Listener, loss_text
from surefoot.agents.neural.network import Params
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.state import Episode, RunState
from surefoot.agents.neural.step import (
    ACTION,
    FINITE,
    LOSS,
    Carry,
    Seen,
    as_key,
    begin,
    jit_in_place,
    mix_target,
    step,
)
from surefoot.envs.classic import EnvState, PureEnv
from surefoot.envs.faults import Fault
from surefoot.runs.logs import Finished

STRETCH = 500  # most steps in one call: how often progress can be shown
RESETS = 0x5EED  # separates the environment's draws from the agent's


class Inner(NamedTuple):
    """What the compiled loop carries."""

    carry: Carry
    target_params: Params
    env: EnvState
    action: jax.Array
    record: jax.Array  # [STRETCH, 4]: reward, over, loss, finite


def fresh_env(env: PureEnv, key: jax.Array, number: Any) -> EnvState:
    """The start of an episode that begins after `number` steps."""
    return env.reset(jax.random.fold_in(jax.random.fold_in(as_key(key), RESETS), number))


def advance(
    config: NeuralConfig, spec: Spec, env: PureEnv, learn: bool, key: jax.Array, inner: Inner
) -> tuple[Inner, jax.Array]:
    """One environment step and everything the agent does about it."""
    carry, target_params = inner.carry, inner.target_params
    before, number = inner.env.x, inner.carry.steps
    moved, obs_t, reward, terminated, truncated = env.step(inner.env, inner.action)
    over = terminated | truncated
    # A branch, not a select: a reset costs several hashes and is rare.
    after = jax.lax.cond(over, lambda: fresh_env(env, key, number + 1), lambda: moved)
    outcome = (inner.action, reward, terminated, truncated)
    seen = Seen(
        jnp.stack([before, obs_t, after.x]), jnp.stack([x.astype(jnp.float32) for x in outcome])
    )
    if learn and config.update_every > 1:
        due = (number + 1) % config.update_every == 0
        calls = [partial(step, config, spec, flag) for flag in (True, False)]
        carry, told = jax.lax.cond(due, *calls, carry, target_params, key, seen)
    else:
        carry, told = step(config, spec, learn, carry, target_params, key, seen)
    if config.target_period == 1:  # Polyak averaging at every step
        target_params = mix_target(config, target_params, carry.params)
    row = jnp.stack([reward, over.astype(jnp.float32), told[LOSS], told[FINITE]])
    action = told[ACTION].astype(jnp.int32)
    return Inner(carry, target_params, after, action, inner.record), row


@lru_cache(maxsize=32)
def compiled_stretch(config: NeuralConfig, spec: Spec, env: PureEnv, learn: bool) -> Any:
    def stretch(inner: Inner, key: jax.Array, length: jax.Array) -> Inner:
        def body(place: tuple[jax.Array, Inner]) -> tuple[jax.Array, Inner]:
            i, inner = place
            inner, row = advance(config, spec, env, learn, key, inner)
            return i + 1, inner._replace(record=inner.record.at[i].set(row))

        def unfinished(place: tuple[jax.Array, Inner]) -> jax.Array:
            return place[0] < length

        return jax.lax.while_loop(unfinished, body, (jnp.zeros((), jnp.int32), inner))[1]

    return jit_in_place(stretch)


def run_compiled(
    config: NeuralConfig,
    spec: Spec,
    state: RunState,
    env: PureEnv,
    steps: int,
    ended: Listener,
    commit: Commit,
    seed: int = 0,
) -> None:
    """`steps` steps; a listener's wish to stop is met at the end of a stretch."""
    inner = _enter(config, spec, state, env)
    done, episode = int(inner.carry.steps), state.episode
    last, stop = done + steps, False

    def now() -> RunState:
        return state._replace(
            carry=inner.carry,
            target_params=inner.target_params,
            obs=np.array(inner.env.x),
            action=np.int32(inner.action),
            begun=np.bool_(True),
            episode=episode,
            env=inner.env,
        )

    while done < last and not stop:
        learn = done >= config.learning_starts
        length = min(last - done, STRETCH)
        if config.target_period > 1:
            length = min(length, config.target_period - done % config.target_period)
        if not learn:
            length = min(length, config.learning_starts - done)
        call = compiled_stretch(config, spec, env, learn)
        inner = call(inner, state.key, np.int32(length))
        done += length
        if config.target_period > 1 and done % config.target_period == 0:
            target = _synced(config)(inner.target_params, inner.carry.params)
            inner = inner._replace(target_params=target)
        record = np.asarray(inner.record)[:length].astype(np.float64)
        finished, episode = _episodes(record, episode, done - length)
        commit(now())
        fault = np.flatnonzero(record[:, 3] == 0)
        bad = done - length + int(fault[0]) + 1 if fault.size else None
        for one in finished:
            if bad is None or one.step < bad:
                stop |= ended(one)
        if bad is not None:
            text = f"{env.env_id}, seed {seed}, step {bad}: {loss_text(record[fault[0], 2])}"
            raise Fault(text, lasting=True)


def _enter(config: NeuralConfig, spec: Spec, state: RunState, env: PureEnv) -> Inner:
    record = jnp.zeros((STRETCH, 4), jnp.float32)
    if state.begun:
        env_state, action = EnvState(*state.env), jnp.asarray(state.action, jnp.int32)
    else:
        env_state = fresh_env(env, state.key, 0)
        action = jax.jit(partial(begin, config, spec))(state.carry.params, state.key, env_state.x)
    return Inner(state.carry, state.target_params, env_state, action, record)


@lru_cache(maxsize=32)
def _synced(config: NeuralConfig) -> Any:
    return jax.jit(partial(mix_target, config))


def _episodes(record: np.ndarray, episode: Episode, done: int) -> tuple[list[Finished], Episode]:
    """The episodes that ended within a stretch, and the one that is under way after it."""
    total, length, number = float(episode.total), int(episode.length), int(episode.number)
    finished, start = [], 0
    for i in map(int, np.flatnonzero(record[:, 1])):
        part = record[start : i + 1, 0]
        total, length, start = total + float(part.sum()), length + len(part), i + 1
        finished.append(Finished(done + i + 1, number, total, length, float(record[i, 2])))
        total, length, number = 0.0, 0, number + 1
    rest = record[start:, 0]
    total, length = total + float(rest.sum()), length + len(rest)
    return finished, Episode(np.float64(total), np.int64(length), np.int64(number))
