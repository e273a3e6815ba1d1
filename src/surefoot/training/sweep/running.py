"""Running a sweep: every trial that has no result yet, then the table."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.envs.making import made_env
from surefoot.errors import RunError
from surefoot.runs.directory import RunDir
from surefoot.runs.files import atomic_write
from surefoot.runs.progress import Mode, progress
from surefoot.training.engines import RETRIES, Board, check_engine, run_jobs
from surefoot.training.sweep.learning import Outcome, run_job
from surefoot.training.sweep.spec import Sweep, words
from surefoot.training.sweep.store import ResultStore
from surefoot.training.sweep.summary import Cell, to_csv
from surefoot.training.sweep.trial import SweepTrial

WRITERS = 8  # threads that write results: a disk syncs many files in the time of one


@dataclass(frozen=True)
class SweepResult:
    rows: list[dict[str, Any]]
    """One per cell of the grid: its settings, mean, interval, counts."""
    failures: dict[str, str]
    """Why trials have no result, by their name."""
    run: int
    """Trials that were run now; the others were there."""


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
    names = {t: f"{words(chosen)} seed={t.seed}" for chosen, trials in cells for t in trials}
    _check_environments(names)
    directory = RunDir.create(
        out, {"sweep": "see sweep.toml"}, kind="sweep", seeds=list(sweep.seeds), existing="resume"
    )
    atomic_write(directory.path / "sweep.toml", sweep.to_toml().encode())
    store = ResultStore(directory.path)
    missing = [trial for trial in names if store.get(trial) is None]
    if keep_failed:
        missing = [trial for trial in missing if store.get_failure(trial) is None]
    if missing:
        (directory.path / "complete.json").unlink(missing_ok=True)
    where = {"engine": engine, "workers": workers, "address": address, "retries": retries}
    _run_missing(store, names, missing, mode, where)
    return _finish(directory, store, cells, names, len(missing))


def _run_missing(
    store: ResultStore,
    names: dict[SweepTrial, str],
    missing: list[SweepTrial],
    mode: Mode,
    where: dict[str, Any],
) -> None:
    """The bar counts the steps of all trials, its note the trials themselves."""
    steps = [trial.steps for trial in missing]
    total, done = sum(trial.steps for trial in names), len(names) - len(missing)
    title = f"sweep, {len(names)} trials"
    with (
        progress(total, title, "steps", start=total - sum(steps), mode=mode) as bar,
        Board(steps, bar, here=where["engine"] != "ray") as board,
    ):
        jobs = [(trial, board.place(i)) for i, trial in enumerate(missing)]
        told = [names[trial] for trial in missing]
        with _Writers(store) as writers:
            for index, outcome in run_jobs(run_job, jobs, names=told, if_lost=_lost, **where):
                writers.keep(missing[index], outcome)
                board.finished(index)
                done += 1
                bar.note(f"{done} of {len(names)} trials; {told[index]}: {_words(outcome)}")


def _check_environments(trials: dict[SweepTrial, str]) -> None:
    """An environment that cannot be made is a mistake, not the failure of a thousand trials."""
    for env, options in {(trial.env, trial.env_options) for trial in trials}:
        made_env(env, **dict(options)).close()


def _lost(_: int, error: RunError) -> Outcome:
    return {"error": f"RunError: {error}"}


def _words(outcome: Outcome) -> str:
    if "error" in outcome:
        return f"failed ({outcome['error']})"
    return f"return {outcome['result']['curve'][-1][1]:.5g}"


class _Writers:
    """Threads that put results on disk: the driver need not wait for it, file by file."""

    def __init__(self, store: ResultStore) -> None:
        self._store, self._pool = store, ThreadPoolExecutor(WRITERS)
        self._open: deque[Future[Any]] = deque()

    def __enter__(self) -> _Writers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)  # also after Ctrl-C: what is done is kept
        self._settle(0)

    def keep(self, trial: SweepTrial, outcome: Outcome) -> None:
        if "error" in outcome:
            self._open.append(self._pool.submit(self._store.put_failure, trial, outcome["error"]))
        else:
            self._open.append(self._pool.submit(self._store.put, trial, outcome["result"]))
        self._settle(2 * WRITERS)  # a slow disk holds the sweep back, not the memory

    def _settle(self, most: int) -> None:
        """Raise what a write has raised, such as a full disk."""
        while self._open and (len(self._open) > most or self._open[0].done()):
            self._open.popleft().result()


def _finish(
    directory: RunDir,
    store: ResultStore,
    cells: list[tuple[Any, list[SweepTrial]]],
    names: dict[SweepTrial, str],
    run: int,
) -> SweepResult:
    records = {trial: store.get(trial) for trial in names}
    failures = {
        names[trial]: store.get_failure(trial) or "not run"
        for trial, record in records.items()
        if record is None
    }
    rows, trials = [], []
    for chosen, members in cells:
        done = tuple(record for t in members if (record := records[t]) is not None)
        rows.append(Cell(chosen, done, len(members) - len(done)).row())
        for trial in members:
            record = records[trial]
            value = None if record is None else record["curve"][-1][1]
            trials.append({**dict(chosen), "seed": trial.seed, "return": value, "key": trial.key})
    atomic_write(directory.path / "summary.csv", to_csv(rows))
    atomic_write(directory.path / "trials.csv", to_csv(trials))
    directory.write_summary({"cells": rows, "failures": failures})
    if not failures:
        directory.mark_complete()
    return SweepResult(rows, failures, run)
