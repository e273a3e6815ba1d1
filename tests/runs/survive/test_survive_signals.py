"""Ctrl-C, SIGTERM, a full disk, a read-only directory, two processes in one directory."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import gymnasium as gym
import pytest
import survive_child
from survive_child import EVERY, digest
from tiny import TABLE

import surefoot as sf
from surefoot.agents.loading import resume
from surefoot.cli import main
from surefoot.errors import InputError, Interrupted, RunError
from surefoot.runs import session
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.directory import RunDir
from surefoot.runs.files import lock_directory
from surefoot.runs.session import resumable, stopping
from surefoot.runs.tables import read_csv
from surefoot.training.sweep import Sweep, run_sweep

pytestmark = pytest.mark.wide


def ask(number: int):
    """A callback that sends the process a signal once 100 steps are done."""

    def callback(agent, *_):
        if agent.num_timesteps >= 100 and not sent:
            sent.append(os.kill(os.getpid(), number))

    sent: list[None] = []
    return callback


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["tabular-stepped", "neural-gymnasium"])
def test_a_signal_saves_and_says_how_to_resume(name, number, tmp_path, capfd):
    make = survive_child.kinds()[name]
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught:
        make().learn(100_000, callback=ask(number), checkpoints=Checkpoints(tmp_path, every=EVERY))
    assert signal.getsignal(number) is before
    assert caught.value.exit_code == 130
    path = caught.value.path
    again = resume(tmp_path)
    step = again.num_timesteps
    kind = type(again).__name__
    assert str(caught.value) == (
        f"interrupted at step {step}, saved {path}; go on with {kind}.resume({str(tmp_path)!r})"
    )
    assert path == Checkpoints(tmp_path).latest()
    assert 100 <= step < 1000
    assert "Ctrl-C again stops at once" in capfd.readouterr().err
    assert digest(again.learn(40)) == digest(make().learn(step + 40))


def test_the_hint_is_the_callers(tmp_path):
    keeper = Checkpoints(tmp_path, hint="surefoot train --out here")
    with pytest.raises(Interrupted, match="go on with surefoot train --out here"):
        survive_child.kinds()["tabular-stepped"]().learn(
            9_999, callback=ask(signal.SIGINT), checkpoints=keeper
        )


@pytest.mark.parametrize("kind", ["neural-compiled", "neural-gymnasium", "tabular-compiled"])
def test_ctrl_c_without_checkpoints_leaves_the_agent_whole(kind, request):
    """A compiled call that is broken off would have deleted its arrays."""
    agent, handler = survive_child.kinds()[kind](), signal.default_int_handler
    # Of a process in the background a shell has Ctrl-C ignored, and so would `learn`.
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, handler)
    with pytest.raises(Interrupted, match="no checkpoints were being kept") as caught:
        agent.learn(99_999, callback=ask(signal.SIGINT))
    assert caught.value.path is None
    assert signal.getsignal(signal.SIGINT) is handler
    before = agent.num_timesteps
    assert agent.learn(30).num_timesteps == before + 30
    said = r"what is finished is in here; .* same command"
    with pytest.raises(Interrupted, match=said), resumable("here"):
        agent.learn(99_999, callback=ask(signal.SIGINT))


def test_stopping_without_checkpoints_and_too_late():
    make = survive_child.kinds()["tabular-stepped"]
    with stopping(), pytest.raises(Interrupted, match="no checkpoints were being kept"):
        make().learn(9_999, callback=ask(signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt), stopping():
        os.kill(os.getpid(), signal.SIGINT)  # nothing was learning
    with stopping() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.asked == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            stop(signal.SIGINT, None)  # the second one does not wait
        stop.met = True
    thread = threading.Thread(target=lambda: stopping().__enter__())
    thread.start()  # elsewhere it does nothing, and does not fail
    thread.join()


class Endless(gym.Env):
    """Episodes of ten steps in training; when it is evaluated, they do not end."""

    observation_space = gym.spaces.Discrete(3)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, evaluated: bool = False) -> None:
        self.evaluated, self.clock = evaluated, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock = 0
        return 0, {}

    def step(self, action):
        self.clock += 1
        if self.evaluated and self.clock == 100:
            os.kill(os.getpid(), signal.SIGTERM)
        return self.clock % 3, float(action), not self.evaluated and self.clock == 10, False, {}


def test_an_evaluation_without_an_end_is_given_up_and_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "PATIENCE", 0.2)
    keeper = Checkpoints(tmp_path / "c", every=20)

    def making(endless: bool):
        """Of the environments it makes, the first is trained in, later ones evaluate."""
        made: list[Endless] = []

        def make() -> Endless:
            made.append(Endless(endless and bool(made)))
            return made[-1]

        return make

    own = TABLE | {"horizon": 1_000_000}  # steps an evaluation's episode may have
    options = {"log": tmp_path / "log", "eval_every": 60, "eval_episodes": 1}
    with pytest.raises(Interrupted, match=r"at step 60, step \d+ is saved: .*; go on with Tab"):
        sf.TabularAgent(making(True), **own).learn(100, checkpoints=keeper, **options)
    assert not (tmp_path / "log" / "evaluations.csv").exists()
    again = sf.TabularAgent.resume(keeper.directory, making(False))
    again.learn(100 - again.num_timesteps, checkpoints=keeper, **options)
    assert read_csv(tmp_path / "log" / "evaluations.csv")["step"].tolist() == [60]
    assert digest(again) == digest(sf.TabularAgent(making(False), **own).learn(100))


def test_a_second_ctrl_c_says_what_is_saved(tmp_path):
    keeper = Checkpoints(tmp_path, every=40)

    def twice(agent, *_):
        if agent.num_timesteps >= 100:
            raise KeyboardInterrupt

    said = r"step (\d+) is saved: .*step-0*\1\.safetensors; go on"  # one may be passed over
    with pytest.raises(Interrupted, match=said):
        survive_child.kinds()["tabular-stepped"]().learn(400, callback=twice, checkpoints=keeper)


# --- disks -------------------------------------------------------------------------------


def mount(folder, *options: str) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    if not mount(folder, "-o", "size=4m"):
        pytest.skip("no right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_told_and_the_last_checkpoint_stays(small_disk):
    agent = survive_child.kinds()["tabular-stepped"]().learn(40)
    keeper = Checkpoints(small_disk / "checkpoints", every=40, keep=1)
    agent.learn(40, checkpoints=keeper)
    good, step = digest(resume(small_disk)), agent.num_timesteps
    rest = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(rest.f_bavail * rest.f_frsize - 50_000))
    with pytest.raises(RunError, match=r"No space left on device; the last checkpoint is step-"):
        agent.learn(80, checkpoints=keeper)
    again = resume(small_disk)
    assert (again.num_timesteps, digest(again)) == (step, good)
    assert [p.name for p in (small_disk / "checkpoints").iterdir()] == [keeper.latest().name]
    (small_disk / "ballast").unlink()
    agent.learn(40, checkpoints=keeper)  # nothing was lost in memory either
    assert keeper.latest().name == f"step-{agent.num_timesteps:012d}.safetensors"


def test_a_directory_that_became_read_only(small_disk):
    agent = survive_child.kinds()["tabular-stepped"]().learn(40)
    keeper = Checkpoints(small_disk / "checkpoints", every=40, keep=1)
    agent.learn(40, checkpoints=keeper)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(RunError, match="Read-only file system; the last checkpoint is step-"):
        agent.learn(40, checkpoints=keeper)
    with pytest.raises(RunError, match=r"cannot make .*: Read-only file system"):
        agent.learn(40, checkpoints=Checkpoints(small_disk / "other"))
    assert resume(small_disk).num_timesteps == 80


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_an_error_in_the_background_reaches_learn(number, tmp_path, monkeypatch):
    agent = survive_child.kinds()["tabular-stepped"]().learn(40)
    keeper = Checkpoints(tmp_path, every=10)
    main, real = threading.current_thread(), os.fsync

    def fsync(descriptor: int) -> None:
        if threading.current_thread() is not main:
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(RunError, match=f"{os.strerror(number)}; the last checkpoint is"):
        agent.learn(5_000, checkpoints=keeper)
    assert agent.num_timesteps < 5_000
    monkeypatch.undo()
    assert resume(tmp_path).num_timesteps == 40
    assert [p.suffix for p in tmp_path.iterdir()] == [".safetensors"]


# --- two processes -----------------------------------------------------------------------


HOLD = """
import sys, time
from surefoot.runs.files import lock_directory
lock = lock_directory(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_process_is_refused_by_name(tmp_path):
    make = survive_child.kinds()["tabular-stepped"]
    keeper = Checkpoints(tmp_path / "run" / "checkpoints", every=20)
    agent = make().learn(40, checkpoints=keeper)
    for folder in (tmp_path / "run", keeper.directory):
        command = [sys.executable, "-c", textwrap.dedent(HOLD), str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            assert other.stdout.readline() == b"held\n"
            used = rf"is in use by (process {other.pid}|another process): wait for it"
            if folder == keeper.directory:
                with pytest.raises(InputError, match=used):
                    agent.learn(20, checkpoints=keeper)
                assert resume(folder).num_timesteps == 40  # reading is free
            else:
                with pytest.raises(InputError, match=used):
                    RunDir.create(folder, {"a": 1}, kind="sweep", seeds=0)
            other.kill()
    agent.learn(20, checkpoints=keeper)  # a killed process holds nothing


def test_a_run_directory_is_given_back(tmp_path):
    run = RunDir.create(tmp_path / "run", {"a": 1}, kind="sweep", seeds=0)
    again = RunDir.create(run.path, {"a": 1}, kind="sweep", seeds=0, existing="resume")
    assert again.lock is run.lock  # one process does not lock itself out
    assert sorted(os.listdir(run.path)) == ["config.json", "provenance.json"]
    again.mark_complete()
    command = "import sys; from surefoot.runs.files import lock_directory as f; f(sys.argv[1])"
    subprocess.run([sys.executable, "-c", command, str(run.path)], check=True)
    with pytest.raises(RunError, match="cannot use"):
        lock_directory(tmp_path / "missing")


# --- sweeps and experiments --------------------------------------------------------------------


def interrupt_soon(seen: Path) -> None:
    """Sends this process a Ctrl-C once the directory is there."""

    def wait() -> None:
        while not seen.exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


@pytest.fixture
def listening():
    """SIGINT is heard, though a job in the background of a shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_a_stopped_sweep_says_how_to_go_on(tmp_path):
    base = {
        "env": "surefoot/RiskyCliff-v0",
        "steps": 40,
        "memory": 4,
        "particles": 4,
        "horizon": 40,
    }
    sweep = Sweep(base, {"gamma": [0.9, 1.0]}, tuple(range(40)))
    interrupt_soon(tmp_path / "out" / "sweep.toml")
    with pytest.raises(Interrupted, match=r"what is finished is in .*out; go on with the same"):
        run_sweep(sweep, tmp_path / "out", engine="serial", mode="silent")
    assert not (tmp_path / "out" / "complete.json").exists()


def test_a_stopped_experiment_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    from surefoot.paper import experiment_named

    def stop(config, tables) -> None:
        raise KeyboardInterrupt

    experiment = experiment_named("figures")
    monkeypatch.setitem(vars(experiment), "measure", stop)
    assert main(["reproduce", "figures", "--out", str(tmp_path / "out")]) == 130
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.endswith(f"what is finished is in {tmp_path / 'out'}; go on with the same command")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["kind"] == "figures"
