"""Running one cell: trials in one compiled batch, counts per episode, what was learned."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.algorithm import Transition
from surefoot.agents.tabular.loop import COUNTS, Measure, train_trials
from surefoot.envs import ACTION_NAMES, CliffGrid, greedy_path, risky_cliff
from surefoot.envs.finite import TabularMDP
from surefoot.errors import RunError
from surefoot.paper.risky_cliff.config import Cell, Config
from surefoot.policies import Policy

OWN = ("falls", "top_cells")  # counted per episode beside COUNTS


class Outcome(NamedTuple):
    """What one cell leaves behind."""

    episodes: dict[str, np.ndarray]  # columns, one row per trial and episode
    z: np.ndarray  # [S, A, N] particles of the first trial
    visited: np.ndarray  # [S] share of trials whose own path enters the cell
    own_path: np.ndarray  # states the first trial's behaviour walks without exploration
    greedy_path: np.ndarray  # states its greedy target walks
    fork_std: dict[str, float]  # learned deviation of each action where the paths part
    fault: str = ""  # why the cell had to stop before its end


def grid_of(config: Config) -> CliffGrid:
    return CliffGrid(config.rows, config.columns)


def mdp_of(config: Config) -> TabularMDP:
    return risky_cliff(rows=config.rows, columns=config.columns, sigma=config.sigma)


def fork_of(grid: CliffGrid) -> int:
    """The cell above the start: up leads over the top, right along the cliff."""
    return grid.state(grid.rows - 2, 0)


@lru_cache
def measure_of(grid: CliffGrid) -> Measure:
    """Falls, and how often a cell of the top row is entered. Cached: jit compares by identity."""
    top = np.asarray([grid.is_top_row(s) for s in range(grid.num_states)], np.float32)

    def measure(step: Transition) -> jax.Array:
        # Only a fall costs this much, and only a fall leads back to the start in one step.
        fall = (step.reward_t <= -50.0) & (step.obs_t == grid.start)
        return jnp.stack([fall.astype(jnp.float32), jnp.asarray(top)[step.obs_t]])

    return measure


def run_cell(job: tuple[Config, Cell]) -> Outcome:
    config, cell = job
    grid, mdp = grid_of(config), mdp_of(config)
    trials = config.sweep_trials if cell.sweep else config.trials
    fault = ""
    try:
        runs = train_trials(
            config.agent(cell),
            mdp,
            episodes=config.episodes,
            trials=trials,
            seed=config.seed,
            measure=measure_of(grid),
            extra=len(OWN),
            description=f"{cell.loss}, {cell.policy}, tolerance {cell.tolerance:g}",
            quiet=config.engine != "serial",
        )
    except RunError as error:
        runs, fault = error.partial, str(error)
    counts = np.asarray(runs.episodes)
    z = np.asarray(runs.table.z)
    own = [greedy_path(mdp, actions).states for actions in own_actions(config, cell, z)]
    target = greedy_path(mdp, z[0].mean(-1).argmax(-1)).states
    visited = np.mean([np.isin(np.arange(grid.num_states), path) for path in own], axis=0)
    deviation = z[:, fork_of(grid)].std(-1).mean(0)
    fork_std = dict(zip(ACTION_NAMES, map(float, deviation), strict=True))
    paths = np.asarray(own[0]), np.asarray(target)
    return Outcome(columns(counts, grid), z[0], visited, *paths, fork_std, fault)


def own_actions(config: Config, cell: Cell, z: np.ndarray) -> np.ndarray:
    """What the behaviour policy does in every state `[T, S]` when it does not explore."""
    policy = config.agent(cell).behaviour
    assert isinstance(policy, Policy)
    keys = jax.random.split(jax.random.key(config.seed), z.shape[:2])
    act = jax.vmap(jax.vmap(partial(policy, assume_sorted=True)))
    return np.asarray(jax.jit(act)(jnp.asarray(z), keys))


def columns(counts: np.ndarray, grid: CliffGrid) -> dict[str, np.ndarray]:
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
