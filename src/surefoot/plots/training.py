"""The figures of training runs and of sweeps, from the columns of their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.core.bootstrap import bootstrap_interval, performance_profile
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.plots.figures import label, legend, legend_below, new_figure
from surefoot.plots.marks import POINTS, band, curve, intervals, thin
from surefoot.plots.styles import AUTHORITIES, BLUE, VERMILION, Style, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRAINING, EVALUATION = Style(BLUE, "o", "-"), Style(VERMILION, "s", "--")
STEPS = "environment steps"
MOST_CURVES = 12  # that a reader can still tell apart
MOST_PANELS = 6
DOTS = 0.7  # opacity: a contrast of 3 on white, and more on a dark page
# What a training looked like from within: column of episodes.csv, title, axis, factor.
WITHIN = {
    "explore": ("Exploration", "probability of a random action", 1),
    "grad_norm": ("Gradient", "norm before clipping", 1),
    "estimate": ("Estimates", "mean return expected", 1),
    "spread": ("Spread", "standard deviation of returns", 1),
    "dominance": ("Dominance", "share of bootstrap actions (%)", 100),
}
# What a cell of a sweep's summary holds besides its place in the grid.
MEASURES = ("seeds", "failed", "mean", "low", "high", "cvar_0.25", "training_return")


def draw_learning(
    episodes: Mapping[str, ArrayLike], evaluations: Mapping[str, ArrayLike] | None = None
) -> Figure:
    """Return, length and loss while learning, of the columns of episodes.csv.

    Dots are single episodes, the line their moving average. `evaluations` are the columns of
    evaluations.csv: their mean, and as a band the range of the episodes of each evaluation.
    """
    panels = {"return": "return per episode", "length": "steps per episode",
              "loss": "loss of the last update"}  # fmt: skip
    data = {k: np.asarray(v, dtype=float) for k, v in episodes.items() if k in (*panels, "step")}
    names = [n for n in panels if n in data and np.isfinite(data[n]).any()]
    if "step" not in data or not names:
        raise InputError("a learning curve needs the columns step and return of finished episodes")
    figure, axes = new_figure(1, len(names), size=(5.0 * len(names), 3.8))
    for ax, name in zip(np.ravel(axes), names, strict=True):
        _episodes(ax, data["step"], data[name])
        if name == "return" and evaluations:
            _evaluations(ax, evaluations)
        label(ax, name.capitalize(), STEPS, panels[name])
    _say_window(figure, len(data["step"]))
    if evaluations:
        legend_below(figure, np.ravel(axes)[0])
    return figure


def draw_within(
    episodes: Mapping[str, ArrayLike], speed: Mapping[str, ArrayLike] | None = None
) -> Figure | None:
    """What a network said of its own training, of the columns of episodes.csv, and how fast it
    went, of those of speed.csv; None where there is neither."""
    panels = []
    for name, (title, axis, factor) in WITHIN.items():
        values = factor * np.asarray(episodes.get(name, ()), dtype=float)
        if np.isfinite(values).any():
            panels.append((title, axis, np.asarray(episodes["step"], dtype=float), values))
    if speed is not None and len(np.ravel(speed["step"])):
        step, pace = (np.asarray(speed[name], dtype=float) for name in ("step", "steps_per_second"))
        panels.append(("Speed", "steps per second", step, pace))
    if not panels:
        return None
    across = min(3, len(panels))
    rows = -(-len(panels) // across)
    figure, axes = new_figure(rows, across, size=(5.0 * across, 3.6 * rows))
    for ax in np.ravel(axes)[len(panels) :]:
        ax.set_visible(False)
    for ax, (title, axis, step, values) in zip(np.ravel(axes), panels, strict=False):
        _episodes(ax, step, values)
        label(ax, title, STEPS, axis)
    if len(panels) > 1:
        _say_window(figure, len(np.ravel(episodes["step"])))
    return figure


def _say_window(figure: Figure, count: int) -> None:
    figure.suptitle(f"{count:,} episodes (dots), mean of {_window(count)} (line)", fontsize=10)


def _episodes(ax: Axes, step: np.ndarray, values: np.ndarray) -> None:
    fine = np.isfinite(values)
    x, y, width = step[fine], values[fine], _window(int(fine.sum()))
    at = thin(len(x), 800)
    ax.plot(x[at], y[at], ".", color=BLUE, markersize=3.5, alpha=DOTS)
    mean = moving_mean(y, width)
    at = thin(len(mean))
    curve(ax, x[width - 1 :][at], mean[at], "training", TRAINING)
    low, high = np.percentile(y, [3, 97])
    if np.ptp(y) > 3 * (high - low) > 0:  # a few wild episodes must not flatten all others
        air = 0.25 * (high - low)
        ax.set_ylim(low - air, high + air)


def _evaluations(ax: Axes, table: Mapping[str, ArrayLike]) -> None:
    step, returns = (np.asarray(table[name], dtype=float) for name in ("step", "return"))
    at = np.unique(step)
    groups = [returns[step == each] for each in at]
    mean, low, high = (np.array([f(g) for g in groups]) for f in (np.mean, np.min, np.max))
    band(ax, at, mean, low, high, "evaluation (mean and range)", look=EVALUATION)


def _window(count: int) -> int:
    return max(1, min(100, count // 20))


def moving_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Over the last axis: `[..., n - width + 1]`."""
    total = np.cumsum(np.pad(values, [(0, 0)] * (values.ndim - 1) + [(1, 0)]), axis=-1)
    width = min(width, values.shape[-1])
    return (total[..., width:] - total[..., :-width]) / width


