"""A bootstrap test of stochastic dominance, exact on the support.

Barrett and Donald (Econometrica 71, 2003) test H0 "x dominates y at order j" by

    S_j = sqrt(n m / (n + m)) * sup_t [D_x^(j)(t) - D_y^(j)(t)],

with `D^(1) = F` and `D^(2)(t) = integral of F up to t = E[(t - X)_+]`: large values speak against
x. The distribution of S_j where the two are equal, the least favourable case of H0, is taken from
their recentred bootstrap: both samples are drawn anew, each from itself, and

    S_j* = sqrt(n m / (n + m)) * sup_t [(D_x* - D_x) - (D_y* - D_y)](t).

Where H0 is not rejected, x need not dominate. Davidson and Duclos (Econometric Reviews 32, 2013)
take "x does not dominate y" as the null: at some t of a range, D_x(t) >= D_y(t). Its rejection
leaves nothing but dominance. It is rejected where D_x(t) >= D_y(t) is rejected at every single t
(an intersection-union test: no correction for their number is needed), so its p-value is the
largest of

    P*[ (D_y* - D_x*)(t) - (D_y - D_x)(t) >= (D_y - D_x)(t) ].

Towards the ends of the support the two curves meet whatever the truth is, and no sample could
reject there: the range leaves out the `trim` smallest pooled values and, at the first order, the
`trim` largest. At the second order nothing is lost above (there the curves differ by the means),
and losses below the range still count at every t of it. `usual_trim` is 5 % and at least 20
values, as fewer cannot reject anything at the end of the range, but never more than a quarter.

With `paired` whole rows are drawn instead, which keeps the dependence between the columns
(returns of the same days, episodes of the same seeds). Where rows depend on those before, blocks of
consecutive rows are drawn, and the processes stretched by what blocks lack (`memory`).

`D^(1)` is constant and `D^(2)` linear between the observed values, so the supremum over all t is
a maximum over the observed values: there is no grid to choose. What a column adds is summed once
for all of its pairs (`process`), and one process gives both orders, both directions and both
hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.memory import memory_of, stretch
from surefoot.comparison.process import (
    WAYS,
    Column,
    ColumnSums,
    Pair,
    Scratch,
    Walk,
    cut,
    power_of_two,
)
from surefoot.comparison.resampling import Draws, Resampling, Weights, in_parts, parts
from surefoot.comparison.settings import TestSettings, usual_trim
from surefoot.comparison.tally import Tally
from surefoot.errors import InputError, real, shown

Array = NDArray[np.float64]
_VALUES = 1 << 24  # of all supports that are in memory at once


@dataclass(frozen=True)
class DominanceTest:
    """x over y at one order: both hypotheses, from the same resamples.

    P-values are (1 + how many resamples reach what was seen) / (1 + resamples): never zero.
    """

    order: int
    statistic: float
    """Of H0 "x dominates y": root of the sample size times the largest shortfall of x."""
    dominance_p: float
    """Of H0 "x dominates y"; a small one contradicts it."""
    nondominance_p: float
    """Of H0 "x does not dominate y" on the range; a small one establishes dominance there."""
    low: float
    high: float
    """The range of t: all but the ends, where the two curves meet whatever the truth is."""
    weakest: float
    """The t of the range at which the evidence for dominance is weakest."""
    margin: float
    """`D_y - D_x` there; dominance needs it to be positive."""
    length: int = 1
    """Rows of a block that were drawn together; 1 where rows were drawn on their own."""


class PairTests(NamedTuple):
    """Both directions at both orders, from the same resamples."""

    forward: tuple[DominanceTest, DominanceTest]
    """H0 "x dominates y", first order and second."""
    backward: tuple[DominanceTest, DominanceTest]
    """H0 "y dominates x", first order and second."""


class JointStatistics(NamedTuple):
    """x over y at one order: the statistics of both hypotheses, and in each resample.

    All are counted in `unit`, so that resamples fit into 32 bits whatever the returns count.
    """

    excess: float
    """root * the largest shortfall of x: against "x dominates y"."""
    suprema: NDArray[np.float32]
    margin: float
    """root * the margin where the evidence is weakest: against "x does not dominate y"."""
    weakest: NDArray[np.float32]
    unit: float
    """A power of two near the range of the returns at the second order, 1 at the first."""

    @staticmethod
    def of(tally: Tally, way: int) -> JointStatistics:
        curve = tally.curve
        unit = power_of_two(curve.places[-1] - curve.places[0]) if curve.order == 2 else 1.0
        size = curve.root / curve.scale / unit
        margin = float(tally.margin(way)[tally.weakest(way)[0]])
        return JointStatistics(
            size * tally.excess[way],
            (size * tally.suprema(way)).astype(np.float32),
            size * margin,
            (size * tally.at_weakest(way)).astype(np.float32),
            unit,
        )


def dominance_test(
    x: Array,
    y: Array,
    order: int = 2,
    *,
    dependence: str | int = "auto",
    **settings: Any,
) -> DominanceTest:
    """Test "x dominates y at `order`" and its opposite; `settings` are those of `TestSettings`.

    `dominance_p` below 0.05 contradicts it; `nondominance_p` below 0.05 establishes it. `x` and `y`
    are independent samples, of any lengths, or with `paired` the columns of one table.
    `dependence` says how rows depend on those before: "auto" looks, "none", or the block length.
    """
    if real(order) not in (1, 2):
        raise InputError(f"order = {shown(order)}: dominance is tested at order 1 and 2")
    return pair_tests(x, y, dependence=dependence, **settings).forward[order - 1]


def pair_tests(x: Array, y: Array, *, dependence: str | int = "auto", **settings: Any) -> PairTests:
    """The tests of one pair: both orders, both directions, both hypotheses."""
    chosen = TestSettings(**settings)
    x, y, lengths = checked_pair(x, y, dependence, chosen)
    columns = in_cells({"x": x, "y": y}, chosen.tolerance)
    draws = pair_draws(len(x), len(y), lengths, chosen)
    return next(run_pairs(columns, [("x", "y")], draws, chosen)).tests()


def checked_pair(
    x: Array, y: Array, dependence: str | int, settings: TestSettings
) -> tuple[Array, Array, tuple[int, int]]:
    """The two columns as numbers, and the length of each one's blocks."""
    x, y = _sample(x, "x"), _sample(y, "y")
    if settings.paired and len(x) != len(y):
        raise InputError(f"paired: x has {len(x)} rows and y has {len(y)}")
    lengths = [memory_of(z, dependence, settings.blocks).length for z in (x, y)]
    return x, y, (lengths[0], lengths[1])


