"""The tests of all pairs of a table: here, or spread over workers with the same numbers.

All pairs start from the same seed, and each draws blocks of its own two columns' length: the result
of two columns does not depend on which others stand beside them, nor on where it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from surefoot.comparison.bootstrap import DominanceTest, TestSettings, run_pair
from surefoot.comparison.resampling import WeightStore
from surefoot.comparison.returns import Array, Columns
from surefoot.core.dominance import almost_ssd_ratio, fsd_dominates, violation

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Calls a function for each job, anywhere, and yields `(index, result)` as they come."""
_TILE = 16  # columns a side of what a worker is given at once


class Facts(NamedTuple):
    """What two samples show of x over y, by the one rule of dominance."""

    first: bool
    """x dominates y at the first order."""
    violation: float
    almost_ratio: float


class PairResult(NamedTuple):
    """One ordered pair."""

    tests: tuple[DominanceTest, DominanceTest]
    facts: Facts


@dataclass(frozen=True)
class PairsJob:
    """Some pairs, with the columns they need."""

    columns: Columns
    lengths: dict[str, int]
    pairs: tuple[tuple[str, str], ...]
    settings: TestSettings

    def results(self) -> Iterator[tuple[tuple[str, str], PairResult]]:
        """Both orders of each pair."""
        store = WeightStore()
        ascending = {name: np.sort(column) for name, column in self.columns.items()}
        # Pairs that draw the same weights one after the other.
        for a, b in sorted(self.pairs, key=lambda ab: max(self.lengths[name] for name in ab)):
            lengths = self.lengths[a], self.lengths[b]
            forward, backward = run_pair(
                self.columns[a], self.columns[b], lengths, self.settings, store
            )
            over, under = facts(ascending[a], ascending[b], self.settings.tolerance)
            yield (a, b), PairResult(forward, over)
            yield (b, a), PairResult(backward, under)


def facts(x: Array, y: Array, tolerance: float) -> tuple[Facts, Facts]:
    """Of x over y and of y over x; both are ascending."""
    short = [float(violation(*two, assume_sorted=True)) for two in ((x, y), (y, x))]
    ratio = float(almost_ssd_ratio(x, y))
    # What does not speak against x speaks against y, unless the two are the same.
    other = 0.0 if short[1] == 0 else 1.0 - ratio
    first = [bool(fsd_dominates(*two, tolerance, assume_sorted=True)) for two in ((x, y), (y, x))]
    return Facts(first[0], short[0], ratio), Facts(first[1], short[1], other)


def run_pairs(job: PairsJob) -> list[tuple[tuple[str, str], PairResult]]:
    """What a worker does."""
    return list(job.results())


def all_pairs(
    table: Columns,
    lengths: dict[str, int],
    settings: TestSettings,
    *,
    spread: Spread | None = None,
    show: bool = False,
) -> dict[tuple[str, str], PairResult]:
    """Every ordered pair; `lengths` are those of each column's blocks."""
    from surefoot.runs.progress import progress

    pairs = tuple(combinations(table, 2))
    done: dict[tuple[str, str], PairResult] = {}
    with progress(len(pairs), "compare", "pairs", mode="auto" if show else "silent") as bar:
        for pair, result in _results(PairsJob(table, lengths, pairs, settings), spread):
            done[pair] = result
            if pair[::-1] in done:
                bar.advance()
    return done


def _results(job: PairsJob, spread: Spread | None) -> Iterator[tuple[tuple[str, str], PairResult]]:
    if spread is None:
        yield from job.results()
        return
    for _, done in spread(run_pairs, _tiles(job)):
        yield from done


def _tiles(job: PairsJob) -> list[PairsJob]:
    """Squares of the table of pairs, so that a job carries few columns."""
    names, settings = list(job.columns), job.settings
    place = {name: i // _TILE for i, name in enumerate(names)}
    tiles: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for a, b in job.pairs:
        tiles.setdefault((place[a], place[b]), []).append((a, b))
    jobs = []
    for pairs in tiles.values():
        needed = dict.fromkeys(name for pair in pairs for name in pair)
        columns = {name: job.columns[name] for name in needed}
        jobs.append(PairsJob(columns, {n: job.lengths[n] for n in needed}, tuple(pairs), settings))
    return jobs
