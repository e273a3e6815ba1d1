"""Return distributions as particles: quantiles, dispersion, tails, moments, distances.

A distribution is N particles on the last axis, equally likely unless `weights` says otherwise.
Every function takes NumPy, JAX (also under `jit`, `vmap`, `grad`) and torch arrays and answers
in the same kind and precision. `assume_sorted=True` promises that the particles ascend and saves
the sort.

Levels of equally likely particles are counted in whole particles, never compared as rounded sums
of probabilities, and sums carry what rounding takes away: an answer about a million float32
particles is as good as one about ten, within a few units in the last place of the largest term.
Half precision is calculated in float32 and rounded once, at the end.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from surefoot.core import array
from surefoot.core.array import Array
from surefoot.errors import InputError

# Weights are rounded numbers. Relative errors of eps / 2 each add up to at most eps / 2 of the
# probability, however many there are: shares below a few eps may be nothing but rounding.
WEIGHT_ROUNDING = 4


class Sorted(NamedTuple):
    """Ascending particles; with weights, also the probability up to each."""

    z: Array  # [..., N]
    weight: Array | None  # [..., N], None where all are 1 / N
    right: Array | None  # [..., N] F just after each particle; the last one is exactly 1
    dtype: Any  # of the answers


def sort_particles(
    z: Array,
    weights: Array | None = None,
    *,
    assume_sorted: bool = False,
    name: str = "z",
    min_ndim: int = 1,
) -> tuple[Any, Sorted]:
    """Check, sort and accumulate: the one way in for every function below."""
    xp = array.namespace(**{name: z, f"{name}_weights": weights})
    dtype = array.answer_dtype(xp, z)
    z = array.check_particles(xp, z, name, min_ndim)
    if weights is None:
        return xp, Sorted(z if assume_sorted else array.sort(xp, z), None, None, dtype)
    weights = xp.astype(array.check_weights(xp, weights, z, f"{name}_weights"), z.dtype)
    if not assume_sorted:
        order = array.argsort(xp, z)
        z, weights = array.take(xp, z, order), array.take(xp, weights, order)
    high, low = array.partial_sums(xp, weights)
    right = high + low
    # What rounding left out of the sum belongs to the last particle.
    right = xp.concat([right[..., :-1], xp.ones_like(right[..., -1:])], axis=-1)
    return xp, Sorted(z, weights, right, dtype)


def quantile(
    z: Array, tau: Array | float, *, weights: Array | None = None, assume_sorted: bool = False
) -> Array:
    """`F^-1(tau) = inf {x : F(x) >= tau}`, shape `z.shape[:-1] + tau.shape`.

    A level that is the float nearest to `j / N` stands for that breakpoint.
    """
    xp, s = sort_particles(z, weights, assume_sorted=assume_sorted)
    level = _levels(xp, tau, s, "tau")
    return xp.astype(xp.reshape(array.take(xp, s.z, level.index), level.shape), s.dtype)


def cumulative_quantile(
    z: Array,
    tau: Array | float | None = None,
    *,
    weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """`F^-2(tau) = integral of F^-1 over [0, tau]` (the text above eq. 5 of the paper).

    Without `tau`: at every breakpoint, so that for equal weights entry `j` (from 0) is
    `F^-2((j + 1) / N) = sum(sorted z[:j + 1]) / N` and the last one is the mean.
    """
    xp, s = sort_particles(z, weights, assume_sorted=assume_sorted)
    if tau is None:
        return xp.astype(_breakpoint_values(xp, s), s.dtype)
    return xp.astype(_integral(xp, s, tau, "tau"), s.dtype)


def _integral(xp: Any, s: Sorted, tau: Array | float, name: str) -> Array:
    """`F^-2` at any levels: full particles, and the share of the next one that lies below."""
    level = _levels(xp, tau, s, name)
    high, low = array.partial_sums(xp, s.z if s.weight is None else s.z * s.weight)
    none = xp.zeros_like(high[..., :1])
    high, low = (
        array.take(xp, xp.concat([none, sums[..., :-1]], axis=-1), level.index)
        for sums in (high, low)
    )
    sums = high + (low + level.inside * array.take(xp, s.z, level.index))
    if s.weight is None:
        sums = array.divide(sums, s.z.shape[-1])
    return xp.reshape(sums, level.shape)


def _breakpoint_values(xp: Any, s: Sorted) -> Array:
    """`F^-2` at the breakpoints of sorted particles."""
    if s.weight is not None:
        return sum(array.partial_sums(xp, s.z * s.weight))
    return array.divide(sum(array.partial_sums(xp, s.z)), s.z.shape[-1])


class _Levels(NamedTuple):
    """Where levels lie among sorted particles."""

    index: Array  # [T] or [..., T] the particle whose share holds the level
    inside: Array  # how much of that particle lies below it: of one, or of its weight
    shape: tuple[int, ...]  # the shape of the answer


def _levels(xp: Any, tau: Array | float, s: Sorted, name: str) -> _Levels:
    """Find levels, which must lie in [0, 1], among the particles."""
    n = s.z.shape[-1]
    if s.right is None and isinstance(tau, int | float):
        _check_levels(np, np.asarray(tau), name)
        rank, inside = _ranks(np, np.asarray([tau], np.float64), n)
        make = functools.partial(xp.asarray, device=array.device(s.z))
        return _Levels(make(rank - 1), make(inside, dtype=s.z.dtype), s.z.shape[:-1])
    levels = _as_array(xp, tau, s.z, name)
    _check_levels(xp, levels, name)
    shape = (*s.z.shape[:-1], *levels.shape)
    levels = xp.reshape(levels, (-1,))
    if s.right is None:
        rank, inside = _ranks(xp, levels, n)
        return _Levels(rank - 1, xp.astype(inside, s.z.dtype), shape)
    levels = xp.astype(levels, s.z.dtype)
    slack = WEIGHT_ROUNDING * float(xp.finfo(s.z.dtype).eps)
    index = array.count_below(xp, s.right, levels - slack)
    index = xp.broadcast_to(xp.clip(index, 0, n - 1), (*s.z.shape[:-1], levels.shape[0]))
    left = xp.concat([xp.zeros_like(s.right[..., :1]), s.right[..., :-1]], axis=-1)
    return _Levels(index, levels - array.take(xp, left, index), shape)


def _ranks(xp: Any, levels: Array, n: int) -> tuple[Array, Array]:
    """The smallest whole j with `j / n >= level`, and how much of particle j lies below the level.

    `j / n` is compared as the float that the level is, so that 0.1 is the first of ten particles
    although the float above one tenth is meant. The product may miss j by one; the quotient,
    correctly rounded, does not.
    """
    precision = levels.dtype
    wide = xp.astype(levels, array.widest_float(xp))
    ratio = lambda j: xp.astype(array.divide(j, n), precision)  # noqa: E731
    j = xp.ceil(wide * n)
    j = xp.where(ratio(j - 1) >= levels, j - 1, j)
    j = xp.clip(xp.where(ratio(j) < levels, j + 1, j), 1, n)
    inside = xp.where(ratio(j) == levels, xp.ones_like(j), xp.clip(wide * n - (j - 1), 0.0, 1.0))
    return xp.astype(j, xp.int32 if n < 2**31 else xp.int64), inside


def _check_levels(xp: Any, levels: Array, name: str) -> None:
    inside = xp.all((levels >= 0) & (levels <= 1))
    if not array.is_traced(inside) and not bool(inside):  # under jit constants are traced too
        raise InputError(f"{name} lies outside [0, 1]")


def _as_array(xp: Any, values: Array | float, z: Array, name: str) -> Array:
    """Levels or values as an array of the particles' library; arrays keep their precision."""
    if not array.compat.is_array_api_obj(values):
        if not isinstance(values, int | float):
            array.namespace(**{name: values})  # says what to pass instead
        values = xp.asarray(values, dtype=z.dtype, device=array.device(z))
    array.namespace(z=z, **{name: values})
    levels: Any = values  # mypy knows no dtype of an array of any library
    floats = str(levels.dtype).split(".")[-1].startswith(("float", "bfloat"))
    return levels if floats else array.as_float(xp, levels, name)


