"""A comparison on a page: what dominates what, what the sample supports, and the curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surefoot.comparison.words import ORDER_TITLES
from surefoot.core.particles import cumulative_quantile
from surefoot.plots.comparison import dispersion_above
from surefoot.plots.styles import Style
from surefoot.report.charts import axes, keys, line, looks_of, step_cdf
from surefoot.report.parts import Badge, Cell, Chart, Note, Panel, Part, Table, one

MOST = 24  # curves that can still be told apart with a legend that hides them
POINTS = 400
Samples = Mapping[str, np.ndarray]
RELATIONS = {
    "dominates": "a dominates b", "dominated": "b dominates a", "neither": "neither dominates",
    "equal": "equal", "undecided": "undecided",
}  # fmt: skip


def comparison_parts(told: Mapping[str, Any], returns: Samples | None) -> list[Part]:
    """From `Comparison.to_dict` and, where they are to be had, the returns themselves."""
    parts: list[Part] = [_overview(told)]
    parts += [Note(f"{note}.", "warning") for note in told["notes"]]
    parts += [_summaries(told), _curves(told, returns)]
    parts += [_pairs(told, order) for order in (2, 1)]
    parts.append(Note(_method(told), "quiet"))
    return parts


def _overview(told: Mapping[str, Any]) -> Table:
    rows = []
    for order in ("2", "1"):
        sets = told["orders"][order]
        cells = [
            ", ".join(sets[n]) or "none" for n in ("dominant", "supported_dominant", "efficient")
        ]
        rows.append((ORDER_TITLES[int(order)], *cells))
    header = ("order", "dominates every other", "supported by the sample", "dominated by none")
    return Table(header, tuple(rows), "Which columns are left to choose from")


def _summaries(told: Mapping[str, Any]) -> Table:
    levels = list(told["levels"])
    header = (
        "column",
        "n",
        "mean",
        "deviation",
        "worst",
        "CVaR 5 %",
        "CVaR 25 %",
        "median",
        "best",
    )
    rows = []
    for s in told["summaries"]:
        tail = [s["cvar_curve"][levels.index(level)] for level in (0.05, 0.25)]
        values = (s["mean"], s["deviation"], s["worst"], *tail, s["median"], s["best"])
        rows.append((s["name"], f"{s['n']:,}", *(f"{value:.4g}" for value in values)))
    return Table(header, tuple(rows), "Each column on its own, in the unit of the returns", True)


def _pairs(told: Mapping[str, Any], order: int) -> Table:
    header = ["a", "b", "sample shows", "sample supports", "p (a dominates)", "after Holm"]
    header += ["shortfall", "almost-SSD ratio"] if order == 2 else []
    rows = []
    for v in told["verdicts"]:
        if v["order"] != order:
            continue
        cells: list[Cell] = [
            v["a"],
            v["b"],
            RELATIONS.get(v["relation"], v["relation"]),
            Badge(RELATIONS.get(v["finding"], v["finding"]), _tone(v["finding"])),
            f"{v['test']['p_value']:.3g}",
            f"{v['adjusted_p']:.3g}",
        ]
        if order == 2:
            cells += [f"{v['violation']:.4g}", f"{v['almost_ratio']:.3g}"]
        rows.append(tuple(cells))
    return Table(tuple(header), tuple(rows), ORDER_TITLES[order])


def _tone(finding: str) -> str:
    """From the side of a."""
    tones = {"dominates": "good", "dominated": "bad", "undecided": "half"}
    return tones.get(finding, "none")


def _method(told: Mapping[str, Any]) -> str:
    paired = ", rows paired" if told["paired"] else ""
    return (
        "The p-values test the hypothesis that a dominates b (Barrett and Donald, 2003, recentred "
        f"bootstrap, {told['resamples']:,} resamples, seed {told['seed']}{paired}): a small one "
        "says that a does not. A dominance is supported where the reverse is rejected at level "
        f"{told['level']:g} after Holm's correction over all ordered pairs and it is not itself. "
        f"Tolerance {told['tolerance']:g}."
    )


# --- the curves --------------------------------------------------------------------------


def _curves(told: Mapping[str, Any], returns: Samples | None) -> Chart:
    samples = {n: np.sort(z) for n, z in returns.items()} if returns else _rebuilt(told)
    names = _shown(told, [n for n in samples if len(samples[n])])
    samples, looks = {n: samples[n] for n in names}, looks_of(names)
    panels = [build(samples, looks) for build in (_cdf, _dominance, _tail, _dispersion)]
    caption = "Click a name to hide it."
    if len(names) < len(told["summaries"]):
        caption += (
            f" Drawn are {len(names)} of {len(told['summaries'])}: the efficient and best ones."
        )
    if not returns:
        caption += " The returns are not here: the curves are drawn from the stored percentiles."
    return Chart("comparison", "Distributions compared", one(*panels), keys(names, looks), caption,
                 width=480)  # fmt: skip


def _rebuilt(told: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A hundred values whose F^-2 is that of the column at every percentile."""
    return {
        s["name"]: len(s["cumulative_quantile"])
        * np.diff(np.concatenate([[0.0], s["cumulative_quantile"]]))
        for s in told["summaries"]
    }


