"""Independent jobs, one after the other or on several processes: one `map`-shaped interface."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from surefoot.errors import InputError, unknown

Job = TypeVar("Job")
Result = TypeVar("Result")
ENGINES = ("serial", "local")


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    engine: str = "local",
    workers: int | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield `(index, function(job))` as jobs finish, in any order.

    `local` keeps `workers` processes (one per core by default), each with one thread for XLA, and
    reuses them from job to job so that starting up and compiling is paid once. Processes are
    spawned, never forked: a fork after JAX has run hangs.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: there must be at least one")
    workers = min(workers or len(os.sched_getaffinity(0)), len(jobs))
    if engine == "serial" or workers <= 1:
        for index, job in enumerate(jobs):
            yield index, function(job)
        return
    from joblib import Parallel, delayed

    with _one_thread_per_worker():
        pool = Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered")
        yield from pool(delayed(_numbered)(function, i, job) for i, job in enumerate(jobs))


def _numbered(function: Callable[[Any], Any], index: int, job: Any) -> tuple[int, Any]:
    return index, function(job)


@contextmanager
def _one_thread_per_worker() -> Iterator[None]:
    """XLA reads NPROC when it starts; workers inherit it, this process has started already."""
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before
