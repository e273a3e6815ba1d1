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

import jax
import numpy as np

from surefoot.core import array
from surefoot.core.array import Array
from surefoot.core.coupling import WEIGHT_ROUNDING, Sorted, couple, sort_particles
from surefoot.errors import InputError, real, shown


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
    # A smaller share than this is all of the lowest particle: it would vanish in the product.
    eps = float(xp.finfo(s.z.dtype).eps)
    least = eps**2 if s.weight is None else 2 * WEIGHT_ROUNDING * eps
    alpha = alpha if array.is_traced(alpha) else least if alpha < least else alpha
    return xp.astype(_integral(xp, s, alpha, "alpha") / alpha, s.dtype)


def worse_of_two(z: Array, *, assume_sorted: bool = False) -> Array:
    """`E[min(Z, Z')]` of two independent draws: the mean less half of Gini's mean difference.

    Of the N^2 pairs, the i-th particle from below is the lower one in `2 (N - i) + 1`.
    """
    xp, s = sort_particles(z, None, assume_sorted=assume_sorted)
    n = s.z.shape[-1]
    lower = xp.astype(2 * (n - xp.arange(n, device=array.device(s.z))) - 1, s.z.dtype)
    pairs = s.z * xp.reshape(lower, (1,) * (s.z.ndim - 1) + (n,))
    if array.compat.is_jax_array(pairs):  # no fused multiply-add, which a batch could change
        pairs = jax.lax.optimization_barrier(pairs)
    return xp.astype(array.divide(array.divide(array.total(xp, pairs), n), n), s.dtype)


def centred(z: Array) -> Array:
    """Ascending particles `z[..., N]` about their means: what is left to compare where means are
    the same. The middle one is taken away first: a mean is rounded at the size of what is added,
    and that of distances from the middle loses nothing of a narrow distribution far from zero."""
    middle = z.shape[-1] // 2
    z = z - z[..., middle : middle + 1]
    return z - array.divide(array.pairwise_sum(z), z.shape[-1])[..., None]


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
    if not 1 <= real(order) < math.inf or order != int(order):
        raise InputError(f"order = {shown(order)}: it must be a whole number from 1 on")
    w = None if weights is None else array.check_weights(xp, weights, z, "weights")
    if central:
        z = z - _average(xp, z, w)[..., None]
    return xp.astype(_average(xp, z ** int(order), w), dtype)


def _average(xp: Any, x: Array, weights: Array | None) -> Array:
    if weights is None:
        return array.divide(array.total(xp, x), x.shape[-1])
    return array.total(xp, x * weights)


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
    if not real(p) >= 1:
        raise InputError(f"p = {shown(p)}: the Wasserstein distance needs p >= 1")
    xp, c = couple(x, y, x_weights, y_weights, assume_sorted=assume_sorted)
    gap = xp.abs(c.x - c.y)
    if math.isinf(p):
        met = gap if c.share is None else xp.where(c.share > 0, gap, xp.zeros_like(gap))
        distance = xp.max(met, axis=-1)
    else:
        distance = c.expect(xp, gap) if p == 1 else c.expect(xp, gap**p) ** (1 / p)
    return xp.astype(distance, c.dtype)
