"""A figure in the house style, and how it becomes PNG and SVG.

Light, readable in print, safe for colour-blind readers. Figures are made without pyplot: nothing
global is changed and no window can open.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from surefoot.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    "svg.hashsalt": "surefoot",  # equal figures make equal bytes
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

    `size` is in inches, 5 x 3.6 a panel by default; further arguments go to
    `Figure.subplots` (`sharex`, `width_ratios`, ...).
    """
    mpl = matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(RC):
        figure = _shown_figure()(figsize=size or (5.0 * columns, 3.6 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, **subplots)
        if title:
            figure.suptitle(title)
    return figure, axes[0, 0] if rows == columns == 1 else axes


@cache
def _shown_figure() -> type[Figure]:
    """A figure that a notebook shows also where nobody has imported pyplot."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            return render(self)[0]

    return ShownFigure


def label(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Title and axis titles; what is empty stays as it is."""
    ax.set(**{k: v for k, v in (("title", title), ("xlabel", x), ("ylabel", y)) if v})


def legend(ax: Axes, **options: Any) -> None:
    """The axes' legend in the house style; `outside=True` puts it to the right."""
    if options.pop("outside", False):
        options = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} | options
    with matplotlib().rc_context(RC):
        ax.legend(**options)


def legend_below(
    figure: Figure, ax: Axes, columns: int | None = None, names: Sequence[str] = ()
) -> None:
    """One legend for all panels under them, made of what `ax` shows.

    `names` are those of its lines where any name may occur: matplotlib hides what begins with an
    underscore.
    """
    handles, labels = (ax.lines, list(names)) if names else ax.get_legend_handles_labels()
    with matplotlib().rc_context(RC):
        figure.legend(handles, labels, loc="outside lower center", handlelength=3.2,
                      ncols=columns or min(len(labels), 6))  # fmt: skip


def svg(figure: Figure) -> str:
    """The figure as one `<svg>` element on white, ready to stand in an HTML page.

    The same figure makes the same text on any day. Coordinates are rounded to a hundredth of a
    point, and what only an editor would read (comments, metadata, names of groups) is left out.
    """
    buffer = io.StringIO()
    with matplotlib().rc_context(RC):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return compact(buffer.getvalue())


def compact(text: str) -> str:
    """The `<svg>` element of an SVG file that matplotlib wrote, without what nobody sees."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r'(?<= d=")[^"]*|translate\([^)]*\)|(?<= [xy]=")[^"]*', _rounded, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _rounded(match: re.Match[str]) -> str:
    text = re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), match[0])
    return " ".join(text.split())


def render(figure: Figure) -> tuple[bytes, bytes]:
    """The figure as PNG and SVG files; the same figure makes the same bytes on any day."""
    png = io.BytesIO()
    with matplotlib().rc_context(RC):
        figure.savefig(png, format="png", dpi=150, metadata={"Software": "surefoot"})
    return png.getvalue(), svg(figure).encode()


class FigureStore(Protocol):
    """What keeps figures: a run directory."""

    def write_figure(self, name: str, png: bytes, svg: bytes) -> Path: ...


def save_figure(figure: Figure, run: FigureStore, name: str) -> Path:
    """Store the figure as figures/NAME.png and .svg of the run; returns the path of the PNG."""
    return run.write_figure(name, *render(figure))


def matplotlib() -> Any:
    require("a figure", "report", "matplotlib")
    import matplotlib

    return matplotlib
