"""Agents and checkpoints on disk: safetensors with JSON in the header. No pickle, no code.

A file is one safetensors file whose header holds one JSON text under "surefoot", with the checksum
of the file in it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from surefoot import __version__
from surefoot.errors import InputError, unknown
from surefoot.runs.checksum import PLACEHOLDER, stamp, verify
from surefoot.runs.files import Buffer, opened
from surefoot.runs.tables import End

FORMAT = 1
LONGEST_HEADER = 16_000_000
_DTYPES = {
    "b1": "BOOL", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64", "i1": "I8", "i2": "I16",
    "i4": "I32", "i8": "I64", "f2": "F16", "f4": "F32", "f8": "F64",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_.]{1,200}")
Tree = TypeVar("Tree")
Config = TypeVar("Config")


def encode(
    kind: str, arrays: Mapping[str, Any], about: Mapping[str, Any], contents: str = "agent"
) -> list[Buffer]:
    """The bytes of a file, in pieces; equal content gives equal bytes.

    Written here and not by safetensors' own `save`: that copies every array twice, which for
    a large replay costs more than all the rest.
    """
    header = {"format": FORMAT, "surefoot": __version__, "kind": kind, "contents": contents}
    header |= {**about, "checksum": PLACEHOLDER}
    outer: dict[str, Any] = {"__metadata__": {"surefoot": json.dumps(header, allow_nan=False)}}
    pieces: list[Buffer] = []
    end = 0
    tensors = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    # Wide types first: every array then begins at a multiple of its width.
    for name, value in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        start, end = end, end + value.nbytes
        place = {"shape": list(value.shape), "data_offsets": [start, end]}
        outer[name] = {"dtype": _DTYPES[value.dtype.str.lstrip("<|")], **place}
        if value.nbytes:
            pieces.append(value.reshape(-1).view(np.uint8).data)
    text = json.dumps(outer).encode()
    text += b" " * (-len(text) % 8)
    return stamp(len(text).to_bytes(8, "little") + text, pieces)


def read_agent(
    path: str | os.PathLike[str], kind: str | None = None, contents: str = "agent"
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and settings, or an error that says what is wrong with the file."""
    data, header = _read(path)
    if header.get("format") != FORMAT:
        raise InputError(
            f"{path}: is in format {header.get('format')!r}, written by surefoot "
            f"{header.get('surefoot')!r}; this surefoot ({__version__}) reads format {FORMAT}"
        )
    verify(data, path)
    if header.get("contents") != contents:
        raise InputError(f"{path}: holds a {header.get('contents')!r}, not a {contents}")
    if kind is not None and header.get("kind") != kind:
        raise InputError(f"{path}: holds a {header.get('kind')!r} agent, not a {kind} one")
    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged ({error})") from None
    for name, array in arrays.items():
        if not _NAME.fullmatch(name):
            raise InputError(f"{path}: {name[:80]!r} is no name of an array of ours")
        if array.dtype.kind not in "fiub":
            raise InputError(f"{path}: {name} holds {array.dtype}, which is not a number")
    return arrays, header


def _read(path: str | os.PathLike[str]) -> tuple[bytes, dict[str, Any]]:
    """All bytes and our header. The safetensors header is read first and with care: no more
    is read than it accounts for."""
    with opened(path) as file:
        file_size = os.fstat(file.fileno()).st_size
        head = file.read(8)
        size = int.from_bytes(head, "little") if len(head) == 8 else -1
        if not 0 < size <= min(file_size - 8, LONGEST_HEADER):
            raise InputError(f"{path}: not a surefoot agent, or cut short")
        text = file.read(size)
        header, length = _header(text, path)
        if file_size != 8 + size + length:
            raise InputError(f"{path}: damaged: cut short, or something was added")
        return b"".join((head, text, file.read(length))), header


