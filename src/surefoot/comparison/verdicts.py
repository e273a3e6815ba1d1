"""Every pair of return samples compared: what the sample shows, and what it supports.

The relation of a pair is a fact about the two samples. What holds beyond them is a question for
tests of two hypotheses, "a dominates b" and "a does not dominate b", in both directions:
`Verdict.word` is one of four, and says how it follows from their p-values after Holm's correction
over all ordered pairs of that order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.comparison.bootstrap import PairTests, TestSettings, tests_of_pair
from surefoot.comparison.memory import Blocks, Memory, memory_of
from surefoot.comparison.numerals import Decimal
from surefoot.comparison.result import (
    ORDERS,
    Comparison,
    Relation,
    Verdict,
)
from surefoot.comparison.returns import Columns, Missing, as_table, read_returns
from surefoot.comparison.saving import check_directory
from surefoot.comparison.summaries import summary_of
from surefoot.core.dominance import almost_ssd_ratio, fsd_dominates, ssd_dominates, violation
from surefoot.core.stats import holm
from surefoot.errors import InputError
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
    source: str | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare samples of returns (larger is better) by first and second order dominance.

    `returns` is a dict of columns, a pandas or polars table, or an array `[rows, columns]` with
    `names`; columns may have different lengths. `missing` and `prices` say what becomes of gaps and
    of prices, as in `read_returns`. `tolerance`, in the units of the returns, is what
    dominance forgives. `paired` says that a row holds outcomes of one and the same day, seed or
    task in every column, and is taken to be so where all columns have the same rows.
    `dependence` says whether rows depend on those before: "auto" looks at each column, "none", or
    the length of the blocks to draw. `trim` is the share of the pooled values left out at an end
    of the range on which dominance can be established (`bootstrap` says why).
    """
    if not 0 < level < 1:
        raise InputError(f"level = {level}: it must lie between 0 and 1")
    table = as_table(returns, names, columns, missing=missing, prices=prices)
    if len(table) < 2:
        raise InputError(f"{source or 'returns'}: a comparison needs at least 2 columns")
    if paired and not table.aligned:
        lengths = ", ".join(f"{name}: {len(column)}" for name, column in table.items())
        raise InputError(f"paired: the columns have not the same rows ({lengths})")
    settings = TestSettings(
        int(resamples),
        seed,
        float(tolerance),
        table.aligned if paired is None else bool(paired),
        trim,
        blocks,
    )
    memory = {name: memory_of(column, dependence, blocks) for name, column in table.items()}
    tests = _all_tests(table.columns, memory, settings, progress)
    ascending = {name: np.sort(column) for name, column in table.items()}
    verdicts = [v for order in ORDERS for v in _verdicts(ascending, tests, order, tolerance, level)]
    return Comparison(
        tuple(summary_of(name, table[name], table.dates.get(name)) for name in table),
        tuple(verdicts),
        **vars(settings),
        level=float(level),
        dependence=dependence,
        memory=memory,
        returns=table.columns,
        dates=table.dates,
        reading=table.notes,
        source=source,
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
    progress: bool = False,
) -> Comparison:
    """Compare the columns of a CSV or Parquet file; with `out` save it as a run directory.

    How the file is read (`index`, `missing`, `prices`, `decimal`) is told by `read_returns`, the
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
        source=portable_path(Path(path)),
        progress=progress,
    )
    if out is not None:
        result.save(out)
    return result


def _all_tests(
    table: Columns, memory: dict[str, Memory], settings: TestSettings, show: bool
) -> dict[tuple[str, str], PairTests]:
    """The tests of every ordered pair.

    All start from the same seed, so that the result of two columns does not depend on which others
    stand beside them; Holm's correction allows any dependence.
    """
    from surefoot.runs.progress import progress

    pairs = list(combinations(table, 2))
    tests = {}
    with progress(len(pairs), "compare", "pairs", mode="auto" if show else "silent") as bar:
        for a, b in pairs:
            lengths = memory[a].length, memory[b].length
            tests[a, b] = tests_of_pair(table[a], table[b], lengths, settings)
            tests[b, a] = PairTests(*tests[a, b][::-1])
            bar.advance()
    return tests


def _verdicts(
    table: Columns,
    tests: dict[tuple[str, str], PairTests],
    order: int,
    tolerance: float,
    level: float,
) -> list[Verdict]:
    """Every ordered pair at one order; the columns of `table` are ascending."""
    pairs = list(permutations(table, 2))
    dominates = {1: fsd_dominates, 2: ssd_dominates}[order]
    holds = {
        (a, b): bool(dominates(table[a], table[b], tolerance, assume_sorted=True)) for a, b in pairs
    }
    test = {pair: tests[pair].forward[order - 1] for pair in pairs}
    dominance, nondominance = (
        dict(zip(pairs, holm([getattr(test[pair], name) for pair in pairs]).tolist(), strict=True))
        for name in ("dominance_p", "nondominance_p")
    )
    return [
        Verdict(
            *(a, b, order),
            relation=_relation(holds[a, b], holds[b, a]),
            test=test[a, b],
            dominance_p=dominance[a, b],
            nondominance_p=nondominance[a, b],
            reverse_dominance_p=dominance[b, a],
            level=level,
            violation=float(violation(table[a], table[b])) if order == 2 else None,
            almost_ratio=float(almost_ssd_ratio(table[a], table[b])) if order == 2 else None,
        )
        for a, b in pairs
    ]


def _relation(a_over_b: bool, b_over_a: bool) -> Relation:
    if a_over_b:
        return "equal" if b_over_a else "dominates"
    return "dominated" if b_over_a else "neither"
