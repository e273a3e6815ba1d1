"""surefoot: risk-aware distributional reinforcement learning by stochastic dominance.

    import surefoot as sf

    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", seed=0)
    agent.learn(10_000)
    print(agent.explain(24))

The numerical core is in `surefoot.core`, `surefoot.transport` and `surefoot.policies`. Names are
imported when first used, so that `import surefoot` and the help of the command line do not wait for
JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium

from surefoot import compile_cache
from surefoot.lazy import lazy_names

__version__ = "0.2.0"

if TYPE_CHECKING:  # what a type checker and an editor see; `_NAMES` is the same for the interpreter
    from surefoot import envs as mdp
    from surefoot import policies, suite, transport
    from surefoot.agents import adapters
    from surefoot.agents.explain import Explanation
    from surefoot.agents.loading import load, resume
    from surefoot.agents.neural import NeuralAgent, NeuralConfig
    from surefoot.agents.tabular import TabularAgent, TabularConfig
    from surefoot.comparison import Comparison, compare, compare_file
    from surefoot.core import dominance, particles
    from surefoot.core.dominance import (
        almost_ssd_ratio,
        dominance_matrix,
        dominant_set,
        fsd_dominates,
        ssd_dominates,
        violation,
    )
    from surefoot.core.particles import (
        cumulative_cdf,
        cumulative_quantile,
        cvar,
        dispersion_space,
        quantile,
        wasserstein,
    )
    from surefoot.envs import TabularMDP
    from surefoot.envs.faults import FaultPolicy
    from surefoot.errors import InputError, Interrupted, RunError, SurefootError
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
    from surefoot.runs.checkpoints import Checkpoints
    from surefoot.runs.logs import Watch
    from surefoot.training.evaluation import evaluate
    from surefoot.training.train import Training, train
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
    "suite",
    "train",
    "transport",
    "violation",
    "wasserstein",
]

_MODULES = {
    "adapters": "agents.adapters",
    "dominance": "core.dominance",
    "mdp": "envs",
    "particles": "core.particles",
    "policies": "policies",
    "suite": "suite",
    "transport": "transport",
}
_NAMES = {
    "agents.explain": "Explanation",
    "agents.loading": "load resume",
    "agents.neural": "NeuralAgent NeuralConfig",
    "agents.tabular": "TabularAgent TabularConfig",
    "comparison": "Comparison compare compare_file",
    "core.dominance": "almost_ssd_ratio dominance_matrix dominant_set fsd_dominates ssd_dominates "
    "violation",
    "core.particles": "cumulative_cdf cumulative_quantile cvar dispersion_space quantile "
    "wasserstein",
    "envs": "TabularMDP",
    "envs.faults": "FaultPolicy",
    "errors": "InputError Interrupted RunError SurefootError",
    "policies": "CPW SSD CVaR DecidedBy Decision Explore Greedy MeanVariance Policy Wang",
    "runs.checkpoints": "Checkpoints",
    "runs.logs": "Watch",
    "training.evaluation": "evaluate",
    "training.train": "Training train",
    "transport": "jko_flow proximal_loss proximal_step sinkhorn",
}
if not TYPE_CHECKING:  # to a type checker it would make every misspelt name valid
    __getattr__ = lazy_names(__name__, _NAMES, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)


def _register() -> None:
    """Make our environments known to `gymnasium.make`; calling it again changes nothing."""
    finite, pure = "environments:RiskTaskEnv", "noisy:PureGymEnv"
    entries = {
        "CliffWalk": ("environments:CliffWalkEnv", ""),
        "RiskyCliff": ("environments:RiskyCliffEnv", ""),
        "Insurance": (finite, "insurance"),
        "TwoSuppliers": (finite, "two-suppliers"),
        "Maintenance": (finite, "maintenance"),
        "ManyEquals": (finite, "many-equals"),
        "Portfolio": (finite, "portfolio"),
        "TwoRoads": (pure, "two-roads"),
        "NoisyCartPole": (pure, "noisy-cartpole"),
        "MeanReversion": (pure, "mean-reversion"),
    }
    for name, (kind, task) in entries.items():
        env_id = f"surefoot/{name}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"surefoot.envs.{kind}",
                max_episode_steps=None if kind == pure else 500,  # these count for themselves
                kwargs={"task": task} if task else {},
            )


_register()
compile_cache.configure()
