"""Where a network learns: a Gymnasium environment stepped from outside, or one compiled within.

Both go through the same `step(carry, target_params, key, seen)`; what differs is who asks the
environment. A run is one tree of arrays, `RunState`: what a checkpoint has to hold.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.network import Params
from surefoot.agents.neural.replay import TRUNCATED, pack, with_masks
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import (
    AVERAGED_EVERY,
    FINITE,
    LOSS,
    Carry,
    Networks,
    Seen,
    as_key,
    average_share,
    compiled,
    init_carry,
    jit_in_place,
    mix_target,
    passed,
    step,
)
from surefoot.agents.scale import Scale
from surefoot.envs.classic import EnvState, PureEnv
from surefoot.envs.faults import Fault, TrainingEnv, fault_from
from surefoot.envs.masks import Masks
from surefoot.errors import InputError
from surefoot.runs.logs import Finished

STRETCH = 500  # most steps in one compiled call: how often progress can be shown
RESETS = 0x5EED  # separates a compiled environment's draws from the agent's
FEW = 32
LARGEST = 3.4e38  # a reward must fit float32


class Underway(NamedTuple):
    """The episode that is under way; `[n]` of each, for the lanes of several environments."""

    total: Any  # float64: rewards so far, undiscounted
    length: Any  # int64
    number: Any  # int64: episodes finished before it


class RunState(NamedTuple):
    """Everything a run is made of, but for a Gymnasium environment itself."""

    carry: Carry
    networks: Networks
    key: Any  # uint32 [2]: never changes, step k draws from fold_in(key, k)
    obs: Any  # what the pending action answers to
    action: Any  # int32: chosen and not yet taken
    begun: Any  # bool: whether `obs` and `action` are there yet
    episode: Underway
    env: Any = ()  # state of a compiled environment


def fresh_state(config: NeuralConfig, spec: Spec, seed: int, own: Any = None) -> RunState:
    """The seed makes the initial parameters and everything the agent draws later; `own` are the
    initial parameters of the caller's own layers."""
    key_params, key_run = jax.random.split(jax.random.key(seed))
    carry = init_carry(config, spec, key_params, own)
    return RunState(
        carry=carry,
        networks=Networks(
            target=jax.tree.map(jnp.copy, carry.params),
            average=jax.tree.map(jnp.copy, carry.params) if config.averaging else (),
        ),
        key=jax.random.key_data(key_run),
        **_host_fields(config, spec),
    )


def size_of(config: NeuralConfig, spec: Spec, own: Any = None) -> int:
    """How many numbers of 32 bits a run has: parameters, their averages and copies, the replay."""
    leaves = jax.tree.leaves(state_shapes(config, spec, own))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves) // 4


def state_shapes(config: NeuralConfig, spec: Spec, own: Any = None) -> RunState:
    """A run of that configuration without its arrays: nothing large is allocated."""
    like = jax.eval_shape(lambda: fresh_state(config, spec, 0, own))
    return like._replace(**_host_fields(config, spec))  # JAX has no 64 bits for them


def _host_fields(config: NeuralConfig, spec: Spec) -> dict[str, Any]:
    lanes = () if config.n_envs == 1 else (config.n_envs,)
    return {
        "obs": np.zeros((*lanes, *spec.obs_shape), spec.obs_dtype),
        "action": np.zeros(lanes, np.int32)[()],
        "begun": np.bool_(False),
        "episode": Underway(*(np.zeros(lanes, t)[()] for t in (np.float64, np.int64, np.int64))),
    }


def to_device(state: RunState) -> RunState:
    """Arrays for training, of its own; host fields stay NumPy."""
    own = partial(jax.tree.map, partial(jnp.array, copy=True))
    carry, networks, key, env = own((state.carry, state.networks, state.key, state.env))
    return state._replace(carry=carry, networks=networks, key=key, env=env)