def cumulative_cdf(z: Array, alpha: Array | float, *, weights: Array | None = None) -> Array:
    """`F^(2)(alpha) = integral of F up to alpha = E[(alpha - Z)_+]` (eq. 1's frontier)."""
    xp = array.namespace(z=z, weights=weights)
    dtype = array.answer_dtype(xp, z)
    z = array.check_particles(xp, z, "z")
    levels = _as_array(xp, alpha, z, "alpha")
    short = xp.clip(xp.reshape(levels, (-1, 1)) - z[..., None, :], 0.0, None)
    if weights is not None:
        weights = array.check_weights(xp, weights, z, "weights")[..., None, :]
    expected = _average(xp, short, weights)
    return xp.astype(xp.reshape(expected, (*z.shape[:-1], *levels.shape)), dtype)


class DispersionSpace(NamedTuple):
    """The space between `F^(2)` and its asymptotes (figure 1): its area is half the variance."""

    alpha: Array
    frontier: Array  # F^(2)(alpha)
    left_asymptote: Array  # 0, reached as alpha -> -infinity
    right_asymptote: Array  # alpha - E[Z], reached as alpha -> +infinity


def dispersion_space(z: Array, alpha: Array, *, weights: Array | None = None) -> DispersionSpace:
    """`F^(2)` with the two lines it runs between; a sure return lies on them everywhere."""
    frontier = cumulative_cdf(z, alpha, weights=weights)
    xp = array.namespace(z=z, alpha=alpha)
    centre = xp.reshape(mean(z, weights=weights), (*z.shape[:-1], *(1,) * alpha.ndim))
    right = xp.astype(alpha, frontier.dtype) - centre
    return DispersionSpace(alpha, frontier, xp.zeros_like(frontier), right)


