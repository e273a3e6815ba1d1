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
Suprema and integrals are those of the exact functions: between observed values D is constant,
linear or, at order 3, a parabola. With `grid` they are the maximum and the trapezoidal sum on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.bootstrap import checked_pair, pair_draws, stretch_of
from surefoot.comparison.process import power_of_two, square_above
from surefoot.comparison.resampling import together
from surefoot.comparison.settings import plain_settings
from surefoot.core.stats import checked_values
from surefoot.errors import InputError, is_whole, must_fit, shown

Array = NDArray[np.float64]
METHODS = ("barrett-donald", "linton-subsample", "donald-hsu", "contact-set")
ORDERS = (1, 2, 3)
_CHUNK = 1 << 21  # values of processes in flight
# Standard errors within which D is near 0, times log log n. With 0.75 two equal distributions were
# told apart in 9 to 13 % of 600 trials at level 0.05 (n = 60 and 120), with 1.5 in 5 to 6 %.
_NEAR = 1.5
_ROUNDING = 1e-12
_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(3)
Curves = list[Array]  # of orders 1, 2 and 3, or of one alone, each `[rows, places]`


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
    """Every method at every order; `settings` are those of `TestSettings`, but
    for `tolerance` and `trim`.

    `subsample` is the number b of rows of a run, of the shorter column; `n^0.7` by default.
    """
    chosen = plain_settings(settings)
    x, y, lengths = checked_pair(x, y, dependence, chosen)
    shorter = min(len(x), len(y))
    runs = round(shorter**0.7) if subsample is None else subsample
    if not is_whole(runs) or not 2 <= runs < shorter:
        raise InputError(f"subsample = {shown(runs)}: runs need 2 rows, and fewer than there are")
    if grid is not None:
        grid = np.unique(checked_values(grid, "grid", at_least=1))
    # six curves of doubles at once, three orders and what is made of them
    must_fit(12 * chosen.resamples * (len(x) + len(y)), "further: the resampled curves")
    # Orders are powers of the unit: in one near the values' range no power leaves the numbers.
    unit = power_of_two(max(np.max(x), np.max(y)) - min(np.min(x), np.min(y)))
    process = _Process(x / unit, y / unit, None if grid is None else grid / unit)
    observed = process.curves(process.start)
    draws = pair_draws(len(x), len(y), lengths, chosen)
    wide = stretch_of(draws)
    moved = [np.concatenate(parts) for parts in zip(*_moved(process, draws, wide), strict=True)]
    windows = process.curves(_windows(process, runs, chosen.resamples))
    scale = np.sqrt(runs / shorter)
    parts = [scale * part for part in windows]
    tests = [
        replace(test, statistic=_in_units(test, unit))
        for order in ORDERS
        for test in process.tests(order, observed, moved, parts)
    ]
    return tuple(sorted(tests, key=lambda test: METHODS.index(test.method)))


