"""Traces for plotly in the house style: the colour, marker and dash that `styles` gives a name.

Traces are plain dicts. Numbers are rounded to what a screen can show; names that come from files
are escaped here, because plotly reads tags in its texts.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.core.stats import Interval
from surefoot.plots.styles import Style, styles
from surefoot.report.parts import Key, Trace

DASHES = {
    "-": "solid", "--": "dash", "-.": "dashdot", ":": "dot",
    (0, (5, 1, 1, 1, 1, 1)): "9px,3px,2px,3px,2px,3px", (0, (1, 1)): "2px,2px",
}  # fmt: skip
ALPHA = "\N{GREEK SMALL LETTER ALPHA}"  # by name: it looks like a Latin letter
SYMBOLS = {
    "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond",
    "v": "triangle-down", "P": "cross", "X": "x", "*": "star",
}  # fmt: skip


def text(name: object) -> str:
    """A name as plotly shows it: letters, never tags."""
    return html.escape(str(name), quote=False)


def numbers(values: ArrayLike, digits: int = 5) -> list[float | None]:
    """Rounded to so many digits of the values' range (and no coarser than that of each value)."""
    array = np.asarray(values, dtype=float).ravel()
    finite = array[np.isfinite(array)]
    if finite.size == 0:
        return [None] * array.size
    span = float(np.ptp(finite)) or float(np.abs(finite).max()) or 1.0
    places = digits - 1 - math.floor(math.log10(span))
    # Small values on a wide axis matter on a logarithmic one: keep their own digits too.
    return [_rounded(v, places, digits) if math.isfinite(v) else None for v in array.tolist()]


def _rounded(value: float, places: int, digits: int) -> float:
    own = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    rounded = round(value, max(places, own))
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def rgba(color: str, alpha: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def dash_of(look: Style) -> str:
    return DASHES.get(look.linestyle, "solid")


def keys(names: Iterable[str], looks: dict[str, Style], *, lines: bool = True) -> tuple[Key, ...]:
    """Legend entries in the styles of the names."""
    return tuple(
        Key(n, looks[n].color, dash_of(looks[n]) if lines else "", SYMBOLS[looks[n].marker])
        for n in names
    )


def looks_of(names: Sequence[str]) -> dict[str, Style]:
    """A style for each name; where there are more than can be told apart, colours come again."""
    names = list(dict.fromkeys(names))
    found: dict[str, Style] = {}
    for start in range(0, len(names), 40):
        found |= styles(names[start : start + 40])
    return found


def line(
    x: ArrayLike,
    y: ArrayLike,
    name: str,
    look: Style,
    *,
    step: bool = False,
    markers: int = 8,
    width: float = 2.0,
    digits: int = 5,
    hover: str = "%{y:.5g}",
) -> Trace:
    """A curve with about `markers` markers; `step` holds each value until the next."""
    trace: Trace = {
        "type": "scatter",
        "x": numbers(x, digits),
        "y": numbers(y, digits),
        "mode": "lines+markers" if markers else "lines",
        "name": text(name),
        "legendgroup": name,
        "line": {"color": look.color, "width": width, "dash": dash_of(look)},
        "hovertemplate": f"{hover}<extra>{text(name)}</extra>",
    }
    if step:
        trace["line"]["shape"] = "hv"
    if markers:
        trace["marker"] = {
            "color": look.color, "symbol": SYMBOLS[look.marker], "size": 7,
            "maxdisplayed": markers,
        }  # fmt: skip
    return trace


def band(x: ArrayLike, shown: Interval, name: str, look: Style, **more: Any) -> list[Trace]:
    """A curve with its interval as a shaded band."""
    return [between(x, shown.low, shown.high, name, look), line(x, shown.mean, name, look, **more)]


def between(
    x: ArrayLike, low: ArrayLike, high: ArrayLike, name: str, look: Style, alpha: float = 0.18
) -> Trace:
    """The area between two curves."""
    at = numbers(x)
    return {
        "type": "scatter",
        "x": at + at[::-1],
        "y": numbers(low) + numbers(high)[::-1],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": rgba(look.color, alpha),
        "line": {"width": 0, "color": look.color},
        "name": text(name),
        "legendgroup": name,
        "hoverinfo": "skip",
    }


def dots(
    x: Sequence[Any],
    shown: Sequence[Interval],
    name: str,
    look: Style,
    *,
    joined: bool = False,
    across: bool = False,
) -> Trace:
    """Points with their intervals; `across` lays the values on the x axis."""
    mean, low, high = ([getattr(i, part) for i in shown] for part in ("mean", "low", "high"))
    more, less = np.subtract(high, mean), np.subtract(mean, low)
    value, other = ("x", "y") if across else ("y", "x")
    places = list(x) if x and isinstance(x[0], str) else numbers(x)
    return {
        "type": "scatter",
        value: numbers(mean, 6),
        other: places,
        f"error_{value}": {
            "type": "data", "array": numbers(more), "arrayminus": numbers(less),
            "color": look.color, "thickness": 1.5, "width": 4,
        },
        "mode": "lines+markers" if joined else "markers",
        "line": {"color": look.color, "dash": dash_of(look), "width": 2},
        "marker": {"color": look.color, "symbol": SYMBOLS[look.marker], "size": 9},
        "name": text(name),
        "legendgroup": name,
        "customdata": [text(i) for i in shown],
        "hovertemplate": f"%{{customdata}}<extra>{text(name)}</extra>",
    }  # fmt: skip


def rule(value: float, *, upright: bool = False, color: str = "#6E6E6E") -> dict[str, Any]:
    """A dotted line across the panel, for `layout["shapes"]`."""
    along, at = ("y", "x") if upright else ("x", "y")
    return {
        "type": "line", f"{along}ref": "paper", f"{along}0": 0, f"{along}1": 1,
        f"{at}0": value, f"{at}1": value, "line": {"color": color, "dash": "dot", "width": 1.5},
    }  # fmt: skip


def axes(x: str, y: str, **more: Any) -> dict[str, Any]:
    """Axis titles; further arguments such as `xaxis={"type": "log"}` are merged in."""
    layout: dict[str, Any] = {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
    for name, value in more.items():
        layout[name] = layout[name] | value if name in layout else value
    return layout


def step_cdf(z: ArrayLike, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The distribution function of equally likely values over `[low, high]`."""
    z = np.sort(np.asarray(z, dtype=float))
    x = np.concatenate([[min(low, z[0])], z, [max(high, z[-1])]])
    return x, np.append(np.arange(len(z) + 1), len(z)) / len(z)


def frame(*samples: ArrayLike, pad: float = 0.06) -> tuple[float, float]:
    """A range that holds all values with some air, also where they are all the same."""
    low = min(float(np.min(s)) for s in samples)
    high = max(float(np.max(s)) for s in samples)
    air = pad * (high - low) or 0.5 * max(abs(high), 1e-9) * 0.01
    return low - air, high + air


def explained(interval: Any) -> Interval:
    """An interval as a summary stores it."""
    return Interval.from_dict(interval)
