"""Simultaneous confidence bands of the difference of two cumulative quantile functions `F^-2`.

With probability `1 - level` the true `F_x^-2 - F_y^-2` lies in the band at all its levels at once:
dominance at the second order needs it to be nowhere below 0. The band is of those `LEVELS` below
which each sample has 20 values, as no bootstrap knows more of its smallest ones. The half-width
at a level is its bootstrapped deviation times one factor for all levels, the quantile of the
largest studentised deviation (sup-t).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.bootstrap import TestSettings, checked_pair, draws_of, stretch_of
from surefoot.comparison.resampling import Weights, WeightStore
from surefoot.comparison.summaries import LEVELS

Array = NDArray[np.float64]
_CHUNK = 1 << 22
_LEAST = 20


@dataclass(frozen=True)
class Band:
    """`F_x^-2 - F_y^-2` at `LEVELS`, and where it lies beyond the samples (NaN: not known)."""

    difference: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    level: float


def confidence_band(
    x: Array,
    y: Array,
    *,
    level: float = 0.05,
    dependence: str | int = "auto",
    **settings: Any,
) -> Band:
    """The band of x over y; `settings` are those of `TestSettings`."""
    chosen = TestSettings(**settings)
    x, y, lengths = checked_pair(x, y, dependence, chosen)
    draws = draws_of(len(x), len(y), lengths, chosen)
    seen = _curves(x, None)[0] - _curves(y, None)[0]
    parts = [
        _curves(x, of_x) - _curves(y, of_y)
        for of_x, of_y in WeightStore(0).together(draws, max(1, _CHUNK // max(len(x), len(y))))
    ]
    moved = np.concatenate(parts) - seen
    deviation = np.sqrt(np.mean(moved**2, axis=0))
    known = LEVELS * min(len(x), len(y)) >= min(_LEAST, 0.5 * min(len(x), len(y)))
    ratio = np.abs(moved) / np.where(known & (deviation > 0), deviation, np.inf)
    factor = stretch_of(draws) * float(np.quantile(ratio.max(axis=1), 1 - level, method="higher"))
    half = np.where(known, factor * deviation, np.nan)
    return Band(seen, seen - half, seen + half, level)


def _curves(x: Array, weights: Weights | None) -> Array:
    """`F^-2` at `LEVELS` of each resample, `[resamples, levels]`; of the sample without weights."""
    order = np.argsort(x, kind="stable")
    z, n = x[order], len(x)
    counts = np.ones((1, n)) if weights is None else weights[order].T + 1.0
    share, area = np.cumsum(counts, axis=1), np.cumsum(counts * z, axis=1)
    wanted = LEVELS * n
    out = np.empty((len(counts), len(LEVELS)))
    for row in range(len(counts)):
        at = np.minimum(np.searchsorted(share[row], wanted - 1e-9 * n), n - 1)
        out[row] = (area[row, at] - (share[row, at] - wanted) * z[at]) / n
    return out
