"""Neural agents: fitted Q-iteration with networks on Gymnasium environments (section 5.3).

Names are imported when first used: the settings alone do not wait for JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.agents.neural.agent import NeuralAgent
    from surefoot.agents.neural.config import LOSSES, NeuralConfig
    from surefoot.agents.neural.loop import RunState
    from surefoot.runs.logs import Finished

__all__ = [
    "LOSSES",
    "Finished",
    "NeuralAgent",
    "NeuralConfig",
    "RunState",
]

_NAMES = {
    "surefoot.agents.neural.agent": "NeuralAgent",
    "surefoot.agents.neural.config": "LOSSES NeuralConfig",
    "surefoot.agents.neural.loop": "RunState",
    "surefoot.runs.logs": "Finished",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # to a type checker it would make every misspelt name valid

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOME[name]), name)
