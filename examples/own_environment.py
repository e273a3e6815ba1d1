"""Your own environment: register it, learn on it, ask why the agent acts as it does.

    python examples/own_environment.py

Two roads to work take 20 minutes on average: the ring road always, the town 12 or 28.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces

import surefoot as sf


class Commute(gym.Env[Any, Any]):
    HOME, RING, TOWN = range(3)

    def __init__(self, **_: Any) -> None:
        self.observation_space = spaces.Discrete(3)
        self.action_space = spaces.Discrete(2)  # at home: 0 ring road, 1 town
        self.place = self.HOME

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)  # seeds self.np_random
        self.place = self.HOME
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.place == self.HOME:
            self.place = self.RING if action == 0 else self.TOWN
            return self.place, -10.0 if action == 0 else -8.0, False, False, {}
        town = 4.0 if self.np_random.random() < 0.5 else 20.0
        return self.place, -10.0 if self.place == self.RING else -town, True, False, {}


gym.register("Commute-v0", entry_point=Commute, max_episode_steps=10)

if __name__ == "__main__":
    agent = sf.TabularAgent("Commute-v0", seed=0)
    agent.learn(1_000)
    print(agent.explain(Commute.HOME))
    for result in sf.evaluate(agent, ("ssd", "greedy", "cvar:0.25"), episodes=100):
        print(f"{result.policy}: {result.mean}, worst quarter {result.cvar(0.25)}")
