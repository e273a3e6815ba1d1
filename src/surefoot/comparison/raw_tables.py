"""Tables before their numbers are looked at: CSV, Parquet, pandas, polars, dicts and arrays.

A raw table has named columns of cells, and perhaps a column that its writer marked as the index.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InputError, listed, visible
from surefoot.runs.tables import read_parquet

_SHAPES = "pass a dict of columns, a table or an array [rows, columns]"
UNNAMED = ""  # an index without a name, as pandas writes it


@dataclass(frozen=True)
class RawTable:
    """Columns of cells: a list of text (from a file), or whatever else holds values."""

    name: str
    """What errors call it."""
    first_row: int
    """The number of its first row of values."""
    columns: Mapping[str, Any]
    index: str | None = None
    """The column that its writer marked as the index."""
    from_file: bool = False
    """Whether text may stand for numbers."""
    whole_table: bool = False
    """Whether it is a table as others made it, in which a column may count the rows."""

    def cell(self, index: int, column: str) -> str:
        named = f"column {column!r}" if column else "column 1"
        return f"{self.name}: row {index + self.first_row}, {named}"

    def cells(self, name: str) -> Any:
        """A column as an array of numbers or dates, or else as a list of its cells."""
        values = self.columns[name]
        if isinstance(values, np.ma.MaskedArray):
            raise InputError(
                f"{self.name}: column {name!r} is a masked array: fill it with NaN, and say what "
                "happens to missing values"
            )
        if isinstance(values, list) and values and isinstance(values[0], str):
            return values
        try:
            array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
        except Exception as error:  # ragged lists, or whatever a foreign table raises
            raise InputError(f"{self.name}: column {name!r} holds no numbers: {error}") from None
        if array.ndim != 1:
            raise InputError(f"{self.name}: column {name!r} has shape {array.shape}, not one axis")
        if array.dtype.kind in "iufMb":
            return array
        if isinstance(values, np.ndarray) or array.dtype.kind not in "OUS":
            raise InputError(f"{self.name}: column {name!r} holds {array.dtype}, not numbers")
        return array.tolist() if hasattr(values, "to_numpy") else list(values)


def raw_file(path: str, data: bytes) -> RawTable:
    """CSV (also separated by semicolons or tabs) or Parquet."""
    if not data.strip():
        raise InputError(f"{path}: is empty")
    return _parquet(path, data) if data.startswith(b"PAR1") else _csv(path, data)


def raw_memory(returns: Any, names: Sequence[str] | None) -> RawTable:
    """A mapping, a pandas or polars table, an array `[rows, columns]`, or a list of columns."""
    given = None if names is None else listed(names, "names")
    if isinstance(returns, list | tuple):
        returns, given = _by_name(returns, given), None
    labelled = isinstance(returns, Mapping) or (
        hasattr(returns, "columns") and hasattr(returns, "__getitem__")
    )
    if not labelled:
        array = _matrix(returns)
        labels: list[Any] = list(range(array.shape[1]) if given is None else given)
        if len(labels) != array.shape[1]:
            raise InputError(f"names: {len(labels)} for {array.shape[1]} columns")
        return RawTable("returns", 0, dict(zip(one_line(labels, "names"), array.T, strict=True)))
    if given is not None:
        raise InputError("names: the returns have names already; they are for a plain array")
    labels = list(returns if isinstance(returns, Mapping) else returns.columns)
    columns = dict(
        zip(one_line(labels, "returns"), (returns[each] for each in labels), strict=True)
    )
    whole, dates = not isinstance(returns, Mapping), _pandas_dates(returns)
    if dates is None:
        return RawTable("returns", 0, columns, whole_table=whole)
    name = "date" if "date" not in columns else UNNAMED
    return RawTable("returns", 0, {name: dates, **columns}, name, whole_table=whole)


def _by_name(columns: Sequence[Any], names: Sequence[object] | None) -> dict[str, Any]:
    """A list of columns, whose names stand beside it: without them it might be one of rows."""
    if names is None:
        raise InputError(
            f"returns: a {type(columns).__name__} may hold columns or rows: name the columns, as "
            'in {"a": a, "b": b} or with names=["a", "b"], or pass an array [rows, columns]'
        )
    if len(names) != len(columns):
        raise InputError(f"names: {len(names)} for {len(columns)} columns")
    return dict(zip(one_line(names, "names"), columns, strict=True))


def one_line(labels: Iterable[object], where: str) -> list[str]:
    """Labels as text of one line, all different: they stand in tables and messages."""
    names: list[str] = []
    for label in labels:
        name = visible(" ".join(str(label).split()))
        if name in names:
            first, second = names.index(name) + 1, len(names) + 1
            raise InputError(f"{where}: columns {first} and {second} are both named {name!r}")
        names.append(name)
    return names


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{f'{number:,}' if number else 'no'} {noun}s"


def _matrix(returns: Any) -> NDArray[Any]:
    if isinstance(returns, np.ma.MaskedArray):
        raise InputError("returns: is a masked array: fill it with NaN, and choose missing=...")
    try:
        array = np.asarray(returns)
    except (TypeError, ValueError):
        raise InputError(f"returns: {_SHAPES}") from None
    if array.ndim != 2:
        raise InputError(f"returns of shape {array.shape}: {_SHAPES}")
    if array.dtype.kind not in "iuf":
        raise InputError(f"returns: the array holds {array.dtype}, not numbers")
    return array


def _pandas_dates(returns: Any) -> NDArray[np.datetime64] | None:
    """The index of a pandas table where it holds days, or periods such as months."""
    index = getattr(returns, "index", None)
    if isinstance(returns, Mapping) or index is None:
        return None
    stamps = index.to_timestamp() if hasattr(index, "to_timestamp") else index
    if getattr(stamps, "tz", None) is not None:
        stamps = stamps.tz_localize(None)
    if not hasattr(stamps, "to_numpy"):
        return None
    values = np.asarray(stamps.to_numpy())
    return values.astype("M8[us]") if values.dtype.kind == "M" else None


# --- CSV ---------------------------------------------------------------------------------


def _csv(path: str, data: bytes) -> RawTable:
    rows = _rows(path, _text(path, data))
    header = _header(path, rows[0])
    for number, row in enumerate(rows[1:], 2):
        if any(cell.strip() for cell in row[len(header) :]):
            raise InputError(
                f"{path}: row {number} has {len(row)} cells, there are {len(header)} columns"
            )
    columns = {
        name: [row[i] if i < len(row) else "" for row in rows[1:]] for i, name in enumerate(header)
    }
    index = UNNAMED if UNNAMED in columns else None
    # rows as a spreadsheet counts
    return RawTable(path, 2, columns, index, from_file=True, whole_table=True)


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}: row {row} is not UTF-8 text (byte {error.start}): save the file as "
            "CSV in UTF-8, or as Parquet"
        ) from None


def _rows(path: str, text: str) -> list[list[str]]:
    """The cells of each row; the separator is the commonest candidate in the first row."""
    first = text.lstrip("\r\n ").partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(reader)
    except csv.Error as error:
        raise InputError(f"{path}: row {len(rows) + 1} cannot be read: {error}") from None
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()
    if len(rows) < 2:
        raise InputError(f"{path}: has {count(len(rows), 'row')}: names, then values, are needed")
    return rows


def _header(path: str, cells: list[str]) -> list[str]:
    """The names of the columns; only the first, an index, may have none."""
    for i, cell in enumerate(cells[1:], 2):
        if not cell.strip():
            raise InputError(f"{path}: row 1, column {i} has no name")
    if all(map(_is_number, cells)):
        raise InputError(f"{path}: row 1 holds numbers: the first row must name the columns")
    return one_line(cells, f"{path}: row 1")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- Parquet -----------------------------------------------------------------------------


def _parquet(path: str, data: bytes) -> RawTable:
    frame = read_parquet(data, path)
    import polars as pl

    notes = pl.read_parquet_metadata(io.BytesIO(data))
    columns = {name: _series(frame[name], pl) for name in frame.columns}
    index = _pandas_index(path, notes.get("pandas", ""), list(columns))
    return RawTable(path, 1, columns, index, from_file=True, whole_table=True)


def _series(series: Any, pl: Any) -> Any:
    """Text as a list of cells, as CSV has it; times by the clock of their own zone."""
    if series.dtype == pl.String:
        return ["" if cell is None else cell for cell in series.to_list()]
    if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone:
        return series.dt.replace_time_zone(None)
    return series


def _pandas_index(path: str, note: str, names: list[str]) -> str | None:
    """The index column that pandas notes in the Parquet files it writes; a range has none."""
    try:
        labels = json.loads(note)["index_columns"] if note else []
    except (ValueError, KeyError, TypeError):
        return None
    own = [label for label in labels if isinstance(label, str) and label in names]
    if len(own) > 1:
        raise InputError(
            f"{path}: the index has {len(own)} columns ({', '.join(own)}): one row for each date "
            "and one column for each series are needed"
        )
    return own[0] if own else None