def draw_authorities(episodes: Mapping[str, ArrayLike]) -> Figure | None:
    """Who chose the actions over time, of the columns `by_*` of episodes.csv; None without them."""
    names = [name for name in AUTHORITIES if f"by_{name}" in episodes]
    if not names:
        return None
    counts = np.stack([np.asarray(episodes[f"by_{name}"], dtype=float) for name in names])
    width = _window(counts.shape[1])
    mean = moving_mean(counts, width)
    at = thin(mean.shape[1])
    share = 100 * mean[:, at] / np.maximum(mean[:, at].sum(0), 1e-12)
    figure, ax = new_figure(size=(8, 3.8))
    ax.stackplot(np.asarray(episodes["step"], dtype=float)[width - 1 :][at], share,
                 colors=[AUTHORITIES[name][0] for name in names], alpha=0.85,
                 labels=[name.replace("_", "-") for name in names])  # fmt: skip
    label(ax, f"Who decided, {width} episodes at a time", STEPS, "share of steps (%)")
    ax.set_ylim(0, 100)
    legend(ax, outside=True)
    return figure


def draw_watched(steps: ArrayLike, z: ArrayLike, actions: Sequence[str], title: str = "") -> Figure:
    """How each action's return distribution at one observation changed: `z[T, A, N]`.

    Line: mean; dark: the middle half of the particles; light: all of them.
    """
    steps, z = np.asarray(steps), np.sort(np.asarray(z, dtype=float), axis=-1)
    columns = min(len(actions), 4)
    rows = -(-len(actions) // columns)
    figure, axes = new_figure(rows, columns, size=(3.6 * columns, 3.2 * rows), sharey=True,
                              title=title or None)  # fmt: skip
    looks, levels = styles(actions), np.linspace(0, z.shape[2] - 1, 5).round().astype(int)
    for ax in np.ravel(axes)[len(actions) :]:
        ax.set_visible(False)
    for a, (ax, name) in enumerate(zip(np.ravel(axes), actions, strict=False)):
        own = z[:, a]
        ax.fill_between(steps, own[:, 0], own[:, -1], color=looks[name].color, alpha=0.16, lw=0)
        band(ax, steps, own.mean(-1), own[:, levels[1]], own[:, levels[3]], name, look=looks[name])
        label(ax, name, STEPS, "return" if a % columns == 0 else "")
    return figure


# --- sweeps ------------------------------------------------------------------------------


def cell_label(cell: Mapping[str, Any]) -> str:
    """What of the grid a cell stands for."""
    return ", ".join(f"{k} {v}" for k, v in cell.items() if k not in MEASURES) or "all trials"


def draw_sweep_cells(
    cells: Sequence[Mapping[str, Any]], values: Sequence[Sequence[float]] = ()
) -> Figure:
    """Return of every cell of a sweep's summary: evaluation, its worst quarter, while training;
    `values[cell]` are those of its seeds, a dot each."""
    rows = [cell for cell in cells if cell["mean"] is not None]
    dots = [own for cell, own in zip(cells, values, strict=False) if cell["mean"] is not None]
    if not rows:
        raise InputError("no trial of the sweep has a result yet")
    names = {"mean": "return of the evaluation", "cvar_0.25": "mean of the worst quarter",
             "training_return": "training"}  # fmt: skip
    figure, ax = new_figure(size=(9, 1.8 + 0.45 * len(rows)))
    groups = {name: [_cell_interval(row, key) for row in rows] for key, name in names.items()}
    intervals(ax, groups, [cell_label(row) for row in rows], across=True)
    lane = -0.8 / len(groups)  # that of the evaluation, the first of the groups
    for row, own in enumerate(dots):
        ax.plot(own, np.full(len(own), row + lane), "o", color=BLUE, markersize=4.5, alpha=DOTS,
                markeredgewidth=0, zorder=1, label="" if row else "a seed")  # fmt: skip
    seeds = sorted({int(row["seeds"]) for row in rows})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    label(ax, f"{count} seeds a cell; bars: 95 % bootstrap interval over seeds", "return")
    legend_below(figure, ax)
    return figure


def _cell_interval(row: Mapping[str, Any], key: str) -> Interval | None:
    value = row.get(key)
    if value is None:
        return None
    low, high = (row["low"], row["high"]) if key == "mean" else (None, None)
    bounded = low is not None and high is not None
    return Interval(value, low if bounded else value, high if bounded else value, row["seeds"])


def draw_sweep_profiles(values: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Performance profiles (Agarwal et al., 2021), a panel for each task: of each method the share
    of trainings that reach more than a return. `values[task][method]` has one value a seed."""
    tasks = list(values)[:MOST_PANELS]
    columns = min(len(tasks), 3)
    rows = -(-len(tasks) // columns)
    wide = 9 if columns == 1 else 4.6 * columns
    figure, axes = new_figure(rows, columns, size=(wide, 4.2 * rows))
    names = list(dict.fromkeys(name for task in tasks for name in values[task]))[:MOST_CURVES]
    looks, panels = styles(names), np.ravel(axes)
    for ax in panels[len(tasks) :]:
        ax.set_visible(False)
    for ax, task in zip(panels, tasks, strict=False):
        own = {name: values[task][name] for name in names if len(values[task].get(name, ())) > 1}
        every = np.concatenate([np.asarray(v, dtype=float) for v in own.values()] or [np.zeros(1)])
        air = 0.05 * float(np.ptp(every)) or 1.0
        at = np.linspace(every.min() - air, every.max() + air, POINTS)
        for name, scores in own.items():
            shares = performance_profile(scores, at)
            band(ax, at, 100 * shares.mean, 100 * shares.low, 100 * shares.high, name,
                 look=looks[name])  # fmt: skip
        label(ax, task or "To the right is better", "return", "share of trainings above it (%)")
    legend_below(figure, panels[0], 2)
    return figure


def draw_sweep_curves(curves: Mapping[str, Sequence[ArrayLike]]) -> Figure:
    """Evaluation return while learning: `curves[label]` are `[E, 2]` (step, return), one a seed."""
    figure, ax = new_figure(size=(9, 4.6))
    names = list(curves)[:MOST_CURVES]
    looks = styles(names)
    for name in names:
        own = [np.asarray(each, dtype=float).reshape(-1, 2) for each in curves[name]]
        own = [each for each in own if np.array_equal(each[:, 0], own[0][:, 0])]
        steps, values = own[0][:, 0], np.stack([each[:, 1] for each in own])
        mean = values.mean(0)
        shown = bootstrap_interval(values) if len(own) > 1 else Interval(mean, mean, mean, 1)
        band(ax, steps, mean, shown.low, shown.high, name, look=looks[name])
    more = f", the first {len(names)} of {len(curves)} cells" if len(curves) > len(names) else ""
    label(ax, f"Mean over seeds with 95 % interval{more}", STEPS, "evaluation return")
    legend_below(figure, ax, 2)
    return figure
