"""Environments of others as `benchmarks.learning` has them, the same for both sides."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit, TransformObservation

MOST = 2_000  # steps of a MinAtar episode: the games end by losing only


def lava(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """MiniGrid's 7 x 7 view as 147 numbers: kinds, colours and states, at most 10 each."""
    from minigrid.wrappers import ImgObsWrapper

    space = Box(0, 1, (147,), np.float32)
    flat = lambda obs: obs.ravel().astype(np.float32) / 10  # noqa: E731
    return TransformObservation(ImgObsWrapper(env), flat, space)


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