def cvar(
    z: Array, alpha: float, *, weights: Array | None = None, assume_sorted: bool = False
) -> Array:
    """Mean of the worst `alpha` share, `F^-2(alpha) / alpha`; the boundary particle counts in part.

    `alpha = 1` is the mean. This is the lower tail: larger returns are better.
    """
    array.check_level(alpha, "alpha")
    xp, s = sort_particles(z, weights, assume_sorted=assume_sorted)
    return xp.astype(_integral(xp, s, alpha, "alpha") / alpha, s.dtype)


def mean(z: Array, *, weights: Array | None = None) -> Array:
    return moment(z, 1, weights=weights)


def variance(z: Array, *, weights: Array | None = None) -> Array:
    return moment(z, 2, weights=weights, central=True)


def std(z: Array, *, weights: Array | None = None) -> Array:
    return variance(z, weights=weights) ** 0.5


def moment(z: Array, order: int, *, weights: Array | None = None, central: bool = False) -> Array:
    """`E[Z^order]`, or about the mean with `central=True`."""
    xp = array.namespace(z=z, weights=weights)
    dtype = array.answer_dtype(xp, z)
    z = array.check_particles(xp, z, "z")
    if order < 1 or order != int(order):
        raise InputError(f"order = {order}: it must be a whole number from 1 on")
    w = None if weights is None else array.check_weights(xp, weights, z, "weights")
    if central:
        z = z - _average(xp, z, w)[..., None]
    return xp.astype(_average(xp, z ** int(order), w), dtype)


def _average(xp: Any, x: Array, weights: Array | None) -> Array:
    if weights is None:
        return array.divide(array.total(xp, x), x.shape[-1])
    return array.total(xp, x * weights)


class Coupling(NamedTuple):
    """Two distributions in quantile order: on each share both quantiles are constant."""

    share: Array | None  # [L] or [..., L] probability times `units`; None where all are one
    units: int  # one in whole units, so that equal weights are counted; 1 with other weights
    x: Array  # [..., L]
    y: Array  # [..., L]
    dtype: Any  # of the answers

    def expect(self, xp: Any, gap: Array) -> Array:
        """The mean of a function of both."""
        weighed = gap if self.share is None else self.share * gap
        return array.divide(array.total(xp, weighed), self.units)


