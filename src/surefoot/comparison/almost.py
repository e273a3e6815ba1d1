"""Almost dominance: how much speaks against x, with an interval, and a ranking of many columns.

The violation ratio is the share that speaks against x of the whole difference between x and y:

| order | ratio                                                                                  |
|-------|----------------------------------------------------------------------------------------|
| 1     | of the integral of `(F_x^-1 - F_y^-1)^2` over the levels (del Barrio, Cuesta-Albertos  |
|       | and Matran, 2018)                                                                      |
| 2     | of the integral of `(F_x^-2 - F_y^-2)^2` over the levels (Nitsure et al., 2023)        |

0 says that x dominates, 1 that y does. Almost stochastic order (ASO; Dror, Shlomov and Reichart,
2019) is the upper end of a one-sided interval of the ratio of the first order: x is taken to be
almost dominant where it is below 1/2, or a smaller threshold. The deviation of the ratio comes from
a bootstrap. Integrals are exact: both functions are constant or linear between a few levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from surefoot.comparison.bootstrap import checked_pair, pair_draws
from surefoot.comparison.memory import memory_of
from surefoot.comparison.process import square_above
from surefoot.comparison.resampling import Resampling, Weights, together
from surefoot.comparison.returns import as_table
from surefoot.comparison.settings import plain_settings
from surefoot.errors import InputError, between_0_and_1, real, shown

Array = NDArray[np.float64]
_CHUNK = 1 << 21


@dataclass(frozen=True)
class AlmostDominance:
    """x over y at one order."""

    order: int
    ratio: float
    """Of what speaks against x in the samples."""
    low: float
    high: float
    """Two-sided interval."""
    upper: float
    """Upper end of the one-sided interval; at order 1 the minimal epsilon of ASO."""


def almost_dominance(
    x: Array,
    y: Array,
    *,
    level: float = 0.05,
    dependence: str | int = "auto",
    **settings: Any,
) -> tuple[AlmostDominance, AlmostDominance]:
    """The ratios of both orders with their intervals.

    `settings` are those of `TestSettings`, but for `tolerance` and `trim`.
    """
    between_0_and_1(level=level)
    chosen = plain_settings(settings)
    x, y, lengths = checked_pair(x, y, dependence, chosen)
    draws = pair_draws(len(x), len(y), lengths, chosen)
    seen = ratios(np.sort(x)[None], np.sort(y)[None])[0]
    step = max(1, _CHUNK // (len(x) + len(y)))
    parts = [ratios(resampled(x, of_x), resampled(y, of_y)) for of_x, of_y in together(draws, step)]
    # As deepsig has it: the deviation around the resamples' own mean.
    deviation = np.concatenate(parts).std(axis=0)
    two, one = norm.ppf(1 - level / 2), norm.ppf(1 - level)
    first, second = (
        AlmostDominance(
            order,
            float(ratio),
            *(float(np.clip(ratio + side * spread, 0, 1)) for side in (-two, two, one)),
        )
        for order, ratio, spread in zip((1, 2), seen, deviation, strict=True)
    )
    return first, second


def resampled(x: Array, weights: Weights) -> Array:
    """The resamples themselves, each ascending: `[resamples, n]`."""
    order = np.argsort(x, kind="stable")
    counts = weights[order].T + 1
    return np.repeat(np.tile(x[order], len(counts)), counts.ravel()).reshape(len(counts), len(x))


def ratios(x: Array, y: Array) -> Array:
    """`[rows, order]`: violation ratios of ascending samples `[rows, n]` over `[rows, m]`."""
    n, m = x.shape[1], y.shape[1]
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)  # levels times n m
    width = np.diff(ends, prepend=0) / (n * m)
    gap = x[:, -(-ends // m) - 1] - y[:, -(-ends // n) - 1]
    second = np.cumsum(gap * width, axis=1)
    out = np.zeros((len(x), 2))
    out[:, 0] = _share(np.minimum(gap, 0) ** 2 @ width, gap**2 @ width)
    left = np.concatenate([np.zeros((len(x), 1)), second[:, :-1]], axis=1)
    below, above = (square_above(sign * left, sign * second) @ width for sign in (-1, 1))
    out[:, 1] = _share(below, below + above)
    return out


def _share(part: Array, everything: Array) -> Array:
    return np.where(everything > 0, part / np.where(everything > 0, everything, 1.0), 0.0)


@dataclass(frozen=True)
class RelativeRank:
    """One column against all others."""

    name: str
    ratio: float
    """Mean violation ratio against the others: 0 dominates all, 1 is dominated by all."""
    low: float
    high: float
    better_than: tuple[str, ...]
    """Columns whose mean ratio is larger, after Holm's correction over all ordered pairs."""
    order: int


def relative_ranking(
    returns: Any,
    order: int = 2,
    *,
    level: float = 0.05,
    dependence: str | int = "auto",
    prices: bool | None = None,
    **settings: Any,
) -> tuple[RelativeRank, ...]:
    """Columns of one table, best first, by their mean violation ratio against all others.

    Whole rows are drawn. That i is better than j is tested by the difference of their mean ratios
    over its bootstrapped deviation. `returns` and `prices` are those of `compare`, `settings`
    `resamples`, `seed` and `blocks`.
    """
    from surefoot.core.stats import holm

    between_0_and_1(level=level)
    if real(order) not in (1, 2):
        raise InputError(f"order = {shown(order)}: a ranking is offered at order 1 and 2")
    chosen = plain_settings({"paired": True, **settings})
    table = as_table(returns, prices=prices)
    if len(table) < 2 or not table.aligned or not chosen.paired:
        raise InputError("a relative ranking needs at least 2 columns whose rows belong together")
    names, columns = list(table), list(table.columns.values())
    n = len(columns[0])
    length = max(memory_of(column, dependence, chosen.blocks).length for column in columns)
    seen = _mean_ratios([np.sort(column)[None] for column in columns], order)[0]
    draw = Resampling(n, chosen.resamples, chosen.seed, 0, length, chosen.blocks)
    star = np.concatenate(
        [
            _mean_ratios([resampled(column, weights) for column in columns], order)
            for weights in draw.chunks(max(1, _CHUNK // (n * len(columns))))
        ]
    )
    spread, two = star.std(axis=0), norm.ppf(1 - level / 2)
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names)) if i != j]
    gaps = [(seen[j] - seen[i], (star[:, j] - star[:, i]).std()) for i, j in pairs]
    p_values = [norm.sf(gap / s) if s > 0 else float(gap <= 0) for gap, s in gaps]
    sure = {pair for pair, p in zip(pairs, holm(p_values), strict=True) if p <= level}
    return tuple(
        RelativeRank(
            names[i],
            float(seen[i]),
            float(np.clip(seen[i] - two * spread[i], 0, 1)),
            float(np.clip(seen[i] + two * spread[i], 0, 1)),
            tuple(names[j] for j in range(len(names)) if (i, j) in sure),
            order,
        )
        for i in np.argsort(seen, kind="stable")
    )


def _mean_ratios(samples: list[Array], order: int) -> Array:
    """`[rows, columns]`: each column's mean ratio against the others."""
    k = len(samples)
    total = np.zeros((len(samples[0]), k))
    for i in range(k):
        for j in range(i + 1, k):
            ratio = ratios(samples[i], samples[j])[:, order - 1]
            same = np.all(samples[i] == samples[j], axis=1)
            total[:, i] += ratio
            total[:, j] += np.where(same, 0.0, 1 - ratio)
    return total / (k - 1)
