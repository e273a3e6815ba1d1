"""One self-contained HTML page of a run, of a folder of runs, of a comparison or of a training.

    from surefoot.report import report

    report("results/risky-cliff")          # writes results/risky-cliff/report.html

`sources` finds what lies at the path and reads it by `stored`, which trusts no file; `training`,
`sweep`, `comparison` and `explorer` make its parts; `page` renders them by the templates. Figures
are those that `surefoot.plots` and `surefoot.paper` draw; nothing is drawn here but the explorer's
curves, by the page's own script.
"""

from __future__ import annotations

import os
from pathlib import Path

from surefoot.errors import require
from surefoot.runs.files import atomic_write

__all__ = ["default_place", "report"]


def report(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of whatever lies at `path`; returns the file's name.

    `path` is the directory of an experiment, of a comparison (`surefoot compare --out`), of a
    training or a sweep, a folder of several of these, or a file of returns. `out` is `report.html`
    in that directory by default; an earlier page is replaced completely or not at all.
    """
    require("a report", "report", "jinja2", "matplotlib")
    from surefoot.report.page import render
    from surefoot.report.sources import page_of

    return atomic_write(out or default_place(path), render(page_of(Path(path))))


def default_place(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path.with_suffix(".report.html") if path.is_file() else path / "report.html"
