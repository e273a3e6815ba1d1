"""Tabular agents: Algorithm 1 and its relatives on finite decision processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot.lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.agents.tabular.agent import TabularAgent
    from surefoot.agents.tabular.algorithm import Transition
    from surefoot.agents.tabular.compiled_loop import train_trials
    from surefoot.agents.tabular.config import TabularConfig
    from surefoot.agents.tabular.loop import COUNTS
else:  # to a type checker it would make every misspelt name valid
    __getattr__ = lazy_names(
        __name__,
        {
            "agent": "TabularAgent",
            "algorithm": "Transition",
            "compiled_loop": "train_trials",
            "config": "TabularConfig",
            "loop": "COUNTS",
        },
    )

__all__ = ["COUNTS", "TabularAgent", "TabularConfig", "Transition", "train_trials"]
