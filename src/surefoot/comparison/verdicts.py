"""Every pair of return samples compared: what the sample shows, and what it supports.

The relation of a pair is a fact about the two samples. What holds beyond them is a question for
tests of two hypotheses, "a dominates b" and "a does not dominate b", in both directions:
`Verdict.word` is one of four, and says how it follows from their p-values after Holm's correction
over all ordered pairs of that order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

from surefoot.comparison.memory import Blocks, memory_of
from surefoot.comparison.more import all_further
from surefoot.comparison.numerals import Decimal
from surefoot.comparison.pairs import PairResult, Spread, all_pairs
from surefoot.comparison.result import (
    ORDERS,
    Comparison,
    Correction,
    Relation,
    Verdict,
)
from surefoot.comparison.returns import Missing, as_table, read_returns
from surefoot.comparison.saving import check_directory
from surefoot.comparison.settings import TestSettings
from surefoot.comparison.stepdown import CORRECTIONS, corrected
from surefoot.comparison.summaries import summary_of
from surefoot.core.array import check_tolerance
from surefoot.core.stats import holm
from surefoot.errors import InputError, between_0_and_1, unknown
from surefoot.runs.files import portable_path


def compare(
    returns: Any,
    names: Sequence[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    prices: bool | None = None,
    tolerance: float = 0.0,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.05,
    paired: bool | None = None,
    trim: float | None = None,
    dependence: str | int = "auto",
    blocks: Blocks = "circular",
    correction: Correction = "holm",
    further: bool = False,
    source: str | None = None,
    progress: bool = False,
    spread: Spread | None = None,
) -> Comparison:
    """Compare samples of returns (larger is better) by first and second order dominance.

    `returns` is a dict of columns, a pandas or polars table, an array `[rows, columns]`, or a list
    of columns with their `names`; columns may have different lengths. `missing` and `prices` say
    what becomes of gaps and of prices, as in `read_returns`. `tolerance`, in the units of the
    returns, is what dominance forgives. `paired` says that a row holds outcomes of one and the same
    day, seed or task in every column, and is taken to be so where all columns have the same rows.
    `dependence`
    says whether rows depend on those before: "auto" looks at each column, "none", or the length of
    the blocks to draw. `correction` is for many pairs: "holm", or "romano-wolf", a step-down from
    resamples that all pairs share, in blocks of the longest of their lengths.
    `trim` is the share of the pooled values left out at an end of the range on which dominance can
    be established (`bootstrap` says why). `further` adds more tests (`more`), which have no
    tolerance. `spread` computes pairs elsewhere, such as
    `functools.partial(run_jobs, engine="local")` of `surefoot.training.engines`.
    """
    if correction not in CORRECTIONS:
        raise unknown("correction", correction, CORRECTIONS)
    check_tolerance(tolerance)
    if further and tolerance:
        raise InputError(f"further: its tests have no tolerance (it is {tolerance:g})")
    between_0_and_1(level=level)
    table = as_table(returns, names, columns, missing=missing, prices=prices)
    if len(table) < 2:
        raise InputError(f"{source or 'returns'}: a comparison needs at least 2 columns")
    if paired and not table.aligned:
        rows = ", ".join(f"{name}: {len(column)}" for name, column in table.items())
        raise InputError(f"paired: the columns have not the same rows ({rows})")
    settings = TestSettings(
        resamples,
        seed,
        tolerance,
        table.aligned if paired is None else paired,
        trim,
        blocks,
    )
    memory = {name: memory_of(column, dependence, blocks) for name, column in table.items()}
    lengths = {name: seen.length for name, seen in memory.items()}
    joint = correction == "romano-wolf"
    if joint and not settings.paired:
        raise InputError("correction: romano-wolf needs columns whose rows belong together")
    if joint:
        lengths = dict.fromkeys(lengths, max(lengths.values()))
    done = all_pairs(table.columns, lengths, settings, keep=joint, spread=spread, show=progress)
    more = (
        all_further(table, settings, level=level, dependence=dependence, spread=spread,
                    show=progress)
        if further else None
    )  # fmt: skip
    verdicts = [
        v for order in ORDERS for v in _verdicts(table, done, order, settings, level, joint)
    ]
    return Comparison(
        tuple(summary_of(name, table[name], table.dates.get(name)) for name in table),
        tuple(verdicts),
        **vars(settings),
        level=float(level),
        dependence=dependence,
        correction=correction,
        memory=memory,
        returns=table.columns,
        dates=table.dates,
        reading=table.notes,
        source=source,
        further=more,
    )


def compare_file(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    index: str | None = None,
    missing: Missing = "error",
    prices: bool | None = None,
    decimal: Decimal = "auto",
    tolerance: float = 0.0,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.05,
    paired: bool | None = None,
    trim: float | None = None,
    dependence: str | int = "auto",
    blocks: Blocks = "circular",
    correction: Correction = "holm",
    further: bool = False,
    progress: bool = False,
    spread: Spread | None = None,
) -> Comparison:
    """Compare the columns of a CSV or Parquet file; with `out` save it as a run directory.

    How the file is read (`index`, `missing`, `prices`, `decimal`) is said by `read_returns`, the
    rest by `compare`.
    """
    if out is not None:
        check_directory(out)
    result = compare(
        read_returns(path, columns, index=index, missing=missing, prices=prices, decimal=decimal),
        tolerance=tolerance,
        resamples=resamples,
        seed=seed,
        level=level,
        paired=paired,
        trim=trim,
        dependence=dependence,
        blocks=blocks,
        correction=correction,
        further=further,
        source=portable_path(Path(path)),
        progress=progress,
        spread=spread,
    )
    if out is not None:
        result.save(out)
    return result


def _verdicts(
    names: Iterable[str],
    done: dict[tuple[str, str], PairResult],
    order: int,
    settings: TestSettings,
    level: float,
    joint: bool,
) -> list[Verdict]:
    """Every ordered pair at one order."""
    pairs = list(permutations(names, 2))
    facts = {pair: done[pair].facts for pair in pairs}
    holds = {
        pair: fact.first if order == 1 else fact.violation <= settings.tolerance
        for pair, fact in facts.items()
    }
    test = {pair: done[pair].tests[order - 1] for pair in pairs}
    if joint:
        adjusted = corrected(done, pairs, order)
    else:
        single = ([test[p].dominance_p for p in pairs], [test[p].nondominance_p for p in pairs])
        adjusted = holm(single[0]), holm(single[1])
    dominance, nondominance = (dict(zip(pairs, p.tolist(), strict=True)) for p in adjusted)
    return [
        Verdict(
            *(a, b, order),
            relation=_relation(holds[a, b], holds[b, a]),
            test=test[a, b],
            dominance_p=dominance[a, b],
            nondominance_p=nondominance[a, b],
            reverse_dominance_p=dominance[b, a],
            level=level,
            violation=facts[a, b].violation if order == 2 else None,
            almost_ratio=facts[a, b].almost_ratio if order == 2 else None,
        )
        for a, b in pairs
    ]


def _relation(a_over_b: bool, b_over_a: bool) -> Relation:
    if a_over_b:
        return "equal" if b_over_a else "dominates"
    return "dominated" if b_over_a else "neither"
