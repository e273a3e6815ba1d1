"""Agents from files, whichever kind they are; each file is read and checked once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from surefoot.agents.base import Agent
from surefoot.agents.saving import AgentFile
from surefoot.errors import InputError, unknown
from surefoot.runs.checkpoints import read_checkpoint
from surefoot.runs.files import inside
from surefoot.runs.format import read_agent


def load(path: str | os.PathLike[str], env: Any = None, **options: Any) -> Any:
    """The agent that `agent.save(path)` wrote, to act with or to train further.

    `env` is needed where the file does not say how to make the agent's environment; `options`
    replace settings, and must where a policy was one of the user's own.
    """
    file = AgentFile(path, *read_agent(path))
    return _kind(file).from_file(file, env, options)


def resume(place: str | os.PathLike[str], env: Any = None, **options: Any) -> Any:
    """The run of a checkpoint, or of a directory's newest one, exactly where it was."""
    file = AgentFile(*read_checkpoint(place))
    return _kind(file).from_checkpoint(file, env, options)


def open_agent(place: str | os.PathLike[str], env: Any = None) -> Any:
    """The agent of a file, or of a run directory: as it was at the end, else at a checkpoint.

    A file imports nothing: where a module of the user's own registers the environment, `env`
    has to name it (`module:Id`).
    """
    path = Path(place)
    if not path.exists():
        raise InputError(f"{place}: there is no such file or run directory")
    if not path.is_dir():
        return resume(path, env) if path.name.startswith("step-") else load(path, env)
    if inside(path, "agent.safetensors").is_file():
        return load(path / "agent.safetensors", env)
    if inside(path, "checkpoints").is_dir():
        return resume(path, env)
    raise InputError(f"{place}: holds neither agent.safetensors nor checkpoints")


def _kind(file: AgentFile) -> type[Agent]:
    from surefoot.agents.neural.agent import NeuralAgent
    from surefoot.agents.tabular.agent import TabularAgent

    kinds: dict[str, type[Agent]] = {"neural": NeuralAgent, "tabular": TabularAgent}
    kind = file.about.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{file.path}: {unknown('kind of agent', kind, kinds)}")
    return kinds[kind]