Columns = Mapping[str, tuple[Column, Column]]
"""By name: a column, and the same moved up by the tolerance."""


def in_cells(columns: Mapping[str, Array], tolerance: float) -> Columns:
    """Columns, which are checked already, with the cells they share."""
    edges = cut(columns.values(), tolerance)
    made = {name: Column(values, edges) for name, values in columns.items()}
    return {
        name: (column, column.moved(tolerance) if tolerance > 0 else column)
        for name, column in made.items()
    }


Sums = dict[tuple[int, int], ColumnSums]


class Part:
    """Some resamples of a table; each column is summed once, for all of its pairs."""

    def __init__(self, weights: Weights, sums: Sums | None = None) -> None:
        self.weights, self._scratch = weights, Scratch()
        self.sums: Sums = {} if sums is None else sums

    def walk(self, x: Column, y: Column, pair: Pair) -> Walk:
        sums = self._of(x, 0), self._of(y, -len(y.values))
        return Walk(pair, *sums, self.weights, self._scratch)

    def _of(self, column: Column, start: int) -> ColumnSums:
        rows = len(column.values)
        start %= len(self.weights)
        if (key := (id(column), start)) not in self.sums:
            self.sums[key] = ColumnSums(column, self.weights[start : start + rows])
        return self.sums[key]


class PairRun:
    """The tests of two columns while resamples come in."""

    def __init__(
        self, columns: Columns, a: str, b: str, draws: Draws, settings: TestSettings, keep: bool
    ) -> None:
        (x, x_moved), (y, y_moved) = columns[a], columns[b]
        size, tolerance = len(x.values) + len(y.values), settings.tolerance
        trim = usual_trim(size) if settings.trim is None else settings.trim
        # Dominance is established after a correction, so at a smaller level than one test's.
        wider = stretch_of(draws), stretch_of(draws, 0.01)
        self._draw = max(draws, key=lambda one: one.length)

        def side(x: Column, y: Column) -> tuple[Column, Column, Pair]:
            return x, y, Pair(x, y, trim, together=draws[0] == draws[1])

        def first_of(side: tuple[Column, Column, Pair]) -> Tally:
            return Tally(side[2].first, 0.0, wider, keep=keep)

        plain = side(x, y)
        self._second = Tally(plain[2].second, tolerance, wider, keep=keep)
        if tolerance > 0:  # at the first order a shift for each direction, so a support for each
            moved = side(x_moved, y), side(x, y_moved)
            over, under = map(first_of, moved)
            self._sides = [(plain, [self._second]), (moved[0], [over]), (moved[1], [under])]
        else:
            over = under = first_of(plain)
            self._sides = [(plain, [over, self._second])]
        self._firsts = {1: over, -1: under}

    def see(self, part: Part, *, only: bool = False) -> None:
        """Count further resamples; `only`: there are no others."""
        for side, tallies in self._sides:
            walk = part.walk(*side)
            for tally in tallies:
                tally.see(walk)
                if only:
                    tally.settle(walk)
                    tally.see_weakest(walk)

    @property
    def unsettled(self) -> bool:
        """Whether some resamples must be looked at again."""
        return any(any(map(len, t.unsettled().values())) for _, some in self._sides for t in some)

    def look_again(self, part: Part, at: Callable[[Tally, Walk], None]) -> None:
        """Look at resamples again, once all have been seen."""
        for side, tallies in self._sides:
            walk = part.walk(*side)
            for tally in tallies:
                at(tally, walk)

    def tallies(self, way: int) -> tuple[Tally, Tally]:
        """Of x over y (1) or of y over x (-1): first order, second order."""
        return self._firsts[way], self._second

    def tests(self) -> PairTests:
        over, under = ([_test(one, way, self._draw) for one in self.tallies(way)] for way in WAYS)
        return PairTests((over[0], over[1]), (under[0], under[1]))

    def statistics(self, way: int) -> tuple[JointStatistics, JointStatistics]:
        """Of both orders, where they are kept."""
        first, second = (JointStatistics.of(tally, way) for tally in self.tallies(way))
        return first, second


