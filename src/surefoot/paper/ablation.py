"""The appendix's ablation: final temperature against step size of the paper's proximal loss.

A cell runs at most the paper's 100 JKO steps of the entropic transport on every trial, all cells
on the same trials. A trial has converged when its flow is at equilibrium and its last proximal
step was solved; a cell with one trial that has not is marked, and takes part in no claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.core import stats
from surefoot.core.stats import Interval
from surefoot.errors import InputError, at_least
from surefoot.paper import fitting
from surefoot.paper.claims import Claim, Finding, graded
from surefoot.paper.experiment import Columns, Experiment, Tables, by_cells
from surefoot.paper.fitting import draw_trials, paper_mixture
from surefoot.plots import heatmap, label, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLERANCE = 2e-4  # of the data's range: far below any error shown
MARGIN = 0.1  # share of the sampling error, as in the regression experiment
NAMES = {1: "First moment", 2: "Second moment"}


@dataclass(frozen=True)
class AblationConfig:
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
        at_least(3, trials=self.trials)  # the paired tests need so many
        at_least(2, particles=self.particles)
        at_least(1, steps=self.steps)
        for name in ("temperatures", "step_sizes"):
            values = getattr(self, name)
            if not values or min(values) <= 0 or len(set(values)) < len(values):
                raise InputError(f"{name} = {values}: they must be different positive numbers")

    def cells(self) -> list[AblationCell]:
        return [AblationCell(t, h) for t in (0.0, *self.temperatures) for h in self.step_sizes]

    def sampling_error(self, moment: int) -> float:
        return paper_mixture(self.components).standard_error(moment, self.particles)


class AblationCell(NamedTuple):
    """A point of the grid; temperature 0 is the transport without entropy."""

    temperature: float
    step_size: float

    @property
    def name(self) -> str:
        return f"temperature-{self.temperature:g}-h-{self.step_size:g}"


PAPERS = AblationCell(0.25, 1.0)  # the paper's choice


def compute_cell(job: tuple[AblationConfig, AblationCell]) -> dict[str, Columns]:
    """One row per trial."""
    config, cell = job
    mixture = paper_mixture(config.components)
    trials = draw_trials(mixture, config.seed, config.trials, config.particles)
    fit = fitting.fit_flow(
        trials,
        "sinkhorn" if cell.temperature else "exact",
        step_size=cell.step_size,
        steps=config.steps,
        tolerance=TOLERANCE,
        max_iterations=300,
        double=config.double,
        temperatures=(cell.temperature or 1.0,),
    )
    estimate, sample = fitting.moments(fit.z), fitting.moments(trials.target_z)
    columns = {
        "trial": np.arange(config.trials),
        **{f"error_{k + 1}": estimate[:, k] - trials.truth[:, k] for k in range(2)},
        **{f"shift_{k + 1}": estimate[:, k] - sample[:, k] for k in range(2)},
        **{name: getattr(fit, name) for name in fit._fields if name != "z"},
    }
    return {cell.name: columns}


@dataclass(frozen=True)
class AblationResults:
    """The columns of every cell, and their numbers."""

    config: AblationConfig
    columns: Mapping[AblationCell, Mapping[str, np.ndarray]]

    @classmethod
    def read(cls, config: AblationConfig, tables: Tables) -> AblationResults:
        return cls(config, {cell: tables[cell.name] for cell in config.cells()})

    @cached_property
    def cells(self) -> dict[AblationCell, dict[str, Any]]:
        return {cell: _numbers(cell, columns) for cell, columns in self.columns.items()}

    @property
    def settled(self) -> dict[AblationCell, dict[str, Any]]:
        """The cells in which every trial came to its equilibrium: all that is claimed about."""
        return {c: numbers for c, numbers in self.cells.items() if numbers["at_equilibrium"]}

    def summary(self) -> dict[str, Any]:
        return {"cells": list(self.cells.values())}


def _numbers(cell: AblationCell, columns: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Without convergence they say where the flow was stopped."""
    numbers = {
        **cell._asdict(),
        "converged": int(columns["converged"].sum()),
        "trials": len(columns["trial"]),
        "at_equilibrium": bool(columns["converged"].all()),
        "distance_left": stats.mean_interval(columns["distance_left"]),
        "mean_steps": columns["steps"].mean(),
        "mean_iterations": columns["iterations"].mean(),
        "most_iterations": columns["iterations"].max(),
        "unsolved_steps": int(columns["unsolved"].sum()),
    }
    for k in (1, 2):
        numbers[f"rmse_{k}"] = fitting.rmse(columns[f"error_{k}"])
        numbers[f"shift_{k}"] = stats.mean_interval(columns[f"shift_{k}"])
        numbers[f"rms_shift_{k}"] = fitting.rmse(columns[f"shift_{k}"])
    return numbers


