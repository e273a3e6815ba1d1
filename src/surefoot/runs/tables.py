"""Columns of measurements as Parquet bytes that know whether they are still what was written."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.errors import InputError
from surefoot.runs.files import json_bytes

if TYPE_CHECKING:
    import polars

METADATA, CHECKSUM = "surefoot.metadata", "surefoot.checksum"
MARK = b"surefoot-sha256:"
BLANK = b"0" * 64


def encode(columns: Any, name: str, metadata: Mapping[str, Any]) -> bytes:
    """Parquet of a mapping of columns or a polars DataFrame; `name` is named in errors.

    The file's metadata carries a checksum of all its bytes, itself counted as zeros. Any
    Parquet reader can read the file.
    """
    frame = _frame(columns, name)
    about = json_bytes(metadata, where=f"metadata of {name}").decode()
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={METADATA: about, CHECKSUM: (MARK + BLANK).decode()})
    blank = buffer.getvalue()
    if blank.count(MARK) != 1:
        raise InputError(f"{name}: the text {MARK.decode()!r} is reserved for the checksum")
    return blank.replace(MARK + BLANK, MARK + hashlib.sha256(blank).hexdigest().encode())


def decode(data: bytes, source: object) -> tuple[polars.DataFrame, dict[str, Any]]:
    """The table and its metadata, or an error that says how `source` is damaged."""
    pl = _polars()
    _verify(data, source)
    try:
        stamp = pl.read_parquet_metadata(io.BytesIO(data))
        frame = pl.read_parquet(io.BytesIO(data))
        return frame, json.loads(stamp[METADATA])
    except (pl.exceptions.PolarsError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{source}: cannot be read as Parquet ({error})") from None


def _verify(data: bytes, source: object) -> None:
    """Refuse damage before it is parsed: of bit-flipped files polars reads half without an
    error, and some make it abort the process."""
    if data[:4] != b"PAR1":
        raise InputError(f"{source}: is no Parquet file")
    before, mark, after = data.rpartition(MARK)
    if not mark:
        raise InputError(f"{source}: has no checksum: cut short, or not written by surefoot")
    found, rest = after[: len(BLANK)], after[len(BLANK) :]
    if hashlib.sha256(before + mark + BLANK + rest).hexdigest().encode() != found:
        raise InputError(f"{source}: is damaged, its content does not match its checksum")


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise InputError("tables need polars: install surefoot[report]") from None
    return polars


def _frame(columns: Any, name: str) -> polars.DataFrame:
    pl = _polars()
    if isinstance(columns, pl.DataFrame):
        frame = columns
    else:
        series = [_series(pl, key, value, name) for key, value in columns.items()]
        if len(set(map(len, series))) > 1:
            lengths = ", ".join(f"{column.name}: {len(column)}" for column in series)
            raise InputError(f"{name}: columns differ in length ({lengths})")
        frame = pl.DataFrame(series)
    if not frame.width:
        raise InputError(f"{name} has no columns")
    for key, dtype in frame.schema.items():
        if dtype not in (pl.Boolean, pl.String) and not (dtype.is_integer() or dtype.is_float()):
            raise InputError(f"{name}: column {key!r} holds {dtype}, not numbers or text")
    return frame


def _series(pl: Any, key: str, value: Any, name: str) -> polars.Series:
    array = np.asarray(value)
    if array.ndim != 1:
        raise InputError(f"{name}: column {key!r} has shape {array.shape}, not [rows]")
    try:  # text, and whatever holds a None, is told apart by its values
        return pl.Series(key, array.tolist() if array.dtype.kind in "UO" else array, strict=True)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(f"{name}: column {key!r} mixes kinds of values") from None
