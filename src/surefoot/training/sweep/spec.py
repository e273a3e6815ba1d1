"""What a sweep is made of: settings that all trainings share, a grid, seeds."""

from __future__ import annotations

import itertools
import json
import math
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.tabular.config import TabularConfig
from surefoot.envs.making import suited_agent
from surefoot.errors import InputError, at_least, unknown
from surefoot.runs.files import toml_text
from surefoot.training.train import Training

Setting = tuple[tuple[str, Any], ...]
CONFIGS: dict[str, type[Any]] = {"neural": NeuralConfig, "tabular": TabularConfig}
ENV = "env."  # settings with this prefix are arguments of the environment
MOST_TRAININGS = 1_000_000
OWN = ("agent", "env", "wrapper", "steps", "evaluations", "eval_episodes", "compiled")
"""Settings of a training; `evaluations` are evenly spaced, the last one is at the end."""
COUNTS = dict.fromkeys(("steps", "evaluations", "eval_episodes"), int)
EVAL_EPISODES = 20


@dataclass(frozen=True)
class Sweep:
    """Every combination of the grid's values, each with every seed."""

    base: Mapping[str, Any]
    """Settings of all trainings: `agent`, `env`, `steps`, ..., and fields of the agent's config."""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values by the name of a setting."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

    def __post_init__(self) -> None:
        if not self.seeds:
            raise InputError("seeds: there must be at least one")
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds = {list(self.seeds)}: a seed occurs twice")
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise InputError(f"grid {name} = {values!r}: it must be a list of values")
            if len(set(map(_hashable, values))) < len(values):
                raise InputError(f"grid {name} = {list(values)}: a value occurs twice")

        trainings = math.prod(map(len, self.grid.values())) * len(self.seeds)
        if trainings > MOST_TRAININGS:
            raise InputError(
                f"a sweep of {trainings:,} trainings: at most {MOST_TRAININGS:,}; make "
                "several of it"
            )

    def cells(self) -> Iterator[tuple[Setting, list[Training]]]:
        """The grid's combinations with their trainings; seeds within, for fewer compilations."""
        for values in itertools.product(*self.grid.values()):
            chosen = tuple(zip(self.grid, values, strict=True))
            settings = {**self.base, **dict(chosen)}
            yield chosen, [make_training(settings, seed) for seed in self.seeds]

    def to_toml(self) -> str:
        return toml_text(self.as_table())

    def as_table(self) -> dict[str, Any]:
        return {"seeds": list(self.seeds), "base": dict(self.base), "grid": dict(self.grid)}


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def make_training(settings: Mapping[str, Any], seed: int) -> Training:
    """A training from flat settings: `OWN`, those of the agent, and `env.NAME`.

    `agent` may be auto, as `surefoot train` has it: tabular where observations are discrete.
    """
    own = {name: _fitting(COUNTS.get(name), v) for name, v in settings.items() if name in OWN}
    for name in ("env", "steps"):
        if name not in own:
            raise InputError(f"a sweep needs {name}: --{name}, or {name} in its [base]")
    _check_own(own, seed)
    options = {
        name.removeprefix(ENV): value for name, value in settings.items() if name.startswith(ENV)
    }
    wrappers = tuple(own.get("wrapper", ()))
    agent = own.get("agent", "auto")
    if agent == "auto":
        agent = _suited(own["env"], wrappers, json.dumps(options, sort_keys=True))
    if agent not in CONFIGS:
        raise unknown("agent", agent, ("auto", *CONFIGS))
    return Training(
        own["env"],
        _config_of(agent, settings),
        steps=own["steps"],
        seed=seed,
        compiled=own.get("compiled", False),
        wrapper=wrappers,
        env_options=options,
        eval_every=-(-own["steps"] // own.get("evaluations", 1)),
        eval_episodes=own.get("eval_episodes", EVAL_EPISODES),
    )


@lru_cache(maxsize=1024)
def _suited(env_id: str, wrappers: tuple[str, ...], options: str) -> str:
    return suited_agent(env_id, wrappers, json.loads(options))


def _check_own(own: Mapping[str, Any], seed: Any) -> None:
    at_least(1, **{name: own.get(name, 1) for name in COUNTS})
    if own["steps"] < own.get("evaluations", 1):
        raise InputError(f"evaluations = {own['evaluations']}: more than steps = {own['steps']}")
    if not isinstance(own["env"], str):
        raise InputError(f"env = {own['env']!r}: it must be the id of a Gymnasium environment")
    names = own.get("wrapper", ())
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"wrapper = {names!r}: it must be a list of names, module:Name")
    if not isinstance(own.get("compiled", False), bool):
        raise InputError(f"compiled = {own['compiled']!r}: it must be true or false")
    at_least(0, seed=seed)
    if seed >= 2**32:
        raise InputError(f"seed = {seed}: it must be below 2^32")


