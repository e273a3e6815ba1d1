"""What the resampled processes of a pair come to: how many reach what the sample shows.

Only those counts make the p-values, so a supremum need not be known where it is certain on which
side of the sample's it lies. Over a block of the support a process does not exceed a bound
(`Walk.bound`), so almost always the ends of blocks decide, and only in the few resamples where they
do not is every value looked at. Likewise the count at one t is wanted only where it is largest:
blocks in which it cannot be are left out. The counts are the same as if all were looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.process import WAYS, Array, Curve, Places, Walk


class Tally:
    """The counts of one order, for both directions.

    `stretch` widens the processes: for suprema, then for single t. With `keep` the suprema
    themselves are wanted too, and the process where the evidence for dominance is weakest.
    """

    def __init__(
        self,
        curve: Curve,
        tolerance: float = 0.0,
        stretch: tuple[float, float] = (1.0, 1.0),
        *,
        keep: bool = False,
    ) -> None:
        self.curve, self.stretch, self._keep = curve, stretch, keep
        self._allowed = tolerance * curve.scale
        self.excess, self._goal, self.pointwise = {}, {}, dict[int, NDArray[np.int32]]()
        for way in WAYS:
            excess = curve.peaks[way] - self._allowed
            self.excess[way] = excess if excess > curve.slack else min(excess, 0.0)
            self._goal[way] = (self.excess[way] - curve.slack) / stretch[0]
            margin = self.margin(way)[curve.inside]
            # Of every t of the range at which it may be most: in how many resamples the process is
            # at least as far from 0 as the sample's own. Only where the sample dominates on all of
            # the range.
            if len(margin) and (margin > curve.slack).all():
                self.pointwise[way] = np.zeros(len(curve.values), np.int32)
        self._suprema: dict[int, list[Array]] = {way: [] for way in WAYS}
        self._weakest: dict[int, list[Array]] = {way: [] for way in WAYS}
        self._reached = dict.fromkeys(WAYS, 0)
        self._at_ends: dict[int, int | NDArray[np.int64]] = dict.fromkeys(self.pointwise, 0)
        self._at_most = dict(self._at_ends)

    def margin(self, way: int) -> Array:
        """By how much the sample dominates at every t."""
        return self._allowed - way * self.curve.values

    def reached(self, way: int) -> int:
        """How many resamples' suprema are as large as the sample's."""
        return self._reached[way]

    def suprema(self, way: int) -> Array:
        """Of `D_x - D_y` (1) or of `D_y - D_x` (-1) in each resample, where they are kept."""
        return self.stretch[0] * np.concatenate(self._suprema[way])

    def weakest(self, way: int) -> tuple[int, int | None]:
        """The value of the range at which the evidence for dominance is weakest, -1 for the last
        one where the range is empty, and the count there; none where the sample itself does not
        dominate on all of the range."""
        margin, inside = self.margin(way), np.flatnonzero(self.curve.inside)
        if way not in self.pointwise:
            return (
                int(inside[np.argmin(margin[inside])]) if len(inside) else len(margin) - 1
            ), None
        counts, margin = self.pointwise[way][inside], margin[inside]
        at = int(np.argmax(counts - margin / (1 + margin.max())))  # ties: the least margin
        return int(inside[at]), int(counts[at])

    def at_weakest(self, way: int) -> Array:
        """The process there in each resample, towards dominance, where it is kept."""
        return self.stretch[1] * np.concatenate(self._weakest[way])

    def see(self, walk: Walk) -> None:
        """Count further resamples."""
        for way in WAYS:
            suprema = self._find_suprema(walk, way)
            self._reached[way] += int(np.count_nonzero(suprema >= self._goal[way]))
            if self._keep:
                self._suprema[way].append(suprema)
        order, stops = self.curve.order, walk.pair.stops
        for way in self.pointwise:
            limit = np.where(self.curve.inside, self._limit(way), np.inf)
            # An empty cell has no value to count at; `reduceat` would take that of the next one.
            some, last = np.diff(stops) > 0, limit[np.maximum(stops[1:], 1) - 1]
            lowest = np.minimum.reduceat(np.append(limit, np.inf), stops[:-1])
            last, lowest = (np.where(some, one, np.inf)[:, None] for one in (last, lowest))
            ends = -way * walk.ends(order) >= last
            self._at_ends[way] += np.count_nonzero(ends, axis=1)
            self._at_most[way] += np.count_nonzero(walk.over(order, -way, lowest), axis=1)

    def _find_suprema(self, walk: Walk, way: int) -> Array:
        """At least 0, as left of all values every D is; exact where that matters."""
        order, goal = self.curve.order, self._goal[way]
        if goal <= 0 and not self._keep:
            return np.zeros(walk.resamples)
        ends = walk.heights if order == 1 else walk.areas
        best = np.maximum(ends.max(axis=0) if way > 0 else -ends.min(axis=0), 0)
        over = walk.over(order, way, best if self._keep else goal)
        cells, resamples = np.divmod(np.flatnonzero(over), walk.resamples)
        unsure = np.ones(len(cells), np.bool_) if self._keep else best[resamples] < goal
        if order == 2:
            bound = walk.bound(way, cells, resamples)
            unsure &= bound > best[resamples] if self._keep else bound >= goal
        cells, resamples = cells[unsure], resamples[unsure]
        for some, inside in walk.inside(order, cells, resamples):
            peak = np.where(inside.counted, way * inside.values, 0).max(axis=1)
            np.maximum.at(best, resamples[some], peak.astype(best.dtype))
        return best

    def unsettled(self) -> dict[int, Places]:
        """Of each direction the cells in which a count may be as large as any at their ends."""
        return {
            way: np.flatnonzero(most >= max(int(np.max(self._at_ends[way])), 1))
            for way, most in self._at_most.items()
        }

    def settle(self, walk: Walk) -> None:
        """Count at every value of such cells."""
        for way, cells in self.unsettled().items():
            limit = self._limit(way)[:, None]
            for cell in cells.tolist():
                here = slice(*walk.pair.stops[cell : cell + 2])
                far = -way * walk.whole(self.curve.order, cell) >= limit[here]
                self.pointwise[way][here] += np.count_nonzero(far, axis=1)

    def see_weakest(self, walk: Walk) -> None:
        """Keep the processes at the weakest values, once all counts are there."""
        for way in WAYS if self._keep else ():
            place = self.weakest(way)[0] % len(self.curve.values)
            cell = int(np.searchsorted(walk.pair.stops, place, side="right")) - 1
            process = walk.whole(self.curve.order, cell)[place - walk.pair.stops[cell]]
            self._weakest[way].append(-way * process)

    def _limit(self, way: int) -> Array:
        """How far from 0 a process must be to be as far as the sample's own."""
        return (self.margin(way) - self.curve.slack) / self.stretch[1]
