"""The explanatory figures on a page, computed from the particles the experiment draws."""

from __future__ import annotations

import numpy as np

from surefoot.core.particles import (
    cumulative_cdf,
    cumulative_quantile,
    dispersion_space,
    mean,
    variance,
)
from surefoot.paper.figures import BIMODAL, PAIRS, X_COLOR, Y_COLOR, area, verdict
from surefoot.plots.styles import BLACK, Style
from surefoot.report.charts import ALPHA, axes, between, line, numbers, step_cdf
from surefoot.report.parts import Chart, Key, Panel, one
from surefoot.report.run import Builder, Run

X, Y = Style(X_COLOR, "o", "-"), Style(Y_COLOR, "s", "--")


def builders() -> dict[str, Builder]:
    return {"dispersion-space": dispersion, "dominance": dominance}


def dispersion(_: Run) -> Chart:
    z = BIMODAL
    alpha = np.sort(np.concatenate([np.linspace(z.min() - 2, z.max() + 2, 200), z]))
    space = dispersion_space(z, alpha)
    floor = np.maximum(space.left_asymptote, space.right_asymptote)
    bends = {
        "type": "scatter", "x": numbers(z), "y": numbers(cumulative_cdf(z, z)), "mode": "markers",
        "marker": {"color": X.color, "symbol": "line-ns-open", "size": 11}, "hoverinfo": "x",
        "legendgroup": "particles",
    }  # fmt: skip
    traces = (
        between(alpha, floor, space.frontier, "dispersion space", X),
        line(alpha, floor, "asymptotes", Style(BLACK, "x", ":"), markers=0),
        line(alpha, space.frontier, "F⁽²⁾", X, markers=0),
        bends,
    )
    legend = (
        Key("F⁽²⁾", X.color), Key("dispersion space", X.color, "", "area"),
        Key("asymptotes", BLACK, "dot"), Key("particles", X.color, "", "circle"),
    )  # fmt: skip
    caption = (
        f"The area between the cumulative CDF and its asymptotes 0 and {ALPHA} - E[X] is "
        f"{area(z):.3f}, half the variance ({float(variance(z)) / 2:.3f}); the mean is "
        f"{float(mean(z)):.2f}."
    )
    panel = Panel("", traces, axes(f"return {ALPHA}", f"cumulative CDF F⁽²⁾({ALPHA})"), 380)
    return Chart("dispersion-space", "Dispersion space of a return", one(panel), legend, caption)


def dominance(_: Run) -> Chart:
    above, below = [], []
    for letter, pair in zip("abc", PAIRS, strict=True):
        low, high = min(pair.x.min(), pair.y.min()) - 1, max(pair.x.max(), pair.y.max()) + 1
        cdfs, curves = [], []
        for z, name, look in ((pair.x, "X", X), (pair.y, "Y", Y)):
            cdfs.append(line(*step_cdf(z, low, high), name, look, step=True, markers=0))
            tau = np.linspace(0, 1, len(z) + 1)
            curves.append(line(tau, cumulative_quantile(z, tau), name, look))
        title = f"({letter}) {verdict(pair.x, pair.y)}".replace("\n", "; ")
        above.append(Panel(title, tuple(cdfs), axes("return", "CDF F")))
        told = axes("quantile level τ", "cumulative quantile F⁻²")
        below.append(Panel(f"({letter}) the curves compared", tuple(curves), told))
    legend = (Key("X", X.color, "solid", "circle"), Key("Y", Y.color, "dash", "square"))
    caption = (
        "First order: one CDF nowhere above the other. Second order: one cumulative quantile curve "
        "nowhere below the other."
    )
    return Chart("dominance", "Does X dominate Y?", one(*above, *below), legend, caption)
