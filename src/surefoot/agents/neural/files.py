"""A neural agent as a file: what it has learned, or everything its run is made of."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural import state as states
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.spaces import Spec, spec_of
from surefoot.envs.classic import EnvState
from surefoot.envs.faults import env_about, env_from
from surefoot.errors import InputError
from surefoot.runs.checkpoints import Snapshot, read_checkpoint
from surefoot.runs.format import (
    configuration,
    count,
    from_named,
    lengths,
    named,
    read_agent,
    settings,
    texts,
    write_agent,
)

if TYPE_CHECKING:
    from surefoot.agents.neural.agent import NeuralAgent

KIND = "neural"
Env = str | gym.Env[Any, Any] | None


def _about(agent: NeuralAgent) -> dict[str, Any]:
    return {
        "config": settings(agent.config),
        "seed": agent.seed,
        "compiled": agent.pure is not None,
        "env": env_about(agent.env),
    }


# --- a saved agent -----------------------------------------------------------------------


class _Learned(NamedTuple):
    params: Any
    opt_state: Any
    target_params: Any


def save(agent: NeuralAgent, path: str | Path) -> None:
    carry, target = agent._state.carry, agent._state.target_params
    learned = _Learned(carry.params, carry.opt_state, target)
    arrays = {name: np.asarray(leaf) for name, leaf in named(learned, "agent").items()}
    about = _about(agent) | {"num_timesteps": agent.num_timesteps}
    write_agent(path, KIND, arrays, about)


def load(
    cls: type[NeuralAgent], path: str | Path, env: Env, options: dict[str, Any]
) -> NeuralAgent:
    arrays, about = read_agent(path, KIND)
    config, seed, compiled = _settings(about, path, options)
    given, env = env, env_from(about, path) if env is None else env
    like = _shapes(config, _spec(env), path)
    model = _Learned(like.carry.params, like.carry.opt_state, like.target_params)
    learned = from_named(model, arrays, "agent", path)
    agent = cls(env, seed=seed, compiled=compiled, config=config)
    if given is None:
        agent._stage.remake = partial(env_from, about, path)
    agent._earlier = count(about, "num_timesteps", path)
    params, opt_state, target = jax.tree.map(partial(jnp.array, copy=True), tuple(learned))
    carry = agent._state.carry._replace(params=params, opt_state=opt_state)
    # Other draws than those of the run that was saved, from the same seed.
    key = jax.random.fold_in(jax.random.wrap_key_data(agent._state.key), agent._earlier)
    agent._state = agent._state._replace(
        carry=carry, target_params=target, key=jax.random.key_data(key)
    )
    return agent


# --- a checkpoint ------------------------------------------------------------------------


def snapshot(agent: NeuralAgent, cut: bool) -> Snapshot:
    told: Any = None
    env_arrays: dict[str, np.ndarray] = {}
    if agent.pure is None and agent._state.begun:
        told, env_arrays = agent._stage.state()
    state = states.cut(agent._state) if cut else agent._state
    book = agent._book
    about = _about(agent) | {
        "num_timesteps": agent.num_timesteps,
        "earlier": agent._earlier,
        "decisions": agent._decisions,
        "faults": list(agent.faults),
        "logs": None if book is None else book.lengths(),
        "env_state": told,
    }
    arrays = named(states.to_host(state), "run") | env_arrays
    return Snapshot(
        KIND, agent.num_timesteps, arrays, about, _nothing if book is None else book.sync
    )


def _nothing() -> None:
    """There are no logs to bring to disk."""


def resume(
    cls: type[NeuralAgent], place: str | Path, env: Env, options: dict[str, Any]
) -> NeuralAgent:
    path, arrays, about = read_checkpoint(place, KIND)
    config, seed, compiled = _settings(about, path, options)
    given, env = env, env_from(about, path) if env is None else env
    like = _shapes(config, _spec(env), path)
    if compiled:
        env_state: Any = EnvState(like.obs, np.int32(0))  # type: ignore[arg-type]
        like = like._replace(env=env_state if "run.env.x" in arrays else ())
    state = from_named(like, arrays, "run", path)
    agent = cls(env, seed=seed, compiled=compiled, config=config)
    if given is None:
        agent._stage.remake = partial(env_from, about, path)
    agent._state = states.to_device(state, agent._state)
    agent._earlier = count(about, "earlier", path)
    agent._decisions = count(about, "decisions", path, 2**31 - 1)
    agent.faults = texts(about, "faults", path)
    agent._logged = lengths(about, "logs", path)
    if agent.num_timesteps != count(about, "num_timesteps", path):
        raise InputError(f"{path}: its counters contradict each other")
    if not compiled and state.begun:
        number = int(state.episode.number)
        agent._stage.restore(about.get("env_state"), arrays, number, state.obs, path)
    return agent


# --- both --------------------------------------------------------------------------------


def _settings(
    about: dict[str, Any], path: object, options: dict[str, Any]
) -> tuple[NeuralConfig, int, bool]:
    config = configuration(NeuralConfig, about.get("config"), path, options)
    seed, compiled = count(about, "seed", path, 2**32 - 1), about.get("compiled")
    if not isinstance(compiled, bool):
        raise InputError(f"{path}: compiled = {str(compiled)[:80]}, it must be true or false")
    return config, seed, compiled


def _spec(env: str | gym.Env[Any, Any]) -> Spec:
    from surefoot.agents.neural.agent import _made

    return spec_of(_made(env))


def _shapes(config: NeuralConfig, spec: Spec, path: object) -> states.RunState:
    """The shapes of a run of that configuration, nothing of which is allocated."""
    try:
        like = states.shapes(config, spec)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: its settings make no sense ({error})") from None
    replay = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like.carry.replay))
    if replay > _memory():
        raise InputError(f"{path}: replay_size = {config.replay_size} does not fit into memory")
    return like


def _memory() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return float("inf")
