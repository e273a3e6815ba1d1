"""The statistics of every experiment: intervals, differences, equivalence, many tests at once.

| question                                                   | function              |
|------------------------------------------------------------|-----------------------|
| where is the mean of independent trials?                   | `mean_interval`       |
| how often was it so?                                       | `share_interval`      |
| where is the mean of shares, each of an independent trial? | `mean_share_interval` |
| do two methods differ, run on the same trials?             | `paired_difference`   |
| do two methods differ, run on independent trials?          | `welch`               |
| are two methods the same for all practical purposes?       | `equivalence`         |
| several of these tests make one claim                      | `holm`                |

A large p-value of a difference test is no evidence of equality; only `equivalence` is. Intervals
by resampling are in `core.bootstrap`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, inf, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import InputError, between_0_and_1, real

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A point estimate with its confidence interval; arrays when there are several."""

    mean: Any
    """The estimate: a mean, a difference of means, or an interquartile mean."""
    low: Any
    high: Any
    n: int
    """How many independent values it rests on."""
    level: float = 0.95

    @property
    def half_width(self) -> Any:
        return (self.high - self.low) / 2

    def __getitem__(self, index: Any) -> Interval:
        """One of several: `mean_interval(returns)[-1]` is that of the last episode."""
        mean, low, high = (
            scalar(np.asarray(part)[index]) for part in (self.mean, self.low, self.high)
        )
        return Interval(mean, low, high, self.n, self.level)

    def overlaps(self, other: Interval) -> Any:
        return (self.low <= other.high) & (other.low <= self.high)

    def as_dict(self) -> dict[str, Any]:
        names = ("mean", "low", "high", "n", "level")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Interval:
        try:
            mean, low, high = (float(values[name]) for name in ("mean", "low", "high"))
            return cls(mean, low, high, int(values["n"]), float(values.get("level", 0.95)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"not an interval: {values!r}") from error

    def __str__(self) -> str:
        if np.ndim(self.mean):
            return f"{np.size(self.mean)} intervals at level {self.level:g}, n = {self.n}"
        mean, low, high = _format_together(float(self.mean), float(self.low), float(self.high))
        return f"{mean} [{low}, {high}]"


def _format_together(mean: float, low: float, high: float) -> list[str]:
    """As many decimals as the interval deserves: its half-width shows, and three digits do."""
    scale, half = max(abs(low), abs(high), abs(mean)), (high - low) / 2
    if not isfinite(scale) or scale == 0:
        return [f"{value:g}" for value in (mean, low, high)]
    first = floor(log10(scale))  # position of the leading digit
    wanted = max(2 - first, -floor(log10(half)) if half > 0 else 0)
    if -4 <= first <= 6:
        return [f"{value:.{min(max(wanted, 0), 12)}f}" for value in (mean, low, high)]
    return [f"{value:.{min(max(wanted + first, 2), 12)}e}" for value in (mean, low, high)]


@dataclass(frozen=True)
class Difference:
    """The difference of two means and the tests that it is zero."""

    interval: Interval
    t: float
    df: float
    p_value: float
    """Two-sided Student (paired) or Welch (independent) test."""
    wilcoxon_p_value: float | None = None
    """Two-sided signed-rank test, paired data only: does not need normal differences."""


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests that the difference of two means lies within plus/minus `margin`."""

    interval: Interval
    """Of the difference, at level 1 - 2 alpha: inside the margin exactly if `equivalent`."""
    margin: float
    p_value: float
    """The larger of the two tests' p-values."""
    equivalent: bool
    p_below: float
    """Of x lying below y by the margin or more: if it is small, x is not worse (non-inferior)."""
    p_above: float
    """Of x lying above y by the margin or more."""


def mean_interval(x: ArrayLike, level: float = 0.95, axis: int = 0) -> Interval:
    """Student t interval of the mean of independent values along `axis`.

    Use it for trials: `x[trials]` gives one interval, `x[trials, episodes]` one per episode
    (each holds on its own, not all at once). Needs roughly normal means: with 50 trials that
    is nearly anything; for few runs of heavy-tailed scores take `iqm_interval`.
    """
    values = checked_values(x, "x", axis=axis, at_least=2)
    mean, variance, n = moments(values, axis)
    half = _t_quantile(level, n - 1) * np.sqrt(variance / n)
    return Interval(scalar(mean), scalar(mean - half), scalar(mean + half), n, level)


def share_interval(hits: ArrayLike, level: float = 0.95) -> Interval:
    """How often it was so, with the exact (Clopper-Pearson) interval: always is not certainly."""
    from scipy.stats import binomtest

    check_level(level)
    values = checked_values(hits, "hits", at_least=1).ravel()
    if not np.isin(values, (0, 1)).all():
        raise InputError("hits must be true or false, or 1 or 0, once for each try")
    hits = values.astype(bool)
    between = binomtest(int(hits.sum()), hits.size).proportion_ci(level)
    return Interval(float(hits.mean()), float(between.low), float(between.high), hits.size, level)


def mean_share_interval(shares: ArrayLike, level: float = 0.95) -> Interval:
    """Student t interval of the mean of independent shares, cut where shares end, at 0 and 1.

    For a yes or no of each trial take `share_interval`: that one has a width where all agree.
    """
    made = mean_interval(shares, level)
    return replace(made, low=max(made.low, 0.0), high=min(made.high, 1.0))


def holm(p_values: ArrayLike) -> Array:
    """Holm's adjusted p-values, in the given order: reject where they are below alpha.

    Use it whenever several tests back one statement: the chance of any false rejection stays
    below alpha, whatever the dependence between the tests.
    """
    p = checked_values(p_values, "p_values", at_least=1)
    if p.ndim != 1:
        raise InputError(f"p_values must be a list, not of shape {p.shape}")
    if p.min() < 0 or p.max() > 1:
        raise InputError(f"p_values must lie in [0, 1]; the range is [{p.min():g}, {p.max():g}]")
    order = np.argsort(p, kind="stable")
    # The k-th smallest of m is multiplied by m - k + 1 and never falls below its predecessor.
    stepped = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def paired_difference(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Difference:
    """Mean of `x - y` where `x[i]` and `y[i]` come from the same trial (seed, data, task).

    Pairing removes what the two have in common, so it sees much smaller differences than
    `welch`. Where its t test and the signed-rank test disagree, outliers are at work.
    """
    x, y = samples(x, y, paired=True)
    signed_rank = 1.0  # every pair ties: nothing speaks for a difference
    if (x != y).any():
        from scipy.stats import wilcoxon

        signed_rank = float(wilcoxon(x, y).pvalue)
    return replace(_student(x, y, True, level), wilcoxon_p_value=signed_rank)


def welch(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Difference:
    """Difference of the means of two independent samples, their variances not assumed equal.

    Use it for methods whose trials share nothing; sizes may differ (`interval.n` is their
    sum).
    """
    return _student(*samples(x, y, paired=False), False, level)


def equivalence(
    x: ArrayLike, y: ArrayLike, margin: float, *, paired: bool, alpha: float = 0.05
) -> Equivalence:
    """Two one-sided t tests (TOST): are the two means within `margin` of each other?

    Use it for claims of "no difference". Choose the margin, in the data's units, before
    looking at the data; `paired` as in `paired_difference` against `welch`.
    """
    if not 0 < real(margin) < inf:
        raise InputError(f"margin must be a positive number, not {margin!r}")
    if not 0 < real(alpha) < 0.5:
        raise InputError(f"alpha must lie between 0 and 0.5, not {alpha!r}")
    x, y = samples(x, y, paired=paired)
    # Not equivalent from below: difference <= -margin; from above: difference >= margin.
    below = _student(x + margin, y, paired, side="greater").p_value
    above = _student(x - margin, y, paired, side="less").p_value
    p, interval = max(below, above), _student(x, y, paired, 1 - 2 * alpha).interval
    return Equivalence(interval, float(margin), p, bool(p < alpha), below, above)


def _student(
    x: Array, y: Array, paired: bool, level: float = 0.95, side: str = "two-sided"
) -> Difference:
    """Student's test of pairs or Welch's of independent samples, from SciPy."""
    check_level(level)
    n = len(x) if paired else len(x) + len(y)
    if np.ptp(x - y) == 0 if paired else max(np.ptp(x), np.ptp(y)) == 0:
        return _constant(float(x[0] - y[0]), n, n - (1 if paired else 2), level, side)
    from scipy.stats import ttest_ind, ttest_rel

    with warnings.catch_warnings():
        # One of two samples may well be constant: SciPy doubts its variance of zero.
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        test: Any = (
            ttest_rel(x, y, alternative=side)
            if paired
            else ttest_ind(x, y, equal_var=False, alternative=side)
        )
    estimate = float(np.mean(x - y) if paired else np.mean(x) - np.mean(y))
    bounds = test.confidence_interval(level)
    interval = Interval(estimate, float(bounds.low), float(bounds.high), n, level)
    return Difference(interval, float(test.statistic), float(test.df), float(test.pvalue))


def _constant(estimate: float, n: int, df: float, level: float, side: str) -> Difference:
    """Constant data: equal for sure or different for sure, of which SciPy makes no number."""
    interval = Interval(estimate, estimate, estimate, n, level)
    if estimate == 0:
        return Difference(interval, 0.0, float(df), 1.0 if side == "two-sided" else 0.5)
    agrees = side == "two-sided" or (estimate > 0) == (side == "greater")
    return Difference(interval, float(np.copysign(np.inf, estimate)), float(df), 1.0 - agrees)


def _t_quantile(level: float, df: float) -> float:
    check_level(level)
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))


def moments(values: Array, axis: int) -> tuple[Array, Array, int]:
    """Mean and unbiased variance, exact for constant data.

    Shifting by the first value first keeps the rounding of the mean from passing for
    variance: ten times 0.1 must have none.
    """
    first = np.take(values, [0], axis=axis)
    shifted = values - first
    mean = np.squeeze(first, axis) + shifted.mean(axis=axis)
    return mean, shifted.var(axis=axis, ddof=1), values.shape[axis]


def samples(x: ArrayLike, y: ArrayLike, *, paired: bool) -> tuple[Array, Array]:
    first, second = checked_values(x, "x", at_least=2), checked_values(y, "y", at_least=2)
    for name, values in (("x", first), ("y", second)):
        if values.ndim != 1:
            raise InputError(f"{name} must be a list of values, not of shape {values.shape}")
    if paired and len(first) != len(second):
        raise InputError(
            f"x has {len(first)} values and y has {len(second)}: they cannot be paired"
        )
    return first, second


def checked_values(x: ArrayLike, name: str, *, at_least: int, axis: int = 0) -> Array:
    if isinstance(x, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array: leave out what the mask hides")
    try:
        if (raw := np.asarray(x)).dtype.kind not in "fiub":
            raise TypeError(f"it is an array of {raw.dtype}")
        values = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers: {error}") from None
    if values.ndim == 0 or axis not in range(-values.ndim, values.ndim):
        raise InputError(f"{name} of shape {values.shape} has no axis {axis}")
    if values.size == 0:
        raise InputError(f"{name} is empty")
    bad = values.size - np.count_nonzero(np.isfinite(values))
    if bad:
        raise InputError(f"{name} has {bad} of {values.size} values that are NaN or infinite")
    if values.shape[axis] < at_least:
        raise InputError(f"{name} needs at least {at_least} values, not {values.shape[axis]}")
    return values


def check_level(level: float) -> None:
    between_0_and_1(level=level)


def scalar(value: Any) -> Any:
    return value if np.ndim(value) else float(value)