def run_pairs(
    columns: Columns,
    pairs: Sequence[tuple[str, str]],
    draws: Draws,
    settings: TestSettings,
    *,
    keep: bool = False,
    tick: Callable[[float], object] = lambda _: None,
) -> Iterator[PairRun]:
    """Pairs with the same draws, all resamples seen; `tick` hears how many pairs' worth is done."""
    many = parts(draws)
    if many == 1:
        part = Part(next(in_parts(draws)))
        for a, b in pairs:
            run = PairRun(columns, a, b, draws, settings, keep)
            run.see(part, only=True)
            tick(1.0)
            yield run
        return
    # Weights that do not fit in memory come once for as many pairs as do.
    most = max(1, _VALUES // sum(draw.n for draw in draws))
    for i in range(0, len(pairs), most):
        runs = [PairRun(columns, a, b, draws, settings, keep) for a, b in pairs[i : i + most]]
        sums = []  # small beside the weights, and wanted again where resamples are
        for part in map(Part, in_parts(draws)):
            for run in runs:
                run.see(part)
                tick(1 / many)
            sums.append(part.sums)
        open_runs = [run for run in runs if run.unsettled]
        for again, at in ((open_runs, Tally.settle), (runs if keep else [], Tally.see_weakest)):
            for part in map(Part, in_parts(draws) if again else (), sums):
                for run in again:
                    run.look_again(part, at)
        yield from runs


def pair_draws(n: int, m: int, lengths: tuple[int, int], settings: TestSettings) -> Draws:
    """Rows that belong together are drawn together, in the longer of the two blocks."""
    resamples, seed, blocks = settings.resamples, settings.seed, settings.blocks
    if settings.paired:
        one = Resampling(n, resamples, seed, 0, max(lengths), blocks)
        return one, one
    return (
        Resampling(n, resamples, seed, 0, lengths[0], blocks),
        Resampling(m, resamples, seed, 1, lengths[1], blocks),
    )


def stretch_of(draws: Draws, level: float = 0.05) -> float:
    """By how much processes from these draws are too narrow at a level."""
    return max(stretch(draw.length, draw.n, draw.blocks, level) for draw in draws)


def _test(tally: Tally, way: int, draw: Resampling) -> DominanceTest:
    """From the counts to the two p-values; `way` is 1 for x over y, -1 for y over x."""
    curve, many = tally.curve, 1 + draw.resamples
    inside = np.flatnonzero(curve.inside)
    weakest, reached = tally.weakest(way)
    ends = curve.places[inside[[0, -1]]] if len(inside) else curve.places[[-1, -1]]
    return DominanceTest(
        curve.order,
        statistic=curve.root * tally.excess[way] / curve.scale,
        dominance_p=(1 + tally.reached(way)) / many,
        nondominance_p=1.0 if reached is None else (1 + reached) / many,
        low=float(ends[0]),
        high=float(ends[1]),
        weakest=float(curve.places[weakest]),
        margin=float(tally.margin(way)[weakest]) / curve.scale,
        length=draw.length,
    )


def _sample(x: Array, name: str) -> Array:
    try:
        x = np.asarray(x)
    except ValueError as error:  # rows of unequal lengths
        raise InputError(f"{name} must be a list of numbers: {error}") from None
    if x.ndim != 1 or x.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a list of numbers, not {x.dtype} of shape {x.shape}")
    if len(x) < 2:
        raise InputError(f"{name} has {len(x)} values: a test needs at least 2")
    x = x.astype(np.float64)
    if not np.isfinite(x).all():
        raise InputError(f"{name}[{int(np.argmin(np.isfinite(x)))}] is not finite")
    return x
