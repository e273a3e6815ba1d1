"""The look of all figures: light, readable in print, safe for colour-blind readers.

Every policy, loss and transport has one colour, marker and line style in every figure, so
that no reader has to learn a legend twice. Figures are made without pyplot: nothing global
is changed and no window can open.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import InputError
from surefoot.plots.styles import PALETTE, STYLES, Style, style, styles
from surefoot.runs.directory import RunDir

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "PALETTE", "STYLES", "Style", "band", "heatmap", "legend", "new_figure", "render",
    "save_figure", "style", "styles", "violins",
]  # fmt: skip

RC = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture everywhere
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "figure.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "hatch.linewidth": 0.8,
    "svg.hashsalt": "surefoot",  # equal figures give equal bytes
    "svg.fonttype": "path",
}


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float] | None = None,
    title: str | None = None,
    **subplots: Any,
) -> tuple[Figure, Any]:
    """A figure in the house style and its axes: one, or an array `[rows, columns]`.

    `size` is in inches, 5 x 3.6 a panel when not given; further arguments go to
    `Figure.subplots` (`sharex`, `width_ratios`, ...).
    """
    mpl = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(RC):
        figure = Figure(figsize=size or (5.0 * columns, 3.6 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, **subplots)
        if title:
            figure.suptitle(title)
    return figure, axes[0, 0] if rows == columns == 1 else axes


def save_figure(figure: Figure, run: RunDir, name: str, dpi: int = 150) -> Path:
    """Store the figure as figures/NAME.png and .svg of the run; gives the PNG's path."""
    png, svg = render(figure, dpi)
    return run.write_figure(name, png, svg)


def render(figure: Figure, dpi: int = 150) -> tuple[bytes, bytes]:
    """The figure as PNG and SVG; the same figure gives the same bytes on any day."""
    png, svg = io.BytesIO(), io.BytesIO()
    with _matplotlib().rc_context(RC):
        figure.savefig(png, format="png", dpi=dpi, metadata={"Software": "surefoot"})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "surefoot"})
    return png.getvalue(), svg.getvalue()


def band(
    ax: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    label: str,
    *,
    look: Style | None = None,
    markers: int = 8,
) -> None:
    """A curve with its interval as a band, in the style of `label`; about `markers` markers."""
    x, mean, low, high = (np.asarray(v, dtype=float) for v in (x, mean, low, high))
    if not x.shape == mean.shape == low.shape == high.shape or x.ndim != 1:
        shapes = ", ".join(str(v.shape) for v in (x, mean, low, high))
        raise InputError(f"band {label!r}: x, mean, low and high differ in shape ({shapes})")
    look = look or style(label)
    ax.fill_between(x, low, high, color=look.color, alpha=0.18, linewidth=0)
    ax.plot(
        x, mean, label=label, color=look.color, linestyle=look.linestyle, marker=look.marker,
        markevery=max(1, len(x) // max(markers, 1)), markersize=5, linewidth=1.8,
        markeredgecolor="white", markeredgewidth=0.6,
    )  # fmt: skip


def legend(ax: Axes, **options: Any) -> None:
    """The axes' legend in the house style; `outside=True` puts it to the right."""
    if options.pop("outside", False):
        options = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} | options
    with _matplotlib().rc_context(RC):
        ax.legend(**options)


def violins(
    ax: Axes,
    data: Mapping[str, Sequence[ArrayLike]],
    categories: Sequence[object],
    *,
    log: bool = False,
) -> None:
    """Violins side by side: `data[name][c]` are the samples of a name in category c.

    White bar: middle half; line across: median; marker: mean. With `log` the densities are
    estimated, and shown, on a logarithmic axis.
    """
    looks = styles(data)
    width = 0.8 / max(len(data), 1)
    for i, (name, groups) in enumerate(data.items()):
        if len(groups) != len(categories):
            raise InputError(
                f"violins {name!r}: {len(groups)} samples for {len(categories)} categories"
            )
        for c, values in enumerate(groups):
            position = c + (i - (len(data) - 1) / 2) * width
            sample = _sample(values, f"violin {name!r}, {categories[c]}", log)
            _violin(ax, sample, position, width, looks[name], log, None if c else name)
    for boundary in np.arange(0.5, len(categories) - 1):
        ax.axvline(boundary, color="#DDDDDD", linewidth=0.7)
    ax.grid(visible=False, axis="x")
    ax.set_xticks(range(len(categories)), [str(category) for category in categories])
    ax.set_xlim(-0.5, len(categories) - 0.5)
    if log:
        ax.set_yscale("log")


def _sample(values: ArrayLike, what: str, log: bool) -> np.ndarray:
    sample = np.asarray(values, dtype=float).ravel()
    if sample.size == 0 or not np.isfinite(sample).all():
        raise InputError(f"{what}: needs finite values, at least one")
    if log and sample.min() <= 0:
        raise InputError(f"{what}: has values at or below zero, which no log axis can show")
    return sample