def between(
    config: NeuralConfig,
    spec: Spec,
    done: int,
    networks: Networks,
    carry: Carry,
    due: bool = True,
) -> tuple[Networks, Carry]:
    """What is due after `done` steps: the target network's change, unless the compiled loop makes
    it at every step, and the average's."""
    calls, share = compiled(config, spec), average_share(config, done)
    if due and passed(config, done, config.target_period):
        networks, params, scale = calls.sync(networks, carry.params, carry.scale)
        carry = carry._replace(params=params, scale=scale)
    if share > 0:
        networks = calls.smooth(networks, carry.params, np.float32(share))
    return networks, carry


def acting(config: NeuralConfig, state: RunState) -> tuple[Params, Scale]:
    """What decides: the average of the parameters where there is one, and the unit they are in."""
    done, start = int(state.carry.steps), config.learning_starts
    none_yet = done > start >= done - done % AVERAGED_EVERY  # learned, and none taken since
    average = () if none_yet else state.networks.average
    return average or state.carry.params, state.carry.scale


# --- stepped -----------------------------------------------------------------------------


class SteppedNetwork:
    """A run in a Gymnasium environment: one compiled call per step."""

    def __init__(self, config: NeuralConfig, spec: Spec, env: TrainingEnv, state: RunState) -> None:
        self.config, self.spec, self.env, self.state = config, spec, env, state
        self.calls = compiled(config, spec)

    @property
    def at_boundary(self) -> bool:
        """Whether the run is between two episodes, where it can be taken up again."""
        return not self.state.begun or int(self.state.episode.length) == 0

    def advance(self, steps: int) -> list[Finished]:
        """Up to that many steps, fewer if the episode ends.

        A step that fails raises `Fault` and leaves the run as it was before that step.
        """
        if not self.state.begun:
            self._begin()
        config, spec, env, calls, state = self.config, self.spec, self.env, self.calls, self.state
        carry, networks, key = state.carry, state.networks, state.key
        obs, action, done = state.obs, int(state.action), int(carry.steps)
        total, length, number = (part.item() for part in state.episode)
        shape, dtype = (3, *spec.obs_shape), spec.obs_dtype
        masks, masked = Masks(env.env), len(carry.replay.masks) > 0
        exact, take = np.dtype(dtype).kind != "f", spec.take
        try:
            for _ in range(steps):
                try:
                    obs_t, reward, terminated, truncated, info = env.step(spec.own_action(action))
                    over = terminated or truncated
                    legal = _masks(masks, masked, info, final=terminated)
                    obs_next, info = env.reset(number + 1) if over else (obs_t, info)
                    if masked:
                        following = masks.expect(info) if over else legal
                        legal = np.stack([pack(legal), pack(following)])
                    both = np.empty(shape, dtype)  # new each time: the last may still be read
                    both[0], both[1] = obs, take(obs_t)
                    both[2] = take(obs_next) if over else both[1]
                    # What is no number must not get into the replay: looked at before the call.
                    if not (-LARGEST < reward < LARGEST and (exact or _finite(both, over))):
                        raise Fault(_complaint(both, reward))
                    outcome = np.array((action, reward, terminated, truncated), np.float32)
                except Exception as error:
                    raise fault_from(error) from error
                learns = done >= config.learning_starts and (done + 1) % config.update_every == 0
                call = calls.step if learns else calls.warm
                carry, record = call(carry, networks.target, key, Seen(both, outcome, legal))
                # The one wait: everything the step computed is there when its action is.
                chosen, loss, finite = record.tolist()
                done += 1
                total, length, obs, action = total + float(reward), length + 1, both[2], int(chosen)
                if done % config.target_period == 0 or done % AVERAGED_EVERY == 0:
                    networks, carry = between(config, spec, done, networks, carry)
                if over:
                    ended = Finished(done, number, total, length, loss)
                    total, length, number = 0.0, 0, number + 1
                if not finite:
                    raise Fault(loss_text(loss), lasting=True, step=done)
                if over:
                    return [ended]
            return []
        finally:
            self.state = state._replace(
                carry=carry,
                networks=networks,
                obs=obs,
                action=np.int32(action),
                episode=Underway(np.float64(total), np.int64(length), np.int64(number)),
            )

    def _begin(self) -> None:
        """The first observation of an episode and the action to it."""
        state, spec = self.state, self.spec
        try:
            first, info = self.env.reset(int(state.episode.number))
            mask = Masks(self.env.env).read(info)
            obs = spec.check(spec.take(first), flat=True)
        except Exception as error:
            raise fault_from(error) from error
        carry = state.carry
        if mask is not None and not len(carry.replay.masks):
            carry = carry._replace(replay=with_masks(carry.replay, spec))
        action = self.calls.begin(carry.params, state.key, obs, mask)
        self.state = state._replace(
            carry=carry, obs=obs, action=np.int32(action), begun=np.bool_(True)
        )

    def begin_again(self) -> bool:
        """Start the pending episode in the environment; whether it shows what it showed before."""
        if not self.state.begun:
            return True
        try:
            first, _ = self.env.reset(int(self.state.episode.number))
            return np.array_equal(self.spec.check(self.spec.take(first), flat=True), self.state.obs)
        except Exception as error:
            raise fault_from(error) from error

    def cut(self) -> list[Finished]:
        """Give up the episode under way: truncated after the last step it made."""
        state = self.state
        carry, episode = state.carry, state.episode
        ended, done = [], int(carry.steps)
        if state.begun and int(episode.length) > 0:
            outcome = np.array(carry.replay.outcome)
            outcome[(done - 1) % carry.replay.capacity, 2] = TRUNCATED
            carry = carry._replace(replay=carry.replay._replace(outcome=jnp.array(outcome)))
            total, length, number = (part.item() for part in episode)
            ended = [Finished(done, number, total, length, 0.0)]
        following = Underway(np.float64(0), np.int64(0), np.int64(int(episode.number) + 1))
        self.state = state._replace(carry=carry, begun=np.bool_(False), episode=following)
        return ended


