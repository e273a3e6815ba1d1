"""The dominance test beside PySDTest's, and at sizes of real returns.

PySDTest runs one test (one order, one direction) on a grid of 100 points; ours runs four (both
orders, both directions) on all observed values, so the ratio understates the difference.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.harness import Row
from surefoot.comparison import compare, pair_tests


def run(quick: bool) -> list[Row]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.05, 1.0, 10_000), rng.normal(0.0, 1.1, 10_000)
    four = {"a": x, "b": y, "c": -x, "d": -y}
    repeats = 3 if quick else 7
    return [
        _beside_pysdtest(x[:2000], y[:2000], 1 if quick else 3),
        Row(
            "one pair, n = 10,000, 1,000 resamples, both orders and directions",
            _median(lambda: pair_tests(x, y, resamples=1000), repeats),
            wanted="seconds",
        ),
        Row(
            "compare, 4 columns of 10,000, 1,000 resamples",
            _median(lambda: compare(four), 1 if quick else 3),
            wanted="seconds",
        ),
    ]


def _beside_pysdtest(x: np.ndarray, y: np.ndarray, repeats: int) -> Row:
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
    return Row(
        "dominance test, n = 2,000, 200 resamples",
        statistics.median(ours),
        "PySDTest" if theirs else "PySDTest (not installed)",
        statistics.median(theirs) if theirs else None,
        wanted="at least 50 times faster",
        goal=50.0,
    )


def _median(work: Callable[[], object], repeats: int) -> float:
    return statistics.median(_seconds(work) for _ in range(repeats))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
