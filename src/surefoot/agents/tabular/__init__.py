"""Tabular agents: Algorithm 1 and its relatives on finite decision processes.

Names are imported when first used: the settings alone do not wait for JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.agents.tabular.agent import TabularAgent
    from surefoot.agents.tabular.algorithm import Table, Transition
    from surefoot.agents.tabular.config import TabularConfig
    from surefoot.agents.tabular.loop import COUNTS, TrialState, train_trials, trial_keys

__all__ = [
    "COUNTS",
    "Table",
    "TabularAgent",
    "TabularConfig",
    "Transition",
    "TrialState",
    "train_trials",
    "trial_keys",
]

_NAMES = {
    "surefoot.agents.tabular.agent": "TabularAgent",
    "surefoot.agents.tabular.algorithm": "Table Transition",
    "surefoot.agents.tabular.config": "TabularConfig",
    "surefoot.agents.tabular.loop": "COUNTS TrialState train_trials trial_keys",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # to a type checker it would make every misspelt name valid

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOME[name]), name)