def _masks(masks: Masks, masked: bool, info: dict[str, Any], final: bool) -> Any:
    """The legal actions after a step; `()` in an environment without masks."""
    if masked:
        return masks.expect(info, final=final)
    if "action_mask" in info:
        raise InputError("info has an action_mask after a step, but had none after a reset")
    return ()


def _finite(both: np.ndarray, over: bool) -> bool:
    """Whether what the environment showed (obs_t, and after a reset the next one) is numbers."""
    rows = both[1:] if over else both[1]
    if rows.size > FEW:
        return bool(np.isfinite(rows).all())
    return all(map(math.isfinite, rows.ravel().tolist()))  # the quicker way for a few


def _complaint(both: np.ndarray, reward: Any) -> str:
    if not np.isfinite(both).all():
        return "the environment returned an observation that is NaN or infinite"
    return f"the environment returned the reward {reward}"


def loss_text(loss: float) -> str:
    return f"the loss is {loss}; lower learning_rate, or set max_grad_norm"


# --- compiled ----------------------------------------------------------------------------


class Inner(NamedTuple):
    """What the compiled loop carries."""

    carry: Carry
    networks: Networks
    env: EnvState
    action: jax.Array
    record: jax.Array  # [STRETCH, 2 n + 2]: n rewards, n times over, loss, finite


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
        state, record = self.state, jnp.zeros((STRETCH, 2 * n + 2), jnp.float32)
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
    n = (record.shape[1] - 2) // 2
    totals, lengths, numbers = (np.array(part, ndmin=1) for part in episode)
    ended = []
    for lane in range(n):
        start = 0
        for i in map(int, np.flatnonzero(record[:, n + lane])):
            part = record[start : i + 1, lane]
            total, length = totals[lane] + float(part.sum()), lengths[lane] + len(part)
            ended.append((done + i * n + lane + 1, total, length, record[i, LOSS]))
            totals[lane], lengths[lane], start = 0.0, 0, i + 1
        rest = record[start:, lane]
        totals[lane], lengths[lane] = totals[lane] + float(rest.sum()), lengths[lane] + len(rest)
    first = int(numbers.sum())
    finished = [
        Finished(at, first + k, float(total), int(length), float(loss))
        for k, (at, total, length, loss) in enumerate(sorted(ended))
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
