"""surefoot: risk-aware distributional reinforcement learning by stochastic dominance.

    import surefoot as sf

    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", behaviour=sf.SSD(tolerance=5e-4))
    agent.learn(10_000)
    print(agent.explain(24))

The numerical core is in `surefoot.particles`, `surefoot.dominance`, `surefoot.transport` and
`surefoot.policies`.
"""

__version__ = "0.1.0"

from surefoot.comparing import compare
from surefoot.dominance import (
    almost_ssd_ratio,
    dominance_matrix,
    dominant_set,
    fsd_dominates,
    ssd_dominates,
    violation,
)
from surefoot.errors import InputError, RunError, SurefootError
from surefoot.mdp import TabularMDP
from surefoot.neural import NeuralAgent
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
from surefoot.transport import jko_flow, proximal_loss, proximal_step, sinkhorn

__all__ = [
    "CPW",
    "SSD",
    "CVaR",
    "DecidedBy",
    "Decision",
    "Explore",
    "Greedy",
    "InputError",
    "MeanVariance",
    "NeuralAgent",
    "Policy",
    "RunError",
    "SurefootError",
    "TabularAgent",
    "TabularConfig",
    "TabularMDP",
    "Wang",
    "__version__",
    "almost_ssd_ratio",
    "compare",
    "cumulative_cdf",
    "cumulative_quantile",
    "cvar",
    "dispersion_space",
    "dominance_matrix",
    "dominant_set",
    "fsd_dominates",
    "jko_flow",
    "proximal_loss",
    "proximal_step",
    "quantile",
    "sinkhorn",
    "ssd_dominates",
    "violation",
    "wasserstein",
]
