"""A sweep in one table: the mean return of each cell with its interval over seeds."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
MOST_CELLS = 100  # of one environment: half a minute for all their pairs
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


class Paired(NamedTuple):
    """The cells of one environment by the seeds that all of them have."""

    seeds: list[int]
    columns: dict[str, np.ndarray]


def paired_cells(cells: Values) -> dict[str, Paired]:
    """By environment: returns of different ones are not comparable. Where there are several it is
    left out of the cells' names."""
    tasks = {task_of(chosen) for chosen in cells}
    own: dict[str, dict[str, Mapping[int, float]]] = {}
    for chosen, values in cells.items():
        rest = tuple(pair for pair in chosen if len(tasks) == 1 or pair[0] != "env")
        own.setdefault(task_of(chosen), {})[words(rest)] = values
    paired = {}
    for task, named in own.items():
        first = next(iter(named.values()))
        seeds = [seed for seed in first if all(seed in values for values in named.values())]
        columns = {name: np.array([v[seed] for seed in seeds]) for name, v in named.items()}
        if len(columns) > 1 and len(seeds) > 1:
            paired[task] = Paired(seeds, columns)
    return paired


def compare_cells(paired: Mapping[str, Paired]) -> dict[str, Comparison]:
    """Dominance between the cells of each environment, paired by seed.

    Episodes of one training are not independent, so a training is one value. None of environments
    with more than `MOST_CELLS`, or with returns that are not finite.
    """
    compared = {}
    for task, (seeds, columns) in paired.items():
        if len(columns) > MOST_CELLS or not all(np.isfinite(c).all() for c in columns.values()):
            continue
        tests = len(columns) * (len(columns) - 1)
        # Holm's correction needs resamples for each pair, the step-down of many pairs does not.
        few = len(columns) <= MANY
        where = f" of {task}" if len(paired) > 1 else ""
        compared[task] = compare(
            columns, paired=True, dependence="none", prices=False, level=LEVEL,
            correction="holm" if few else "romano-wolf",
            resamples=max(1000, math.ceil(2 * tests / LEVEL)) if few else 1000,
            source=f"the cells{where}, {len(seeds)} seeds each",
        )  # fmt: skip
    return compared


def too_many(paired: Mapping[str, Paired]) -> str:
    """Says that there are no verdicts because there are too many cells; else nothing."""
    most = max((len(columns) for _, columns in paired.values()), default=0)
    if most <= MOST_CELLS:
        return ""
    return (
        f"{most} cells are not compared in pairs, only up to {MOST_CELLS} are: choose some columns "
        "of the table of returns (surefoot compare --columns)."
    )


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
