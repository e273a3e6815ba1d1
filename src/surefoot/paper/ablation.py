"""The appendix's ablation: final temperature against step size of the paper's proximal loss.

A cell runs at most the paper's 100 JKO steps of the entropic transport on every trial, all cells
on the same trials. A trial has converged when its flow is at equilibrium and its last proximal
step was solved; a cell with one trial that has not is marked, and takes part in no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot import plots as plotting
from surefoot.core import stats
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper import fitting
from surefoot.paper.claims import Claim, Verdict, read_claims, write_claims
from surefoot.paper.mixture import draw_trials, paper_mixture
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.progress import progress

if TYPE_CHECKING:
    import polars

CHOSEN = (0.25, 1.0)  # the paper's temperature and step size
TOLERANCE = 2e-4  # of the data's range: far below any error shown
MARGIN = 0.1  # share of the sampling error, as in the regression experiment
NAMES = {1: "First moment", 2: "Second moment"}


@dataclass(frozen=True)
class Config:
    """Temperature and step size of the proximal loss (appendix, ablation study)."""

    trials: int = 50
    """Independent trials; every cell runs on the same ones."""
    seed: int = 0
    """Decides all data and initial particles."""
    temperatures: tuple[float, ...] = (0.01, 0.1, 0.2, 0.25, 0.5, 0.9)
    """Final temperatures. The transport without entropy is always run beside them."""
    step_sizes: tuple[float, ...] = (0.01, 0.1, 0.5, 1.0, 10.0)
    """JKO time steps h."""
    particles: int = 50
    """Particles, and samples they are fitted to."""
    components: int = 5
    """How many of the paper's six mixture components."""
    steps: int = 100
    """At most so many JKO steps; a trial stops at its equilibrium."""
    double: bool = False
    """Compute in float64: slower, and the same to the digits shown."""

    def __post_init__(self) -> None:
        if self.trials < 3:
            raise InputError(f"trials = {self.trials}: the paired tests need at least 3")
        if self.particles < 2 or self.steps < 1:
            raise InputError("particles must be at least 2 and steps at least 1")
        for name in ("temperatures", "step_sizes"):
            values = getattr(self, name)
            if not values or min(values) <= 0 or len(set(values)) < len(values):
                raise InputError(f"{name} = {values}: give different positive numbers")


def run(config: Config, out: Path, existing: Existing = "error") -> list[Claim]:
    """Run the experiment into the directory `out` and give its claims."""
    store = RunDir.create(
        out, config, kind="ablation", seeds={"seed": config.seed}, existing=existing
    )
    if store.complete:
        return list(read_claims(store))
    if not store.has_table():
        store.write_table(measure(config), metadata={"temperature": "0 is the exact transport"})
    table = store.read_table()
    cells = [summarise(part) for part in _cells(table, config)]
    claims = [chosen_claim(table, cells, config), cold_claim(table, cells, config)]
    claims.append(small_step_claim(table, cells))
    plotting.save_figure(heat_maps(cells, config), store, "ablation")
    store.write_summary({"cells": cells})
    write_claims(store, claims)
    store.mark_complete()
    return claims


def rows(config: Config) -> tuple[float, ...]:
    """Temperatures of the table's rows; 0 is the transport without entropy."""
    return (0.0, *config.temperatures)


def measure(config: Config) -> polars.DataFrame:
    """One row per temperature, step size and trial."""
    import polars as pl

    mixture = paper_mixture(config.components)
    trials = draw_trials(mixture, config.seed, config.trials, config.particles)
    sample, count = fitting.moments(trials.target_z), config.trials
    grid = [(t, h) for t in rows(config) for h in config.step_sizes]
    tables = []
    with progress(len(grid), "ablation", "cells") as task:
        for temperature, step_size in grid:
            task.note(f"temperature {temperature:g}, step size {step_size:g}")
            found = fitting.fit_flow(
                trials,
                "sinkhorn" if temperature else "exact",
                step_size=step_size,
                steps=config.steps,
                tolerance=TOLERANCE,
                max_iterations=300,
                double=config.double,
                temperatures=(temperature,) if temperature else (1.0,),
            )
            estimate = fitting.moments(found.z)
            columns = {
                "temperature": np.full(count, temperature),
                "step_size": np.full(count, step_size),
                "trial": np.arange(count),
                **{f"error_{k + 1}": estimate[:, k] - trials.truth[:, k] for k in range(2)},
                **{f"shift_{k + 1}": estimate[:, k] - sample[:, k] for k in range(2)},
                **{name: getattr(found, name) for name in found._fields if name != "z"},
            }
            tables.append(pl.DataFrame(columns))
            task.advance()
    return pl.concat(tables)


