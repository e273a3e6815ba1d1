"""One comparison of a large table on all cores: `python -m benchmarks.large_tables COLUMNS ROWS`.

Prints CPU seconds of this process and of its workers, seconds of the clock, and what memory all
processes took at the most. With `--growth` it times growing tables instead, one process, and draws
how the CPU time grows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from functools import partial

import numpy as np

from benchmarks.harness import ROOT
from surefoot.comparison import compare
from surefoot.training.engines import run_jobs

SIZES = ("columns", "rows", "resamples")
GROWTH = {
    "rows": [(4, n, 1000) for n in (250, 1000, 4000, 16_000, 64_000)],
    "columns": [(k, 1000, 1000) for k in (2, 4, 8, 16, 32)],
    "resamples": [(4, 2000, b) for b in (250, 500, 1000, 2000, 4000)],
}


def table(columns: int, rows: int) -> dict[str, np.ndarray]:
    """A common factor, means and deviations of their own."""
    rng = np.random.default_rng(0)
    market = rng.normal(size=rows)
    return {
        f"c{i}": 0.5 * market + rng.normal(0.05 * rng.random(), 0.5 + rng.random(), rows)
        for i in range(columns)
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("columns", type=int, nargs="?")
    parser.add_argument("rows", type=int, nargs="?")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # the harness has this process on one core
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if options.growth:
        growth()
        return 0
    workers = min(2, os.cpu_count() or 1)
    start = time.perf_counter()
    spread = partial(run_jobs, engine="local", workers=workers)
    result = compare(table(options.columns, options.rows), spread=spread, progress=True)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak += workers * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    own, theirs = (sum(resource.getrusage(who)[:2])
                   for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))  # fmt: skip
    used = workers if theirs > 0 else 0  # few long columns are not spread
    print(json.dumps({"seconds": seconds, "own": own, "theirs": theirs, "gigabytes": peak / 2**20,
                      "workers": used, "verdicts": len(result.verdicts)}))  # fmt: skip
    return 0


def growth() -> None:
    """How the CPU time of `compare` grows, as a figure of the benchmarks' page."""
    compare(table(2, 100))
    measured: dict[str, dict[int, float]] = {}
    for name, sizes in GROWTH.items():
        measured[name] = {}
        for size in sizes:
            data, start = table(*size[:2]), time.process_time()
            compare(data, resamples=size[2])
            measured[name][size[SIZES.index(name)]] = round(time.process_time() - start, 3)
        print(name, measured[name], flush=True)
    draw_growth(measured)


def draw_growth(measured: dict[str, dict[int, float]]) -> None:
    from surefoot.plots.figures import label, new_figure, render

    figure, axes = new_figure(1, len(GROWTH), size=(11, 3.6))
    for ax, (name, points) in zip(axes[0], measured.items(), strict=True):
        ax.loglog(list(points), list(points.values()), "o-")
        ax.set_xticks(list(points), [f"{size:,}" for size in points])
        ax.minorticks_off()
        fixed = dict(zip(SIZES, GROWTH[name][-1], strict=True))
        others = ", ".join(f"{fixed[key]:,} {key}" for key in fixed if key != name)
        label(ax, others, name, "CPU seconds of compare")
    _, svg = render(figure)
    (ROOT / "docs" / "assets" / "compare-growth.svg").write_bytes(svg)


if __name__ == "__main__":
    sys.exit(main())
