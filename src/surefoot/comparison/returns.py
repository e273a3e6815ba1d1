"""Returns in files and in memory: one named column per policy, portfolio or strategy.

Columns may have different lengths: a short one ends in blanks. Anything else that is missing, is
not a number or is not finite is an error that names the file, the row and the column: a comparison
that silently dropped some of the returns would be wrong without looking wrong.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InputError, unknown
from surefoot.runs.files import atomic_write, read_bytes

Array = NDArray[np.float64]
Columns = dict[str, Array]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
LARGEST = 1e150  # the square of a return must still be a number
_SHAPES = "pass a dict of columns, a table or an array [rows, columns]"


class _Source(NamedTuple):
    """What errors call the table, and the number of its first row of values."""

    name: str
    first_row: int

    def cell(self, index: int, column: str) -> str:
        return f"{self.name}: row {index + self.first_row}, column {column!r}"


def read_returns(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Columns:
    """Read CSV (also separated by semicolons or tabs) or Parquet; `columns` picks some by name.

    The first row of a CSV file names the columns; blanks, NA, NaN and null are missing values.
    """
    data = read_bytes(path)
    if not data.strip():
        raise InputError(f"{path}: is empty")
    if data.startswith(b"PAR1"):
        return _columns(_read_parquet(str(path), data), columns, _Source(str(path), 1))
    table = _read_csv(str(path), data)
    return _columns(table, columns, _Source(str(path), 2))  # as a spreadsheet counts


def write_returns(path: str | os.PathLike[str], returns: Columns) -> Path:
    """CSV that `read_returns` reads back to the bit; shorter columns end in blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(returns)
    columns = ([repr(float(value)) for value in column] for column in returns.values())
    writer.writerows(zip_longest(*columns, fillvalue=""))
    return atomic_write(path, text.getvalue().encode())


