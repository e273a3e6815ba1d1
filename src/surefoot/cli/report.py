"""`surefoot report RUN_DIR`: one offline HTML page of a run, a comparison or a training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.options import parse, size_of, subject
from surefoot.errors import InputError

ABOUT = (
    "One self-contained HTML page, made for a browser without a network: claims, figures, and for "
    "cliffs and agents the states to click on."
)


@dataclass(frozen=True)
class ReportOptions:
    run: Annotated[Path | None, tyro.conf.Positional, subject("RUN_DIR")] = None
    """Directory of an experiment, a comparison, a training or a sweep, a folder of several of
    these, or a CSV or Parquet file of returns."""
    out: Path | None = None
    """The page; by default report.html in RUN_DIR. An earlier one is replaced."""


def main(words: list[str]) -> int:
    options = parse(ReportOptions, words, "surefoot report", ABOUT)
    if options.run is None:
        raise InputError("report: name a run directory (surefoot report --help)")
    from surefoot.report import report

    made = report(options.run, options.out)
    print(f"{made} ({size_of(made.stat().st_size)}): open it in a browser")
    return 0
