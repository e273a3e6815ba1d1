"""Section 5.1: do quantile regression and WGF regression estimate two moments equally well?

Each trial draws N samples of the mixture and fits N particles to them by every method, so that
methods are compared on the same data. The estimates are judged by the first two raw moments of
10^4 fresh samples of the same trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.errors import InputError
from surefoot.paper import fitting, regression_report
from surefoot.paper.claims import Claim, read_claims
from surefoot.paper.fitting import Fit
from surefoot.paper.mixture import Trials, draw_trials, paper_mixture
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.progress import progress
from surefoot.transport import ANNEALING

if TYPE_CHECKING:
    import polars

METHODS = ("QR", "WGF exact", "WGF divergence", "WGF sinkhorn", "WGF three sweeps")
"""The last one is the paper's solver to the letter: three sweeps from zero potentials and up to
50 gradient steps; the others are solved to convergence."""


@dataclass(frozen=True)
class Config:
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
        if self.trials < 3:
            raise InputError(f"trials = {self.trials}: the paired tests need at least 3")
        if not self.particles or min(self.particles) < 2:
            raise InputError(f"particles = {self.particles}: give numbers from 2 on")
        if not self.components:
            raise InputError("components: give at least one reading of the mixture")
        if self.narrow < 0 or self.margin <= 0:
            raise InputError("narrow must not be negative and margin must be positive")


class Reading(NamedTuple):
    """One mixture the experiment runs on."""

    name: str
    components: int
    scale: float


def readings(config: Config) -> list[Reading]:
    names = {5: "five", 6: "six"}
    found = [Reading(names.get(n, f"{n} components"), n, 1.0) for n in config.components]
    if config.narrow:
        found.append(Reading("narrow", config.components[0], config.narrow))
    return found


def run(config: Config, out: Path, existing: Existing = "error") -> list[Claim]:
    """Run the experiment into the directory `out` and give its claims."""
    store = RunDir.create(
        out, config, kind="regression", seeds={"seed": config.seed}, existing=existing
    )
    if store.complete:
        return list(read_claims(store))
    if not store.has_table():
        store.write_table(measure(config), metadata={"errors": "estimate minus truth"})
    claims = regression_report.write(store, config, readings(config))
    store.mark_complete()
    return claims


def measure(config: Config) -> polars.DataFrame:
    """One row per reading, size, method and trial."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    every = [(reading, n) for reading in readings(config) for n in config.particles]
    with progress(len(every) * len(METHODS), "regression", "fits") as task:
        for reading, n in every:
            mixture = paper_mixture(reading.components, reading.scale)
            trials = draw_trials(mixture, config.seed, config.trials, n)
            for method in METHODS:
                task.note(f"{reading.name} mixture, {n} particles, {method}")
                found = fit(method, trials, config)
                rows.append(columns(reading, n, method, trials, found))
                task.advance()
    return pl.concat([pl.DataFrame(row) for row in rows])


def fit(method: str, trials: Trials, config: Config) -> Fit:
    if method == "QR":
        return fitting.fit_quantiles(trials)
    options: dict[str, Any] = {"temperatures": config.temperatures}
    if method == "WGF three sweeps":
        options |= {"solver": "gradient", "start": "zeros", "max_iterations": 50}
    transport = "sinkhorn" if method == "WGF three sweeps" else method.split()[1]
    return fitting.fit_flow(
        trials, transport, step_size=config.step_size, steps=config.steps, **options
    )


def columns(
    reading: Reading, particles: int, method: str, trials: Trials, found: Fit
) -> dict[str, Any]:
    count = len(trials.truth)
    estimate, sample = fitting.moments(found.z), fitting.moments(trials.target_z)
    return {
        "reading": [reading.name] * count,
        "particles": np.full(count, particles),
        "method": [method] * count,
        "trial": np.arange(count),
        **{f"estimate_{k + 1}": estimate[:, k] for k in range(2)},
        **{f"sample_{k + 1}": sample[:, k] for k in range(2)},
        **{f"truth_{k + 1}": trials.truth[:, k] for k in range(2)},
        "range": np.ptp(trials.target_z, axis=-1).astype(np.float64),
        "converged": found.converged,
        "distance_left": found.distance_left.astype(np.float64),
        "steps": found.steps,
        "iterations": found.iterations,
        "unsolved": found.unsolved,
    }
