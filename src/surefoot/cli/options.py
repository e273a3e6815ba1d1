"""Options from a frozen dataclass, a TOML file and the command line, in that order.

Every command that reads its options by `parse` has `--config FILE.toml` (options from a file; what
stands on the command line comes on top) and `--print-config` (all options as such a file). The
names in the file are those of the command line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import sys
import tomllib
import types
import typing
from collections.abc import Iterator
from decimal import Decimal
from difflib import get_close_matches
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import tyro

from surefoot.errors import InputError, unknown
from surefoot.runs.files import toml_text

Chosen = TypeVar("Chosen")
LARGEST = 2**24  # bytes of a file of settings
EXISTING = (
    "What to do where the directory holds a run: go on with it if it is the same one, refuse, or "
    "begin anew."
)
TRUE, FALSE = ("true", "True", "1"), ("false", "False", "0")


def subject(metavar: str) -> Any:
    """What a command works on: named first, and without a default to show."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


def size_of(count: int) -> str:
    """Bytes as `2.5 MB` or `31 kB`."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"


def parse(
    kind: type[Chosen],
    words: list[str],
    prog: str,
    description: str,
    stored: dict[str, Any] | None = None,
) -> Chosen:
    """Read `--config FILE.toml` first, then let the other words override it.

    `stored` is what such a file held, for a command that has read it itself.
    """
    rest, source = take_config(words)
    base = kind() if stored is None else _fill(kind, stored, "--config")
    own = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    rest = _spell_flags(kind, rest)
    rest, printing = (rest, False) if "print_config" in own else _take_flag(rest, "--print-config")
    with _in_one_line(kind, rest, prog):
        options = tyro.cli(
            kind,
            prog=prog,
            description=f"{description} (--config FILE.toml reads options from a file, "
            "--print-config writes them as one.)",
            args=rest,
            default=base if source is None else from_toml(kind, source),
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff),
            registry=COUNTS,
        )
    if printing:
        print(to_toml(options), end="")
        raise SystemExit(0)
    return options


# --- TOML ------------------------------------------------------------------------------------


def read_toml(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:  # also a pipe; but nothing without an end
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise InputError(f"{path}: is larger than {LARGEST // 2**20} MB")
        return tomllib.loads(data.decode())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply to be a file of settings") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML file ({error})") from None


def from_toml(kind: type[Chosen], path: Path) -> Chosen:
    """A dataclass from a file; unknown names and wrong kinds are named."""
    return _fill(kind, read_toml(path), str(path))


def to_toml(options: Any) -> str:
    """The dataclass as TOML, flat as on the command line; what is None is left out."""
    return toml_text(flat(options))


def flat(options: Any) -> dict[str, Any]:
    """All options by name, those of nested dataclasses among them."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        values |= flat(value) if dataclasses.is_dataclass(value) else {field.name: value}
    return values


def _fill(kind: Any, values: dict[str, Any], where: str) -> Any:
    """Names of a nested dataclass may stand in a table of its name, or flat among the others."""
    base, hints = kind(), typing.get_type_hints(kind)
    fields = [f.name for f in dataclasses.fields(kind)]
    inner = {name: type(v) for name in fields if dataclasses.is_dataclass(v := getattr(base, name))}
    made: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {name: {} for name in inner}
    for name, value in values.items():
        owner = next((n for n, k in inner.items() if name in _names(k)), None)
        if name in inner:
            if not isinstance(value, dict):
                raise InputError(f"{where}: {name} must be a table")
            nested[name] |= value
        elif name in fields:
            made[name] = _as(hints[name], value, f"{where}: {name}")
        elif owner is not None:
            nested[owner][name] = value
        else:
            known = [*fields, *(n for k in inner.values() for n in _names(k))]
            raise unknown(f"option in {where}:", name, known)
    for name, content in nested.items():
        if content:
            made[name] = _fill(inner[name], content, where)
    return dataclasses.replace(base, **made)


def _names(kind: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(kind)]


def _as(hint: Any, value: Any, where: str) -> Any:
    """A value of a TOML file as the field's type wants it."""
    made = _converted(hint, value)
    if made is None:
        raise InputError(f"{where} = {value!r}: it must be {_words(hint)}")
    return made


