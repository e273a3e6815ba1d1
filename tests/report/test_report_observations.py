"""Pages and explanations of agents whose observations have parts, whose actions count from 1, or
that may not take every action."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from tiny import NETWORK, TABLE

import surefoot as sf
from surefoot.cli import main
from surefoot.report import report


class Odd(gym.Env):
    """Only the last of three actions, which count from 1, is legal at first."""

    action_space = Discrete(3, start=1)

    def __init__(self, numbered):
        parts = Dict({"x": Box(-1, 1, (2,), np.float32), "k": Discrete(6, start=1)})
        self.numbered, self.observation_space = numbered, Discrete(6, start=1)
        if not numbered:
            self.observation_space = parts

    def shown(self):
        mask = np.array([self.steps > 0, self.steps > 0, 1], np.int8)
        place = 1 + self.steps
        obs = place if self.numbered else {"x": np.zeros(2, np.float32), "k": place}
        return obs, {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.shown()

    def step(self, action):
        assert self.action_space.contains(action)
        self.steps += 1
        obs, info = self.shown()
        return obs, -float(action), self.steps == 5, False, info


@pytest.fixture(autouse=True)
def registered():
    gym.register("OddParts-v0", entry_point=lambda: Odd(False))
    gym.register("OddNumbers-v0", entry_point=lambda: Odd(True))
    yield
    for name in ("OddParts-v0", "OddNumbers-v0"):
        del gym.registry[name]


@pytest.mark.parametrize("kind", ["parts", "numbers"])
def test_the_page_and_the_explanation_say_what_is_legal_and_what_it_is_called(
    kind, tmp_path, capsys
):
    file = tmp_path / "agent.safetensors"
    if kind == "parts":
        sf.NeuralAgent("OddParts-v0", **NETWORK).save(file)
    else:
        sf.TabularAgent("OddNumbers-v0", **TABLE).learn(20).save(file)
    assert main(["explain", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    seen = {"parts": "observation x 0, 0; k 1 (the first", "numbers": "observation 1 (the first"}
    assert seen[kind] in told
    assert "->       3" in told
    page = report(tmp_path).read_text()
    assert "what is stored does not fit" not in page
    if kind == "parts":
        assert "first observation, seed 0: x 0, 0; k 1" in page
    else:
        assert '"state 6"' in page
        assert '"state 0"' not in page
    assert "action 3" in page
