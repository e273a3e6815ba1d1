"""This tree against another checkout, in one interleaved run.

    python -m benchmarks.versus ../surefoot-0.1.0
    python -m benchmarks.versus ../surefoot-0.1.0 neural compare --rounds 15
    python -m benchmarks.versus .          # against itself: how much of a ratio is noise
    python -m benchmarks.versus ../surefoot-0.1.0 --save 0.1.0    # a table of docs/benchmarks.md

Each side is a process of its own that finds its own `surefoot` (PYTHONPATH) and runs the same
cases, `benchmarks/versus_cases.py`. The sides take turns on one and the same core, so whatever
else the machine does hits both. CPU time is counted, and medians are shown. A ratio above 1 says
that this tree is faster; the range beside it holds the middle half of the ratios by round.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, Row, duration, render, save

THREADS = ("NPROC", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Measure = Callable[[], float]
GOALS = {"compare, 4 columns of 10,000, 1,000 resamples": ("at most 40 % of its time", 2.5)}


class Unable(Exception):
    """A side cannot run a case."""


class Ratio(NamedTuple):
    """One case on both sides; CPU seconds of every round."""

    case: str
    here: list[float]
    there: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.there) / statistics.median(self.here)

    @property
    def spread(self) -> tuple[float, float]:
        """Quartiles of the ratios by round."""
        ratios = [b / a for a, b in zip(self.here, self.there, strict=True)]
        if len(ratios) == 1:
            return ratios[0], ratios[0]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high


def race(case: str, here: Measure, there: Measure, rounds: int) -> Ratio:
    """Turns of both sides; who begins changes from round to round."""
    spent: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            spent[side].append((here, there)[side]())
    return Ratio(case, *spent)


# --- a side ----------------------------------------------------------------------------------


def source_of(checkout: Path) -> Path:
    """The folder that holds the package, from a checkout or from that folder itself."""
    for folder in (checkout / "src", checkout):
        if (folder / "surefoot" / "__init__.py").is_file():
            return folder.resolve()
    raise SystemExit(f"{checkout}: no src/surefoot in it")


def environment(source: Path, **more: str) -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(source), **more}


def one_core() -> None:
    """Called in a child before it starts: both sides share the last core we may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


