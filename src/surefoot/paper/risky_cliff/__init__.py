"""Section 5.4, control in the presence of uncertainty, on the risky cliff."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from surefoot.errors import RunError
from surefoot.paper.claims import Claim, write_claims
from surefoot.paper.risky_cliff.cells import Outcome, run_cell
from surefoot.paper.risky_cliff.config import LOSSES, Cell, Config
from surefoot.paper.risky_cliff.figures import draw_figures
from surefoot.paper.risky_cliff.results import Results, learned_path
from surefoot.paper.risky_cliff.verdicts import verdicts
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.progress import progress
from surefoot.training.engines import run_jobs

__all__ = ["LOSSES", "Cell", "Config", "Results", "learned_path", "run"]


def run(config: Config, out: Path, existing: Existing = "error") -> list[Claim]:
    """Every cell that is not on disk yet, then figures, summary and verdicts."""
    directory = RunDir.create(
        out, config.computed(), kind="risky-cliff", seeds=[config.seed], existing=existing
    )
    cells = config.cells()
    missing = [c for c in cells if not directory.has_table(c.name)]
    with progress(len(cells), "risky cliff", unit="cells", start=len(cells) - len(missing)) as task:
        jobs = [(config, cell) for cell in missing]
        for index, outcome in run_jobs(
            run_cell,
            jobs,
            engine=config.engine,
            workers=config.workers or None,
            address=config.address or None,
            names=[cell.name for cell in missing],
        ):
            cell = missing[index]
            if outcome.fault:
                directory.write_table(outcome.episodes, f"stopped.{cell.name}")
                raise RunError(f"{cell.name}: {outcome.fault}; what was computed is in {out}")
            write_outcome(directory, cell, outcome)  # on disk before the next one
            task.advance()
    results = Results(config, directory)
    directory.write_summary(results.summary())
    made = verdicts(results)
    write_claims(directory, made)
    draw_figures(results, directory)
    directory.mark_complete()
    return made


def write_outcome(directory: RunDir, cell: Cell, outcome: Outcome) -> None:
    """The episodes last: their table marks the cell as done."""
    states, actions, particles = outcome.z.shape
    where = np.indices((states, actions, particles)).reshape(3, -1)
    directory.write_table(
        {
            "state": where[0],
            "action": where[1],
            "particle": where[2],
            "z": outcome.z.reshape(-1),
        },
        f"particles.{cell.name}",
    )
    columns = {"state": np.arange(states), "visited": outcome.visited}
    for name, path in (("own", outcome.own_path), ("greedy", outcome.greedy_path)):
        columns[name] = np.full(states, -1)
        columns[name][path[::-1]] = np.arange(path.size)[::-1]  # the first visit counts
    directory.write_table(columns, f"path.{cell.name}")
    directory.write_table(
        outcome.episodes,
        cell.name,
        {
            "loss": cell.loss,
            "policy": cell.policy,
            "tolerance": cell.tolerance,
            "fork_std": outcome.fork_std,
        },
    )
