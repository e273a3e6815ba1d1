"""`surefoot sweep` on the command line."""

import json
import sys
import tomllib
import warnings

import pytest
from sweep_cases import CLIFF, results

from surefoot.cli import main as surefoot
from surefoot.cli import plain_warning
from surefoot.cli.sweep import main
from surefoot.errors import InputError
from surefoot.training.sweep import make_training

pytestmark = pytest.mark.wide

WORDS = [
    "--env", CLIFF["env"], "--agent", "tabular", "--steps", "500", "--set", "loss=q-learning",
    "--set", "behaviour=greedy", "--set", "evaluation=greedy", "--set", "eval_episodes=2",
    "--grid", "learning_rate=0.1,0.5", "--seeds", "0:2",
]  # fmt: skip


@pytest.mark.slow
def test_a_grid_runs_and_says_where_everything_is(tmp_path, capsys):
    out = tmp_path / "sweep"
    assert main([*WORDS, "--out", str(out), "--engine", "serial"]) == 0
    told = capsys.readouterr()
    assert "learning_rate" in told.out
    assert str(out) in told.out
    assert "4 of 4 trials; learning_rate=0.5 seed=1: return" in told.err
    assert len(results(out)) == 4
    assert json.loads((out / "provenance.json").read_text())["seeds"] == [0, 1]


def test_a_file_and_the_words_that_say_the_same(tmp_path, capsys):
    out = ["--out", "runs/x", "--engine", "serial"]
    assert main([*WORDS, *out, "--print-config", "True"]) == 0
    text = capsys.readouterr().out
    told = tomllib.loads(text)
    assert told["seeds"] == [0, 1]
    assert told["base"]["steps"] == 500
    assert told["grid"] == {"learning_rate": [0.1, 0.5]}
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    assert main(["--config", str(path), "--print-config"]) == 0
    assert capsys.readouterr().out == text
    more = ["--grid", "learning_rate=0.3", "--set", "gamma=0.9", "--seeds", "7", "--workers", "2"]
    assert main([f"--config={path}", *more, "--print-config"]) == 0
    changed = tomllib.loads(capsys.readouterr().out)
    assert changed["grid"] == {"learning_rate": [0.3]}
    assert changed["base"]["gamma"] == 0.9
    assert (changed["seeds"], changed["workers"]) == ([7], 2)


def test_a_base_may_have_tables_as_a_training_s_file_may(tmp_path, capsys):
    path = tmp_path / "train.toml"
    path.write_text(
        "env = 'FrozenLake-v1'\n[learning]\ngamma = 0.9\n[policy]\nexplore = 0.2\n"
        "[logging]\neval_every = 3\n"
    )
    words = ["--base", str(path), "--steps", "9", "--print-config"]
    assert main(words) == 0
    told = tomllib.loads(capsys.readouterr().out)["base"]
    assert told == {"env": "FrozenLake-v1", "gamma": 0.9, "explore": 0.2, "steps": 9}
    for content, line in (("base = 3", "base must be a table"), ("env_option = 3", "env_option")):
        path.write_text(content)
        with pytest.raises(InputError, match=line):
            main(words)


def test_a_blind_loss_is_said_once(tmp_path, monkeypatch, capsys):
    """Plainly, as the installed command says it, and not by the workers."""
    monkeypatch.setattr(warnings, "formatwarning", plain_warning)
    words = ["--env", CLIFF["env"], "--steps", "20", "--set", "eval_episodes=2", "--seeds", "0:2"]
    words += ["--grid", "loss=q-learning,sarsa", "--set", "evaluation=ssd:0.01"]
    words += ["--set", "behaviour=greedy", "--set", "target=greedy", "--engine", "serial"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, kind, *place, **_: sys.stderr.write(
            warnings.formatwarning(message, kind, *place[:2])
        )
        assert main([*words, "--out", str(tmp_path / "sweep")]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot learn" in line]
    assert [line[:30] for line in said] == [
        "surefoot: loss 'q-learning' ca", "surefoot: loss 'sarsa' cannot ",
    ]  # fmt: skip


def test_a_training_file_is_a_base(tmp_path, capsys):
    path = tmp_path / "train.toml"
    words = ["train", "FrozenLake-v1", "--steps", "900", "--env-option", "is_slippery=false"]
    with pytest.raises(SystemExit) as end:
        surefoot([*words, "--loss", "qr", "--gamma", "0.9", "--print-config"])
    assert end.value.code == 0
    path.write_text(capsys.readouterr().out)
    assert main(["--base", str(path), "--grid", "loss=wgf,q-learning", "--print-config"]) == 0
    told = tomllib.loads(capsys.readouterr().out)
    assert told["grid"] == {"loss": ["wgf", "q-learning"]}
    assert told["base"]["gamma"] == 0.9
    assert told["base"]["env.is_slippery"] is False
    assert "seed" not in told["base"]
    trial = make_training(told["base"], 0)
    assert (trial.agent, trial.env, trial.steps) == ("tabular", "FrozenLake-v1", 900)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sede = 3\n", "'sede'.*Did you mean 'seeds'"),
        ("base = 3\n", "base must be a table"),
        ("[grid]\nloss = 'qr'\n", "it must be a list of values"),
        ("[base]\nloss = {a = 1}\n", "it must be one value"),
        ("[base]\nenv = 'CartPole-v1'\nsteps = 9\nlos = 'qr'\n", "Did you mean 'loss'"),
    ],
)
def test_mistakes_in_a_file_are_named(content, message, tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        main(["--config", str(path), "--print-config"])


def test_mistakes_on_the_command_line_are_named():
    with pytest.raises(InputError, match="name=value"):
        main([*WORDS, "--grid", "loss"])
    with pytest.raises(InputError, match="--config needs"):
        main(["--config"])
    with pytest.raises(InputError, match="unknown engine 'rya'"):
        main([*WORDS, "--engine", "rya"])