def couple(
    x: Array,
    y: Array,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
    *,
    assume_sorted: bool = False,
) -> tuple[Any, Coupling]:
    """The sorted coupling on the union of both sets of breakpoints.

    It is the optimal coupling in one dimension, and the grid on which `F^-1` of both is
    constant and `F^-2` of both linear: distances and dominance both read it.
    """
    xp = array.namespace(x=x, y=y, x_weights=x_weights, y_weights=y_weights)
    lead = array.broadcast(x.shape[:-1], y.shape[:-1], "x without particles", "y without particles")
    _, sx = sort_particles(x, x_weights, assume_sorted=assume_sorted, name="x")
    _, sy = sort_particles(y, y_weights, assume_sorted=assume_sorted, name="y")
    dtype = xp.result_type(sx.z, sy.z)
    answers = sx.dtype if sx.dtype == sy.dtype else dtype
    z_x, z_y = xp.astype(sx.z, dtype), xp.astype(sy.z, dtype)
    if sx.right is not None or sy.right is not None:
        share, at_x, at_y = _merged(xp, _rights(xp, sx, lead, dtype), _rights(xp, sy, lead, dtype))
        at = array.take(xp, z_x, at_x), array.take(xp, z_y, at_y)
        return xp, Coupling(share, 1, *at, answers)
    n, m = x.shape[-1], y.shape[-1]
    if n == m:
        return xp, Coupling(None, n, z_x, z_y, answers)
    make = functools.partial(xp.asarray, device=array.device(z_x))
    share, at_x, at_y = _whole_ranks(n, m)
    at = array.take(xp, z_x, make(at_x)), array.take(xp, z_y, make(at_y))
    return xp, Coupling(make(share, dtype=dtype), math.lcm(n, m), *at, answers)


def _whole_ranks(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The merged grid of n and m equal shares, counted in units of `1 / lcm(n, m)`.

    Whole numbers of any size on the host: the grid depends on the shapes alone.
    """
    unit = math.lcm(n, m)
    in_x, in_y = unit // n, unit // m
    # Two ascending runs: the stable sort only merges them.
    ends = np.concatenate([np.arange(1, n + 1) * in_x, np.arange(1, m) * in_y])
    ends.sort(kind="stable")
    share = np.diff(ends, prepend=0)
    ends, share = ends[share > 0], share[share > 0]
    return share.astype(np.float64), (ends - 1) // in_x, (ends - 1) // in_y


def _rights(xp: Any, s: Sorted, lead: tuple[int, ...], dtype: Any) -> Array:
    n = s.z.shape[-1]
    right = s.right
    if right is None:
        ranks = xp.arange(1, n + 1, dtype=dtype, device=array.device(s.z))
        right = array.divide(ranks, n)
    return xp.broadcast_to(xp.astype(right, dtype), (*lead, n))


def _merged(xp: Any, right_x: Array, right_y: Array) -> tuple[Array, Array, Array]:
    """The merged grid of two sets of cumulative weights, and the particle of each on its parts."""
    n, m = right_x.shape[-1], right_y.shape[-1]
    both = xp.concat([right_x, right_y], axis=-1)
    order = array.argsort(xp, both)
    ends = array.take(xp, both, order)
    mass = ends - xp.concat([xp.zeros_like(ends[..., :1]), ends[..., :-1]], axis=-1)
    slack = WEIGHT_ROUNDING * float(xp.finfo(ends.dtype).eps)
    mass = xp.where(mass > slack, mass, xp.zeros_like(mass))
    # A segment lies in the particle whose breakpoint has not been passed yet.
    from_x = xp.astype(order < n, xp.int32)
    passed_x = xp.cumulative_sum(from_x, axis=-1) - from_x
    passed_y = xp.cumulative_sum(1 - from_x, axis=-1) - (1 - from_x)
    return mass, xp.clip(passed_x, 0, n - 1), xp.clip(passed_y, 0, m - 1)


def wasserstein(
    x: Array,
    y: Array,
    p: float = 2.0,
    *,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """Exact `W_p` of two distributions on the line, `p >= 1` (also `math.inf`)."""
    if not p >= 1:
        raise InputError(f"p = {p}: the Wasserstein distance needs p >= 1")
    xp, c = couple(x, y, x_weights, y_weights, assume_sorted=assume_sorted)
    gap = xp.abs(c.x - c.y)
    if math.isinf(p):
        real = gap if c.share is None else xp.where(c.share > 0, gap, xp.zeros_like(gap))
        distance = xp.max(real, axis=-1)
    else:
        distance = c.expect(xp, gap) if p == 1 else c.expect(xp, gap**p) ** (1 / p)
    return xp.astype(distance, c.dtype)
