"""Where a network learns with its environment compiled within: stretches of steps in one call."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.acting import as_key
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.loop import RunState, Underway, between, loss_text
from surefoot.agents.neural.network import Params
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import (
    AVERAGED_EVERY,
    FINITE,
    LOSS,
    Carry,
    Networks,
    Seen,
    compiled,
    jit_in_place,
    mix_target,
    step,
)
from surefoot.agents.scale import Scale
from surefoot.envs.classic import EnvState, PureEnv
from surefoot.envs.faults import Fault
from surefoot.runs.logs import Finished

STRETCH = 500  # most steps in one compiled call: how often progress can be shown
RESETS = 0x5EED  # separates a compiled environment's draws from the agent's


class Inner(NamedTuple):
    """What the compiled loop carries."""

    carry: Carry
    networks: Networks
    env: EnvState
    action: jax.Array
    record: jax.Array  # [STRETCH, 2 n + 7]: n rewards, n times over, what is logged, finite


class CompiledNetwork:
    """A run with the environment inside: whole stretches of steps in one compiled call."""

    at_boundary = True  # everything it is made of is arrays

    def __init__(self, config: NeuralConfig, spec: Spec, env: PureEnv, state: RunState) -> None:
        self.config, self.spec, self.env, self.state = config, spec, env, state

    def advance(self, steps: int) -> list[Finished]:
        """That many steps."""
        config, spec, env, state = self.config, self.spec, self.env, self.state
        inner = self.enter()
        n, outside = config.n_envs, config.target_period > config.n_envs
        done, episode, ended = int(inner.carry.steps), state.episode, []
        last = done + steps
        while done < last:
            learn = done >= config.learning_starts
            ahead = min(last - done, STRETCH * n)
            if outside:
                ahead = min(ahead, config.target_period - done % config.target_period)
            if config.averaging:
                ahead = min(ahead, AVERAGED_EVERY - done % AVERAGED_EVERY)
            if not learn:
                ahead = min(ahead, config.learning_starts - done)
            length = -(-ahead // n)  # in steps of all lanes
            inner = compiled_stretch(config, spec, env, learn)(inner, state.key, np.int32(length))
            done += length * n
            networks, carry = between(config, spec, done, inner.networks, inner.carry, outside)
            inner = inner._replace(networks=networks, carry=carry)
            record = np.asarray(inner.record)[:length].astype(np.float64)
            more, episode = _episodes(record, episode, done - length * n)
            ended += more
            self.state = state._replace(
                carry=inner.carry,
                networks=inner.networks,
                obs=np.array(inner.env.x),
                action=np.array(inner.action, np.int32)[()],
                begun=np.bool_(True),
                episode=episode,
                env=inner.env,
            )
            bad = np.flatnonzero(record[:, FINITE] == 0)
            if bad.size:
                at = done - (length - int(bad[0]) - 1) * n
                sound = [episode for episode in ended if episode.step < at]
                text = loss_text(record[bad[0], LOSS])
                raise Fault(text, lasting=True, step=at, ended=sound)
        return ended

    def enter(self) -> Inner:
        """Where the run is, as the compiled loop carries it."""
        n = self.config.n_envs
        state, record = self.state, jnp.zeros((STRETCH, 2 * n - LOSS), jnp.float32)
        if state.begun:
            env_state, action = EnvState(*state.env), jnp.asarray(state.action, jnp.int32)
        else:
            env_state = fresh_env(self.env, state.key, 0 if n == 1 else jnp.arange(n))
            first = compiled(self.config, self.spec).begin
            action = first(state.carry.params, state.key, env_state.x)
        return Inner(state.carry, state.networks, env_state, action, record)


def fresh_env(env: PureEnv, key: jax.Array, number: Any) -> EnvState:
    """The start of an episode that begins after `number` steps, or of several `[n]`."""
    if jnp.ndim(number):
        return jax.vmap(partial(fresh_env, env, key))(number)
    return env.reset(jax.random.fold_in(jax.random.fold_in(as_key(key), RESETS), number))


def compiled_step(
    config: NeuralConfig, spec: Spec, env: PureEnv, learn: bool, key: jax.Array, inner: Inner
) -> tuple[Inner, jax.Array]:
    """One environment step and everything the agent does about it."""
    carry, networks = inner.carry, inner.networks
    target_params = networks.target
    before, number, n = inner.env.x, inner.carry.steps, config.n_envs
    move = env.step if n == 1 else jax.vmap(env.step)
    moved, obs_t, reward, terminated, truncated = move(inner.env, inner.action)
    over = terminated | truncated

    def following() -> EnvState:
        fresh = fresh_env(env, key, number + 1 + (0 if n == 1 else jnp.arange(n)))
        if n == 1:
            return fresh
        return jax.tree.map(lambda new, old: _where(over, new, old), fresh, moved)

    # A branch, not a select: a reset costs several hashes and is rare.
    after = jax.lax.cond(jnp.any(over), following, lambda: moved)
    outcome = (inner.action, reward, terminated, truncated)
    seen = Seen(
        jnp.stack([before, obs_t, after.x]), jnp.stack([x.astype(jnp.float32) for x in outcome])
    )
    if learn and config.update_every > n:
        due = (number + n) % config.update_every == 0
        calls = [partial(step, config, spec, flag) for flag in (True, False)]
        carry, record = jax.lax.cond(due, *calls, carry, target_params, key, seen)
    else:
        carry, record = step(config, spec, learn, carry, target_params, key, seen)
    if config.target_period <= n:  # Polyak averaging at every step
        networks, params, scale = mix_target(config, networks, carry.params, carry.scale)
        carry = carry._replace(params=params, scale=scale)
    lanes = jnp.stack([reward, over.astype(jnp.float32)]).reshape(2 * n)
    action = record[:n].astype(jnp.int32).reshape(inner.action.shape)
    row = jnp.concatenate([lanes, record[LOSS:]])
    return Inner(carry, networks, after, action, inner.record), row


def _where(over: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    """Lanes `[n, ...]` that are over, new."""
    return jnp.where(over.reshape(-1, *(1,) * (old.ndim - 1)), new, old)


@lru_cache(maxsize=32)
def compiled_stretch(config: NeuralConfig, spec: Spec, env: PureEnv, learn: bool) -> Any:
    """A `while_loop` whose length is an argument: one compilation serves every stretch."""

    def stretch(inner: Inner, key: jax.Array, length: jax.Array) -> Inner:
        def body(place: tuple[jax.Array, Inner]) -> tuple[jax.Array, Inner]:
            i, inner = place
            inner, row = compiled_step(config, spec, env, learn, key, inner)
            return i + 1, inner._replace(record=inner.record.at[i].set(row))

        def unfinished(place: tuple[jax.Array, Inner]) -> jax.Array:
            return place[0] < length

        return jax.lax.while_loop(unfinished, body, (jnp.zeros((), jnp.int32), inner))[1]

    return jit_in_place(stretch)


def _episodes(record: np.ndarray, episode: Underway, done: int) -> tuple[list[Finished], Underway]:
    """The episodes that ended within a stretch, and those that are under way after it."""
    n = (record.shape[1] + LOSS) // 2
    totals, lengths, numbers = (np.array(part, ndmin=1) for part in episode)
    ended = []
    for lane in range(n):
        start = 0
        for i in map(int, np.flatnonzero(record[:, n + lane])):
            part = record[start : i + 1, lane]
            total, length = totals[lane] + float(part.sum()), lengths[lane] + len(part)
            ended.append((done + i * n + lane + 1, total, length, *record[i, LOSS:FINITE]))
            totals[lane], lengths[lane], start = 0.0, 0, i + 1
        rest = record[start:, lane]
        totals[lane], lengths[lane] = totals[lane] + float(rest.sum()), lengths[lane] + len(rest)
    first = int(numbers.sum())
    finished = [
        Finished(at, first + k, float(total), int(length), *map(float, said))
        for k, (at, total, length, *said) in enumerate(sorted(ended))
    ]
    for at, *_ in ended:
        numbers[(at - done - 1) % n] += 1
    if n == 1:
        return finished, Underway(totals[0], lengths[0], numbers[0])
    return finished, Underway(totals, lengths, numbers)


@lru_cache(maxsize=16)
def compiled_rollouts(config: NeuralConfig, spec: Spec, env: PureEnv, episodes: int) -> Any:
    """Evaluation episodes side by side, until the last one is over: their returns."""
    decide = compiled(config, spec).decide

    def run(params: Params, scale: Scale, key: jax.Array) -> jax.Array:
        key_start, key_ties = jax.random.split(key)
        start = jax.vmap(env.reset)(jax.random.split(key_start, episodes))

        def again(place: Any) -> Any:
            state, total, going = place
            actions = decide(params, scale, state.x, key_ties).action
            state, _, reward, terminated, truncated = jax.vmap(env.step)(state, actions)
            total = total + jnp.where(going, reward, 0.0)
            return state, total, going & ~(terminated | truncated)

        begin = (start, jnp.zeros(episodes), jnp.ones(episodes, bool))
        return jax.lax.while_loop(lambda place: place[2].any(), again, begin)[1]

    return jax.jit(run)
