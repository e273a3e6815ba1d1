"""Particles in order: one distribution sorted and checked, two of them on one common grid.

The one way in for everything that reads quantiles: `particles.py` and `dominance.py`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from surefoot.core import array
from surefoot.core.array import Array

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
    """Check, sort and accumulate."""
    xp = array.namespace(**{name: z, f"{name}_weights": weights})
    return xp, _sorted(xp, z, weights, assume_sorted, name, min_ndim)


def _sorted(
    xp: Any, z: Array, weights: Array | None, assume_sorted: bool, name: str, min_ndim: int = 1
) -> Sorted:
    dtype = array.answer_dtype(xp, z)
    z = array.check_particles(xp, z, name, min_ndim)
    if weights is None:
        return Sorted(z if assume_sorted else array.sort(xp, z), None, None, dtype)
    weights = xp.astype(array.check_weights(xp, weights, z, f"{name}_weights"), z.dtype)
    if not assume_sorted:
        order = array.argsort(xp, z)
        z, weights = array.take(xp, z, order), array.take(xp, weights, order)
    high, low = array.partial_sums(xp, weights)
    right = high + low
    # What rounding left out of the sum belongs to the last particle.
    right = xp.concat([right[..., :-1], xp.ones_like(right[..., -1:])], axis=-1)
    return Sorted(z, weights, right, dtype)


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
    sx = _sorted(xp, x, x_weights, assume_sorted, "x")
    sy = _sorted(xp, y, y_weights, assume_sorted, "y")
    dtype = xp.result_type(sx.z, sy.z)
    answers = sx.dtype if sx.dtype == sy.dtype else dtype
    z_x, z_y = (xp.astype(s.z, dtype, copy=False) for s in (sx, sy))
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
