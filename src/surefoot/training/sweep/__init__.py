"""Many trainings over a grid of settings and seeds, on any engine; each result counted once."""

from surefoot.training.sweep.run import SweepResult, run_sweep
from surefoot.training.sweep.spec import Sweep, make_training, parse_seeds
from surefoot.training.sweep.store import ResultStore

__all__ = ["ResultStore", "Sweep", "SweepResult", "make_training", "parse_seeds", "run_sweep"]
