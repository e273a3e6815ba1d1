"""Neural agents: fitted Q-iteration with networks on Gymnasium environments (section 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot.lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.agents.neural.agent import NeuralAgent
    from surefoot.agents.neural.config import NeuralConfig
else:  # to a type checker it would make every misspelt name valid
    __getattr__ = lazy_names(__name__, {"agent": "NeuralAgent", "config": "NeuralConfig"})

__all__ = ["NeuralAgent", "NeuralConfig"]
