"""Prices: noticed where returns were asked for, and turned into returns on request.

A price is positive and has no level it comes back to. The second is what the test of Dickey and
Fuller looks for: in

    d log p_t = c + g log p_(t-1) + sum_k b_k d log p_(t-k) + e_t

a unit root is g = 0, and t(g) is compared with MacKinnon's critical values. The number of lags
minimises the Bayesian criterion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST = 20  # values below which nothing can be said
MOST = 500  # values that are looked at: the last ones, more than enough
SMALLEST_ROOT = 0.5  # of a price; at few values the test alone keeps too many returns for prices
# MacKinnon (2010), table 2, constant and no trend, level 0.01: in powers of 1 / n
CRITICAL = (-3.43035, -6.5393, -16.786, -79.433)


@dataclass(frozen=True)
class UnitRoot:
    """The augmented Dickey-Fuller test, with a constant."""

    statistic: float
    """t(g); far below zero speaks against a unit root."""
    root: float
    """1 + g: near 1 for prices, near 0 for what has no memory."""
    lags: int
    n: int
    """Rows of the regression."""

    @property
    def critical(self) -> float:
        """Where it is rejected at level 0.01."""
        return float(np.polynomial.Polynomial(CRITICAL)(1 / self.n))


def unit_root(x: Array) -> UnitRoot | None:
    """The test of a series; None where it does not vary or is too short for a regression."""
    n = len(x)
    # Schwert's rule, but a tenth of a short series at most: each lag costs two of its rows.
    most = min(int(np.ceil(12 * (n / 100) ** 0.25)), n // 10)
    if n < 6 or np.ptp(x) == 0:
        return None
    x = (x - x.mean()) / np.ptp(x)  # changes nothing, and keeps the digits of small changes
    y, design = _regression(x, most)
    # Models with fewer lags are the first columns of one design: one decomposition serves all.
    q, _ = np.linalg.qr(design)
    left = y @ y - np.cumsum((q.T @ y) ** 2)[1:]  # residual sums of squares with 0, 1, ... lags
    rows = len(y)
    with np.errstate(divide="ignore"):
        loss = rows * np.log(np.maximum(left, 0) / rows) + np.log(rows) * np.arange(2, most + 3)
    lags = int(np.argmin(loss))
    y, design = _regression(x, lags)
    inverse = np.linalg.pinv(design.T @ design)
    beta = inverse @ (design.T @ y)
    error = y - design @ beta
    variance = float(error @ error) / max(len(y) - lags - 2, 1) * inverse[1, 1]
    exact = variance <= 1e-20  # a line: its steps are all the same
    statistic = 0.0 if exact else float(beta[1] / np.sqrt(variance))
    return UnitRoot(statistic, 1.0 + float(beta[1]), lags, len(y))


def _regression(x: Array, lags: int) -> tuple[Array, Array]:
    steps = np.diff(x)
    y = steps[lags:]
    past = [steps[lags - k : len(steps) - k] for k in range(1, lags + 1)]
    return y, np.column_stack([np.ones_like(y), x[lags:-1], *past])


def looks_like_prices(x: Array) -> bool:
    """Whether a series, without gaps, is positive and has a unit root, as far as one can tell."""
    if len(x) < FEWEST or not (x > 0).all():
        return False
    test = unit_root(np.log(x[-MOST:]))
    return test is not None and test.statistic > test.critical and test.root > SMALLEST_ROOT


def returns_of(prices: Array) -> Array:
    """`p_t / p_(t-1) - 1`, NaN where one of the two is; the first row has none."""
    return prices[1:] / prices[:-1] - 1.0
