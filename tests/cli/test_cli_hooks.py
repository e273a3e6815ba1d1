"""TensorBoard and Weights & Biases, for real where they are installed."""

import json
import sys
import time

import pytest
from tiny import NETWORK

from surefoot.agents.neural import NeuralAgent
from surefoot.cli import main
from surefoot.runs.logs import RunLog, TensorBoard

WORDS = [
    "train",
    "CartPole-v1",
    "--compiled",
    "--steps",
    "400",
    "--hidden",
    "8",
    "--particles",
    "2",
]
WORDS += ["--loss", "qr", "--eval-every", "200", "--eval-episodes", "2"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries under torch and tensorboard
def test_tensorboard_gets_the_scalars(tmp_path):
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard is missing: `make peers` installs it",
    )
    pytest.importorskip("torch", reason="torch is missing: `make torch` installs it")
    assert main([*WORDS, "--tensorboard", "--out", str(tmp_path)]) == 0
    found = reader.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    names = {"episode/return", "episode/length", "evaluation/return", "train/steps_per_second"}
    names |= {f"train/{name}" for name in NeuralAgent.episode_columns[4:]}
    assert names <= set(found.Tags()["scalars"])
    rows = (tmp_path / "episodes.csv").read_text().splitlines()[1:]
    told = [(s.step, s.value) for s in found.Scalars("episode/return")]
    assert told == [(int(row.split(",")[0]), float(row.split(",")[2])) for row in rows]
    assert [s.step for s in found.Scalars("evaluation/return")] == [200, 400]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tabular_runs_tell_their_returns_too(tmp_path):
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard is missing: `make peers` installs it",
    )
    pytest.importorskip("torch", reason="torch is missing: `make torch` installs it")
    words = ["train", "FrozenLake-v1", "--steps", "300", "--memory", "4", "--tensorboard"]
    words += ["--eval-every", "150", "--checkpoint-every", "100", "--out", str(tmp_path)]
    for resumed in (False, True):
        if resumed:  # as a kill after step 200 leaves it: the last third is done again
            (tmp_path / "complete.json").unlink()
            checkpoints = sorted((tmp_path / "checkpoints").iterdir())
            checkpoints[-1].unlink()
            time.sleep(1.1)  # a file of events is named by the second
        assert main(words) == 0
        found = reader.EventAccumulator(str(tmp_path / "tensorboard"))
        found.Reload()
        rows = (tmp_path / "episodes.csv").read_text().splitlines()[1:]
        steps = [int(row.split(",")[0]) for row in rows]
        assert [s.step for s in found.Scalars("episode/return")] == steps
        assert len(found.Scalars("evaluation/return")) == 2
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2
    assert main([*words, "--existing", "overwrite", "--seed", "1"]) == 0
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1  # the other run's are gone


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is missing: make peers")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert main([*WORDS, "--wandb", "surefoot-test", "--out", str(tmp_path)]) == 0
    (run,) = (tmp_path / "wandb").glob("offline-run-*")
    (log,) = run.glob("run-*.wandb")
    content = log.read_bytes()
    assert b"episode/return" in content
    assert b"evaluation/return" in content
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 400


def test_what_is_not_installed_is_said(tmp_path, capsys, monkeypatch):
    for name in ("tensorboard", "tensorboardX", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    assert main([*WORDS, "--tensorboard", "--out", str(tmp_path / "a")]) == 2
    assert "needs tensorboardX, or torch with tensorboard" in capsys.readouterr().err
    assert main([*WORDS, "--wandb", "x", "--out", str(tmp_path / "b")]) == 2
    assert "pip install 'surefoot[wandb]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())  # said before anything was made


def test_the_extra_writes_events(tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX is missing: make peers")
    board = TensorBoard(tmp_path)
    board.scalar("episode/return", 2.0, 7)
    board.close()
    (log,) = tmp_path.glob("events*")
    assert b"episode/return" in log.read_bytes()


def test_weights_and_biases_gets_steps_in_their_order(tmp_path, monkeypatch):
    """It drops what is of an earlier step than the last."""
    monkeypatch.setattr("surefoot.runs.logs.SPEED_EVERY", 0.0)
    steps = []

    class Kept:
        def scalar(self, name, value, step):
            steps.append(step)

        def close(self):
            pass

    agent = NeuralAgent("CartPole-v1", compiled=True, **NETWORK)
    with RunLog(tmp_path, [Kept()]) as log:
        agent.learn(300, log=log, eval_every=100, eval_episodes=2)
    assert len(steps) > 20
    assert steps == sorted(steps)
