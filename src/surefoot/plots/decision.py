"""The figure of a decision: distributions, cumulative quantile curves, dispersion space."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.plots.figures import label, legend_below, new_figure
from surefoot.plots.marks import curve, dispersion, plain_text
from surefoot.plots.styles import BLUE, GREY, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from surefoot.agents.explain import Explanation

CLOSE = 0.1  # curves that differ by less than this share of their range are drawn as differences
FEW = 6  # actions that one panel shows at once


def draw_decision(explanation: Explanation, title: str = "") -> Figure:
    """Three panels and the decision in words.

    Where several actions have the best mean up to the tolerance, only these are drawn, so that
    what tells them apart can be seen; the title says so.
    """
    e, shown = explanation, focus(explanation)
    head = [title, *e.words]
    if len(shown) < len(e.names):
        head.append(f"drawn: {', '.join(e.names[a] for a in shown)} (the best means)")
    text = "\n".join(textwrap.fill(line, 120) for line in head if line).replace("$", r"\$")
    figure, axes = new_figure(1, 3, size=(14, 5.0))
    figure.suptitle(text, fontsize=11, x=0.01, ha="left")
    # By place and not by name, as the report has it: action names are nobody's methods.
    looks = list(styles(f"action {a}" for a in range(len(e.names))).values())
    z = e.z[shown]
    air = 0.08 * np.ptp(z) or 0.01 * max(abs(float(z.max())), 1e-6)
    frame = float(z.min()) - air, float(z.max()) + air
    for a in shown:
        chosen = a == e.action
        name = plain_text(e.names[a], 32) + (" (chosen)" if chosen else "")
        line: dict[str, Any] = {"linewidth": 2.6 if chosen else 1.7, "label": name}
        share = np.append(np.arange(len(e.z[a]) + 1), len(e.z[a])) / len(e.z[a])
        x = np.concatenate([frame[:1], e.z[a], frame[1:]])
        curve(axes[0, 0], x, share, name, looks[a], drawstyle="steps-post", **line)
        tau, relative, below = _quantiles(e, shown, a)
        curve(axes[0, 1], tau, below, name, looks[a], **line)
        alpha = np.sort(np.concatenate([frame, e.z[a], [e.mean[a]]]))
        dispersion(axes[0, 2], e.z[a], alpha, name, looks[a], **line)
    label(axes[0, 0], "Return distribution", "return x", "share of outcomes ≤ x")
    height = "F$^{-2}$(τ) minus the chosen action's" if relative else "F$^{-2}$(τ) (return)"
    label(axes[0, 1], "Cumulative quantiles: nowhere below dominates",
          "quantile level τ, worst first", height)  # fmt: skip
    label(axes[0, 2], "Dispersion space: area = half the variance", r"return $\alpha$",
          r"F$^{(2)}$($\alpha$), shortfall below $\alpha$")  # fmt: skip
    for ax in axes[0]:
        # A small spread around a large return: whole numbers on the ticks, no offset beside them.
        ax.ticklabel_format(useOffset=False, style="plain", axis="x")
        ax.locator_params(axis="x", nbins=5)
    axes[0, 0].set_xlim(*frame)
    axes[0, 2].set_xlim(*frame)
    legend_below(figure, axes[0, 0])
    return figure


def draw_gaps(
    gap: ArrayLike, error: ArrayLike, tied: ArrayLike, action: int, title: str = ""
) -> Figure:
    """How far each action's mean lies below the best, with one standard error where it is known;
    full where it is worth the same, open where it is worth less."""
    below, known = np.asarray(gap, float), np.asarray(error, float)
    figure, ax = new_figure(size=(6.0, 1.6 + 0.35 * len(below)))
    for a, same in enumerate(np.asarray(tied, bool)):
        look: dict[str, Any] = {"color": BLUE if a == action else GREY}
        look |= {"markerfacecolor": look["color"] if same else "white"}
        half = known[a] if np.isfinite(known[a]) else None
        ax.errorbar(-below[a], a, xerr=half, fmt="o", capsize=3, **look)
    names = [f"{a} (taken)" if a == action else str(a) for a in range(len(below))]
    ax.set_yticks(range(len(below)), names)
    ax.margins(y=0.2)
    ax.invert_yaxis()
    label(ax, title, "mean less the best one, one standard error (full: worth the same)", "action")
    return figure


def focus(e: Explanation) -> list[int]:
    """The actions that matter: those tied for the best mean, else the best few and the chosen."""
    tied = {int(a) for a in np.flatnonzero(e.tied)}
    if len(tied) > 1:
        return sorted(tied | {e.action})
    best = np.argsort(-e.mean, kind="stable")[:FEW]
    return sorted({int(a) for a in best} | {e.action})


def _quantiles(e: Explanation, shown: list[int], a: int) -> tuple[np.ndarray, bool, np.ndarray]:
    """`F^-2` of an action, or where the curves shown are close, its difference to the chosen's."""
    curves = np.concatenate([np.zeros((len(e.z), 1)), e.cumulative_quantile], axis=1)
    apart = float(np.max(np.abs(curves[shown] - curves[e.action])))
    relative = 0 < apart < CLOSE * float(np.ptp(curves[shown]))
    base = curves[e.action] if relative else 0.0
    return np.linspace(0, 1, curves.shape[1]), relative, curves[a] - base
