"""SIGKILL at any moment, also inside a checkpoint write; then resumed, and equal in every bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import survive_child

from surefoot.runs.files import TEMPORARY

pytestmark = pytest.mark.wide

CHILD = Path(survive_child.__file__)
ROUNDS = int(os.environ.get("SOAK_ROUNDS", "1"))  # of 20 deaths; docs/surviving.md says of how many


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> dict[str, dict[str, bytes]]:
    """The files of each kind of run, trained in one go."""
    folder, found = tmp_path_factory.mktemp("whole"), {}
    for name in survive_child.trainings():
        survive_child.train(name, folder)
        found[name] = survive_child.own_files(folder / name)
        assert len(found[name]) == 12  # eight tables, config, summary, complete, agent
    return found


def die(folder: Path, first: int, *words: str, after: float | None = None) -> bool:
    """One life of the child, killed `after` seconds of training; True if it came to its end."""
    command = [sys.executable, str(CHILD), str(folder), str(first), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"go\n"
        if after is not None:
            time.sleep(after)
            child.send_signal(signal.SIGKILL)
        code = child.wait(timeout=600)
    assert code in (0, -signal.SIGKILL)
    return code == 0


def check(folder: Path, uninterrupted) -> None:
    assert die(folder, 0)
    for name, files in uninterrupted.items():
        assert survive_child.own_files(folder / name) == files, name
        kept = sorted(p.name for p in (folder / name / "checkpoints").iterdir())
        assert 1 <= len(kept) <= 3
        assert not [p for p in kept if p.endswith(TEMPORARY)]


@pytest.mark.slow
def test_killed_anywhere_and_inside_a_write(tmp_path, uninterrupted):
    assert not die(tmp_path, 3, "replace", "4")  # the temporary file is whole, without its name
    assert not die(tmp_path, 1, "fsync", "6")
    die(tmp_path, 0, after=1.0)
    check(tmp_path, uninterrupted)


@pytest.mark.slow
def test_killed_many_times(tmp_path, uninterrupted):
    """Before and after a rename, in a sync, before a row of a table: at random ones of these, so
    that on a slow machine, too, each death falls into the training."""
    chance = random.Random(7)
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        for first in range(len(uninterrupted)):
            for call, most in (("replace", 5), ("replaced", 5), ("fsync", 5), ("write", 40)):
                assert not die(folder, first, call, str(chance.randrange(1, most)))
        check(folder, uninterrupted)


@pytest.mark.slow
def test_a_killed_experiment_ends_as_if_nothing_had_happened(tmp_path):
    """After its table, before its claims are there, and before the mark of its end is."""
    survive_child.experiment(tmp_path / "whole")
    for call, which in (
        ("replaced", "results.parquet"), ("replace", "claims.json"), ("replace", "complete.json"),
    ):  # fmt: skip
        assert not die(tmp_path / "run", -1, call, which)
        assert not (tmp_path / "run" / "complete.json").exists()
    survive_child.experiment(tmp_path / "run")
    assert survive_child.own_files(tmp_path / "run") == survive_child.own_files(tmp_path / "whole")
