"""The tests of all pairs of a table: here, or spread over workers with the same numbers.

All pairs start from the same seed, and each draws blocks of its own two columns' length: the result
of two columns does not depend on which others stand beside them, nor on where it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from surefoot.comparison.bootstrap import (
    DominanceTest,
    JointStatistics,
    in_cells,
    pair_draws,
    run_pairs,
)
from surefoot.comparison.process import WAYS
from surefoot.comparison.resampling import Draws, parts
from surefoot.comparison.returns import Array, Columns
from surefoot.comparison.settings import TestSettings
from surefoot.core.dominance import almost_ssd_ratio, fsd_dominates, violation

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Calls a function for each job, anywhere, and yields `(index, result)` as they come."""
_TILE = 24  # columns a side of what is computed at once
_SIDES = 3  # of a smaller table where it is spread: six jobs, so that all workers have some


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
    joint: tuple[JointStatistics, JointStatistics] | None
    """For a correction over pairs that share their resamples."""


@dataclass(frozen=True)
class PairsJob:
    """Some pairs, with the columns they need."""

    columns: Columns
    lengths: dict[str, int]
    pairs: tuple[tuple[str, str], ...]
    settings: TestSettings
    keep: bool = False
    """Statistics of every resample are wanted too."""

    def results(
        self, tick: Callable[[float], None] = lambda _: None
    ) -> Iterator[tuple[tuple[str, str], PairResult]]:
        """Both directions of each pair; `tick` hears how many pairs' worth of work is done."""
        sharing: dict[Draws, list[tuple[str, str]]] = {}
        for pair in self.pairs:
            sharing.setdefault(self.draws(*pair), []).append(pair)
        columns = in_cells(self.columns, self.settings.tolerance)
        for draws, pairs in sharing.items():
            runs = run_pairs(columns, pairs, draws, self.settings, keep=self.keep, tick=tick)
            for (a, b), run in zip(pairs, runs, strict=True):
                forward, backward = run.tests()
                over, under = facts(
                    columns[a][0].ascending, columns[b][0].ascending, self.settings.tolerance
                )
                joint = [run.statistics(way) if self.keep else None for way in WAYS]
                yield (a, b), PairResult(forward, over, joint[0])
                yield (b, a), PairResult(backward, under, joint[1])

    def draws(self, a: str, b: str) -> Draws:
        x, y = self.columns[a], self.columns[b]
        return pair_draws(len(x), len(y), (self.lengths[a], self.lengths[b]), self.settings)


def facts(x: Array, y: Array, tolerance: float) -> tuple[Facts, Facts]:
    """Of x over y and of y over x; both are ascending."""
    short = [float(violation(*two, assume_sorted=True)) for two in ((x, y), (y, x))]
    ratio = float(almost_ssd_ratio(x, y))
    # What does not speak against x speaks against y, unless the two are the same.
    other = 0.0 if short[1] == 0 else 1.0 - ratio
    first = [bool(fsd_dominates(*two, tolerance, assume_sorted=True)) for two in ((x, y), (y, x))]
    return Facts(first[0], short[0], ratio), Facts(first[1], short[1], other)


def run_job(job: PairsJob) -> list[tuple[tuple[str, str], PairResult]]:
    """What a worker does."""
    return list(job.results())


def all_pairs(
    table: Columns,
    lengths: dict[str, int],
    settings: TestSettings,
    *,
    keep: bool = False,
    spread: Spread | None = None,
    show: bool = False,
) -> dict[tuple[str, str], PairResult]:
    """Every ordered pair; `lengths` are those of each column's blocks."""
    from surefoot.runs.progress import progress

    pairs = tuple(combinations(table, 2))
    job = PairsJob(table, lengths, pairs, settings, keep)
    # Of long columns nearly all the work is drawing rows and summing columns, and each job would do
    # that again: few of them are one job. What is one job is done here.
    longest = max(table, key=lambda name: len(table[name]))
    split = spread is not None and parts(job.draws(longest, longest)) == 1
    tiles = _tiles(job, min(_TILE, -(-len(table) // _SIDES)) if split else _TILE)
    done: dict[tuple[str, str], PairResult] = {}
    with progress(len(pairs), "compare", "pairs", mode="auto" if show else "silent") as bar:
        if spread is None or len(tiles) == 1:
            for tile in tiles:
                done.update(tile.results(bar.advance))
        else:
            for _, some in spread(run_job, tiles):
                done.update(some)
                bar.advance(len(some) / 2)
    return done


def _tiles(job: PairsJob, side: int) -> list[PairsJob]:
    """Squares of the table of pairs, so that a job carries few columns."""
    place = {name: i // side for i, name in enumerate(job.columns)}
    tiles: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for a, b in job.pairs:
        tiles.setdefault((place[a], place[b]), []).append((a, b))
    jobs = []
    for pairs in tiles.values():
        needed = dict.fromkeys(name for pair in pairs for name in pair)
        columns = {name: job.columns[name] for name in needed}
        lengths = {name: job.lengths[name] for name in needed}
        jobs.append(replace(job, columns=columns, lengths=lengths, pairs=tuple(pairs)))
    return jobs
