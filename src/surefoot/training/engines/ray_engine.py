"""Actors of a Ray cluster as workers: an existing one by its address, or one of this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from surefoot.errors import InputError, RunError
from surefoot.training.engines.work import Lost, Work
from surefoot.training.engines.worker import Worker, remote_environment, versions

Job = TypeVar("Job")
Result = TypeVar("Result")
PATIENCE = 600.0
"""Seconds without a single worker on a living node after which a run gives up: nodes take minutes
to come back."""
DEPTH = 2
"""Jobs a worker may hold, so that it need not wait for the driver between two of them."""
LOCAL_STARTS = 3
"""Times a Ray of this machine's own is started before giving up."""
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
BROKEN_STARTS = 5
"""Workers in a row that may fail to start."""


def run_ray(
    work: Work[Job, Result], workers: int | None, address: str | None
) -> Iterator[tuple[int, Result | Lost]]:
    """Jobs go to actors that are up, never to the cluster's queue: it holds no more than they do.

    An actor that dies is replaced; Ray starts the new one wherever there is room, if need be on a
    node that has still to join.
    """
    ray = import_ray()
    with connected(ray, address, workers):
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        crew = _Crew(ray, work, min(count, work.left))
        try:
            while work.left:
                yield from crew.step()
        finally:
            crew.dismiss()


class _Member:
    """One actor and the jobs it holds, in the order in which it runs them."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.greeting: Any = actor.versions.remote()  # answered once the actor is up
        self.up = False
        self.held: deque[tuple[int, Any]] = deque()

    @property
    def next_answer(self) -> Any:
        return self.greeting if not self.up else (self.held[0][1] if self.held else None)


class _Crew:
    """The actors of one run."""

    def __init__(self, ray: Any, work: Work[Any, Any], count: int) -> None:
        self._ray, self._work = ray, work
        options = {"num_cpus": 1, "runtime_env": {"env_vars": remote_environment()}}
        self._kind = ray.remote(**options)(Worker)
        self._members = [self._hire() for _ in range(count)]
        self._broken_starts = 0
        self._last_up = time.monotonic()

    def step(self) -> Iterator[tuple[int, Any]]:
        """Give out jobs, wait for an answer, hand on what has come."""
        self._give_out()
        asked = {m.next_answer: m for m in self._members if m.next_answer is not None}
        answered, _ = self._ray.wait(list(asked), num_returns=1, timeout=5.0)
        if answered:  # the others that are there too: one look for all
            answered, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=0)
        results: list[tuple[int, Any]] = []
        for answer in answered:
            results += self._hear(asked[answer], answer)
        self._check_patience(bool(answered))
        self._give_out()  # before the caller has its turn: it may take long
        yield from results

    def dismiss(self) -> None:
        for member in self._members:
            with contextlib.suppress(Exception):  # of a cluster that is gone
                self._end(member)

    def _give_out(self) -> None:
        for level in range(1, DEPTH + 1):
            # A second job only while there are plenty: at the end it would wait behind a long
            # one while other workers have nothing to do.
            if level > 1 and self._work.waiting <= DEPTH * len(self._members):
                return
            for member in self._members:
                if member.up and len(member.held) < level:
                    index = self._work.take()
                    if index is None:
                        return
                    ref = member.actor.run.remote(self._work.jobs[index])
                    member.held.append((index, ref))

    def _hear(self, member: _Member, answer: Any) -> list[tuple[int, Any]]:
        try:
            reply = self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            raise RunError(f"a Ray worker failed: {_last_line(error)}") from error
        except self._ray.exceptions.RayError as error:  # the actor, its node or its answer is gone
            return self._replace(member, error)
        if not member.up:
            _check_versions(reply)
            member.up, self._broken_starts = True, 0
            return []
        index, _ = member.held.popleft()
        failure, result = reply
        if failure is not None:
            raise failure
        return [(index, result)] if self._work.finish(index) else []

    def _replace(self, member: _Member, error: Exception) -> list[tuple[int, Any]]:
        if not member.up:
            self._note_broken_start(error)
        lost = None
        for place, (index, _) in reversed(list(enumerate(member.held))):
            if place > 0:
                self._work.put_back(index)
            else:  # actors run in order: only the first can have been running
                lost = self._work.died(index, type(error).__name__)
        first = member.held[0][0] if member.held else -1
        self._end(member)
        self._members[self._members.index(member)] = self._hire()
        return [] if lost is None else [(first, lost)]

    def _note_broken_start(self, error: Exception) -> None:
        self._broken_starts += 1
        if getattr(error, "actor_init_failed", False) or self._broken_starts >= BROKEN_STARTS:
            raise RunError(
                f"Ray workers cannot start ({_last_line(error)}): is surefoot installed on every "
                "node?"
            ) from error

    def _check_patience(self, answered: bool) -> None:
        now = time.monotonic()
        if answered or (any(member.up for member in self._members) and self._living_cpus() > 0):
            self._last_up = now
        elif now - self._last_up > PATIENCE:
            raise RunError(
                f"no Ray worker for {PATIENCE:.0f} s: the cluster's nodes have "
                f"{self._living_cpus():g} CPUs (ray status shows them). What is finished is kept: "
                "bring nodes back, or name another --address, and go on with the same command"
            )

    def _living_cpus(self) -> float:
        """Of nodes that are up; an actor may seem to be there for long after its node is gone."""
        try:
            nodes = [node for node in self._ray.nodes() if node.get("Alive")]
        except Exception:  # nobody answers for the cluster any more
            return 0.0
        return sum(node.get("Resources", {}).get("CPU", 0.0) for node in nodes)

    def _hire(self) -> _Member:
        return _Member(self._kind.remote(self._work.function))

    def _end(self, member: _Member) -> None:
        self._ray.kill(member.actor)


def import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a library reports to nobody
    # Keep CUDA devices as they are for actors that ask for none, and do not announce it.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise InputError(
            "engine 'ray': Ray is not installed (pip install 'surefoot[ray]')"
        ) from None
    return ray


@contextmanager
def connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """A connection this process already has is used, and left as it is."""
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, "", "local", "auto", here):
            raise InputError(f"address = {address!r}: already connected to another Ray, {here}")
        yield
        return
    if address in (None, "", "local"):
        _start_local(ray, workers)
    else:
        assert address is not None
        _check_reachable(address)
        try:
            ray.init(address=address, **QUIET)
        except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
            raise RunError(f"no Ray cluster at {address!r}: {_last_line(error)}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _start_local(ray: Any, workers: int | None) -> None:
    """A machine that is busy may not be ready within the time Ray allows: try again."""
    for attempt in range(1, LOCAL_STARTS + 1):
        try:
            with warnings.catch_warnings():  # JAX warns of forks; Ray's processes begin anew
                warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
                # "local" and not nothing: a stale address file of an earlier cluster breaks that.
                ray.init(address="local", num_cpus=workers, include_dashboard=False, **QUIET)
            return
        except Exception as error:  # Ray has no kind of its own for it
            ray.shutdown()
            if attempt == LOCAL_STARTS:
                raise RunError(f"Ray cannot start here: {_last_line(error)}") from error


def _check_reachable(address: str) -> None:
    """Ray itself tries for a minute, and then ends the process."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise RunError(f"no Ray cluster at {address!r}: {error.strerror or error}") from None


def _check_versions(theirs: dict[str, str]) -> None:
    """Results must not depend on where a job has run."""
    for name, ours in versions().items():
        if theirs[name] != ours:
            raise RunError(f"a Ray worker has {name} {theirs[name]}, this process {ours}")


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
