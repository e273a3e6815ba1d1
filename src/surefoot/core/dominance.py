"""Stochastic dominance of the first and second order between particle distributions.

`x` dominates `y` in the second order when `F^-2_x(tau) >= F^-2_y(tau)` for every `tau` (eq. 5
of the paper), for equally many equally likely particles when every partial sum of the sorted
particles is at least as large (eq. 6). Both curves are linear between breakpoints, so looking
at the breakpoints of both settles it.

Comparisons forgive the rounding of the arithmetic itself and, on top of it, `tolerance`: in the
units of the returns, on the scale of `F^-2` (at `tau = 1` that is the mean).
"""

from __future__ import annotations

from typing import Any

from surefoot.core import array as _array
from surefoot.core.array import Array
from surefoot.core.particles import breakpoint_values, couple, rounding, sort_particles
from surefoot.errors import InputError


def fsd_dominates(
    x: Array,
    y: Array,
    tolerance: float = 0.0,
    *,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """First order: no quantile of `x` lies below that of `y` (by more than `tolerance`)."""
    _array.check_tolerance(tolerance)
    xp, c = couple(x, y, x_weights, y_weights, assume_sorted=assume_sorted)
    fine = (c.x - c.y >= -tolerance) | (c.mass <= rounding(xp, c.mass))
    return xp.all(fine, axis=-1)


def ssd_dominates(
    x: Array,
    y: Array,
    tolerance: float = 0.0,
    *,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """Second order, `x >=_(2) y`: every risk-averse judge takes `x` (eq. 5)."""
    _array.check_tolerance(tolerance)
    return (
        violation(x, y, x_weights=x_weights, y_weights=y_weights, assume_sorted=assume_sorted)
        <= tolerance
    )


def violation(
    x: Array,
    y: Array,
    *,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """The largest shortfall of `F^-2_x` below `F^-2_y`: zero exactly where `x` dominates."""
    xp, c = couple(x, y, x_weights, y_weights, assume_sorted=assume_sorted)
    short = _array.cumsum(xp, c.mass * (c.y - c.x))
    worst = xp.max(short, axis=-1)
    return xp.where(worst > _slack(xp, c.x, c.y), worst, xp.zeros_like(worst))


def almost_ssd_ratio(
    x: Array,
    y: Array,
    *,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
) -> Array:
    """Share of the area between the two `F^(2)` that speaks against `x` (Tzeng et al., 2013).

    0 where `x` dominates `y`, 1 where it is dominated throughout, small where only extreme
    risk aversion would object; 0 where the two are the same.
    """
    xp = _array.namespace(x=x, y=y, x_weights=x_weights, y_weights=y_weights)
    _, sx = sort_particles(x, x_weights, name="x")
    _, sy = sort_particles(y, y_weights, name="y")
    lead = _array.broadcast(sx.z.shape[:-1], sy.z.shape[:-1], "x", "y")
    n, m = sx.z.shape[-1], sy.z.shape[-1]
    support = xp.concat(
        [xp.broadcast_to(sx.z, (*lead, n)), xp.broadcast_to(sy.z, (*lead, m))], axis=-1
    )
    mass_x = xp.full_like(sx.z, 1 / n) if sx.weight is None else sx.weight
    mass_y = xp.full_like(sy.z, 1 / m) if sy.weight is None else sy.weight
    mass = xp.concat(
        [xp.broadcast_to(mass_x, (*lead, n)), xp.broadcast_to(-mass_y, (*lead, m))], axis=-1
    )
    order = _array.argsort(xp, support)
    support, mass = _array.take(xp, support, order), _array.take(xp, mass, order)
    width = support[..., 1:] - support[..., :-1]
    # F^(2)_x - F^(2)_y at the support points: linear in between, zero at the first.
    rise = _array.cumsum(xp, _array.cumsum(xp, mass)[..., :-1] * width)
    noise = _slack(xp, sx.z, sy.z)[..., None]
    right = xp.where(xp.abs(rise) > noise, rise, xp.zeros_like(rise))
    left = xp.concat([xp.zeros_like(right[..., :1]), right[..., :-1]], axis=-1)
    against = xp.sum(_area_above(xp, left, right, width), axis=-1)
    total = against + xp.sum(_area_above(xp, -left, -right, width), axis=-1)
    return against / xp.where(total > 0, total, xp.ones_like(total))


def _area_above(xp: Any, left: Array, right: Array, width: Array) -> Array:
    """Area above zero under the line from `left` to `right` over `width`."""
    up_left, up_right = xp.clip(left, 0.0, None), xp.clip(right, 0.0, None)
    span = xp.abs(right - left)
    crosses = left * right < 0
    share = xp.where(crosses, (up_left + up_right) / xp.where(span > 0, span, 1.0 + span), 1.0)
    return 0.5 * (up_left + up_right) * share * width


def dominance_matrix(
    z: Array,
    order: int = 2,
    tolerance: float = 0.0,
    *,
    weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """`[..., a, b]` is true where a dominates b, for particles `z[..., A, N]`."""
    _array.check_tolerance(tolerance)
    xp, curve, slack = _curves(z, order, weights, assume_sorted)
    if curve is None:
        compare = ssd_dominates if order == 2 else fsd_dominates
        wx = None if weights is None else weights[..., :, None, :]
        wy = None if weights is None else weights[..., None, :, :]
        x, y = z[..., :, None, :], z[..., None, :, :]
        return compare(x, y, tolerance, x_weights=wx, y_weights=wy, assume_sorted=assume_sorted)
    gap = curve[..., :, None, :] - curve[..., None, :, :]
    slack = slack if isinstance(slack, float) else slack[..., None]  # [..., 1, 1, 1], one per set
    return xp.all(gap >= -(tolerance + slack), axis=-1)


def dominant_set(
    z: Array,
    order: int = 2,
    tolerance: float = 0.0,
    *,
    weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """`[..., a]` is true where a dominates every other action: the paper's `A_s^(2)`.

    To dominate all is to lie nowhere below the highest curve, so no pair is ever compared.
    """
    _array.check_tolerance(tolerance)
    xp, curve, slack = _curves(z, order, weights, assume_sorted)
    if curve is None:
        matrix = dominance_matrix(z, order, tolerance, weights=weights, assume_sorted=assume_sorted)
        return xp.all(matrix, axis=-1)
    return nowhere_below(xp, curve, tolerance + slack)


def nowhere_below(xp: Any, curve: Array, slack: Array | float) -> Array:
    """True for each curve `[..., A, N]` that keeps within `slack` of the highest everywhere."""
    highest = xp.max(curve, axis=-2, keepdims=True)
    return xp.all(curve - highest >= -slack, axis=-1)


def _curves(
    z: Array, order: int, weights: Array | None, assume_sorted: bool
) -> tuple[Any, Array | None, Array | float]:
    """`F^-1` or `F^-2` of every action at common breakpoints; none where weights differ."""
    if order not in (1, 2):
        raise InputError(f"order = {order}: dominance is offered at order 1 and 2")
    xp = _array.namespace(z=z, weights=weights)
    _array.check_particles(xp, z, "z", min_ndim=2)
    if weights is not None:
        return xp, None, 0.0
    _, s = sort_particles(z, assume_sorted=assume_sorted)
    if order == 1:
        return xp, s.z, 0.0
    ends = xp.maximum(xp.abs(s.z[..., :1]), xp.abs(s.z[..., -1:]))  # sorted: the extremes
    size = xp.max(ends, axis=-2, keepdims=True)
    return xp, breakpoint_values(xp, s), _slack_of(xp, size, s.z.shape[-1])


def _slack(xp: Any, x: Array, y: Array) -> Array:
    """What rounding may add to a difference of partial sums of these particles."""
    size = xp.maximum(xp.max(xp.abs(x), axis=-1), xp.max(xp.abs(y), axis=-1))
    return _slack_of(xp, size, x.shape[-1])


def _slack_of(xp: Any, size: Array, terms: int) -> Array:
    return size * (4 * terms**0.5 * float(xp.finfo(size.dtype).eps))
