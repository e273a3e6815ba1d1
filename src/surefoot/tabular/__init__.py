"""Tabular agents: Algorithm 1 and its relatives on finite decision processes."""

from surefoot.tabular.agent import TabularAgent
from surefoot.tabular.algorithm import Table, Transition
from surefoot.tabular.config import TabularConfig
from surefoot.tabular.training import COUNTS, Run, train_trials, trial_keys

__all__ = [
    "COUNTS",
    "Run",
    "Table",
    "TabularAgent",
    "TabularConfig",
    "Transition",
    "train_trials",
    "trial_keys",
]
