"""Environments of other people, from the shell: `make third-party` installs them."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from tiny import NETWORK, NETWORK_WORDS, TABLE_WORDS

import surefoot as sf
from surefoot.cli import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # they warn of their own spaces and of each other
]
SHORT = ["--steps", "60", "--eval-episodes", "2", "--out", "run"]

# As docs/guides/own-environment.md has it.
GAMES = '''
import gymnasium as gym
import minatar.gym

minatar.gym.register_envs()

class Fresh(gym.Wrapper):
    """Forget the last action between episodes, and end them."""

    def __init__(self, env):
        super().__init__(gym.wrappers.TimeLimit(env, 200))

    def reset(self, **options):
        self.unwrapped.game.last_action = 0
        return super().reset(**options)
'''


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def summary():
    return json.loads(Path("run/summary.json").read_text())


def test_minigrid_by_a_wrapper(capsys):
    pytest.importorskip("minigrid", reason="make third-party")
    name, wrapper = "minigrid:MiniGrid-LavaGapS5-v0", "minigrid.wrappers:ImgObsWrapper"
    words = ["train", name, "--wrapper", wrapper, "--env-option", "max_steps=20", *SHORT]
    assert main([*words, *NETWORK_WORDS]) == 0
    assert summary()["steps"] == 60
    agent = sf.load("run/agent.safetensors", lambda: made(name, wrapper))
    assert agent.spec.picture == (7, 7, 3)
    assert main(["evaluate", "run", "--env", name, "--wrapper", wrapper, "--episodes", "2",
                 "--policy", "ssd", "greedy"]) == 0  # fmt: skip
    assert main(["evaluate", "run", "--env", name]) != 0
    assert (
        "wrapped in minigrid.wrappers:ImgObsWrapper, and a file imports" in capsys.readouterr().err
    )
    assert main(["train", name, *SHORT]) != 0
    assert "observation 'mission' is a MissionSpace" in capsys.readouterr().err


def made(name, wrapper):
    from surefoot.envs.making import made_env

    return made_env(name, (wrapper,), {"max_steps": 20})


@pytest.mark.parametrize(("game", "channels"), [("Breakout", 4), ("Asterix", 4)])
def test_minatar(game, channels):
    pytest.importorskip("minatar", reason="make third-party")
    Path("minatar_games.py").write_text(GAMES)
    words = [f"minatar_games:MinAtar/{game}-v1", "--wrapper", "minatar_games:Fresh", *SHORT]
    assert main(["train", *words, "--n-envs", "2", *NETWORK_WORDS]) == 0
    assert summary()["steps"] == 60
    agent = sf.resume("run/checkpoints", lambda: fresh(game))
    replay = agent.state.carry.replay
    assert (replay.obs.dtype, replay.obs.shape[1:]) == (np.uint8, (2, 10, 10, channels))


def fresh(game):
    import minatar_games

    return minatar_games.Fresh(gym.make(f"MinAtar/{game}-v1"))


def test_highway():
    pytest.importorskip("highway_env", reason="make third-party")
    words = ["highway_env:highway-fast-v0", *SHORT, "--normalise"]
    assert main(["train", *words, *NETWORK_WORDS]) == 0
    agent = sf.load("run/agent.safetensors")
    assert (agent.spec.obs_shape, agent.spec.num_actions) == ((25,), 5)


def test_acrobot_and_blackjack():
    assert main(["train", "Acrobot-v1", *SHORT, *NETWORK_WORDS]) == 0
    assert main(["train", "Blackjack-v1", *SHORT[:-1], "table", *TABLE_WORDS]) == 0
    words = ["Blackjack-v1", "--agent", "neural", *SHORT[:-1], "net"]
    assert main(["train", *words, *NETWORK_WORDS]) == 0
    agent = sf.load("net/agent.safetensors")
    assert agent.spec.obs_shape == (32 + 11 + 2,)  # a Tuple of three, one-hot
    seen = (14, 10, 0)
    mean = agent.return_distribution(seen).mean(axis=-1)
    assert agent.explain(seen, "greedy").action == int(mean.argmax())
    assert agent.predict(seen) == agent.explain(seen).action
    assert sf.NeuralAgent("Blackjack-v1", **NETWORK).spec.obs_dtype == "uint8"
