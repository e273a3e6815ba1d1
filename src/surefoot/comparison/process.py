"""The difference of two distribution functions and its integral, in a sample and all its resamples.

A process is a running sum of weights over the pooled values in ascending order, those of y with a
minus: `lcm(n, m)` times `F_x - F_y`, a whole number, so the first order is free of rounding, ties
included. Its integral, `D_x - D_y` of the second order, is a second running sum. Both run down the
rows of `[values, resamples]`, a block of values at a time, so that all resamples are added at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.resampling import Weights

Array = NDArray[np.float64]
_BLOCK = 128  # values of the support summed at once (measured)
_ROUNDING = 1e-12  # what rounding may do to D^(2), relative to the range of the values
_WHOLE = (np.int16, np.int32, np.int64)


@dataclass(frozen=True)
class Curve:
    """`D_x - D_y` of one order in the sample, times `scale`."""

    order: int
    places: Array
    """The t of each value."""
    values: Array
    inside: NDArray[np.bool_]
    """Which t are in the range where dominance can be established."""
    scale: int
    root: float
    """`sqrt(n m / (n + m))`."""
    slack: float
    """What rounding may have done."""


class Pair:
    """Two samples on their common support."""

    def __init__(self, x: Array, y: Array, trim: float) -> None:
        n, m = len(x), len(y)
        pooled = np.concatenate([x, y])
        self._order = np.argsort(pooled, kind="stable")
        support = pooled[self._order]
        self._width = np.diff(support, append=support[-1])
        scale, root = math.lcm(n, m), math.sqrt(n * m / (n + m))
        self._factors = scale // n, -(scale // m)
        self._dtype: Any = next(d for d in _WHOLE if 2 * scale < np.iinfo(d).max)
        self._last = np.append(support[1:] > support[:-1], True)  # of equal values
        self._ties = not self._last.all()
        first = np.cumsum(np.repeat(self._factors, (n, m))[self._order])
        share = np.searchsorted(support, support, side="right") / (n + m)
        within = share >= trim
        self.first = Curve(
            1, support[self._last], first[self._last].astype(np.float64),
            (within & (share <= 1 - trim))[self._last], scale, root, 0.0,
        )  # fmt: skip
        # The integral up to a value is complete one place before it.
        self.second = Curve(
            2, np.append(support[1:], support[-1]), np.cumsum(first * self._width),
            np.append(within[1:], True), scale, root,
            _ROUNDING * float(support[-1] - support[0]) * scale,
        )  # fmt: skip

    def walk(self, x: Weights, y: Weights, first: Tally | None, second: Tally | None) -> None:
        """Run down the support with some resamples and let the tallies see the processes."""
        rows = np.concatenate(
            [part * self._dtype(factor) for part, factor in zip((x, y), self._factors, strict=True)]
        )
        size, resamples = rows.shape
        height, area = np.zeros(resamples, self._dtype), np.zeros(resamples)
        integral = np.empty((_BLOCK, resamples))
        seen = 0
        for start in range(0, size, _BLOCK):
            block = rows[self._order[start : start + _BLOCK]]
            height = _run(block, height)
            if first is not None:
                shown = block[self._last[start : start + _BLOCK]] if self._ties else block
                first.see(shown, seen)
                seen += len(shown)
            if second is not None:
                part = integral[: len(block)]
                np.multiply(block, self._width[start : start + _BLOCK, None], out=part)
                area = _run(part, area)
                second.see(part, start)


def _run(block: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
    """Running sums down the rows, in place; a row at a time, as NumPy's own cumsum goes across."""
    if len(block):
        block[0] += before
        for i in range(1, len(block)):
            np.add(block[i], block[i - 1], out=block[i])
        return block[-1].copy()
    return before


class Tally:
    """What a chunk of resamples' processes of one order come to, for both directions.

    `high` and `low`: their suprema and infima, never below or above 0, as left of all values
    every D is 0. `reached`: at how many resamples the process at t is at least as far from 0 as
    the sample's own, for every t of the range; it is counted only where the sample dominates on
    all of it.
    """

    def __init__(self, curve: Curve, tolerance: float = 0.0) -> None:
        self.curve, self.tolerance = curve, tolerance * curve.scale
        self._highs: list[Array] = []
        self._lows: list[Array] = []
        self.margin = {1: self.tolerance - curve.values, -1: self.tolerance + curve.values}
        self.reached: dict[int, NDArray[np.int64]] = {
            way: np.zeros(len(curve.values), np.int64)
            for way, margin in self.margin.items()
            if curve.inside.any() and (margin[curve.inside] > curve.slack).all()
        }

    def begin(self, resamples: int) -> None:
        self._highs.append(np.zeros(resamples))
        self._lows.append(np.zeros(resamples))

    def see(self, block: NDArray[Any], start: int) -> None:
        if not len(block):
            return
        high, low = self._highs[-1], self._lows[-1]
        np.maximum(high, block.max(axis=0), out=high)
        np.minimum(low, block.min(axis=0), out=low)
        here = slice(start, start + len(block))
        for way, reached in self.reached.items():
            if self.curve.inside[here].any():
                limit = self.margin[way][here, None] - self.curve.slack
                far = block <= -limit if way > 0 else block >= limit
                reached[here] += np.count_nonzero(far, axis=1)

    @property
    def high(self) -> Array:
        return np.concatenate(self._highs)

    @property
    def low(self) -> Array:
        return np.concatenate(self._lows)
