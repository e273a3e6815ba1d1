"""Running a sweep: every training that has no result yet, then the table."""

from __future__ import annotations

import re
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.agents.base import BlindLossWarning, blindness
from surefoot.comparison import Comparison, write_returns
from surefoot.core.markup import html_table
from surefoot.errors import Interrupted, RunError
from surefoot.runs.directory import RunDir
from surefoot.runs.files import atomic_write, json_bytes
from surefoot.runs.progress import Mode, progress
from surefoot.runs.session import resumable
from surefoot.training.engines import RETRIES, check_engine
from surefoot.training.engines.board import CounterPlace, counter
from surefoot.training.sweep.spec import Setting, Sweep, words
from surefoot.training.sweep.store import ResultStore
from surefoot.training.sweep.summary import (
    Paired,
    SweepCell,
    Values,
    compare_cells,
    improvements,
    paired_cells,
    to_csv,
    too_many,
)
from surefoot.training.train import Training
from surefoot.training.trials import run_counted, run_training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TrialOutcome = dict[str, Any]
WRITERS = 8  # threads that write results: a disk syncs many files in the time of one


@dataclass(frozen=True)
class SweepResult:
    rows: list[dict[str, Any]]
    """One per cell of the grid: its settings, mean, interval, counts."""
    failures: dict[str, str]
    """Why trials have no result, by their name."""
    run: int
    """Trials that were run now; the others were there."""
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    """Dominance between the cells of each environment, paired by seed, where there are two or more
    and not too many. The key is the environment if the grid has several, else ""."""
    improvements: list[dict[str, Any]] = field(default_factory=list)
    """Of pairs of cells: how likely a training of a does better than one of b, with intervals."""
    values: Values = field(default_factory=dict)
    """The mean return of each training, by cell and seed."""
    note: str = ""
    """Why there are no verdicts, if there are too many cells."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = [["" if v is None else f"{v:.5g}" if isinstance(v, float) else str(v)
                 for v in row.values()] for row in self.rows]  # fmt: skip
        return html_table(list(self.rows[0]), rows) if rows else ""

    def figure(self) -> Figure:
        """A matplotlib figure: the return of each cell, a dot for each seed."""
        from surefoot.plots import draw_sweep_cells

        return draw_sweep_cells(self.rows, [list(own.values()) for own in self.values.values()])


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    retries: int = RETRIES,
    keep_failed: bool = False,
    mode: Mode = "auto",
) -> SweepResult:
    """Run what is missing in `out`; a sweep that was interrupted, or has grown, goes on.

    Results are kept by what a trial is, not by where it stands in a grid: another grid, more
    seeds or another engine in the same directory take what they need of them. Trials that failed
    are tried again, unless `keep_failed`.
    """
    check_engine(engine, address, workers, retries)
    cells = list(sweep.cells())
    trainings = {t.key: t for _, members in cells for t in members}
    names = {t.key: f"{words(chosen)} seed={t.seed}" for chosen, ts in cells for t in ts}
    _check_environments(trainings.values())
    for text in {blindness(training.config): None for training in trainings.values()}:
        if text:  # once, and not in every worker
            warnings.warn(text, BlindLossWarning, stacklevel=2)
    directory = RunDir.create(
        out, {"sweep": "see sweep.toml"}, kind="sweep", seeds=list(sweep.seeds), existing="resume"
    )
    with resumable(out):
        directory.reopen()  # the table that is there may be of another grid
        atomic_write(directory.file("sweep.toml"), sweep.to_toml().encode())
        store = ResultStore(directory.path)
        missing = [t for t in trainings.values() if store.get(t) is None]
        if keep_failed:
            missing = [t for t in missing if store.get_failure(t) is None]
        where = {"engine": engine, "workers": workers, "address": address, "retries": retries}
        total = sum(t.steps for t in trainings.values())
        _run_missing(store, names, missing, total, mode, where)
        return _finish(directory, store, cells, names, len(missing))


def _run_missing(
    store: ResultStore,
    names: dict[str, str],
    missing: list[Training],
    total: int,
    mode: Mode,
    where: dict[str, Any],
) -> None:
    """The bar counts the steps of all trials, its note the trials themselves."""
    before = total - sum(training.steps for training in missing)
    done, own = len(names) - len(missing), [names[training.key] for training in missing]
    with (
        progress(total, f"sweep, {len(names)} trials", "steps", start=before, mode=mode) as bar,
        ResultWriters(store) as writers,
        closing(run_counted(run_job, missing, bar, own, if_lost=_lost, **where)) as outcomes,
    ):
        for index, outcome in outcomes:
            writers.keep(missing[index], outcome)
            done += 1
            bar.note(f"{done} of {len(names)} trials; {own[index]}: {_words(outcome)}")


def run_job(job: tuple[Training, CounterPlace]) -> TrialOutcome:
    """The result, or why there is none: the failure of one training is not the sweep's."""
    training, place = job
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BlindLossWarning)  # the sweep itself has said so
            return {"result": run_training(training, counter(place)).record()}
    except Interrupted:  # asked to stop: no failure of the training
        raise
    except Exception as error:  # the environment is anybody's code
        text = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {text}" if text else type(error).__name__}


