"""A run as one tree of arrays: what a checkpoint has to hold."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.network import Params
from surefoot.agents.neural.replay import TRUNCATED
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import Carry, init_carry


class Episode(NamedTuple):
    """The episode that is under way."""

    total: Any  # float64: rewards so far, undiscounted
    length: Any  # int64
    number: Any  # int64: episodes finished before it


class RunState(NamedTuple):
    """Everything a run is made of, but for a Gymnasium environment's own state."""

    carry: Carry
    target_params: Params
    key: Any  # uint32 [2]: never changes, step k draws from fold_in(key, k)
    obs: Any  # what the pending action answers to
    action: Any  # int32: chosen and not yet taken
    begun: Any  # bool: whether `obs` and `action` are there yet
    episode: Episode
    env: Any = ()  # state of a compiled environment


def fresh_state(config: NeuralConfig, spec: Spec, seed: int) -> RunState:
    """The seed makes the initial parameters and everything the agent draws later."""
    key_params, key_run = jax.random.split(jax.random.key(seed))
    carry = init_carry(config, spec, key_params)
    return RunState(
        carry=carry,
        target_params=jax.tree.map(jnp.copy, carry.params),
        key=jax.random.key_data(key_run),
        **_host_fields(spec),
    )


def shapes(config: NeuralConfig, spec: Spec) -> RunState:
    """A run of that configuration without its arrays: nothing large is allocated."""
    like = jax.eval_shape(lambda: fresh_state(config, spec, 0))
    return like._replace(**_host_fields(spec))  # JAX has no 64 bits for them


def _host_fields(spec: Spec) -> dict[str, Any]:
    return {
        "obs": np.zeros(spec.obs_shape, spec.obs_dtype),
        "action": np.int32(0),
        "begun": np.bool_(False),
        "episode": Episode(np.float64(0), np.int64(0), np.int64(0)),
    }


def to_host(state: RunState) -> RunState:
    """NumPy copies: training donates the originals and writes over them."""
    return jax.tree.map(lambda leaf: np.array(leaf, copy=True), state)


def to_device(state: RunState, like: RunState) -> RunState:
    """Arrays for training, in the types and on the shapes of `like`; host fields stay NumPy."""
    carry, target = jax.tree.map(
        lambda leaf, model: jnp.array(leaf, model.dtype, copy=True).reshape(model.shape),
        (state.carry, state.target_params),
        (like.carry, like.target_params),
    )
    env = jax.tree.map(jnp.array, state.env)
    key = jnp.array(state.key, jnp.uint32)
    return state._replace(carry=carry, target_params=target, key=key, env=env)


def cut(state: RunState) -> RunState:
    """The run with the episode under way given up: truncated after the last step it made."""
    carry, episode = state.carry, state.episode
    if state.begun and int(episode.length) > 0:
        row = (int(carry.steps) - 1) % carry.replay.capacity
        outcome = np.array(carry.replay.outcome)
        outcome[row, 2] = TRUNCATED
        carry = carry._replace(replay=carry.replay._replace(outcome=jnp.array(outcome)))
    over = Episode(np.float64(0), np.int64(0), episode.number)
    return state._replace(carry=carry, begun=np.bool_(False), episode=over)
