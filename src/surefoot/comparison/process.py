"""The difference of two distribution functions and its integral, in a sample and all its resamples.

A process is a running sum of weights over the pooled values in ascending order, those of y with a
minus: `lcm(n, m)` times `F_x - F_y`, a whole number, so the first order is free of rounding, ties
included. Its integral, `D_x - D_y` of the second order, is a second running sum.

What a column adds to the processes of its pairs does not depend on the other column. So the range
of the values is cut into cells, the same for all columns, and each column is summed once:
`ColumnSums` has its sums at the ends of all cells, and how far they go up and down inside, of all
resamples at once. `Walk` puts two columns together: at the ends of cells the processes of the pair
are known, inside they do not exceed a bound, and where that does not do they are summed value by
value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.resampling import Weights

Array = NDArray[np.float64]
Places = NDArray[np.int64]
WAYS = (1, -1)  # x over y, y over x
_CELLS = 2  # for the root of the number of values (measured)
_LOOKED_AT = 1 << 18  # values at once
_WIDE = 300  # resamples from which on adding line by line is faster (measured)
_ROUNDING = 1e-12  # what rounding may do to D^(2), relative to the range of the values
_WHOLE = (np.int16, np.int32, np.int64)


@dataclass(frozen=True)
class Curve:
    """`D_x - D_y` of one order in the sample, times `scale`, at every pooled value."""

    order: int
    places: Array
    """The t of each value."""
    values: Array
    inside: NDArray[np.bool_]
    """Which t are in the range where dominance can be established; of equal ones the last."""
    peaks: dict[int, float]
    """Supremum of `D_x - D_y` (1) and of `D_y - D_x` (-1), times `scale`; at least 0."""
    scale: int
    root: float
    """`sqrt(n m / (n + m))`."""
    slack: float
    """What rounding may have done."""


def power_of_two(size: float) -> float:
    """One near `size`, to count in: dividing by it rounds nothing. 1 for a size of zero."""
    return float(2.0 ** (np.frexp(size)[1] - 1)) if size > 0 else 1.0


def square_above(left: Array, right: Array) -> Array:
    """Mean of the square of what is above 0 of a line from `left` to `right`."""
    a, b = np.maximum(left, 0.0), np.maximum(right, 0.0)
    crosses = left * right < 0
    share = np.where(crosses, (a + b) / np.where(crosses, np.abs(right - left), 1.0), 1.0)
    return (a * a + a * b + b * b) / 3 * share


def cut(columns: Collection[Array], room: float = 0.0) -> Array:
    """Edges of cells that hold about as many values each: the least value, then ends of cells.

    With `room` for columns that are moved up by that much.
    """
    cells = int(np.clip(_CELLS * math.sqrt(max(map(len, columns))), 32, 4096))
    pooled = np.sort(np.concatenate([np.sort(z)[:: max(1, len(z) // cells)] for z in columns]))
    ends = np.append(pooled[:: max(1, len(pooled) // cells)], max(map(np.max, columns)) + room)
    return np.append(min(map(np.min, columns)), np.unique(ends))


class Column:
    """The values of a column in their cells."""

    def __init__(self, values: Array, edges: Array) -> None:
        self.values, self.edges = values, edges
        self.order = np.argsort(values, kind="stable").astype(np.int32)
        self.ascending = values[self.order]
        self.stops = np.append(0, np.searchsorted(self.ascending, edges[1:], side="right"))
        # Beyond its own values a column adds nothing to the integral: nothing to round there.
        self.ends = np.clip(edges, self.ascending[0], self.ascending[-1])
        self.to_end = np.repeat(self.ends[1:], np.diff(self.stops)) - self.ascending
        self.dtype = _holding(len(values))

    def moved(self, shift: float) -> Column:
        return Column(self.values + shift, self.edges)


def _holding(size: int) -> Any:
    """A type of whole numbers for sums of two columns of this size."""
    return next(d for d in _WHOLE if 2 * size < np.iinfo(d).max)


class ColumnSums:
    """Running sums of a column's weights and their integral, at the ends of all cells."""

    def __init__(self, column: Column, weights: Weights) -> None:
        cells, resamples = len(column.edges) - 1, weights.shape[1]
        self.heights = np.zeros((cells + 1, resamples), column.dtype)
        self.areas = np.zeros((cells + 1, resamples))
        self.high = np.zeros((cells, resamples), column.dtype)
        """The most that a height inside a cell is above that before the cell."""
        self.low = np.zeros((cells, resamples), column.dtype)
        width = np.diff(column.ends)
        for cell, (start, stop) in enumerate(pairwise(column.stops.tolist())):
            height, area = self.heights[cell + 1], self.areas[cell + 1]
            np.multiply(self.heights[cell], width[cell], out=area)
            area += self.areas[cell]
            if start == stop:
                height[:] = self.heights[cell]
                continue
            rows = weights.take(column.order[start:stop], axis=0).astype(column.dtype, copy=False)
            area += column.to_end[start:stop] @ rows.astype(np.float64)
            if resamples < _WIDE:
                np.add.accumulate(rows, axis=0, out=rows)
            else:
                for above, line in pairwise(rows):
                    np.add(above, line, out=line)
            np.add(self.heights[cell], rows[-1], out=height)
            rows.max(axis=0, initial=0, out=self.high[cell])
            rows.min(axis=0, initial=0, out=self.low[cell])


