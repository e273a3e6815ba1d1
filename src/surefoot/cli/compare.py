"""`surefoot compare FILE`: columns of returns, by dominance and by a test."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.options import parse, subject
from surefoot.errors import InputError

if TYPE_CHECKING:
    from surefoot.comparison import Comparison


@dataclass(frozen=True)
class CompareOptions:
    file: Annotated[Path | None, tyro.conf.Positional, subject("FILE")] = None
    """CSV or Parquet, one column of returns per policy, portfolio or strategy."""
    columns: tuple[str, ...] = ()
    """Only these columns."""
    index: str | None = None
    """The column of dates or row labels, where it is not recognised; none: there is none."""
    missing: Literal["error", "drop", "pair"] = "error"
    """Gaps before the end of a column: refuse them, drop each column's own, or leave out rows in
    which any column has one."""
    prices: bool = False
    """The values are prices: compare their returns."""
    returns: bool = False
    """The values are returns, even if they look like prices."""
    decimal: Literal["auto", "point", "comma"] = "auto"
    """The decimal sign, where the file does not settle it."""
    tolerance: float = 0.0
    """Shortfalls up to this, in units of the returns, do not count."""
    resamples: int = 1000
    """Bootstrap resamples of the test."""
    level: float = 0.05
    """Significance level, corrected over pairs."""
    correction: Literal["holm", "romano-wolf"] = "holm"
    """For many pairs: Holm's, or Romano and Wolf's step-down, which needs fewer resamples."""
    further: bool = False
    """More tests: by subsampling, recentring and contact sets, also at order 3; almost dominance
    with intervals; a ranking; whether no column dominates another."""
    paired: bool | None = None
    """Rows belong together, such as the same day or seed; the default where lengths are equal."""
    dependence: str = "auto"
    """Rows depend on those before: auto looks at each column, none, or the rows of a block."""
    blocks: Literal["circular", "stationary"] = "circular"
    """Blocks of one length, or of random lengths."""
    trim: float | None = None
    """Share of the values left out at an end of the range on which dominance is established."""
    seed: int = 0
    """Seed of the bootstrap."""
    engine: Literal["serial", "local", "ray"] = "serial"
    """Where pairs are computed: in this process, in processes of this machine, on a Ray cluster."""
    workers: int | None = None
    """Worker processes; one per core by default."""
    address: str | None = None
    """Of the engine ray: local, auto, host:port or ray://host:port; a local one by default."""
    out: Path | None = None
    """Directory for returns.csv, comparison.json, .md, the figures and summary.json."""


def main(words: list[str]) -> int:
    text = "Compare columns of returns by first- and second-order stochastic dominance."
    options = parse(CompareOptions, words, "surefoot compare", text)
    if options.file is None:
        raise InputError("compare: name a CSV or Parquet file (surefoot compare --help)")
    if options.prices and options.returns:
        raise InputError("compare: --prices or --returns, not both")
    from functools import partial

    from surefoot.comparison import compare_file
    from surefoot.training.engines import check_engine, run_jobs

    place: dict[str, Any] = {
        "engine": options.engine,
        "address": options.address,
        "workers": options.workers,
    }
    check_engine(**place)
    figure = options.out is not None and can_draw()
    result = compare_file(
        options.file,
        out=options.out,
        columns=options.columns or None,
        index=options.index,
        missing=options.missing,
        prices=True if options.prices else False if options.returns else None,
        decimal=options.decimal,
        tolerance=options.tolerance,
        resamples=options.resamples,
        level=options.level,
        correction=options.correction,
        further=options.further,
        paired=options.paired,
        dependence=int(options.dependence) if options.dependence.isdigit() else options.dependence,
        blocks=options.blocks,
        trim=options.trim,
        seed=options.seed,
        progress=True,
        spread=None if options.engine == "serial" else partial(run_jobs, **place),
    )
    print(in_terminal(result, options.out))
    if options.out is not None:
        print(f"\nreturns, verdicts{', figures' * figure} and summary are in {options.out}")
        print(f"one page of it all: surefoot report {options.out}")
    return 0


def in_terminal(result: Comparison, out: Path | None, name: str = "comparison.md") -> str:
    """The result as wide as the terminal, or as usual for a file; `name` is the file in `out` that
    has every p-value."""
    from surefoot.comparison.words import WIDTH, text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    where = "run again with --out DIR, then they are in DIR/comparison.md"
    return text(result, max(60, width), where if out is None else str(out / name))


def can_draw() -> bool:
    """Whether a saved comparison will have figures; says so before anything is computed."""
    if find_spec("matplotlib") is None:
        print("no figures will be drawn: they need pip install 'surefoot[report]'", file=sys.stderr)
        return False
    return True
