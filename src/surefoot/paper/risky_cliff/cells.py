"""One cell: its trials in one compiled batch, counts per episode, what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.algorithm import Transition
from surefoot.agents.tabular.loop import COUNTS, Measure, train_trials
from surefoot.envs import ACTION_NAMES, CliffGrid, greedy_path
from surefoot.errors import RunError
from surefoot.paper.experiment import Columns, Stopped
from surefoot.paper.risky_cliff.config import CliffCell, RiskyCliffConfig
from surefoot.policies import Policy

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
