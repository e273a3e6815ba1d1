"""Where a network learns: a run as one tree of arrays, and a Gymnasium environment stepped.

`RunState` is what a checkpoint has to hold. All runs go through the same
`step(carry, target_params, key, seen)`; what differs is who asks the environment: `SteppedNetwork`
here, several at once in `lanes`, environments compiled with it in `compiled_loop`.
"""

from __future__ import annotations

import math
from functools import partial
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
    Carry,
    Networks,
    Seen,
    average_share,
    compiled,
    init_carry,
    passed,
)
from surefoot.agents.scale import Scale
from surefoot.envs.faults import Fault, TrainingEnv, fault_from
from surefoot.envs.masks import Masks
from surefoot.runs.logs import Finished

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


def size_of(run: RunState) -> int:
    """How many numbers of 32 bits a run has: parameters, their averages and copies, the replay."""
    leaves = jax.tree.leaves(run)
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


def begun(config: NeuralConfig, spec: Spec, state: RunState, obs: Any, masks: Any) -> RunState:
    """With what a reset showed, the action to it, and room for masks if there are some."""
    carry = state.carry
    if masks is not None and not len(carry.replay.masks):
        carry = carry._replace(replay=with_masks(carry.replay, spec))
    action = compiled(config, spec).begin(carry.params, state.key, obs, masks)
    return state._replace(
        carry=carry, obs=obs, action=np.array(action, np.int32)[()], begun=np.bool_(True)
    )


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
        packed: Any = ()
        try:
            for _ in range(steps):
                try:
                    obs_t, reward, terminated, truncated, info = env.step(spec.own_action(action))
                    over = terminated or truncated
                    legal = masks.after_step(info, masked=masked, final=terminated)
                    obs_next, info = env.reset(number + 1) if over else (obs_t, info)
                    if masked:
                        following = masks.expect(info) if over else legal
                        packed = np.stack([pack(legal), pack(following)])
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
                carry, record = call(carry, networks.target, key, Seen(both, outcome, packed))
                # The one wait: everything the step computed is there when its action is.
                chosen, *said, finite = record.tolist()
                done += 1
                total, length, obs, action = total + float(reward), length + 1, both[2], int(chosen)
                if done % config.target_period == 0 or done % AVERAGED_EVERY == 0:
                    networks, carry = between(config, spec, done, networks, carry)
                if over:
                    ended = Finished(done, number, total, length, *said)
                    total, length, number = 0.0, 0, number + 1
                if not finite:
                    raise Fault(loss_text(said[0]), lasting=True, step=done)
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
        config, spec, state = self.config, self.spec, self.state
        try:
            first, info = self.env.reset(int(state.episode.number))
            mask = Masks(self.env.env).read(info)
            obs = spec.check(spec.take(first), flat=True)
        except Exception as error:
            raise fault_from(error) from error
        self.state = begun(config, spec, state, obs, mask)

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
            ended = [Finished(done, number, total, length)]
        following = Underway(np.float64(0), np.int64(0), np.int64(int(episode.number) + 1))
        self.state = state._replace(carry=carry, begun=np.bool_(False), episode=following)
        return ended


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