def _violin(
    ax: Axes,
    sample: np.ndarray,
    position: float,
    width: float,
    look: Style,
    log: bool,
    label: str | None,
) -> None:
    from matplotlib.mlab import GaussianKDE

    on_axis = np.log10(sample) if log else sample
    back = (lambda v: 10.0**v) if log else (lambda v: v)
    low, middle, high = np.quantile(on_axis, [0.25, 0.5, 0.75])
    if np.ptp(on_axis) > 1e-12 * max(1.0, float(np.abs(on_axis).max())):
        at = np.linspace(on_axis.min(), on_axis.max(), 120)
        density = GaussianKDE(on_axis).evaluate(at)
        half = 0.45 * width * density / density.max()
        ax.fill_betweenx(
            back(at), position - half, position + half, facecolor=look.color, alpha=0.45,
            edgecolor=look.color, linewidth=1.0,
        )  # fmt: skip
    # A sample without spread has no density: the bar and the marker below still show it.
    ax.vlines(position, back(low), back(high), color="white", linewidth=5, zorder=3)
    ax.vlines(position, back(low), back(high), color=look.color, linewidth=1.2, zorder=3)
    ax.hlines(back(middle), position - 0.22 * width, position + 0.22 * width, color="black",
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
    form: str = ".3g",
) -> None:
    """A table of numbers in colours: `values[rows, columns]`, each cell with its number.

    `half_width` is written under it. Cells in `marked` are hatched and take no part in the
    colours, though they still show their number, where they have one; a NaN is grey.
    """
    values = np.asarray(values, dtype=float)
    if values.shape != (len(row_labels), len(column_labels)):
        raise InputError(
            f"heatmap: values of shape {values.shape} for {len(row_labels)} row and "
            f"{len(column_labels)} column labels"
        )
    hatched = np.zeros(values.shape, bool)
    if marked is not None:
        hatched = _like(values, marked, "marked").astype(bool)
    out = hatched | ~np.isfinite(values)
    shown = np.ma.masked_array(values, mask=out)
    norm = _norm(shown, log)
    image = ax.imshow(shown, cmap="cividis", norm=norm, aspect="auto")
    spread = None if half_width is None else _like(values, half_width, "half_width")
    for (row, column), value in np.ndenumerate(values):
        text = format(value, form) if np.isfinite(value) else "n/a"
        if spread is not None and np.isfinite(spread[row, column]) and np.isfinite(value):
            text += f"\n±{spread[row, column]:.2g}"
        if out[row, column]:
            _blank_cell(ax, row, column, text, bool(hatched[row, column]))
        else:
            _number_cell(ax, row, column, text, image.cmap(image.norm(value)))
    ax.set_xticks(range(len(column_labels)), [str(each) for each in column_labels])
    ax.set_yticks(range(len(row_labels)), [str(each) for each in row_labels])
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if not out.all():
        bar = ax.figure.colorbar(image, ax=ax, label=label)
        bar.outline.set_visible(False)
    if hatched.any():
        _explain_hatching(ax, marked_label)


def _number_cell(ax: Axes, row: int, column: int, text: str, background: Any) -> None:
    red, green, blue, _ = background
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
    color = "white" if dark else "black"
    ax.text(column, row, text, ha="center", va="center", fontsize=9, color=color)


def _blank_cell(ax: Axes, row: int, column: int, text: str, hatched: bool) -> None:
    from matplotlib.patches import Rectangle

    cell = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="#EEEEEE", edgecolor="#999999")
    cell.set(hatch="///" if hatched else None, linewidth=0)
    ax.add_patch(cell)
    box = {"facecolor": "#EEEEEE", "edgecolor": "none", "pad": 1.5}  # no hatching behind text
    ax.text(column, row, text, ha="center", va="center", fontsize=9, color="#333333", bbox=box)


def _explain_hatching(ax: Axes, text: str) -> None:
    from matplotlib.patches import Patch

    patch = Patch(facecolor="#EEEEEE", edgecolor="#999999", hatch="///", label=text)
    legend(ax, handles=[patch], loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)


def _norm(shown: Any, log: bool) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    if shown.count() == 0:
        return Normalize(0, 1)
    low, high = float(shown.min()), float(shown.max())
    if log and low <= 0:
        raise InputError("heatmap: has values at or below zero, which no log scale can show")
    if low == high:  # one colour for all, and no division by zero
        low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
    return LogNorm(low, high) if log else Normalize(low, high)


def _like(values: np.ndarray, other: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(other)
    if array.shape != values.shape:
        raise InputError(f"heatmap: {name} of shape {array.shape}, values of {values.shape}")
    return array


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: install surefoot[report]") from None
    return matplotlib
