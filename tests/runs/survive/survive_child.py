"""Trains runs of all kinds, each from wherever its checkpoints are; made to be killed.

python survive_child.py FOLDER FIRST [replace|replaced|fsync|write N]

FIRST is the number of the kind to begin with, so that deaths are spread over all of them; a
negative one stands for an experiment instead.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tiny import NETWORK, TABLE

TINY, SMALL = NETWORK, TABLE | {"seed": 3}
STEPS, EVERY = 420, 70


def kinds() -> dict[str, Any]:
    import surefoot as sf

    return {
        "tabular-compiled": lambda: sf.TabularAgent("surefoot/RiskyCliff-v0", **SMALL),
        "tabular-stepped": lambda: sf.TabularAgent("Taxi-v4", **SMALL),
        "neural-compiled": lambda: sf.NeuralAgent("CartPole-v1", compiled=True, **TINY),
        "neural-gymnasium": lambda: sf.NeuralAgent("CartPole-v1", seed=5, **TINY),
    }


def digest(agent: Any) -> str:
    """All bits a run is made of, its environment's and its random states included."""
    found = hashlib.sha256()
    snapshot = agent.snapshot()
    for name in sorted(snapshot.arrays):
        array = snapshot.arrays[name]
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.tobytes())
    about = {k: v for k, v in snapshot.about.items() if k != "logs"}
    found.update(repr(sorted(about.items())).encode())
    return found.hexdigest()


def trainings() -> dict[str, Any]:
    """The same four and several environments at once as runs of `train`, evaluated and watched on
    the way."""
    import surefoot as sf

    tabular = sf.TabularConfig(**TABLE)
    neural, lanes = sf.NeuralConfig(**TINY), sf.NeuralConfig(**TINY, n_envs=3)
    looks = {"eval_every": 100, "eval_episodes": 1, "watch": ("start",), "watch_every": 50}
    looks |= {"steps": STEPS, "checkpoint_every": EVERY}
    return {
        "tabular-compiled": sf.Training("surefoot/RiskyCliff-v0", tabular, seed=3, **looks),
        "tabular-stepped": sf.Training("Taxi-v4", tabular, seed=3, **looks),
        "neural-compiled": sf.Training("CartPole-v1", neural, compiled=True, **looks),
        "neural-gymnasium": sf.Training("CartPole-v1", neural, seed=5, **looks),
        "neural-lanes": sf.Training("CartPole-v1", lanes, seed=6, **looks),
    }


def train(name: str, folder: Path) -> None:
    import surefoot as sf

    sf.train(trainings()[name], folder / name)


def experiment(folder: Path) -> None:
    """One that compiles nothing: a table, claims, a figure."""
    from surefoot.paper import theory

    theory.run(theory.TheoryConfig(trials=4), folder, existing="resume")


def own_files(run: Path) -> dict[str, bytes]:
    """What two equal runs have in common: all but checkpoints, provenance and speed."""
    files = (p for p in sorted(run.iterdir()) if p.is_file())
    return {p.name: p.read_bytes() for p in files if p.stem not in ("provenance", "speed")}


def deadly(call: str, which: str) -> None:
    """The process dies in a call: before it, or just after it for `replaced`. `which` is its
    number, or the name of the file that is replaced."""
    real, calls = getattr(os, call.removesuffix("d")), [0]

    def instead(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        now = calls[0] == int(which) if which.isdigit() else Path(args[1]).name == which
        if now and not call.endswith("d"):
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*args, **options)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(os, call.removesuffix("d"), instead)


def main(folder: Path, first: int, words: list[str]) -> None:
    import jax

    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if words:
        deadly(words[0], words[1])
    print("go", flush=True)
    if first < 0:
        return experiment(folder)
    names = list(trainings())
    for name in names[first:] + names[:first]:
        train(name, folder)
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