class Inside(NamedTuple):
    """`[places, values]`: which pooled values these are, the process there, and which count."""

    at: Places
    values: NDArray[Any]
    counted: NDArray[np.bool_]


class Pair:
    """Two columns on their common support.

    `together` says that both have the same weights; else those of x come before those of y.
    """

    def __init__(self, x: Column, y: Column, trim: float, *, together: bool) -> None:
        n, m = len(x.values), len(y.values)
        scale, root = math.lcm(n, m), math.sqrt(n * m / (n + m))
        self.size, self.dtype = (scale // n, scale // m), _holding(scale)
        pooled = np.concatenate([x.ascending, y.ascending])
        order = np.argsort(pooled, kind="stable")  # two runs: merged
        self.support = support = pooled[order]
        of_x = order < n
        rows = np.concatenate([x.order, y.order if together else y.order + n])
        self.rows = rows[order]
        self.factors = np.where(of_x, self.size[0], -self.size[1]).astype(np.int64)
        self.stops = x.stops + y.stops
        self.ends = np.clip(x.edges, support[0], support[-1])
        last = np.append(support[1:] > support[:-1], True)  # of equal values
        heights = np.cumsum(self.factors).astype(np.float64)
        areas = np.append(0.0, np.cumsum(heights[:-1] * np.diff(support)))
        share = (1 + np.arange(n + m)) / (n + m)
        if not last.all():
            share = np.searchsorted(support, support, side="right") / (n + m)
        within = share >= trim
        inside = last & within & (share <= 1 - trim)
        self.first = Curve(1, support, heights, inside, _peaks(heights[last]), scale, root, 0.0)
        slack = _ROUNDING * float(support[-1] - support[0]) * scale
        self.second = Curve(2, support, areas, within, _peaks(areas), scale, root, slack)
        self.last = last


def _peaks(values: Array) -> dict[int, float]:
    return {way: max(float(np.max(way * values)), 0.0) for way in WAYS}


class Scratch:
    """Room for the processes of one pair after the other: new memory each time takes longer."""

    def __init__(self) -> None:
        self._rooms: dict[str, NDArray[Any]] = {}

    def room(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        room = self._rooms.get(name)
        if room is None or room.shape != shape or room.dtype != dtype:
            room = self._rooms[name] = np.empty(shape, dtype)
        return room


class Walk:
    """The processes of a pair in some resamples: at the ends of cells, and inside on request."""

    def __init__(
        self, pair: Pair, x: ColumnSums, y: ColumnSums, weights: Weights, scratch: Scratch
    ) -> None:
        self.pair, self._weights, self._scratch = pair, weights, scratch

        def difference(name: str, of_x: NDArray[Any], of_y: NDArray[Any]) -> NDArray[Any]:
            u, v = pair.size
            if u != 1 or v != 1:
                dtype = np.float64 if of_x.dtype == np.float64 else pair.dtype
                of_x, of_y = of_x * dtype(u), of_y * dtype(v)
            return np.subtract(of_x, of_y, out=scratch.room(name, of_x.shape, of_x.dtype))

        self.heights = difference("heights", x.heights, y.heights)
        """`[cells + 1, resamples]`, before each cell and after the last."""
        self.areas = difference("areas", x.areas, y.areas)
        self.high = difference("high", x.high, y.low)
        """What a height inside a cell does not exceed, `[cells, resamples]`."""
        self.low = difference("low", x.low, y.high)
        self.high += self.heights[:-1]
        self.low += self.heights[:-1]
        # Over a cell the integral changes by no more than the cell's width times the height.
        most = np.maximum(self.high.max(axis=1), -self.low.min(axis=1)).astype(np.float64)
        self.reach = np.diff(pair.ends) * np.maximum(most, 0.0)
        """By how much an integral can change inside a cell, in any resample."""

    @property
    def resamples(self) -> int:
        return self._weights.shape[1]

    def over(self, order: int, way: int, least: Array | float) -> NDArray[np.bool_]:
        """Where `way` times the process may be as large inside a cell, `[cells, resamples]`.

        `least` is one number, one for each cell `[cells, 1]` or for each resample `[resamples]`.
        """
        if order == 1:
            most = float(np.iinfo(self.high.dtype).max - 1)
            whole = np.ceil(np.clip(least, -most, most)).astype(self.high.dtype)
            return self.high >= whole if way > 0 else self.low <= -whole
        near = self._scratch.room("near", self.areas.shape, np.float64)
        np.multiply(self.areas, way, out=near)
        below = np.broadcast_to(least - self.reach[:, None], self.low.shape)
        return (near[:-1] >= below) | (near[1:] >= below)

    def bound(self, way: int, cells: Places, resamples: Places) -> Array:
        """What `way` times the integral does not exceed in some cells, each in one resample."""
        high, low = self.high[cells, resamples], self.low[cells, resamples]
        high, low = (high, low) if way > 0 else (-low, -high)
        width = np.diff(self.pair.ends)[cells]
        rise = way * self.areas[cells, resamples] + width * np.maximum(high, 0)
        fall = way * self.areas[cells + 1, resamples] + width * np.maximum(-low, 0)
        return np.minimum(rise, fall)

    def ends(self, order: int) -> NDArray[Any]:
        """The process at the last value of each cell, `[cells, resamples]`."""
        if order == 1:
            return self.heights[1:]
        last = self.pair.support[np.maximum(self.pair.stops[1:], 1) - 1]
        return self.areas[1:] - self.heights[1:] * (self.pair.ends[1:] - last)[:, None]

    def inside(
        self, order: int, cells: Places, resamples: Places
    ) -> Iterator[tuple[slice, Inside]]:
        """The process at every value of some cells, each in one resample, a few at a time."""
        stops = self.pair.stops
        most = max(1, int((stops[cells + 1] - stops[cells]).max(initial=0)))
        for i in range(0, len(cells), step := max(1, _LOOKED_AT // most)):
            some = slice(i, i + step)
            yield some, self._inside(order, cells[some], resamples[some])

    def _inside(self, order: int, cells: Places, resamples: Places) -> Inside:
        pair = self.pair
        start, stop = pair.stops[cells, None], pair.stops[cells + 1, None]
        at = start + np.arange((stop - start).max())
        counted, at = at < stop, np.minimum(at, len(pair.rows) - 1)
        steps = self._weights[pair.rows[at], resamples[:, None]] * pair.factors[at]
        before = self.heights[cells, resamples][:, None].astype(np.int64)
        if order == 1:
            return Inside(at, before + np.cumsum(steps, axis=1), counted & pair.last[at])
        # Each value is reached with the height of the one before it, or of the cell's beginning.
        gaps = np.diff(pair.support[at], axis=1, prepend=pair.ends[cells, None])
        heights = before + np.cumsum(steps, axis=1) - steps
        areas = self.areas[cells, resamples][:, None] + np.cumsum(heights * gaps, axis=1)
        return Inside(at, areas, counted)

    def whole(self, order: int, cell: int) -> NDArray[Any]:
        """The process at every value of a cell in all resamples, `[values, resamples]`."""
        pair, here = self.pair, slice(*self.pair.stops[cell : cell + 2])
        steps = self._weights.take(pair.rows[here], axis=0) * pair.factors[here, None]
        steps[0] += self.heights[cell]
        heights = np.cumsum(steps, axis=0)
        if order == 1:
            return heights
        before = np.vstack([self.heights[cell], heights[:-1]])
        gaps = np.diff(pair.support[here], prepend=pair.ends[cell])
        return self.areas[cell] + np.cumsum(before * gaps[:, None], axis=0)
