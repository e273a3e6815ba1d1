"""How often the tests of `surefoot compare` are right, by simulation: `make size-power`.

Size: equal distributions, how often "x dominates y" is rejected at level 0.05; it should be 5 %.
False: how often dominance is established that does not hold; it may not exceed 5 %.
Power: how often what is true is noticed, beside Barrett and Donald's test on a grid of 100 points
and the best test for a shift of independent normals, the one-sided z test of the means.

Cells that are stored in results/size-and-power already are not run again; `--fresh` does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import norm

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "results" / "size-and-power"
LEVEL, RESAMPLES, BATCH = 0.05, 199, 50
SEED = 17  # of no series on which anything was chosen
Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]


@dataclass(frozen=True)
class Cell:
    """One kind of data; `draw` gives x and y."""

    part: str
    """size, false or power."""
    name: str
    n: int
    draw: Draw
    wanted: tuple[float, float] | None = None
    """Between which shares the size should lie."""
    false: tuple[int, ...] = (1, 2)
    """At which orders "x dominates y" does not hold."""
    at: float = 0.0
    """Where on a power curve."""

    @property
    def key(self) -> str:
        return f"{self.part}/{self.name}/n={self.n}/{self.at:g}"


# --- what is drawn ----------------------------------------------------------------------------


def both(one: Callable[..., Array], *settings: float) -> Draw:
    """x and y independent of each other and alike."""
    return lambda rng, n: (one(rng, n, *settings), one(rng, n, *settings))


def normal(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(size=n)


def ar1(rng: np.random.Generator, n: int, phi: float) -> Array:
    return lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.normal(size=n + 200))[200:]


def garch(rng: np.random.Generator, n: int, a: float = 0.1, b: float = 0.88) -> Array:
    noise, out, variance = rng.normal(size=n + 500).tolist(), [], 1.0
    for e in noise:
        out.append(e * variance**0.5)
        variance = 1 - a - b + a * out[-1] ** 2 + b * variance
    return np.array(out[500:])


def correlated(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    day = rng.normal(size=n)
    return day + 0.5 * rng.normal(size=n), day + 0.5 * rng.normal(size=n)


def hedged_levered(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The guide's: hedged is calmer, levered has the better mean; neither dominates."""
    return rng.normal(0.6, 2.0, n), rng.normal(0.9, 6.0, n)


def calmer(one: Callable[..., Array], *settings: float) -> Draw:
    """x has a quarter of y's deviation and a mean lower by a hundredth of it: just not dominant."""
    return lambda rng, n: (0.25 * one(rng, n, *settings) - 0.01, one(rng, n, *settings))


