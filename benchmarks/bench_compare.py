"""The tests of dominance beside others', and at sizes of real returns.

PySDTest runs one test (one order, one direction) on a grid of 100 points; ours runs eight (both
orders, both directions, both hypotheses) on all observed values, so the ratio understates the
difference. PySDTest and deepsig are GPL and run in the environment of `make oracles`. The wide
table runs in two workers, the long one in one process, where rows are drawn once for all pairs.
Their seconds are the CPU seconds of the main process and half of the workers', imports included:
the time of the clock where two cores have nothing else to do.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, Row
from benchmarks.large_tables import growth
from surefoot.comparison import almost_dominance, compare, pair_tests

ORACLES = Path(os.environ.get("SUREFOOT_ORACLES", ROOT / ".oracles" / "bin" / "python"))
_TIMED = """
import json, sys, time, numpy as np
x, y = (np.array(z) for z in json.load(sys.stdin))
{setup}
start = time.process_time()
{work}
print(json.dumps(time.process_time() - start))
"""


def run(quick: bool) -> list[Row]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.05, 1.0, 10_000), rng.normal(0.0, 1.1, 10_000)
    four = {"a": x, "b": y, "c": -x, "d": -y}
    rows = [_beside_pysdtest(x[:2000], y[:2000], 1 if quick else 3), _beside_deepsig(x, y, quick)]
    rows.append(
        Row(
            "one pair, n = 10,000, 1,000 resamples, all tests",
            _median(lambda: pair_tests(x, y, resamples=1000), 3 if quick else 7),
            wanted="seconds",
        )
    )
    rows.append(
        Row(
            "compare, 4 columns of 10,000, 1,000 resamples",
            _median(lambda: compare(four), 1 if quick else 3),
            wanted="at most 40 % of 0.1.0 (make bench-versus)",
        )
    )
    if quick:
        return rows
    growth()
    wide = _large(200, 2000, "2 minutes on two cores and 2 GB")
    return [*rows, wide, _large(4, 1_000_000, "2 minutes")]


def _beside_pysdtest(x: np.ndarray, y: np.ndarray, repeats: int) -> Row:
    """In turn, so that whatever else the machine does hits both."""
    ours, theirs = [], []
    for _ in range(repeats):
        ours += [_seconds(lambda: pair_tests(x, y, resamples=200)) for _ in range(5)]
        theirs += _oracle(
            "from pysdtest import test_sd\n"
            "test = test_sd(x, y, 100, 2, 'bootstrap', nboot=200, quiet=True)",
            "test.testing()",
            x,
            y,
        )
    return _row("dominance test, n = 2,000, 200 resamples", "PySDTest", ours, theirs, 200.0)


def _beside_deepsig(x: np.ndarray, y: np.ndarray, quick: bool) -> Row:
    x, y = x[:200], y[:200]
    ours = [_seconds(lambda: almost_dominance(x, y, resamples=1000)) for _ in range(7)]
    theirs = _oracle(
        "from deepsig import aso",
        f"aso(x, y, num_bootstrap_iterations={100 if quick else 1000}, show_progress=False)",
        x,
        y,
    )
    theirs = [seconds * (10 if quick else 1) for seconds in theirs]
    return _row("almost dominance, n = 200, 1,000 resamples", "deepsig's ASO", ours, theirs, 100.0)


def _row(name: str, peer: str, ours: list[float], theirs: list[float], goal: float) -> Row:
    return Row(
        name,
        statistics.median(ours),
        peer if theirs else f"{peer} (make oracles)",
        statistics.median(theirs) if theirs else None,
        wanted=f"at least {goal:.0f} times faster",
        goal=goal,
    )


def _oracle(setup: str, work: str, x: np.ndarray, y: np.ndarray) -> list[float]:
    """CPU seconds in the side environment; none where there is none."""
    if not ORACLES.exists():
        return []
    code, words = _TIMED.format(setup=setup, work=work), [str(ORACLES), "-W", "ignore", "-c"]
    data = json.dumps([x.tolist(), y.tolist()])
    done = subprocess.run([*words, code], input=data, capture_output=True, text=True, check=True)
    return [json.loads(done.stdout.splitlines()[-1])]


def _large(columns: int, rows: int, wanted: str) -> Row:
    words = [sys.executable, "-m", "benchmarks.large_tables", str(columns), str(rows)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    measured = json.loads(done.stdout.splitlines()[-1])
    cpu, workers = measured["own"] + measured["theirs"], measured["workers"]
    seen, size = measured["seconds"], measured["gigabytes"]
    return Row(
        f"compare, {columns:,} columns of {rows:,}, "
        + (f"{workers} workers" if workers else "one process"),
        measured["own"] + measured["theirs"] / max(1, workers),
        wanted=wanted,
        note=f"{cpu:.0f} CPU seconds, {seen:.0f} s by the clock, at most {size:.2f} GB in all",
    )


def _median(work: Callable[[], Any], repeats: int) -> float:
    return statistics.median(_seconds(work) for _ in range(repeats))


def _seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
