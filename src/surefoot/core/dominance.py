"""Stochastic dominance of the first and second order between particle distributions.

`x` dominates `y` in the second order when `F^-2_x(tau) >= F^-2_y(tau)` for every `tau` (eq. 5
of the paper), for equally many equally likely particles when every partial sum of the sorted
particles is at least as large (eq. 6). Both curves are linear between breakpoints, so looking
at the breakpoints of both settles it.

There is one rule, here, and everything else calls it: `x` dominates `y` where
`violation(x, y) <= tolerance`. The violation is the largest shortfall of `F^-2_x`, in the units
of the returns; at `tau = 1` that is a difference of means. Nothing is forgiven beyond
`tolerance`: the particles are taken at their word, and partial sums carry what rounding takes
away, so that the sign of a shortfall is right down to `eps^2` of the returns. Only weights are
themselves rounded numbers: with them, shortfalls below a few eps of the mean distance between `x`
and `y` count as none. No third distribution ever matters.

What is not a number dominates nothing and is dominated by nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core import array
from surefoot.core.array import Array
from surefoot.core.particles import WEIGHT_ROUNDING, Coupling, Sorted, couple, sort_particles
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
    return _violation(xp, c) <= tolerance


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
        (high_x, low_x), (high_y, low_y) = (array.partial_sums(xp, z) for z in (c.x, c.y))
        short = (high_y - high_x) + (low_y - low_x)
    else:
        short = sum(array.partial_sums(xp, c.share * (c.y - c.x)))
    worst = array.divide(xp.max(short, axis=-1), c.units)
    noise = xp.zeros_like(worst)
    if c.share is not None and c.units == 1:  # weights
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
    xp = _check_actions(z, order, weights)
    if weights is None:
        _, s = sort_particles(z, assume_sorted=assume_sorted)
        if order == 2:
            return violations(xp, s.z) <= tolerance
        z, assume_sorted = s.z, True
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
    xp = _check_actions(z, order, weights)
    if weights is None and order == 2 and array.compat.is_jax_array(z):
        _, s = sort_particles(z, assume_sorted=assume_sorted)
        standing = standings(s.z)
        return standing.sound & (standing.lag <= tolerance)
    matrix = dominance_matrix(z, order, tolerance, weights=weights, assume_sorted=assume_sorted)
    sound = xp.all(xp.isfinite(array.as_float(xp, z)), axis=-1)
    return sound & xp.all(matrix | ~sound[..., None, :], axis=-1)


def _check_actions(z: Array, order: int, weights: Array | None) -> Any:
    if order not in (1, 2):
        raise InputError(f"order = {order}: dominance is offered at order 1 and 2")
    xp = array.namespace(z=z, weights=weights)
    array.check_particles(xp, z, "z", min_ndim=2)
    return xp


def violations(xp: Any, z: Array) -> Array:
    """The rule for all pairs of ascending `z[..., A, N]`: `[..., a, b]`, of a below b."""
    if array.compat.is_jax_array(z):
        return _violations_compiled(z)
    high, low = array.partial_sums(xp, z)

    def row(a: int) -> Array:
        one = slice(a, a + 1)
        short = (high - high[..., one, :]) + (low - low[..., one, :])
        return xp.clip(xp.max(short, axis=-1), 0.0, None)

    worst = xp.stack([row(a) for a in range(z.shape[-2])], axis=-2)
    return array.divide(worst, z.shape[-1])


# The same rule, compiled: one particle after the other is added to every action's partial sum, and
# the sums are compared as they grow. Only additions, subtractions and comparisons of single
# elements, so that no batch width, vector width or fused multiply-add changes a bit.


class Standing(NamedTuple):
    """How each action stands among the feasible ones."""

    sound: jax.Array  # [..., A] whether its particles and their sum are finite
    lag: jax.Array  # [..., A] the largest violation against any of them
    mean_lag: jax.Array  # [..., A] how far its mean lies below the best of theirs


FEW = 32  # up to so many actions are compared one by one: XLA fuses that, but no reduction


@jax.jit
def standings(z: jax.Array, mask: jax.Array | None = None) -> Standing:
    """The rule against all feasible actions at once, for ascending `z[..., A, N]`."""

    def compare(high: jax.Array, low: jax.Array, worst: jax.Array) -> jax.Array:
        if z.shape[-2] > FEW:
            short = _pairs(high, low)
            short = short if mask is None else jnp.where(mask[..., None, :], short, 0.0)
            return jnp.maximum(worst, jnp.max(jnp.where(short > 0, short, 0.0), axis=-1))
        for b in range(z.shape[-2]):
            one = slice(b, b + 1)
            short = (high[..., one] - high) + (low[..., one] - low)
            larger = short > worst if mask is None else (short > worst) & mask[..., one]
            worst = jnp.where(larger, short, worst)  # what is not a number is never larger
        return worst

    none = jnp.zeros(z.shape[:-1], z.dtype)
    high, low, worst = _while_adding(z, compare, none)
    sound = low == low  # an infinite sum leaves something that is not a number in `low`
    lag, mean_lag = (
        array.divide(short, z.shape[-1]) for short in (worst, compare(high, low, none))
    )
    return Standing(sound, lag, mean_lag)


@jax.jit
def _violations_compiled(z: jax.Array) -> jax.Array:
    def compare(high: jax.Array, low: jax.Array, worst: jax.Array) -> jax.Array:
        return jnp.maximum(worst, _pairs(high, low))  # keeps what is not a number

    none = jnp.zeros((*z.shape[:-1], z.shape[-2]), z.dtype)
    return array.divide(_while_adding(z, compare, none)[2], z.shape[-1])


def _pairs(high: jax.Array, low: jax.Array) -> jax.Array:
    gap = lambda x: x[..., None, :] - x[..., :, None]  # noqa: E731
    return gap(high) + gap(low)


def _while_adding(
    z: jax.Array,
    compare: Callable[[jax.Array, jax.Array, jax.Array], jax.Array],
    worst: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The sums of all particles as `high + low`, and what `compare` made of all partial ones."""

    def add(j: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        before, low, worst = state
        column = jax.lax.dynamic_index_in_dim(z, j, axis=-1, keepdims=False)
        high = before + column
        low = low + array.lost(before, column, high)
        return high, low, compare(high, low, worst)

    none = jnp.zeros(z.shape[:-1], z.dtype)
    high, low, worst = jax.lax.fori_loop(0, z.shape[-1], add, (none, none, worst))
    return high, low, worst
