"""One trial of a sweep: what it is, the key it is known by, and running it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import surefoot.envs  # noqa: F401  (registers the cliffs with Gymnasium)
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.tabular.config import TabularConfig
from surefoot.envs.making import suited_agent
from surefoot.errors import InputError, unknown
from surefoot.policies import Policy
from surefoot.policies.named import policy_text
from surefoot.runs.files import plain

CONFIGS: dict[str, type[Any]] = {"neural": NeuralConfig, "tabular": TabularConfig}
FORMAT = 1
Options = tuple[tuple[str, Any], ...]
ENV = "env."  # settings with this prefix are arguments of the environment


@dataclass(frozen=True)
class SweepTrial:
    """One training from scratch, evaluated along its way."""

    agent: str
    """neural or tabular."""
    env: str
    """A Gymnasium id."""
    env_options: Options
    """Arguments for `gymnasium.make`."""
    config: Any
    """`NeuralConfig` or `TabularConfig`."""
    seed: int
    steps: int
    """Environment steps of training."""
    evaluations: int = 1
    """Evaluations, evenly spaced; the last one, at the end, is the result."""
    eval_episodes: int = 20
    """Episodes of each evaluation."""
    compiled: bool = False
    """Run the environment inside the compiled loop (neural; CartPole-v1 and MountainCar-v0)."""

    def canonical(self) -> dict[str, Any]:
        """All that the result depends on, in plain words, defaults included."""
        told = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        settings = {
            f.name: policy_text(value) if isinstance(value, Policy) else value
            for f in dataclasses.fields(self.config)
            for value in [getattr(self.config, f.name)]
        }
        options = {"env_options": dict(self.env_options), "config": settings, "format": FORMAT}
        return plain(told | options)

    @property
    def key(self) -> str:
        """The same for the same trial on every machine and in every year."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]


OWN = ("agent", "env", "steps", "evaluations", "eval_episodes", "compiled")


def make_trial(settings: Mapping[str, Any], seed: int) -> SweepTrial:
    """A trial from flat settings: those of `SweepTrial`, of the agent, and `env.NAME`.

    `agent` may be auto, as `surefoot train` has it: tabular where observations are discrete.
    """
    own = {name: value for name, value in settings.items() if name in OWN}
    for name in ("env", "steps"):
        if name not in own:
            raise InputError(f"a sweep needs {name}: --{name}, or {name} in its [base]")
    _check_own(own, seed)
    options = tuple(
        (name.removeprefix(ENV), tuple(value) if isinstance(value, list) else value)
        for name, value in sorted(settings.items())
        if name.startswith(ENV)
    )
    agent = own.pop("agent", "auto")
    if agent == "auto":
        agent = _suited(own["env"], options)
    if agent not in CONFIGS:
        raise unknown("agent", agent, ("auto", *CONFIGS))
    config = _config_of(agent, settings)
    return SweepTrial(agent, own.pop("env"), options, config, seed, own.pop("steps"), **own)


def _config_of(agent: str, settings: Mapping[str, Any]) -> Any:
    """What is neither a setting of the trial nor of the environment is one of the agent."""
    kind = CONFIGS[agent]
    hints = typing.get_type_hints(kind)
    chosen: dict[str, Any] = {}
    for name, value in settings.items():
        if name in hints:
            chosen[name] = _fitting(hints[name], value)
        elif name not in OWN and not name.startswith(ENV):
            raise unknown(f"setting of a {agent} trial", name, (*OWN, f"{ENV}NAME", *hints))
    try:
        return kind(**chosen)
    except TypeError as error:  # a text where a number belongs
        raise InputError(f"{chosen}: {error}") from None


@lru_cache(maxsize=1024)
def _suited(env_id: str, options: Options) -> str:
    return suited_agent(env_id, **dict(options))


def _check_own(own: Mapping[str, Any], seed: int) -> None:
    for name in ("steps", "evaluations", "eval_episodes"):
        value = own.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} = {value!r}: it must be a whole number, at least 1")
    if own["steps"] < own.get("evaluations", 1):
        raise InputError(f"evaluations = {own['evaluations']}: more than steps = {own['steps']}")
    if not isinstance(own["env"], str):
        raise InputError(f"env = {own['env']!r}: the id of a Gymnasium environment is wanted")
    if not isinstance(own.get("compiled", False), bool):
        raise InputError(f"compiled = {own['compiled']!r}: it must be true or false")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(f"seed = {seed!r}: it must be a whole number from 0 to 2^32 - 1")


def _fitting(hint: Any, value: Any) -> Any:
    """1 and 1.0 are one setting, and must have one key; lists of a file are tuples."""
    if isinstance(value, list | tuple):
        inner = [kind for kind in typing.get_args(hint) if typing.get_args(kind)] or [hint]
        kinds = typing.get_args(inner[0]) or (Any,)
        return tuple(_fitting(kinds[0], v) for v in value)
    if type(value) is int and float in (hint, *typing.get_args(hint)):
        return float(value)
    return value
