"""More tests of "x dominates y", at orders 1 to 3, in one call: what others use, for comparison.

| method           | statistic                 | distribution where x just dominates             |
|------------------|---------------------------|-------------------------------------------------|
| barrett-donald   | root * sup D              | all resamples recentred (2003)                  |
| linton-subsample | root * sup D              | the statistic of runs of b consecutive rows     |
|                  |                           | (Linton, Maasoumi and Whang, 2005)              |
| donald-hsu       | root * sup D              | recentred, but where D is clearly below 0 it    |
|                  |                           | stays there (2016): more power                  |
| contact-set      | root^2 * integral of D+^2 | recentred, integrated only where D is near 0    |
|                  |                           | (Linton, Song and Whang, 2010)                  |

`D = D_x - D_y` of the order and `root = sqrt(n m / (n + m))`. "Clearly below" and "near" are
counted in standard errors of D(t), so that no unit matters; the papers count in units of the data.
At orders 1 and 2 suprema and integrals are those of the exact functions, which are constant or
linear between observed values; at order 3 D is taken to be linear there. With `grid` they are the
maximum and the trapezoidal sum on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.bootstrap import TestSettings, checked_pair, pair_draws, stretch_of
from surefoot.comparison.resampling import together
from surefoot.errors import InputError

Array = NDArray[np.float64]
METHODS = ("barrett-donald", "linton-subsample", "donald-hsu", "contact-set")
ORDERS = (1, 2, 3)
_CHUNK = 1 << 21  # values of processes in flight


@dataclass(frozen=True)
class FurtherTest:
    """H0 "x dominates y at `order`"; a small p-value contradicts it."""

    method: str
    order: int
    statistic: float
    p_value: float


def further_tests(
    x: Array,
    y: Array,
    *,
    grid: Array | None = None,
    subsample: int | None = None,
    dependence: str | int = "auto",
    **settings: Any,
) -> tuple[FurtherTest, ...]:
    """Every method at every order; `settings` are those of `TestSettings`.

    `subsample` is the number b of rows of a run, of the shorter column; `n^0.7` by default.
    """
    chosen = TestSettings(**settings)
    x, y, lengths = checked_pair(x, y, dependence, chosen)
    shorter = min(len(x), len(y))
    runs = round(shorter**0.7) if subsample is None else subsample
    if not 2 <= runs < shorter:
        raise InputError(f"subsample = {runs}: runs need 2 rows, and fewer than there are")
    process = _Process(x, y, grid)
    observed = process.curves(process.start)
    draws = pair_draws(len(x), len(y), lengths, chosen)
    wide = stretch_of(draws)
    moved = [np.concatenate(parts) for parts in zip(*_moved(process, draws, wide), strict=True)]
    windows = process.curves(_windows(process, runs, chosen.resamples))
    scale = np.sqrt(runs / shorter)
    tests = []
    for order, seen, star, part in zip(ORDERS, observed, moved, windows, strict=True):
        tests += process.tests(order, seen, star, scale * part)
    return tuple(sorted(tests, key=lambda test: METHODS.index(test.method)))


def _moved(process: _Process, draws: Any, wide: float) -> Any:
    step = max(1, _CHUNK // len(process.order))
    for of_x, of_y in together(draws, step):
        weights = np.concatenate([of_x / process.n, -(of_y / process.m)]).T
        yield [wide * curve for curve in process.curves(weights)]


def _windows(process: _Process, runs: int, most: int) -> Array:
    """Weights of runs of consecutive rows, evenly spread, at most so many."""
    n, m = process.n, process.m
    lengths = [round(runs * size / min(n, m)) for size in (n, m)]
    last = min(n - lengths[0], m - lengths[1])
    starts = np.unique(np.linspace(0, last, min(most, last + 1)).round().astype(int))
    weights = np.zeros((len(starts), n + m))
    for row, start in enumerate(starts):
        weights[row, start : start + lengths[0]] = 1 / lengths[0]
        weights[row, n + start : n + start + lengths[1]] = -1 / lengths[1]
    return weights


class _Process:
    """`D_x - D_y` of weighted rows at the places that count, for orders 1 to 3."""

    def __init__(self, x: Array, y: Array, grid: Array | None) -> None:
        self.n, self.m = len(x), len(y)
        pooled = np.concatenate([x, y])
        self.order = np.argsort(pooled, kind="stable")
        self.support = pooled[self.order]
        self.width = np.diff(self.support)
        self.grid = None if grid is None else np.asarray(grid, dtype=np.float64)
        self.root = np.sqrt(self.n * self.m / (self.n + self.m))
        self.start = np.repeat([1 / self.n, -1 / self.m], (self.n, self.m))[None]

    def curves(self, weights: Array) -> list[Array]:
        """`[rows, places]` of each order; weights are `[rows, n + m]`."""
        first = np.cumsum(weights[:, self.order], axis=1)
        h, left = self.width, first[:, :-1]
        second = _integral(left * h)
        third = _integral(second[:, :-1] * h + left * h**2 / 2)
        if self.grid is None:
            last = np.append(h > 0, True)  # of equal values
            return [np.where(last, first, 0.0), second, third]
        at = np.searchsorted(self.support, self.grid, side="right") - 1
        inside, at = at >= 0, np.maximum(at, 0)
        u = self.grid - self.support[at]
        f, s, t = (curve[:, at] * inside for curve in (first, second, third))
        return [f, s + f * u, t + s * u + f * u**2 / 2]

    def tests(self, order: int, seen: Array, star: Array, part: Array) -> list[FurtherTest]:
        """From the sample's curve, the resampled and recentred ones, and those of runs."""
        deviation = star.std(axis=0)
        loglog = np.log(np.log(max(self.n + self.m, 16)))
        clear = seen[0] < -0.1 * np.sqrt(loglog) * deviation
        near = np.abs(seen[0]) < 0.75 * loglog * deviation
        near = near if near.any() else np.ones_like(near)
        peak, area = self._peaks(seen, order), self._areas(seen, order)
        rows = [
            ("barrett-donald", peak, self._peaks(star, order)),
            ("linton-subsample", peak, self._peaks(part, order)),
            ("donald-hsu", peak, self._peaks(star + np.where(clear, seen[0], 0.0), order)),
            ("contact-set", area, self._areas(np.where(near, star, 0.0), order)),
        ]
        tests = []
        for method, statistic, resampled in rows:
            size = self.root if method != "contact-set" else self.root**2
            slack = 1e-12 * (1.0 + abs(statistic[0]))
            reached = int(np.count_nonzero(resampled >= statistic[0] - slack))
            p_value = (1 + reached) / (1 + len(resampled))
            tests.append(FurtherTest(method, order, float(size * statistic[0]), p_value))
        return tests

    def _peaks(self, curves: Array, order: int) -> Array:
        """Suprema; left of all values every D is 0."""
        return np.maximum(curves.max(axis=1), 0.0)

    def _areas(self, curves: Array, order: int) -> Array:
        """Integrals of the square of what is above 0."""
        up = np.maximum(curves, 0.0)
        if self.grid is not None:
            return np.trapezoid(up**2, self.grid, axis=1)
        if order == 1:  # constant up to the next value
            return np.sum(up[:, :-1] ** 2 * self.width, axis=1)
        a, b = curves[:, :-1], curves[:, 1:]
        lower, upper = up[:, :-1], up[:, 1:]
        span = np.where(a * b < 0, np.abs(b - a), 1.0)
        share = np.where(a * b < 0, (lower + upper) / span, 1.0)  # of the width that is above 0
        return np.sum((lower**2 + lower * upper + upper**2) / 3 * share * self.width, axis=1)


def _integral(steps: Array) -> Array:
    return np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