# --- the claims --------------------------------------------------------------------------


def verdicts(results: AblationResults) -> list[Claim]:
    return [parameters_claim(results), cold_claim(results), small_step_claim(results)]


def parameters_claim(results: AblationResults) -> Claim:
    """Is the paper's cell as good as the best one? Equivalence of absolute errors, paired."""
    name, where = "ablation/parameters", "appendix, ablation study"
    paper = "Ablations informed the parameters of the proximal loss: temperature 0.25, h = 1"
    settled = results.settled
    if PAPERS not in settled:
        reason = "The paper's cell is not in this grid or did not converge"
        return Claim(name, where, paper, "nothing", "not testable", reason)
    equal, best_cells = [], []
    intervals: dict[str, Interval] = {}
    for k in (1, 2):
        best = min(settled, key=lambda cell: settled[cell][f"rmse_{k}"].mean)
        mine, other = (np.abs(results.columns[cell][f"error_{k}"]) for cell in (PAPERS, best))
        margin = MARGIN * results.config.sampling_error(k)
        equal.append(stats.equivalence(mine, other, margin, paired=True).equivalent)
        best_cells.append(f"temperature {best.temperature:g}, h = {best.step_size:g}")
        intervals[f"{NAMES[k].lower()}, RMSE of the paper's cell"] = settled[PAPERS][f"rmse_{k}"]
        intervals[f"{NAMES[k].lower()}, lowest RMSE"] = settled[best][f"rmse_{k}"]
    return Claim(
        name, where, paper,
        f"The lowest errors are at {best_cells[0]} (first moment) and {best_cells[1]} (second "
        "moment)",
        graded(equal),
        f"Absolute errors of the paper's cell against the best cell, paired: equivalent within "
        f"{MARGIN:.0%} of the sampling error in {sum(equal)} of 2 moments",
        intervals,
    )  # fmt: skip


def cold_claim(results: AblationResults) -> Claim:
    """Theorem 1: without entropy the step leaves the solution where it is."""
    name, where = "ablation/cold-limit", "4.4, theorem 1"
    paper = "Annealed to zero temperature, the proximal step leaves the solution where it is"
    line = [c for c in results.settled if c.step_size == PAPERS.step_size and c.temperature > 0]
    if len(line) < 2:
        reason = "Needs two temperatures with h = 1 that converge"
        return Claim(name, where, paper, "nothing", "not testable", reason)
    shift = {cell: results.settled[cell]["shift_2"] for cell in line}
    cold, hot = line[0], line[-1]
    margin = MARGIN * results.config.sampling_error(2)
    fits = max(abs(shift[cold].low), abs(shift[cold].high)) < margin
    falls = _more_shift(results, hot, cold) == 1
    return Claim(
        name, where, paper,
        "Second moment of the particles minus that of the sample they were fitted to, h = 1",
        graded([fits, falls]),
        f"The shift at the lowest temperature lies {'within' if fits else 'outside'} "
        f"{MARGIN:.0%} of the sampling error and is{'' if falls else ' not'} smaller than at the "
        "highest",
        {f"temperature {cell.temperature:g}": shift[cell] for cell in line},
    )  # fmt: skip


