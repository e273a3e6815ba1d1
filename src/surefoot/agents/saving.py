"""An agent as a file: what it has learned, or everything its run is made of. No pickle.

`save` and `load` keep what was learned; `snapshot` and `resume` a whole run, bit for bit.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import gymnasium as gym
import jax
import numpy as np

from surefoot.envs.faults import Fault, TrainingEnv
from surefoot.envs.making import env_from_file, env_name, env_recipe, made_env, opened_env
from surefoot.envs.memory import read_memory, restore_memory
from surefoot.errors import InputError, RunError
from surefoot.runs.checkpoints import Snapshot, read_checkpoint
from surefoot.runs.files import atomic_write
from surefoot.runs.format import (
    configuration,
    count,
    encode,
    ends,
    named,
    read_agent,
    settings,
    texts,
)
from surefoot.runs.logs import RunLog
from surefoot.runs.tables import End

LAYOUT = 3  # of what a file holds; files of surefoot 0.1 do not say


class AgentFile(NamedTuple):
    """A saved agent or a checkpoint as it was read, once."""

    path: object
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]


class Saved(ABC):
    """The part of an agent that writes and reads files."""

    kind: ClassVar[str]
    config_type: ClassVar[type[Any]]
    config: Any
    seed: int
    faults: list[str]
    _drawn: int
    _book: RunLog | None
    _logged: dict[str, End] | None
    _training_env: TrainingEnv | None
    _own_env: gym.Env[Any, Any] | None  # of a run that does not step it

    @property
    def env(self) -> gym.Env[Any, Any] | None:
        """The training environment; None for a process given as arrays."""
        return self._own_env if self._training_env is None else self._training_env.env

    @property
    def env_name(self) -> str:
        return "TabularMDP" if self.env is None else env_name(self.env)

    @property
    @abstractmethod
    def num_timesteps(self) -> int:
        """Environment steps of training so far, those before `save` and `load` included."""

    @property
    @abstractmethod
    def at_boundary(self) -> bool:
        """Whether the run can be taken up again from where it is."""

    @abstractmethod
    def _place(self, fault: Fault) -> str: ...

    @abstractmethod
    def _cut(self) -> Any: ...

    def snapshot(self) -> Snapshot:
        """Everything the run is made of, in memory of its own; `Checkpoints` writes it.

        A run in a Gymnasium environment goes on from where an episode begins; from elsewhere it
        can only begin the next one.
        """
        memory, env_arrays = (
            ([], {}) if self._stepped is None else read_memory(self._stepped.environments)
        )
        about = self._about() | {
            "earlier": self._earlier,
            "drawn": self._drawn,
            "faults": list(self.faults),
            "logs": None if self._book is None else self._book.ends(),
            "memory": memory,
        }
        run = jax.tree.map(lambda leaf: np.array(leaf, copy=True), self._tree())
        arrays = named(run, "run") | self._more_arrays() | env_arrays
        sync = _nothing if self._book is None else self._book.sync
        return Snapshot(self.kind, self.num_timesteps, arrays, about, sync)

    def save(self, path: str | Path) -> None:
        """What the agent has learned and its settings; a run goes on from a checkpoint."""
        arrays = {name: np.asarray(leaf) for name, leaf in self._learned().items()}
        atomic_write(path, encode(self.kind, arrays, self._about()))

    @classmethod
    def load(cls, path: str | Path, env: Any = None, **options: Any) -> Self:
        """The agent as it was saved. Learning goes on from what it knows, in a new episode.

        `env` is needed where it had no registered name; `options` replace settings, and may name
        an `eval_env`.
        """
        return cls.from_file(AgentFile(path, *read_agent(path, cls.kind)), env, options)

    @classmethod
    def resume(cls, place: str | Path, env: Any = None, **options: Any) -> Self:
        """The run of a checkpoint, or of a directory's newest one, exactly where it was.

        `resume(...).learn(n)` equals, bit for bit, `n` more steps of the run that was cut off.
        """
        return cls.from_checkpoint(AgentFile(*read_checkpoint(place, cls.kind)), env, options)

    @classmethod
    @abstractmethod
    def from_file(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        """`load`, of a file that has been read."""

    @classmethod
    def from_checkpoint(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        """`resume`, of a file that has been read."""
        path, arrays, about = file
        if about.get("layout") != LAYOUT:
            raise InputError(
                f"{path}: is a checkpoint of surefoot {str(about.get('surefoot'))[:20]}, whose "
                "runs this version cannot go on with; agents that it saved can be loaded"
            )
        agent = cls._restored(file, env, options)
        agent._drawn = count(about, "drawn", path, 2**31 - 1)
        agent.faults = texts(about, "faults", path)
        agent._logged = ends(about, "logs", path)
        if agent.num_timesteps != count(about, "num_timesteps", path):
            raise InputError(f"{path}: its counters contradict each other")
        if not agent.at_boundary:  # saved within an episode that would not end
            agent._cut()
        agent._reopen(about.get("memory"), arrays, path)
        return agent

    def _reopen(self, memory: Any, arrays: dict[str, np.ndarray], path: object) -> None:
        """Begin, in the environment too, the episode that the run is at the beginning of."""
        if self._stepped is None:
            return
        try:
            same = self._begin_again()
        except Fault as fault:
            raise RunError(self._place(fault)) from fault.__cause__
        restore_memory(self._stepped.environments, memory, arrays, path)
        if not same and not memory:
            warnings.warn(
                f"{self.env_name} does not start equal episodes from equal seeds: the resumed "
                "run will differ from an uninterrupted one",
                stacklevel=4,
            )

    @property
    def _stepped(self) -> TrainingEnv | None:
        """The environment of a run that is stepped."""
        return self._training_env

    @property
    def _earlier(self) -> int:
        """Steps before the agent was saved and loaded, which its run does not count."""
        return 0

    def _about(self) -> dict[str, Any]:
        """The header of a file."""
        return {
            "layout": LAYOUT,
            "config": settings(self.config),
            "seed": self.seed,
            "num_timesteps": self.num_timesteps,
            "env": env_recipe(self.env),
        }

    def _more_arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds besides the tree: arrays that have no fixed size."""
        return {}

    @classmethod
    def _settings(cls, file: AgentFile, options: dict[str, Any]) -> tuple[Any, int]:
        """Configuration and seed of a file."""
        path, _, about = file
        config = configuration(cls.config_type, about.get("config"), path, options)
        return config, count(about, "seed", path, 2**32 - 1)

    @staticmethod
    def _env_of(file: AgentFile, env: Any) -> tuple[Any, Callable[[], Any] | None]:
        """The environment to go on in, and how to make another one."""
        if env is None:
            return env_from_file(file.about, file.path), partial(
                env_from_file, file.about, file.path
            )
        if isinstance(env, gym.vector.VectorEnv):
            return env, None
        return opened_env(env), maker_of(env)

    @abstractmethod
    def _tree(self) -> Any:
        """Everything the run is made of, as arrays."""

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """What was learned, by the names it has in a file."""

    @classmethod
    @abstractmethod
    def _restored(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        """An agent whose run is that of a checkpoint."""

    @abstractmethod
    def _begin_again(self) -> bool:
        """Start the pending episode; whether it shows what it showed before."""


def maker_of(env: Any) -> Callable[[], Any] | None:
    """How to make another of what was passed as an environment, if that is known."""
    if isinstance(env, str):
        return partial(made_env, env)
    return env if callable(env) and not isinstance(env, gym.Env) else None


def check_finite(arrays: dict[str, Any], path: object) -> None:
    """Not a number never acts: a file of such parameters is no agent."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{path}: {name} holds values that are NaN or infinite")


def _nothing() -> None:
    """There are no logs to bring to disk."""
