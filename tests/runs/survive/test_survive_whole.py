"""Nothing lost, nothing mixed up: looks at a run, its owner, its tables, full disks, links.

Through the command line where that can be, so that the same tests tell what 0.1.0 did.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import survive_child
from survive_child import digest
from tiny import TABLE, TABLE_WORDS

import surefoot as sf
from surefoot.agents.loading import open_agent, resume
from surefoot.cli import main
from surefoot.errors import InputError, RunError
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.logs import RunLog, Watch
from surefoot.runs.tables import End, GrowingTable, read_csv

pytestmark = pytest.mark.wide

LOOKS = ["--eval-every", "50", "--eval-episodes", "2", "--watch", "start", "--watch-every", "30"]
WORDS = ["train", "Taxi-v4", "--steps", "300", "--checkpoint-every", "60", *TABLE_WORDS, *LOOKS]
TABLES = ("episodes", "evaluations", "distributions")
DERIVED = [f"{name}.{end}" for name in TABLES for end in ("csv", "parquet")]
OWN = [*DERIVED, "agent.safetensors", "summary.json", "complete.json", "config.json"]


def own_files(run: Path) -> dict[str, bytes]:
    """What two equal runs have in common, all of it."""
    return {name: (run / name).read_bytes() for name in OWN}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "run"
    assert main([*WORDS, "--out", str(out)]) == 0
    return out


# --- evaluating and watching -----------------------------------------------------------------


@pytest.mark.parametrize("name", survive_child.kinds())
def test_looking_changes_no_bit_and_takes_no_checkpoints(name, tmp_path):
    make = survive_child.kinds()[name]
    keeper, written = Checkpoints(tmp_path / "c", every=120, keep=99), []
    write = keeper._write
    keeper._write = lambda snapshot: (written.append(snapshot.step), write(snapshot))[1]
    agent = make()
    watch = Watch(agent.first_observation(0), 10)
    agent.learn(
        240, log=tmp_path / "log", eval_every=30, eval_episodes=1, watch=watch, checkpoints=keeper
    )
    assert digest(agent) == digest(make().learn(240))
    assert len(read_csv(tmp_path / "log" / "evaluations.csv")["step"]) == 8
    assert len(set(read_csv(tmp_path / "log" / "distributions.csv")["step"])) == 24
    assert len(written) <= 4  # at 0, at 120 or the end of its episode, at 240


def killed(out: Path, call: str, which: str) -> None:
    """The run, until it dies in that call."""
    code = f"from survive_child import deadly; deadly({call!r}, {which!r})\n"
    code += f"from surefoot.cli import main; main({[*WORDS, '--out', str(out)]!r})"
    here = Path(__file__).parent
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parents[1])])}
    died = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "which"),
    [("replaced", "5"), ("replaced", "evaluations.parquet"), ("replace", "complete.json")],
)
def test_a_killed_run_ends_as_if_nothing_had_happened(call, which, unbroken, tmp_path):
    """After a checkpoint; while tables are derived; just before it is complete."""
    killed(tmp_path / "run", call, which)
    assert not (tmp_path / "run" / "complete.json").exists()
    assert main([*WORDS, "--out", str(tmp_path / "run")]) == 0
    assert own_files(tmp_path / "run") == own_files(unbroken)


# --- two processes ---------------------------------------------------------------------------

HOLD = """
import sys
from surefoot.runs.files import lock_directory
lock = lock_directory(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def in_use(unbroken, tmp_path):
    """A run that another process holds."""
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    command = [sys.executable, "-c", HOLD, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        yield run
        other.kill()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_process_that_is_refused_has_touched_nothing(in_use, capsys):
    before = everything(in_use)
    more = [word if word != "300" else "900" for word in WORDS]
    for words in (more, WORDS, [*WORDS, "--existing", "overwrite"]):
        assert main([*words, "--out", str(in_use)]) == 2
        assert "is in use by" in capsys.readouterr().err
        assert everything(in_use) == before
    with pytest.raises(InputError, match="is in use by"):  # by the library, without a RunDir
        resume(in_use).learn(10, log=in_use)
    assert everything(in_use) == before


def test_more_steps_make_a_run_incomplete_until_they_are_done(unbroken, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    more = [word if word != "300" else "400" for word in WORDS]
    with monkeypatch.context() as patch:  # dies when the new configuration is there
        patch.setattr("surefoot.training.train.Checkpoints", None)
        with pytest.raises(TypeError):
            main([*more, "--out", str(run)])
    assert json.loads((run / "config.json").read_text())["steps"] == 400
    assert not (run / "complete.json").exists()
    assert not (run / "summary.json").exists()
    assert main([*more, "--out", str(run)]) == 0
    whole = tmp_path / "whole"
    assert main([*more, "--out", str(whole)]) == 0
    assert own_files(run) == own_files(whole)
    # A configuration that was put beside another's summary: not complete.
    shutil.copy(unbroken / "config.json", run / "config.json")
    assert not sf.runs.directory.RunDir.open(run).complete
    assert main([*WORDS, "--out", str(run)]) == 2  # its checkpoints are later than 300 steps


# --- tables ----------------------------------------------------------------------------------


def test_every_table_of_a_complete_run_is_whole(unbroken, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    # As a kill after the last row leaves it: nothing derived, or derived of fewer rows.
    for name in ("complete.json", "summary.json", "agent.safetensors", "episodes.parquet"):
        (run / name).unlink()
    shutil.copy(run / "episodes.csv", run / "evaluations.parquet")
    assert main([*WORDS, "--out", str(run)]) == 0
    assert own_files(run) == own_files(unbroken)


def test_a_path_is_no_pattern(unbroken, tmp_path):
    """polars would read runa/episodes.csv for run[ab]/episodes.csv."""
    polars = pytest.importorskip("polars")
    other = tmp_path / "runa"
    other.mkdir()
    (other / "episodes.csv").write_bytes((unbroken / "evaluations.csv").read_bytes())
    out = tmp_path / "run[ab]"
    assert main([*WORDS, "--out", str(out)]) == 0
    assert own_files(out) == own_files(unbroken)
    assert "length" in polars.read_parquet(unbroken / "episodes.parquet").columns


def test_a_log_of_another_run_is_not_continued(tmp_path):
    sf.TabularAgent("Taxi-v4", **TABLE).learn(90, log=tmp_path)
    before = everything(tmp_path)
    with pytest.raises(InputError, match=r"episodes\.csv goes on to step 80, this run has done 0"):
        sf.TabularAgent("Taxi-v4", **TABLE).learn(90, log=tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "episodes.csv").write_text("name,grade\nann,1\n")
    with pytest.raises(InputError, match=r"episodes\.csv: its first row is not step,episode"):
        sf.TabularAgent("Taxi-v4", **TABLE).learn(90, log=tmp_path / "mine")
    assert {k: v for k, v in everything(tmp_path).items() if "mine" not in k} == before


def test_a_checkpoint_knows_its_log(tmp_path):
    keeper = Checkpoints(tmp_path / "checkpoints", every=40)
    sf.TabularAgent("Taxi-v4", **TABLE).learn(200, log=tmp_path, checkpoints=keeper)
    rows = (tmp_path / "episodes.csv").read_bytes()
    for other in (rows.replace(b",40,", b",41,"), rows[:-9], b"", rows[:5]):
        (tmp_path / "episodes.csv").write_bytes(other)
        with pytest.raises(InputError, match=r"is not what it was at the checkpoint"):
            resume(tmp_path).learn(10, log=tmp_path)
        assert (tmp_path / "episodes.csv").read_bytes() == other
    # A row that was cut, and whole ones after the checkpoint, are written again.
    (tmp_path / "episodes.csv").write_bytes(rows + b"240,6,-4.0,40,0\r\n28")
    resume(tmp_path).learn(40, log=tmp_path)
    whole = sf.TabularAgent("Taxi-v4", **TABLE).learn(240, log=tmp_path / "whole")
    assert whole.num_timesteps == 240
    log = (tmp_path / "whole" / "episodes.csv").read_bytes()
    assert (tmp_path / "episodes.csv").read_bytes() == log


def test_rows_are_added_whole_and_read_whole(tmp_path):
    table = GrowingTable(tmp_path, "t", ("step", "value"))
    assert table.end == End()
    table.add([(1, 0.5), (20, float("nan"))])
    table.add([(300, float("inf"))])
    kept = table.end
    table.add([(4000, 1e308)])
    table.close()
    path = tmp_path / "t.csv"
    assert path.read_bytes() == b"step,value\r\n1,0.5\r\n20,nan\r\n300,inf\r\n4000,1e+308\r\n"
    assert read_csv(path)["step"].tolist() == [1, 20, 300, 4000]
    path.write_bytes(path.read_bytes()[:-9])  # 4000 cut to 40
    assert read_csv(path)["step"].tolist() == [1, 20, 300]
    again = GrowingTable(tmp_path, "t", ("step", "value"))
    assert again.end == kept
    assert (again.last_step(), path.stat().st_size) == (300, kept.size)
    again.rewind(End())
    assert again.end == End()
    assert path.read_bytes() == b""
    for text, reason in (
        (b"", "has no rows"), (b"step,value\r\n", "has no rows"), (b"step,value", "has no rows"),
        (b"1,2\n3,4\n", "does not name the columns"), (b"a,a\n1,2\n", "does not name the columns"),
        (b"a,b\n1\n2,3\n", "row 2 has 1 cells, not 2"), (b"a\n1\nx\n", "row 3: could not convert"),
        (b"a,b\n1,\xff\n", "is not CSV"), (b"\0\n1\n", ""),
    ):  # fmt: skip
        path.write_bytes(text)
        with pytest.raises(InputError, match=rf"t\.csv: .*{reason}"):
            read_csv(path)


# --- full disks ------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 7, 100])
def test_a_disk_that_is_full_leaves_whole_rows_and_one_line(
    room, unbroken, tmp_path, monkeypatch, capsys
):
    out, real, left = tmp_path / "run", os.write, [room]

    def write(descriptor: int, data) -> int:
        """A disk with room for so many bytes of logs."""
        if not os.readlink(f"/proc/self/fd/{descriptor}").endswith(".csv"):
            return real(descriptor, data)
        if not left[0]:
            raise OSError(28, "No space left on device")
        count = min(left[0], len(data))
        left[0] -= count
        return real(descriptor, bytes(data[:count]))

    monkeypatch.setattr(os, "write", write)
    assert main([*WORDS, "--out", str(out)]) == 3
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(r"surefoot: cannot write \S+\.csv: No space left on device", told)
    for name in TABLES:
        path = out / f"{name}.csv"
        assert not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    monkeypatch.undo()
    assert main([*WORDS, "--out", str(out)]) == 0
    assert own_files(out) == own_files(unbroken)


# --- links -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["episodes.csv", "distributions.csv", "checkpoints", "agent.safetensors", "config.json"]
)
def test_no_link_is_followed_out_of_a_run(name, unbroken, tmp_path, capsys):
    run, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(unbroken, run)
    for each in ("complete.json", "summary.json"):
        (run / each).unlink()
    (run / name).rename(outside)
    (run / name).symlink_to(outside)
    before = everything(tmp_path)
    assert main([*WORDS, "--out", str(run)]) == 2
    assert "is a link that leads out of" in capsys.readouterr().err
    assert everything(tmp_path) == before


def test_links_among_checkpoints_and_figures_are_not_followed(unbroken, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    newest = Checkpoints(run / "checkpoints").paths[-1]
    newest.rename(tmp_path / newest.name)
    newest.symlink_to(tmp_path / newest.name)
    assert newest not in Checkpoints(run / "checkpoints").paths
    (run / "agent.safetensors").unlink()
    assert open_agent(run).num_timesteps < 300
    (tmp_path / "figures").mkdir()
    (run / "figures").symlink_to(tmp_path / "figures")
    with pytest.raises(InputError, match="leads out of"):
        sf.runs.directory.RunDir.open(run).write_figure("f", b"", b"")
    for command in ("explain", "watch"):
        assert main([command, str(run)]) == 2
        assert "leads out of" in capsys.readouterr().err
    assert not list((tmp_path / "figures").iterdir())
    sf.runs.directory.RunDir.create(run, {}, kind="training", seeds=0, existing="overwrite")
    assert not (run / "figures").exists()
    assert (tmp_path / "figures").is_dir()


def test_two_logs_in_one_process_share_their_directory(tmp_path):
    with RunLog(tmp_path) as first, RunLog(tmp_path):
        first.begin(0, None, ("step",))
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    held = subprocess.run(command, input=b"", capture_output=True, check=True)
    assert held.stdout == b"held\n"  # given back


def test_a_disk_that_cannot_be_synced_is_told(tmp_path, monkeypatch):
    table = GrowingTable(tmp_path, "t", ("step",))
    table.add([(1,)])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write .*t\.csv: No space left on device"):
        table.sync()
