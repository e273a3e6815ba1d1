"""A tabular agent as a file: what it has learned, or everything its run is made of."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.episodes import Episodes
from surefoot.agents.tabular.stepping import Walk
from surefoot.agents.tabular.training import COUNTS
from surefoot.envs import TabularMDP, flatten_discrete
from surefoot.envs.faults import env_from
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
    from surefoot.agents.tabular.agent import TabularAgent

KIND = "tabular"


def log_tables(agent: TabularAgent) -> dict[str, tuple[str, ...]]:
    """Columns of the logs; who decided is known of compiled runs only."""
    counts = COUNTS[2:] if agent.mdp is not None else COUNTS[2:3]
    return {"episodes": ("step", "episode", "return", "length", *counts)}


def log_rows(agent: TabularAgent, rows: np.ndarray) -> list[tuple[Any, ...]]:
    lengths = rows[:, COUNTS.index("steps")].astype(int)
    ends = agent._ended + np.cumsum(lengths)
    more = log_tables(agent)["episodes"][4:]
    return [
        (
            int(end),
            len(agent._episodes) + i,
            float(row[0]),
            int(length),
            *(int(row[COUNTS.index(name)]) for name in more),
        )
        for i, (end, length, row) in enumerate(zip(ends, lengths, rows, strict=True))
    ]


# --- a saved agent -----------------------------------------------------------------------


def _about(agent: TabularAgent) -> dict[str, Any]:
    return {
        "config": settings(agent.config),
        "seed": agent.seed,
        "num_timesteps": agent.num_timesteps,
        "action_names": list(agent.action_names),
        "env": agent._env_about,
    }


def save(agent: TabularAgent, path: str | Path) -> None:
    arrays = {name: np.asarray(leaf) for name, leaf in named(agent.table, "table").items()}
    number = agent._walk.number if agent.mdp is None else 0
    write_agent(path, KIND, arrays, _about(agent) | {"number": number})


def load(
    cls: type[TabularAgent], path: str | Path, env: Any, options: dict[str, Any]
) -> TabularAgent:
    arrays, about = read_agent(path, KIND)
    agent = _agent(cls, about, env, path, options, arrays, "table")
    table = jax.tree.map(jnp.array, from_named(agent.table, arrays, "table", path))
    agent._ended = agent.num_timesteps
    if agent.mdp is None:
        agent._table = table
        # An episode of its own, not the first one over again.
        agent._walk = Walk.fresh(count(about, "number", path) + 1)
        agent._key = jax.random.fold_in(agent._key, agent.num_timesteps)
    else:
        key = jax.vmap(lambda key: jax.random.fold_in(key, agent.num_timesteps))(agent._run.key)
        table = jax.tree.map(lambda x: x[None], table)
        agent._run = agent._run._replace(table=table, key=key)
    return agent


def _agent(
    cls: type[TabularAgent],
    about: dict[str, Any],
    env: Any,
    path: object,
    options: dict[str, Any],
    arrays: dict[str, np.ndarray],
    prefix: str,
) -> TabularAgent:
    """A new agent with the settings of a file, whose table has the size the file's has."""
    config = configuration(TabularConfig, about.get("config"), path, options)
    seed = count(about, "seed", path, 2**63 - 1)
    steps = count(about, "num_timesteps", path)
    z, memory = (arrays.get(f"{prefix}.{name}") for name in ("z", "memory.reward"))
    if z is None or memory is None:
        raise InputError(f"{path}: its table is missing")
    # Before anything is allocated for it.
    if z.shape[-1:] != (config.particles,) or memory.shape[-1:] != (config.pooled,):
        raise InputError(f"{path}: its table does not fit its settings")
    given, env = env, env_from(about, path) if env is None else env
    agent = cls(env, config, seed=seed)
    if given is None and agent._stage is not None:
        agent._stage.remake = lambda: flatten_discrete(env_from(about, path))
    agent.num_timesteps = steps
    return agent


# --- a checkpoint ------------------------------------------------------------------------


class Whole(NamedTuple):
    """Everything a tabular run is made of, as arrays."""

    run: Any  # of a compiled run: `Run` with its key as words
    table: Any  # of a stepped one
    state: Any
    action: Any
    tally: Any
    key: Any  # [2] words


