"""From counts per episode to means with intervals, one row per cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.core.stats import Interval, mean_interval
from surefoot.envs import ACTION_NAMES
from surefoot.paper.experiment import Tables
from surefoot.paper.risky_cliff.config import CliffCell, RiskyCliffConfig
from surefoot.policies import DecidedBy


class CliffResults:
    """The episodes of each cell as arrays `[trials, episodes]`, and its paths."""

    def __init__(self, config: RiskyCliffConfig, tables: Tables) -> None:
        self.config = config
        self._columns: dict[str, dict[str, np.ndarray]] = {}
        self._paths: dict[str, dict[str, np.ndarray]] = {}
        for cell in config.cells():
            frame, path = tables[cell.name], tables[f"path.{cell.name}"]
            trials = int(frame["trial"].n_unique())
            self._columns[cell.name] = {
                name: frame[name].to_numpy().reshape(trials, -1) for name in frame.columns
            }
            self._paths[cell.name] = {name: path[name].to_numpy() for name in path.columns}

    def __getitem__(self, cell: CliffCell) -> dict[str, np.ndarray]:
        return self._columns[cell.name]

    def cell(self, loss: str, policy: str) -> CliffCell:
        return CliffCell(loss, policy, self.config.tolerance)

    def visited(self, cell: CliffCell) -> np.ndarray:
        """Share of trials `[S]` whose behaviour walks through each state without exploring."""
        return self._paths[cell.name]["visited"]

    def path(self, cell: CliffCell, whose: str = "own") -> np.ndarray:
        """States in order: the first trial's `own` path without exploring, or the `greedy` one."""
        place = self._paths[cell.name][whose]
        return np.argsort(place, kind="stable")[int((place < 0).sum()) :]

    def fork_std(self, cell: CliffCell) -> dict[str, float]:
        """Learned deviation of each action's return where the two paths part: above the start up
        leads over the top, right along the cliff."""
        fork = self.config.grid.state(self.config.rows - 2, 0)
        return {a: float(self._paths[cell.name][f"std_{a}"][fork]) for a in ACTION_NAMES}

    def per_trial(self, cell: CliffCell, name: str) -> np.ndarray:
        """`[trials]`: falls are added up, everything else averages the last episodes."""
        values = self[cell][name]
        return values.sum(1) if name == "falls" else values[:, -self.config.last :].mean(1)

    def interval(self, cell: CliffCell, name: str) -> Interval:
        """Student t over trials."""
        return mean_interval(self.per_trial(cell, name))

    def decided(self, cell: CliffCell) -> dict[str, float]:
        """Share of steps that each authority decided, over all episodes."""
        steps = self[cell]["steps"].sum()
        names = [who.name.lower() for who in DecidedBy]
        return {who: float(self[cell][f"by_{who}"].sum() / steps) for who in names}

    def ties_by_dominance(self, cell: CliffCell) -> float:
        """Share of the steps with several best means that dominance decided."""
        counts = self[cell]
        return float(counts["ties_by_dominance"].sum() / max(counts["ties"].sum(), 1))

    def summary_of(self, cell: CliffCell) -> dict[str, Any]:
        counts = self[cell]
        return {
            "top_row_share": self.interval(cell, "over_top").as_dict(),
            "falls": self.interval(cell, "falls").as_dict(),
            "steps": self.interval(cell, "steps").as_dict(),
            "return": self.interval(cell, "return").as_dict(),
            "tolerance": cell.tolerance,
            "share_of_steps_with_several_best_actions": float(
                counts["ties"].sum() / counts["steps"].sum()
            ),
            "share_of_ties_decided_by_dominance": self.ties_by_dominance(cell),
            "decided_by": self.decided(cell),
            "learned_std_at_the_fork": self.fork_std(cell),
        }

    def summary(self) -> dict[str, Any]:
        """`losses -> policy -> statistic -> interval`, and the sweep by tolerance."""
        cells: dict[str, dict[str, Any]] = {}
        sweep = []
        for cell in self.config.cells():
            if cell.sweep:
                sweep.append({"policy": cell.policy, **self.summary_of(cell)})
            else:
                cells.setdefault(cell.loss, {})[cell.policy] = self.summary_of(cell)
        return {
            "losses": cells,
            "tolerance_sweep": sweep,
            "last_episodes": self.config.last,
            "true_std_at_the_fork": {"up": 0.0, "right": self.config.true_fork_std},
        }


def first_steady_episode(share: np.ndarray, level: float = 0.9, width: int = 25) -> int | None:
    """The first episode from which the smoothed curve `[E]` stays at or above the level."""
    smooth = np.convolve(share, np.ones(width) / width, mode="valid")
    below = np.flatnonzero(smooth < level)
    first = 0 if below.size == 0 else int(below[-1]) + 1
    return first if first < smooth.size else None
