"""Options from a frozen dataclass, a TOML file and the command line, in that order."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import tyro

from surefoot.errors import InputError, unknown

Options = TypeVar("Options")


def parse(kind: type[Options], words: list[str], prog: str, description: str) -> Options:
    """Read `--config FILE.toml` first, then let the other words override it."""
    rest, source = _take_config(words)
    default = kind() if source is None else from_toml(kind, source)
    return tyro.cli(
        kind,
        prog=prog,
        description=f"{description} (--config FILE.toml reads options from a file)",
        args=rest,
        default=default,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff),
    )


def from_toml(kind: type[Options], path: Path) -> Options:
    """A dataclass from a file; unknown names and wrong kinds are told by name."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML file ({error})") from None
    return _fill(kind, values, str(path))


def to_toml(options: Any) -> str:
    """The dataclass as TOML, nested ones as tables; what is None is left out."""
    plain, tables = [], []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            tables.append(f"\n[{field.name}]\n{to_toml(value)}")
        elif value is not None:
            plain.append(f"{field.name} = {_value(value)}\n")
    return "".join(plain + tables)


def _fill(kind: type[Any], values: dict[str, Any], where: str) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    base = kind()
    made = {}
    for name, value in values.items():
        if name not in fields:
            raise unknown(f"option in {where}:", name, fields)
        old = getattr(base, name)
        if dataclasses.is_dataclass(old):
            made[name] = _fill(type(old), value, f"{where} [{name}]")
        else:
            made[name] = _as(old, value, f"{where}: {name}")
    return dataclasses.replace(base, **made)


def _as(old: Any, value: Any, where: str) -> Any:
    if isinstance(old, tuple) and isinstance(value, list):
        return tuple(value)
    if isinstance(old, Path):
        return Path(str(value))
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if old is not None and type(old) is not type(value):
        raise InputError(f"{where} = {value!r}: a {type(old).__name__} is wanted")
    return value


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(_value(v) for v in value)}]"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _take_config(words: list[str]) -> tuple[list[str], Path | None]:
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
