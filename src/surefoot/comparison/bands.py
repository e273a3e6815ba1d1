"""Simultaneous confidence bands of the difference of two curves of cumulative quantiles.

`F^-2(tau) = max_t [tau t - E(t - Z)_+]`, and the maximum is at the quantile of tau: to first order
a resample changes `F^-2(tau)` by minus its change of `E(q_tau - Z)_+`, with `q_tau` left as it is.
So all resamples at all levels are one product of matrices. With `s(tau)` their deviation, the band

    F^-2_x - F^-2_y  +-  c s,    c the (1 - level) quantile of  max_tau |change(tau)| / s(tau),

holds at all levels at once with confidence 1 - level. Below the levels of a few values nobody knows
how a tail goes on: the band leaves them out, as the test of non-dominance does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefoot.comparison.memory import stretch
from surefoot.comparison.resampling import Draws, Resampling
from surefoot.comparison.summaries import LEVELS
from surefoot.core.particles import cumulative_quantile, quantile

Array = NDArray[np.float64]
_CHUNK = 1 << 22  # weights in flight


@dataclass(frozen=True)
class DifferenceBand:
    """`F^-2` of a less that of b at some levels, with a band for all of them at once."""

    a: str
    b: str
    level: float
    """The band holds at all levels together with confidence 1 - level, for this pair alone."""
    tau: Array = field(repr=False)
    difference: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)


def difference_band(
    a: str, b: str, x: Array, y: Array, draws: Draws, level: float = 0.05
) -> DifferenceBand:
    """The band of two columns; `draws` are those of their tests."""
    few = min(len(x), len(y))
    lowest = lowest_level(few)
    tau = LEVELS[lowest - 1e-12 <= LEVELS]
    curves = [np.asarray(cumulative_quantile(np.sort(z), tau, assume_sorted=True)) for z in (x, y)]
    difference = curves[0] - curves[1]
    if draws[0] == draws[1]:  # rows belong together, and so do their changes
        change = _changes(_shortfalls(y, tau) - _shortfalls(x, tau), draws[0])
    else:
        change = _changes(-_shortfalls(x, tau), draws[0]) + _changes(_shortfalls(y, tau), draws[1])
    deviation = np.sqrt(np.mean(change**2, axis=1))
    # Where a difference never changes it is known; a sum of equal numbers may still round.
    known = deviation <= 1e-12 * max(np.ptp(x), np.ptp(y), 1e-300)
    ratio = np.abs(change) / np.where(known, np.inf, deviation)[:, None]
    # The deviation at the lowest level rests on the few values below it: a t quantile for a normal.
    wider = stats.t.ppf(1 - level / 2, max(1.0, lowest * few - 1)) / stats.norm.ppf(1 - level / 2)
    wider *= max(stretch(draw.length, draw.n, draw.blocks) for draw in draws)
    rank = int(np.ceil((1 - level) * (1 + change.shape[1])))
    suprema = np.sort(ratio.max(axis=0))
    half = wider * suprema[min(rank, len(suprema)) - 1] * np.where(known, 0.0, deviation)
    return DifferenceBand(a, b, level, tau, difference, difference - half, difference + half)


def lowest_level(rows: int) -> float:
    """Where a band of so many rows begins: 20 values, or 5 % of them, lie below; half at most."""
    return min(0.5, max(0.05, 20 / rows))


def _shortfalls(z: Array, tau: Array) -> Array:
    """`(q_tau - z)_+`, `[levels, rows]`."""
    q = np.asarray(quantile(np.sort(z), tau, assume_sorted=True))
    return np.maximum(q[:, None] - z, 0.0)


def _changes(values: Array, draw: Resampling) -> Array:
    """What each resample does to the means of `values[levels, rows]`: `[levels, resamples]`."""
    chunks = draw.chunks(max(1, _CHUNK // draw.n))
    return np.concatenate([values @ weights.astype(np.float64) for weights in chunks], 1) / draw.n
