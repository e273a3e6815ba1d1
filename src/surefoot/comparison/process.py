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
        self._factors = scale // n, scale // m
        self._dtype: Any = next(d for d in _WHOLE if 2 * scale < np.iinfo(d).max)
        self._last = np.append(support[1:] > support[:-1], True)  # of equal values
        self._ties = not self._last.all()
        first = np.cumsum(np.repeat((self._factors[0], -self._factors[1]), (n, m))[self._order])
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
        rows = [
            part.astype(self._dtype) * self._dtype(factor) if factor > 1 else part
            for part, factor in zip((x, y), self._factors, strict=True)
        ]
        resamples, n = x.shape[1], len(x)
        block, integral = np.empty((_BLOCK, resamples), self._dtype), np.empty((_BLOCK, resamples))
        height, area = np.zeros(resamples, self._dtype), np.zeros(resamples)
        seen = 0
        for start in range(0, len(self._order), _BLOCK):
            places = self._order[start : start + _BLOCK].tolist()
            for line, place in zip(block, places, strict=False):
                if place < n:
                    np.add(height, rows[0][place], out=line)
                else:
                    np.subtract(height, rows[1][place - n], out=line)
                height = line
            height, part = height.copy(), block[: len(places)]
            if first is not None:
                shown = part[self._last[start : start + _BLOCK]] if self._ties else part
                first.see(shown, seen)
                seen += len(shown)
            if second is not None:
                part = np.multiply(
                    part, self._width[start : start + _BLOCK, None], out=integral[: len(places)]
                )
                for line in part:
                    area = np.add(area, line, out=line)
                area = area.copy()
                second.see(part, start)


class Tally:
    """What the resamples' processes of one order come to, for both directions.

    `high` and `low`: their suprema and infima, never below or above 0, as left of all values every
    D is 0. `reached`: at how many resamples the process at t is at least as far from 0 as the
    sample's own, for every t of the range; counted only where the sample dominates on all of it.
    `stretch` says how much narrower than the truth the processes are.
    """

    def __init__(self, curve: Curve, tolerance: float = 0.0, stretch: float = 1.0) -> None:
        self.curve, self.tolerance, self._stretch = curve, tolerance * curve.scale, stretch
        self._highs: list[Array] = []
        self._lows: list[Array] = []
        self.margin = {1: self.tolerance - curve.values, -1: self.tolerance + curve.values}
        self.reached: dict[int, NDArray[np.int64]] = {
            way: np.zeros(len(curve.values), np.int64)
            for way, margin in self.margin.items()
            if curve.inside.any() and (margin[curve.inside] > curve.slack).all()
        }

    def begin(self, resamples: int) -> None:
        """The next blocks are those of so many further resamples."""
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
                limit = (self.margin[way][here, None] - self.curve.slack) / self._stretch
                far = block <= -limit if way > 0 else block >= limit
                reached[here] += np.count_nonzero(far, axis=1)

    def suprema(self, way: int) -> Array:
        """Of `D_x - D_y` (1) or of `D_y - D_x` (-1) in each resample, as wide as they should be."""
        parts = self._highs if way > 0 else self._lows
        return way * self._stretch * np.concatenate(parts)
