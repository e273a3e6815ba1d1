"""The figure of an explanation: distributions, cumulative quantile curves, dispersion space."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.agents.explain import Explanation
from surefoot.core.particles import dispersion_space
from surefoot.plots.figures import Style, new_figure, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOSE = 0.1  # curves that differ by less than this share of their range are drawn as differences
FEW = 6  # actions that one panel shows at once


def draw(explanation: Explanation, title: str = "", unit: str = "return") -> Figure:
    """Three panels and the decision in words.

    Where several actions have the best mean up to the tolerance, only these are drawn, so that
    what tells them apart can be seen; the title says so.
    """
    shown = focus(explanation)
    looks = _looks(explanation)
    left_out = len(explanation.names) - len(shown)
    head = [title, *explanation.words]
    if left_out:
        head.append(f"drawn: {', '.join(explanation.names[a] for a in shown)} (the best means)")
    text = "\n".join(textwrap.fill(line, 120) for line in head if line).replace("$", r"\$")
    figure, axes = new_figure(1, 3, size=(14, 5.0))
    figure.suptitle(text, fontsize=11, x=0.01, ha="left")
    low, high = _frame(explanation.z[shown])
    _distribution(axes[0, 0], explanation, shown, looks, (low, high), unit)
    _curves(axes[0, 1], explanation, shown, looks, unit)
    _dispersion(axes[0, 2], explanation, shown, looks, (low, high), unit)
    for ax in axes[0]:
        # A small spread around a large return: whole numbers on the ticks, no offset beside them.
        ax.ticklabel_format(useOffset=False, style="plain", axis="x")
        ax.locator_params(axis="x", nbins=5)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6),
                  frameon=False, handlelength=3.2)  # fmt: skip
    return figure


def focus(e: Explanation) -> list[int]:
    """The actions that matter: those tied for the best mean, else the best few and the chosen."""
    tied = {int(a) for a in np.flatnonzero(e.tied)}
    if len(tied) > 1:
        return sorted(tied | {e.action})
    best = np.argsort(-e.mean, kind="stable")[:FEW]
    return sorted({int(a) for a in best} | {e.action})


def _looks(e: Explanation) -> list[Style]:
    """By place and not by name, as the report has it: action names are nobody's methods."""
    names = [f"action {a}" for a in range(len(e.names))]
    found: dict[str, Style] = {}
    for start in range(0, len(names), 40):
        found |= styles(names[start : start + 40])
    return [found[name] for name in names]


def _frame(z: np.ndarray) -> tuple[float, float]:
    low, high = float(z.min()), float(z.max())
    air = 0.08 * (high - low) or 0.01 * max(abs(high), 1e-6)
    return low - air, high + air


def _label(e: Explanation, a: int) -> str:
    name = e.names[a] if len(e.names[a]) <= 32 else f"{e.names[a][:29]}..."
    return name.replace("$", r"\$") + (" (chosen)" if a == e.action else "")


def _line(ax: Any, x: Any, y: Any, e: Explanation, a: int, look: Style, **more: Any) -> None:
    width = 2.6 if a == e.action else 1.7
    ax.plot(
        x, y, color=look.color, linestyle=look.linestyle, marker=look.marker, label=_label(e, a),
        markevery=max(1, len(x) // 7), markersize=5.5, markeredgecolor="white",
        markeredgewidth=0.6, linewidth=width, **more,
    )  # fmt: skip


def _distribution(
    ax: Any, e: Explanation, shown: list[int], looks: list[Style], frame: tuple, unit: str
) -> None:
    for a in shown:
        z = e.z[a]
        x = np.concatenate([[frame[0]], z, [frame[1]]])
        share = np.append(np.arange(len(z) + 1), len(z)) / len(z)
        _line(ax, x, share, e, a, looks[a], drawstyle="steps-post")
    ax.set(title="Return distribution", xlabel=f"{unit} x", ylabel="share of outcomes ≤ x")
    ax.set_xlim(*frame)


def _curves(ax: Any, e: Explanation, shown: list[int], looks: list[Style], unit: str) -> None:
    curves = np.concatenate([np.zeros((len(e.z), 1)), e.cumulative_quantile], axis=1)
    tau = np.linspace(0, 1, curves.shape[1])
    own = curves[shown]
    apart = float(np.max(np.abs(own - curves[e.action])))
    relative = 0 < apart < CLOSE * float(np.ptp(own))
    base = curves[e.action] if relative else 0.0
    for a in shown:
        _line(ax, tau, curves[a] - base, e, a, looks[a])
    ylabel = f"F$^{{-2}}$(τ) ({unit})"
    if relative:
        ylabel = "F$^{-2}$(τ) minus the chosen action's"
    ax.set(title="Cumulative quantiles: nowhere below dominates", ylabel=ylabel,
           xlabel="quantile level τ, worst first")  # fmt: skip


def _dispersion(
    ax: Any, e: Explanation, shown: list[int], looks: list[Style], frame: tuple, unit: str
) -> None:
    for a in shown:
        alpha = np.sort(np.concatenate([frame, e.z[a], [e.mean[a]]]))
        space = dispersion_space(e.z[a], alpha)
        floor = np.maximum(space.left_asymptote, space.right_asymptote)
        ax.fill_between(alpha, floor, space.frontier, color=looks[a].color, alpha=0.2, linewidth=0)
        ax.plot(alpha, floor, color="#777777", linestyle=":", linewidth=1)
        _line(ax, alpha, space.frontier, e, a, looks[a])
    ax.set(title="Dispersion space: area = half the variance", xlabel=rf"{unit} $\alpha$",
           ylabel=r"F$^{(2)}$($\alpha$), shortfall below $\alpha$")  # fmt: skip
    ax.set_xlim(*frame)
