"""The errors a user can cause or must know about; the command line prints them as one line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SurefootError(Exception):
    """Base of everything surefoot raises on purpose."""

    exit_code = 1


class InputError(SurefootError, ValueError):
    """An argument, option or file is not what was asked for."""

    exit_code = 2


class RunError(SurefootError, RuntimeError):
    """A run had to stop; what it had computed is kept."""

    exit_code = 3


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """One line that says what exists, and what was probably meant."""
    names = sorted(known)
    close = get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"unknown {kind} {name!r}: there is {', '.join(names)}.{hint}")
