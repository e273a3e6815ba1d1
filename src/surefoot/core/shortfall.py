"""How far the partial sums of one distribution fall short of another's: the rule in numbers.

For N ascending particles `x` falls short of `y` by the largest `S_y - S_x` over all partial sums,
divided by N; by nothing where no sum does. Pairs, matrices and policies, in NumPy, torch and
compiled, all add one particle after the other in the same way, so that no two of them disagree in
a bit, and neither a batch nor its width changes one:

- float32 is added in float64, whose 29 further digits leave nothing to round in most sums;
- float64 is added as `high + low`, where `low` collects what rounding takes away.

Where only yes or no is asked for, NumPy and torch add plainly at first, and like this only where
rounding might have decided.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core import array
from surefoot.core.array import Array

Sums = tuple[Array, ...]  # parts that add up to the sums: one in float64, or high and low


def shortfall(xp: Any, x: Array, y: Array) -> Array:
    """Of ascending `x[..., N]` below ascending `y[..., N]`."""
    if array.compat.is_jax_array(x):
        return _pair_compiled(*jnp.broadcast_arrays(x, y))
    # Real and imaginary parts of one array: to add complex numbers is to add both at once.
    shape = array.broadcast(x.shape, y.shape, "x", "y")
    both = xp.empty(shape, dtype=xp.complex128, device=array.device(x))
    both.real[...], both.imag[...] = x, y
    sums = _sums(xp, both, x.dtype)
    gap = _gap(tuple(map(xp.real, sums)), tuple(map(xp.imag, sums)))
    return _per_particle(xp, _not_negative(xp, xp.max(gap, axis=-1)), x)


def violations(xp: Any, z: Array) -> Array:
    """Of all pairs of ascending `z[..., A, N]`: `[..., a, b]`, of a below b."""
    if array.compat.is_jax_array(z):
        return _matrix_compiled(z)
    sums = _sums(xp, xp.astype(z, xp.float64, copy=False), z.dtype)

    def row(a: int) -> Array:
        mine = tuple(part[..., a : a + 1, :] for part in sums)
        return xp.max(_gap(mine, sums), axis=-1)

    worst = xp.stack([row(a) for a in range(z.shape[-2])], axis=-2)
    return _per_particle(xp, _not_negative(xp, worst), z)


def _sums(xp: Any, z: Array, dtype: Any) -> Sums:
    """Of wide `z`, whose values came in `dtype`."""
    return array.partial_sums(xp, z) if dtype == xp.float64 else (array.cumsum(z),)


def _not_negative(xp: Any, x: Array) -> Array:
    return xp.maximum(x, xp.zeros_like(x))  # a third of the time of `xp.clip`


def _gap(mine: Sums, theirs: Sums) -> Array:
    return functools.reduce(lambda a, b: a + b, (b - a for a, b in zip(mine, theirs, strict=True)))


def _per_particle(xp: Any, short: Array, z: Array) -> Array:
    return xp.astype(array.divide(short, z.shape[-1]), z.dtype, copy=False)


# Yes or no, without the care where none is needed.


def plainly_within(
    xp: Any, tolerance: float, rows: tuple[Array, ...], worst: Callable[[], Array]
) -> Array | None:
    """Whether shortfalls of ascending rows, added plainly, lie within the tolerance.

    None where one is too close to it. Adding N numbers of size `most` errs by at most N^2 eps / 2
    of it, so the difference of two such means by N eps. What the careful sums, the quotients, the
    tolerance and the weights round is less than 16 eps of both; and everything is allowed twice.
    """
    n = rows[0].shape[-1]
    most = max(float(xp.max(xp.abs(z[..., :: max(n - 1, 1)]))) for z in rows)
    info = xp.finfo(rows[0].dtype)
    if not 4.0 * n * most < float(info.max):  # sums that leave the range are for the rule itself
        return None
    error = 2 * float(info.eps) * ((n + 16) * most + tolerance) + float(info.smallest_normal)
    gap = worst() - tolerance
    return gap <= 0 if bool(xp.all(xp.abs(gap) > error)) else None


SMALL = 2**14  # so many differences and all pairs are compared at once, else each pair once


def plain_violations(xp: Any, z: Array) -> Array:
    """Of all pairs, as plain sums have them: negative where none falls short."""
    actions, sums = z.shape[-2], array.cumsum(z)
    if actions * math.prod(z.shape) <= SMALL:
        worst = xp.max(sums[..., None, :, :] - sums[..., :, None, :], axis=-1)
    else:
        worst = xp.zeros((*z.shape[:-1], actions), dtype=z.dtype, device=array.device(z))
        for a in range(actions - 1):
            short = sums[..., a + 1 :, :] - sums[..., a : a + 1, :]
            worst[..., a, a + 1 :] = xp.max(short, axis=-1)
            worst[..., a + 1 :, a] = -xp.min(short, axis=-1)
    itself = xp.reshape(worst, (*z.shape[:-2], actions**2))[..., :: actions + 1]
    itself[...] = -math.inf  # nobody falls short of himself
    return worst / z.shape[-1]


# Compiled: sums are compared as they grow, and only elements are added, subtracted and compared,
# so that no batch width, vector width or fused multiply-add changes a bit.


class Standing(NamedTuple):
    """How each action stands among the feasible ones."""

    sound: jax.Array  # [..., A] whether its particles and their sum are finite
    lag: jax.Array  # [..., A] the largest violation against any of them
    mean_lag: jax.Array  # [..., A] how far its mean lies below the best of theirs


FEW = 32  # up to so many actions are compared one by one: XLA fuses that, but no reduction


@functools.partial(jax.jit, static_argnames="in_place")
def standings(z: jax.Array, mask: jax.Array | None = None, *, in_place: bool = False) -> Standing:
    """The rule against all feasible actions at once, for ascending `z[..., A, N]`.

    `in_place` reads particles where they lie: a fifth faster where they were not sorted here.
    """

    def compare(sums: Sums, worst: jax.Array) -> jax.Array:
        for short, counts in _against_others(sums, mask):
            larger = short > worst  # what is not a number is never larger
            worst = jnp.where(larger if counts is None else larger & counts, short, worst)
        return worst

    with jax.enable_x64(True):
        none = jnp.zeros(z.shape[:-1], jnp.float64)
        sums, worst = _while_adding(z, compare, none, in_place)
        lag, mean_lag = (_per_particle(jnp, w, z) for w in (worst, compare(sums, none)))
        return Standing(_finite(sums), lag, mean_lag)


def _against_others(
    sums: Sums, mask: jax.Array | None
) -> Iterator[tuple[jax.Array, jax.Array | None]]:
    """Shortfalls of all actions, and whether they count: against the highest, or one by one."""
    if len(sums) == 1:  # a rounded difference is monotone: nobody lies further above
        high = sums[0]
        counts = high if mask is None else jnp.where(mask, high, -jnp.inf)
        yield _highest(counts) - high, None
        return
    for b in range(sums[0].shape[-1]):
        one = slice(b, b + 1)
        counts = None if mask is None else mask[..., one]
        yield _gap(sums, tuple(part[..., one] for part in sums)), counts


def _highest(x: jax.Array) -> jax.Array:
    """Of those that are numbers."""
    if x.shape[-1] > FEW:
        return jnp.max(jnp.where(jnp.isnan(x), -jnp.inf, x), axis=-1, keepdims=True)
    each = (x[..., b : b + 1] for b in range(x.shape[-1]))
    none = jnp.full_like(x[..., :1], -jnp.inf)
    return functools.reduce(lambda a, b: jnp.where(b > a, b, a), each, none)


@jax.jit
def _matrix_compiled(z: jax.Array) -> jax.Array:
    def compare(sums: Sums, worst: jax.Array) -> jax.Array:
        mine, theirs = (tuple(jnp.expand_dims(part, at) for part in sums) for at in (-1, -2))
        return jnp.maximum(worst, _gap(mine, theirs))

    with jax.enable_x64(True):
        none = jnp.zeros((*z.shape[:-1], z.shape[-2]), jnp.float64)
        sums, worst = _while_adding(z, compare, none)
        finite = _finite(sums)
        both = finite[..., :, None] & finite[..., None, :]
        return _per_particle(jnp, jnp.where(both, worst, jnp.nan), z)


@jax.custom_jvp
@jax.jit
def _pair_compiled(x: jax.Array, y: jax.Array) -> jax.Array:
    def compare(sums: Sums, worst: jax.Array) -> jax.Array:
        mine, theirs = (tuple(part[..., i] for part in sums) for i in (0, 1))
        return jnp.maximum(worst, _gap(mine, theirs))

    with jax.enable_x64(True):
        none = jnp.zeros(x.shape[:-1], jnp.float64)
        sums, worst = _while_adding(jnp.stack([x, y], axis=-2), compare, none)
        finite = _finite(sums)
        both = finite[..., 0] & finite[..., 1]
        return _per_particle(jnp, jnp.where(both, worst, jnp.nan), x)


@_pair_compiled.defjvp
def _pair_slope(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    """The slope of the one partial sum that falls short most."""
    (x, y), (slope_x, slope_y) = primals, tangents
    worst = _pair_compiled(x, y)
    at = jnp.argmax(array.cumsum(y - x), axis=-1)[..., None]
    slopes = jnp.take_along_axis(array.cumsum(slope_y - slope_x), at, axis=-1)[..., 0]
    return worst, jnp.where(worst > 0, slopes / x.shape[-1], 0.0)


def _finite(sums: Sums) -> jax.Array:
    return jnp.isfinite(sums[-1])  # an infinite `high` leaves `low` not a number


def _while_adding(
    z: jax.Array,
    compare: Callable[[Sums, jax.Array], jax.Array],
    worst: jax.Array,
    in_place: bool = False,
) -> tuple[Sums, jax.Array]:
    """The sums of all particles, and what `compare` made of all partial ones."""

    def add(state: tuple[Sums, jax.Array], column: jax.Array) -> tuple[Any, None]:
        sums, worst = state
        sums = _plus(sums, column.astype(jnp.float64))
        return (sums, compare(sums, worst)), None

    def add_at(j: jax.Array, state: tuple[Sums, jax.Array]) -> Any:
        return add(state, jax.lax.dynamic_index_in_dim(z, j, axis=-1, keepdims=False))[0]

    none = jnp.zeros(z.shape[:-1], jnp.float64)
    start = ((none, none) if z.dtype == jnp.float64 else (none,), worst)
    if in_place:
        return jax.lax.fori_loop(0, z.shape[-1], add_at, start)
    return jax.lax.scan(add, start, jnp.moveaxis(z, -1, 0))[0]  # as the network sorts: no copy


def _plus(sums: Sums, column: jax.Array) -> Sums:
    high = sums[0] + column
    if len(sums) == 1:
        return (jnp.where(high < jnp.inf, high, jnp.nan),)  # what is infinite is above nobody
    return high, sums[1] + array.lost(sums[0], column, high)