def _in_units(test: FurtherTest, unit: float) -> float:
    """The statistic of the returns as they came: a supremum, or an integral of a square."""
    height = test.order - 1
    powers = 2 * height + 1 if test.method == "contact-set" else height
    with np.errstate(over="ignore", under="ignore"):
        times = np.float64(unit) ** powers
    return float(test.statistic * times) if test.statistic else 0.0


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
        self.grid = grid
        self.root = np.sqrt(self.n * self.m / (self.n + self.m))
        self.start = np.repeat([1 / self.n, -1 / self.m], (self.n, self.m))[None]

    def curves(self, weights: Array) -> Curves:
        """Of weights `[rows, n + m]`."""
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

    def tests(self, order: int, seen: Curves, star: Curves, part: Curves) -> Iterator[FurtherTest]:
        """From the sample's curves, the resampled and recentred ones, and those of runs."""
        if order < 3 or self.grid is not None:  # else a parabola has the other two as its slopes
            seen, star, part = ([curves[order - 1]] for curves in (seen, star, part))
        own, deviation = seen[-1][0], star[-1].std(axis=0)
        loglog = np.log(np.log(max(self.n + self.m, 16)))
        clear = own < -0.1 * np.sqrt(loglog) * deviation
        near = np.abs(own) < _NEAR * loglog * deviation
        near = near if near.any() else np.ones_like(near)
        peak, area = float(self._peaks(seen)[0]), float(self._areas(seen, order)[0])
        unit = (self.support[-1] - self.support[0]) ** (order - 1)  # of D: rounding is relative
        for method in METHODS:
            statistic, size, scale = peak, self.root, unit
            if method == "barrett-donald":
                resampled = self._peaks(star)
            elif method == "linton-subsample":
                resampled = self._peaks(part)
            elif method == "donald-hsu":  # at order 3 what is clear at a value is up to the next
                moved = (np.where(clear, own[0], 0.0) for own in seen)
                resampled = self._peaks([s + m for s, m in zip(star, moved, strict=True)])
            else:
                statistic, size = area, self.root**2
                scale = unit**2 * (self.support[-1] - self.support[0])
                resampled = self._areas([np.where(near, s, 0.0) for s in star], order)
            least = statistic - _ROUNDING * (statistic + scale)
            p_value = (1 + int(np.count_nonzero(resampled >= least))) / (1 + len(resampled))
            yield FurtherTest(method, order, size * statistic, p_value)

    def _peaks(self, curves: Curves) -> Array:
        """Suprema; left of all values every D is 0."""
        best = np.maximum(curves[-1].max(axis=1), 0.0)
        if len(curves) == 1:
            return best
        # Of a parabola there is a top where its slope, a line, falls through 0.
        bend, slope, start = (curve[:, :-1] for curve in curves)
        top = (slope > 0) & (bend * self.width < -slope)
        rise = np.where(top, -(slope**2) / np.where(top, 2 * bend, 1.0), 0.0)
        return np.maximum(best, (start + rise).max(axis=1))

    def _areas(self, curves: Curves, order: int) -> Array:
        """Integrals of the square of what is above 0."""
        if len(curves) == 3:
            step = max(1, _CHUNK // len(self.support))
            some = (slice(i, i + step) for i in range(0, len(curves[0]), step))
            parts = [[curve[at] for curve in curves] for at in some]
            return np.concatenate([_under_parabolas(part, self.width) for part in parts])
        up = np.maximum(curves[0], 0.0)
        if self.grid is not None:
            return np.trapezoid(up**2, self.grid, axis=1)
        if order == 1:  # constant up to the next value
            return np.sum(up[:, :-1] ** 2 * self.width, axis=1)
        return np.sum(square_above(curves[0][:, :-1], curves[0][:, 1:]) * self.width, axis=1)


def _under_parabolas(curves: Curves, width: Array) -> Array:
    """The same of `a + b u + c u^2` from each value to the next: from root to root."""
    bend, b, a = (curve[:, :-1] for curve in curves)
    c = bend / 2
    inner = b * b - 4 * a * c
    q = -(b + np.copysign(np.sqrt(np.maximum(inner, 0.0)), b)) / 2  # subtracts no like numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = [np.where(inner > 0, np.nan_to_num(root), 0.0) for root in (q / c, a / q)]
    places = np.sort([np.zeros_like(a), *(np.clip(root, 0, width) for root in roots),
                      np.broadcast_to(width, a.shape)], axis=0)  # fmt: skip
    total = np.zeros(len(a))
    for begin, end in pairwise(places):
        # Three points of Gauss and Legendre integrate a polynomial of degree 5 exactly.
        middle, half = (begin + end) / 2, (end - begin) / 2
        heights = [a + u * (b + u * c) for u in (middle + half * x for x in _GAUSS)]
        squares = sum(w * h * h for w, h in zip(_WEIGHTS, heights, strict=True))
        total += np.sum(np.where(heights[1] > 0, half * squares, 0.0), axis=1)
    return total


def _integral(steps: Array) -> Array:
    return np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
