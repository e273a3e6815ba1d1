"""A comparison as a run directory: what `surefoot compare --out` and `evaluate --out` leave.

DIR/config.json, provenance.json     what was asked, with which versions and seed
DIR/returns.csv (and .parquet)       the samples, one column each; `surefoot compare` reads it
DIR/comparison.json, .md             every pair's verdict, in full
DIR/figures/comparison.png, .svg
DIR/summary.json, complete.json
"""

from __future__ import annotations

import csv
import importlib.util
import io
import os
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.comparison.reading import Columns
from surefoot.comparison.result import Comparison
from surefoot.errors import InputError
from surefoot.runs.files import atomic_write, json_bytes, read_json


def save_comparison(
    directory: str | os.PathLike[str],
    comparison: Comparison,
    returns: Columns,
    *,
    config: Mapping[str, Any],
    summary: Mapping[str, Any] | None = None,
) -> Path:
    """Write all of it; an earlier comparison in `directory` is replaced, nothing else is.

    `config` is what was asked and `summary` what else a reader wants; the comparison's own
    settings and numbers are put beside them.
    """
    from surefoot.plots import save_figure
    from surefoot.runs.directory import RunDir

    check_directory(directory)
    settings = {
        name: getattr(comparison, name)
        for name in ("source", "tolerance", "resamples", "seed", "level", "paired")
    }
    asked = {**settings, "columns": comparison.names, **config}
    run = RunDir.create(
        directory, asked, kind="comparison", seeds=comparison.seed, existing="overwrite"
    )
    write_returns(run.path / "returns.csv", returns)
    if importlib.util.find_spec("polars"):
        run.write_table(_padded(returns), "returns")
    atomic_write(run.path / "comparison.json", json_bytes(comparison.to_dict()))
    atomic_write(run.path / "comparison.md", comparison.to_markdown().encode())
    if importlib.util.find_spec("matplotlib"):
        save_figure(comparison.figure(), run, "comparison")
    run.write_summary({**brief(comparison), **(summary or {})})
    run.mark_complete()
    return run.path


def write_returns(path: str | os.PathLike[str], returns: Columns) -> Path:
    """CSV that `read_returns` reads back to the bit; shorter columns end in blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(returns)
    columns = ([repr(float(value)) for value in column] for column in returns.values())
    writer.writerows(zip_longest(*columns, fillvalue=""))
    return atomic_write(path, text.getvalue().encode())


def brief(comparison: Comparison) -> dict[str, Any]:
    """The numbers a reader wants first."""
    return {
        "kind": "comparison",
        "columns": {
            s.name: {
                "n": s.n, "mean": s.mean, "deviation": s.deviation, "worst": s.worst,
                "cvar_0.05": s.cvar(0.05), "cvar_0.25": s.cvar(0.25), "median": s.median,
                "best": s.best,
            }
            for s in comparison.summaries
        },
        "dominant": comparison.dominant(),
        "supported_dominant": comparison.dominant(supported=True),
        "efficient": comparison.efficient(),
        "notes": comparison.notes,
    }  # fmt: skip


def _padded(returns: Columns) -> dict[str, Any]:
    longest = max(map(len, returns.values()))
    return {
        name: np.append(column, np.full(longest - len(column), np.nan))
        for name, column in returns.items()
    }


def check_directory(directory: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, what another command or the user has put there."""
    place = Path(directory)
    if place.is_file():
        raise InputError(f"{directory} is a file, not a directory")
    if (place / "config.json").is_file():
        config = read_json(place / "config.json")
        if not isinstance(config, dict) or config.get("kind") != "comparison":
            raise InputError(f"{directory} holds a run of another kind: choose another directory")
    elif place.is_dir() and any(p.name[0] != "." for p in place.iterdir()):
        raise InputError(f"{directory} is not empty and holds no run: choose another directory")
