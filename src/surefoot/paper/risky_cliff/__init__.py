"""Section 5.4, control in the presence of uncertainty, on the risky cliff.

Two paths are worth the same, one of them sure: `cells` says which losses and policies are tried
and trains them, `results` has the numbers and the claims, `figures` the pictures.
"""

from __future__ import annotations

from surefoot.paper.experiment import Experiment, by_cells
from surefoot.paper.risky_cliff.cells import LOSSES, CliffCell, RiskyCliffConfig, compute_cell
from surefoot.paper.risky_cliff.figures import figures
from surefoot.paper.risky_cliff.results import CliffResults, verdicts

__all__ = [
    "EXPERIMENT",
    "LOSSES",
    "CliffCell",
    "CliffResults",
    "RiskyCliffConfig",
    "figures",
    "run",
]


EXPERIMENT = Experiment(
    "risky-cliff",
    RiskyCliffConfig,
    by_cells(compute_cell, "risky cliff"),
    CliffResults,
    CliffResults.summary,
    verdicts,
    figures,
)
run = EXPERIMENT.run
