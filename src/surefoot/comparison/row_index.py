"""The column that says when or which a row is: dates, row numbers, seeds or labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from surefoot.comparison.dates import DATE_NAMES, Dates, dates_of, rows_per_year, span
from surefoot.comparison.raw_tables import UNNAMED, RawTable
from surefoot.errors import InputError, unknown

# Names under which whole numbers, each larger than the one before, are no returns.
SURELY = 10  # rows from which on 1, 2, 3, ... in the first column of a file are no returns at all
COUNTERS = frozenset({UNNAMED, "index", "unnamed: 0", "level_0", "row", "id", "episode", "seed",
                      "trial", "step"})  # fmt: skip


def find_index(
    raw: RawTable, columns: Sequence[str] | None, wanted: str | None
) -> tuple[str | None, Dates | None, list[str]]:
    """The column that says when or which a row is, its dates, and what to tell of it."""
    if wanted == "none" and wanted not in raw.columns:
        return None, None, []
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
    if free and _counts(raw, free[0]):
        return free[0], None, [f"{_called(free[0])} counts the rows and is not compared"]
    for name in free if columns is None else ():
        if name.lower() in DATE_NAMES - {"time", "day", "month"}:
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
    """Whether a column is filled like row numbers or seeds, whole and each one larger, and named
    like them; a longer one under any name where each is larger by 1."""
    if name != next(iter(raw.columns)):
        return False
    try:
        values = np.array([float(cell) for cell in raw.cells(name)])
    except (TypeError, ValueError):
        return False
    if len(values) < 2 or not np.isfinite(values).all() or (values % 1 != 0).any():
        return False
    steps = np.diff(values)
    by_one = raw.from_file and len(values) >= SURELY and bool((steps == 1).all())
    return by_one or (name.lower() in COUNTERS and bool((steps > 0).all()))
