"""SIGKILL at any moment, also inside a checkpoint write; then resumed, and equal in every bit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import survive_child

from surefoot.files import TEMPORARY

CHILD = Path(survive_child.__file__)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> dict[str, tuple[str, bytes]]:
    """Digest and log of each kind, trained in one go and without checkpoints."""
    folder, found = tmp_path_factory.mktemp("whole"), {}
    for name, make in survive_child.kinds().items():
        agent = make().learn(survive_child.STEPS, log=folder / name)
        found[name] = survive_child.digest(agent), (folder / name / "episodes.csv").read_bytes()
    return found


def start(folder: Path, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), *words], stdout=subprocess.PIPE
    )


def die(folder: Path, *words: str, after: float | None = None) -> bool:
    """One life of the child, killed `after` seconds of training; True if it came to its end."""
    with start(folder, *words) as child:
        assert child.stdout.readline() == b"go\n"
        if after is not None:
            time.sleep(after)
            child.send_signal(signal.SIGKILL)
        code = child.wait(timeout=120)
    assert code in (0, -signal.SIGKILL)
    return code == 0


def check(folder: Path, uninterrupted) -> None:
    while not die(folder):
        pass
    for name, (digest, log) in uninterrupted.items():
        assert (folder / f"{name}.txt").read_text() == digest, name
        assert (folder / name / "episodes.csv").read_bytes() == log, name
        kept = sorted(p.name for p in (folder / name / "checkpoints").iterdir())
        assert len(kept) == 2
        assert not [p for p in kept if p.endswith(TEMPORARY)]


def test_killed_anywhere_and_inside_a_write(tmp_path, uninterrupted):
    assert not die(tmp_path, "replace", "5")  # the temporary file is whole, and has no name yet
    assert not die(tmp_path, "fsync", "14")
    die(tmp_path, after=0.8)
    check(tmp_path, uninterrupted)


@pytest.mark.slow
def test_killed_many_times(tmp_path, uninterrupted):
    chance = random.Random(7)
    for _ in range(8):
        call = chance.choice(("replace", "replaced", "fsync"))
        die(tmp_path, call, str(chance.randrange(1, 5)))
        die(tmp_path, after=chance.uniform(0.0, 1.0))
    check(tmp_path, uninterrupted)
