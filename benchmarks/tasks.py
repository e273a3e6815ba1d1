"""Environments of others as `benchmarks.learning` has them, the same for both sides."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit, TransformObservation

MOST = 2_000  # steps of a MinAtar episode: the games end by losing only


class Lava(gym.ActionWrapper[Any, Any, Any]):
    """MiniGrid's 7 x 7 view as 147 zeros and ones, where there is wall, goal and lava; of the seven
    actions those that do something here: left, right and forward."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        from minigrid.core.constants import OBJECT_TO_IDX
        from minigrid.wrappers import ImgObsWrapper

        kinds = np.array([OBJECT_TO_IDX[name] for name in ("wall", "goal", "lava")])
        planes = lambda obs: (obs[..., :1] == kinds).ravel().astype(np.float32)  # noqa: E731
        space = Box(0, 1, (147,), np.float32)
        super().__init__(TransformObservation(ImgObsWrapper(env), planes, space))
        self.action_space = Discrete(3)

    def action(self, action: Any) -> Any:
        return action


class Fresh(gym.Wrapper[Any, Any, Any, Any]):
    """MinAtar with a time limit, and episodes that do not know the last one's action."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(TimeLimit(env, MOST))

    def reset(self, **options: Any) -> Any:
        game: Any = self.unwrapped
        game.game.last_action = 0
        return super().reset(**options)


def register_minatar() -> None:
    """`gym.make("benchmarks.tasks:MinAtar/...")` imports this module, and so knows the games."""
    try:
        import minatar.gym
    except ImportError:  # the other tasks do without
        return
    if "MinAtar/Breakout-v1" not in gym.registry:
        minatar.gym.register_envs()


register_minatar()


def torch_convolution() -> Any:
    """The one layer of the MinAtar paper, as our networks have it, for sb3-contrib."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Convolution(BaseFeaturesExtractor):
        def __init__(self, space: Box) -> None:
            height, width, channels = space.shape
            super().__init__(space, (height - 2) * (width - 2) * 16)
            self.layer = torch.nn.Conv2d(channels, 16, 3)

        def forward(self, obs: Any) -> Any:
            return torch.relu(self.layer(obs.permute(0, 3, 1, 2))).flatten(1)

    return Convolution
