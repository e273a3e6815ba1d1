"""Which of the words of a command line is the one that stands without an option."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from typing import Any

from surefoot.cli.options import FALSE, TRUE

ALONE = ("-h", "--help", "--print-config")  # options of every command that need no value


def positional(words: list[str], hints: Mapping[str, Any]) -> int | None:
    """Where the first word stands that is neither an option nor a value of one; `hints` are the
    types of the options' values."""
    at = 0
    while at < len(words):
        option, equals, _ = words[at].partition("=")
        if not option.startswith("-") or _is_number(option):
            if not _is_number(option):
                return at
            at += 1
        elif equals:
            at += 1
        else:
            at += 1 + _values(option.replace("_", "-"), words[at + 1 :], hints)
    return None


def values_of(words: list[str], option: str) -> list[str]:
    """What follows an option, each time it is there."""
    values = []
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") != option:
            continue
        if equals:
            values.append(value)
        elif i + 1 < len(words):
            values.append(words[i + 1])
    return values


def _values(option: str, after: list[str], hints: Mapping[str, Any]) -> int:
    """How many of the words after an option are its values."""
    hint, first = hints.get(option, str), after[0] if after else ""
    negated = option.startswith("--no-") and hints.get(f"--{option[5:]}") in (bool, bool | None)
    if option in ALONE or negated or hint in (bool, bool | None):
        return int(first in (*TRUE, *FALSE, "None") and not negated)
    if not _of_numbers(hint):
        return 1
    count = 0
    while count < len(after) and _is_number(after[count]):
        count += 1
    return max(count, 1)


def _of_numbers(hint: Any) -> bool:
    """Whether an option takes several numbers, as `--hidden 64 64` does."""
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return inner[0] in (int, float)
    return any(_of_numbers(kind) for kind in inner)


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
