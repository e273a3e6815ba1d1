"""Tabular agents: Algorithm 1 and its relatives on finite decision processes."""

from surefoot.agents.tabular.agent import TabularAgent
from surefoot.agents.tabular.algorithm import Table, Transition
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.training import COUNTS, Run, train_trials, trial_keys

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
