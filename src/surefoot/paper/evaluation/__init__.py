"""Section 5.2: the flow recovers the return distribution of a fixed policy on the cliff walk.

`config` has the settings, `flows` the policy, its Monte-Carlo returns and the particles that flow
to them, `verdicts` the errors and claims, `figures` the pictures.
"""

from __future__ import annotations

from surefoot.paper.evaluation.config import GRID, METHODS, PLACES, EvaluationConfig
from surefoot.paper.evaluation.figures import figures
from surefoot.paper.evaluation.flows import EvaluationResults, measure
from surefoot.paper.evaluation.verdicts import summary, verdicts
from surefoot.paper.experiment import Experiment

__all__ = [
    "EXPERIMENT",
    "GRID",
    "METHODS",
    "PLACES",
    "EvaluationConfig",
    "EvaluationResults",
    "figures",
    "run",
]

EXPERIMENT = Experiment(
    "evaluation",
    EvaluationConfig,
    measure,
    EvaluationResults.read,
    summary,
    verdicts,
    figures,
)
run = EXPERIMENT.run
