"""A bootstrap test of stochastic dominance, exact on the support.

Barrett and Donald (Econometrica 71, 2003) test H0 "x dominates y at order j" by

    S_j = sqrt(n m / (n + m)) * sup_t [D_x^(j)(t) - D_y^(j)(t)],

with `D^(1) = F` and `D^(2)(t) = integral of F up to t = E[(t - X)_+]`: large values speak against
x. The distribution of S_j where the two are equal, the least favourable case of H0, is taken from
their recentred bootstrap: both samples are drawn anew, each from itself, and

    S_j* = sqrt(n m / (n + m)) * sup_t [(D_x* - D_x) - (D_y* - D_y)](t).

With `paired` whole rows are drawn instead, which keeps the dependence between the columns
(returns of the same days, episodes of the same seeds).

`D^(1)` is constant and `D^(2)` linear between the observed values, so the supremum over all t is
a maximum over the observed values: there is no grid to choose. All resamples of a chunk are
counted, summed and maximised at once, and one process gives both orders and both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.core.array import check_tolerance
from surefoot.errors import InputError

Array = NDArray[np.float64]
_CHUNK = 1 << 18  # drawn values in flight: larger chunks fall out of the cache (measured)
_ROUNDING = 1e-12  # what rounding may do to D^(2), relative to the range of the values


@dataclass(frozen=True)
class DominanceTest:
    """The test of H0 "x dominates y"; a small p-value says that x does not."""

    order: int
    statistic: float
    p_value: float
    """(1 + how many resamples reach the statistic) / (1 + resamples): never zero."""


class PairTests(NamedTuple):
    """Both directions at both orders, from the same resamples."""

    forward: tuple[DominanceTest, DominanceTest]
    """H0 "x dominates y", first order and second."""
    backward: tuple[DominanceTest, DominanceTest]
    """H0 "y dominates x", first order and second."""


def dominance_test(
    x: Array,
    y: Array,
    order: int = 2,
    *,
    resamples: int = 1000,
    seed: int = 0,
    tolerance: float = 0.0,
    paired: bool = False,
) -> DominanceTest:
    """Test H0 "x dominates y at `order`" (Barrett and Donald, 2003).

    Reject at level 0.05 where the p-value is below 0.05: then x does not dominate. `x` and `y`
    are independent samples, of any lengths, or with `paired` the columns of one table. Rows are
    taken to be independent of each other: of a series with memory the p-values are too small.
    """
    if order not in (1, 2):
        raise InputError(f"order = {order}: dominance is tested at order 1 and 2")
    tests = pair_tests(x, y, resamples=resamples, seed=seed, tolerance=tolerance, paired=paired)
    return tests.forward[order - 1]


def pair_tests(
    x: Array,
    y: Array,
    *,
    resamples: int = 1000,
    seed: int = 0,
    tolerance: float = 0.0,
    paired: bool = False,
) -> PairTests:
    """The four tests of one pair; `tolerance` is that of `fsd_dominates` and `ssd_dominates`.

    At the second order it loosens H0 to `D_x <= D_y + tolerance`, which is the same as
    `F^-2_x >= F^-2_y - tolerance` (the two are convex conjugates); at the first order to
    quantiles of x at most `tolerance` below those of y, so x is shifted by that much.
    """
    x, y = _sample(x, "x"), _sample(y, "y")
    check_tolerance(tolerance)
    _check(resamples, seed)
    if paired and len(x) != len(y):
        raise InputError(f"paired: x has {len(x)} rows and y has {len(y)}")
    draws = _Draws(len(x), len(y), resamples, seed, paired)
    forward, backward = _suprema(x, y, draws)
    first = forward.first, backward.first
    if tolerance > 0:  # a shift for each direction, so a support of its own for each
        first = (
            _suprema(x + tolerance, y, draws)[0].first,
            _suprema(x, y + tolerance, draws)[1].first,
        )
    return PairTests(
        (_test(1, draws, first[0]), _test(2, draws, forward.second, tolerance)),
        (_test(1, draws, first[1]), _test(2, draws, backward.second, tolerance)),
    )


class _Draws(NamedTuple):
    """Which observations each resample takes: the same ones whenever it is asked."""

    n: int
    m: int
    resamples: int
    seed: int
    paired: bool

    def chunks(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        # A stream for each sample: what is drawn does not depend on the size of the chunks.
        rng_x, rng_y = map(np.random.default_rng, np.random.SeedSequence(self.seed).spawn(2))
        chunk = max(1, _CHUNK // (self.n + self.m))
        for start in range(0, self.resamples, chunk):
            rows = min(chunk, self.resamples - start)
            from_x = rng_x.integers(self.n, size=(rows, self.n), dtype=np.int32)
            if self.paired:
                yield from_x, from_x
            else:
                yield from_x, rng_y.integers(self.m, size=(rows, self.m), dtype=np.int32)


class _Supremum(NamedTuple):
    """The largest value of a difference of two curves, in the sample and in each resample."""

    observed: float
    resampled: Array  # [resamples]
    slack: float  # what rounding may have done to either


class _Direction(NamedTuple):
    first: _Supremum  # order 1
    second: _Supremum  # order 2


def _suprema(x: Array, y: Array, draws: _Draws) -> tuple[_Direction, _Direction]:
    """sup [D_x - D_y], then sup [D_y - D_x], each at both orders."""
    n, m = draws.n, draws.m
    support, places = np.unique(np.concatenate([x, y]), return_inverse=True)
    at_x, at_y = places[:n], places[n:]
    width = np.diff(support)
    # n m (F_x - F_y) is a whole number: the first order is free of rounding, ties included.
    base = _difference(at_x[None], at_y[None], n, m, len(support))
    observed = _extremes(base, width)[..., 0] / (n * m)
    resampled = np.empty((2, 2, draws.resamples))  # direction, order, resample
    done = 0
    for from_x, from_y in draws.chunks():
        process = _difference(at_x[from_x], at_y[from_y], n, m, len(support)) - base
        resampled[:, :, done : done + len(process)] = _extremes(process, width)
        done += len(process)
    resampled /= n * m
    slack = _ROUNDING * float(support[-1] - support[0])
    forward, backward = (
        _Direction(
            _Supremum(float(observed[i, 0]), resampled[i, 0], 0.0),
            _Supremum(float(observed[i, 1]), resampled[i, 1], slack),
        )
        for i in range(2)
    )
    return forward, backward


def _difference(
    at_x: NDArray[np.intp], at_y: NDArray[np.intp], n: int, m: int, size: int
) -> NDArray[np.int64]:
    """`n m (F_x - F_y)` at every support point, one row per resample; the last column is 0."""
    rows = len(at_x)
    offset = (np.arange(rows) * size)[:, None]
    process = np.bincount((at_x + offset).ravel(), minlength=rows * size)
    process *= m
    process -= n * np.bincount((at_y + offset).ravel(), minlength=rows * size)
    process = process.reshape(rows, size)
    return np.cumsum(process, axis=1, out=process)


def _extremes(process: NDArray[np.int64], width: Array) -> Array:
    """`[direction, order, row]`: the suprema of the process and of its integral, up and down.

    Left of all values every D is 0, so no supremum is below 0.
    """
    out = np.zeros((2, 2, len(process)))
    out[0, 0], out[1, 0] = process.max(axis=1), -process.min(axis=1)
    if len(width):
        integral = process[:, :-1] * width
        np.cumsum(integral, axis=1, out=integral)
        out[0, 1], out[1, 1] = integral.max(axis=1), -integral.min(axis=1)
    return np.maximum(out, 0.0, out=out)


def _test(order: int, draws: _Draws, sup: _Supremum, tolerance: float = 0.0) -> DominanceTest:
    excess = sup.observed - tolerance
    excess = excess if excess > sup.slack else min(excess, 0.0)
    reached = int(np.count_nonzero(sup.resampled >= excess - sup.slack))
    root = float(np.sqrt(draws.n * draws.m / (draws.n + draws.m)))
    return DominanceTest(order, root * excess, (1 + reached) / (1 + draws.resamples))


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
