"""Folders that somebody changed, disks that are full, two processes: one line, or all of it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import TABLE_WORDS

import surefoot as sf
from surefoot.cli import main
from surefoot.report import report

pytestmark = pytest.mark.slow


SMALL = ["train", "Taxi-v4", "--steps", "120", "--checkpoint-every", "50", *TABLE_WORDS,
         "--eval-every", "60", "--eval-episodes", "1", "--watch", "start",
         "--watch-every", "60"]  # fmt: skip
OWN = ["agent.safetensors", "complete.json", "config.json", "distributions.csv",
       "distributions.parquet", "episodes.csv", "episodes.parquet", "evaluations.csv",
       "evaluations.parquet", "evidence.csv", "evidence.parquet", "summary.json"]  # fmt: skip


def own_files(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in OWN}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("small") / "run"
    assert main([*SMALL, "--out", str(out)]) == 0
    return out


class FullDisk:
    """Each call that can fail for want of room, below one directory; the one numbered fails."""

    def __init__(self, below: Path, patch: pytest.MonkeyPatch) -> None:
        self.below, self.calls, self.fails = str(below), 0, 0
        for name in ("write", "fsync", "replace", "open", "link", "mkdir"):
            patch.setattr(os, name, self._spoilt(name, getattr(os, name)))

    def fail(self, at: int) -> None:
        """The call of that number from now on; none if it is 0."""
        self.calls, self.fails = 0, at

    def _spoilt(self, name: str, real):
        def call(*args, **options):
            creates = args[1] & os.O_CREAT if name == "open" else name != "mkdir" or not there(args)
            printed = name == "write" and args[0] < 3
            if creates and not printed and self.below in _place(name, args):
                self.calls += 1
                if self.calls == self.fails:
                    raise OSError(28, "No space left on device")
            return real(*args, **options)

        return call


def there(args) -> bool:
    return os.path.isdir(args[0])


def _place(name: str, args) -> str:
    if name in ("write", "fsync"):
        return os.readlink(f"/proc/self/fd/{args[0]}")
    return os.fspath(args[1] if name == "link" else args[0])


def test_the_disk_is_full_at_every_write(unbroken, tmp_path, monkeypatch, capsys):
    """The run ends with one line; started again it ends as if nothing had happened."""
    disk, codes = FullDisk(tmp_path, monkeypatch), []
    for at in range(1, 200):
        out = tmp_path / f"run{at}"
        disk.fail(at)
        codes.append(main([*SMALL, "--out", str(out)]))
        told = capsys.readouterr().err.splitlines()[-1]
        if codes[-1] == 0:
            break
        assert codes[-1] == 3, told
        assert told.startswith("surefoot: cannot ")
        assert "No space left on device" in told
        disk.fail(0)
        assert main([*SMALL, "--out", str(out)]) == 0
        assert own_files(out) == own_files(unbroken), at
        shutil.rmtree(out)
    assert codes[-1] == 0
    assert len(codes) > 30


OTHERS = (
    "compare {returns} --resamples 100 --out {out}",  # and evaluate: the same files
    "explain {run} --out {out}/why.png",  # as report and watch: one file
    "reproduce theory --trials 4 --out {out}",
    "sweep --env surefoot/RiskyCliff-v0 --agent tabular --steps 40 --set memory=4 --set horizon=40 "
    "--set particles=4 --grid gamma=0.9,1.0 --seeds 0:2 --engine serial --out {out}",
)


@pytest.mark.parametrize("command", OTHERS, ids=lambda text: text.split()[0])
def test_the_disk_is_full_at_every_write_of_other_commands(
    command, unbroken, tmp_path, monkeypatch, capsys
):
    (tmp_path / "returns.csv").write_text("a,b\n" + "1,2\n2,3\n3,5\n" * 8)
    # What is drawn is not the question here, and takes most of the time.
    monkeypatch.setattr("surefoot.plots.figures.render", lambda figure: (b"png", b"svg"))
    disk, codes = FullDisk(tmp_path / "out", monkeypatch), []
    while not codes or disk.calls >= len(codes):  # until a number is not reached
        out = tmp_path / f"out{len(codes)}"
        words = command.format(out=out, run=unbroken, returns=tmp_path / "returns.csv").split()
        disk.fail(len(codes) + 1)
        codes.append(main(words))
        told, calls = capsys.readouterr().err.splitlines(), disk.calls
        if codes[-1]:
            assert codes[-1] == 3, told
            assert told[-1].startswith("surefoot: cannot ")
            assert "No space left on device" in told[-1]
            disk.fail(0)
            assert main(words) == 0, capsys.readouterr().err
            disk.calls = calls
        shutil.rmtree(out, ignore_errors=True)
    assert codes[-1] == 0
    # Where a file system has no links a name is given otherwise: those of a sweep's four results.
    assert codes.count(0) == 1 + 4 * command.startswith("sweep")
    assert len(codes) > (3 if "why.png" in command else 15)


@pytest.mark.filterwarnings("ignore:passed over")
def test_hostile_folders(unbroken, tmp_path):
    """A file of a run is cut, changed, emptied, or is a pipe, a folder or a link: an error of
    ours or a page, and nothing outside is touched."""
    chance, outside = random.Random(1), tmp_path / "outside"
    outside.write_text("precious")
    names = [str(p.relative_to(unbroken)) for p in sorted(unbroken.rglob("*")) if p.is_file()]
    outcomes = {"page": 0, "told": 0}
    for i in range(30):
        run = tmp_path / "run"
        shutil.copytree(unbroken, run)
        path, how = run / names[i % len(names)], chance.randrange(8)
        data = bytearray(path.read_bytes())
        if how == 0:
            path.write_bytes(data[: chance.randrange(len(data))])
        elif how == 1:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(data)
        elif how == 2:
            path.write_bytes(chance.choice([b"", b"[" * 10**5, b"{}", b"null", b"\xff" * 99]))
        else:
            path.unlink()
        if how == 3:
            os.mkfifo(path)
        elif how == 4:
            path.mkdir()
        elif how in (5, 6):
            path.symlink_to(chance.choice([outside, "/dev/zero", path.name, ".."]))
        if chance.random() < 0.5 and not (run / "complete.json").is_dir():
            (run / "complete.json").unlink(missing_ok=True)
        for act in (
            lambda r=run: report(r),
            lambda r=run: sf.agents.loading.open_agent(r),
            lambda r=run: sf.train(training(), r),
        ):
            try:
                act()
                outcomes["page"] += 1
            except sf.SurefootError:
                outcomes["told"] += 1
        assert outside.read_text() == "precious"
        shutil.rmtree(run)
    assert min(outcomes.values()) > 7


def training() -> sf.Training:
    config = sf.TabularConfig(memory=4, particles=4, horizon=40)
    looks = {"eval_every": 60, "eval_episodes": 1, "watch": ("start",), "watch_every": 60}
    return sf.Training("Taxi-v4", config, steps=120, checkpoint_every=50, **looks)


def test_two_processes_at_once(unbroken, tmp_path):
    start = "from surefoot.cli import run; run()"
    command = [sys.executable, "-c", start, *SMALL, "--out", str(tmp_path / "run")]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    told = [(p.communicate()[1].decode(), p.returncode) for p in processes]
    assert 0 in [code for _, code in told]
    for text, code in told:  # the second is refused, or came when all was done
        assert code == 0 or (code == 2 and "is in use by" in text)
    assert own_files(tmp_path / "run") == own_files(unbroken)
