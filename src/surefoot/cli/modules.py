"""Environments and wrappers of one's own: `module:Id` is imported if the user typed it, and never
from a file.

The working directory is not on the path of any command: a folder that lies there, such as a
`jax_plugins`, is no part of surefoot. For a module that was typed it is added, last of all, once
JAX has looked for its plugins.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro

from surefoot.cli.options import subject
from surefoot.errors import InputError


@dataclass(frozen=True)
class AgentOptions:
    """An agent that is there, and the environment it acts in."""

    agent: Annotated[Path | None, tyro.conf.Positional, subject("AGENT_OR_RUN")] = None
    """A run directory of `surefoot train`, an agent's file (.safetensors), or a checkpoint."""
    env: str | None = None
    """Id of the environment; the agent's own by default. One of your own, module:Id, has to be
    named."""
    wrapper: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Wrapper that the agent was trained in, module:Name; repeat it for more."""


def allow_modules(envs: Iterable[object], wrappers: Iterable[object], words: list[str]) -> None:
    """Let environments and wrappers be imported from the working directory where they are named
    `module:Id`, if the user typed them in `words`."""
    for env_id in envs:
        _allow_module("environment", env_id, words)
    for name in wrappers:
        _allow_module("wrapper", name, words)


def _allow_module(what: str, name: object, words: list[str]) -> None:
    if not isinstance(name, str) or ":" not in name:
        return
    if not any(name in re.split(r"[=,\"'\[\] ]", word) for word in words):
        raise InputError(
            f"{what} {name[:80]!r} is named by a file, and a file imports nothing: type it on "
            "the command line too"
        )
    import jax

    from surefoot.training.engines.worker import MODULE_PATHS

    jax.local_devices()  # plugins are looked for once, here
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
        MODULE_PATHS.append(os.getcwd())


def open_typed(options: AgentOptions, words: list[str]) -> Any:
    """The agent of a file or run directory, in its own environment or in the one that was typed,
    with the wrappers that were typed around it."""
    place, env, wrappers = options.agent, options.env, options.wrapper
    assert place is not None
    from surefoot.envs.making import made_env
    from surefoot.runs.directory import RunDir

    allow_modules([env], wrappers, words)
    stored: dict[str, Any] = {}
    if place.is_dir() and (place / "config.json").is_file():
        stored = RunDir.open(place).read_config()
    named, arguments = stored.get("env"), stored.get("env_options")
    if env is None and isinstance(named, str) and ":" in named:
        raise InputError(
            f"{place}: its environment is {named[:80]!r}, and a file imports nothing: "
            "name it by --env"
        )
    around = stored.get("wrapper")
    around = around if isinstance(around, list) else []
    if around and not wrappers:
        raise InputError(
            f"{place}: its environment is wrapped in {', '.join(map(str, around))[:200]}, and a "
            "file imports nothing: name it by --wrapper"
        )
    own = arguments if isinstance(arguments, dict) and env in (None, named) else {}
    inner = env or named
    if wrappers and not isinstance(inner, str):
        raise InputError(f"{place}: does not say what --wrapper belongs around: name it by --env")
    if wrappers:
        return _opened(place, partial(made_env, str(inner), wrappers, own))
    if env is not None and own:
        return _opened(place, partial(made_env, env, (), own))
    return _opened(place, env)


def _opened(place: Path, env: Any) -> Any:
    """`open_agent`, where a mistake is told in the words of the command line."""
    from surefoot.agents.loading import open_agent

    try:
        return open_agent(place, env)
    except InputError as error:
        raise InputError(str(error).replace("pass env=", "name it by --env")) from None