def _shown(told: Mapping[str, Any], names: list[str]) -> list[str]:
    if len(names) <= MOST:
        return names
    efficient = set(told["orders"]["2"]["efficient"])
    means = {s["name"]: s["mean"] for s in told["summaries"]}
    best = sorted(names, key=lambda name: (name not in efficient, -means[name]))
    return [name for name in names if name in set(best[:MOST])]


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    at = np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))  # ends are kept
    return x[at], y[at]


def _cdf(samples: Samples, looks: dict[str, Style]) -> Panel:
    low = min(float(z[0]) for z in samples.values())
    high = max(float(z[-1]) for z in samples.values())
    traces = tuple(
        line(*_thinned(*step_cdf(z, low, high)), name, looks[name], step=True)
        for name, z in samples.items()
    )
    title = "Distribution: to the right is better"
    return Panel(title, traces, axes("return x", "share of returns ≤ x"), 340)


def _dominance(samples: Samples, looks: dict[str, Style]) -> Panel:
    tau = np.linspace(0, 1, POINTS // 2 + 1)
    curves = {
        n: np.asarray(cumulative_quantile(z, tau, assume_sorted=True)) for n, z in samples.items()
    }
    highest = np.max(list(curves.values()), axis=0)
    traces = tuple(line(tau, c - highest, n, looks[n]) for n, c in curves.items())
    title = "Second order: flat at 0 all along dominates"
    labels = axes("share of outcomes τ, worst first", "F⁻²(τ) below the highest")
    return Panel(title, traces, labels, 340)


def _tail(samples: Samples, looks: dict[str, Style]) -> Panel:
    tau = np.linspace(0, 1, POINTS // 2 + 1)[1:]
    traces = tuple(
        line(tau, np.asarray(cumulative_quantile(z, tau, assume_sorted=True)) / tau, n, looks[n])
        for n, z in samples.items()
    )
    labels = axes("share of outcomes τ, worst first", "mean of the worst share τ (return)")
    return Panel("CVaR: at 1 it is the mean", traces, labels, 340)


def _dispersion(samples: Samples, looks: dict[str, Style]) -> Panel:
    low = min(float(z[0]) for z in samples.values())
    high = max(float(z[-1]) for z in samples.values())
    alpha = np.linspace(low, high, POINTS // 2)
    above: Callable[..., Any] = dispersion_above
    traces = tuple(line(alpha, above(z, alpha), n, looks[n]) for n, z in samples.items())
    title = "Dispersion: area = half the variance"
    return Panel(title, traces, axes("return x", "F⁽²⁾(x) above its asymptotes"), 340)
