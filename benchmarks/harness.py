"""How benchmarks are run and shown.

A benchmark is a module `benchmarks/bench_<name>.py` with one function:

    def run(quick: bool) -> list[Row]: ...

`quick` asks for few repeats. Everything runs
in a process of its own on one core. Import peers inside `run`; where one is missing, return a row
with `peer="OTT-JAX (not installed)"` and no `peer_seconds`.

`race` times contestants in turn, so that whatever else the machine does hits all of them; in
every turn a first call that does not count warms the caches the one before has emptied. It counts
CPU time, so that waiting does not count, and takes medians. JAX dispatches synchronously, as our
workers have it: on one core the hand-over to another thread only adds a constant to every side.

Results are merged by module into `benchmarks/results.json`; `docs/benchmarks.md` is rendered from
that file and from nothing else.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"
SHOWN = (
    "surefoot",
    "jax",
    "numpy",
    "ott-jax",
    "pot",
    "geomloss",
    "torch",
    "pysdtest",
    "sb3-contrib",
)


class Row(NamedTuple):
    """One comparison. Seconds are medians of CPU time a call."""

    name: str
    seconds: float | None  # ours
    peer: str | None = None
    peer_seconds: float | None = None
    wanted: str = ""  # the goal in words
    goal: float | None = None  # the smallest `ratio` that meets it
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer."""
        if self.peer_seconds is None or not self.seconds:
            return None
        return self.peer_seconds / self.seconds


def use_one_core() -> None:
    """Before anything imports JAX or torch: one core, one thread, no hand-over between threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in ("NPROC", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)


def race(
    contestants: dict[str, Callable[[], Any]], rounds: int, repeats: int = 3
) -> dict[str, float]:
    """Median CPU seconds of a call: in each round a turn of `repeats` calls for everyone."""
    spent: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, call in contestants.items():
            _wait(call())
            start = time.process_time()
            for _ in range(repeats):
                _wait(call())
            spent[name].append((time.process_time() - start) / repeats)
    return {name: statistics.median(times) for name, times in spent.items()}


def _wait(result: Any) -> None:
    import jax

    jax.block_until_ready(result)


def modules() -> list[str]:
    return sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))


def as_dict(row: Any) -> dict[str, Any]:
    fields = {name: getattr(row, name, default) for name, default in Row._field_defaults.items()}
    ratio, goal = row.ratio, fields["goal"]
    met = None if ratio is None or goal is None else ratio >= goal
    return {"name": row.name, "seconds": row.seconds, **fields, "ratio": ratio, "met": met}


def show(rows: Iterable[Any]) -> None:
    for row in map(as_dict, rows):
        print("  " + " | ".join(_cells(row)), flush=True)


def save(name: str, rows: Iterable[Any], about: str | None = None) -> None:
    """Merge one module's rows into the results, machine and versions beside them."""
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    stored[name] = {
        "machine": _processor(),
        "load": round(os.getloadavg()[2]),  # of the last 15 minutes
        "cores": os.cpu_count(),
        "versions": {p: v for p in SHOWN if (v := _version(p))},
        "about": _about(name) if about is None else about,
        "rows": [as_dict(row) for row in rows],
    }
    RESULTS.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n")


def render() -> None:
    """`docs/benchmarks.md` from the stored results."""
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    lines = [
        "# Benchmarks",
        "",
        "`make bench` measures these side by side: in turn, on one core, CPU time, medians, JAX",
        "dispatching synchronously. The ratio is how many times faster surefoot is than the peer.",
        "Where the machine had other work, the line below a table says its load: CPU time does not",
        "count waiting, but caches that are shared make all sides slower, so that ratios say more",
        "than seconds.",
        "Handing one call to JAX costs some 20 to 40 us whatever it does; with single calls under",
        "JAX's default dispatch that weighs on the shortest rows (SSD over the batch of 64 then",
        "takes 1/8 to 1/10 of the sort instead of 1/15).",
        "",
    ]
    for name, part in stored.items():
        versions = ", ".join(f"{p} {v}" for p, v in part["versions"].items())
        lines += [f"## {name}", "", part["about"], ""]
        if part["versions"].get("surefoot") != _version("surefoot"):
            lines += ["**Measured on an earlier version, named below; not yet on this one.**", ""]
        lines += ["| case | ours | peer | ratio | goal |"]
        lines += ["|---|---|---|---|---|"]
        lines += [f"| {' | '.join(_cells(row))} |" for row in part["rows"]]
        for file, caption in (("cost.png", "cost of a step"), ("growth.svg", "growth of the time")):
            picture = f"assets/{name}-{file}"
            if (PAGE.parent / picture).exists():
                lines += ["", f"![{caption}, {name}]({picture})"]
        load, cores = part.get("load", 0), part.get("cores", 1)
        busy = f", load average {load} on {cores} cores" if load > 1 else ""
        lines += ["", f"{part['machine']}{busy}; {versions}.", ""]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines))


def _cells(row: dict[str, Any]) -> list[str]:
    case = row["name"] + (f" ({row['note']})" if row["note"] else "")
    peer = row["peer"] or ""
    if row["peer_seconds"] is not None:
        peer = f"{peer}, {duration(row['peer_seconds'])}"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.3g}"
    verdict = {True: ": met", False: ": **not met**", None: ""}[row["met"]]
    return [case, duration(row["seconds"]), peer, ratio, row["wanted"] + verdict]


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _about(name: str) -> str:
    """The module's own words about what it measures."""
    import sys

    module = sys.modules.get(f"benchmarks.bench_{name}")
    return " ".join((module.__doc__ or "").split()) if module else ""


def _version(package: str) -> str | None:
    if package == "surefoot":  # the tree that is measured, whatever was installed
        import surefoot

        return surefoot.__version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"
