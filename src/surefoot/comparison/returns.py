"""Returns in files and in memory: one named column per policy, portfolio or strategy.

Columns may have different lengths: a short one ends in blanks. Anything else that is missing, is
not a number or is not finite is an error that names the file, the row and the column, unless the
caller says what to do with it: a comparison that silently dropped some of the returns would be
wrong without looking wrong. So would one of prices, or of a column that counts the rows.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.dates import Dates
from surefoot.comparison.numerals import Decimal, read_numerals
from surefoot.comparison.prices import looks_like_prices, returns_of
from surefoot.comparison.raw_tables import RawTable, count, one_line, raw_file, raw_memory
from surefoot.comparison.row_index import find_index
from surefoot.errors import InputError, listed, shown, unknown
from surefoot.runs.files import atomic_write, read_bytes

Array = NDArray[np.float64]
Columns = dict[str, Array]
Missing = Literal["error", "drop", "pair"]

MISSING_VALUES = ("error", "drop", "pair")
DECIMALS = ("auto", "point", "comma")
LARGEST = 1e150  # the square of a return must still be a number


@dataclass(frozen=True)
class ReturnTable(Mapping[str, Array]):
    """Checked columns of returns: a mapping of names to values, with what is known of the rows."""

    columns: Columns = field(repr=False)
    dates: dict[str, Dates] = field(default_factory=dict, repr=False)
    """Of each column's rows; empty where the table has no dates."""
    aligned: bool = True
    """Whether the n-th value of every column comes from the same row of the table."""
    notes: tuple[str, ...] = ()
    """How the table was read, in sentences without a full stop."""

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def read_returns(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    index: str | None = None,
    missing: Missing = "error",
    prices: bool | None = None,
    decimal: Decimal = "auto",
) -> ReturnTable:
    """Read CSV (also separated by semicolons or tabs) or Parquet; `columns` picks some by name.

    The first row of a CSV file names the columns; blanks, NA, NaN and null are missing values. A
    column of dates or row numbers is recognised, or named by `index` ("none": there is none).
    `missing` is what happens to
    gaps before the end of a column: `error`, `drop` (each column loses its own) or `pair` (rows in
    which any column has a gap are left out). `prices` turns prices into returns; by default a
    table that looks like prices is refused, and `prices=False` says that it is not.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path = {shown(path)}: it must be the name of a file")
    raw = raw_file(str(path), read_bytes(path))
    return _table(raw, columns, index, missing, prices, decimal)


def as_table(
    returns: Any,
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    missing: Missing = "error",
    prices: bool | None = None,
) -> ReturnTable:
    """The same of a mapping, a pandas or polars table, or an array `[rows, columns]`."""
    if isinstance(returns, ReturnTable):
        columns = None if columns is None else one_line(listed(columns, "columns"), "columns")
        chosen = _chosen(returns, columns, "returns", set())
        return ReturnTable(
            {name: returns[name] for name in chosen},
            {name: returns.dates[name] for name in chosen if name in returns.dates},
            returns.aligned,
            returns.notes,
        )
    return _table(raw_memory(returns, names), columns, None, missing, prices, "auto")


def write_returns(
    path: str | os.PathLike[str],
    returns: Mapping[str, Array],
    index: tuple[str, Sequence[object]] | None = None,
) -> Path:
    """CSV that `read_returns` reads back to the bit; shorter columns end in blanks.

    `index` names the rows, in a first column: `("seed", [0, 1, 2])`.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cells = {name: [repr(float(value)) for value in column] for name, column in returns.items()}
    if index is not None and index[0] not in returns:
        cells = {index[0]: [str(label) for label in index[1]], **cells}
    writer.writerow(cells)
    writer.writerows(zip_longest(*cells.values(), fillvalue=""))
    return atomic_write(path, text.getvalue().encode())


# --- from raw cells to returns -----------------------------------------------------------


def _table(
    raw: RawTable,
    columns: Sequence[str] | None,
    index: str | None,
    missing: Missing,
    prices: bool | None,
    decimal: Decimal,
) -> ReturnTable:
    _check_options(missing, decimal)
    if columns is not None:
        columns = one_line(listed(columns, "columns"), "columns")
    own, dates, notes = find_index(raw, columns, index)
    values, remarks = _numbers(raw, _chosen(raw.columns, columns, raw.name, own), decimal)
    notes += remarks
    longest = max(map(len, values.values()), default=0)
    if dates is not None and len(dates) != longest:
        raise InputError(f"{raw.name}: {count(len(dates), 'date')} for {count(longest, 'row')}")
    values = {name: _padded(column, longest) for name, column in values.items()}
    for name, column in values.items():
        _check_size(raw, name, column)
    rows = np.arange(longest)  # their places in the table, which errors name
    if dates is not None and len(dates) > 1 and dates[0] > dates[-1]:
        rows = rows[::-1]
        notes.append("the newest row came first: the order of the rows was turned round")
    values = {name: column[rows] for name, column in values.items()}
    dates = None if dates is None else dates[rows]
    if prices:
        values, dates, rows = _from_prices(raw, values, dates, rows)
        notes.append("prices were turned into returns, p(t) / p(t-1) - 1")
    elif prices is None:
        _refuse_prices(raw, values)
    kept = _kept_rows(raw, values, missing, rows)
    notes += _gap_notes(values, kept, missing)
    for name, at in kept.items():
        if len(at) < 2:
            raise InputError(
                f"{raw.name}: column {name!r} has {count(len(at), 'value')}: a comparison needs "
                "at least 2"
            )
    first = next(iter(kept.values()), rows)
    return ReturnTable(
        {name: values[name][at] for name, at in kept.items()},
        {} if dates is None else {name: dates[at] for name, at in kept.items()},
        all(np.array_equal(at, first) for at in kept.values()),
        tuple(notes),
    )


