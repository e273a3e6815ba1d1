"""The errors a user can cause or must know about; the command line prints them as one line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral
from typing import Any

MOST = 2**53  # counts are exact up to here, in JSON and in JavaScript too


class SurefootError(Exception):
    """Base of everything surefoot raises on purpose."""

    exit_code = 1


class InputError(SurefootError):
    """An argument, option or file is not what was asked for.

    Not a ValueError: option parsers swallow those, and wrap what we say in words of their own.
    """

    exit_code = 2


class RunError(SurefootError):
    """A run had to stop; what it had computed is kept, in `partial` where it is at hand."""

    exit_code = 3

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class Interrupted(SurefootError, KeyboardInterrupt):
    """Ctrl-C or SIGTERM ended a run after it had saved; `path` is the checkpoint that was saved, or
    None where none are kept.

    Also a KeyboardInterrupt, since that is what it stands for wherever those are handled.
    """

    exit_code = 130

    def __init__(self, message: str, path: Any = None) -> None:
        super().__init__(message)
        self.path = path


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """One line that says what exists, and what was probably meant."""
    names = sorted(known)
    close = get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"unknown {kind} {name!r}: there is {', '.join(names)}.{hint}")


def is_whole(value: object) -> bool:
    """A whole number of Python or NumPy; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def at_least(least: int, **values: Any) -> None:
    """Refuse what is not a whole number, or is below `least`; the keywords name the values."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name} = {value!r}: it must be a whole number, at least {least}")
        if value > MOST:  # not the number itself: it may have any number of digits
            raise InputError(f"{name} is about 2^{value.bit_length()}: it must be below 2^53")


def count_at_least(least: int, **values: Any) -> None:
    """The same for numbers that are not kept: those of NumPy, as of `numpy.arange`, will do."""
    at_least(least, **{name: int(v) if is_whole(v) else v for name, v in values.items()})


def real(value: Any) -> float:
    """A real number as a float. NaN, which lies in no range, for everything else: text, None,
    arrays of several numbers."""
    if isinstance(value, str | bytes) or getattr(value, "ndim", None):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def shown(value: Any) -> str:
    """A value as a message shows it: on one line, and not all of it where it is long."""
    of_numpy = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    text = " ".join(repr(value.item() if of_numpy else value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def listed(names: Any, where: str) -> list[Any]:
    """Several names; text on its own is one name, not one for each letter."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"{where} = {shown(names)}: it must be a list of names")
    return list(names)


def between_0_and_1(**values: Any) -> None:
    """Refuse what is not a number between the two, or is one of them; the keywords name them."""
    for name, value in values.items():
        if not 0 < real(value) < 1:
            raise InputError(f"{name} = {shown(value)}: it must lie between 0 and 1")


def must_fit(numbers: int, what: str) -> None:
    """Refuse, before it is tried, what this machine's memory cannot hold."""
    try:
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        room = 2**36
    if 4 * numbers > room:
        raise InputError(
            f"{what} would take {4 * numbers / 2**30:.3g} GB, this machine has {room / 2**30:.3g}"
        )


def check_episodes(least: int, each: int = 4, **episodes: int) -> None:
    """Refuse an evaluation that could not be kept; an episode takes `each` numbers of 32 bits."""
    at_least(least, **episodes)
    for name, number in episodes.items():
        must_fit(each * number, f"{name} = {number}: they")


def visible(text: object) -> str:
    """Text from anywhere, fit to be printed: what would move the cursor, change colours or turn
    the direction of writing is shown as a code, and so is half a character."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in str(text)
    )


def markdown_text(text: str) -> str:
    """Text that stays one cell and stays text: no line break, column, tag, emphasis or link."""
    text = visible(" ".join(text.split()))
    for mark in "\\|<*_`":
        text = text.replace(mark, "\\" + mark)
    return text.replace("](", "]\\(")


def require(what: str, extra: str, *modules: str) -> None:
    """Say at once what has to be installed for `what`, before anything is computed for it."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise InputError(f"{what} needs {' and '.join(missing)}: pip install 'surefoot[{extra}]'")
