"""What the risky-cliff experiment runs: its settings and its cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from surefoot.agents.tabular.config import PAPER, TabularConfig
from surefoot.envs import CliffGrid, risky_cliff
from surefoot.envs.finite import TabularMDP
from surefoot.errors import InputError, unknown
from surefoot.policies import policy_named
from surefoot.training.engines import check_engine

# What each loss changes in the settings that all share.
LOSSES: dict[str, dict[str, Any]] = {
    "wgf-mixture": {"loss": "wgf-exact", "targets": "mixture"},
    "wgf-sample": {"loss": "wgf-exact", "targets": "sample"},
    # Steps in units of the cliff's penalty: with kappa = 1 a fall takes hundreds of visits.
    "qr": {"loss": "qr", "targets": "sample", "learning_rate": 100.0, "kappa": 100.0},
    # Checks of why: the paper's own transport, quantile regression as a proximal step over
    # the pooled transitions, and particles that start without dispersion.
    "wgf-sinkhorn": {"loss": "wgf", "targets": "sample"},
    "proximal-qr": {"loss": "proximal-qr", "targets": "mixture", "step_size": 100.0},
    "zero-start": {"loss": "wgf-exact", "targets": "mixture", "initial_std": 0.0},
}  # fmt: skip


@dataclass(frozen=True)
class RiskyCliffConfig:
    """Section 5.4: two paths worth the same, one of them sure. Which does each policy walk?"""

    trials: int = 50
    """Independent trials of each loss and policy."""
    episodes: int = 400
    """Episodes of each trial."""
    seed: int = 0
    """Trial i draws from key i of this seed, whatever else runs."""
    losses: tuple[str, ...] = ("wgf-mixture", "wgf-sample", "qr")
    """Ways to learn: wgf-mixture, wgf-sample, qr, wgf-sinkhorn, proximal-qr, zero-start."""
    policies: tuple[str, ...] = ("greedy", "ssd", "cvar:0.05", "cvar:0.25", "cvar:0.45")
    """Behaviour policies, by name."""
    checks: tuple[str, ...] = ("zero-start", "proximal-qr", "wgf-sinkhorn")
    """Further losses that explain the result, run with the check policies."""
    check_policies: tuple[str, ...] = ("greedy", "ssd", "cvar:0.25")
    """Behaviour policies of the checks."""
    tolerances: tuple[float, ...] = (1e-8, 1e-4, 3e-4, 5e-4, 1e-3, 3e-3, 1e-2)
    """Tie tolerances of the sweep, SSD and greedy with wgf-mixture; none to leave it out."""
    sweep_trials: int = 20
    """Trials at each tolerance of the sweep."""
    tolerance: float = 5e-4
    """Tie tolerance of every policy: above the jitter of the means, below the dispersion."""
    particles: int = 16
    """Particles per state and action."""
    memory: int = 32
    """Transitions pooled in a mixture target."""
    explore: float = 0.1
    """Exploration in every behaviour policy."""
    horizon: int = 500
    """Steps after which an episode is cut off."""
    sigma: float = 1e-3
    """Standard deviation of the rewards next to the cliff."""
    initial_std: float = 1.0
    """Particles start from N(0, this), as in the paper."""
    rows: int = 4
    """Rows of the grid."""
    columns: int = 12
    """Columns of the grid."""
    last: int = 100
    """The final episodes over which shares, steps and returns are averaged."""
    engine: str = "local"
    """serial, local (worker processes of this machine) or ray (a cluster)."""
    address: str = ""
    """Of the engine ray: local, auto, host:port or ray://host:port; a local one by default."""
    workers: int = 0
    """Worker processes; 0 for one per core."""

    def __post_init__(self) -> None:
        for name in (*self.losses, *self.checks):
            if name not in LOSSES:
                raise unknown("loss", name, LOSSES)
        for name in (*self.policies, *self.check_policies):
            policy_named(name)
        for name in ("trials", "episodes", "sweep_trials", "last"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: there must be at least one")
        if self.trials == 1:
            raise InputError("trials = 1: an interval needs at least two")
        check_engine(self.engine, self.address, self.workers or None)

    @property
    def grid(self) -> CliffGrid:
        return CliffGrid(self.rows, self.columns)

    @property
    def mdp(self) -> TabularMDP:
        return risky_cliff(rows=self.rows, columns=self.columns, sigma=self.sigma)

    @property
    def true_fork_std(self) -> float:
        """Deviation of the return along the cliff: one noisy reward in all but two columns."""
        return self.sigma * (self.columns - 2) ** 0.5

    def cells(self) -> list[CliffCell]:
        """Everything that is run, each independent of the others."""
        main = [CliffCell(loss, p, self.tolerance) for loss in self.losses for p in self.policies]
        checks = [
            CliffCell(loss, p, self.tolerance)
            for loss in self.checks
            for p in self.check_policies
            if loss not in self.losses
        ]
        sweep = [
            CliffCell("wgf-mixture", policy, t, sweep=True)
            for t in self.tolerances
            for policy in ("ssd", "greedy")
        ]
        return main + checks + sweep

    def agent(self, cell: CliffCell) -> TabularConfig:
        shared = TabularConfig(
            particles=self.particles,
            memory=self.memory,
            explore=self.explore,
            horizon=self.horizon,
            initial_std=self.initial_std,
            behaviour=replace(policy_named(cell.policy), tolerance=cell.tolerance),
            **PAPER,
        )
        return replace(shared, **LOSSES[cell.loss])


class CliffCell(NamedTuple):
    """One loss with one behaviour policy."""

    loss: str
    policy: str
    tolerance: float
    sweep: bool = False

    @property
    def name(self) -> str:
        """The name of its results table."""
        policy = self.policy.replace(":", "-")
        return f"sweep-{policy}-{self.tolerance:g}" if self.sweep else f"{self.loss}.{policy}"
