"""From counts per episode to means with intervals, one row per cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.core.stats import Interval, mean_interval
from surefoot.paper.risky_cliff.config import Cell, Config
from surefoot.policies import DecidedBy
from surefoot.runs.directory import RunDir


class Results:
    """The episodes of each cell as arrays `[trials, episodes]`, read from the run directory."""

    def __init__(self, config: Config, run: RunDir) -> None:
        self.config = config
        self._columns: dict[str, dict[str, np.ndarray]] = {}
        self._fork: dict[str, dict[str, float]] = {}
        for cell in config.cells():
            frame = run.read_table(cell.name)
            self._fork[cell.name] = run.table_metadata(cell.name)["fork_std"]
            trials = int(frame["trial"].max()) + 1  # type: ignore[arg-type]
            self._columns[cell.name] = {
                name: frame[name].to_numpy().reshape(trials, -1)
                for name in frame.columns
                if name not in ("trial", "episode")
            }

    def __getitem__(self, cell: Cell) -> dict[str, np.ndarray]:
        return self._columns[cell.name]

    def cell(self, loss: str, policy: str) -> Cell:
        return Cell(loss, policy, self.config.tolerance)

    def fork_std(self, cell: Cell) -> dict[str, float]:
        """Learned deviation of each action's return where the two paths part, over trials."""
        return self._fork[cell.name]

    @property
    def true_fork_std(self) -> float:
        """Deviation of the return along the cliff: one noisy reward in all but two columns."""
        return self.config.sigma * (self.config.columns - 2) ** 0.5

    def per_trial(self, cell: Cell, name: str) -> np.ndarray:
        """`[trials]`: falls are added up, everything else averages the last episodes."""
        values = self[cell][name]
        return values.sum(1) if name == "falls" else values[:, -self.config.last :].mean(1)

    def interval(self, cell: Cell, name: str) -> Interval:
        """Student t over trials."""
        return mean_interval(self.per_trial(cell, name))

    def decided(self, cell: Cell) -> dict[str, float]:
        """Share of steps that each authority decided, over all episodes."""
        steps = self[cell]["steps"].sum()
        return {
            who.name.lower(): float(self[cell][f"by_{who.name.lower()}"].sum() / steps)
            for who in DecidedBy
        }

    def summary_of(self, cell: Cell) -> dict[str, Any]:
        counts = self[cell]
        steps = counts["steps"].sum()
        return {
            "top_row_share": self.interval(cell, "over_top").as_dict(),
            "falls": self.interval(cell, "falls").as_dict(),
            "steps": self.interval(cell, "steps").as_dict(),
            "return": self.interval(cell, "return").as_dict(),
            "tolerance": cell.tolerance,
            "share_of_steps_with_several_best_actions": float(counts["ties"].sum() / steps),
            "share_of_ties_decided_by_dominance": float(
                counts["ties_by_dominance"].sum() / max(counts["ties"].sum(), 1)
            ),
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
            "true_std_at_the_fork": {"up": 0.0, "right": self.true_fork_std},
        }


def first_steady_episode(share: np.ndarray, level: float = 0.9, width: int = 25) -> int | None:
    """The first episode from which the smoothed curve `[E]` stays at or above the level."""
    smooth = np.convolve(share, np.ones(width) / width, mode="valid")
    below = np.flatnonzero(smooth < level)
    first = 0 if below.size == 0 else int(below[-1]) + 1
    return first if first < smooth.size else None


def learned_path(directory: RunDir, cell: str, whose: str = "own") -> np.ndarray:
    """States in order: the behaviour's `own` path without exploration, or the `greedy` one."""
    place = directory.read_table(f"path.{cell}")[whose].to_numpy()
    return np.argsort(place, kind="stable")[int((place < 0).sum()) :]