def _header(text: bytes, path: object) -> tuple[dict[str, Any], int]:
    """Our header, and how many bytes of numbers follow the safetensors header it is in."""
    try:
        outer = json.loads(text)
        header = json.loads(outer["__metadata__"]["surefoot"])
        ends = [v["data_offsets"][1] for k, v in outer.items() if k != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise InputError(f"{path}: not a surefoot agent, or damaged") from None
    sound = all(isinstance(end, int) and 0 <= end < 2**62 for end in ends)
    if not isinstance(header, dict) or not sound:
        raise InputError(f"{path}: not a surefoot agent, or damaged")
    return header, max(ends, default=0)


# --- settings ----------------------------------------------------------------------------


def settings(config: Any) -> dict[str, Any]:
    """A configuration as JSON; a policy as its name, or by its `repr` where it has none."""
    return {f.name: _setting(getattr(config, f.name)) for f in dataclasses.fields(config)}


def _setting(value: Any) -> Any:
    from surefoot.policies import Policy, policy_text  # here: files alone do not wait for JAX

    if not isinstance(value, Policy):
        return value
    try:
        return policy_text(value)
    except InputError:
        return {"unnamed": repr(value)}


def configuration(
    cls: type[Config], stored: Any, path: object, changes: Mapping[str, Any] | None = None
) -> Config:
    """The inverse of `settings`, with `changes`; a file's nonsense is the file's error."""
    changes = changes or {}
    known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in changes:
        if name not in known:
            raise unknown("option", name, known)
    if not isinstance(stored, dict) or not stored.keys() <= set(known):
        raise InputError(f"{path}: its settings are not those of this version")
    kinds = {f.name: str(f.type) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name, value in stored.items():
        if name in changes:
            continue
        if isinstance(value, dict) and set(value) == {"unnamed"}:
            raise InputError(
                f"{path}: {name} was {str(value.get('unnamed'))[:200]}, which has no name: "
                f"name one by {name}="
            )
        if not any(_fits(value, kind) for kind in kinds[name].split(" | ")):
            raise InputError(f"{path}: {name} = {str(value)[:80]}, it must be {kinds[name]}")
    try:
        return cls(**(stored | dict(changes)))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: its settings make no sense ({error})") from None


def _fits(value: Any, kind: str) -> bool:
    """Whether a value of a file is of the type a setting is declared with."""
    if kind.startswith("tuple["):
        pair = kind == "tuple[float, float]" and isinstance(value, list) and len(value) != 2
        return isinstance(value, list) and all(_fits(v, "float") for v in value) and not pair
    if isinstance(value, bool) or kind == "bool":
        return kind == "bool" and isinstance(value, bool)
    if kind == "int":
        return isinstance(value, int) and 0 <= value < 2**31
    if kind == "float":
        return _fits(value, "int") or (isinstance(value, float) and abs(value) < 1e300)
    return value is None if kind == "None" else isinstance(value, str)


def count(about: Mapping[str, Any], name: str, path: object, most: int = 2**63 - 1) -> int:
    """A counter of a file's header."""
    value = about.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InputError(f"{path}: {name} = {str(value)[:80]}, it must be a whole number")
    return value


def texts(about: Mapping[str, Any], name: str, path: object) -> list[str]:
    """A list of texts of a file's header."""
    value = about.get(name)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f"{path}: {name} = {str(value)[:80]}, it must be a list of texts")
    return value


def ends(about: Mapping[str, Any], name: str, path: object) -> dict[str, End] | None:
    """Where some files ended, if there were any."""
    value = about.get(name)
    if value is None:
        return None
    if not isinstance(value, dict) or not all(
        isinstance(end, list) and len(end) == 2 for end in value.values()
    ):
        raise InputError(f"{path}: {name} = {str(value)[:80]}, it must say where files ended")
    counts = {key: dict(zip(End._fields, end, strict=True)) for key, end in value.items()}
    return {k: End(count(v, "size", path), count(v, "crc", path)) for k, v in counts.items()}


# --- trees of arrays ---------------------------------------------------------------------


def named(tree: Any, prefix: str) -> dict[str, Any]:
    """The leaves of a tree by their place in it: `prefix.params.0`."""
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {".".join((prefix, *map(_step, place))): leaf for place, leaf in leaves}


def _step(entry: Any) -> str:
    for name in ("name", "key", "idx"):
        if hasattr(entry, name):
            return str(getattr(entry, name))
    raise TypeError(f"no name for {entry!r}")


def from_named(like: Tree, arrays: Mapping[str, np.ndarray], prefix: str, path: object) -> Tree:
    """The tree that `named` took apart; every leaf in the shape and type of `like`'s."""
    import jax

    leaves = []
    for name, model in named(like, prefix).items():
        if name not in arrays:
            raise InputError(f"{path}: {name} is missing")
        value, shape, dtype = arrays[name], np.shape(model), np.dtype(model.dtype)
        if value.shape != shape or value.dtype != dtype:
            raise InputError(
                f"{path}: {name} is {value.dtype} {list(value.shape)} and does not fit the "
                f"settings and the environment, which ask for {dtype} {list(shape)}"
            )
        leaves.append(value)
    return jax.tree.unflatten(jax.tree.structure(like), leaves)
