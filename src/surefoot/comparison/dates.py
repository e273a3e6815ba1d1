"""When the rows of a table were: dates recognised in columns, and how many rows make a year."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InputError

Dates = NDArray[np.datetime64]
DAY = np.timedelta64(1, "D")
YEAR = 365.25  # days

# Rows a year by the days between rows; between these the days themselves are counted.
CONVENTIONS = ((6.5, 7.5, 52.0), (27.5, 31.5, 12.0), (88.5, 92.5, 4.0), (364.5, 366.5, 1.0))
TRADING_DAYS = 252.0  # without weekends

_ISO = re.compile(
    r"\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z| ?[+-]\d\d:?\d\d)?)?)?"
)
_SHAPES = (
    # what a cell looks like, and how it may be read; two ways must not both do
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2}"), ("%Y/%m/%d",)),
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2} \d{1,2}:\d\d"), ("%Y/%m/%d %H:%M",)),
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2} \d{1,2}:\d\d:\d\d"), ("%Y/%m/%d %H:%M:%S",)),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), ("%d.%m.%Y",)),
    (re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), ("%m/%d/%Y", "%d/%m/%Y")),
    (re.compile(r"\d{1,2}-\d{1,2}-\d{4}"), ("%m-%d-%Y", "%d-%m-%Y")),
    (re.compile(r"\d{1,2}[- ][A-Za-z]{3}[- ]\d{4}"), ("%d-%b-%Y", "%d %b %Y")),
    (re.compile(r"[A-Za-z]{3} \d{1,2}, ?\d{4}"), ("%b %d, %Y", "%b %d,%Y")),
    (re.compile(r"[A-Za-z]{3}[- ]\d{4}"), ("%b %Y", "%b-%Y")),
)
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_COMPACT = (
    # digits alone are a date only under a name that says so
    (re.compile(rf"{_YEAR.pattern}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"), "%Y%m%d"),
    (re.compile(rf"{_YEAR.pattern}(?:0[1-9]|1[0-2])"), "%Y%m"),
)
DATE_NAMES = frozenset({"date", "dates", "datetime", "time", "timestamp", "day", "month", "datum"})
YEAR_NAMES = frozenset({"year", "years", "jahr"})

Place = Callable[[int], str]


def dates_of(values: Any, name: str, place: Place) -> Dates | None:
    """The dates a column holds, or None: the first cell decides what it is.

    Text is read in the usual ways of writing a date; where 03/04/2020 could be two days, and the
    column does not settle it, the column is refused. 20200403, 202004 and 2020 are dates under a
    name that says so, the first two also in an index without a name.
    """
    kind, own = getattr(getattr(values, "dtype", None), "kind", ""), name.strip().lower()
    if kind == "M":
        return _checked(np.asarray(values, "M8[us]"), place)
    if kind in ("i", "u", "f") and own in DATE_NAMES | YEAR_NAMES:
        values = values.tolist()
    if not isinstance(values, list) or not values:
        return None
    cells = [str(cell).strip() for cell in values]
    if own in DATE_NAMES | YEAR_NAMES:  # 2020.0, from a table in which other years were missing
        cells = [cell.removesuffix(".0") for cell in cells]
    if own in YEAR_NAMES and _YEAR.fullmatch(cells[0]):
        return _checked(_all(cells, partial(_parsed, formats=("%Y",)), place), place)
    if _QUARTER.fullmatch(cells[0]):
        return _checked(_all(cells, _quarter, place), place)
    if _ISO.fullmatch(cells[0]):
        return _checked(_all(cells, _iso, place), place)
    for shape, form in _COMPACT if own in DATE_NAMES or not own else ():
        if shape.fullmatch(cells[0]) and (own or all(map(shape.fullmatch, cells))):
            return _checked(_all(cells, partial(_parsed, formats=(form,)), place), place)
    for shape, formats in _SHAPES:
        if shape.fullmatch(cells[0]):
            return _checked(_one_way(cells, formats, place), place)
    return None


def rows_per_year(dates: Dates) -> float | None:
    """252 for trading days, 365.25 for all days, 52, 12, 4 or 1, else as many as were counted.

    By the median step, which neither holidays nor left-out rows change. Within a day the rows of
    the dates there are count; None where no step can be measured.
    """
    if len(dates) < 3:
        return None
    steps = np.diff(dates) / DAY
    step = float(np.median(steps))
    if step < 0.9:  # several a day: nights and weekends count as the data have them
        years = float((dates[-1] - dates[0]) / DAY) / YEAR
        return (len(dates) - 1) / years
    if step < 1.5:
        weekdays = (dates.astype("M8[D]").astype(np.int64) + 3) % 7  # 0 is Monday
        return YEAR if np.mean(weekdays >= 5) > 0.1 else TRADING_DAYS
    for low, high, rows in CONVENTIONS:
        if low <= step <= high:
            return rows
    return YEAR / step


def span(dates: Dates) -> str:
    """From the first to the last, in days where nothing is within a day."""
    first, *_, last = labels(dates[[0, -1]])
    return f"{first} to {last}"


def labels(dates: Dates) -> list[str]:
    """As ISO writes them, in days or seconds where nothing is within one."""
    for unit in ("D", "s", "us"):
        rounded = dates.astype(f"M8[{unit}]")
        if (rounded == dates).all():
            break
    return [str(date) for date in rounded]


def _all(cells: Sequence[str], read: Callable[[str], datetime | None], place: Place) -> Dates:
    out = []
    for at, cell in enumerate(cells):
        date = read(cell)
        if date is None:
            raise InputError(f"{place(at)} holds {cell!r}, which is not a date like {cells[0]!r}")
        out.append(date)
    return np.array(out, dtype="M8[us]")


def _iso(cell: str) -> datetime | None:
    if not _ISO.fullmatch(cell):
        return None
    try:
        date = datetime.fromisoformat(f"{cell}-01" if len(cell) == 7 else cell.replace(" +", "+"))
    except ValueError:
        return None
    # Midnight in its own time zone is a day; within days only one clock keeps the order.
    if date.tzinfo is not None and (date.hour, date.minute, date.second) != (0, 0, 0):
        date = date.astimezone(UTC)
    return date.replace(tzinfo=None)


def _quarter(cell: str) -> datetime | None:
    """Its first day."""
    quarter = _QUARTER.fullmatch(cell)
    return quarter and datetime(int(quarter[1]), 3 * int(quarter[2]) - 2, 1)


def _parsed(cell: str, formats: Sequence[str]) -> datetime | None:
    for form in formats:
        try:
            return datetime.strptime(cell, form)
        except ValueError:
            continue
    return None


def _one_way(cells: Sequence[str], formats: Sequence[str], place: Place) -> Dates:
    """The one of the formats that reads every cell."""
    read = {form: [_parsed(cell, (form,)) for cell in cells] for form in formats}
    good = {form: dates for form, dates in read.items() if None not in dates}
    if not good:
        furthest = max(read.values(), key=lambda dates: dates.index(None))
        at = furthest.index(None)
        raise InputError(f"{place(at)} holds {cells[at]!r}, which is not a date like {cells[0]!r}")
    first, *others = good.values()
    if others and others[0] != first:
        at = next(
            i for i, pair in enumerate(zip(first, others[0], strict=True)) if pair[0] != pair[1]
        )
        raise InputError(
            f"{place(at)} holds {cells[at]!r}, which may be {first[at]:%d %B} or "
            f"{others[0][at]:%d %B}: write dates as YYYY-MM-DD"
        )
    return np.array(first, dtype="M8[us]")


def _checked(dates: Dates, place: Place) -> Dates:
    """There, and each row later than the one before, or each earlier."""
    missing = np.isnat(dates)
    if missing.any():
        raise InputError(f"{place(int(np.argmax(missing)))} has no date")
    steps = np.diff(dates).astype(np.int64)
    if (steps == 0).any():
        at = int(np.argmax(steps == 0)) + 1
        raise InputError(
            f"{place(at)} repeats the date before it: one row for each date and one column for "
            "each series are needed"
        )
    if (steps < 0).any() and (steps > 0).any():
        common = steps > 0 if (steps > 0).sum() * 2 >= len(steps) else steps < 0
        at = int(np.argmin(common)) + 1
        raise InputError(f"{place(at)} is out of order: sort the rows by date")
    return dates