def _cells(table: Any, config: Config) -> list[Any]:
    return [_cell(table, t, h) for t in rows(config) for h in config.step_sizes]


def _cell(table: Any, temperature: float, step_size: float) -> polars.DataFrame:
    here = (table["temperature"] == temperature) & (table["step_size"] == step_size)
    return table.filter(here).sort("trial")


def summarise(part: Any) -> dict[str, Any]:
    """The numbers of one cell. Without convergence they say where the flow was stopped."""
    cell = {
        "temperature": part["temperature"][0],
        "step_size": part["step_size"][0],
        "converged": int(part["converged"].sum()),
        "trials": len(part),
        "at_equilibrium": bool(part["converged"].all()),
        "distance_left": stats.mean_interval(part["distance_left"].to_numpy()),
        "mean_steps": part["steps"].mean(),
        "mean_iterations": part["iterations"].mean(),
        "most_iterations": part["iterations"].max(),
        "unsolved_steps": int(part["unsolved"].sum()),
    }
    for k in (1, 2):
        cell[f"rmse_{k}"] = fitting.rmse(part[f"error_{k}"].to_numpy())
        cell[f"shift_{k}"] = stats.mean_interval(part[f"shift_{k}"].to_numpy())
        cell[f"rms_shift_{k}"] = fitting.rmse(part[f"shift_{k}"].to_numpy())
    return cell


# --- the claims --------------------------------------------------------------------------


def chosen_claim(table: Any, cells: Sequence[dict], config: Config) -> Claim:
    """Is the paper's cell as good as the best one? Equivalence of absolute errors, paired."""
    name, where = "ablation/parameters", "appendix, ablation study"
    paper = "Ablations informed the parameters of the proximal loss: temperature 0.25, h = 1"
    settled = [c for c in cells if c["at_equilibrium"]]
    ours = [c for c in settled if (c["temperature"], c["step_size"]) == CHOSEN]
    if not ours:
        reason = "The paper's cell is not in this grid or did not converge"
        return Claim(name, where, paper, "nothing", "not testable", reason)
    mixture, equal, told = paper_mixture(config.components), [], []
    intervals: dict[str, Interval] = {}
    for k in (1, 2):
        best = min(settled, key=lambda c: c[f"rmse_{k}"].mean)
        other = _cell(table, best["temperature"], best["step_size"])[f"error_{k}"].to_numpy()
        mine = _cell(table, *CHOSEN)[f"error_{k}"].to_numpy()
        margin = MARGIN * mixture.standard_error(k, config.particles)
        same = stats.equivalence(np.abs(mine), np.abs(other), margin, paired=True)
        equal.append(same.equivalent)
        told.append(f"temperature {best['temperature']:g}, h = {best['step_size']:g}")
        intervals[f"{NAMES[k].lower()}, RMSE of the paper's cell"] = ours[0][f"rmse_{k}"]
        intervals[f"{NAMES[k].lower()}, lowest RMSE"] = best[f"rmse_{k}"]
    return Claim(
        name, where, paper,
        f"The lowest errors are at {told[0]} (first moment) and {told[1]} (second moment)",
        "reproduced" if all(equal) else "partly" if any(equal) else "not reproduced",
        f"Absolute errors of the paper's cell against the best cell, paired: equivalent within "
        f"{MARGIN:.0%} of the sampling error in {sum(equal)} of 2 moments",
        intervals,
    )  # fmt: skip


def cold_claim(table: Any, cells: Sequence[dict], config: Config) -> Claim:
    """Theorem 1: without entropy the step leaves the solution where it is."""
    paper = "Annealed to zero temperature, the proximal step leaves the solution where it is"
    line = [c for c in cells if c["step_size"] == CHOSEN[1] and c["at_equilibrium"]]
    line = [c for c in line if c["temperature"] > 0]
    if len(line) < 2:
        reason = "Needs two temperatures with h = 1 that converge"
        return Claim("ablation/cold-limit", "4.4, theorem 1", paper, "nothing", "not testable",
                     reason)  # fmt: skip
    cold, hot = line[0], line[-1]
    margin = MARGIN * paper_mixture(config.components).standard_error(2, config.particles)
    fits = max(abs(cold["shift_2"].low), abs(cold["shift_2"].high)) < margin
    falls = _more_shift(table, hot, cold) == 1
    return Claim(
        "ablation/cold-limit", "4.4, theorem 1", paper,
        "Second moment of the particles minus that of the sample they were fitted to, h = 1",
        "reproduced" if fits and falls else "partly" if fits or falls else "not reproduced",
        f"The shift at the lowest temperature lies {'within' if fits else 'outside'} "
        f"{MARGIN:.0%} of the sampling error and is{'' if falls else ' not'} smaller than at the "
        "highest",
        {f"temperature {c['temperature']:g}": c["shift_2"] for c in line},
    )  # fmt: skip


