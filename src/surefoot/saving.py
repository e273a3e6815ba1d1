"""Agents on disk: safetensors with settings as JSON in the header. No pickle, no code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from surefoot import __version__
from surefoot.errors import InputError
from surefoot.files import atomic_write, read_bytes

FORMAT = 1


def write_agent(
    path: str | os.PathLike[str], kind: str, arrays: Mapping[str, Any], about: Mapping[str, Any]
) -> None:
    """Whole or not at all."""
    header = {"format": FORMAT, "surefoot": __version__, "kind": kind, **about}
    tensors = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
    atomic_write(Path(path), save(tensors, metadata={"surefoot": json.dumps(header)}))


def read_agent(
    path: str | os.PathLike[str], kind: str | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and settings, or an error that says what is wrong with the file."""
    data = read_bytes(Path(path))
    header = _header(data, path)
    if header.get("format") != FORMAT:
        raise InputError(f"{path}: format {header.get('format')!r}, this surefoot reads {FORMAT}")
    if kind is not None and header.get("kind") != kind:
        raise InputError(f"{path}: holds a {header.get('kind')!r} agent, not a {kind} one")
    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged ({error})") from None
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise InputError(f"{path}: {name} holds {array.dtype}, which is not a number")
    return arrays, header


def _header(data: bytes, path: object) -> dict[str, Any]:
    """The JSON of the safetensors header, read with care before anything else."""
    size = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if not 0 < size <= min(len(data) - 8, 10_000_000):
        raise InputError(f"{path}: not a surefoot agent, or cut short")
    try:
        outer = json.loads(data[8 : 8 + size])
        header = json.loads(outer["__metadata__"]["surefoot"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: not a surefoot agent, or damaged") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: not a surefoot agent, or damaged")
    return header