def _whole(agent: TabularAgent, here: Walk | None) -> Whole:
    words = jax.random.key_data(agent._key)
    if here is None:
        # Its rows of finished episodes have been read already: scratch, and not state.
        words_run = jax.random.key_data(agent._run.key)
        run: Any = agent._run._replace(key=words_run, episodes=())  # type: ignore[arg-type]
        return Whole(run, (), (), (), (), words)
    return Whole((), agent._table, np.int64(here.state), here.action, here.tally, words)


def snapshot(agent: TabularAgent, cut: bool) -> Snapshot:
    here = None if agent.mdp is not None else agent._walk
    told: Any = None
    env_arrays: dict[str, np.ndarray] = {}
    if here is not None and here.begun:
        assert agent._stage is not None
        told, env_arrays = agent._stage.state()
    if here is not None and cut:
        here = Walk.fresh(here.number)
    about = _about(agent) | {
        "process": _digest(agent),
        "ended": agent.num_timesteps if cut else agent._ended,
        "faults": list(agent.faults),
        "logs": None if agent._book is None else agent._book.lengths(),
        "walk": None if here is None else _walk_about(here),
        "env_state": told,
    }
    copy = partial(jax.tree.map, lambda leaf: np.array(leaf, copy=True))
    arrays = named(copy(_whole(agent, here)), "run")
    arrays |= {"episodes": agent.episodes.copy(), **env_arrays}
    sync = _nothing if agent._book is None else agent._book.sync
    return Snapshot(KIND, agent.num_timesteps, arrays, about, sync)


def _walk_about(here: Walk) -> dict[str, Any]:
    return {"begun": here.begun, "clock": here.clock, "number": here.number}


def _nothing() -> None:
    """There are no logs to bring to disk."""


def resume(
    cls: type[TabularAgent], place: str | Path, env: Any, options: dict[str, Any]
) -> TabularAgent:
    path, arrays, about = read_checkpoint(place, KIND)
    told = about.get("walk")
    prefix = "run.table" if told is not None else "run.run.table"
    agent = _agent(cls, about, env, path, options, arrays, prefix)
    if (agent.mdp is None) != (told is not None):
        raise InputError(f"{path}: was taken in another kind of environment")
    if about.get("process") != _digest(agent):
        raise InputError(f"{path}: was taken in another process than the one given as env")
    here = None if agent.mdp is not None else agent._walk
    all_of_it = from_named(_whole(agent, here), arrays, "run", path)
    agent._key = jax.random.wrap_key_data(jnp.array(all_of_it.key))
    rows = arrays.get("episodes", np.zeros(0))
    if rows.shape[1:] != (len(COUNTS),) or rows.dtype != np.float32:
        raise InputError(f"{path}: its episodes are not a table of {len(COUNTS)} columns")
    agent._episodes = Episodes(len(COUNTS), rows)
    agent._ended = count(about, "ended", path)
    agent.faults = texts(about, "faults", path)
    agent._logged = lengths(about, "logs", path)
    if here is None:
        run = jax.tree.map(jnp.array, all_of_it.run)
        key = jax.random.wrap_key_data(run.key)
        agent._run = run._replace(key=key, episodes=agent._run.episodes)
    else:
        _resume_walk(agent, all_of_it, told, about, arrays, path)
    return agent


def _resume_walk(
    agent: TabularAgent, found: Whole, told: Any, about: Any, arrays: Any, path: object
) -> None:
    if not isinstance(told, dict) or not isinstance(told.get("begun"), bool):
        raise InputError(f"{path}: does not say where in the environment the run was")
    assert agent._stage is not None
    agent._table = jax.tree.map(jnp.array, found.table)
    number, state = count(told, "number", path), int(found.state)
    agent._walk = Walk(
        told["begun"], state, jnp.array(found.action), count(told, "clock", path), number,
        np.array(found.tally),
    )  # fmt: skip
    if told["begun"]:
        agent._stage.restore(about.get("env_state"), arrays, number, state, path)


def _digest(agent: TabularAgent) -> str | None:
    """The process a run was compiled for."""
    if agent._process is None and agent.mdp is not None:
        agent._process = _hash(agent.mdp)
    return agent._process


def _hash(mdp: TabularMDP) -> str:
    digest = hashlib.sha256()
    for name, leaf in named(mdp, "mdp").items():
        array = np.asarray(leaf)
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr(mdp.reward_clip).encode())
    return digest.hexdigest()
