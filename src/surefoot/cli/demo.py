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

    from surefoot.paper.risky_cliff import Results
    from surefoot.runs.directory import RunDir


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

    from surefoot.paper.risky_cliff import Config, Results, run
    from surefoot.paper.risky_cliff.figures import label_of
    from surefoot.runs.directory import RunDir

    config = Config(
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
    run(config, options.out, existing="overwrite")
    directory = RunDir.open(options.out)
    results = Results(config, directory)
    console.print(table(results))
    for policy in ("ssd", "cvar:0.25"):
        console.print(f"\n{label_of(policy)}, path of the first trial without exploration:")
        console.print(drawn_path(results, directory, policy), highlight=False, markup=False)
    console.print(
        f"\nFigures, tables and summary.json are in {options.out} "
        f"({time.monotonic() - begin:.0f} s; the full experiment: surefoot reproduce risky-cliff)"
    )
    return 0


def table(results: Results) -> Table:
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


def drawn_path(results: Results, directory: RunDir, policy: str) -> str:
    from surefoot.envs import GreedyPath, draw_path, noisy_states
    from surefoot.paper.risky_cliff import learned_path
    from surefoot.paper.risky_cliff.cells import grid_of, mdp_of

    mdp, grid = mdp_of(results.config), grid_of(results.config)
    path = [int(s) for s in learned_path(directory, results.cell("wgf-mixture", policy).name)]
    taken = [[a for a in range(4) if grid.move(s, a) == n] for s, n in itertools.pairwise(path)]
    actions = tuple(a[0] for a in taken if a)  # a fall leads nowhere near: it has no arrow
    return draw_path(grid, GreedyPath(tuple(path), actions, 0.0, True), noisy_states(mdp))
