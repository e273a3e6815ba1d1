"""Returns from a file or a table in memory: one named column per policy, portfolio or strategy.

Columns may have different lengths, that is end in blanks. Anything else that is missing, is not
a number or is not finite is an error that names the file, the row and the column: a comparison
of returns of which some were silently dropped would be wrong without looking wrong.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InputError, unknown
from surefoot.runs.files import read_bytes

Columns = dict[str, NDArray[np.float64]]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
LARGEST = 1e150  # the square of a return must still be a number
_PARQUET = b"PAR1"


class _Place(NamedTuple):
    """Where a value stands, in the words of an error: what it is part of, and its first row."""

    source: str
    first_row: int

    def cell(self, index: int, name: str) -> str:
        return f"{self.source}: row {index + self.first_row}, column {name!r}"


def read_returns(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Columns:
    """Read CSV (also separated by semicolons or tabs) or Parquet; `columns` picks some by name.

    The first row of a CSV file names the columns; blanks, NA, NaN and null are missing values.
    """
    data = read_bytes(path)
    if not data.strip():
        raise InputError(f"{path}: is empty")
    if data.startswith(_PARQUET):
        return _read_parquet(str(path), data, columns)
    return _read_csv(str(path), data, columns)


def as_columns(
    returns: Any, names: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> Columns:
    """Named columns of a mapping, a pandas or polars table, or an array `[rows, columns]`."""
    place = _Place("returns", 0)
    if isinstance(returns, Mapping):
        table = {_one_line(name): values for name, values in returns.items()}
        if len(table) != len(returns):
            raise InputError("returns: two names read the same as text")
    elif hasattr(returns, "columns") and hasattr(returns, "__getitem__"):
        table = _frame(returns, place)
    else:
        table = _matrix(returns, names)
        names = None
    if names is not None:
        raise InputError("names: the returns have names already; they are for a plain array")
    table = {name: table[name] for name in _chosen(list(table), columns, place.source)}
    return {name: _checked(_numbers(name, v, place), name, place) for name, v in table.items()}


def _frame(returns: Any, place: _Place) -> dict[str, Any]:
    labels = [_one_line(label) for label in returns.columns]
    _refuse_duplicates(labels, place.source)
    return {name: returns[label] for name, label in zip(labels, returns.columns, strict=True)}


def _matrix(returns: Any, names: Sequence[str] | None) -> dict[str, Any]:
    try:
        array = np.asarray(returns)
    except (TypeError, ValueError):
        raise InputError(
            "returns: pass a dict of columns, a table or an array [rows, columns]"
        ) from None
    if array.ndim != 2:
        raise InputError(
            f"returns of shape {array.shape}: pass a dict of columns, a table or an array "
            "[rows, columns]"
        )
    labels = (
        [str(i) for i in range(array.shape[1])]
        if names is None
        else [_one_line(name) for name in names]
    )
    if len(labels) != array.shape[1]:
        raise InputError(f"names: {len(labels)} for {array.shape[1]} columns")
    _refuse_duplicates(labels, "names")
    return {name: array[:, i] for i, name in enumerate(labels)}


def _numbers(name: str, values: Any, place: _Place) -> NDArray[np.float64]:
    """A column as floats, NaN where a value is missing."""
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place.source}: column {name!r} holds no numbers: {error}") from None
    if array.ndim != 1:
        raise InputError(f"{place.source}: column {name!r} has shape {array.shape}, not one axis")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.size and array.dtype.kind not in "OUS":
        raise InputError(f"{place.source}: column {name!r} holds {array.dtype}, not numbers")
    out = np.empty(len(array))
    for i, value in enumerate(array.tolist()):
        out[i] = _number(value, i, name, place)
    return out


def _number(value: Any, index: int, name: str, place: _Place) -> float:
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, without pandas
        return float("nan")
    if isinstance(value, str) and value.strip().lower() in MISSING:
        return float("nan")
    try:
        # Python reads 1_000 as a number; in a table it is a slip.
        if isinstance(value, bool | bytes) or (isinstance(value, str) and "_" in value):
            raise ValueError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
        hint = " (is the decimal sign a comma? it must be a point)" if _comma(value) else ""
        raise InputError(
            f"{place.cell(index, name)} holds {shown}, which is not a number{hint}"
        ) from None
    return number


def _comma(value: Any) -> bool:
    return isinstance(value, str) and value.count(",") == 1 and value.replace(",", "").isdigit()


def _checked(values: NDArray[np.float64], name: str, place: _Place) -> NDArray[np.float64]:
    """Without the blanks at the end; every other value must be there, finite and sensible."""
    missing = np.isnan(values)
    present = np.flatnonzero(~missing)
    length = int(present[-1]) + 1 if len(present) else 0
    values, missing = values[:length], missing[:length]
    if missing.any():
        raise InputError(
            f"{place.cell(int(np.argmax(missing)), name)} is missing "
            f"({_count(int(missing.sum()), 'value')} missing before the end of the column)"
        )
    wild = ~(np.abs(values) <= LARGEST)
    if wild.any():
        at = int(np.argmax(wild))
        kind = "is infinite" if np.isinf(values[at]) else f"is beyond ±{LARGEST:g}"
        raise InputError(f"{place.cell(at, name)} {kind}")
    if length < 2:
        raise InputError(
            f"{place.source}: column {name!r} has {_count(length, 'value')}: "
            "a comparison needs at least 2"
        )
    return values


def _read_csv(source: str, data: bytes, columns: Sequence[str] | None) -> Columns:
    place = _Place(source, 2)  # row 1 holds the names, as a spreadsheet counts
    rows = _records(source, _text(source, data))
    header = [_one_line(cell) for cell in rows[0]]
    _check_header(header, source)
    cells: list[list[str]] = [[] for _ in header]
    for index, row in enumerate(rows[1:]):
        if len(row) > len(header):
            extra = [cell for cell in row[len(header) :] if cell.strip()]
            if extra:
                raise InputError(
                    f"{source}: row {index + 2} has {len(row)} cells, there are "
                    f"{len(header)} columns"
                )
        for i, column in enumerate(cells):
            column.append(row[i] if i < len(row) else "")
    table = dict(zip(header, cells, strict=True))
    return {
        name: _checked(_numbers(name, _object(table[name]), place), name, place)
        for name in _chosen(header, columns, source)
    }


def _object(cells: list[str]) -> NDArray[Any]:
    """Fast where all cells are plain numbers; else cell by cell, so that errors have a place."""
    if not any("_" in cell for cell in cells):
        try:
            return np.array([float(cell) for cell in cells], dtype=np.float64)
        except ValueError:
            pass
    return np.array(cells, dtype=object)


def _text(source: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{source}: row {row} is not UTF-8 text (byte {error.start}): save the file as "
            "CSV in UTF-8, or as Parquet"
        ) from None


def _records(source: str, text: str) -> list[list[str]]:
    """The cells of each row; the separator is the commonest candidate in the first row."""
    first = text.lstrip().partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(reader)
    except csv.Error as error:
        raise InputError(f"{source}: row {len(rows) + 1} cannot be read: {error}") from None
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()
    if len(rows) < 2:
        raise InputError(
            f"{source}: has {_count(len(rows), 'row')}: names, then values, are needed"
        )
    return rows


def _check_header(header: list[str], source: str) -> None:
    for i, name in enumerate(header, 1):
        if not name:
            raise InputError(
                f"{source}: row 1, column {i} has no name (an index? leave it out of the file)"
            )
    if all(_is_number(name) for name in header):
        raise InputError(f"{source}: row 1 holds numbers: the first row must name the columns")
    _refuse_duplicates(header, f"{source}: row 1")


def _one_line(name: object) -> str:
    """Names stand in tables and messages: every run of blanks becomes one space."""
    return " ".join(str(name).split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(source: str, data: bytes, columns: Sequence[str] | None) -> Columns:
    try:
        import polars as pl
    except ImportError:
        raise InputError(f"{source}: Parquet needs polars: install surefoot[report]") from None
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    # A damaged file makes polars raise almost anything, a panic of its core included.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{source}: is not readable as Parquet: {reason}") from None
    place = _Place(source, 1)
    chosen = _chosen(frame.columns, columns, source)
    return {
        name: _checked(
            _numbers(name, _polars_column(frame[name], name, source), place), name, place
        )
        for name in chosen
    }


def _polars_column(series: Any, name: str, source: str) -> Any:
    import polars as pl

    if series.dtype.is_numeric():
        return series.cast(pl.Float64).to_numpy()
    if series.dtype == pl.String or series.dtype == pl.Null:
        return np.array(series.to_list(), dtype=object)
    raise InputError(f"{source}: column {name!r} holds {series.dtype}, not numbers")


def _chosen(names: list[str], columns: Sequence[str] | None, source: str) -> list[str]:
    if columns is None:
        return names
    for name in columns:
        if name not in names:
            raise unknown(f"column of {source}", name, names)
    _refuse_duplicates(list(columns), "columns")
    return list(columns)


def _refuse_duplicates(names: Iterable[str], source: str) -> None:
    seen: dict[str, int] = {}
    for i, name in enumerate(names, 1):
        if name in seen:
            raise InputError(f"{source}: columns {seen[name]} and {i} are both named {name!r}")
        seen[name] = i


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n or 'no'} {what}s"
