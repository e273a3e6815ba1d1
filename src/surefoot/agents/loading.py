"""Agents from files, whichever kind they are."""

from __future__ import annotations

import os
from typing import Any

from surefoot.errors import InputError, unknown
from surefoot.runs.checkpoints import read_checkpoint
from surefoot.runs.format import read_agent


def load(path: str | os.PathLike[str], env: Any = None, **options: Any) -> Any:
    """The agent that `agent.save(path)` wrote, to act with or to train further.

    `env` is needed where the file does not say how to make the agent's environment; `options`
    replace settings, and must where a policy was one of the user's own.
    """
    return _kind(read_agent(path)[1], path).load(path, env, **options)


def resume(place: str | os.PathLike[str], env: Any = None, **options: Any) -> Any:
    """The run of a checkpoint, or of a directory's newest one, exactly where it was."""
    path, _, about = read_checkpoint(place)
    return _kind(about, path).resume(path, env, **options)


def _kind(about: dict[str, Any], path: object) -> Any:
    from surefoot.agents.neural.agent import NeuralAgent
    from surefoot.agents.tabular.agent import TabularAgent

    kinds = {"neural": NeuralAgent, "tabular": TabularAgent}
    kind = about.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{path}: {unknown('kind of agent', kind, kinds)}")
    return kinds[kind]