def as_columns(
    returns: Any, names: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> Columns:
    """Named columns of a mapping, a pandas or polars table, or an array `[rows, columns]`."""
    labelled = isinstance(returns, Mapping) or (
        hasattr(returns, "columns") and hasattr(returns, "__getitem__")
    )
    if labelled and names is not None:
        raise InputError("names: the returns have names already; they are for a plain array")
    if labelled:
        labels = list(returns if isinstance(returns, Mapping) else returns.columns)
        table = dict(
            zip(_names(labels, "returns"), (returns[each] for each in labels), strict=True)
        )
    else:
        array = _matrix(returns)
        labels = list(range(array.shape[1]) if names is None else names)
        if len(labels) != array.shape[1]:
            raise InputError(f"names: {len(labels)} for {array.shape[1]} columns")
        table = dict(zip(_names(labels, "names"), array.T, strict=True))
    return _columns(table, columns, _Source("returns", 0))


def _matrix(returns: Any) -> NDArray[Any]:
    try:
        array = np.asarray(returns)
    except (TypeError, ValueError):
        raise InputError(f"returns: {_SHAPES}") from None
    if array.ndim != 2:
        raise InputError(f"returns of shape {array.shape}: {_SHAPES}")
    return array


def _names(labels: Iterable[object], where: str) -> list[str]:
    """Labels as text of one line, all different: they stand in tables and messages."""
    names: list[str] = []
    for label in labels:
        name = " ".join(str(label).split())
        if name in names:
            first, second = names.index(name) + 1, len(names) + 1
            raise InputError(f"{where}: columns {first} and {second} are both named {name!r}")
        names.append(name)
    return names


# --- from raw values to numbers ----------------------------------------------------------


def _columns(table: Mapping[str, Any], chosen: Sequence[str] | None, source: _Source) -> Columns:
    """The chosen columns, checked; the others are not looked at."""
    for name in chosen or ():
        if name not in table:
            raise unknown(f"column of {source.name}", name, list(table))
    names = list(table) if chosen is None else _names(chosen, "columns")
    return {name: _checked(_numbers(table[name], name, source), name, source) for name in names}


def _numbers(values: Any, name: str, source: _Source) -> Array:
    """A column as floats, NaN where a value is missing."""
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except Exception as error:  # ragged lists, or whatever a foreign table raises
        raise InputError(f"{source.name}: column {name!r} holds no numbers: {error}") from None
    if array.ndim != 1:
        raise InputError(f"{source.name}: column {name!r} has shape {array.shape}, not one axis")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.size and array.dtype.kind not in "OUS":
        raise InputError(f"{source.name}: column {name!r} holds {array.dtype}, not numbers")
    cells = array.tolist()
    try:  # fast where every cell is the text of a number
        if not any("_" in cell for cell in cells):
            return np.array([float(cell) for cell in cells])
    except (TypeError, ValueError):
        pass
    return np.array([_number(cell, source.cell(i, name)) for i, cell in enumerate(cells)])


def _number(value: Any, cell: str) -> float:
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, without pandas
        return float("nan")
    if isinstance(value, str) and value.strip().lower() in MISSING:
        return float("nan")
    try:
        # Python reads 1_000 as a number; in a table it is a slip.
        if isinstance(value, bool | bytes) or (isinstance(value, str) and "_" in value):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
        comma = isinstance(value, str) and value.count(",") == 1
        comma = comma and value.replace(",", "").isdigit()
        hint = " (is the decimal sign a comma? it must be a point)" if comma else ""
        raise InputError(f"{cell} holds {shown}, which is not a number{hint}") from None


def _checked(values: Array, name: str, source: _Source) -> Array:
    """Without the blanks at the end; every other value must be there, finite and sensible."""
    missing = np.isnan(values)
    present = np.flatnonzero(~missing)
    length = int(present[-1]) + 1 if len(present) else 0
    values, missing = values[:length], missing[:length]
    if missing.any():
        raise InputError(
            f"{source.cell(int(np.argmax(missing)), name)} is missing "
            f"({_count(int(missing.sum()), 'value')} missing before the end of the column)"
        )
    too_large = ~(np.abs(values) <= LARGEST)
    if too_large.any():
        index = int(np.argmax(too_large))
        problem = "is infinite" if np.isinf(values[index]) else f"is beyond ±{LARGEST:g}"
        raise InputError(f"{source.cell(index, name)} {problem}")
    if length < 2:
        raise InputError(
            f"{source.name}: column {name!r} has {_count(length, 'value')}: "
            "a comparison needs at least 2"
        )
    return values


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"


# --- files -------------------------------------------------------------------------------


def _read_csv(path: str, data: bytes) -> dict[str, NDArray[Any]]:
    rows = _rows(path, _text(path, data))
    header = _header(path, rows[0])
    for number, row in enumerate(rows[1:], 2):
        if any(cell.strip() for cell in row[len(header) :]):
            raise InputError(
                f"{path}: row {number} has {len(row)} cells, there are {len(header)} columns"
            )
    columns = ([row[i] if i < len(row) else "" for row in rows[1:]] for i in range(len(header)))
    # As objects: an array of text would give every cell the space of the longest.
    cells = (np.array(column, dtype=object) for column in columns)
    return dict(zip(header, cells, strict=True))


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
    first = text.lstrip().partition("\n")[0]
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
        raise InputError(f"{path}: has {_count(len(rows), 'row')}: names, then values, are needed")
    return rows


def _header(path: str, cells: list[str]) -> list[str]:
    for i, cell in enumerate(cells, 1):
        if not cell.strip():
            raise InputError(
                f"{path}: row 1, column {i} has no name (an index? leave it out of the file)"
            )
    if all(map(_is_number, cells)):
        raise InputError(f"{path}: row 1 holds numbers: the first row must name the columns")
    return _names(cells, f"{path}: row 1")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: str, data: bytes) -> dict[str, Any]:
    try:
        import polars as pl
    except ImportError:
        raise InputError(f"{path}: Parquet needs polars: install surefoot[report]") from None
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    # A damaged file makes polars raise almost anything, a panic of its core included.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: is not readable as Parquet: {reason}") from None
    return {name: frame[name] for name in frame.columns}
