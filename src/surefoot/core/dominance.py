"""Stochastic dominance of the first and second order between particle distributions.

`x` dominates `y` in the second order when `F^-2_x(tau) >= F^-2_y(tau)` for every `tau` (eq. 5
of the paper), for equally many equally likely particles when every partial sum of the sorted
particles is at least as large (eq. 6). Both curves are linear between breakpoints, so looking
at the breakpoints of both settles it.

There is one rule, here, and everything else calls it: `x` dominates `y` where
`violation(x, y) <= tolerance`. The violation is the largest shortfall of `F^-2_x`, in the units
of the returns; at `tau = 1` that is a difference of means. Nothing is forgiven beyond
`tolerance`: the particles are taken at their word, and partial sums keep what rounding takes away
(`shortfall.py`), so that the sign of a shortfall is right down to `eps^2` of the returns. Only
weights are themselves rounded numbers: with them, shortfalls below a few eps of the mean distance
between `x` and `y` count as none. No third distribution ever matters.

What is not a number dominates nothing and is dominated by nothing.
"""

from __future__ import annotations

from typing import Any

from surefoot.core import array
from surefoot.core.array import Array
from surefoot.core.coupling import WEIGHT_ROUNDING, Coupling, Sorted, couple, sort_particles
from surefoot.core.shortfall import (
    plain_violations,
    plainly_within,
    shortfall,
    standings,
    violations,
)
from surefoot.errors import InputError, real, shown


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
    array.check_tolerance(tolerance)
    xp, c = couple(x, y, x_weights, y_weights, assume_sorted=assume_sorted)
    fine = c.y - c.x <= tolerance
    return xp.all(fine if c.share is None else fine | (c.share == 0), axis=-1)


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
    array.check_tolerance(tolerance)
    xp, c = couple(x, y, x_weights, y_weights, assume_sorted=assume_sorted)
    plain = None
    if not array.compat.is_jax_array(c.x):
        plain = plainly_within(xp, tolerance, (c.x, c.y), lambda: _plain_violation(xp, c))
    return _violation(xp, c) <= tolerance if plain is None else plain


def _plain_violation(xp: Any, c: Coupling) -> Array:
    gap = c.y - c.x if c.share is None else c.share * (c.y - c.x)
    return xp.max(array.cumsum(gap), axis=-1) / c.units


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
    worst = _violation(xp, c)
    if c.dtype == worst.dtype:
        return worst
    # A shortfall too small for half precision is still one.
    least = xp.where(worst > 0, xp.full_like(worst, 2.0**-24), xp.zeros_like(worst))
    return xp.astype(xp.maximum(worst, least), c.dtype)


def _violation(xp: Any, c: Coupling) -> Array:
    """The rule for two distributions on their common grid."""
    if c.share is None:
        return shortfall(xp, c.x, c.y)
    short = sum(array.partial_sums(xp, c.share * (c.y - c.x)))
    worst = array.divide(xp.max(short, axis=-1), c.units)
    noise = xp.zeros_like(worst)
    if c.units == 1:  # weights
        eps = WEIGHT_ROUNDING * float(xp.finfo(worst.dtype).eps)
        noise = eps * xp.sum(c.share * xp.abs(c.y - c.x), axis=-1)
    return xp.where(worst <= noise, xp.zeros_like(worst), worst)  # keeps what is not a number


def almost_ssd_ratio(
    x: Array,
    y: Array,
    *,
    x_weights: Array | None = None,
    y_weights: Array | None = None,
) -> Array:
    """Share of the area between the two `F^(2)` that speaks against `x` (Tzeng et al., 2013).

    0 where `x` dominates `y` and nowhere else, 1 where it is dominated throughout, small where
    only extreme risk aversion would object; 0 where the two are the same.
    """
    xp, c = couple(x, y, x_weights, y_weights)
    _, sx = sort_particles(x, x_weights, name="x")
    _, sy = sort_particles(y, y_weights, name="y")
    lead = array.broadcast(sx.z.shape[:-1], sy.z.shape[:-1], "x", "y")
    # The ratio has no unit, its areas have the square of one: too large or too small for a float.
    unit = xp.maximum(*(xp.max(xp.abs(s.z), axis=-1, keepdims=True) for s in (sx, sy)))
    most = float(xp.finfo(unit.dtype).max) ** 0.4
    extreme = (unit > most) | ((unit > 0) & (unit < 1 / most))
    unit = xp.where(extreme, unit, xp.ones_like(unit))
    sx, sy = (s._replace(z=s.z / unit) for s in (sx, sy))
    support, rise = _second_cdf_gap(xp, sx, sy, lead)
    width = support[..., 1:] - support[..., :-1]
    left = xp.concat([xp.zeros_like(rise[..., :1]), rise[..., :-1]], axis=-1)
    against = array.total(xp, _area_above(xp, left, rise, width))
    everything = against + array.total(xp, _area_above(xp, -left, -rise, width))
    ratio = against / xp.where(everything > 0, everything, xp.ones_like(everything))
    # Where one side dominates, the rule says so and not the rounding of areas.
    short_x = _violation(xp, c)
    short_y = _violation(xp, c._replace(x=c.y, y=c.x))
    smallest = float(xp.finfo(ratio.dtype).smallest_normal)
    ratio = xp.where(short_y == 0, xp.ones_like(ratio), xp.clip(ratio, smallest, 1.0))
    return xp.astype(xp.where(short_x == 0, xp.zeros_like(ratio), ratio), c.dtype)


