"""Do the rows of a column depend on those before, and how long must the blocks be that keep it?

A bootstrap that draws single rows takes them to be independent. Returns are often not: their values
may be correlated over time, or, where volatility comes in clusters, their squares. Then blocks of
consecutive rows are drawn, which keep the dependence within them.

`block_length` is the automatic choice of Politis and White (Econometric Reviews 23, 2004) with the
correction of Patton, Politis and White (28, 2009). It makes the estimated variance of a mean as
precise as possible. A test needs something else: that its level holds, so less bias and longer
blocks (Sun, Phillips and Jin, Econometrica 76, 2008). `look` takes 2.5 times that, and `stretch`
accounts for what a variance from so few blocks lacks. Both were chosen on simulated series;
`results/size-and-power` is the judgement, on other seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefoot.errors import InputError, is_whole, shown

Array = NDArray[np.float64]
Blocks = Literal["circular", "stationary"]
BLOCKS = ("circular", "stationary")
_ALERT = 0.025  # of each of a column's two tests, so 0.05 for both
_LONGER = 2.5
_CRITICAL = {
    0.05: (1.6449, 2.1859, 0.3142, -0.3427),
    0.01: (2.3263, 4.1618, 0.5368, -0.9060),
}


@dataclass(frozen=True)
class Memory:
    """What was seen of one column, and the block length that follows."""

    values_p: float | None
    """Of H0 "the values are not correlated over time"; None where nobody looked."""
    squares_p: float | None
    """Of H0 "the squared deviations from the mean are not"."""
    length: int
    """Rows a block should have; 1 where neither is rejected."""

    @property
    def seen(self) -> str:
        """In words."""
        parts = [
            name
            for name, p in (("values", self.values_p), ("squares", self.squares_p))
            if p is not None and p <= _ALERT
        ]
        return f"serial correlation of the {' and of the '.join(parts)}" if parts else "none"


def look(x: Array, blocks: Blocks = "circular") -> Memory:
    """Test a column for serial correlation, of its values and of its squares."""
    largest = float(np.max(np.abs(x)))
    x = x / largest if largest > 0 else x  # correlation has no unit, and squares may overflow
    squares = (x - x.mean()) ** 2
    p_values = ljung_box(x), ljung_box(squares)
    lengths = [
        _LONGER * block_length(z, blocks)
        for z, p in zip((x, squares), p_values, strict=True)
        if p <= _ALERT
    ]
    longest = min(max(lengths, default=1.0), len(x) / 3)
    return Memory(p_values[0], p_values[1], max(1, round(longest)))


def memory_of(x: Array, dependence: str | int, blocks: Blocks = "circular") -> Memory:
    """As `dependence` has it: "auto" looks, "none" takes rows to be independent, or a length."""
    if isinstance(dependence, str) and dependence in ("auto", "none"):
        return look(x, blocks) if dependence == "auto" else Memory(None, None, 1)
    if not is_whole(dependence) or not 1 <= int(dependence) <= len(x) / 2:
        raise InputError(
            f'dependence = {shown(dependence)}: "auto", "none", or the rows of a block, at most '
            f"half of the {len(x)} there are"
        )
    return Memory(None, None, int(dependence))


def autocovariances(x: Array, lags: int) -> Array:
    """`R(0), ..., R(lags)`, each a sum over the pairs there are, divided by n."""
    n = len(x)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(x - x.mean(), size)
    return np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[: lags + 1] / n


def ljung_box(x: Array, lags: int | None = None) -> float:
    """P-value of H0 "no serial correlation at lags 1 to `lags`" (10, fewer in short series)."""
    n = len(x)
    lags = min(10, n // 5) if lags is None else lags
    covariance = autocovariances(x, lags)
    if lags < 1 or covariance[0] <= 1e-24 * max(float(np.max(x * x)), 1e-300):
        return 1.0  # too short to see anything, or constant
    rho = covariance[1:] / covariance[0]
    statistic = n * (n + 2) * np.sum(rho**2 / (n - np.arange(1, lags + 1)))
    return float(stats.chi2.sf(statistic, lags))


def block_length(x: Array, blocks: Blocks = "circular") -> float:
    """The block length of Politis and White for the mean of `x`; not a whole number."""
    n = len(x)
    run = max(5, int(np.log10(n)))
    most = min(int(np.ceil(np.sqrt(n))) + run, n - 1)
    covariance = autocovariances(x, most)
    if covariance[0] <= 0:
        return 1.0
    rho = np.abs(covariance / covariance[0])
    small = rho < 2 * np.sqrt(np.log10(n) / n)
    # The first lag from which on `run` correlations are small, as all implementations count it.
    quiet = (lag for lag in range(1, most - run + 2) if small[lag : lag + run].all())
    window = min(2 * next(quiet, most), most)
    lag = np.arange(1, window + 1)
    flat_top = np.minimum(1.0, 2 * (1 - lag / window))
    weighted = 2 * flat_top * covariance[1 : window + 1]
    spectrum = covariance[0] + weighted.sum()
    variance = (2.0 if blocks == "stationary" else 4 / 3) * spectrum**2
    if variance <= 0:
        return 1.0
    length = (2 * np.sum(lag * weighted) ** 2 / variance * n) ** (1 / 3)
    return float(min(length, np.ceil(min(3 * np.sqrt(n), n / 3))))


def stretch(length: int, n: int, blocks: Blocks = "circular", level: float = 0.05) -> float:
    """By how much a process resampled in blocks is too narrow at a level, 0.05 or 0.01.

    A variance from n / length blocks is biased downwards and noisy. Kiefer and Vogelsang
    (Econometric Theory 21, 2005) give the critical value of a t ratio whose variance has the
    triangular (Bartlett) weights that blocks imply, by `b = length / n`. The stationary bootstrap's
    estimate is one and a half times as variable.
    """
    if length <= 1:
        return 1.0
    b = min(1.0, (1.5 if blocks == "stationary" else 1.0) * length / n)
    normal, *powers = _CRITICAL[level]
    return 1 + sum(c * b**k for k, c in enumerate(powers, start=1)) / normal
