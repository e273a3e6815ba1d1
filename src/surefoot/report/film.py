"""Episodes of a trained agent to look at: `surefoot watch` writes them, a report embeds them."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.making import made_env, separate_env, single_spec
from surefoot.envs.masks import Masks
from surefoot.errors import InputError, at_least
from surefoot.plots.film import Scene, draw_film

FILE = "figures/watch.gif"
LARGEST = 360  # pixels of a frame's longer side


def film(
    agent: Any,
    *,
    policy: str | None = None,
    episodes: int = 1,
    frames: int = 150,
    seed: int = 0,
) -> bytes:
    """A GIF of episodes under the evaluation policy, or another one, without exploration.

    At most `frames` steps are shown, the first ones; `episodes` end it too.
    """
    at_least(1, episodes=episodes, frames=frames)
    at_least(0, seed=seed)
    env = drawing_env(agent)
    try:
        shown = played(agent, env, policy, episodes, frames, seed)
    finally:
        env.close()
    pause = round(1000 / float(env.metadata.get("render_fps") or 5))
    return draw_film(shown, f"{agent.env_name}, {shown[0].explanation.policy}", max(pause, 120))


def drawing_env(agent: Any) -> gym.Env[Any, Any]:
    """Another environment of the agent's, that draws itself if it can."""
    inner, make = agent.env, agent.env_maker
    modes = () if inner is None else inner.metadata.get("render_modes") or ()
    mode: Any = {"render_mode": "rgb_array"} if "rgb_array" in modes else {}
    spec = None if inner is None else single_spec(inner)
    if isinstance(make, partial) and make.func is made_env:
        return make(**mode)
    if spec is not None and inner is not None:
        return separate_env(inner, **mode)
    if make is not None:
        return make()
    raise InputError("watch: the agent's environment is not registered: name it by --env")


def played(
    agent: Any, env: gym.Env[Any, Any], policy: str | None, episodes: int, frames: int, seed: int
) -> list[Scene]:
    scenes: list[Scene] = []
    longest = getattr(agent.config, "horizon", None)  # as in training
    masks = Masks(env)
    for episode in range(episodes):
        if len(scenes) == frames:
            break
        obs, info = env.reset(seed=seed + episode)
        total, step, over = 0.0, 0, False
        while not over and len(scenes) < frames:
            said = agent.explain(obs, policy, action_masks=masks.read(info))
            head = f"episode {episode}, step {step}, return so far {total:.4g}"
            scenes.append(Scene(_picture(env), said, head))
            obs, reward, terminated, truncated, info = env.step(agent.own_actions(said.action))
            total, step, over = total + float(reward), step + 1, terminated or truncated
            over = over or step == longest
    return scenes


def _picture(env: gym.Env[Any, Any]) -> np.ndarray | None:
    """What the environment draws, in bytes and not too large."""
    if env.render_mode != "rgb_array":
        return None
    drawn = np.asarray(env.render())
    if drawn.ndim != 3 or drawn.shape[2] not in (3, 4):
        raise InputError(f"watch: the environment draws {drawn.shape}, not a picture")
    if drawn.dtype.kind == "f":  # colours from 0 to 1
        drawn = np.clip(drawn * 255, 0, 255)
    every = -(-max(drawn.shape[:2]) // LARGEST)
    return drawn[::every, ::every, :3].astype(np.uint8)