def _second_cdf_gap(xp: Any, sx: Sorted, sy: Sorted, lead: tuple[int, ...]) -> tuple[Array, Array]:
    """The joint support, and `F^(2)_x - F^(2)_y` at each of its points but the first (zero)."""
    n = sx.z.shape[-1]
    dtype = xp.result_type(sx.z, sy.z)

    def joined(a: Array, b: Array) -> Array:
        both = [xp.broadcast_to(v, (*lead, v.shape[-1])) for v in (a, b)]
        return xp.concat([xp.astype(v, dtype) for v in both], axis=-1)

    support = joined(sx.z, sy.z)
    order = array.argsort(xp, support)
    support = array.take(xp, support, order)

    def cdf(s: Sorted, mine: Array) -> Array:
        """`F` of one at every point of the joint support: particles counted, or weights added."""
        passed = xp.cumulative_sum(xp.astype(mine, xp.int32), axis=-1)
        if s.right is None:
            return array.divide(xp.astype(passed, dtype), s.z.shape[-1])
        right = xp.concat([xp.zeros_like(s.right[..., :1]), s.right], axis=-1)
        return array.take(xp, xp.astype(right, dtype), passed)

    gap = cdf(sx, order < n) - cdf(sy, order >= n)
    width = support[..., 1:] - support[..., :-1]
    return support, sum(array.partial_sums(xp, gap[..., :-1] * width))


def _area_above(xp: Any, left: Array, right: Array, width: Array) -> Array:
    """Area above zero under the line from `left` to `right` over `width`."""
    up_left, up_right = xp.clip(left, 0.0, None), xp.clip(right, 0.0, None)
    span = xp.abs(right - left)
    crosses = left * right < 0
    part = xp.where(crosses, (up_left + up_right) / xp.where(span > 0, span, 1.0 + span), 1.0)
    return 0.5 * (up_left + up_right) * part * width


def dominance_matrix(
    z: Array,
    order: int = 2,
    tolerance: float = 0.0,
    *,
    weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """`[..., a, b]` is true where a dominates b, for particles `z[..., A, N]`."""
    array.check_tolerance(tolerance)
    _check_order(order)
    if weights is None:
        xp, s = sort_particles(z, assume_sorted=assume_sorted, min_ndim=2)
        if order == 2:
            plain = None
            if not array.compat.is_jax_array(s.z):
                worst = lambda: plain_violations(xp, s.z)  # noqa: E731
                plain = plainly_within(xp, tolerance, (s.z,), worst)
            return violations(xp, s.z) <= tolerance if plain is None else plain
        z, assume_sorted = s.z, True
    else:
        xp = array.namespace(z=z, weights=weights)
        particles = array.check_particles(xp, z, "z", min_ndim=2)
        weights = array.check_weights(xp, weights, particles, "weights")
    compare = ssd_dominates if order == 2 else fsd_dominates

    def row(a: int) -> Array:
        wx = None if weights is None else weights[..., a : a + 1, :]
        one = z[..., a : a + 1, :]
        return compare(
            one, z, tolerance, x_weights=wx, y_weights=weights, assume_sorted=assume_sorted
        )

    return xp.stack([row(a) for a in range(z.shape[-2])], axis=-2)


def dominant_set(
    z: Array,
    order: int = 2,
    tolerance: float = 0.0,
    *,
    weights: Array | None = None,
    assume_sorted: bool = False,
) -> Array:
    """`[..., a]` is true where a dominates every other action: the paper's `A_s^(2)`.

    Under `jit`, where values cannot be checked, actions that are not numbers are left out.
    """
    array.check_tolerance(tolerance)
    _check_order(order)
    if weights is None and order == 2 and array.compat.is_jax_array(z):
        _, s = sort_particles(z, assume_sorted=assume_sorted, min_ndim=2)
        standing = standings(s.z)
        return standing.sound & (standing.lag <= tolerance)
    matrix = dominance_matrix(z, order, tolerance, weights=weights, assume_sorted=assume_sorted)
    xp = array.namespace(z=z)
    sound = xp.all(xp.isfinite(array.as_float(xp, z)), axis=-1)
    return sound & xp.all(matrix | ~sound[..., None, :], axis=-1)


def _check_order(order: int) -> None:
    if real(order) not in (1, 2):
        raise InputError(f"order = {shown(order)}: dominance is offered at order 1 and 2")
