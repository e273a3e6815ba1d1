"""`surefoot train` and `evaluate`: the run directory, stopping and going on, policies compared."""

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from tiny import NETWORK_WORDS, TABLE, TABLE_WORDS

import surefoot as sf
from surefoot.agents.neural import NeuralConfig
from surefoot.agents.tabular import TabularConfig
from surefoot.cli import main
from surefoot.cli.options import flat
from surefoot.cli.train import agent_kind, default_out, field_docs, options_of
from surefoot.comparison import read_returns
from surefoot.training.train import Training, train

SMALL = ["--compiled", *NETWORK_WORDS]
CARTPOLE = ["train", "CartPole-v1", *SMALL, "--eval-episodes", "3"]
CLIFF = ["train", "surefoot/RiskyCliff-v0", *TABLE_WORDS]


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cartpole")
    words = [*CARTPOLE, "--steps", "600", "--eval-every", "300", "--watch", "start"]
    words += ["--watch=-0.1,0,0,0.2", "--watch-every", "200", "--checkpoint-every", "200"]
    assert main([*words, "--out", str(out)]) == 0
    return out


def rows(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines()]


def test_the_run_directory(cartpole):
    names = {p.name for p in cartpole.iterdir() if p.name[0] != "."}
    tables = ("episodes", "evaluations", "distributions", "evidence", "speed")
    logs = {f"{table}.{end}" for table in tables for end in ("csv", "parquet")}
    files = {"agent.safetensors", "config.json", "provenance.json", "summary.json", "complete.json"}
    assert names == logs | files | {"checkpoints"}
    # The last is always kept; one that is due while another is being written is passed over.
    kept = sorted(p.name for p in (cartpole / "checkpoints").iterdir() if p.name[0] != ".")
    assert kept[-1] == "step-000000000600.safetensors"
    assert set(kept) <= {f"step-{step:012d}.safetensors" for step in (0, 200, 400, 600)}
    assert len(kept) <= 3
    config = json.loads((cartpole / "config.json").read_text())
    assert config["kind"] == "training"
    assert (config["env"], config["agent"], config["loss"]) == ("CartPole-v1", "neural", "qr")
    assert config["behaviour"].startswith("greedy")
    assert rows(cartpole / "episodes.csv")[0][:4] == ["step", "episode", "return", "length"]
    assert [r[0] for r in rows(cartpole / "evaluations.csv")[1:]] == ["300"] * 3 + ["600"] * 3
    table = rows(cartpole / "distributions.csv")[1:]
    assert len(table) == 3 * 2 * 2 * 4  # times, observations, actions, particles
    summary = json.loads((cartpole / "summary.json").read_text())
    assert summary["steps"] == 600
    assert summary["episodes"] == len(rows(cartpole / "episodes.csv")) - 1
    assert len(summary["evaluation_returns"]) == 3


def test_the_watched_observation_is_the_one_asked_for(cartpole):
    agent = sf.load(cartpole / "agent.safetensors")
    table = np.array([[float(v) for v in r] for r in rows(cartpole / "distributions.csv")[1:]])
    last = table[(table[:, 0] == 600) & (table[:, 1] == 1)][:, 4].reshape(2, 4)
    np.testing.assert_allclose(last, agent.return_distribution([-0.1, 0, 0, 0.2]), rtol=1e-6)


def test_how_well_the_watched_means_are_known_stands_beside_them(cartpole):
    agent = sf.load(cartpole / "agent.safetensors")
    ensemble, _ = agent.estimates([-0.1, 0, 0, 0.2])
    table = [r for r in rows(cartpole / "evidence.csv")[1:] if r[:2] == ["600", "1"]]
    means = np.array([float(r[4]) for r in table]).reshape(2, -1)
    np.testing.assert_allclose(means, ensemble.mean(-1).T, rtol=1e-6)
    assert all(r[5:] == ["", ""] for r in table)


