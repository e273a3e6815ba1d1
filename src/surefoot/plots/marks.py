"""What figures are made of: curves with intervals, points with intervals, violins, heat maps, bars.

Each function draws into one `Axes` and takes its colours from `styles`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.core.particles import dispersion_space
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.plots.figures import legend
from surefoot.plots.styles import AUTHORITIES, GREY, Style, style, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 240  # of a curve: finer than a reader can see, and a small file


def thin(count: int, most: int = POINTS) -> np.ndarray:
    """Indices of at most so many of `count` points; both ends are kept."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def plain_text(name: object, most: int = 40) -> str:
    """A name as matplotlib shows it: not as a formula, and not longer than a line."""
    text = str(name)
    return (text if len(text) <= most else f"{text[: most - 3]}...").replace("$", r"\$")


def curve(ax: Axes, x: ArrayLike, y: ArrayLike, name: str, look: Style, **more: Any) -> None:
    """A line with a few markers."""
    count = len(np.asarray(x))
    ax.plot(
        x, y,
        **{"label": plain_text(name), "color": look.color, "linestyle": look.linestyle,
           "marker": look.marker, "markevery": max(1, count // 8), "markersize": 5,
           "markeredgecolor": "white", "markeredgewidth": 0.6, "linewidth": 1.8} | more,
    )  # fmt: skip


def band(
    ax: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    label: str,
    *,
    look: Style | None = None,
) -> None:
    """A curve with its interval as a band, in the style of `label`."""
    x, mean, low, high = (np.asarray(v, dtype=float) for v in (x, mean, low, high))
    if not x.shape == mean.shape == low.shape == high.shape or x.ndim != 1:
        shapes = ", ".join(str(v.shape) for v in (x, mean, low, high))
        raise InputError(f"band {label!r}: x, mean, low and high differ in shape ({shapes})")
    at, look = thin(len(x)), look or style(label)
    ax.fill_between(x[at], low[at], high[at], color=look.color, alpha=0.18, linewidth=0)
    curve(ax, x[at], mean[at], label, look)


def intervals(
    ax: Axes,
    groups: Mapping[str, Sequence[Interval | None]],
    categories: Sequence[object],
    *,
    looks: Mapping[str, Style] | None = None,
    labels: Mapping[str, str] | None = None,
    across: bool = False,
) -> None:
    """Points with their intervals, side by side: `groups[name][c]` in category c, None for none.

    `across` puts the categories on the vertical axis, the first on top; `labels` is how names are
    called in the legend.
    """
    looks = looks or styles(groups)
    for i, (name, values) in enumerate(groups.items()):
        shift = (i - (len(groups) - 1) / 2) * 0.8 / len(groups)
        own = [(c + shift, v) for c, v in enumerate(values) if v is not None]
        mean, low, high = (np.array([getattr(v, k) for _, v in own]) for k in
                           ("mean", "low", "high"))  # fmt: skip
        at, error = [place for place, _ in own], np.abs([mean - low, high - mean])
        x, y = (mean, at) if across else (at, mean)
        bars: Any = {"xerr" if across else "yerr": error}
        ax.errorbar(
            x, y, **bars, linestyle="none", capsize=3,
            color=looks[name].color, marker=looks[name].marker, markersize=5,
            label=plain_text((labels or {}).get(name, name)),
        )  # fmt: skip
    axis = ax.yaxis if across else ax.xaxis
    axis.set_ticks(range(len(categories)), [plain_text(c, 60) for c in categories])
    axis.grid(visible=False)
    edges = -0.5, len(categories) - 0.5
    ax.set(**{"ylim": edges[::-1]} if across else {"xlim": edges})


def shares(ax: Axes, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Who decided, as stacked bars in percent: `rows[name][authority]` are shares of one."""
    left = np.zeros(len(rows))
    for who, (color, hatch) in AUTHORITIES.items():
        part = np.array([100 * row.get(who, 0.0) for row in rows.values()])
        ax.barh([plain_text(name) for name in rows], part, left=left, color=color, hatch=hatch,
                edgecolor="white", label=who.replace("_", "-"))  # fmt: skip
        left += part
    ax.set(xlabel="share of steps (%)", xlim=(0, 100))
    ax.invert_yaxis()


def dispersion(
    ax: Axes, z: ArrayLike, alpha: ArrayLike, name: str, look: Style, **more: Any
) -> None:
    """`F^(2)` of particles, and below it, shaded, the space down to its asymptotes."""
    space = dispersion_space(np.asarray(z, dtype=float), np.asarray(alpha, dtype=float))
    floor = np.maximum(space.left_asymptote, space.right_asymptote)
    ax.fill_between(space.alpha, floor, space.frontier, color=look.color, alpha=0.2, linewidth=0)
    ax.plot(space.alpha, floor, color=GREY, linestyle=":", linewidth=1)
    curve(ax, space.alpha, space.frontier, name, look, **more)


def violins(
    ax: Axes, data: Mapping[str, Sequence[ArrayLike]], categories: Sequence[object]
) -> None:
    """Violins side by side: `data[name][c]` are the samples of a name in category c.

    White bar: middle half; line across: median; marker: mean.
    """
    looks, width = styles(data), 0.8 / max(len(data), 1)
    for i, (name, groups) in enumerate(data.items()):
        if len(groups) != len(categories):
            raise InputError(
                f"violins {name!r}: {len(groups)} samples for {len(categories)} categories"
            )
        for c, values in enumerate(groups):
            sample = np.asarray(values, dtype=float).ravel()
            if sample.size == 0 or not np.isfinite(sample).all():
                raise InputError(f"violin {name!r}, {categories[c]}: needs finite values")
            position = c + (i - (len(data) - 1) / 2) * width
            _violin(ax, sample, position, width, looks[name], None if c else name)
    for boundary in np.arange(0.5, len(categories) - 1):
        ax.axvline(boundary, color="#DDDDDD", linewidth=0.7)
    ax.grid(visible=False, axis="x")
    ax.set_xticks(range(len(categories)), [str(category) for category in categories])
    ax.set_xlim(-0.5, len(categories) - 0.5)


def _violin(
    ax: Axes, sample: np.ndarray, position: float, width: float, look: Style, label: str | None
) -> None:
    from matplotlib.mlab import GaussianKDE

    low, middle, high = np.quantile(sample, [0.25, 0.5, 0.75])
    # A sample without spread has no density: the bar and the marker below still show it.
    if np.ptp(sample) > 1e-12 * max(1.0, float(np.abs(sample).max())):
        at = np.linspace(sample.min(), sample.max(), 60)
        density = GaussianKDE(sample).evaluate(at)
        half = 0.45 * width * density / density.max()
        ax.fill_betweenx(at, position - half, position + half, facecolor=look.color, alpha=0.45,
                         edgecolor=look.color, linewidth=1.0)  # fmt: skip
    for color, thick in (("white", 5.0), (look.color, 1.2)):
        ax.vlines(position, low, high, color=color, linewidth=thick, zorder=3)
    ax.hlines(middle, position - 0.22 * width, position + 0.22 * width, color="black",
              linewidth=1.6, zorder=4)  # fmt: skip
    ax.plot(position, sample.mean(), marker=look.marker, markersize=6, color=look.color,
            markeredgecolor="black", markeredgewidth=0.8, linestyle="none", zorder=5,
            label=label)  # fmt: skip


def heatmap(
    ax: Axes,
    values: ArrayLike,
    row_labels: Sequence[object],
    column_labels: Sequence[object],
    *,
    half_width: ArrayLike | None = None,
    marked: ArrayLike | None = None,
    marked_label: str = "not converged",
    label: str = "",
    log: bool = False,
) -> None:
    """A table of numbers in colours: `values[rows, columns]`, each cell with its number.

    `half_width` is written under it. Cells in `marked` are hatched and take no part in the
    colours, though they still show their number, where they have one; a NaN is grey. Where all
    agree within a tenth there is one colour: colours must not magnify rounding.
    """
    values = np.asarray(values, dtype=float)
    spread = np.full(values.shape, np.nan) if half_width is None else np.asarray(half_width)
    hatched = np.zeros(values.shape, bool) if marked is None else np.asarray(marked, bool)
    if not values.shape == spread.shape == hatched.shape == (len(row_labels), len(column_labels)):
        raise InputError(
            f"heatmap: values {values.shape}, half_width {spread.shape} and marked {hatched.shape} "
            f"for {len(row_labels)} row and {len(column_labels)} column labels"
        )
    out = hatched | ~np.isfinite(values)
    shown = np.ma.masked_array(values, mask=out)
    image = ax.imshow(shown, cmap="cividis", norm=_norm(shown, log), aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = format(value, ".3g") if np.isfinite(value) else "n/a"
        if np.isfinite(spread[row, column]) and np.isfinite(value):
            text += f"\n±{spread[row, column]:.2g}"
        if out[row, column]:
            _grey_cell(ax, row, column, text, bool(hatched[row, column]))
        else:
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
            ax.text(column, row, text, ha="center", va="center", fontsize=9,
                    color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(range(len(column_labels)), [str(each) for each in column_labels])
    ax.set_yticks(range(len(row_labels)), [str(each) for each in row_labels])
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if not out.all():
        ax.figure.colorbar(image, ax=ax, label=label).outline.set_visible(False)
    if hatched.any():
        from matplotlib.patches import Patch

        patch = Patch(facecolor="#EEEEEE", edgecolor="#999999", hatch="///", label=marked_label)
        legend(ax, handles=[patch], loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)


def _grey_cell(ax: Axes, row: int, column: int, text: str, hatched: bool) -> None:
    from matplotlib.patches import Rectangle

    cell = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="#EEEEEE", edgecolor="#999999")
    cell.set(hatch="///" if hatched else None, linewidth=0)
    ax.add_patch(cell)
    box = {"facecolor": "#EEEEEE", "edgecolor": "none", "pad": 1.5}  # no hatching behind text
    ax.text(column, row, text, ha="center", va="center", fontsize=9, color="#333333", bbox=box)


def _norm(shown: Any, log: bool) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    if shown.count() == 0:
        return Normalize(0, 1)
    low, high = float(shown.min()), float(shown.max())
    if log and low <= 0:
        raise InputError("heatmap: has values at or below zero, which no log scale can show")
    if high < 1.1 * low:
        low, high = low / 1.5, high * 1.5
    elif low == high:  # one colour for all, and no division by zero
        low, high = low - 1, high + 1
    return LogNorm(low, high) if log else Normalize(low, high)
