"""How sure an estimate is: standard errors of the differences between means.

Particles say what the return may be, not how well that is known. Two kinds of evidence say it:

- counts: `n` observations stand behind an action's particles, or behind a mean whose own standard
  error is given (`Known`);
- an ensemble `[E, A, N]` of estimates, each from a resample of the data: its spread.

Standard errors from few observations are themselves uncertain. `student` says how many of them
make up for it: the quantile of Student's distribution at the level of `c` normal deviations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, stdtrit

from surefoot.core import array
from surefoot.core.array import Array, pairwise_sum
from surefoot.core.particles import centred
from surefoot.errors import InputError, shown

MOST = (
    128  # degrees of freedom in the table; beyond, Student's quantile is within 2 % of c at c = 3
)


class Known(NamedTuple):
    """Means known better, or worse, than `n` independent observations of the return tell."""

    n: Array  # [A] observations
    error: Array  # [A] standard error of each mean


class Evidence(NamedTuple):
    """What is known of the differences between means."""

    error: jax.Array  # [A] standard error of the gap to the best mean; infinite if unknown
    freedom: jax.Array  # [A] its degrees of freedom


def from_counts(z: jax.Array, counts: jax.Array | Known, best: jax.Array) -> Evidence:
    """From particles `z[A, N]` that rest on `n[A]` observations; Welch's degrees of freedom."""
    n = counts.n if isinstance(counts, Known) else counts
    known = n > 1
    others = jnp.where(known, n - 1, 1).astype(z.dtype)
    if isinstance(counts, Known):
        middle, unit = _in_units(counts.error.astype(z.dtype)[:, None])
        square = _sum_of_squares(middle)
    else:
        middle, unit = _in_units(centred(z))
        square = array.divide(array.divide(_sum_of_squares(middle), z.shape[-1]), others)
    # In the larger unit of each pair: a third action plays no part.
    larger = jnp.maximum(unit, unit[best])
    own, other = (x / jnp.where(larger > 0, larger, 1.0) for x in (unit, unit[best]))
    share, share_best = square * (own * own), square[best] * (other * other)
    both = share + share_best
    wear = share * share / others + share_best * share_best / others[best]
    freedom = jnp.where(both > 0, both * both / wear, MOST)
    fewest = jnp.minimum(others, others[best])  # rounding must not go below it
    known = known & known[best]
    freedom = jnp.where(known, jnp.maximum(freedom, fewest), 1.0)
    return Evidence(jnp.where(known, larger * jnp.sqrt(both), jnp.inf), freedom)


def from_ensemble(z: jax.Array, best: jax.Array) -> Evidence:
    """From `z[E, A, N]`, one estimate for each resample of the data."""
    members, actions, size = z.shape
    if members < 2:
        return Evidence(jnp.full(actions, jnp.inf, z.dtype), jnp.ones(actions, z.dtype))
    means = array.divide(pairwise_sum(z), size).T  # [A, E]
    gap = means[best][None] - means
    gap = gap - array.divide(pairwise_sum(gap), members)[:, None]
    gap, unit = _in_units(gap)
    error = unit * jnp.sqrt(array.divide(_sum_of_squares(gap), members - 1))
    return Evidence(error, jnp.full(actions, members - 1, z.dtype))


def _in_units(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows of `x` in units of a power of two near their largest entry (0 for rows of zeros), so
    that squares neither vanish nor overflow. Such a division is exact: rewards of another scale
    change no bit of the answer."""
    largest = jnp.max(jnp.where(jnp.isfinite(x), jnp.abs(x), 0.0), axis=-1)
    unit = array.power_below(largest)
    return x / jnp.where(unit > 0, unit, 1.0)[:, None], unit


def _sum_of_squares(x: jax.Array) -> jax.Array:
    # The barrier keeps the squares out of fused multiply-adds, which a batch could change.
    return pairwise_sum(jax.lax.optimization_barrier(x * x))


def student(deviations: float, freedom: jax.Array) -> jax.Array:
    """Standard errors that stand for `deviations` of a normal, at these degrees of freedom."""
    table = jnp.asarray(_quantiles(deviations), freedom.dtype)
    return table[jnp.clip(freedom.astype(jnp.int32), 1, MOST) - 1]


@lru_cache(maxsize=32)
def _quantiles(deviations: float) -> np.ndarray:
    return stdtrit(np.arange(1, MOST + 1), ndtr(deviations))


def average(z: jax.Array) -> jax.Array:
    """The ensemble `[E, A, N]`, ascending, as one estimate: the mean of its quantile functions."""
    return array.divide(pairwise_sum(jnp.moveaxis(z, 0, -1)), z.shape[0])


def as_counts(n: Any, shape: tuple[int, ...]) -> jax.Array | Known:
    """A count for each action, as whole as it came, and an error for each if there are errors."""
    if isinstance(n, Known):
        counts = as_counts(n.n, shape)
        assert not isinstance(counts, Known)
        error = _numbers(n.error, "error", shape, "error")
        _refuse(error, error >= 0, "error", "errors must be numbers that are not negative")
        return Known(counts, error)
    counts = _numbers(n, "n", shape, "count")
    fine = (counts >= 0) & (counts < jnp.inf)
    _refuse(counts, fine, "n", "counts must be finite and not negative")
    return counts


def _numbers(x: Any, name: str, shape: tuple[int, ...], kind: str) -> jax.Array:
    if not isinstance(x, jax.Array):
        x = array.as_jax(x, name)
    if not jnp.issubdtype(x.dtype, jnp.integer):
        x = array.as_float(jnp, x, name)
    if x.shape != shape:
        raise InputError(
            f"{name} has shape {x.shape}: it takes one {kind} for each of {shape[-1]} actions"
        )
    return x


def _refuse(x: jax.Array, fine: jax.Array, name: str, wanted: str) -> None:
    if not array.is_traced(fine) and not bool(fine.all()):  # nor NaN
        raise InputError(f"{name} = {shown(x.tolist())}: {wanted}")
