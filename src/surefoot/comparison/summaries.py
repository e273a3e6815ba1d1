"""One column on its own: moments, tails, and a year of it where its rows have dates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.dates import Dates, rows_per_year
from surefoot.core.particles import cumulative_quantile, quantile
from surefoot.errors import InputError

Array = NDArray[np.float64]

LEVELS = np.arange(1, 101) / 100
"""Where the curves are kept: every hundredth share of the worst outcomes."""


@dataclass(frozen=True)
class AnnualMeasures:
    """What a year of the returns looks like; returns are fractions (0.01 is one percent).

    A measure is None where it does not exist: nothing ever varied or was lost, or a return of -1
    or less ended everything.
    """

    rows_per_year: float
    growth: float | None
    """Compound: `(product of 1 + r) ** (rows per year / n) - 1`."""
    volatility: float
    """Deviation times the root of the rows per year."""
    sharpe: float | None
    """Mean over deviation, times the root of the rows per year; no riskless rate is taken off."""
    sortino: float | None
    """The same with `sqrt(mean(min(r, 0) ** 2))` for the deviation."""
    max_drawdown: float | None
    """The largest loss of the compound wealth from an earlier height, as a share of it."""


@dataclass(frozen=True)
class Summary:
    """One column on its own."""

    name: str
    n: int
    mean: float
    deviation: float
    """Sample standard deviation (n - 1 in the denominator)."""
    worst: float
    median: float
    best: float
    quantile: Array = field(repr=False)
    """`F^-1` at `LEVELS`."""
    cumulative_quantile: Array = field(repr=False)
    """`F^-2` at `LEVELS`."""
    cvar_curve: Array = field(repr=False)
    """Mean of the worst share, at `LEVELS`; the last is the mean."""
    annual: AnnualMeasures | None = None
    """Where the rows have dates."""

    def cvar(self, share: float) -> float:
        """Mean of the worst `share`, one of `LEVELS`."""
        at = round(share * 100)
        if not 1 <= at <= 100 or abs(share * 100 - at) > 1e-9:
            raise InputError(f"share = {share}: the curve is kept at 0.01, 0.02, ..., 1")
        return float(self.cvar_curve[at - 1])


def summary_of(name: str, returns: Array, dates: Dates | None = None) -> Summary:
    """The summary of returns in the order of their rows."""
    z = np.sort(returns)
    curve = np.asarray(cumulative_quantile(z, LEVELS, assume_sorted=True))
    rate = None if dates is None else rows_per_year(dates)
    return Summary(
        name,
        n=len(z),
        mean=float(np.mean(z)),
        deviation=_deviation(z),
        worst=float(z[0]),
        median=float(np.median(z)),
        best=float(z[-1]),
        quantile=np.asarray(quantile(z, LEVELS, assume_sorted=True)),
        cumulative_quantile=curve,
        cvar_curve=curve / LEVELS,
        annual=None if rate is None else annual_measures(returns, rate),
    )


def _deviation(returns: Array) -> float:
    """Exactly 0 where all are the same, whatever their mean is rounded to."""
    return 0.0 if returns.min() == returns.max() else float(np.std(returns, ddof=1))


def annual_measures(returns: Array, rows: float) -> AnnualMeasures:
    """Of returns in the order of their rows, so many of which make a year."""
    mean, deviation = float(np.mean(returns)), _deviation(returns)
    downside = float(np.sqrt(np.mean(np.minimum(returns, 0.0) ** 2)))
    growth = drawdown = None
    if returns.min() > -1:
        logs = np.concatenate([[0.0], np.cumsum(np.log1p(returns))])  # of the wealth
        with np.errstate(over="ignore"):
            growth = float(np.expm1(logs[-1] * rows / len(returns)))
        drawdown = float(-np.expm1(np.min(logs - np.maximum.accumulate(logs))))
    root = float(np.sqrt(rows))
    return AnnualMeasures(
        rows_per_year=rows,
        growth=growth if growth is not None and np.isfinite(growth) else None,
        volatility=deviation * root,
        sharpe=mean / deviation * root if deviation > 0 else None,
        sortino=mean / downside * root if downside > 0 else None,
        max_drawdown=drawdown,
    )
