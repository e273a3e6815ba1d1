"""One door for arrays of any library: namespace, checks, sort, cumulative sum.

The numerical core is written once against the Python array API standard. What the libraries do
at very different speed (sorting, cumulative sums) is chosen here; what a user can get wrong is
checked here. Values are checked where they exist: under `jit`, `vmap` or `grad` they do not.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import array_api_compat as compat
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core.sorting import network_sort
from surefoot.errors import InputError, real, shown

Array = Any  # any array of the array API standard: NumPy, JAX, torch, ...


def namespace(**arrays: Array | None) -> Any:
    """The one array namespace of all arguments, or an error that names the odd one out. Weights,
    and nothing else, may be None."""
    present = {
        name: a for name, a in arrays.items() if a is not None or not name.endswith("weights")
    }
    for name, a in present.items():
        refuse_masked(a, name)
        if not compat.is_array_api_obj(a):
            raise InputError(
                f"{name} is of type {type(a).__name__}, not an array: pass numpy.asarray({name}), "
                f"jax.numpy.asarray({name}) or torch.asarray({name})"
            )
    try:
        return compat.array_namespace(*present.values())
    except TypeError:
        kinds = ", ".join(f"{name} is {_library(a)}" for name, a in present.items())
        raise InputError(f"mixed array libraries: {kinds}; pass arrays of one library") from None


def refuse_masked(x: Any, name: str) -> None:
    """What a mask hides would be read all the same."""
    if isinstance(x, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array: leave out what the mask hides")


def _library(x: Array) -> str:
    return "jax" if compat.is_jax_array(x) else type(x).__module__.split(".")[0]


def is_traced(x: Array) -> bool:
    return isinstance(x, jax.core.Tracer)


def device(x: Array) -> Any:
    """Where to make new arrays; a traced array has no place yet."""
    return None if is_traced(x) else compat.device(x)


def as_float(xp: Any, x: Array, name: str = "z") -> Array:
    """Floats to calculate with: half precision becomes float32, integers become float64.

    JAX without x64 has no float64. Integers that the library's widest float cannot hold are
    refused, since rounding them would change who dominates whom; under `jit`, where values cannot
    be looked at, they are rounded to float32 and this is on the caller.
    """
    if _is_float(xp, x.dtype):
        return xp.astype(x, xp.float32) if _is_half(x.dtype) else x
    if not _is_real(xp, x.dtype):
        raise InputError(f"{name} holds {x.dtype}: real numbers are needed")
    wide = widest_float(xp)
    if xp.isdtype(x.dtype, "integral"):
        digits = 53 if xp.finfo(wide).bits == 64 else 24
        holds = (x <= 2**digits) & (x >= (-(2**digits) if xp.iinfo(x.dtype).min < 0 else 0))
        check_where(xp, holds, x, name, f"has more than the {digits} bits of {wide}")
    return xp.astype(x, wide)


def as_jax(x: Any, name: str) -> jax.Array:
    """The same of anything that holds numbers, lists among it, as an array of JAX."""
    refuse_masked(x, name)
    if x is None:
        raise InputError(f"{name} is None: real numbers are needed")
    try:
        if not isinstance(x, jax.Array) and not any(map(is_traced, jax.tree.leaves(x))):
            x = as_float(np, np.asarray(x), name)  # JAX would cut large whole numbers short
        return as_float(jnp, jnp.asarray(x), name)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # text, ragged rows
        reason = str(error).partition("\n")[0]
        raise InputError(f"{name}: real numbers are needed: {reason}") from None


def as_flags(x: Any, name: str) -> Array:
    """True or false, or 1 or 0, as an array; traced ones are taken as they are."""
    refuse_masked(x, name)
    if any(map(is_traced, jax.tree.leaves(x))):
        return jnp.asarray(x, bool)
    try:
        flags = np.asarray(x)
    except ValueError:
        raise InputError(f"{name} has rows of unequal lengths") from None
    if flags.dtype.kind not in "biu":
        raise InputError(f"{name} holds {flags.dtype}: true or false is needed")
    if not np.isin(flags, (0, 1)).all():
        raise InputError(f"{name} = {shown(x)}: true or false is needed, or 1 or 0")
    return flags.astype(bool)


def answer_dtype(xp: Any, x: Array) -> Any:
    """In which precision answers about `x` are returned: its own, if it has floats."""
    return x.dtype if _is_float(xp, x.dtype) else widest_float(xp)


def widest_float(xp: Any) -> Any:
    """float64 wherever the library has it."""
    return xp.asarray([0.0]).dtype if compat.is_jax_namespace(xp) else xp.float64


# What kind of number a dtype is takes longer to ask than to add up a thousand of them.


@functools.cache
def _is_float(xp: Any, dtype: Any) -> bool:
    return _is_half(dtype) or xp.isdtype(dtype, "real floating")


@functools.cache
def _is_real(xp: Any, dtype: Any) -> bool:
    """Not text, objects, dates or complex numbers."""
    return _is_float(xp, dtype) or xp.isdtype(dtype, ("bool", "integral"))


@functools.cache
def _is_half(dtype: Any) -> bool:
    return str(dtype).split(".")[-1] in ("float16", "bfloat16")


def check_particles(xp: Any, z: Array, name: str, min_ndim: int = 1) -> Array:
    """Particles as floats: at least one on the last axis, all of them finite."""
    if z.ndim < min_ndim:
        axes = "[..., A, N]" if min_ndim == 2 else "[..., N]"
        raise InputError(f"{name} has shape {tuple(z.shape)}: it needs axes {axes}")
    for axis, kind in ((-1, "particle axis (last)"), (-2, "action axis (last but one)"))[:min_ndim]:
        if z.shape[axis] == 0:
            raise InputError(f"{name} has shape {tuple(z.shape)}: the {kind} is empty")
    z = as_float(xp, z, name)
    small = xp.abs(z) <= largest(xp, z.dtype, z.shape[-1])  # NaN is not
    if not is_traced(z) and not bool(xp.all(small)):
        check_where(xp, xp.isfinite(z), z, name, "is not finite")
        check_where(xp, small, z, name, "is too large to be added up")
    return z


@functools.cache
def largest(xp: Any, dtype: Any, count: int) -> float:
    """So many values up to this can be added up, and their sums compared, without overflow.
    Narrower types are added in float64, where they all fit."""
    info = xp.finfo(dtype)
    return float(info.max) / (4 * count if info.bits == 64 else 1)


def check_weights(xp: Any, weights: Array, z: Array, name: str) -> Array:
    """Weights that broadcast against the particles, are not negative and sum to one."""
    shape = broadcast(z.shape, weights.shape, "the particles", name)
    if weights.ndim == 0 or weights.shape[-1] != z.shape[-1] or shape != tuple(z.shape):
        raise InputError(
            f"{name} has shape {tuple(weights.shape)}: it must match particles {tuple(z.shape)}"
        )
    allowed = {"float64": 1e-8, "bfloat16": 1e-2, "float16": 1e-3}
    near = allowed.get(str(weights.dtype).split(".")[-1], 1e-4)
    weights = as_float(xp, weights, name)
    check_where(xp, xp.isfinite(weights), weights, name, "is not finite")
    check_where(xp, weights >= 0, weights, name, "is negative")
    check_where(xp, weights <= 1 + near, weights, name, "is more than one")
    if not is_traced(weights):
        summed = total(xp, weights)
        check_where(xp, xp.abs(summed - 1) <= near, summed, f"the sum of {name}", "is not one")
    return xp.broadcast_to(weights, z.shape)


def check_level(value: float, name: str) -> None:
    """A risk level in (0, 1]; traced levels cannot be looked at."""
    if not is_traced(value) and not 0 < real(value) <= 1:
        raise InputError(f"{name} = {shown(value)}: it must lie in (0, 1]")


def check_tolerance(value: float, name: str = "tolerance") -> None:
    if not is_traced(value) and not 0 <= real(value) < math.inf:
        raise InputError(f"{name} = {shown(value)}: it must be a finite number, not negative")


def broadcast(x: tuple[int, ...], y: tuple[int, ...], x_name: str, y_name: str) -> tuple[int, ...]:
    """The common shape of two, or an error that names both."""
    out: list[int] = []
    for i in range(1, max(len(x), len(y)) + 1):
        a = x[-i] if i <= len(x) else 1
        b = y[-i] if i <= len(y) else 1
        if a != b and 1 not in (a, b):
            raise InputError(
                f"shape mismatch: {x_name} {tuple(x)} and {y_name} {tuple(y)} do not broadcast"
            )
        out.append(b if a == 1 else a)
    return tuple(reversed(out))


def check_where(xp: Any, ok: Array, values: Array, name: str, complaint: str) -> None:
    """Refuse values that are not `ok`, where they can be looked at; names the first of them."""
    if is_traced(ok) or bool(xp.all(ok)):
        return
    places = zip(*xp.nonzero(xp.logical_not(ok)), strict=True) if ok.ndim else [()]
    bad = [tuple(map(int, place)) for place in places]
    place = f"[{', '.join(map(str, bad[0]))}]" if bad[0] else ""
    more = f" (and {len(bad) - 1} more places)" if len(bad) > 1 else ""
    raise InputError(f"{name}{place} = {float(values[bad[0]])} {complaint}{more}")


def sort(xp: Any, x: Array) -> Array:
    """Ascending along the last axis."""
    return network_sort(x) if compat.is_jax_array(x) else xp.sort(x, axis=-1)


def argsort(xp: Any, x: Array) -> Array:
    """Stable order along the last axis."""
    return xp.argsort(x, axis=-1, stable=True)


def take(xp: Any, x: Array, indices: Array) -> Array:
    """`x[..., indices]` row by row, both broadcast to common leading axes."""
    if indices.ndim == 1:
        return xp.take(x, indices, axis=-1)
    lead = broadcast(x.shape[:-1], indices.shape[:-1], "values", "indices")
    x = xp.broadcast_to(x, (*lead, x.shape[-1]))
    indices = xp.broadcast_to(indices, (*lead, indices.shape[-1]))
    return xp.take_along_axis(x, indices, axis=-1)


def cumsum(x: Array) -> Array:
    """Cumulative sum along the last axis; in JAX by doubling shifts, see `_prefix_sum`."""
    return _prefix_sum(x) if compat.is_jax_array(x) else x.cumsum(-1)


def partial_sums(xp: Any, x: Array) -> tuple[Array, Array]:
    """Cumulative sums along the last axis as `high + low`: twice the digits of `x`.

    `low` adds up what each addition rounded away (Knuth's two-sum), so that a million terms are
    summed as exactly as a few and a difference of sums has the right sign.
    """
    high = cumsum(x)
    before = xp.concat([xp.zeros_like(high[..., :1]), high[..., :-1]], axis=-1)
    return high, cumsum(lost(before, x, high))


def lost(a: Array, b: Array, rounded: Array) -> Array:
    """`a + b - rounded`, exactly where `rounded` is the rounded sum."""
    part = rounded - a
    return (a - (rounded - part)) + (b - part)


def divide(x: Array, n: Array | int) -> Array:
    """`x / n`, correctly rounded. Compiled JAX multiplies by a rounded `1 / n` if it sees the n,
    which for an array of constants depends on the batch around it."""
    return x / jnp.where(x == x, jnp.asarray(n, x.dtype), 1) if compat.is_jax_array(x) else x / n


def power_below(x: jax.Array) -> jax.Array:
    """The largest power of two not above `x > 0`: its bits without the mantissa. 0 below the
    smallest normal number. (`jnp.frexp` takes a hundred operations for it, and as long to compile.)
    """
    wide = x.dtype == jnp.float64
    bits = jax.lax.bitcast_convert_type(x, jnp.uint64 if wide else jnp.uint32)
    kept = bits & (0x7FF0000000000000 if wide else 0x7F800000)
    return jax.lax.bitcast_convert_type(kept, x.dtype)


def total(xp: Any, x: Array) -> Array:
    """Sum along the last axis by halves: XLA would add a long row up from left to right."""
    return pairwise_sum(x) if compat.is_jax_array(x) else xp.sum(x, axis=-1)


@jax.jit
def _prefix_sum(x: Array) -> Array:
    """Add the row to itself shifted by 1, 2, 4, ...: log N vectorised passes.

    Three times faster than XLA's cumulative sum on the rows met here, faster than a product with
    a triangle of ones, and unlike that product bit for bit the same whatever the batch width.
    """
    shift = 1
    while shift < x.shape[-1]:
        x = jnp.concatenate([x[..., :shift], x[..., shift:] + x[..., :-shift]], axis=-1)
        x = jax.lax.optimization_barrier(x)  # fused passes would each repeat the ones before
        shift *= 2
    return x


def pairwise_sum(x: Array) -> Array:
    """Sum of a JAX array along the last axis by halving.

    Elementwise additions only: XLA may order the terms of a reduction differently when the batch
    around it changes, and a trial must give the same bits alone and in company.
    """
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        folded = x[..., :half] + x[..., half : 2 * half]
        x = jnp.concatenate([folded, x[..., 2 * half :]], axis=-1)
    return x[..., 0]


def count_below(xp: Any, rows: Array, levels: Array) -> Array:
    """How many entries of each ascending row `[..., N]` lie below each level `[..., T]`."""
    if rows.ndim == 1 and not is_traced(rows) and not is_traced(levels):
        flat = xp.reshape(levels, (-1,))
        return xp.reshape(xp.searchsorted(rows, flat, side="left"), levels.shape)
    below = rows[..., None, :] < levels[..., :, None]
    return xp.sum(xp.astype(below, xp.int32), axis=-1)
