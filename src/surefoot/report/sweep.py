"""A sweep on a page: the return of every cell of the grid, learning curves, what failed."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from surefoot.core.stats import Interval, mean_interval
from surefoot.errors import InputError
from surefoot.report.charts import axes, between, dots, keys, line, looks_of, numbers, text
from surefoot.report.parts import AbsentError, Chart, Note, Panel, Part, one
from surefoot.report.run import Builder, Run
from surefoot.runs.files import read_bytes, read_json

NUMBERS = ("seeds", "failed", "mean", "low", "high", "cvar_0.25", "training_return")
MOST = 24  # curves that a legend can hide and show


def builders() -> dict[str, Builder]:
    return {"cells": cells, "curves": curves}


def failures(run: Run) -> list[Part]:
    """A sentence for each trial without a result."""
    try:
        found = run.summary["failures"]
        return [Note(f"{name}: {why}.", "warning") for name, why in list(found.items())[:MOST]]
    except (InputError, KeyError, TypeError, AttributeError):
        return []


def label_of(row: dict[str, Any]) -> str:
    """What of the grid a cell stands for."""
    told = [f"{name} {value}" for name, value in row.items() if name not in NUMBERS]
    return ", ".join(told) or "all trials"


def cells(run: Run) -> Chart:
    rows = [row for row in run.summary["cells"] if row["mean"] is not None]
    if not rows:
        raise AbsentError("no trial has a result yet")
    labels = [label_of(row) for row in rows]
    looks = looks_of(["return of the evaluation", "mean of the worst quarter", "while training"])
    names = dict(zip(("mean", "cvar_0.25", "training_return"), looks, strict=True))
    traces = []
    for i, (part, name) in enumerate(names.items()):
        own = [(k, row) for k, row in enumerate(rows) if row.get(part) is not None]
        at = [k + 0.18 * (i - 1) for k, _ in own]
        shown = [_interval(row, part) for _, row in own]
        traces.append(dots(at, shown, name, looks[name], across=True))
    y = {"tickvals": list(range(len(rows))), "ticktext": [text(label) for label in labels],
         "range": [len(rows) - 0.5, -0.5], "title": {"text": ""}}  # fmt: skip
    panel = Panel("", tuple(traces), axes("return", "", yaxis=y), 110 + 34 * len(rows))
    fewest, most = (f(row["seeds"] for row in rows) for f in (min, max))
    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    caption = f"{count} seeds a cell; bars: 95 % interval over seeds."
    return Chart(
        "cells", "Return of each cell", one(panel), keys(looks, looks, lines=False), caption
    )


def _interval(row: dict[str, Any], part: str) -> Interval:
    value = row[part]
    bounded = part == "mean" and row["low"] is not None
    return Interval(value, row["low"] if bounded else value, row["high"] if bounded else value,
                    row["seeds"])  # fmt: skip


def curves(run: Run) -> Chart:
    """Evaluation return while learning, mean over seeds."""
    found: dict[str, list[np.ndarray]] = {}
    for row in csv.DictReader(io.StringIO(read_bytes(run.store.path / "trials.csv").decode())):
        chosen = {k: v for k, v in row.items() if k not in ("seed", "return", "key")}
        path = run.store.path / "results" / f"{row['key']}.json"
        if row["key"].isalnum() and path.is_file():
            curve = np.asarray(read_json(path)["curve"], dtype=float)
            found.setdefault(label_of(chosen), []).append(curve)
    if not any(len(curve) > 1 for own in found.values() for curve in own):
        raise AbsentError("the trials were evaluated only at their end")
    names = list(found)[:MOST]
    looks, traces = looks_of(names), []
    for name in names:
        own = [c for c in found[name] if np.array_equal(c[:, 0], found[name][0][:, 0])]
        steps, values = own[0][:, 0], np.stack([c[:, 1] for c in own])
        if len(own) > 1:
            shown = mean_interval(values)
            traces.append(between(steps, shown.low, shown.high, name, looks[name]))
        traces.append(line(steps, values.mean(0), name, looks[name]))
    layout = axes("environment steps", "evaluation return")
    layout["yaxis"]["range"] = _range([t["y"] for t in traces if t["mode"] != "lines"])
    panel = Panel("", tuple(traces), layout, 420)
    caption = "Mean over seeds with 95 % interval."
    if len(found) > MOST:
        caption += f" The first {MOST} of {len(found)} cells."
    return Chart("curves", "Learning curves", one(panel), keys(names, looks), caption)


def _range(lines: list[list[Any]]) -> list[Any]:
    """Around the means: an interval over two seeds can be wider than any page."""
    values = [v for each in lines for v in each if v is not None]
    air = 0.15 * (max(values) - min(values)) or 1.0
    return numbers([min(values) - air, max(values) + air])
