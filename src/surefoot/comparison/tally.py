"""What the resampled processes of a pair come to: how many reach what the sample shows.

Only those counts make the p-values, so a supremum need not be known where it is certain on which
side of the sample's it lies. At the second order that saves most of the work: over a block of the
support the integral changes by no more than the block's width times the process, so almost always
its values at the ends of the block decide, and only in the few resamples where they do not is every
value looked at. The counts are the same as if all were. Likewise the count at one t is wanted only
where it is largest: blocks in which it cannot be are left out.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.process import Array, Curve

WAYS = (1, -1)  # x over y, y over x


class Tally:
    """The counts of one order, for both directions.

    `stretch` widens the processes: for suprema, then for single t. `keep` says that the suprema
    themselves are wanted too, `parts` that the resamples come in several parts, so that no block
    can be left out.
    """

    def __init__(
        self,
        curve: Curve,
        tolerance: float = 0.0,
        stretch: tuple[float, float] = (1.0, 1.0),
        *,
        keep: bool = False,
        parts: bool = False,
    ) -> None:
        self.curve, self.stretch = curve, stretch
        slack, allowed = curve.slack, tolerance * curve.scale
        self.excess, self.margin, self._goal = {}, {}, {}
        for way in WAYS:
            excess = max(float(np.max(way * curve.values)), 0.0) - allowed
            self.excess[way] = excess if excess > slack else min(excess, 0.0)
            self.margin[way] = allowed - way * curve.values
            self._goal[way] = (self.excess[way] - slack) / stretch[0]
        self._inside = curve.inside
        some = bool(self._inside.any())
        self.pointwise: dict[int, NDArray[np.int64]] = {
            way: np.zeros(len(curve.values), np.int64)
            for way, margin in self.margin.items()
            if some and (margin[self._inside] > slack).all()
        }
        """Of every t of the range: at how many resamples the process is at least as far from 0 as
        the sample's own. Only where the sample dominates on all of the range."""
        self._keep, self._parts = keep, parts
        self._open: list[tuple[int, int, int, Array]] = []  # most, way, start, area before
        self._reached: dict[int, list[NDArray[np.bool_]]] = {way: [] for way in WAYS}
        self._suprema: dict[int, list[Array]] = {way: [] for way in WAYS}

    def begin(self, resamples: int) -> None:
        """The next blocks are those of so many further resamples."""
        self._area = np.zeros(resamples)
        for way in WAYS:
            # Left of all values every D is 0, so no supremum is below 0.
            self._reached[way].append(np.full(resamples, self._goal[way] <= 0))
            if self._keep:
                self._suprema[way].append(np.zeros(resamples))

    def reached(self, way: int) -> int:
        """How many resamples' suprema are as large as the sample's."""
        return sum(int(np.count_nonzero(part)) for part in self._reached[way])

    def suprema(self, way: int) -> Array:
        """Of `D_x - D_y` (1) or of `D_y - D_x` (-1) in each resample, where they are kept."""
        return self.stretch[0] * np.concatenate(self._suprema[way])

    def see_heights(
        self, block: NDArray[Any], high: NDArray[Any], low: NDArray[Any], start: int
    ) -> None:
        """First order: processes at some values, `[values, resamples]`, and their extremes."""
        self._compare(1, high)
        self._compare(-1, -low)
        self._count_pointwise(block, start)

    def see_areas(
        self, block: NDArray[Any], high: NDArray[Any], low: NDArray[Any], width: Array, start: int
    ) -> None:
        """Second order: processes whose integral over the widths counts, and their extremes."""
        inside = self._inside[start : start + len(block)]
        if self._keep or (self._parts and self.pointwise and inside.any()):
            areas = _running(block, width, self._area)
            self._area = areas[-1].copy()
            self._compare(1, areas.max(axis=0))
            self._compare(-1, -areas.min(axis=0))
            self._count_pointwise(areas, start)
            return
        before, self._area = self._area, self._area + width @ block.astype(np.float64)
        total = float(width.sum())
        up, down = total * np.maximum(high, 0), total * np.maximum(-low, 0)
        for way, rise, fall in ((1, up, down), (-1, down, up)):
            most = np.minimum(way * before + rise, way * self._area + fall)
            self._settle_suprema(way, most, block, width, before)
            if -way in self.pointwise and inside.any():
                self._bound_points(-way, most, slice(start, start + len(block)), before)

    def _settle_suprema(
        self, way: int, most: Array, block: NDArray[Any], width: Array, before: Array
    ) -> None:
        reached, goal = self._reached[way][-1], self._goal[way]
        if reached.all():
            return
        reached |= way * self._area >= goal
        unsure = np.flatnonzero((most >= goal) & ~reached)
        if len(unsure):
            areas = before[unsure] + np.cumsum(block[:, unsure] * width[:, None], axis=0)
            reached[unsure] = (way * areas).max(axis=0) >= goal

    def _bound_points(self, way: int, most: Array, here: slice, before: Array) -> None:
        """The count at the end of a block, and no more than what elsewhere in it."""
        limit = np.where(self._inside[here], self._limit(way, here), np.inf)
        self.pointwise[way][here.stop - 1] = np.count_nonzero(-way * self._area >= limit[-1])
        if largest := int(np.count_nonzero(most >= limit.min())):
            self._open.append((largest, way, here.start, before))

    def unsettled(self) -> list[int]:
        """Where blocks start in which a count may be as large as the largest at their ends."""
        best = {way: max(int(counts.max()), 1) for way, counts in self.pointwise.items()}
        return [start for largest, way, start, _ in self._open if largest >= best[way]]

    def settle(self, block: NDArray[Any], width: Array, start: int) -> None:
        """Count at every value of such a block."""
        before = next(before for *_, begin, before in self._open if begin == start)
        for counts in self.pointwise.values():
            counts[start : start + len(block)] = 0
        self._count_pointwise(_running(block, width, before), start)

    def _limit(self, way: int, here: slice) -> Array:
        """How far from 0 a process must be to be as far as the sample's own."""
        return (self.margin[way][here] - self.curve.slack) / self.stretch[1]

    def _compare(self, way: int, extreme: NDArray[Any]) -> None:
        self._reached[way][-1] |= extreme >= self._goal[way]
        if self._keep:
            np.maximum(self._suprema[way][-1], extreme, out=self._suprema[way][-1])

    def _count_pointwise(self, block: NDArray[Any], start: int) -> None:
        here = slice(start, start + len(block))
        if not self._inside[here].any():
            return
        for way, counts in self.pointwise.items():
            limit = self._limit(way, here)[:, None]
            far = block <= -limit if way > 0 else block >= limit
            counts[here] += np.count_nonzero(far, axis=1)


def _running(block: NDArray[Any], width: Array, before: Array) -> Array:
    """The integral at every value of a block, from that before it."""
    areas = block * width[:, None]
    areas[0] += before
    for above, line in pairwise(areas):
        np.add(above, line, out=line)
    return areas
