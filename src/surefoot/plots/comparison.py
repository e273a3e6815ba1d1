"""The figure of a comparison: distributions, dominance, lower tails, dispersion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.comparison.result import Array, Comparison
from surefoot.core.particles import cumulative_quantile
from surefoot.plots.figures import Style, new_figure, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 12  # curves a reader can still tell apart
_POINTS = 400  # to a curve: finer than a pixel


def draw(comparison: Comparison) -> Figure:
    """Four panels: CDF, F^-2 below the highest, mean of the worst share, dispersion.

    Of more than twelve columns the efficient ones, then those with the best means, are drawn.
    """
    names = _shown(comparison)
    looks = styles(names)
    figure, axes = new_figure(2, 2, size=(11, 8), title=_title(comparison, names))
    samples = {name: comparison.returns[name] for name in names}
    _cdf(axes[0, 0], samples, looks)
    _dominance(axes[0, 1], samples, looks)
    _tail(axes[1, 0], samples, looks)
    _dispersion(axes[1, 1], samples, looks)
    longest = max(len(_label_of(name)) for name in names)
    figure.legend(
        axes[0, 0].lines, [_label_of(name) for name in names], loc="outside lower center",
        ncols=max(1, min(len(names), 120 // (longest + 9))), frameon=False, handlelength=3.2,
    )  # fmt: skip
    return figure


def _label_of(name: str) -> str:
    """A name as matplotlib shows it: not as a formula, and not longer than a line."""
    name = name if len(name) <= 40 else f"{name[:37]}..."
    return name.replace("$", r"\$")


def _shown(comparison: Comparison) -> list[str]:
    if len(comparison.names) <= MOST:
        return list(comparison.names)
    efficient = comparison.efficient()
    best = sorted(comparison.summaries, key=lambda s: (s.name not in efficient, -s.mean))
    kept = {summary.name for summary in best[:MOST]}
    return [name for name in comparison.names if name in kept]


def _title(comparison: Comparison, names: list[str]) -> str:
    dominant = comparison.dominant()
    if dominant:
        text = f"{_short(dominant)} dominates at second order"
        if set(comparison.dominant(supported=True)) != set(dominant):
            text += " in the sample; more data are needed to be sure"
    else:
        efficient = _short(comparison.efficient())
        text = f"No column dominates all others at second order; efficient: {efficient}"
    return text if len(names) == len(comparison.names) else f"{text} ({len(names)} drawn)"


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(map(_label_of, names[:4])) + (
        f" and {len(names) - 4} more" if len(names) > 4 else ""
    )


def _cdf(ax: Axes, samples: dict[str, Array], looks: dict[str, Style]) -> None:
    for name, z in samples.items():
        at = np.unique(np.linspace(0, len(z) - 1, _POINTS).astype(int))  # ends are kept
        x = np.concatenate([z[:1], z[at]])
        f = np.concatenate([[0.0], (at + 1) / len(z)])
        _line(ax, x, f, name, looks[name], drawstyle="steps-post")
    _label(ax, "Distribution (to the right is better)", "return x", "share of returns ≤ x")


def _dominance(ax: Axes, samples: dict[str, Array], looks: dict[str, Style]) -> None:
    tau = np.linspace(0, 1, _POINTS + 1)
    curves = {name: _curve(z, tau) for name, z in samples.items()}
    highest = np.max(list(curves.values()), axis=0)
    for name, curve in curves.items():
        _line(ax, tau, curve - highest, name, looks[name])
    title = "Second order (flat at 0 all along: dominates)"
    _label(ax, title, "share of outcomes τ, worst first", "F$^{-2}$(τ) below the highest")


def _tail(ax: Axes, samples: dict[str, Array], looks: dict[str, Style]) -> None:
    tau = np.linspace(0, 1, _POINTS + 1)[1:]
    for name, z in samples.items():
        _line(ax, tau, _curve(z, tau) / tau, name, looks[name])
    _label(ax, "CVaR (at 1 it is the mean)", "share of outcomes τ, worst first",
           "mean of the worst share τ")  # fmt: skip


def _dispersion(ax: Axes, samples: dict[str, Array], looks: dict[str, Style]) -> None:
    low = min(float(z[0]) for z in samples.values())
    high = max(float(z[-1]) for z in samples.values())
    alpha = np.linspace(low, high, _POINTS)
    for name, z in samples.items():
        _line(ax, alpha, dispersion(z, alpha), name, looks[name])
    _label(ax, "Dispersion (area = half the variance)", "return x",
           "F$^{(2)}$(x) above its asymptotes")  # fmt: skip


def dispersion(z: Array, alpha: Array) -> Array:
    """`F^(2)(alpha) - max(0, alpha - mean)` of an ascending sample; zero for a sure return.

    `F^(2)(alpha) = E[(alpha - Z)_+]` needs only the count and the sum of the values below.
    """
    below = np.searchsorted(z, alpha, side="right")
    sums = np.concatenate([[0.0], np.cumsum(z)])[below]
    frontier = (below * alpha - sums) / len(z)
    return np.maximum(frontier - np.maximum(alpha - z.mean(), 0.0), 0.0)


def _curve(z: Array, tau: Array) -> Array:
    return np.asarray(cumulative_quantile(z, tau, assume_sorted=True))


def _line(ax: Axes, x: Array, y: Array, name: str, look: Style, **more: Any) -> None:
    ax.plot(
        x, y, label=name, color=look.color, linestyle=look.linestyle, marker=look.marker,
        markevery=max(1, len(x) // 8), markersize=5, markeredgecolor="white",
        markeredgewidth=0.6, linewidth=1.8, **more,
    )  # fmt: skip


def _label(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_title(title)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
