"""Return distributions as particles: quantiles, dispersion, tails, moments, distances.

A distribution is N particles on the last axis, equally likely unless `weights` says otherwise.
Every function takes NumPy, JAX (also under `jit`, `vmap`, `grad`) and torch arrays and answers
in the same kind. `assume_sorted=True` promises that the particles ascend and saves the sort.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from surefoot.core import array as _array
from surefoot.core.array import Array
from surefoot.errors import InputError


class Sorted(NamedTuple):
    """Ascending particles with the probability below (`left`) and up to (`right`) each."""

    z: Array  # [..., N]
    weight: Array | None  # [..., N], None where all are 1 / N
    right: Array  # [..., N] F just after each particle; the last one is exactly 1


def sort_particles(
    z: Array, weights: Array | None = None, *, assume_sorted: bool = False, name: str = "z"
) -> tuple[Any, Sorted]:
    """Check, sort and accumulate: the one way in for every function below."""
    xp = _array.namespace(**{name: z, f"{name}_weights": weights})
    z = _array.check_particles(xp, z, name)
    n = z.shape[-1]
    if weights is None:
        z = z if assume_sorted else _array.sort(xp, z)
        right = xp.arange(1, n + 1, dtype=z.dtype, device=_device(z)) / n
        return xp, Sorted(z, None, right)
    weights = xp.astype(_array.check_weights(xp, weights, z, f"{name}_weights"), z.dtype)
    if not assume_sorted:
        order = _array.argsort(xp, z)
        z, weights = _array.take(xp, z, order), _array.take(xp, weights, order)
    right = _array.cumsum(xp, weights)
    # What rounding left out of the sum belongs to the last particle.
    right = xp.concat([right[..., :-1], xp.ones_like(right[..., -1:])], axis=-1)
    return xp, Sorted(z, weights, right)


def _device(z: Array) -> Any:
    """Where to make new arrays; a traced array has no place yet."""
    return None if _array.is_traced(z) else _array.compat.device(z)


def quantile(
    z: Array, tau: Array | float, *, weights: Array | None = None, assume_sorted: bool = False
) -> Array:
    """`F^-1(tau) = inf {x : F(x) >= tau}`, shape `z.shape[:-1] + tau.shape`."""
    xp, s = sort_particles(z, weights, assume_sorted=assume_sorted)
    levels, shape = _levels(xp, tau, s.z, "tau")
    return xp.reshape(_array.take(xp, s.z, _index(xp, s, levels)), shape)


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
    at_breaks = breakpoint_values(xp, s)
    if tau is None:
        return at_breaks
    levels, shape = _levels(xp, tau, s.z, "tau")
    k = _index(xp, s, levels)
    before = xp.concat([xp.zeros_like(at_breaks[..., :1]), at_breaks[..., :-1]], axis=-1)
    left = xp.concat([xp.zeros_like(s.right[..., :1]), s.right[..., :-1]], axis=-1)
    inside = levels - _array.take(xp, left, k)
    return xp.reshape(_array.take(xp, before, k) + inside * _array.take(xp, s.z, k), shape)


def breakpoint_values(xp: Any, s: Sorted) -> Array:
    """`F^-2` at the breakpoints of sorted particles."""
    if s.weight is None:
        return _array.cumsum(xp, s.z) / s.z.shape[-1]
    return _array.cumsum(xp, s.z * s.weight)


def cumulative_cdf(z: Array, alpha: Array | float, *, weights: Array | None = None) -> Array:
    """`F^(2)(alpha) = integral of F up to alpha = E[(alpha - Z)_+]` (eq. 1's frontier)."""
    xp = _array.namespace(z=z, weights=weights)
    z = _array.check_particles(xp, z, "z")
    levels, shape = _values(xp, alpha, z, "alpha")
    short = xp.clip(levels[..., :, None] - z[..., None, :], 0.0, None)
    if weights is None:
        return xp.reshape(xp.mean(short, axis=-1), shape)
    weights = _array.check_weights(xp, weights, z, "weights")
    return xp.reshape(xp.sum(short * weights[..., None, :], axis=-1), shape)


class DispersionSpace(NamedTuple):
    """The space between `F^(2)` and its asymptotes (figure 1): its area is half the variance."""

    alpha: Array
    frontier: Array  # F^(2)(alpha)
    left_asymptote: Array  # 0, reached as alpha -> -infinity
    right_asymptote: Array  # alpha - E[Z], reached as alpha -> +infinity


def dispersion_space(z: Array, alpha: Array, *, weights: Array | None = None) -> DispersionSpace:
    """`F^(2)` with the two lines it runs between; a sure return lies on them everywhere."""
    frontier = cumulative_cdf(z, alpha, weights=weights)
    xp = _array.namespace(z=z, alpha=alpha)
    centre = xp.reshape(mean(z, weights=weights), (*z.shape[:-1], *(1,) * alpha.ndim))
    right = xp.astype(alpha, frontier.dtype) - centre
    return DispersionSpace(alpha, frontier, xp.zeros_like(frontier), right)


def cvar(
    z: Array, alpha: float, *, weights: Array | None = None, assume_sorted: bool = False
) -> Array:
    """Mean of the worst `alpha` share, `F^-2(alpha) / alpha`; the boundary particle counts in part.

    `alpha = 1` is the mean. This is the lower tail: returns are wanted large.
    """
    _array.check_level(alpha, "alpha")
    return cumulative_quantile(z, alpha, weights=weights, assume_sorted=assume_sorted) / alpha


def mean(z: Array, *, weights: Array | None = None) -> Array:
    return moment(z, 1, weights=weights)


def variance(z: Array, *, weights: Array | None = None) -> Array:
    return moment(z, 2, weights=weights, central=True)


def std(z: Array, *, weights: Array | None = None) -> Array:
    return variance(z, weights=weights) ** 0.5


def moment(z: Array, order: int, *, weights: Array | None = None, central: bool = False) -> Array:
    """`E[Z^order]`, or about the mean with `central=True`."""
    xp = _array.namespace(z=z, weights=weights)
    z = _array.check_particles(xp, z, "z")
    if order < 1 or order != int(order):
        raise InputError(f"order = {order}: it must be a whole number from 1 on")
    w = None if weights is None else _array.check_weights(xp, weights, z, "weights")
    if central:
        z = z - _average(xp, z, w)[..., None]
    return _average(xp, z ** int(order), w)


def _average(xp: Any, x: Array, weights: Array | None) -> Array:
    return xp.mean(x, axis=-1) if weights is None else xp.sum(x * weights, axis=-1)


class Coupling(NamedTuple):
    """Two distributions in quantile order: on each share `mass` both quantiles are constant."""

    mass: Array  # [..., L]
    x: Array  # [..., L]
    y: Array  # [..., L]


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
    xp = _array.namespace(x=x, y=y, x_weights=x_weights, y_weights=y_weights)
    _array.broadcast(x.shape[:-1], y.shape[:-1], "x without particles", "y without particles")
    _, sx = sort_particles(x, x_weights, assume_sorted=assume_sorted, name="x")
    _, sy = sort_particles(y, y_weights, assume_sorted=assume_sorted, name="y")
    n, m = sx.z.shape[-1], sy.z.shape[-1]
    if n == m and sx.weight is None and sy.weight is None:
        return xp, Coupling(xp.full_like(sx.right, 1 / n), sx.z, sy.z)
    lead = _array.broadcast(sx.right.shape[:-1], sy.right.shape[:-1], "x", "y")
    right_x = xp.broadcast_to(sx.right, (*lead, n))
    right_y = xp.broadcast_to(sy.right, (*lead, m))
    both = xp.concat([right_x, xp.astype(right_y, right_x.dtype)], axis=-1)
    order = _array.argsort(xp, both)
    breaks = _array.take(xp, both, order)
    mass = breaks - xp.concat([xp.zeros_like(breaks[..., :1]), breaks[..., :-1]], axis=-1)
    # A segment lies in the particle whose breakpoint has not been passed yet.
    from_x = xp.astype(order < n, xp.int32)
    passed_x = xp.cumulative_sum(from_x, axis=-1) - from_x
    passed_y = xp.cumulative_sum(1 - from_x, axis=-1) - (1 - from_x)
    at_x = _array.take(xp, sx.z, xp.clip(passed_x, 0, n - 1))
    at_y = _array.take(xp, sy.z, xp.clip(passed_y, 0, m - 1))
    return xp, Coupling(mass, at_x, at_y)


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
        return xp.max(xp.where(c.mass > rounding(xp, c.mass), gap, 0.0 * gap), axis=-1)
    if p == 1:
        return xp.sum(c.mass * gap, axis=-1)
    return xp.sum(c.mass * gap**p, axis=-1) ** (1 / p)


def rounding(xp: Any, like: Array) -> float:
    """Shares of probability below this are artefacts of adding weights up."""
    return 4 * like.shape[-1] * float(xp.finfo(like.dtype).eps)


def _levels(xp: Any, tau: Array | float, z: Array, name: str) -> tuple[Array, tuple[int, ...]]:
    """Levels `[T]` that must lie in [0, 1], and the shape the answer takes."""
    levels, shape = _values(xp, tau, z, name)
    inside = xp.all((levels >= 0) & (levels <= 1))
    if not _array.is_traced(inside) and not bool(inside):  # under jit constants are traced too
        raise InputError(f"{name} lies outside [0, 1]")
    return levels, shape


def _values(xp: Any, v: Array | float, z: Array, name: str) -> tuple[Array, tuple[int, ...]]:
    if not _array.compat.is_array_api_obj(v):
        if not isinstance(v, int | float):
            _array.namespace(**{name: v})  # says what to pass instead
        v = xp.asarray(v, dtype=z.dtype, device=_device(z))
    _array.namespace(z=z, **{name: v})
    v = xp.astype(v, z.dtype)
    return xp.reshape(v, (-1,)), (*z.shape[:-1], *v.shape)


def _index(xp: Any, s: Sorted, levels: Array) -> Array:
    """The particle in whose share each level lies; rounding of the breakpoints is forgiven."""
    slack = rounding(xp, s.right)
    k = _array.count_below(xp, s.right, levels - slack)
    k = xp.clip(k, 0, s.z.shape[-1] - 1)
    return xp.broadcast_to(k, (*s.z.shape[:-1], levels.shape[-1]))
