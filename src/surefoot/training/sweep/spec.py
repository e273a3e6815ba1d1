"""What a sweep is made of: settings that all trials share, a grid, seeds."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import InputError
from surefoot.runs.files import toml_value
from surefoot.training.sweep.trial import SweepTrial, make_trial

Setting = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Sweep:
    """Every combination of the grid's values, each with every seed."""

    base: Mapping[str, Any]
    """Settings of all trials: `agent`, `env`, `steps`, ..., and fields of the agent's config."""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values by the name of a setting."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

    def __post_init__(self) -> None:
        if not self.seeds:
            raise InputError("seeds: there must be at least one")
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds = {list(self.seeds)}: one stands there twice")
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise InputError(f"grid {name} = {values!r}: a list of values is wanted")
            if any(value in values[:i] for i, value in enumerate(values)):
                raise InputError(f"grid {name} = {list(values)}: one value stands there twice")

    def cells(self) -> Iterator[tuple[Setting, list[SweepTrial]]]:
        """The grid's combinations with their trials, seeds within: workers compile less often."""
        for values in itertools.product(*self.grid.values()):
            chosen = tuple(zip(self.grid, values, strict=True))
            settings = {**self.base, **dict(chosen)}
            yield chosen, [make_trial(settings, seed) for seed in self.seeds]

    def to_toml(self) -> str:
        lines = [f"seeds = {toml_value(self.seeds)}", "", "[base]"]
        lines += [f"{toml_name(name)} = {toml_value(value)}" for name, value in self.base.items()]
        lines += ["", "[grid]"]
        lines += [f"{toml_name(name)} = {toml_value(v)}" for name, v in self.grid.items()]
        return "\n".join(lines) + "\n"


def words(chosen: Setting) -> str:
    """A cell in words: `loss=wgf step_size=0.1`."""
    return " ".join(f"{name}={value}" for name, value in chosen) or "base"


def parse_seeds(given: Any) -> tuple[int, ...]:
    """`0:5` is 0 to 4, `0,3,7` those three, `5` that one; a list is what it holds."""
    if isinstance(given, int) and not isinstance(given, bool):
        return (given,)
    if isinstance(given, list | tuple):
        if all(isinstance(seed, int) and not isinstance(seed, bool) for seed in given):
            return tuple(given)
        raise InputError(f"seeds = {given!r}: whole numbers are wanted")
    try:
        first, colon, end = str(given).partition(":")
        if colon:
            return tuple(range(int(first or 0), int(end)))
        return tuple(int(part) for part in str(given).split(","))
    except ValueError:
        raise InputError(f"seeds = {given!r}: use 0:5, 0,3,7 or one number") from None


def parse_setting(text: str) -> tuple[str, Any]:
    """`name=value` of the command line."""
    name, values = parse_grid(text)
    if len(values) != 1:
        raise InputError(f"--set {text!r}: one value is wanted (a list is written [1,2])")
    return name, values[0]


def parse_grid(text: str) -> tuple[str, list[Any]]:
    """`name=value,value`; a comma within brackets or quotes does not part values."""
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise InputError(f"{text!r}: name=value,value is wanted")
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
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | str | list) else text


def toml_name(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f'"{name}"'