def small_step_claim(table: Any, cells: Sequence[dict]) -> Claim:
    """Does a smaller h come closer? Not with entropy: it weighs temperature / h at equilibrium."""
    name, where = "ablation/small-steps", "4.4"
    paper = "As h goes to 0 the discrete solution goes to that of the gradient flow"
    settled = [c for c in cells if c["at_equilibrium"]]
    line = [c for c in settled if c["temperature"] == CHOSEN[0]]
    bare = [c for c in settled if c["temperature"] == 0]
    if len(line) < 2 or not bare:
        reason = "Needs two step sizes at temperature 0.25 that converge, and one without entropy"
        return Claim(name, where, paper, "nothing", "not testable", reason)
    small, large = line[0], line[-1]
    way = _more_shift(table, small, large)
    verdicts: dict[int, tuple[Verdict, str]] = {
        1: ("partly", "Holds without entropy, where the theory stands. The entropic step's "
            "equilibrium minimises F(z) + W(z, z) / (4 h): at a fixed temperature a smaller h "
            "shrinks the particles more"),
        0: ("not testable", "These trials do not tell whether the shift grows or falls with h"),
        -1: ("reproduced", "The shift falls with h"),
    }  # fmt: skip
    worst = max(abs(c["shift_2"].mean) for c in bare)
    shown = {f"temperature 0.25, h = {c['step_size']:g}": c["shift_2"] for c in line}
    return Claim(
        name, where, paper,
        "Second moment of the particles minus that of the sample, at equilibrium; without "
        f"entropy it is at most {worst:.1g} at any h that converges, the tolerance of the fit",
        *verdicts[way],
        shown,
    )  # fmt: skip


def _more_shift(table: Any, one: dict, other: dict) -> int:
    """1 if the second moment of `one` is farther from the sample's than that of `other`, -1 if it
    is nearer, 0 if a paired test on the common trials cannot tell."""
    x, y = (
        np.abs(_cell(table, cell["temperature"], cell["step_size"])["shift_2"].to_numpy())
        for cell in (one, other)
    )
    found = stats.paired_difference(x, y)
    return int(np.sign(found.interval.mean)) if found.p_value < 0.05 else 0


# --- the figure --------------------------------------------------------------------------


def heat_maps(cells: Sequence[dict], config: Config) -> Any:
    """Above: error against the distribution. Below: what the transport itself adds to it."""
    figure, axes = plotting.new_figure(
        2, 2, size=(12.5, 11),
        title=f"Final temperature and step size, {config.particles} particles, "
        f"{config.trials} trials",
    )  # fmt: skip
    shape = len(rows(config)), len(config.step_sizes)
    stopped = np.array([not c["at_equilibrium"] for c in cells]).reshape(shape)
    labels = ["exact", *(f"{t:g}" for t in config.temperatures)]
    kinds = {"rmse": "RMSE", "rms_shift": "distance from the sample's moment (RMS)"}
    for (row, (kind, told)), k in [(each, k) for each in enumerate(kinds.items()) for k in (1, 2)]:
        ax = axes[row, k - 1]
        values = [c[f"{kind}_{k}"] for c in cells]
        mean = np.array([max(v.mean, 1e-12) for v in values]).reshape(shape)  # a log scale's floor
        half = np.array([v.half_width for v in values]).reshape(shape)
        plotting.heatmap(
            ax, mean, labels, [f"{h:g}" for h in config.step_sizes], half_width=half,
            marked=stopped, label=told, log=row == 1,
            marked_label=f"some trial not at equilibrium after {config.steps} steps",
        )  # fmt: skip
        ax.set_xlabel("step size h")
        ax.set_ylabel("final temperature")
        title = f"{NAMES[k]}: {'error (RMSE)' if row == 0 else 'shift from the sample'}"
        ax.set_title(title, loc="left", pad=22)  # the legend of the hatching stands below it
        _calm(ax)
    return figure


def _calm(ax: Any) -> None:
    """Where all cells agree within a tenth, one colour: colours must not magnify rounding."""
    for image in ax.images:
        low, high = image.norm.vmin, image.norm.vmax
        if high < 1.1 * low:
            image.set_clim(low / 1.5, high * 1.5)
            for text in ax.texts:
                if text.get_bbox_patch() is None:  # a hatched cell keeps its dark numbers
                    text.set_color("white")