def touching(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Quantiles of x above those of y but around the median, where they fall just short."""
    levels = rng.random(n)
    return rng.normal(size=n), norm.ppf(levels) - 1.2 * np.abs(levels - 0.5) + 0.01


def shifted(one: Callable[..., Array], by: float, *settings: float) -> Draw:
    return lambda rng, n: (one(rng, n, *settings) + by, one(rng, n, *settings))


def spread(by: float) -> Draw:
    return lambda rng, n: (by * rng.normal(size=n), rng.normal(size=n))


INDEPENDENT = (0.03, 0.07)
SHIFTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7)


def cells() -> Iterator[Cell]:
    for n in (50, 100, 250, 1000):
        yield Cell("size", "normal", n, both(normal), INDEPENDENT)
    yield Cell("size", "exponential", 100, both(lambda r, n: r.exponential(size=n)), INDEPENDENT)
    yield Cell(
        "size", "minus exponential", 100, both(lambda r, n: -r.exponential(size=n)), INDEPENDENT
    )
    yield Cell("size", "Student t, 4 degrees", 250, both(lambda r, n: r.standard_t(4, size=n)),
               INDEPENDENT)  # fmt: skip
    yield Cell("size", "binomial(5, 1/2)", 100, both(lambda r, n: r.binomial(5, 0.5, n) * 1.0),
               INDEPENDENT)  # fmt: skip
    yield Cell("size", "normal, rows correlated 0.8", 250, correlated, INDEPENDENT)
    yield Cell("size", "AR(1) 0.3", 250, both(ar1, 0.3), (0.0, 0.08))
    yield Cell("size", "AR(1) 0.6", 250, both(ar1, 0.6), (0.0, 0.10))
    yield Cell("size", "AR(1) 0.6", 1000, both(ar1, 0.6), (0.0, 0.08))
    yield Cell("size", "GARCH(0.1, 0.88)", 1000, both(garch), (0.0, 0.08))
    for n in (60, 240, 1000):
        yield Cell("false", "hedged over levered", n, hedged_levered)
    for n in (50, 250, 1000):
        yield Cell("false", "calmer, mean just lower", n, calmer(normal))
    yield Cell("false", "calmer, mean just lower, AR(1) 0.6", 250, calmer(ar1, 0.6))
    yield Cell("false", "calmer, mean just lower, GARCH", 1000, calmer(garch))
    for n in (100, 500):
        yield Cell("false", "quantiles just lower at the median", n, touching, false=(1,))
    yield Cell("false", "half the deviation", 250, spread(0.5), false=(1,))
    for n in (100, 250):
        for by in SHIFTS:
            yield Cell("power", "shift", n, shifted(normal, -by), at=by)
    for by in SHIFTS:
        yield Cell("power", "shift, AR(1) 0.3", 250, shifted(ar1, -by, 0.3), at=by)
    for by in (1.1, 1.25, 1.5, 2.0):
        yield Cell("power", "deviation", 250, spread(by), at=by)


# --- one batch of trials ----------------------------------------------------------------------


def batch(key: str, first: int, many: int) -> dict[str, Array]:
    """Sums over some trials, for each outcome and order."""
    cell = {cell.key: cell for cell in cells()}[key]
    sums: dict[str, Array] = {}
    for trial in range(first, first + many):
        seed = np.random.SeedSequence([SEED, *key.encode(), trial])
        x, y = cell.draw(np.random.default_rng(seed), cell.n)
        for name, value in outcomes(cell, x, y, trial).items():
            sums[name] = sums.get(name, 0) + np.asarray(value, float)
    return sums


def outcomes(cell: Cell, x: Array, y: Array, trial: int) -> dict[str, Any]:
    from surefoot.comparison import pair_tests

    options: dict[str, Any] = {"resamples": RESAMPLES, "seed": trial, "paired": True}
    over, under = pair_tests(x, y, **options)
    found = {
        "x dominates: rejected": [t.dominance_p <= LEVEL for t in over],
        "x dominates: established": [t.nondominance_p <= LEVEL for t in over],
        "y dominates: rejected": [t.dominance_p <= LEVEL for t in under],
        "y dominates: established": [t.nondominance_p <= LEVEL for t in under],
        "rows of a block": [t.length for t in over],
    }
    if cell.wanted and cell.wanted[0] == 0:  # with memory: what single rows would have said
        single = pair_tests(x, y, dependence="none", **options)
        found["single rows: x dominates: rejected"] = [
            t.dominance_p <= LEVEL for t in single.forward
        ]
    if cell.part == "power":
        found["grid: x dominates: rejected"] = grid_test(x, y, trial)
        z = (y.mean() - x.mean()) / np.sqrt(x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y))
        found["z test: rejected"] = [z > norm.ppf(1 - LEVEL)] * 2
    return found


def grid_test(x: Array, y: Array, seed: int, points: int = 100) -> list[bool]:
    """Barrett and Donald's test as usually done: on a grid, both samples drawn apart."""
    rng, n = np.random.default_rng(seed), len(x)
    t = np.linspace(min(x.min(), y.min()), max(x.max(), y.max()), points)
    rejected = []
    for order in (1, 2):
        curves = [
            (z[:, None] <= t) * 1.0 if order == 1 else np.maximum(t - z[:, None], 0) for z in (x, y)
        ]
        weights = [rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) - 1.0 for _ in curves]
        moved = (weights[0] @ curves[0] - weights[1] @ curves[1]).max(axis=1)
        seen = (curves[0].sum(axis=0) - curves[1].sum(axis=0)).max()
        rejected.append(bool((1 + np.sum(moved >= seen)) / (1 + RESAMPLES) <= LEVEL))
    return rejected


# --- all of it --------------------------------------------------------------------------------


def simulate(trials: int, out: Path, *, fresh: bool, only: str, workers: int) -> dict[str, Any]:
    """Run the cells that are not there yet; each is stored as soon as it is done."""
    place = out / "cells.json"
    stored: dict[str, Any] = {}
    if place.exists() and not fresh:
        stored = json.loads(place.read_text())
    out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers) as pool:
        for cell in cells():
            if only not in cell.key or stored.get(cell.key, {}).get("trials", 0) >= trials:
                continue
            begin = time.perf_counter()
            starts = range(0, trials, BATCH)
            sums: dict[str, Array] = {}
            for part in pool.map(
                batch, [cell.key] * len(starts), starts, [min(BATCH, trials - s) for s in starts]
            ):
                for name, value in part.items():
                    sums[name] = sums.get(name, 0) + value
            stored[cell.key] = {
                "trials": trials,
                "shares": {name: (value / trials).tolist() for name, value in sums.items()},
            }
            place.write_text(json.dumps(stored, indent=1) + "\n")
            print(f"{cell.key}: {time.perf_counter() - begin:.0f} s", flush=True)
    return {cell.key: stored[cell.key] for cell in cells() if cell.key in stored}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.size_power", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--trials", type=int, default=2000, help="a cell")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="run what is stored again")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    found = simulate(
        options.trials, options.out, fresh=options.fresh, only=options.only, workers=options.workers
    )
    from benchmarks.size_power_page import write

    return 0 if write(found, options.out) else 1


if __name__ == "__main__":
    sys.exit(main())
