"""The column that says when or which a row is: dates, row numbers, seeds or labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from surefoot.comparison.dates import DATE_NAMES, Dates, dates_of, rows_per_year, span
from surefoot.comparison.raw_tables import UNNAMED, RawTable
from surefoot.errors import InputError, unknown

SURELY = 10  # rows from which on 1, 2, 3, ... in a table are no returns at all
YEARS = (1500, 2099)  # between which they are none in any number of rows
# Names under which whole numbers, each larger than the one before, are no returns.
COUNTERS = re.compile(
    r"|index|unnamed: \d+(\.\d+)*|level_\d+|row|id|episode|seed|trial|step", re.IGNORECASE
)


def find_index(
    raw: RawTable, columns: Sequence[str] | None, wanted: str | None
) -> tuple[set[str], Dates | None, list[str]]:
    """The columns that say when or which a row is, its dates, and what to tell of them."""
    if wanted == "none" and wanted not in raw.columns:
        return set(), None, []
    own, dates, notes = _marked(raw, columns, wanted)
    left_out = set() if own is None else {own}
    for name in raw.columns if columns is None else ():
        if name not in left_out and _counts(raw, name):
            left_out.add(name)
            notes.append(f"{_called(name)} counts the rows and is not compared")
    return left_out, dates, notes


def _marked(
    raw: RawTable, columns: Sequence[str] | None, wanted: str | None
) -> tuple[str | None, Dates | None, list[str]]:
    """The one column with dates, or that is named or marked as the index."""
    if wanted is not None and wanted not in raw.columns:
        raise unknown(f"column of {raw.name}", wanted, [each for each in raw.columns if each])
    free = [name for name in raw.columns if columns is None or name not in columns]
    marked = wanted if wanted is not None else raw.index
    for name in free if marked is None else [marked]:
        dates = dates_of(_readable(raw, name), name, partial(raw.cell, column=name))
        if dates is not None:
            rate = rows_per_year(np.sort(dates))
            per_year = f", {rate:.4g} rows a year" if rate else ""
            ends = span(np.sort(dates)) if len(dates) else "none"
            return name, dates, [f"dates are in {_called(name)}: {ends}{per_year}"]
    if marked == UNNAMED and wanted is None and not _labels(raw, UNNAMED):
        raise InputError(f"{raw.name}: row 1, column 1 has no name, and its values are no index")
    if marked is not None:
        return marked, None, [f"{_called(marked)} is the index and is not compared"]
    for name in free if columns is None else ():
        if name.lower() in DATE_NAMES - {"time", "day", "month"} and not _counts(raw, name):
            raise InputError(
                f"{raw.cell(0, name)} holds {raw.cells(name)[0]!r}, which is not a date that "
                "can be read: write YYYY-MM-DD, or choose columns"
            )
    return None, None, []


def _readable(raw: RawTable, name: str) -> Any:
    """The cells; none where they are nothing that is ever read: they may not have been chosen."""
    try:
        return raw.cells(name)
    except InputError:
        return []


def _called(name: str) -> str:
    return f"column {name!r}" if name else "the first column"


def _labels(raw: RawTable, name: str) -> bool:
    """Whether a column without a name can be an index: it counts, or its text is no number."""
    cells = raw.cells(name)
    if _counts(raw, name):
        return True
    try:
        [float(cell) for cell in cells if cell != ""]
    except (TypeError, ValueError):
        return True
    return False


def _counts(raw: RawTable, name: str) -> bool:
    """Whether a column is filled like row numbers or seeds, whole and each one larger (or each one
    smaller), and named like them; a longer one, or one of years, under any name where each differs
    by 1."""
    try:
        values = np.array([float(cell) for cell in raw.cells(name)])
    except (TypeError, ValueError, InputError):
        return False
    if len(values) < 2 or not np.isfinite(values).all() or (values % 1 != 0).any():
        return False
    steps = np.diff(values) * np.sign(values[-1] - values[0])
    years = YEARS[0] <= values.min() and values.max() <= YEARS[1]
    by_one = bool((steps == 1).all()) and (years or len(values) >= SURELY)
    return (raw.whole_table and by_one) or bool(COUNTERS.fullmatch(name) and (steps > 0).all())