def small_step_claim(results: AblationResults) -> Claim:
    """Does a smaller h come closer? Not with entropy: it weighs temperature / h at equilibrium."""
    name, where = "ablation/small-steps", "4.4"
    paper = "As h goes to 0 the discrete solution goes to that of the gradient flow"
    line = [c for c in results.settled if c.temperature == PAPERS.temperature]
    bare = [numbers for c, numbers in results.settled.items() if c.temperature == 0]
    if len(line) < 2 or not bare:
        reason = "Needs two step sizes at temperature 0.25 that converge, and one without entropy"
        return Claim(name, where, paper, "nothing", "not testable", reason)
    reasons: dict[int, tuple[Finding, str]] = {
        1: ("partly", "Holds without entropy, where the theory stands. The entropic step's "
            "equilibrium minimises F(z) + W(z, z) / (4 h): at a fixed temperature a smaller h "
            "shrinks the particles more"),
        0: ("not testable", "These trials do not tell whether the shift grows or falls with h"),
        -1: ("reproduced", "The shift falls with h"),
    }  # fmt: skip
    worst = max(abs(numbers["shift_2"].mean) for numbers in bare)
    return Claim(
        name, where, paper,
        "Second moment of the particles minus that of the sample, at equilibrium; without "
        f"entropy it is at most {worst:.1g} at any h that converges, the tolerance of the fit",
        *reasons[_more_shift(results, line[0], line[-1])],
        {f"temperature 0.25, h = {c.step_size:g}": results.settled[c]["shift_2"] for c in line},
    )  # fmt: skip


def _more_shift(results: AblationResults, one: AblationCell, other: AblationCell) -> int:
    """1 if the second moment of `one` is farther from the sample's than that of `other`, -1 if it
    is nearer, 0 if a paired test on the common trials cannot tell."""
    x, y = (np.abs(results.columns[cell]["shift_2"]) for cell in (one, other))
    apart = stats.paired_difference(x, y)
    return int(np.sign(apart.interval.mean)) if apart.p_value < 0.05 else 0


# --- the figure --------------------------------------------------------------------------


def figures(results: AblationResults) -> dict[str, Figure]:
    """Above: error against the distribution. Below: what the transport itself adds to it."""
    config, cells = results.config, list(results.cells.values())
    title = f"Final temperature and step size, {config.particles} particles, {config.trials} trials"
    figure, axes = new_figure(2, 2, size=(12.5, 11), title=title)
    shape = 1 + len(config.temperatures), len(config.step_sizes)
    stopped = np.array([not c["at_equilibrium"] for c in cells]).reshape(shape)
    rows = ["exact", *(f"{t:g}" for t in config.temperatures)]
    columns = [f"{h:g}" for h in config.step_sizes]
    kinds = (
        ("rmse", "error (RMSE)", "RMSE"),
        ("rms_shift", "shift from the sample", "distance from the sample's moment (RMS)"),
    )
    for row, (kind, title, text) in enumerate(kinds):
        for k in (1, 2):
            ax, values = axes[row, k - 1], [c[f"{kind}_{k}"] for c in cells]
            mean = np.array([max(v.mean, 1e-12) for v in values])  # a log scale's floor
            half = np.array([v.half_width for v in values])
            heatmap(
                ax, mean.reshape(shape), rows, columns, half_width=half.reshape(shape),
                marked=stopped, label=text, log=row == 1,
                marked_label=f"some trial not at equilibrium after {config.steps} steps",
            )  # fmt: skip
            label(ax, x="step size h", y="final temperature")
            # The legend of the hatching stands below it.
            ax.set_title(f"{NAMES[k]}: {title}", loc="left", pad=22)
    return {"ablation": figure}


EXPERIMENT = Experiment(
    "ablation",
    AblationConfig,
    by_cells(compute_cell, "ablation"),
    AblationResults.read,
    AblationResults.summary,
    verdicts,
    figures,
)
run = EXPERIMENT.run
