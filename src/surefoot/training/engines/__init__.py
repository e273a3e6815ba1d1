"""Independent jobs here, on processes of this machine, or on a Ray cluster: one `map`.

    for index, result in run_jobs(function, jobs, engine="ray", address="auto"):
        ...

| engine | where a job runs                                             | survives               |
|--------|--------------------------------------------------------------|------------------------|
| serial | in this process, one after the other                         |                        |
| local  | in worker processes of this machine, one per core by default | the death of a worker  |
| ray    | in the actors of a Ray cluster, one per CPU by default       | ... and of whole nodes |

Workers are reused from job to job, so that starting up and compiling is paid once each, and have
one thread. Nothing an engine does is part of what is computed: results are equal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from surefoot.errors import InputError, RunError, at_least, unknown
from surefoot.training.engines.board import Board
from surefoot.training.engines.work import Lost, Work

__all__ = ["ENGINES", "RETRIES", "Board", "check_engine", "run_jobs"]

Job = TypeVar("Job")
Result = TypeVar("Result")
ENGINES = ("serial", "local", "ray")
ADDRESS = r"local|auto|(ray://)?[^\s/:]+:\d{1,5}"
RETRIES = 3
"""How often a job is tried again after the death of its worker."""


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    retries: int = RETRIES,
    names: Sequence[str] | None = None,
    if_lost: Callable[[int, RunError], Result] | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield `(index, function(job))` once for each job, as jobs finish, in any order.

    `address` is of `ray` alone: "local" (the default) starts one on this machine, "auto" finds
    the cluster this machine belongs to, `host:port` or `ray://host:port` names one. A job whose
    worker dies goes to another up to `retries` times; then a `RunError` says which it was,
    by `names`, or `if_lost` puts something in the place of its result and the others go on. What
    `function` itself raises is raised here, and the rest is not run.
    """
    check_engine(engine, address, workers, retries)
    if not jobs:
        return
    work: Work[Job, Result] = Work(function, jobs, retries, names)
    for index, result in _running(engine, work, workers, address):
        if not isinstance(result, Lost):
            yield index, result
        elif if_lost is not None:
            yield index, if_lost(index, result.error)
        else:
            raise result.error


def check_engine(
    engine: str, address: str | None = None, workers: int | None = None, retries: int = RETRIES
) -> None:
    """Complain about options that cannot work, before anything is begun."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if address and engine != "ray":
        raise InputError(f"address = {address!r}: only the engine ray has an address")
    if address and not re.fullmatch(ADDRESS, address):
        raise InputError(f"address = {address!r}: use local, auto, host:port or ray://host:port")
    at_least(1, workers=1 if workers is None else workers)
    at_least(0, retries=retries)


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _running(
    engine: str, work: Work[Job, Result], workers: int | None, address: str | None
) -> Iterator[tuple[int, Result | Lost]]:
    if engine == "ray":
        from surefoot.training.engines.ray_engine import run_ray

        return run_ray(work, workers, address)
    if engine == "local":
        from surefoot.training.engines.local import run_local

        return run_local(work, workers or cores())
    return run_serial(work)


def run_serial(work: Work[Job, Result]) -> Iterator[tuple[int, Result]]:
    for index, job in enumerate(work.jobs):
        yield index, work.function(job)
