"""Questions about all columns at once, from resamples that they share.

`step_down` is the correction of Romano and Wolf (Econometrica 73, 2005): it uses how the
statistics of all hypotheses go together, and so loses less than Holm's where there are many; above
all its p-values do not need more resamples the more hypotheses there are. `maximality` asks whether
no column dominates another (McFadden, 1989; Linton, Maasoumi and Whang, 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.bootstrap import TestSettings, in_cells, pair_draws, run_pairs
from surefoot.comparison.memory import memory_of
from surefoot.comparison.process import WAYS
from surefoot.comparison.returns import Columns, as_table
from surefoot.errors import InputError

Array = NDArray[np.float64]
CORRECTIONS = ("holm", "romano-wolf")


@dataclass(frozen=True)
class Suprema:
    """Of every ordered pair (a, b), at one order: root * sup [D_a - D_b]."""

    pairs: tuple[tuple[str, str], ...]
    observed: Array
    """`[pairs]`; 0 where a dominates b in the sample."""
    resampled: Array
    """`[pairs, resamples]`, recentred; a resample is the same rows for all pairs."""


@dataclass(frozen=True)
class Maximality:
    """H0 "some column dominates another"; a small p-value says that none does."""

    order: int
    statistic: float
    """The least of all pairs' root * sup [D_a - D_b]."""
    p_value: float
    pair: tuple[str, str]
    """The two for which it is least: if any column dominates another, then most likely these."""


def joint_suprema(table: Columns, length: int, settings: TestSettings) -> tuple[Suprema, Suprema]:
    """Of first and second order, from the same resamples of whole rows for all pairs."""
    rows = {len(column) for column in table.values()}
    if len(rows) > 1:
        raise InputError("columns of different lengths cannot be resampled together")
    n = rows.pop()
    draws = pair_draws(n, n, (length, length), settings)
    columns = in_cells(table, settings.tolerance)
    pairs: list[tuple[str, str]] = []
    observed: tuple[list[float], list[float]] = ([], [])
    resampled: tuple[list[Array], list[Array]] = ([], [])
    every = list(combinations(table, 2))
    runs = run_pairs(columns, every, draws, settings, keep=True)
    for (a, b), run in zip(every, runs, strict=True):
        for way in WAYS:
            pairs.append((a, b) if way > 0 else (b, a))
            for order, tally in enumerate(run.tallies(way)):
                size = tally.curve.root / tally.curve.scale
                observed[order].append(size * tally.excess[way])
                resampled[order].append(size * tally.suprema(way))
    first, second = (
        Suprema(tuple(pairs), np.array(seen), np.array(star))
        for seen, star in zip(observed, resampled, strict=True)
    )
    return first, second


def step_down(observed: Array, resampled: Array) -> Array:
    """Adjusted p-values of hypotheses with statistics `[H]` and their resamples `[H, B]`.

    Each is divided by its resamples' deviation, so that no hypothesis drowns the others.
    """
    deviation = resampled.std(axis=1)
    unit = np.where(deviation > 0, deviation, 1.0)
    statistic, star = observed / unit, resampled / unit[:, None]
    order = np.argsort(-statistic, kind="stable")
    # The largest over a hypothesis and all less significant ones.
    largest = np.maximum.accumulate(star[order][::-1], axis=0)[::-1]
    slack = 1e-12 * (1 + np.abs(statistic[order]))
    reached = np.sum(largest >= (statistic[order] - slack)[:, None], axis=1)
    stepwise = np.maximum.accumulate((1 + reached) / (1 + resampled.shape[1]))
    adjusted = np.empty(len(observed))
    adjusted[order] = stepwise
    return adjusted


def maximality(
    returns: Any, order: int = 2, *, dependence: str | int = "auto", **settings: Any
) -> Maximality:
    """Whether no column of a table dominates another; `settings` are those of `TestSettings`."""
    if order not in (1, 2):
        raise InputError(f"order = {order}: maximality is offered at order 1 and 2")
    table = as_table(returns).columns
    if len(table) < 2:
        raise InputError("maximality needs at least 2 columns")
    chosen = TestSettings(**{"paired": True, **settings})
    length = max(memory_of(z, dependence, chosen.blocks).length for z in table.values())
    suprema = joint_suprema(table, length, chosen)[order - 1]
    least = int(np.argmin(suprema.observed))
    statistic = float(suprema.observed[least])
    slack = 1e-12 * (1 + statistic)
    reached = int(np.count_nonzero(suprema.resampled.min(axis=0) >= statistic - slack))
    p_value = (1 + reached) / (1 + chosen.resamples)
    return Maximality(order, statistic, p_value, suprema.pairs[least])
