"""Numbers as tables hold them in text: 1234.5, 1,234.5, 1.234,5, 1 234,5, 1'234.5 and -3.2 %.

A program writes a file in one convention, so the table decides as a whole: `0,5` or `1.234,5` can
only be read with a decimal comma, `0.5` or `1,234.5` only with a decimal point, and that settles
what `1,234` means elsewhere in the file. Where nothing settles it the table is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import InputError

Decimal = Literal["auto", "point", "comma"]
Cells = Sequence[str]
Place = Callable[[int, str], str]  # what an error calls a row of a column

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
SIGNS = {"point": ".", "comma": ","}
_SPACES = " \u00a0\u202f"  # also those that keep a number on one line
_MARKS = f"'\u2019{_SPACES}"  # thousands separators of either convention
_EXPONENT = r"(?:[eE][+-]?\d+)?"


def _pattern(decimal: str) -> re.Pattern[str]:
    """Digits with one decimal sign, or groups of three before it; a group never begins with 0."""
    other = {".": ",", ",": "."}[decimal]
    groups = rf"[1-9]\d{{0,2}}(?P<sep>[{other}{_MARKS}])\d{{3}}(?:(?P=sep)\d{{3}})*"
    point = re.escape(decimal)
    return re.compile(
        rf"[+-]?(?:{groups}(?:{point}\d*)?"
        rf"|(?:\d+(?:{point}\d*)?|{point}\d+){_EXPONENT}|(?:inf|infinity))",
        re.IGNORECASE | re.ASCII,
    )


_PATTERNS = {sign: _pattern(sign) for sign in ".,"}


def read_numerals(
    columns: Mapping[str, Cells], decimal: Decimal, place: Place
) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """Every column as floats, NaN where a cell is missing, and notes on how they were read.

    `3.2 %` is 0.032.
    """
    plain = {name: _plain(cells) for name, cells in columns.items()}
    if decimal != "comma" and all(values is not None for values in plain.values()):
        return {name: values for name, values in plain.items() if values is not None}, []
    bodies = {name: [_body(cell) for cell in cells] for name, cells in columns.items()}
    percent = {name: _percent(name, cells, place) for name, cells in columns.items()}
    if True in percent.values() and False in percent.values():
        name = next(name for name, sign in percent.items() if sign is False)
        at = next(i for i, body in enumerate(bodies[name]) if body)
        raise InputError(
            f"{place(at, name)} holds {_shown(columns[name][at])} without a percent sign, other "
            "columns have them: all must have one unit"
        )
    sign = _decimal_sign(bodies, columns, place) if decimal == "auto" else SIGNS[decimal]
    out = {}
    for name, own in bodies.items():
        values = [_value(body, sign) for body in own]
        if None in values:
            at = values.index(None)
            raise InputError(f"{place(at, name)} holds {_shown(columns[name][at])}, which is not "
                             f"a number{_hint(own[at], sign)}")  # fmt: skip
        out[name] = np.array(values, dtype=np.float64) / (100.0 if percent[name] else 1.0)
    notes = ["percent signs were read: 1 % is 0.01"] if True in percent.values() else []
    return out, notes + (["numbers were read with a decimal comma"] if sign == "," else [])


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _plain(cells: Cells) -> NDArray[np.float64] | None:
    """The quick way, for cells that Python reads as numbers; None where one is not such."""
    try:
        if not any("_" in cell for cell in cells):  # Python reads 1_000; in a table it is a slip
            return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        pass
    return None


def _body(cell: str) -> str:
    """Without a percent sign, and with the minus that keyboards have; "" where it is missing."""
    text = cell.strip()
    if text.lower() in MISSING:
        return ""
    return text.removesuffix("%").rstrip(_SPACES).replace("\u2212", "-")


def _percent(name: str, cells: Cells, place: Place) -> bool | None:
    """Whether the cells of a column have percent signs: all or none of them; None if all miss."""
    signs = [None if is_missing(cell) else cell.rstrip().endswith("%") for cell in cells]
    if True in signs and False in signs:
        at = signs.index(False)
        raise InputError(
            f"{place(at, name)} holds {_shown(cells[at])} without a percent sign, "
            f"{_shown(cells[signs.index(True)])} in the same column has one"
        )
    return next((sign for sign in signs if sign is not None), None)


def _value(body: str, sign: str) -> float | None:
    if not body:
        return float("nan")
    if not _PATTERNS[sign].fullmatch(body):
        return None
    other = {".": ",", ",": "."}[sign]
    return float(re.sub(rf"[{other}{_MARKS}]", "", body).replace(",", "."))


def _decimal_sign(bodies: Mapping[str, list[str]], cells: Mapping[str, Cells], place: Place) -> str:
    """The sign that every cell can be read with; an error where both or neither would do."""
    shown: dict[str, str] = {}  # the first cell that settles for a sign, as an error names it
    doubtful = ""
    for name, own in bodies.items():
        for at, body in enumerate(own):
            point, comma = _value(body, "."), _value(body, ",")
            if (point is None and comma is None) or not body or point == comma:
                continue
            where = f"{place(at, name)} holds {_shown(cells[name][at])}"
            if point is None or comma is None:
                shown.setdefault("," if point is None else ".", where)
            elif "," in body:
                doubtful = doubtful or f"{where}, which may be {point:.10g} or {comma:.10g}"
    if len(shown) == 2:
        raise InputError(f"{shown['.']}, and {shown[',']}: the decimal sign is a point in one, a "
                         "comma in the other")  # fmt: skip
    if doubtful and not shown:
        raise InputError(f"{doubtful}: say which (decimal point or comma)")
    return next(iter(shown), ".")


def _hint(body: str, sign: str) -> str:
    other = {".": ",", ",": "."}[sign]
    name = {".": "point", ",": "comma"}[sign]
    return f" with a decimal {name}" if _value(body, other) is not None else ""


def _shown(cell: object) -> str:
    return repr(cell) if len(repr(cell)) <= 40 else f"{repr(cell)[:37]}..."
