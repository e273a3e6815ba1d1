"""More probes: so small that every answer is known by hand.

| probe | what happens | answer |
|---|---|---|
| `OneStep` | reward 1, the episode terminates | 1 |
| `TimeLimit` | reward 1, the episode is truncated | `1 / (1 - gamma)`: truncation bootstraps |
| `TwoArms` | action a gives reward 2 a - 1 | -1 and 1 |
| `TwoSteps` | nothing, then reward 1 | `gamma`, then 1 |
"""

from typing import Any

from gymnasium import spaces

from surefoot.envs.probes import Probe, Step


class OneStep(Probe):
    def step(self, action: int) -> Step:
        return self.start(), 1.0, True, False, {}


class TimeLimit(Probe):
    def step(self, action: int) -> Step:
        return self.start(), 1.0, False, True, {}


class TwoArms(Probe):
    def step(self, action: int) -> Step:
        return self.start(), 2.0 * action - 1.0, True, False, {}


class TwoSteps(Probe):
    """States 0 and 1 as a Discrete observation that counts from 5, actions from 1."""

    FIRST = 5

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Discrete(2, start=self.FIRST)
        self.action_space = spaces.Discrete(2, start=1)
        self.at = 0

    def start(self) -> Any:
        self.at = 0
        return self.FIRST

    def step(self, action: int) -> Step:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r}")
        self.at += 1
        over = self.at == 2
        return self.FIRST + 1, float(over), over, False, {}
