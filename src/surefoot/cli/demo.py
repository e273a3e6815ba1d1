"""`surefoot demo`: a reduced risky cliff, the table, the paths, where the figures are."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.cli.options import parse

if TYPE_CHECKING:
    from rich.table import Table

    from surefoot.paper.risky_cliff import CliffResults


@dataclass(frozen=True)
class DemoOptions:
    trials: int = 16
    """Independent trials of each policy."""
    episodes: int = 300
    """Episodes of each trial."""
    seed: int = 0
    """Seed of all trials."""
    out: Path = Path("runs/demo")
    """Where figures, tables and summary.json go."""


def main(words: list[str]) -> int:
    options = parse(DemoOptions, words, "surefoot demo", "A small run of the main experiment.")
    from rich.console import Console

    from surefoot.paper.risky_cliff import EXPERIMENT, RiskyCliffConfig
    from surefoot.paper.risky_cliff.figures import label_of
    from surefoot.runs.directory import RunDir

    config = RiskyCliffConfig(
        trials=options.trials,
        episodes=options.episodes,
        seed=options.seed,
        losses=("wgf-mixture",),
        checks=(),
        tolerances=(),
        last=min(100, options.episodes),
    )
    console = Console()
    console.print(
        "Two paths around a cliff are worth the same on average: along the edge with random "
        "rewards, or over the top row with certain ones. Five policies gather data while the "
        f"same greedy target is learned ({options.trials} trials, {options.episodes} episodes)."
    )
    begin = time.monotonic()
    EXPERIMENT.run(config, options.out, existing="overwrite")
    results = EXPERIMENT.results(RunDir.open(options.out))
    console.print(table(results))
    for policy in ("ssd", "cvar:0.25"):
        console.print(f"\n{label_of(policy)}, path of the first trial without exploration:")
        console.print(drawn_path(results, policy), highlight=False, markup=False)
    console.print(
        f"\nFigures, tables and summary.json are in {options.out} "
        f"({time.monotonic() - begin:.0f} s; the full experiment: surefoot reproduce risky-cliff)"
    )
    return 0


def table(results: CliffResults) -> Table:
    from rich.table import Table

    from surefoot.paper.risky_cliff.figures import label_of

    made = Table(title=f"last {results.config.last} episodes, mean with 95 % interval")
    for column in ("behaviour", "over the top row", "steps", "return", "falls per trial"):
        made.add_column(column)
    for policy in results.config.policies:
        cell = results.cell("wgf-mixture", policy)
        names = ("over_top", "steps", "return", "falls")
        row = [str(results.interval(cell, name)) for name in names]
        made.add_row(label_of(policy), *row, style="bold" if policy == "ssd" else "")
    return made


def drawn_path(results: CliffResults, policy: str) -> str:
    from surefoot.envs import GreedyPath, draw_path, noisy_states

    grid = results.config.grid
    path = [int(s) for s in results.path(results.cell("wgf-mixture", policy))]
    taken = [[a for a in range(4) if grid.move(s, a) == n] for s, n in itertools.pairwise(path)]
    actions = tuple(a[0] for a in taken if a)  # a fall leads nowhere near: it has no arrow
    walked = GreedyPath(tuple(path), actions, 0.0, True)
    return draw_path(grid, walked, noisy_states(results.config.mdp))
