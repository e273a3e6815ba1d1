"""Questions about all columns at once, from resamples that they share.

`step_down` is the correction of Romano and Wolf (Econometrica 73, 2005): it uses how the
statistics of all hypotheses go together, and so loses less than Holm's where there are many; above
all its p-values do not need more resamples the more hypotheses there are. The statistic of "a
dominates b" is the largest shortfall of a, that of "a does not dominate b" the margin of a where
the evidence is weakest. `maximality` asks whether no column dominates another (McFadden, 1989;
Linton, Maasoumi and Whang, 2005).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.memory import memory_of
from surefoot.comparison.pairs import PairResult, all_pairs
from surefoot.comparison.returns import as_table
from surefoot.comparison.settings import TestSettings
from surefoot.errors import InputError, real, shown

Array = NDArray[np.float64]
CORRECTIONS = ("holm", "romano-wolf")


@dataclass(frozen=True)
class Maximality:
    """H0 "some column dominates another"; a small p-value says that none does."""

    order: int
    statistic: float
    """The least of all pairs' root * sup [D_a - D_b]."""
    p_value: float
    pair: tuple[str, str]
    """The two for which it is least: if any column dominates another, then most likely these."""


def corrected(
    done: Mapping[tuple[str, str], PairResult], pairs: Sequence[tuple[str, str]], order: int
) -> tuple[Array, Array]:
    """Step-down p-values of dominance and of non-dominance; statistics were kept."""
    kept = [joint[order - 1] for pair in pairs if (joint := done[pair].joint) is not None]
    dominance = step_down([one.excess for one in kept], [one.suprema for one in kept])
    nondominance = step_down([one.margin for one in kept], [one.weakest for one in kept])
    # Where the sample itself does not dominate there is nothing to establish.
    single = np.array([done[pair].tests[order - 1].nondominance_p for pair in pairs])
    return dominance, np.maximum(nondominance, single)


def step_down(observed: Sequence[float] | Array, resampled: Sequence[Any] | Array) -> Array:
    """Adjusted p-values of hypotheses with statistics `[H]` and their resamples `[H, B]`.

    Each is divided by its resamples' deviation, so that no hypothesis drowns the others.
    """
    deviation = [float(np.std(star, dtype=np.float64)) for star in resampled]
    unit = np.where(np.array(deviation) > 0, deviation, 1.0)
    statistic = np.asarray(observed) / unit
    order = np.argsort(-statistic, kind="stable")
    many = len(resampled[0])
    slack = 8 * np.finfo(np.asarray(resampled[0]).dtype).eps * (1 + np.abs(statistic))
    largest, reached = np.full(many, -np.inf), np.empty(len(order))
    for hypothesis in order[::-1]:  # the largest over it and all less significant ones
        np.maximum(largest, resampled[hypothesis] / unit[hypothesis], out=largest)
        least = statistic[hypothesis] - slack[hypothesis]
        reached[hypothesis] = np.count_nonzero(largest >= least)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate((1 + reached[order]) / (1 + many))
    return adjusted


def maximality(
    returns: Any,
    order: int = 2,
    *,
    dependence: str | int = "auto",
    prices: bool | None = None,
    **settings: Any,
) -> Maximality:
    """Whether no column of a table dominates another.

    `returns` and `prices` are those of `compare`, `settings` those of `TestSettings`.
    """
    if real(order) not in (1, 2):
        raise InputError(f"order = {shown(order)}: maximality is offered at order 1 and 2")
    table = as_table(returns, prices=prices)
    if len(table) < 2:
        raise InputError("maximality needs at least 2 columns")
    if not table.aligned:
        raise InputError("columns of different lengths cannot be resampled together")
    chosen = TestSettings(**{"paired": True, **settings})
    length = max(memory_of(z, dependence, chosen.blocks).length for z in table.columns.values())
    done = all_pairs(table.columns, dict.fromkeys(table, length), chosen, keep=True)
    kept = {pair: one.joint[order - 1] for pair, one in done.items() if one.joint is not None}
    least = min(kept, key=lambda pair: kept[pair].excess * kept[pair].unit)
    statistic = kept[least].excess * kept[least].unit
    slack = 1e-6 * abs(statistic)  # resamples are kept as 32 bits
    smallest = np.min([one.suprema * np.float64(one.unit) for one in kept.values()], axis=0)
    reached = int(np.count_nonzero(smallest >= statistic - slack))
    return Maximality(order, statistic, (1 + reached) / (1 + chosen.resamples), least)
