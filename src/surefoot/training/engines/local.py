"""Worker processes of this machine, from loky: spawned, for a fork after JAX hangs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool

from surefoot.training.engines import worker
from surefoot.training.engines.work import Lost, Work

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_local(work: Work[Job, Result], workers: int) -> Iterator[tuple[int, Result | Lost]]:
    """Each worker is a pool of one: its death is about the one job it had, and no other."""
    slots = [_Slot() for _ in range(min(workers, work.left))]
    running: dict[Future[Any], tuple[int, _Slot]] = {}

    def employ(slot: _Slot) -> None:
        index = work.take()
        if index is not None:
            running[slot.submit(work.function, work.jobs[index])] = index, slot

    try:
        for slot in slots:
            employ(slot)
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            results: list[tuple[int, Any]] = []
            for future in done:
                index, slot = running.pop(future)
                results += _settle(work, index, slot, future)
                employ(slot)  # before the caller has its turn: it may take long
            yield from results
    finally:
        for slot in slots:
            slot.end()


def _settle(
    work: Work[Any, Any], index: int, slot: _Slot, future: Future[Any]
) -> list[tuple[int, Any]]:
    try:
        result = future.result()
    except BrokenProcessPool as error:
        slot.renew()
        lost = work.died(index, _cause(error))
        return [] if lost is None else [(index, lost)]
    return [(index, result)] if work.finish(index) else []


class _Slot:
    """A place for one worker process; it starts with the first job."""

    def __init__(self) -> None:
        self._pool = _new_pool()

    def submit(self, function: Any, job: Any) -> Future[Any]:
        return self._pool.submit(function, job)

    def renew(self) -> None:
        self.end()
        self._pool = _new_pool()

    def end(self) -> None:
        self._pool.shutdown(wait=True, kill_workers=True)


def _new_pool() -> Any:
    return ProcessPoolExecutor(
        max_workers=1,
        initializer=worker.begin_local,
        initargs=(os.getpid(), tuple(worker.MODULE_PATHS)),
        env=worker.ENVIRONMENT,
    )


def _cause(error: Exception) -> str:
    """`SIGKILL(-9)` out of a paragraph of advice."""
    codes = re.search(r"exit codes of the workers are \{(.*?)\}", str(error))
    return codes.group(1) if codes else type(error).__name__
