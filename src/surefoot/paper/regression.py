"""Section 5.1: do quantile regression and WGF regression estimate two moments equally well?

Each trial draws N samples of the mixture and fits N particles to them by every method, so that
methods are compared on the same data. The estimates are judged by the first two raw moments of
10^4 fresh samples of the same trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surefoot.errors import InputError, at_least
from surefoot.paper.experiment import Columns, Experiment, by_cells
from surefoot.paper.fitting import (
    Fit,
    Mixture,
    SampledTrials,
    draw_trials,
    fit_flow,
    fit_quantiles,
    moments,
    paper_mixture,
)
from surefoot.paper.regression_results import RegressionResults, figures, verdicts
from surefoot.transport import ANNEALING

METHODS = ("QR", "WGF exact", "WGF divergence", "WGF sinkhorn", "WGF three sweeps")
"""The last one is the paper's solver to the letter: three sweeps from zero potentials and up to
50 gradient steps; the others are solved to convergence."""


@dataclass(frozen=True)
class RegressionConfig:
    """Moments of a Gaussian mixture by quantile regression and by WGF (section 5.1)."""

    trials: int = 100
    """Independent trials for each number of particles."""
    seed: int = 0
    """Decides all data and initial particles."""
    particles: tuple[int, ...] = (5, 10, 20, 50)
    """Numbers of particles, and of samples they are fitted to."""
    components: tuple[int, ...] = (5, 6)
    """Readings of the mixture: how many of the paper's six components. The claims of the paper
    are judged on the first one; others are reported beside it."""
    narrow: float = 0.1
    """The first reading once more with every value multiplied by this, to show what entropy does
    to a narrow distribution; 0 leaves it out."""
    step_size: float = 1.0
    """JKO time step h."""
    temperatures: tuple[float, ...] = ANNEALING
    """Annealing of the entropic transports; solved ones only see the last."""
    steps: int = 100
    """At most so many JKO steps; a trial stops at its equilibrium."""
    margin: float = 0.1
    """Two methods count as equivalent if their means differ by less than this share of the
    sampling standard error of the moment at that sample size."""

    def __post_init__(self) -> None:
        at_least(3, trials=self.trials)  # the paired tests need so many
        if not self.particles or min(self.particles) < 2:
            raise InputError(f"particles = {self.particles}: they must be numbers from 2 on")
        if not self.components:
            raise InputError("components: name at least one reading of the mixture")
        if self.narrow < 0 or self.margin <= 0:
            raise InputError("narrow must not be negative and margin must be positive")

    def readings(self) -> list[Reading]:
        names = {5: "five", 6: "six"}
        read = [Reading(names.get(n, f"{n}-components"), n, 1.0) for n in self.components]
        if self.narrow:
            read.append(Reading("narrow", self.components[0], self.narrow))
        return read

    def cells(self) -> list[RegressionCell]:
        return [RegressionCell(r, n) for r in self.readings() for n in self.particles]


class Reading(NamedTuple):
    """One mixture the experiment runs on."""

    name: str
    components: int
    scale: float

    @property
    def mixture(self) -> Mixture:
        return paper_mixture(self.components, self.scale)

    @property
    def title(self) -> str:
        narrow = f", values times {self.scale:g}" if self.scale != 1 else ""
        return f"{self.components}-component mixture{narrow}"


class RegressionCell(NamedTuple):
    """All methods on one mixture at one number of particles."""

    reading: Reading
    particles: int

    @property
    def name(self) -> str:
        return f"{self.reading.name}.{self.particles}"


def compute_cell(job: tuple[RegressionConfig, RegressionCell]) -> dict[str, Columns]:
    """One row per method and trial."""
    config, cell = job
    trials = draw_trials(cell.reading.mixture, config.seed, config.trials, cell.particles)
    rows = [_columns(method, trials, fit(method, trials, config)) for method in METHODS]
    return {cell.name: {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}}


def fit(method: str, trials: SampledTrials, config: RegressionConfig) -> Fit:
    if method == "QR":
        return fit_quantiles(trials)
    options: dict[str, Any] = {"temperatures": config.temperatures}
    if method == "WGF three sweeps":
        options |= {"solver": "gradient", "start": "zeros", "max_iterations": 50}
    transport = "sinkhorn" if method == "WGF three sweeps" else method.split()[1]
    return fit_flow(trials, transport, step_size=config.step_size, steps=config.steps, **options)


def _columns(method: str, trials: SampledTrials, fitted: Fit) -> dict[str, np.ndarray]:
    count = len(trials.truth)
    estimate, sample = moments(fitted.z), moments(trials.target_z)
    return {
        "method": np.full(count, method),
        "trial": np.arange(count),
        **{f"estimate_{k + 1}": estimate[:, k] for k in range(2)},
        **{f"sample_{k + 1}": sample[:, k] for k in range(2)},
        **{f"truth_{k + 1}": trials.truth[:, k] for k in range(2)},
        "range": np.ptp(trials.target_z, axis=-1).astype(np.float64),
        "distance_left": fitted.distance_left.astype(np.float64),
        **{n: getattr(fitted, n) for n in ("converged", "steps", "iterations", "unsolved")},
    }


EXPERIMENT = Experiment(
    "regression",
    RegressionConfig,
    by_cells(compute_cell, "regression"),
    RegressionResults.read,
    RegressionResults.summary,
    verdicts,
    figures,
)
run = EXPERIMENT.run
