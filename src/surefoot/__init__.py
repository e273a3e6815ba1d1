"""surefoot: risk-aware distributional reinforcement learning by stochastic dominance.

    import surefoot as sf

    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", behaviour=sf.SSD(tolerance=5e-4))
    agent.learn(10_000)
    print(agent.explain(24))

The numerical core is in `surefoot.particles`, `surefoot.dominance`, `surefoot.transport` and
`surefoot.policies`. Names are imported when first used (PEP 562), so that `import surefoot` and
the command line's help do not wait for JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surefoot.registration import register

__version__ = "0.1.0"

if TYPE_CHECKING:  # what a type checker and an editor see; `_HOME` is the same for the interpreter
    from surefoot import adapters, dominance, mdp, particles, policies, transport
    from surefoot.checkpoint import Checkpoints, FaultPolicy, load, resume
    from surefoot.comparing import Comparison, compare, compare_file
    from surefoot.dominance import (
        almost_ssd_ratio,
        dominance_matrix,
        dominant_set,
        fsd_dominates,
        ssd_dominates,
        violation,
    )
    from surefoot.errors import InputError, Interrupted, RunError, SurefootError
    from surefoot.evaluating import evaluate
    from surefoot.explain import Explanation
    from surefoot.logs import Watch
    from surefoot.mdp import TabularMDP
    from surefoot.neural import NeuralAgent, NeuralConfig
    from surefoot.particles import (
        cumulative_cdf,
        cumulative_quantile,
        cvar,
        dispersion_space,
        quantile,
        wasserstein,
    )
    from surefoot.policies import (
        CPW,
        SSD,
        CVaR,
        DecidedBy,
        Decision,
        Explore,
        Greedy,
        MeanVariance,
        Policy,
        Wang,
    )
    from surefoot.tabular import TabularAgent, TabularConfig
    from surefoot.training import Training, train
    from surefoot.transport import jko_flow, proximal_loss, proximal_step, sinkhorn

__all__ = [
    "CPW",
    "SSD",
    "CVaR",
    "Checkpoints",
    "Comparison",
    "DecidedBy",
    "Decision",
    "Explanation",
    "Explore",
    "FaultPolicy",
    "Greedy",
    "InputError",
    "Interrupted",
    "MeanVariance",
    "NeuralAgent",
    "NeuralConfig",
    "Policy",
    "RunError",
    "SurefootError",
    "TabularAgent",
    "TabularConfig",
    "TabularMDP",
    "Training",
    "Wang",
    "Watch",
    "__version__",
    "adapters",
    "almost_ssd_ratio",
    "compare",
    "compare_file",
    "cumulative_cdf",
    "cumulative_quantile",
    "cvar",
    "dispersion_space",
    "dominance",
    "dominance_matrix",
    "dominant_set",
    "evaluate",
    "fsd_dominates",
    "jko_flow",
    "load",
    "mdp",
    "particles",
    "policies",
    "proximal_loss",
    "proximal_step",
    "quantile",
    "resume",
    "sinkhorn",
    "ssd_dominates",
    "train",
    "transport",
    "violation",
    "wasserstein",
]

_MODULES = ("adapters", "dominance", "mdp", "particles", "policies", "transport")
_NAMES = {
    "checkpoint": "Checkpoints FaultPolicy load resume",
    "comparing": "Comparison compare compare_file",
    "dominance": "almost_ssd_ratio dominance_matrix dominant_set fsd_dominates ssd_dominates "
    "violation",
    "errors": "InputError Interrupted RunError SurefootError",
    "evaluating": "evaluate",
    "explain": "Explanation",
    "logs": "Watch",
    "mdp": "TabularMDP",
    "neural": "NeuralAgent NeuralConfig",
    "particles": "cumulative_cdf cumulative_quantile cvar dispersion_space quantile wasserstein",
    "policies": "CPW SSD CVaR DecidedBy Decision Explore Greedy MeanVariance Policy Wang",
    "tabular": "TabularAgent TabularConfig",
    "training": "Training train",
    "transport": "jko_flow proximal_loss proximal_step sinkhorn",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # to a type checker it would make every misspelt name valid

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value


def __dir__() -> list[str]:
    return sorted(__all__)


register()
