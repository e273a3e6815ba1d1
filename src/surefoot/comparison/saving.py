"""A comparison on disk, saved by `Comparison.save`, `compare --out` or `evaluate --out`: a run.

DIR/config.json, provenance.json     settings, versions and seed
DIR/returns.csv (and .parquet)       the samples, one column each; `surefoot compare` reads it
DIR/comparison.json, .md             every pair's verdict, in full
DIR/figures/comparison.*, bands.*    as PNG and SVG
DIR/summary.json, complete.json
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.comparison.dates import Dates, labels
from surefoot.comparison.result import Comparison
from surefoot.comparison.returns import Columns, write_returns
from surefoot.errors import InputError
from surefoot.runs.directory import RunDir
from surefoot.runs.files import atomic_write, json_bytes


def save(
    c: Comparison,
    directory: str | os.PathLike[str],
    *,
    config: Mapping[str, Any] | None = None,
    summary: Mapping[str, Any] | None = None,
) -> Path:
    """As `Comparison.save` says."""
    check_directory(directory)
    content = {**c.settings, "columns": c.names, **(config or {})}
    run = RunDir.create(directory, content, kind="comparison", seeds=c.seed, existing="overwrite")
    dates = _common_dates(c)
    index = None if dates is None else ("date", labels(dates))
    write_returns(run.path / "returns.csv", c.returns, index)
    if importlib.util.find_spec("polars"):
        run.write_table(_padded(c.returns), "returns")
    atomic_write(run.path / "comparison.json", json_bytes(c.to_dict()))
    atomic_write(run.path / "comparison.md", c.to_markdown().encode())
    if importlib.util.find_spec("matplotlib"):
        from surefoot.plots import save_figure

        save_figure(c.figure(), run, "comparison")
        save_figure(c.figure("bands"), run, "bands")
    run.write_summary({**_main_numbers(c), **(summary or {})})
    run.mark_complete()
    return run.path


def check_directory(directory: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a directory that holds something else."""
    place = Path(directory)
    if place.is_file():
        raise InputError(f"{directory} is a file, not a directory")
    if (place / "config.json").is_file():
        if RunDir.open(place).read_config().get("kind") != "comparison":
            raise InputError(f"{directory} holds a run of another kind: choose another directory")
    elif place.is_dir() and any(not entry.name.startswith(".") for entry in place.iterdir()):
        raise InputError(f"{directory} is not empty and holds no run: choose another directory")


def _common_dates(c: Comparison) -> Dates | None:
    """The dates of the rows, where every column has the same."""
    first, *others = c.dates.values() or (None,)
    same = first is not None and all(np.array_equal(first, each) for each in others)
    return first if same else None


def _padded(returns: Columns) -> Columns:
    """Columns of equal length, as a Parquet table needs them: NaN at the end of short ones."""
    longest = max(map(len, returns.values()))
    return {
        name: np.append(column, np.full(longest - len(column), np.nan))
        for name, column in returns.items()
    }


def _main_numbers(c: Comparison) -> dict[str, Any]:
    """The numbers a reader looks for first."""
    return {
        "kind": "comparison",
        "columns": {
            s.name: {
                "n": s.n, "mean": s.mean, "deviation": s.deviation, "worst": s.worst,
                "cvar_0.05": s.cvar(0.05), "cvar_0.25": s.cvar(0.25), "median": s.median,
                "best": s.best,
            }
            for s in c.summaries
        },
        "dominant": c.dominant(),
        "established_dominant": c.dominant(established=True),
        "efficient": c.efficient(),
        "notes": c.notes,
    }  # fmt: skip
