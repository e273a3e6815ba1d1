"""All further tests of a table in one call: `compare(returns, further=True)`.

Each ordered pair by the methods of `further` at orders 1 to 3, and its almost dominance with an
interval; where the rows of the columns belong together also a ranking and the test of maximality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from surefoot.comparison.almost import (
    AlmostDominance,
    RelativeRank,
    almost_dominance,
    relative_ranking,
)
from surefoot.comparison.further import FurtherTest, further_tests
from surefoot.comparison.pairs import Spread
from surefoot.comparison.returns import Array, ReturnTable
from surefoot.comparison.settings import TestSettings
from surefoot.comparison.stepdown import Maximality, maximality
from surefoot.core.stats import holm

RANKED = (2, 1)  # orders of a ranking and of maximality


@dataclass(frozen=True)
class FurtherPair:
    """a over b."""

    a: str
    b: str
    tests: tuple[FurtherTest, ...]
    """Each method at each order, of H0 "a dominates b"."""
    corrected: tuple[float, ...]
    """Their p-values after Holm's correction over all ordered pairs, for each method and order."""
    almost: tuple[AlmostDominance, AlmostDominance]
    """How much speaks against a, at the first order and at the second."""


@dataclass(frozen=True)
class Further:
    """What `compare` adds on request."""

    level: float
    pairs: tuple[FurtherPair, ...]
    """All ordered pairs."""
    ranking: tuple[RelativeRank, ...]
    """At the second order, best first, then at the first; empty where rows do not belong
    together."""
    maximality: tuple[Maximality, ...]
    """At both orders; empty likewise."""

    def pair(self, a: str, b: str) -> FurtherPair:
        return next(pair for pair in self.pairs if (pair.a, pair.b) == (a, b))


@dataclass(frozen=True)
class _Job:
    x: Array
    y: Array
    level: float
    options: dict[str, Any]


def _pair(job: _Job) -> tuple[tuple[FurtherTest, ...], tuple[AlmostDominance, AlmostDominance]]:
    """What a worker does."""
    return (
        further_tests(job.x, job.y, **job.options),
        almost_dominance(job.x, job.y, level=job.level, **job.options),
    )


def all_further(
    table: ReturnTable,
    settings: TestSettings,
    *,
    level: float,
    dependence: str | int,
    spread: Spread | None = None,
    show: bool = False,
) -> Further:
    """The tests of all pairs, then those of all columns at once, where they have the same rows."""
    from surefoot.runs.progress import progress

    options: dict[str, Any] = {
        "resamples": settings.resamples,
        "seed": settings.seed,
        "blocks": settings.blocks,
        "dependence": dependence,
    }
    paired = {**options, "paired": settings.paired}
    names = list(permutations(table, 2))
    jobs = [_Job(table[a], table[b], level, paired) for a, b in names]
    done: dict[int, Any] = {}
    with progress(len(jobs), "further", "pairs", mode="auto" if show else "silent") as bar:
        each = enumerate(map(_pair, jobs)) if spread is None else spread(_pair, jobs)
        for index, result in each:
            done[index] = result
            bar.advance(1)
    tests = [done[i][0] for i in range(len(jobs))]
    corrected = _corrected(tests)
    together = RANKED if settings.paired else ()
    return Further(
        level,
        tuple(
            FurtherPair(a, b, tests[i], corrected[i], done[i][1]) for i, (a, b) in enumerate(names)
        ),
        tuple(
            rank
            for order in together
            for rank in relative_ranking(table, order, level=level, **options)
        ),
        tuple(maximality(table, order, **options) for order in together),
    )


def _corrected(tests: Sequence[Sequence[FurtherTest]]) -> list[tuple[float, ...]]:
    """Holm's correction over pairs, for each method and order on its own."""
    columns = [holm([own[k].p_value for own in tests]) for k in range(len(tests[0]))]
    return [tuple(float(column[i]) for column in columns) for i in range(len(tests))]
