"""The difference of two distribution functions and its integral, in a sample and all its resamples.

A process is a running sum of weights over the pooled values in ascending order, those of y with a
minus: `lcm(n, m)` times `F_x - F_y`, a whole number, so the first order is free of rounding, ties
included. Its integral, `D_x - D_y` of the second order, is a second running sum. Both run down the
rows of `[values, resamples]`, a block of values at a time, so that all resamples are added at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.resampling import Weights

if TYPE_CHECKING:
    from surefoot.comparison.tally import Tally

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
        resamples = x.shape[1]
        buffer = np.empty((_BLOCK, resamples), self._dtype)
        heights, seen = {0: np.zeros(resamples, self._dtype)}, 0
        for tally in (first, second):
            if tally is not None:
                tally.begin(resamples)
        for start in range(0, len(self._order), _BLOCK):
            block = self._block(start, heights[start], rows, buffer)
            heights[start + _BLOCK] = block[-1].copy()
            high, low = block.max(axis=0), block.min(axis=0)
            if second is not None:
                second.see_areas(block, high, low, self._width[start : start + _BLOCK], start)
            if first is not None and self._ties:  # only the last of equal values counts
                block = block[self._last[start : start + _BLOCK]]
                high, low = (f(block, axis=0, initial=0) for f in (np.max, np.min))
            if first is not None:
                first.see_heights(block, high, low, seen)
                seen += len(block)
        if second is None:
            return
        for start in second.unsettled():
            block = self._block(start, heights[start], rows, buffer)
            second.settle(block, self._width[start : start + _BLOCK], start)

    def _block(
        self, start: int, height: NDArray[Any], rows: list[Any], buffer: NDArray[Any]
    ) -> NDArray[Any]:
        """Running sums at some values of the support, from those before."""
        n, places = len(rows[0]), self._order[start : start + _BLOCK].tolist()
        for line, place in zip(buffer, places, strict=False):
            if place < n:
                np.add(height, rows[0][place], out=line)
            else:
                np.subtract(height, rows[1][place - n], out=line)
            height = line
        return buffer[: len(places)]
