"""A sweep as a queue: workers that compute, one driver that hands out jobs and stores results.

Discrete events in the order of time. Worker w is up once the driver has started w + 1 workers and
the process has imported and compiled what it needs. A finished trial waits for the driver, which
first gives the worker its next job and then stores the result, as `run_local` and `run_ray` do. A
worker that holds more than one job begins the next without waiting.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Costs:
    """Seconds."""

    driver: float
    """Of the driver for each trial: handing it out and receiving its result."""
    store: float
    """Of the driver for each result: writing it to disk for good."""
    hire: float
    """Of the driver for each worker it starts."""
    start: float
    """From then until the worker has imported and compiled; workers do it side by side."""
    depth: int = 1
    """Jobs a worker may hold."""


@dataclass(frozen=True)
class Outcome:
    seconds: float
    """Until the last result is stored."""
    busy: float
    """Share of the workers' time that is spent on trials."""
    driver_busy: float
    """Share of the time the driver is at work."""


def simulate(durations: Sequence[float], workers: int, costs: Costs) -> Outcome:
    """Run trials of these lengths, in this order, on so many workers."""
    workers = min(workers, len(durations))
    if not workers:
        return Outcome(0.0, 0.0, 0.0)
    handed = 0  # trials given out so far
    held = [0] * workers  # trials that wait at a worker behind the one it runs
    driver_free = workers * costs.hire  # it starts all of them first
    worked = driver_free
    events: list[tuple[float, int, int]] = []  # (end of a trial, order, worker)

    def begin(worker: int, now: float) -> None:
        nonlocal handed
        heapq.heappush(events, (now + durations[handed], handed, worker))
        handed += 1

    for worker in range(workers):
        begin(worker, (worker + 1) * costs.hire + costs.start)
    for _ in range(1, costs.depth):
        for worker in range(workers):
            if len(durations) - handed - sum(held) > costs.depth * workers:
                held[worker] += 1
    while events:
        end, _, worker = heapq.heappop(events)
        if held[worker]:
            held[worker] -= 1
            begin(worker, end)
            idle = False
        else:
            idle = True
        served = max(end, driver_free) + costs.driver
        spare = len(durations) - handed - sum(held)
        if spare > 0 and idle:
            begin(worker, served)
        elif spare > costs.depth * workers:
            held[worker] += 1
        driver_free = served + costs.store
        worked += costs.driver + costs.store
    busy = sum(durations) / (driver_free * workers) if driver_free > 0 else 0.0
    return Outcome(driver_free, busy, worked / driver_free if driver_free > 0 else 0.0)


def limits(durations: Sequence[float], workers: int, costs: Costs) -> dict[str, float]:
    """By what share of the time each cost prolongs the sweep: the whole without it is shorter."""
    whole = simulate(durations, workers, costs).seconds
    without = {
        "computing": ([0.0] * len(durations), costs),
        "driver": (durations, replace(costs, driver=0.0)),
        "result store": (durations, replace(costs, store=0.0)),
        "start-up": (durations, replace(costs, hire=0.0, start=0.0)),
    }
    return {
        name: 1 - simulate(lengths, workers, changed).seconds / whole
        for name, (lengths, changed) in without.items()
    }
