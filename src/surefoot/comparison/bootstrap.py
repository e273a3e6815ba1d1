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
(returns of the same days, episodes of the same seeds).

`D^(1)` is constant and `D^(2)` linear between the observed values, so the supremum over all t is
a maximum over the observed values: there is no grid to choose. All resamples of a chunk are
summed and maximised at once, and one process gives both orders, both directions and both
hypotheses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.process import Pair, Tally
from surefoot.comparison.resampling import Resampling
from surefoot.core.array import check_tolerance
from surefoot.errors import InputError

Array = NDArray[np.float64]
_CHUNK = 1 << 24  # weights in flight


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


class PairTests(NamedTuple):
    """Both directions at both orders, from the same resamples."""

    forward: tuple[DominanceTest, DominanceTest]
    """H0 "x dominates y", first order and second."""
    backward: tuple[DominanceTest, DominanceTest]
    """H0 "y dominates x", first order and second."""


def usual_trim(size: int) -> float:
    """Share of so many pooled values that an end of the range leaves out."""
    return min(0.25, max(0.05, 20 / size))


def dominance_test(
    x: Array,
    y: Array,
    order: int = 2,
    *,
    resamples: int = 1000,
    seed: int = 0,
    tolerance: float = 0.0,
    paired: bool = False,
    trim: float | None = None,
) -> DominanceTest:
    """Test "x dominates y at `order`" and its opposite.

    `dominance_p` below 0.05 contradicts it; `nondominance_p` below 0.05 establishes it. `x` and `y`
    are independent samples, of any lengths, or with `paired` the columns of one table. Rows are
    taken to be independent of each other: of a series with memory the p-values are too small.
    """
    if order not in (1, 2):
        raise InputError(f"order = {order}: dominance is tested at order 1 and 2")
    tests = pair_tests(
        x, y, resamples=resamples, seed=seed, tolerance=tolerance, paired=paired,
        trim=trim,
    )  # fmt: skip
    return tests.forward[order - 1]


def pair_tests(
    x: Array,
    y: Array,
    *,
    resamples: int = 1000,
    seed: int = 0,
    tolerance: float = 0.0,
    paired: bool = False,
    trim: float | None = None,
) -> PairTests:
    """The four tests of one pair; `tolerance` is that of `fsd_dominates` and `ssd_dominates`.

    At the second order it loosens H0 to `D_x <= D_y + tolerance`, which is the same as
    `F^-2_x >= F^-2_y - tolerance` (the two are convex conjugates); at the first order to
    quantiles of x at most `tolerance` below those of y, so x is shifted by that much. `trim` is
    the share of the pooled values left out at an end of the range (`usual_trim` by default).
    """
    x, y = _sample(x, "x"), _sample(y, "y")
    check_tolerance(tolerance)
    _check(resamples, seed)
    if paired and len(x) != len(y):
        raise InputError(f"paired: x has {len(x)} rows and y has {len(y)}")
    trim = usual_trim(len(x) + len(y)) if trim is None else trim
    if not 0 <= trim < 0.5:
        raise InputError(f"trim = {trim}: it must be at least 0 and below 0.5")
    draws = (
        Resampling(len(x), resamples, seed),
        Resampling(len(y), resamples, seed, stream=0 if paired else 1),
    )
    pair = Pair(x, y, trim)
    first, second = Tally(pair.first), Tally(pair.second, tolerance)
    walks: list[tuple[Pair, Tally, Tally | None]] = [(pair, first, second)]
    if tolerance > 0:  # at the first order a shift for each direction, so a support for each
        shifted = Pair(x + tolerance, y, trim), Pair(x, y + tolerance, trim)
        walks += [(moved, Tally(moved.first), None) for moved in shifted]
    most = max(1, _CHUNK // (len(x) + len(y)))
    for weights in zip(*(draw.chunks(most) for draw in draws), strict=True):
        for place, *tallies in walks:
            for tally in tallies:
                if tally is not None:
                    tally.begin(weights[0].shape[1])
            place.walk(*weights, *tallies)
    firsts = [walk[1] for walk in walks]
    return PairTests(
        (_test(firsts[1 if tolerance else 0], 1), _test(second, 1)),
        (_test(firsts[2 if tolerance else 0], -1), _test(second, -1)),
    )


def _test(tally: Tally, way: int) -> DominanceTest:
    """From the processes to the two p-values; `way` is 1 for x over y, -1 for y over x."""
    curve, resampled = tally.curve, tally.high if way > 0 else -tally.low
    seen = max(float(np.max(way * curve.values)), 0.0)
    excess = seen - tally.tolerance
    excess = excess if excess > curve.slack else min(excess, 0.0)
    many = 1 + len(resampled)
    margin = tally.margin[way]
    reached = tally.reached.get(way)
    inside = np.flatnonzero(curve.inside)
    if reached is None:  # somewhere in the range the sample does not dominate
        opposite = 1.0
        weakest = inside[np.argmin(margin[inside])] if len(inside) else len(margin) - 1
    else:
        weakest = inside[np.argmax(reached[inside] - margin[inside] / (1 + margin[inside].max()))]
        opposite = (1 + int(reached[weakest])) / many
    ends = curve.places[inside[[0, -1]]] if len(inside) else curve.places[[-1, -1]]
    return DominanceTest(
        curve.order,
        statistic=curve.root * excess / curve.scale,
        dominance_p=(1 + int(np.count_nonzero(resampled >= excess - curve.slack))) / many,
        nondominance_p=opposite,
        low=float(ends[0]),
        high=float(ends[1]),
        weakest=float(curve.places[weakest]),
        margin=float(margin[weakest]) / curve.scale,
    )


def _sample(x: Array, name: str) -> Array:
    x = np.asarray(x)
    if x.ndim != 1 or x.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a list of numbers, not {x.dtype} of shape {x.shape}")
    if len(x) < 2:
        raise InputError(f"{name} has {len(x)} values: a test needs at least 2")
    x = x.astype(np.float64)
    if not np.isfinite(x).all():
        raise InputError(f"{name}[{int(np.argmin(np.isfinite(x)))}] is not finite")
    return x


def _check(resamples: int, seed: int) -> None:
    if not isinstance(resamples, int | np.integer) or resamples < 19:
        raise InputError(f"resamples = {resamples}: a test at level 0.05 needs at least 19")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed = {seed}: it must be a whole number that is not negative")