def _converted(hint: Any, value: Any) -> Any:
    """The value in the type of the hint; None if it does not fit."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        fits = (_converted(kind, value) for kind in inner if kind is not type(None))
        return next((made for made in fits if made is not None), None)
    if origin is Literal:
        return value if value in inner else None
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
        if len(kinds) != len(value):
            return None
        made = tuple(_converted(kind, v) for kind, v in zip(kinds, value, strict=True))
        return None if None in made else made
    if hint is float and type(value) is int:
        return float(value)
    if hint is int and type(value) is float and value.is_integer():
        return int(value)  # 1e5
    if hint is Path and isinstance(value, str):
        return Path(value)
    return value if hint is Any or (isinstance(hint, type) and type(value) is hint) else None


def _words(hint: Any) -> str:
    kinds = [k for k in typing.get_args(hint) if k is not type(None)]
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_words(kind) for kind in kinds)
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, kinds))
    if typing.get_origin(hint) is tuple:
        return f"a list of {kinds[0].__name__}"
    name = str(getattr(hint, "__name__", hint))
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# --- words of the command line -----------------------------------------------------------------

COUNTS = tyro.constructors.ConstructorRegistry()
"""Whole numbers may be written as 1e5."""


@COUNTS.primitive_rule
def _count_rule(
    info: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[int] | None:
    if info.type is not int:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: read_count(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


def read_count(text: str) -> int:
    """`100000`, `100_000` and `1e5` are one number; a ValueError for what is not whole."""
    try:
        return int(text)
    except ValueError:
        short = re.fullmatch(r"[+-]?[0-9]+([.][0-9]+)?[eE][+]?[0-9]{1,2}", text)
    number = Decimal(text if short else "nan")
    if number != number.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number")
    return int(number)


def _spell_flags(kind: Any, words: list[str]) -> list[str]:
    """`--paired` alone means `--paired True`, `--no-paired` means `--paired False`."""
    flags = {option for option, hint in option_hints(kind) if hint in (bool, bool | None)}
    out: list[str] = []
    for i, word in enumerate(words):
        option, bare = word.replace("_", "-"), "=" not in word
        if bare and option in flags:
            valued = i + 1 < len(words) and words[i + 1] in (*TRUE, *FALSE, "None")
            out += [option] if valued else [option, "True"]
        elif bare and option.startswith("--no-") and f"--{option[5:]}" in flags:
            out += [f"--{option[5:]}", "False"]
        else:
            out.append(word)
    return out


def option_hints(kind: Any) -> Iterator[tuple[str, Any]]:
    """Every option as it is typed, and the type of its value."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        hint: Any = hints[field.name]
        if dataclasses.is_dataclass(hint):
            yield from option_hints(hint)
        else:
            yield f"--{field.name.replace('_', '-')}", hint


def _take_flag(words: list[str], flag: str) -> tuple[list[str], bool]:
    if flag not in words:
        return words, False
    at = words.index(flag)
    value = words[at + 1] if at + 1 < len(words) and words[at + 1] in TRUE + FALSE else None
    rest = words[:at] + words[at + (1 if value is None else 2) :]
    return rest, value not in FALSE


def take_config(words: list[str]) -> tuple[list[str], Path | None]:
    rest = list(words)
    for i, word in enumerate(rest):
        if word == "--config":
            if i + 1 == len(rest):
                raise InputError("--config needs the name of a TOML file")
            source = Path(rest[i + 1])
            del rest[i : i + 2]
            return rest, source
        if word.startswith("--config="):
            del rest[i]
            return rest, Path(word.removeprefix("--config="))
    return rest, None


# --- mistakes ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _in_one_line(kind: Any, words: list[str], prog: str) -> Iterator[None]:
    """A mistake as an InputError of one line, where tyro draws a box of many and exits."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            yield
    except SystemExit as end:
        if end.code == InputError.exit_code:
            raise _mistake(said.getvalue(), dict(option_hints(kind)), words, prog) from None
        raise
    print(said.getvalue(), end="", file=sys.stderr)  # warnings


def _mistake(box: str, hints: dict[str, Any], words: list[str], prog: str) -> InputError:
    """What is wrong, from the first paragraph of tyro's box: the option is named there."""
    # The title, perhaps a rule under it, the paragraph, a rule; of other signs where no UTF-8 is.
    lines = [line.strip("│ ") for line in box.splitlines()[1:]]
    ruled = [line if line.strip("─-╰╯ ") else "" for line in lines]
    text = " ".join(takewhile(bool, dropwhile(lambda line: not line, ruled)))
    strange = re.match(r"Unrecognized options: ([^,]+)", text)
    if strange and strange[1].startswith("-"):
        close = get_close_matches(strange[1].replace("_", "-"), hints, n=1)
        meant = f": did you mean {close[0]}?" if close else ""
        return InputError(f"unknown option {strange[1]}{meant} ({prog} --help shows them all)")
    if strange:
        return InputError(f"{strange[1]!r} is a word too many ({prog} --help shows what there is)")
    option = next((name for name in re.findall(r"--[a-z0-9-]+", text) if name in hints), None)
    if option is None:
        return InputError(f"{text} ({prog} --help)")
    hint, value = hints[option], " ".join(_given(words, option))
    if not value:
        return InputError(f"{option} needs a value: {_words(hint)}")
    if typing.get_origin(hint) is Literal:
        return unknown(option, value, typing.get_args(hint))
    return InputError(f"{option} {value}: it must be {_words(hint)}")


def _given(words: list[str], option: str) -> list[str]:
    """The words that were last given to an option."""
    given: list[str] = []
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == option:
            after = takewhile(lambda other: not other.startswith("--"), words[i + 1 :])
            given = [value] if equals else list(after)
    return given
