"""Many trainings over a grid of settings and seeds, on any engine; each result counted once."""

from surefoot.training.sweep.running import SweepResult, run_sweep
from surefoot.training.sweep.spec import Sweep, parse_seeds
from surefoot.training.sweep.store import ResultStore
from surefoot.training.sweep.trial import SweepTrial, make_trial

__all__ = [
    "ResultStore",
    "Sweep",
    "SweepResult",
    "SweepTrial",
    "make_trial",
    "parse_seeds",
    "run_sweep",
]
