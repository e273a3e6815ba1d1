"""What the risky-cliff experiment runs: its settings, and a cell's trials in one compiled batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.algorithm import Transition
from surefoot.agents.tabular.compiled_loop import Measure, train_trials
from surefoot.agents.tabular.config import PAPER, TabularConfig
from surefoot.agents.tabular.loop import COUNTS
from surefoot.envs import ACTION_NAMES, CliffGrid, greedy_path, risky_cliff
from surefoot.envs.finite import TabularMDP
from surefoot.errors import RunError, at_least, unknown
from surefoot.paper.experiment import Columns, Stopped
from surefoot.policies import Policy, policy_named
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
        at_least(2, trials=self.trials)  # an interval needs two
        at_least(1, episodes=self.episodes, sweep_trials=self.sweep_trials, last=self.last)
        check_engine(self.engine, self.address, self.workers or None)
        CliffGrid(self.rows, self.columns)  # refuses what is too large, before anything is made

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


# --- one cell ---------------------------------------------------------------------------

OWN = ("falls", "top_cells")  # counted per episode beside COUNTS


@lru_cache
def measure_of(grid: CliffGrid) -> Measure:
    """Falls, and how often a cell of the top row is entered. Cached: jit compares by identity."""
    top = np.asarray([grid.is_top_row(s) for s in range(grid.num_states)], np.float32)

    def measure(step: Transition) -> jax.Array:
        # Only a fall costs this much, and only a fall leads back to the start in one step.
        fall = (step.reward_t <= -50.0) & (step.obs_t == grid.start)
        return jnp.stack([fall.astype(jnp.float32), jnp.asarray(top)[step.obs_t]])

    return measure


def compute_cell(job: tuple[RiskyCliffConfig, CliffCell]) -> Mapping[str, Columns] | Stopped:
    """Episodes of all trials, the first trial's particles, and where the trials' paths lead."""
    config, cell = job
    try:
        runs = train_trials(
            config.agent(cell),
            config.mdp,
            episodes=config.episodes,
            trials=config.sweep_trials if cell.sweep else config.trials,
            seed=config.seed,
            measure=measure_of(config.grid),
            extra=len(OWN),
            description=f"{cell.loss}, {cell.policy}, tolerance {cell.tolerance:g}",
            quiet=config.engine != "serial",
        )
    except RunError as error:
        episodes = episode_columns(np.asarray(error.partial.episodes), config.grid)
        return Stopped({f"stopped.{cell.name}": episodes}, str(error))
    z = np.asarray(runs.table.z)
    where = np.indices(z.shape[1:]).reshape(3, -1)
    return {
        cell.name: episode_columns(np.asarray(runs.episodes), config.grid),
        f"path.{cell.name}": path_columns(config, cell, z),
        f"particles.{cell.name}": {
            "state": where[0], "action": where[1], "particle": where[2], "z": z[0].reshape(-1),
        },
    }  # fmt: skip


def episode_columns(counts: np.ndarray, grid: CliffGrid) -> dict[str, np.ndarray]:
    """Counts `[T, E, F]` as flat columns; an episode over the top entered half of that row."""
    trials, episodes, _ = counts.shape
    flat: dict[str, Any] = {
        "trial": np.repeat(np.arange(trials), episodes),
        "episode": np.tile(np.arange(episodes), trials),
    }
    for i, name in enumerate((*COUNTS, *OWN)):
        flat[name] = counts[:, :, i].reshape(-1)
    flat["over_top"] = (flat["top_cells"] >= grid.columns / 2).astype(np.float32)
    return flat


def path_columns(config: RiskyCliffConfig, cell: CliffCell, z: np.ndarray) -> dict[str, np.ndarray]:
    """A row per state: the share of trials whose behaviour walks through it without exploring, the
    place in the first trial's path (`own`, and of its `greedy` target; -1 if not on it), and the
    learned deviation of each action's return, mean over trials. `z` is `[T, S, A, N]`."""
    policy = config.agent(cell).behaviour
    assert isinstance(policy, Policy)
    keys = jax.random.split(jax.random.key(config.seed), z.shape[:2])
    act = jax.jit(jax.vmap(jax.vmap(partial(policy, assume_sorted=True))))
    own = [greedy_path(config.mdp, a).states for a in np.asarray(act(jnp.asarray(z), keys))]
    greedy = greedy_path(config.mdp, z[0].mean(-1).argmax(-1)).states
    states = np.arange(config.grid.num_states)
    columns = {
        "state": states,
        "visited": np.mean([np.isin(states, path) for path in own], axis=0),
    }
    for name, path in (("own", own[0]), ("greedy", greedy)):
        columns[name] = np.full(len(states), -1)
        columns[name][list(path)[::-1]] = np.arange(len(path))[::-1]  # the first visit counts
    deviation = z.std(-1).mean(0)
    return columns | {f"std_{name}": deviation[:, a] for a, name in enumerate(ACTION_NAMES)}
