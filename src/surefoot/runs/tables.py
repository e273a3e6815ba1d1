"""Columns of measurements as Parquet bytes that know whether they are still what was written."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.errors import InputError
from surefoot.runs.checksum import MARK, PLACEHOLDER, stamp, verify

if TYPE_CHECKING:
    import polars


def encode(columns: Any, name: str) -> bytes:
    """Parquet of a mapping of columns or a polars DataFrame; `name` is named in errors.

    The file's metadata carries its checksum; any Parquet reader can read the file.
    """
    frame = _frame(columns, name)
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"surefoot.checksum": PLACEHOLDER})
    blank = buffer.getvalue()
    if blank.count(MARK) != 1:
        raise InputError(f"{name}: the text {MARK.decode()!r} is reserved for the checksum")
    return b"".join(stamp(blank))


def decode(data: bytes, source: object) -> polars.DataFrame:
    """The table, or an error that says how `source` is damaged."""
    pl = _polars()
    if data[:4] != b"PAR1":
        raise InputError(f"{source}: is no Parquet file")
    verify(data, source)
    try:
        return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InputError(f"{source}: cannot be read as Parquet ({error})") from None


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
    try:  # the values of text, and of what holds a None, decide its type
        return pl.Series(key, array.tolist() if array.dtype.kind in "UO" else array, strict=True)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(f"{name}: column {key!r} mixes kinds of values") from None
