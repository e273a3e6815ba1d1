"""Probe environments: so small that every answer is known by hand.

| probe | what happens | answer |
|---|---|---|
| `OneStep` | reward 1, the episode terminates | 1 |
| `TimeLimit` | reward 1, the episode is truncated | `1 / (1 - gamma)`: truncation bootstraps |
| `TwoArms` | action a gives reward 2 a - 1 | -1 and 1 |
| `TwoSteps` | nothing, then reward 1 | `gamma`, then 1 |
| `NoisyArms` | action a gives a reward from N(mean_a, std_a) | its mean and deviation |
| `CoinFork` | first a fair coin leads to state 1 or 2, then reward 0 or 2 | `gamma (0 or 2)` |
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class _Probe(gym.Env[Any, Any]):
    """Boxes with one number, two actions, one step; subclasses change what differs."""

    def __init__(self) -> None:
        self.observation_space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.start(), {}

    def start(self) -> Any:
        return np.ones(1, np.float32)


class OneStep(_Probe):
    def step(self, action: int) -> Step:
        return self.start(), 1.0, True, False, {}


class TimeLimit(_Probe):
    def step(self, action: int) -> Step:
        return self.start(), 1.0, False, True, {}


class TwoArms(_Probe):
    def step(self, action: int) -> Step:
        return self.start(), 2.0 * action - 1.0, True, False, {}


class NoisyArms(_Probe):
    """Two Gaussians; which one depends on the action."""

    def __init__(
        self, means: tuple[float, float] = (0.0, 1.0), stds: tuple[float, float] = (0.5, 2.0)
    ) -> None:
        super().__init__()
        self.means, self.stds = means, stds

    def step(self, action: int) -> Step:
        reward = self.means[action] + self.stds[action] * self.np_random.standard_normal()
        return self.start(), float(reward), True, False, {}


class TwoSteps(_Probe):
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


class CoinFork(_Probe):
    """A random transition, then a certain reward: all the dispersion comes from the coin."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Discrete(3)
        self.at = 0

    def start(self) -> Any:
        self.at = 0
        return 0

    def step(self, action: int) -> Step:
        if self.at == 0:
            self.at = 1 + int(self.np_random.integers(2))
            return self.at, 0.0, False, False, {}
        return self.at, 2.0 * (self.at - 1), True, False, {}
