"""A sweep in one table: the mean return of each cell with its interval over seeds."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from surefoot.comparison import Comparison, compare
from surefoot.comparison.words import MANY
from surefoot.core.bootstrap import FEW, bootstrap_interval, improvement
from surefoot.core.particles import cvar
from surefoot.errors import visible
from surefoot.training.sweep.spec import Setting, words

ALPHA = 0.25
LEVEL = 0.05
MEASURES = ("mean", "low", "high", f"cvar_{ALPHA:g}", "training_return")


@dataclass(frozen=True)
class SweepCell:
    """One combination of the grid and the results of its trainings."""

    chosen: Setting
    records: tuple[dict[str, Any], ...]
    failed: int = 0

    def row(self) -> dict[str, Any]:
        """Intervals are over seeds, by the bootstrap, so that they hold no return that cannot be: a
        seed's value is the mean of its evaluation episodes."""
        means = [float(np.mean(record["returns"])) for record in self.records]
        row: dict[str, Any] = dict(self.chosen)
        row |= {"seeds": len(means), "failed": self.failed} | dict.fromkeys(MEASURES)
        if means:
            row["mean"] = float(np.mean(means))
            pooled = np.concatenate([record["returns"] for record in self.records])
            row[f"cvar_{ALPHA:g}"] = float(cvar(np.sort(pooled), ALPHA))
            trained = [r["training_return"] for r in self.records]
            known = [value for value in trained if value is not None]
            row["training_return"] = float(np.mean(known)) if known else None
        if len(means) > 1 and all(map(math.isfinite, means)):
            interval = bootstrap_interval(means)
            row["low"], row["high"] = interval.low, interval.high
        return row


Values = Mapping[Setting, Mapping[int, float]]
"""The mean return of each training, by cell and seed."""


def task_of(chosen: Setting) -> str:
    """The environment of a cell, if the grid has several: their returns are not comparable."""
    return str(dict(chosen).get("env", ""))


def improvements(cells: Values) -> list[dict[str, Any]]:
    """How likely a training of one method is to do better than one of another, with an interval:
    for all pairs of what the grid has besides environments, averaged over these."""
    methods: dict[str, dict[str, list[float]]] = {}
    for chosen, own in cells.items():
        name = words(tuple(pair for pair in chosen if pair[0] != "env"))
        if len(own) > 1 and all(map(math.isfinite, own.values())):
            methods.setdefault(name, {})[task_of(chosen)] = list(own.values())
    if len(methods) > MANY:
        return []
    rows = []
    for a, b in itertools.combinations(methods, 2):
        tasks = [task for task in methods[a] if task in methods[b]]
        if tasks:
            between = improvement([(methods[a][task], methods[b][task]) for task in tasks])
            rows.append({"a": a, "b": b, "tasks": len(tasks), **between.as_dict()})
    return rows


def compare_cells(cells: Values) -> Comparison | None:
    """Dominance between cells, paired by seed.

    Episodes of one training are not independent, so a training is one value. Seeds that a cell has
    no result for are left out. None where there is nothing to compare: one cell, several
    environments, or more cells than a matrix can show.
    """
    if len({task_of(chosen) for chosen in cells}) > 1:
        return None
    values = {words(chosen): own for chosen, own in cells.items()}
    seeds = [s for s in next(iter(values.values()), {}) if all(s in own for own in values.values())]
    if not 2 <= len(values) <= MANY or len(seeds) < 2:
        return None
    columns = {name: np.array([own[seed] for seed in seeds]) for name, own in values.items()}
    if not all(np.isfinite(column).all() for column in columns.values()):
        return None
    tests = len(columns) * (len(columns) - 1)
    resamples = max(
        1000, math.ceil(2 * tests / LEVEL)
    )  # a correction over all pairs must leave some
    source = f"the cells, {len(seeds)} seeds each"
    return compare(
        columns, paired=True, dependence="none", prices=False, resamples=resamples, level=LEVEL,
        source=source,
    )  # fmt: skip


def to_csv(rows: Sequence[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue().encode()


def few_seeds(rows: Sequence[Mapping[str, Any]]) -> str:
    """A warning where intervals rest on few seeds; else nothing."""
    fewest = min((row["seeds"] for row in rows if row["seeds"]), default=FEW)
    if fewest >= FEW:
        return ""
    return (
        f"Few seeds: {fewest} in a cell. Below {FEW} the intervals are too narrow, and a better "
        "cell may be luck."
    )


def to_table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    """For the terminal, the best mean in bold."""
    names = [name for name in rows[0] if name not in (*MEASURES, "seeds", "failed")]
    table = Table(title=title, caption=few_seeds(rows) or None)
    for name in (*names, "seeds", "return, mean [95 %]", f"worst {ALPHA:.0%}", "training"):
        table.add_column(name)
    best = max((row["mean"] for row in rows if row["mean"] is not None), default=None)
    for row in rows:
        count = str(row["seeds"]) + (f" ({row['failed']} failed)" if row["failed"] else "")
        # Text and not str: brackets are no markup.
        cells: list[str | Text] = [Text(visible(row[name])) for name in names]
        cells += [count, _interval(row), _number(row[f"cvar_{ALPHA:g}"])]
        cells += [_number(row["training_return"])]
        table.add_row(*cells, style="bold" if row["mean"] == best is not None else "")
    return table


def _interval(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return _number(row["mean"])
    return f"{row['mean']:.5g} [{row['low']:.5g}, {row['high']:.5g}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"
