"""Section 5.4, control in the presence of uncertainty, on the risky cliff.

Two paths are worth the same, one of them sure: `config` says which losses and policies are tried,
`cells` trains them, `results` has the numbers, `verdicts` the claims and `figures` the pictures.
"""

from __future__ import annotations

from surefoot.paper.experiment import Experiment, Tables, measure_cells
from surefoot.paper.risky_cliff.cells import compute_cell
from surefoot.paper.risky_cliff.config import LOSSES, CliffCell, RiskyCliffConfig
from surefoot.paper.risky_cliff.figures import figures
from surefoot.paper.risky_cliff.results import CliffResults
from surefoot.paper.risky_cliff.verdicts import verdicts

__all__ = [
    "EXPERIMENT",
    "LOSSES",
    "CliffCell",
    "CliffResults",
    "RiskyCliffConfig",
    "figures",
    "run",
]


def measure(config: RiskyCliffConfig, tables: Tables) -> None:
    measure_cells(config, tables, config.cells(), compute_cell, "risky cliff")


EXPERIMENT = Experiment(
    "risky-cliff",
    RiskyCliffConfig,
    measure,
    CliffResults,
    CliffResults.summary,
    verdicts,
    figures,
)
run = EXPERIMENT.run
