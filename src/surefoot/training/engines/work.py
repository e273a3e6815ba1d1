"""Which jobs are still to be run, and how often each has lost its worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from surefoot.errors import RunError

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a job whose workers kept dying."""

    error: RunError


class Work(Generic[Job, Result]):
    """The one place that decides what runs again; a job is finished once, or lost once."""

    def __init__(
        self,
        function: Callable[[Job], Result],
        jobs: Sequence[Job],
        retries: int,
        names: Sequence[str] | None = None,
    ) -> None:
        self.function, self.jobs, self.retries = function, jobs, retries
        self._names = names
        self._pending = deque(range(len(jobs)))
        self._open = set(self._pending)
        self._deaths: dict[int, int] = {}

    @property
    def left(self) -> int:
        """Jobs without a result."""
        return len(self._open)

    @property
    def waiting(self) -> int:
        """Jobs that no worker has."""
        return len(self._pending)

    def take(self) -> int | None:
        """The next job for a worker that is free."""
        return self._pending.popleft() if self._pending else None

    def finish(self, index: int) -> bool:
        """Whether this is the job's first result: no other counts."""
        first = index in self._open
        self._open.discard(index)
        return first

    def put_back(self, index: int) -> None:
        """Its worker went before it had begun the job."""
        self._pending.appendleft(index)

    def died(self, index: int, cause: str) -> Lost | None:
        """Its worker went while it ran the job, which will run again or is lost."""
        self._deaths[index] = self._deaths.get(index, 0) + 1
        if self._deaths[index] <= self.retries:
            self._pending.appendleft(index)
            return None
        self._open.discard(index)
        times = self._deaths[index]
        return Lost(
            RunError(
                f"{self.name(index)}: {times} worker{'s' * (times > 1)} died running it "
                f"(the last: {cause}); out of memory is the usual reason"
            )
        )

    def name(self, index: int) -> str:
        return f"job {index}" if self._names is None else self._names[index]
