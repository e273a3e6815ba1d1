"""Risky-cliff trials on one and two workers of either engine, beside the same trials in a row.

A trial is Algorithm 1 with mixture targets, SSD behaviour and 10,000 steps (some 400 episodes),
evaluated at its end. Seconds are CPU seconds a trial over the number of workers, once each has
compiled: the throughput where every worker has a core to itself, whatever else the machine does.
The wall clock, and what a sweep of 10^4 trials costs, is in docs/scaling.md.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, Row

TRIAL = {
    "agent": "tabular", "env": "surefoot/RiskyCliff-v0", "steps": 10_000, "eval_episodes": 5,
    "behaviour": "ssd:5e-4", "initial_std": 1.0, "explore": 0.1,
}  # fmt: skip
NAP = 0.1  # seconds of a job that sleeps


class JobTime(NamedTuple):
    """One job, by the clocks of the process that ran it (one clock for all of a machine)."""

    worker: int
    begin: float
    end: float
    cpu: float


def trial_job(seed: int) -> JobTime:
    from surefoot.training.sweep import make_training
    from surefoot.training.trials import run_training

    begin, cpu = time.monotonic(), time.process_time()
    run_training(make_training(TRIAL, seed))
    return JobTime(os.getpid(), begin, time.monotonic(), time.process_time() - cpu)


def empty_job(_: int) -> JobTime:
    now = time.monotonic()
    return JobTime(os.getpid(), now, now, 0.0)


def sleeping_job(seconds: float) -> JobTime:
    """Takes time but no core: what engines do with it does not depend on the load."""
    begin = time.monotonic()
    time.sleep(seconds)
    return JobTime(os.getpid(), begin, time.monotonic(), 0.0)


class Measured(NamedTuple):
    """What one engine with so many workers took."""

    seconds: float  # wall clock per trial once every worker is warm
    wall: float  # median of a warm trial, by the wall clock of its worker
    cpu: float  # median of a warm trial, CPU
    up: float  # until the first worker began its first trial


def measure(engine: str, workers: int, trials: int) -> Measured:
    from surefoot.training.engines import run_jobs

    asked = time.monotonic()
    results = run_jobs(trial_job, range(trials), engine=engine, workers=workers)
    by_worker: dict[int, list[JobTime]] = defaultdict(list)
    for _, job in results:
        by_worker[job.worker].append(job)
    rate, warm = 0.0, []
    for jobs in by_worker.values():
        jobs.sort(key=lambda job: job.end)
        if len(jobs) > 1:
            rate += (len(jobs) - 1) / (jobs[-1].end - jobs[0].end)
            warm += jobs[1:]
    return Measured(
        1 / rate,
        statistics.median(job.end - job.begin for job in warm),
        statistics.median(job.cpu for job in warm),
        min(jobs[0].begin for jobs in by_worker.values()) - asked,
    )


def sleeping(engine: str, workers: int, jobs: int, seconds: float) -> float:
    """Wall seconds a job that sleeps so long, all workers up."""
    from surefoot.training.engines import run_jobs

    results = run_jobs(sleeping_job, [seconds] * jobs, engine=engine, workers=workers)
    by_worker: dict[int, list[JobTime]] = defaultdict(list)
    for _, job in results:
        by_worker[job.worker].append(job)
    begin = max(min(job.begin for job in jobs) for jobs in by_worker.values())
    end = min(max(job.end for job in jobs) for jobs in by_worker.values())
    ends = [job.end for jobs in by_worker.values() for job in jobs]
    return (end - begin) / sum(begin < when <= end for when in ends)


def compiling() -> float:
    """CPU seconds a worker's first trial takes more than its second where no cache helps it."""
    from surefoot.training.engines import run_jobs

    with _environment("JAX_ENABLE_COMPILATION_CACHE", "false"):
        first, second = (s.cpu for _, s in run_jobs(trial_job, [0, 1], engine="local", workers=1))
    return first - second


