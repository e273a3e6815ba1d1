"""The figures of a comparison: distributions, dominance, lower tails, dispersion; bands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.core.particles import cumulative_quantile
from surefoot.plots.figures import label, legend_below, new_figure
from surefoot.plots.marks import POINTS, band, curve, plain_text, thin
from surefoot.plots.styles import GREY, style, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 12  # curves a reader can still tell apart
Array = NDArray[np.float64]


def draw_comparison(
    returns: Mapping[str, ArrayLike],
    *,
    dominant: Collection[str] = (),
    established: Collection[str] = (),
    efficient: Collection[str] = (),
) -> Figure:
    """Four panels: CDF, F^-2 below the highest, mean of the worst share, dispersion.

    The title says which columns are `dominant`, whether that is `established`, and
    else which are `efficient`. Of more than twelve columns the efficient ones, then those with the
    best means, are drawn.
    """
    samples = {name: np.sort(np.asarray(z, dtype=float)) for name, z in returns.items()}
    names = _shown(samples, efficient)
    title = _title(list(dominant), established, list(efficient))
    if len(names) < len(samples):
        title += f" ({len(names)} drawn)"
    figure, axes = new_figure(2, 2, size=(11, 8), title=title)
    looks, tau = styles(names), np.linspace(0, 1, POINTS + 1)
    curves = {
        name: np.asarray(cumulative_quantile(samples[name], tau, assume_sorted=True))
        for name in names
    }
    highest = np.max(list(curves.values()), axis=0)
    low, high = (f([samples[name][end] for name in names]) for f, end in ((min, 0), (max, -1)))
    alpha = np.linspace(low, high, POINTS)
    for name in names:
        z, look = samples[name], looks[name]
        at = thin(len(z), 400)
        x, share = np.concatenate([z[:1], z[at]]), np.concatenate([[0.0], (at + 1) / len(z)])
        curve(axes[0, 0], x, share, name, look, drawstyle="steps-post")
        curve(axes[0, 1], tau, curves[name] - highest, name, look)
        curve(axes[1, 0], tau[1:], curves[name][1:] / tau[1:], name, look)
        curve(axes[1, 1], alpha, dispersion_above(z, alpha), name, look)
    label(axes[0, 0], "Distribution (to the right is better)", "return x", "share of returns ≤ x")
    worst = "share of outcomes τ, worst first"
    label(axes[0, 1], "Second order (flat at 0 all along: dominates)", worst,
          "F$^{-2}$(τ) below the highest")  # fmt: skip
    label(axes[1, 0], "CVaR (at 1 it is the mean)", worst, "mean of the worst share τ")
    label(axes[1, 1], "Dispersion (area = half the variance)", "return x",
          "F$^{(2)}$(x) above its asymptotes")  # fmt: skip
    texts = [plain_text(name) for name in names]
    columns = max(1, min(len(names), 120 // (max(map(len, texts)) + 9)))
    legend_below(figure, axes[0, 0], columns, texts)
    return figure


def draw_bands(
    bands: Sequence[Any], words: Mapping[tuple[str, str], tuple[str, str]] | None = None
) -> Figure:
    """A panel for each pair: `F^-2` of a less that of b, with its band, and the words of both.

    A band is a `surefoot.comparison.DifferenceBand`, which this package must not know.
    """
    columns = min(3, len(bands))
    rows = -(-len(bands) // columns)
    confidence = f"{1 - bands[0].level:.0%}".replace("%", " %")
    title = f"Difference of F$^{{-2}}$ with a {confidence} band for all τ at once, pair by pair"
    figure, axes = new_figure(
        rows, columns, size=(max(4.4 * columns, 7.5), 3.5 * rows + 0.4), title=title
    )
    panels = list(np.ravel(axes))
    for ax, each in zip(panels, bands, strict=False):
        looks = style("ssd")
        band(ax, each.tau, each.difference, each.low, each.high, each.a, look=looks)
        ax.axhline(0, color=GREY, linewidth=1)
        a, b = plain_text(each.a, 22), plain_text(each.b, 22)
        label(ax, f"{a} less {b}", "share of outcomes τ, worst first", "")
        said = (words or {}).get((each.a, each.b))
        if said:
            place = {"transform": ax.transAxes, "fontsize": 8.5, "color": "#444444"}
            ax.text(0.02, 0.98, f"{a} over {b}: {said[0]}", va="top", **place)
            ax.text(0.02, 0.02, f"{b} over {a}: {said[1]}", va="bottom", **place)
        ax.margins(y=0.22)
        ax.set_xlim(0, 1)
    for ax in panels[len(bands) :]:
        ax.set_axis_off()
    return figure


def _shown(samples: Mapping[str, Array], efficient: Collection[str]) -> list[str]:
    best = sorted(samples, key=lambda name: (name not in efficient, -samples[name].mean()))[:MOST]
    return [name for name in samples if name in best]


def _title(dominant: Sequence[str], established: Collection[str], efficient: Sequence[str]) -> str:
    if dominant:
        text = f"{_listed(dominant)} dominates at second order"
        sure = set(established) == set(dominant)
        return f"{text}: established" if sure else f"{text} in the sample; not established"
    return f"No column dominates all others at second order; efficient: {_listed(efficient)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(map(plain_text, names[:4])) + more


def dispersion_above(z: Array, alpha: Array) -> Array:
    """`F^(2)(alpha) - max(0, alpha - mean)` of an ascending sample; zero for a sure return.

    `F^(2)(alpha) = E[(alpha - Z)_+]` needs only the count and the sum of the values below.
    """
    below = np.searchsorted(z, alpha, side="right")
    sums = np.concatenate([[0.0], np.cumsum(z)])[below]
    frontier = (below * alpha - sums) / len(z)
    return np.maximum(frontier - np.maximum(alpha - z.mean(), 0.0), 0.0)