def _check_environments(trainings: Iterable[Training]) -> None:
    """An environment that cannot be made is a mistake, not the failure of a thousand trainings."""
    made = {repr((t.env, t.wrapper, sorted(t.env_options.items()))): t for t in trainings}
    for training in made.values():
        training.make_env().close()


def _lost(_: int, error: RunError) -> TrialOutcome:
    return {"error": f"RunError: {error}"}


def _words(outcome: TrialOutcome) -> str:
    if "error" in outcome:
        return f"failed ({outcome['error']})"
    return f"return {outcome['result']['curve'][-1][1]:.5g}"


class ResultWriters:
    """Threads that put results on disk: the driver need not wait for it, file by file."""

    def __init__(self, store: ResultStore) -> None:
        self._store, self._pool = store, ThreadPoolExecutor(WRITERS)
        self._open: deque[Future[Any]] = deque()

    def __enter__(self) -> ResultWriters:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)  # also after Ctrl-C: what is done is kept
        self._settle(0)

    def keep(self, training: Training, outcome: TrialOutcome) -> None:
        if "error" in outcome:
            self._open.append(
                self._pool.submit(self._store.put_failure, training, outcome["error"])
            )
        else:
            self._open.append(self._pool.submit(self._store.put, training, outcome["result"]))
        self._settle(2 * WRITERS)  # a slow disk holds the sweep back, not the memory

    def _settle(self, most: int) -> None:
        """Raise what a write has raised, such as a full disk."""
        while self._open and (len(self._open) > most or self._open[0].done()):
            self._open.popleft().result()


def _finish(
    directory: RunDir,
    store: ResultStore,
    cells: list[tuple[Any, list[Training]]],
    names: dict[str, str],
    run: int,
) -> SweepResult:
    rows, lines, failures = [], [], {}
    values: dict[Setting, dict[int, float]] = {}
    for chosen, members in cells:
        records = []
        own = values.setdefault(chosen, {})
        for training in members:
            record = store.get(training)
            if record is None:
                failures[names[training.key]] = store.get_failure(training) or "not run"
            else:
                records.append(record)
                own[training.seed] = float(np.mean(record["returns"]))
            value = None if record is None else record["curve"][-1][1]
            line = {"seed": training.seed, "return": value, "key": training.key}
            lines.append({**dict(chosen), **line})
        rows.append(SweepCell(chosen, tuple(records), len(members) - len(records)).row())
    atomic_write(directory.file("summary.csv"), to_csv(rows))
    atomic_write(directory.file("trials.csv"), to_csv(lines))
    paired, better = paired_cells(values), improvements(values)
    comparisons = compare_cells(paired)
    _write_comparisons(directory, comparisons, paired)
    directory.write_summary({"cells": rows, "improvements": better, "failures": failures})
    if not failures:
        directory.mark_complete()
    return SweepResult(rows, failures, run, comparisons, better, values, too_many(paired))


def _write_comparisons(
    directory: RunDir, comparisons: dict[str, Comparison], paired: dict[str, Paired]
) -> None:
    """What `surefoot report` shows, and tables that `surefoot compare` reads: returns.csv, or
    returns-1.csv and so on in the order in which the grid names the environments."""
    several = len(paired) > 1
    tables = {
        f"returns-{i}.csv" if several else "returns.csv": own
        for i, own in enumerate(paired.values(), start=1)
    }
    for path in directory.path.iterdir():  # of an earlier, larger sweep
        old = path.name == "comparison.json" or re.fullmatch(r"returns(-\d+)?\.csv", path.name)
        if old and path.name not in tables:
            path.unlink()
    for name, (seeds, columns) in tables.items():
        write_returns(directory.file(name), columns, ("seed", seeds))
    content = {task: own.to_dict() for task, own in comparisons.items()}
    if content:
        only = next(iter(content.values()))
        content = {"environments": content} if several else only
        atomic_write(directory.file("comparison.json"), json_bytes(content))