def overhead(engine: str, jobs: int) -> tuple[float, float]:
    """(wall, driver's CPU) seconds of a job that does nothing, two workers, once they are up."""
    from surefoot.training.engines import run_jobs

    results = run_jobs(empty_job, range(jobs), engine=engine, workers=2)
    for _ in range(jobs // 10):
        next(results)
    begin, cpu = time.monotonic(), time.process_time()
    rest = sum(1 for _ in results)
    # The end of the pool is in it: a fraction of a second over all jobs.
    return (time.monotonic() - begin) / rest, (time.process_time() - cpu) / rest


def hiring(engine: str) -> float:
    """The driver's CPU seconds for one worker more: four that do next to nothing beside two."""
    from surefoot.training.engines import run_jobs

    spent = {}
    for workers in (2, 4):
        cpu = time.process_time()
        list(run_jobs(empty_job, range(workers), engine=engine, workers=workers))
        spent[workers] = time.process_time() - cpu
    return max(0.0, (spent[4] - spent[2]) / 2)


def storing(results: int) -> tuple[float, float]:
    """(wall, CPU) seconds a result, through the threads a sweep writes them with."""
    from surefoot.training.sweep import ResultStore, make_training
    from surefoot.training.sweep.run import ResultWriters

    record = {"returns": [-20.5] * 20, "curve": [(10_000, -20.5)], "training_return": -21.0}
    trials = [make_training(TRIAL, seed) for seed in range(results)]
    with tempfile.TemporaryDirectory(dir=ROOT / "benchmarks") as folder:  # a disk, not memory
        begin, cpu = time.monotonic(), time.process_time()
        with ResultWriters(ResultStore(folder)) as writers:
            for trial in trials:
                writers.keep(trial, {"result": record})
        return (time.monotonic() - begin) / results, (time.process_time() - cpu) / results


def run(quick: bool) -> list[Row]:
    from benchmarks import scaling_page

    _use_all_cores()
    trials, rounds = (4, 1) if quick else (6, 2)
    cases = [("serial", 1), ("local", 1), ("local", 2), *_ray_cases()]
    measured: dict[tuple[str, int], list[Measured]] = defaultdict(list)
    figures: dict[str, Any] = {"store": storing(50 if quick else 300), "engines": {}}
    figures |= {"load": os.getloadavg()[1], "cores": os.cpu_count()}
    with _ray_running():
        for _ in range(rounds):  # in turn: whatever else the machine does hits all of them
            for engine, workers in cases:
                result = measure(engine, workers, trials)
                measured[engine, workers].append(result)
                print(f"  {engine}, {workers}: {result.seconds:.3g} s a trial", flush=True)
        for engine in sorted({engine for engine, _ in cases} - {"serial"}):
            wall, cpu = overhead(engine, 200 if quick else 2000)
            figures["engines"][engine] = {"wall": wall, "cpu": cpu, "hire": hiring(engine)}
            figures["engines"][engine]["sleeping"] = {
                str(workers): sleeping(engine, workers, (10 if quick else 40) * workers, NAP)
                for workers in (1, 2, 4)
            }
    figures["compiling"] = compiling()
    figures["measured"] = {
        f"{engine} {workers}": [m._asdict() for m in results]
        for (engine, workers), results in measured.items()
    }
    if not quick:
        scaling_page.write(figures)
    return _rows(measured, figures)


def _rows(measured: dict[tuple[str, int], list[Measured]], figures: dict[str, Any]) -> list[Row]:
    rows = []
    cpu = {case: statistics.median(m.cpu for m in results) for case, results in measured.items()}
    for (engine, workers), seconds in cpu.items():
        if engine == "serial":
            rows.append(Row("risky-cliff trial, serial", seconds))
            continue
        name = f"risky-cliff trial, {engine}, {workers} worker{'s' * (workers > 1)}"
        rows.append(Row(name, seconds / workers, "serial", cpu["serial", 1]))
    for engine, costs in figures["engines"].items():
        note = f"driver's CPU {1e6 * costs['cpu']:.0f} us; wall clock"
        rows.append(Row(f"job that does nothing, {engine}, 2 workers", costs["wall"], note=note))
        one, two = costs["sleeping"]["1"], costs["sleeping"]["2"]
        case = f"job that sleeps {NAP:g} s, {engine}, 2 workers"
        rows.append(Row(case, two, "1 worker", one, note="wall clock"))
    return [*rows, _store_row(figures)]


def _store_row(figures: dict[str, Any]) -> Row:
    wall, cpu = figures["store"]
    return Row("one result to disk, synced", wall, note=f"wall clock; CPU {1e6 * cpu:.0f} us")


def _ray_cases() -> list[tuple[str, int]]:
    try:
        import ray  # noqa: F401
    except ImportError:
        return []
    return [("ray", 1), ("ray", 2)]


def _ray_running() -> Any:
    """Ray itself is started outside what is measured: a cluster is there before a sweep is."""
    if not _ray_cases():
        return contextlib.nullcontext()
    from surefoot.training.engines import ray_engine

    return ray_engine.connected(ray_engine.import_ray(), "local", 4)


def _use_all_cores() -> None:
    """The harness keeps to one core; workers need theirs, and must find this module."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    known = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), known]))


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Workers inherit it; this process has read its own."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
