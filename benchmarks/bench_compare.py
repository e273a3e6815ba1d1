"""The dominance test beside PySDTest's, and at sizes of real returns.

PySDTest runs one test (one order, one direction) on a grid of 100 points; ours runs four (both
orders, both directions) on all observed values, so the ratio understates the difference.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from surefoot.comparison import compare, pair_tests


class Measurement(NamedTuple):
    name: str
    seconds: float  # median of the repeats
    peer: str | None = None
    peer_seconds: float | None = None
    wanted: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.peer_seconds is None else self.peer_seconds / self.seconds


def run(quick: bool) -> list[Measurement]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.05, 1.0, 10_000), rng.normal(0.0, 1.1, 10_000)
    repeats = 3 if quick else 7
    return [
        _beside_pysdtest(x[:2000], y[:2000], 1 if quick else 3),
        Measurement(
            "one pair, n = 10,000, 1,000 resamples, both orders and directions",
            _median(lambda: pair_tests(x, y, resamples=1000), repeats),
            wanted="seconds",
        ),
        Measurement(
            "compare, 4 columns of 10,000, 1,000 resamples",
            _median(lambda: compare({"a": x, "b": y, "c": -x, "d": -y}), 1 if quick else 3),
            wanted="seconds",
        ),
    ]


def _beside_pysdtest(x: np.ndarray, y: np.ndarray, repeats: int) -> Measurement:
    """In turn, so that whatever else the machine does hits both."""
    ours, theirs = [], []
    try:
        from pysdtest import test_sd
    except ImportError:
        test_sd = None
    for _ in range(repeats):
        ours += [_seconds(lambda: pair_tests(x, y, resamples=200)) for _ in range(5)]
        if test_sd is not None:
            peer = test_sd(x, y, 100, 2, "bootstrap", nboot=200, quiet=True)
            theirs.append(_seconds(peer.testing))
    return Measurement(
        "dominance test, n = 2,000, 200 resamples",
        statistics.median(ours),
        "PySDTest" if theirs else "PySDTest (not installed)",
        statistics.median(theirs) if theirs else None,
        wanted="at least 50 times faster",
    )


def _median(work: Callable[[], object], repeats: int) -> float:
    return statistics.median(_seconds(work) for _ in range(repeats))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    for row in run(quick=False):
        peer = f", {row.peer} {row.peer_seconds:.3g} s, {row.ratio:.0f} times" if row.ratio else ""
        print(f"{row.name}: {row.seconds:.3g} s{peer} ({row.wanted})")
