"""Probe environments: so small that every answer is known by hand.

| probe | what happens | answer |
|---|---|---|
| `NoisyArms` | action a gives a reward from N(mean_a, std_a) | its mean and deviation |
| `SureOrNoisy` | each step pays 1, or 1 + `bonus` + N(0, 1) | `bonus` decides who is better |
| `RoadFork` | first a road is taken: 5 steps of 0, or of `bonus / 5` + N(0, 1) | as above |
| `CoinFork` | first a fair coin leads to state 1 or 2, then reward 0 or 2 | `gamma (0 or 2)` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from surefoot.envs.classic import Moved, PureEnv, RandomEnv

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class Probe(gym.Env[Any, Any]):
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


class NoisyArms(Probe):
    """Two Gaussians; which one depends on the action."""

    def __init__(
        self, means: tuple[float, float] = (0.0, 1.0), stds: tuple[float, float] = (0.5, 2.0)
    ) -> None:
        super().__init__()
        self.means, self.stds = means, stds

    def step(self, action: int) -> Step:
        reward = self.means[action] + self.stds[action] * self.np_random.standard_normal()
        return self.start(), float(reward), True, False, {}


class PureProbe(Probe):
    """A probe that is a compiled function: for `NeuralAgent(..., compiled=True)`."""

    def __init__(self, pure: PureEnv) -> None:
        super().__init__()
        self.pure = pure
        self.observation_space = spaces.Box(-1.0, 1.0, (pure.obs_size,), np.float32)

    def start(self) -> Any:
        self.state = self.pure.reset(jax.random.key(int(self.np_random.integers(2**31))))
        return np.asarray(self.state.x)

    def step(self, action: int) -> Step:
        self.state, x, reward, *ended = self.pure.step(self.state, jnp.asarray(action))
        return np.asarray(x), float(reward), bool(ended[0]), bool(ended[1]), {}


@dataclass(frozen=True)
class SureOrNoisy(RandomEnv):
    """Action 0 pays 1 for sure, action 1 pays 1 + `bonus` on average with deviation 1. What is seen
    is two random numbers, or with several `steps` how many are done."""

    env_id: str = "SureOrNoisy"
    num_actions: int = 2
    obs_size: int = 2
    time_limit: int = 1_000
    steps: int = 1
    bonus: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "obs_size", 2 if self.steps == 1 else 1)

    def draw_start(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (2,), minval=-1.0) if self.steps == 1 else jnp.zeros(1)

    def moved(self, x: jax.Array, action: jax.Array, noise: Any) -> Moved:
        reward = 1.0 + jnp.where(action == 1, self.bonus + noise, 0.0)
        if self.steps == 1:
            return x, reward, jnp.ones((), bool)
        done = jnp.round(x * self.steps) + 1
        return done / self.steps, reward, done[0] == self.steps


@dataclass(frozen=True)
class RoadFork(RandomEnv):
    """The first action chooses: five steps that pay nothing, or five that pay `bonus` in all on
    average with deviation 1 each. Later actions change nothing."""

    env_id: str = "RoadFork"
    num_actions: int = 2
    obs_size: int = 6  # which step, and which road: -1, 1, or 0 before it is taken
    time_limit: int = 1_000
    bonus: float = 0.0

    def draw_start(self, key: jax.Array) -> jax.Array:
        return jnp.eye(6)[0]

    def moved(self, x: jax.Array, action: jax.Array, noise: Any) -> Moved:
        at, road = jnp.argmax(x[:5]), x[5]
        road = jnp.where(road == 0, jnp.where(action == 1, 1.0, -1.0), road)
        after = jnp.eye(6)[jnp.minimum(at + 1, 4)].at[5].set(road)
        return after, jnp.where(road == 1, self.bonus / 5 + noise, 0.0), at == 4


class CoinFork(Probe):
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
