"""One self-contained HTML page of a run, of a folder of runs, of a comparison or of a training.

from surefoot.report import report

report("results/risky-cliff")          # writes results/risky-cliff/report.html
"""

from __future__ import annotations

import os
from pathlib import Path

from surefoot.runs.files import atomic_write

__all__ = ["default_place", "report"]


def report(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of whatever lies at `path`; gives the file's name.

    `path` is the directory of an experiment, of a comparison (`surefoot compare --out`), of a
    training, a folder of several of these, or a file of returns. `out` is `report.html` in that
    directory unless given; what was there is replaced, whole or not at all.
    """
    from surefoot.report.page import render
    from surefoot.report.sources import page_of

    page = page_of(Path(path))
    return atomic_write(out or default_place(path), render(page))


def default_place(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path.with_suffix(".report.html") if path.is_file() else path / "report.html"
