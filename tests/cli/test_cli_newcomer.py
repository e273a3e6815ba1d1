"""What a newcomer stumbles over: extras that are missing, counts, places of figures, the help."""

import os
import shlex
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from tiny import TABLE, TABLE_WORDS

import surefoot as sf
from surefoot.cli import COMMANDS, main
from surefoot.cli.evaluate import EvaluateOptions
from surefoot.cli.modules import open_typed
from surefoot.cli.options import read_count
from surefoot.cli.train import agent_kind
from surefoot.errors import InputError
from surefoot.report.film import drawing_env, played
from surefoot.training.sweep.spec import make_training

pytestmark = pytest.mark.wide


@pytest.fixture
def without(monkeypatch):
    def hide(*modules):
        for name in modules:
            monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed

    return hide


# --- missing extras are said before anything is computed -----------------------------------------


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["demo"], "polars"),
        (["reproduce", "regression"], "matplotlib"),
        (["suite", "--quick"], "polars"),
        (["watch", "run"], "matplotlib"),
        (["report", "."], "jinja2"),
        (["explain", "--returns", "returns.csv"], "matplotlib"),
    ],
)
def test_missing_extras_are_said_at_once(words, missing, without, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    without(missing)
    assert main(words) == 2
    assert f"needs {missing}: pip install 'surefoot[report]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_compare_says_first_that_there_will_be_no_figure(without, tmp_path, capsys):
    (tmp_path / "r.csv").write_text("a,b\n" + "1,2\n2,3\n3,5\n" * 4)
    without("matplotlib")
    words = ["compare", str(tmp_path / "r.csv"), "--resamples", "100", "--out", str(tmp_path / "o")]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "no figures will be drawn" in said.err
    assert "figure" not in said.out
    assert not (tmp_path / "o" / "figures").exists()


def test_an_environment_names_the_extra_that_brings_it(monkeypatch, capsys):
    def missing(*_, **__):
        raise gym.error.DependencyNotInstalled('run `pip install "gymnasium[box2d]"`')

    monkeypatch.setattr(gym, "make", missing)
    assert main(["train", "LunarLander-v3"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("surefoot: environment 'LunarLander-v3'")
    assert "pip install 'surefoot[envs]'" in said


# --- counts ------------------------------------------------------------------------------------


def test_counts_may_be_written_short():
    for text, number in {"100_000": 100_000, "1e5": 100_000, "2.5E+3": 2_500, "-1e2": -100}.items():
        assert read_count(text) == number
    for text in ("1.5", "1e-2", "1.25e1", "inf", "nan", "", "1e", "0x10", "1e999"):
        with pytest.raises(ValueError, match=r"not a whole number"):
            read_count(text)


def test_train_and_its_file_take_short_counts(tmp_path, capsys):
    (tmp_path / "t.toml").write_text("steps = 2e3\neval_episodes = 3.0\n")
    words = ["train", "CartPole-v1", "--config", str(tmp_path / "t.toml"), "--batch-size", "1e2"]
    with pytest.raises(SystemExit):
        main([*words, "--print-config"])
    said = capsys.readouterr().out.splitlines()
    assert {"steps = 2000", "eval_episodes = 3", "batch_size = 100"} <= set(said)
    (tmp_path / "t.toml").write_text("steps = 2.5\n")
    assert main(words) == 2
    assert "steps = 2.5: it must be an int" in capsys.readouterr().err


def test_a_sweep_takes_short_counts():
    settings = {"env": "CartPole-v1", "steps": 1e5, "batch_size": 64.0, "agent": "neural"}
    made = make_training(settings, 0)
    assert (made.steps, made.config.batch_size) == (100_000, 64)
    assert made.key == make_training(settings | {"steps": 100_000, "batch_size": 64}, 0).key
    with pytest.raises(InputError, match=r"steps = 0.5"):
        make_training(settings | {"steps": 0.5}, 0)


# --- places, help, bars --------------------------------------------------------------------------


def test_a_picture_lands_in_the_run_not_in_the_working_directory(tmp_path, monkeypatch, capsys):
    run, work = tmp_path / "run", tmp_path / "work"
    run.mkdir()
    work.mkdir()
    (run / "config.json").write_text("{}")
    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", **TABLE, seed=3)
    agent.save(run / "agent.safetensors")
    agent.save(tmp_path / "mine.safetensors")
    np.savetxt(work / "r.csv", np.ones((4, 2)), delimiter=",", header="a,b", comments="")
    monkeypatch.chdir(work)
    for words in ([run], [run / "agent.safetensors"], [tmp_path / "mine.safetensors"]):
        assert main(["explain", *map(str, words), "--env", "surefoot/RiskyCliff-v0"]) == 0
    assert main(["explain", "--returns", "r.csv"]) == 0
    assert os.listdir(run / "figures") == ["explanation.png"]
    assert (tmp_path / "mine.explanation.png").is_file()
    assert sorted(os.listdir(work)) == ["r.csv", "r.explanation.png"]


def test_the_help_of_train_is_grouped(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = capsys.readouterr().out
    places = [said.index(f" {title} options ") for title in
              ("policy", "distribution", "learning", "proximal-loss", "logging")]  # fmt: skip
    assert places == sorted(places)
    assert places[-2] < said.index("--eval-every")
    assert said.index("--seed") < places[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_a_text_for_every_option_and_no_default_for_a_name(command, capsys):
    words = [command, "theory"] if command == "reproduce" else [command]
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    said = capsys.readouterr().out
    named, _, options = said.rpartition("─ options ─")
    assert "default" not in named
    texts = [line[2:-2].strip() for line in options.splitlines() if line.startswith("│")]
    alone = [i for i, text in enumerate(texts) if text.startswith("--") and "  " not in text]
    assert not [texts[i] for i in alone if texts[i + 1].startswith(("(default", "--"))]


NEXT = """
import gymnasium as gym
class Coin(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
    def step(self, action):
        return 1, float(action), True, False, {}
class Same(gym.Wrapper):
    pass
gym.register("Coin-v0", entry_point=Coin)
"""


def test_what_train_says_to_do_next_can_be_typed(tmp_path, monkeypatch, capsys):
    """Also in an environment of one's own, which a run's file does not import."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("nextmod.py").write_text(NEXT)
    words = ["nextmod:Coin-v0", "--wrapper", "nextmod:Same", "--steps", "9", "--out", "my run"]
    assert main(["train", *words, "--eval-episodes", "2", *TABLE_WORDS]) == 0
    said = capsys.readouterr().out.partition("next: ")[2].strip()
    evaluating, reporting = said.split(", ")
    assert main([*shlex.split(evaluating)[1:], "--episodes", "2", "--resamples", "100"]) == 0
    assert main(shlex.split(reporting)[1:]) == 0


COUNT = """
import gymnasium as gym

class Count(gym.Env):
    observation_space, action_space = gym.spaces.Discrete(5), gym.spaces.Discrete(2)

    def __init__(self, pay=1.0):
        self.pay = pay

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        return min(self.steps, 4), self.pay, False, False, {}

class Twice(gym.RewardWrapper):
    def reward(self, reward):
        return 2 * reward

gym.register("Count-v0", entry_point=Count, max_episode_steps=100)
"""


@pytest.mark.parametrize(("horizon", "steps"), [("50", 6), ("5", 5)])
def test_a_run_is_evaluated_and_watched_as_it_was_trained(
    horizon, steps, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("countmod.py").write_text(COUNT)
    options = ["--env-option", "pay=3", "--env-option", "max_episode_steps=6"]
    settings = ["--memory", "4", "--particles", "4", "--horizon", horizon, "--steps", "30"]
    words = ["countmod:Count-v0", *options, *settings, "--eval-episodes", "2", "--out", "run"]
    assert main(["train", *words]) == 0
    assert f"return of the evaluation policy: {3 * steps}.0" in capsys.readouterr().out
    evaluating = ["evaluate", "run", "--policy", "greedy", "--episodes", "2"]
    assert main([*evaluating, "--env", "countmod:Count-v0"]) == 0
    row = capsys.readouterr().out.splitlines()[-3].split()
    assert (row[1], row[-1]) == (f"{3 * steps}.0", f"{steps}")
    assert main([*evaluating, "--env", "countmod:Count-v0", "--wrapper", "countmod:Twice"]) == 0
    assert f"{6 * steps}.0" in capsys.readouterr().out
    agent = open_typed(EvaluateOptions(Path("run"), "countmod:Count-v0"), ["countmod:Count-v0"])
    assert len(played(agent, drawing_env(agent), None, 1, 20, 0)) == steps


def test_a_wrapper_around_nothing_is_refused(tmp_path, capsys):
    sf.TabularAgent("surefoot/RiskyCliff-v0", **TABLE).save(tmp_path / "agent.safetensors")
    place = str(tmp_path / "agent.safetensors")
    assert main(["evaluate", place, "--wrapper", "countmod:Twice"]) == 2
    assert "does not say what --wrapper belongs around" in capsys.readouterr().err


def test_an_environment_may_follow_an_option_of_several_values():
    """`--hidden 64 64 --steps 10 CartPole-v1`: the second 64 is no environment."""
    for numbers in (["--hidden", "64", "64"], ["--value-range", "-1e2", "5"]):
        assert agent_kind([*numbers, "--steps", "1e5", "CartPole-v1"]) == "neural"
        assert agent_kind([*numbers, "--steps", "1e5", "FrozenLake-v1"]) == "tabular"


@pytest.mark.parametrize(
    "words",
    ["--hidden 8 8", "--value-range -1 1", "--compiled False", "--no-compiled", "--double_q",
     "--env_option is_slippery=false", "--seed=3 --tensorboard", "--no-normalise --watch -1"],
)  # fmt: skip
def test_the_environment_may_stand_after_any_option(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(["train", *words.split(), "FrozenLake-v1", "--agent", "neural", "--print-config"])
    assert end.value.code == 0
    assert 'env = "FrozenLake-v1"' in capsys.readouterr().out


def test_the_bar_of_a_resumed_run_starts_where_it_was(capsys):
    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", **TABLE, seed=3)
    agent.learn(30)
    agent.learn(20, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert "30/50 steps (60%)" in lines[0]
    assert "50/50 steps done" in lines[-1]