def test_asked_again_it_is_whole_and_with_more_steps_it_goes_on(tmp_path, capsys):
    words = [*CARTPOLE, "--out", str(tmp_path / "a")]
    assert main([*words, "--steps", "300"]) == 0
    log = (tmp_path / "a" / "episodes.csv").read_bytes()
    assert main([*words, "--steps", "300"]) == 0
    assert (tmp_path / "a" / "episodes.csv").read_bytes() == log
    assert "300 steps" in capsys.readouterr().out
    assert main([*words, "--steps", "500"]) == 0
    assert main([*CARTPOLE, "--steps", "500", "--out", str(tmp_path / "b")]) == 0
    for name in ("episodes.csv", "summary.json", "config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    one, two = (sf.load(tmp_path / d / "agent.safetensors") for d in "ab")
    np.testing.assert_array_equal(
        one.return_distribution([0] * 4), two.return_distribution([0] * 4)
    )


@pytest.mark.wide
def test_another_configuration_is_refused_or_overwritten(tmp_path, capsys):
    words = [*CLIFF, "--steps", "200", "--out", str(tmp_path)]
    assert main(words) == 0
    assert main([*words, "--seed", "1"]) == 2
    assert "seed was 0, is 1; choose another --out, or --existing overwrite" in (
        capsys.readouterr().err
    )
    assert main([*words, "--existing", "error"]) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert main([*words, "--seed", "1", "--existing", "overwrite"]) == 0
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 1


@pytest.mark.slow
def test_a_tabular_run(tmp_path):
    out = tmp_path / "cliff"
    words = [*CLIFF, "--steps", "1500", "--eval-every", "500", "--eval-episodes", "2"]
    words += ["--watch", "24", "--watch-every", "500", "--behaviour", "ssd:5e-4"]
    assert main([*words, "--out", str(out)]) == 0
    assert [r[0] for r in rows(out / "evaluations.csv")[1::2]] == ["500", "1000", "1500"]
    assert len(rows(out / "distributions.csv")[1:]) == 3 * 4 * 4
    agent = sf.load(out / "agent.safetensors")
    last = np.array([[float(v) for v in r] for r in rows(out / "evidence.csv")[-4:]])
    np.testing.assert_allclose(last[:, 5:].T, agent.estimates(24)[1], rtol=1e-6)
    assert isinstance(agent, sf.TabularAgent)
    assert agent.num_timesteps == 1500
    assert agent.config.behaviour == sf.SSD(tolerance=5e-4)
    assert main(["evaluate", str(out), "--policy", "ssd:5e-4", "--episodes", "4"]) == 0


class Stop(Exception):
    pass


@pytest.mark.wide
def test_a_crash_loses_nothing(tmp_path, monkeypatch):
    """The logs of a tabular run that died between checkpoints, and the agent, as if it had not."""
    plan = Training(
        "FrozenLake-v1", TabularConfig(**TABLE), steps=900, eval_every=100,
        eval_episodes=2, watch=(0, 3), watch_every=100, checkpoint_every=300,
    )  # fmt: skip
    train(plan, tmp_path / "whole")
    real = sf.TabularAgent.estimates
    calls = 0

    def dies(self, obs):
        nonlocal calls
        calls += 1
        if calls == 5:  # at step 500, after a checkpoint
            raise Stop
        return real(self, obs)

    monkeypatch.setattr(sf.TabularAgent, "estimates", dies)
    with pytest.raises(Stop):
        train(plan, tmp_path / "cut")
    assert not (tmp_path / "cut" / "complete.json").exists()
    train(plan, tmp_path / "cut")
    for name in ("episodes.csv", "evaluations.csv", "distributions.csv", "summary.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.wide
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_saves_says_how_to_go_on_and_exits_130(tmp_path, number):
    out = tmp_path / "run"
    words = [*CLIFF, "--steps", "100000000", "--out", str(out)]
    script = Path(sys.executable).with_name("surefoot")
    run = subprocess.Popen([script, *words], stderr=subprocess.PIPE, text=True)
    for _ in range(1200):
        if list(out.glob("checkpoints/step-*")):
            break
        time.sleep(0.1)
    run.send_signal(number)
    _, told = run.communicate(timeout=120)
    assert run.returncode == 130, told
    assert "interrupted at step" in told
    assert "go on with the same command" in told
    assert "Traceback" not in told
    agent = sf.resume(out)
    assert agent.num_timesteps > 0
    assert f"step {agent.num_timesteps}" in told


# --- options -----------------------------------------------------------------------------------


def test_the_agent_follows_from_the_observations(tmp_path):
    assert agent_kind(["CartPole-v1"]) == "neural"
    assert agent_kind(["FrozenLake-v1"]) == "tabular"
    assert agent_kind(["--steps", "3", "--tensorboard", "Blackjack-v1"]) == "tabular"
    assert agent_kind(["--steps=3", "surefoot/CliffWalk-v0", "--loss", "qr"]) == "tabular"
    assert agent_kind(["FrozenLake-v1", "--agent", "neural"]) == "neural"
    assert agent_kind(["--help"]) == "neural"
    (tmp_path / "x.toml").write_text('env = "FrozenLake-v1"\n')
    assert agent_kind(["--config", str(tmp_path / "x.toml")]) == "tabular"


def test_options_and_wrappers_of_the_environment_choose_the_agent_too(tmp_path, monkeypatch):
    (tmp_path / "shown.py").write_text(
        "import gymnasium as gym\n"
        "class Shown(gym.Env):\n"
        "    def __init__(self, numbered):\n"
        "        number, row = gym.spaces.Discrete(3), gym.spaces.Box(-1, 1, (4,))\n"
        "        self.observation_space = number if numbered else row\n"
        "        self.action_space = gym.spaces.Discrete(2)\n"
        "class Rows(gym.Wrapper):\n"
        "    observation_space = gym.spaces.Box(-1, 1, (4,))\n"
        "gym.register('Shown-v0', entry_point=Shown)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    numbered = ["shown:Shown-v0", "--env-option", "numbered=true"]
    assert agent_kind(numbered) == "tabular"
    assert agent_kind(["shown:Shown-v0", "--env-option=numbered=false"]) == "neural"
    assert agent_kind([*numbered, "--wrapper=shown:Rows"]) == "neural"
    assert agent_kind(["FrozenLake-v1", "--wrapper=shown:Rows"]) == "neural"


@pytest.mark.parametrize(("kind", "config"), [("neural", NeuralConfig), ("tabular", TabularConfig)])
def test_every_setting_is_an_option_with_help_and_default(kind, config, capsys):
    docs = field_docs(config)
    assert docs.keys() == set(config.__dataclass_fields__)
    assert all(docs.values())
    with pytest.raises(SystemExit) as stop:
        main(["train", "--agent", kind, "--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, doc in docs.items():
        assert f"--{name.replace('_', '-')}" in text
        assert " ".join(doc.split())[:30] in text
    assert text.count("(default:") >= len(docs)
    assert flat(options_of(kind, config)())["loss"] == config().loss


def test_config_out_and_in_again(tmp_path, capsys):
    words = ["train", "CartPole-v1", *SMALL, "--steps", "77", "--evaluation", "cvar:0.1"]
    with pytest.raises(SystemExit):
        main([*words, "--watch", "start", "--print-config"])
    text = capsys.readouterr().out
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(SystemExit):
        main(["train", "--config", str(tmp_path / "own.toml"), "--print-config"])
    assert capsys.readouterr().out == text
    assert 'env = "CartPole-v1"\n' in text
    assert "hidden = [\n    8,\n]\n" in text


def test_where_runs_go_by_default():
    assert default_out(Training("surefoot/CliffWalk-v0", TabularConfig(), seed=3)) == Path(
        "runs/surefoot-CliffWalk-v0-wgf-exact-seed3"
    )
    assert default_out(Training("own:Env-v0")) == Path("runs/Env-v0-qr-seed0")


@pytest.mark.wide
def test_arguments_of_the_environment(tmp_path):
    words = ["train", "FrozenLake-v1", "--env-option", "is_slippery=false", *TABLE_WORDS]
    words += ["--env-option", "map_name=8x8", "--steps", "100", "--out", str(tmp_path)]
    assert main(words) == 0
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["env_options"] == {"is_slippery": False, "map_name": "8x8"}
    assert sf.load(tmp_path / "agent.safetensors").table.z.shape[0] == 64


# --- evaluate ----------------------------------------------------------------------------------


@pytest.mark.wide
def test_evaluate_compares_policies_and_writes_returns(cartpole, tmp_path, capsys):
    out = tmp_path / "evaluated"
    words = ["evaluate", str(cartpole), "--policy", "ssd", "cvar:0.25", "--episodes", "5"]
    assert main([*words, "--resamples", "39", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "CVaR 0.05" in shown
    assert "decided by" in shown
    assert "Second order" in shown
    returns = read_returns(out / "returns.csv")
    assert set(returns) == {"ssd", "cvar:0.25"}
    assert all(len(column) == 5 for column in returns.values())
    summary = json.loads((out / "summary.json").read_text())
    assert summary["policies"]["ssd"]["mean"]["mean"] == pytest.approx(returns["ssd"].mean())
    assert json.loads((out / "config.json").read_text())["kind"] == "comparison"
    assert main(["compare", str(out / "returns.csv"), "--resamples", "39"]) == 0


def test_evaluate_takes_files_checkpoints_and_one_policy(cartpole, tmp_path, capsys):
    latest = sorted((cartpole / "checkpoints").glob("step-*"))[-1]
    for place in (cartpole / "agent.safetensors", latest):
        words = ["evaluate", str(place), "--policy", "greedy", "--episodes", "3"]
        assert main([*words, "--out", str(tmp_path / place.stem)]) == 0
    one, two = (read_returns(p) for p in sorted(tmp_path.glob("*/returns.csv")))
    np.testing.assert_array_equal(one["greedy"], two["greedy"])
    assert main(["evaluate", str(cartpole), "--env", "FrozenLake-v1", "--episodes", "3"]) == 2
    assert main(["evaluate", str(cartpole), "--policy", "ssd", "ssd"]) == 2
    assert "named twice" in capsys.readouterr().err


def test_greedy_in_evaluate_is_the_agent_s_own_evaluation(cartpole):
    """One by one or side by side: the same, but where a batch rounds a tie the other way."""
    stored = cartpole / "agent.safetensors"
    agent = sf.NeuralAgent.load(stored, "CartPole-v1", evaluation="greedy")
    agent.pure = None  # through Gymnasium, as `evaluate` does
    (found,) = sf.evaluate(agent, ("greedy",), episodes=20, seed=5)
    assert (found.returns == agent.evaluate(20, seed=5)).mean() >= 0.8
    np.testing.assert_array_equal(found.returns, found.lengths)
    assert sum(found.decided.values()) == pytest.approx(1.0)
    low, high = found.cvar(0.05).low, found.cvar(0.05).high
    assert low <= found.cvar(0.05).mean <= high


# --- environments of one's own -----------------------------------------------------------------

OWN = """
import gymnasium as gym
import numpy as np

class Own(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}
    def step(self, action):
        return np.zeros(2, np.float32), float(action), True, False, {}

gym.register("OwnOfTrain-v0", entry_point=Own)
"""


@pytest.mark.slow
def test_an_environment_of_one_s_own_is_found_by_every_command(tmp_path):
    """Each command in a process of its own, as the module is not imported there yet.

    A run directory imports nothing: whoever typed the module for `train` types it again.
    """
    own = "own_of_train:OwnOfTrain-v0"
    (tmp_path / "own_of_train.py").write_text(OWN)
    script = Path(sys.executable).with_name("surefoot")
    for words in (
        ["train", own, "--steps", "50", "--hidden", "4", "--out", "run"],
        ["evaluate", "run", "--env", own, "--policy", "greedy", "--episodes", "2"],
        ["explain", "run", "--env", own],
    ):
        done = subprocess.run(
            [script, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_evaluate_tells_dominance_from_the_mean_alone():
    """Particles that have collapsed to one value have nothing but a mean: 0.1.0 called it
    dominance, since a better constant dominates a worse one."""

    def shares(z, policy):
        z = np.asarray(z, np.float32)

        def model(obs):
            return np.broadcast_to(z, (len(obs), *z.shape))

        make = partial(gymnasium.make, "CartPole-v1", max_episode_steps=4)
        (found,) = sf.evaluate(model, (policy,), env=make, episodes=2)
        return found.decided

    collapsed, surer = [[1, 1], [1.5, 1.5]], [[0, 2], [1, 1]]
    assert shares(collapsed, "ssd:0.001") == {"mean": 1.0}
    assert shares(surer, "ssd:0.001") == {"dominance": 1.0}
    assert shares(collapsed, "cvar:0.5") == {"score": 1.0}
    assert shares(collapsed, "greedy") == {"mean": 1.0}
    # Three members that disagree on who is better: worth the same, as far as they tell.
    members = [[[1, 1], [1.5, 1.5]], [[2, 2], [1, 1]], [[1, 1], [2, 2]]]
    assert shares(members, "ssd") == {"mean": 1.0}
    assert shares([surer, [[0, 2.2], [1, 1]], [[0, 1.8], [1, 1]]], "ssd") == {"dominance": 1.0}


@pytest.mark.wide
def test_an_observation_of_several_parts_is_watched(tmp_path, capsys):
    space = gymnasium.spaces.Dict(
        {"at": gymnasium.spaces.Discrete(2), "t": gymnasium.spaces.Box(-1, 1, (2,))}
    )

    class Parts(gymnasium.Env):
        observation_space, action_space = space, gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return {"at": 0, "t": np.zeros(2, np.float32)}, {}

        def step(self, action):
            return {"at": 1, "t": np.ones(2, np.float32)}, 1.0, True, False, {}

    gymnasium.register("Parts-v0", entry_point=Parts)
    words = ["train", "Parts-v0", *NETWORK_WORDS, "--steps", "30", "--eval-episodes", "2"]
    watch = ["--watch-every", "10", "--out", str(tmp_path / "run"), "--watch"]
    assert main([*words, *watch, "3"]) == 2
    assert "watch: 3 does not fit Dict" in capsys.readouterr().err
    assert main([*words, *watch, "start"]) == 0
    assert len((tmp_path / "run" / "distributions.csv").read_text().splitlines()) == 1 + 3 * 2 * 4
