"""Probe environments: so small that every answer is known by hand.

| probe | what happens | answer |
|---|---|---|
| `OneStep` | reward 1, the episode terminates | 1 |
| `TimeLimit` | reward 1, the episode is truncated | `1 / (1 - gamma)`: truncation bootstraps |
| `TwoArms` | action a gives reward 2 a - 1 | -1 and 1 |
| `TwoSteps` | nothing, then reward 1 | `gamma`, then 1 |
| `NoisyArms` | action a gives a reward from N(mean_a, std_a) | its mean and deviation |
| `SureOrNoisy` | each step pays 1, or 1 + `bonus` + N(0, 1) | `bonus` decides who is better |
| `TwoRoads` | first a road is taken: 5 steps of 0, or of `bonus / 5` + N(0, 1) | as above |
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


class SureOrNoisy(_Probe):
    """Action 0 pays 1 for sure, action 1 pays 1 + `bonus` on average with deviation 1; both times
    `scale`. What is seen is two random numbers, or with several `steps` how many are done."""

    def __init__(self, steps: int = 1, bonus: float = 0.0, scale: float = 1.0) -> None:
        super().__init__()
        self.steps, self.bonus, self.scale, self.at = steps, bonus, scale, 0
        shape = (2,) if steps == 1 else (1,)
        self.observation_space = spaces.Box(-1.0, 1.0, shape, np.float32)

    def start(self) -> Any:
        self.at = 0
        return self._seen()

    def _seen(self) -> Any:
        if self.steps == 1:
            return self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return np.array([self.at / self.steps], np.float32)

    def step(self, action: int) -> Step:
        reward = 1.0 + (self.bonus + self.np_random.standard_normal() if action else 0.0)
        self.at += 1
        return self._seen(), float(self.scale * reward), self.at == self.steps, False, {}


class TwoRoads(_Probe):
    """The first action chooses: five steps that pay nothing, or five that pay `bonus` in all on
    average with deviation 1 each. Later actions change nothing."""

    LENGTH = 5

    def __init__(self, bonus: float = 0.0) -> None:
        super().__init__()
        self.bonus, self.at, self.road = bonus, 0, 0
        self.observation_space = spaces.Box(-1.0, 1.0, (self.LENGTH + 1,), np.float32)

    def start(self) -> Any:
        self.at, self.road = 0, 0
        return self._seen()

    def _seen(self) -> Any:
        seen = np.zeros(self.LENGTH + 1, np.float32)
        seen[min(self.at, self.LENGTH - 1)] = 1.0
        seen[-1] = self.road
        return seen

    def step(self, action: int) -> Step:
        if self.at == 0:
            self.road = 1 if action else -1
        noise = self.np_random.standard_normal()
        reward = self.bonus / self.LENGTH + noise if self.road == 1 else 0.0
        self.at += 1
        return self._seen(), float(reward), self.at == self.LENGTH, False, {}


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