def _config_of(agent: str, settings: Mapping[str, Any]) -> Any:
    """What is neither a setting of the training nor of the environment is one of the agent."""
    config = CONFIGS[agent]
    hints = typing.get_type_hints(config, localns={"Policy": str})
    chosen: dict[str, Any] = {}
    for name, value in settings.items():
        if name in hints:
            chosen[name] = _fitting(hints[name], value)
        elif name not in OWN and not name.startswith(ENV):
            raise unknown(f"setting of a {agent} training", name, (*OWN, f"{ENV}NAME", *hints))
    try:
        return config(**chosen)
    except TypeError as error:  # a text where a number belongs
        raise InputError(f"{chosen}: {error}") from None


def _fitting(hint: Any, value: Any) -> Any:
    """1 and 1.0 are one setting, and must have one key (a count may be written 1e5); lists of a
    file are tuples."""
    if isinstance(value, list | tuple):
        inner = [kind for kind in typing.get_args(hint) if typing.get_args(kind)] or [hint]
        kinds = typing.get_args(inner[0]) or (Any,)
        return tuple(_fitting(kinds[0], v) for v in value)
    if type(value) is int and float in (hint, *typing.get_args(hint)):
        return float(value)
    if type(value) is float and value.is_integer() and hint is int:
        return int(value)
    return value


def words(chosen: Setting) -> str:
    """A cell in words: `loss=wgf step_size=0.1`."""
    return " ".join(f"{name}={value}" for name, value in chosen) or "base"


def parse_seeds(wanted: Any) -> tuple[int, ...]:
    """`0:5` is 0 to 4, `0,3,7` those three, `5` that one; a list is what it holds."""
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return (wanted,)
    if isinstance(wanted, list | tuple):
        if all(isinstance(seed, int) and not isinstance(seed, bool) for seed in wanted):
            return tuple(wanted)
        raise InputError(f"seeds = {wanted!r}: whole numbers only")
    try:
        first, colon, end = str(wanted).partition(":")
        if colon:
            seeds = range(int(first or 0), int(end))
            at_least(0, seeds=seeds.stop)
            if seeds.stop - seeds.start > MOST_TRAININGS:
                raise InputError(f"seeds = {wanted!r}: at most {MOST_TRAININGS:,}")
            return tuple(seeds)
        return tuple(int(part) for part in str(wanted).split(","))
    except ValueError:
        raise InputError(f"seeds = {wanted!r}: use 0:5, 0,3,7 or one number") from None


def parse_setting(text: str) -> tuple[str, Any]:
    """`name=value` of the command line."""
    name, values = parse_grid(text)
    if len(values) != 1:
        raise InputError(f"--set {text!r}: it must be one value (a list is written [1,2])")
    return name, values[0]


def parse_grid(text: str) -> tuple[str, list[Any]]:
    """`name=value,value`; a comma within brackets or quotes does not part values."""
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise InputError(f"{text!r}: write it as name=value,value")
    return name.strip().replace("-", "_"), [_parse_value(part.strip()) for part in _parts(rest)]


def _parts(text: str) -> Iterator[str]:
    depth, quote, begin = 0, "", 0
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[]":
            depth += 1 if letter == "[" else -1
        elif letter == "," and depth == 0:
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def _parse_value(text: str) -> Any:
    """As TOML has it; what is none of its values is a text, such as cvar:0.25."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float | str | list) else text