@contextmanager
def worker(source: Path, log: Any) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A process that measures cases; gives the function that asks it."""
    command = [sys.executable, "-m", "benchmarks.versus_cases"]
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment(source), preexec_fn=one_core, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None

    def ask(case: str) -> dict[str, Any]:
        child.stdin.write(case + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
        if not line:
            raise SystemExit(f"the worker of {source} has ended: see {log.name}")
        answer = json.loads(line)
        if "error" in answer:
            raise Unable(answer["error"])
        found = Path(answer.get("ready", source))
        assert found.is_relative_to(source), f"{found} is not in {source}"
        return answer

    try:
        yield ask
    finally:
        child.stdin.close()
        child.wait()


# --- whole commands --------------------------------------------------------------------------

_CLI = "import sys; from surefoot.cli import main; sys.exit(main(sys.argv[1:]))"
_TRAIN = ["-c", _CLI, "train", "CartPole-v1", "--steps", "300", "--seed", "0"]
COMMANDS: dict[str, tuple[list[str], str]] = {  # arguments of Python, which cache
    "start-up: python -c pass": (["-c", "pass"], "default"),
    "start-up: import surefoot": (["-c", "import surefoot"], "default"),
    "start-up: surefoot train --help": (["-c", _CLI, "train", "--help"], "default"),
    "300-step train, no compile cache": (_TRAIN, "none"),
    "300-step train, warm compile cache": (_TRAIN, "own"),
    "300-step train, second time, as installed": (_TRAIN, "default"),
}


def command_timer(source: Path, words: list[str], cache: str, folder: Path) -> Measure:
    """CPU seconds of a command, children included, after one run that fills the caches.

    `cache` is where compiled programs are kept: nowhere, in a folder that JAX was told, or
    wherever this version keeps them if it is told nothing (its user's home is `folder`).
    """
    more = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    known = environment(source, **more)
    for name in [n for n in known if n.startswith(("JAX_", "SUREFOOT_"))]:
        del known[name]
    if cache == "none":
        known["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    elif cache == "own":
        known["JAX_COMPILATION_CACHE_DIR"] = str(folder / "jax")
        known["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

    def measure() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as place, open(folder / "log", "w") as log:
            out = ["--out", f"{place}/run"] if "train" in words and "--help" not in words else []
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, *words, *out], env=known, cwd=place, preexec_fn=one_core,
                stdout=log, stderr=log, check=False,
            )  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            last = (folder / "log").read_text().strip().splitlines()[-1:]
            raise Unable(f"exit code {done.returncode}: {' '.join(last)}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    measure()
    return measure


# --- all of it -------------------------------------------------------------------------------


def case_names(source: Path) -> list[str]:
    """The cases, without importing JAX into this process."""
    text = "from benchmarks.versus_cases import CASES; print('\\n'.join(CASES))"
    shown = subprocess.check_output(
        [sys.executable, "-c", text], cwd=ROOT, env=environment(source), text=True
    )
    return [*shown.splitlines(), *COMMANDS]


def run(there: Path, names: list[str], rounds: int, pairs: int) -> Iterator[Ratio]:
    """The chosen cases; each over `pairs` fresh pairs of processes with `rounds` turns each."""
    here = source_of(ROOT)
    with tempfile.TemporaryDirectory(prefix="surefoot-versus-") as place, ExitStack() as stack:
        folder = Path(place)
        log = stack.enter_context(open(folder / "workers.log", "w"))
        for name in names:
            try:
                if name in COMMANDS:
                    yield _commands(name, here, there, folder, max(rounds // 2, 3))
                else:
                    yield _workers(name, here, there, log, rounds, pairs)
            except Unable as error:
                print(f"  {name}: {error}", file=sys.stderr, flush=True)


def _workers(name: str, here: Path, there: Path, log: Any, rounds: int, pairs: int) -> Ratio:
    found = Ratio(name, [], [])
    for _ in range(pairs):
        with worker(here, log) as ours, worker(there, log) as theirs:
            ours(name), theirs(name)
            part = race(name, *(lambda ask=ask: ask(name)["seconds"] for ask in (ours, theirs)),
                        rounds)  # fmt: skip
        found.here.extend(part.here)
        found.there.extend(part.there)
    return found


def _commands(name: str, here: Path, there: Path, folder: Path, rounds: int) -> Ratio:
    words, cache = COMMANDS[name]
    timers = []
    for side, source in (("here", here), ("there", there)):
        (folder / side).mkdir(exist_ok=True)
        timers.append(command_timer(source, words, cache, folder / side))
    return race(name, *timers, rounds)


def cells(row: Ratio) -> tuple[str, ...]:
    low, high = row.spread
    here, there = statistics.median(row.here), statistics.median(row.there)
    return row.case, duration(here), duration(there), f"{row.ratio:.2f}", f"{low:.2f} - {high:.2f}"


def keep(rows: list[Ratio], name: str) -> None:
    """The table of `docs/benchmarks.md` that shows this tree beside the version called `name`."""
    about = (
        f"This version beside {name}: `python -m benchmarks.versus`, two processes that take turns "
        "on one core. CPU time of a step, a call or a command; above 1 this version is faster. "
        "In brackets: the middle half of the ratios by round. `python -c pass` is the same program "
        "on both sides: how far its ratio lies from 1 is noise. SSD on particles that are "
        "sorted already is slower than in 0.1.0: it adds float32 in float64, twice the bytes in "
        "each of its steps (0.17 us a step instead of 0.10 for 64 x 4 actions), since sums in "
        "float32 gave wrong answers. Where particles are sorted first, the sort hides it."
    )
    shown = []
    for row in rows:
        here, there = statistics.median(row.here), statistics.median(row.there)
        low, high = row.spread
        goal = GOALS.get(row.case, ("", None))
        shown.append(Row(row.case, here, name, there, *goal, f"{low:.2f} to {high:.2f}"))
    save(f"versus {name}", shown, about)
    render()


HEAD = ("case", "this tree", "other", "ratio", "middle half")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versus", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("other", type=Path, help="a checkout of another version, or its src")
    parser.add_argument("only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side in a process")
    parser.add_argument("--pairs", type=int, default=2, help="fresh pairs of processes a case")
    parser.add_argument("--out", type=Path, help="JSON file for every measured number")
    parser.add_argument(
        "--save", metavar="NAME", help="put it on the page; NAME: the other version"
    )
    parser.add_argument("--list", action="store_true", help="only name the cases")
    options = parser.parse_args()
    there = source_of(options.other)
    names = case_names(there)
    if options.only:
        names = [name for name in names if any(part in name for part in options.only)]
    if options.list or not names:
        print("\n".join(names) or "no case has that in its name")
        return 0 if names else 2
    width, begin, rows = max(map(len, names)), time.monotonic(), []
    for head in (HEAD, ("-" * width, *["-" * len(h) for h in HEAD[1:]])):
        print(_line(head, width), flush=True)
    for row in run(there, names, options.rounds, options.pairs):
        rows.append(row)
        print(_line(cells(row), width), flush=True)
    print(f"{len(rows)} of {len(names)} cases, {(time.monotonic() - begin) / 60:.0f} minutes")
    if options.save:
        keep(rows, options.save)
    if options.out:
        kept = [{**row._asdict(), "ratio": row.ratio, "spread": row.spread} for row in rows]
        options.out.write_text(json.dumps({"other": str(options.other), "rows": kept}, indent=1))
    return 0 if len(rows) == len(names) else 1


def _line(words: tuple[str, ...], width: int) -> str:
    case, *numbers = words
    return f"| {case:<{width}} | " + " | ".join(f"{word:>11}" for word in numbers) + " |"


if __name__ == "__main__":
    sys.exit(main())