def _check_options(missing: str, decimal: str) -> None:
    for name, value, known in (
        ("missing", missing, MISSING_VALUES), ("decimal", decimal, DECIMALS),
    ):  # fmt: skip
        if value not in known:
            raise unknown(f"value of {name}:", value, known)


def _chosen(
    table: Mapping[str, Any], columns: Sequence[str] | None, where: str, left_out: set[str]
) -> list[str]:
    """The names that were asked for, or all but those that say which a row is."""
    for name in columns or ():
        if name not in table:
            raise unknown(f"column of {where}", name, [each for each in table if each])
    if columns is not None:
        return list(columns)
    return [name for name in table if name not in left_out]


# --- numbers -----------------------------------------------------------------------------


def _numbers(raw: RawTable, names: list[str], decimal: Decimal) -> tuple[Columns, list[str]]:
    """Columns of floats, NaN where a value is missing."""
    out: Columns = {}
    texts: dict[str, list[str]] = {}
    for name in names:
        cells = raw.cells(name)
        if not isinstance(cells, list):
            if cells.dtype.kind not in "iuf":
                raise InputError(f"{raw.name}: column {name!r} holds {cells.dtype}, not numbers")
            out[name] = cells.astype(np.float64)
        elif raw.from_file and all(isinstance(cell, str) for cell in cells):
            texts[name] = cells
        else:
            out[name] = np.array([_number(cell, raw.cell(i, name)) for i, cell in enumerate(cells)])
    read, notes = read_numerals(texts, decimal, raw.cell)
    return {name: {**out, **read}[name] for name in names}, notes


def _number(value: Any, cell: str) -> float:
    """One value of a list in memory, where text is no number."""
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, without pandas
        return float("nan")
    try:
        if isinstance(value, bool | str | bytes):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
        raise InputError(f"{cell} holds {shown}, which is not a number") from None


def _padded(column: Array, length: int) -> Array:
    return np.append(column, np.full(length - len(column), np.nan))


def _check_size(raw: RawTable, name: str, column: Array) -> None:
    too_large = np.abs(column) > LARGEST
    if too_large.any():
        index = int(np.argmax(too_large))
        problem = "is infinite" if np.isinf(column[index]) else f"is beyond ±{LARGEST:g}"
        raise InputError(f"{raw.cell(index, name)} {problem}")


# --- prices and gaps ---------------------------------------------------------------------


def _from_prices(
    raw: RawTable, values: Columns, dates: Dates | None, rows: NDArray[np.intp]
) -> tuple[Columns, Dates | None, NDArray[np.intp]]:
    for name, column in values.items():
        bad = column <= 0
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{raw.cell(int(rows[at]), name)} holds {column[at]:g}: a price must be positive"
            )
    returns = {name: returns_of(column) for name, column in values.items()}
    return returns, None if dates is None else dates[1:], rows[1:]


def _refuse_prices(raw: RawTable, values: Columns) -> None:
    like = [name for name, z in values.items() if looks_like_prices(z[~np.isnan(z)])]
    if like:
        looks = f" and {len(like) - 1} more look" if len(like) > 1 else " looks"
        raise InputError(
            f"{raw.name}: column {like[0]!r}{looks} like prices, not returns (all positive, and no "
            "level that values come back to): --prices (prices=True) turns prices into returns, "
            "--returns (prices=False) takes the values as they are"
        )


def _kept_rows(
    raw: RawTable, values: Columns, missing: Missing, rows: NDArray[np.intp]
) -> dict[str, NDArray[np.intp]]:
    """Which rows of each column are compared."""
    there = {name: ~np.isnan(column) for name, column in values.items()}
    if missing == "pair":
        complete = np.flatnonzero(np.all(list(there.values()), axis=0))
        return dict.fromkeys(values, complete)
    kept = {name: np.flatnonzero(mask) for name, mask in there.items()}
    for name, at in kept.items():
        inner = int(at[-1]) + 1 - len(at) if len(at) else 0
        if inner and missing == "error":
            gap = int(np.argmin(there[name]))
            raise InputError(
                f"{raw.cell(int(rows[gap]), name)} is missing ({count(inner, 'value')} missing "
                "before the end of the column): --missing pair leaves out rows with a gap, "
                "--missing drop each column's own gaps"
            )
    return kept


def _gap_notes(values: Columns, kept: dict[str, NDArray[np.intp]], missing: Missing) -> list[str]:
    gaps = {name: int(np.isnan(column).sum()) for name, column in values.items()}
    if missing == "error" or not any(gaps.values()):
        return []
    rows = len(next(iter(values.values())))
    by_column = ", ".join(f"{name} {number:,}" for name, number in gaps.items() if number)
    if missing == "drop":
        return [f"missing values were left out, column by column: {by_column} of {rows:,} rows"]
    left_out = rows - len(next(iter(kept.values())))
    return [f"{left_out:,} of {rows:,} rows were left out, where a value is missing ({by_column})"]
