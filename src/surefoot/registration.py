"""Makes surefoot's environments known to Gymnasium. Light: they are imported when one is made."""

from __future__ import annotations

import gymnasium as gym

HORIZON = 500
ENVIRONMENTS = {
    "surefoot/CliffWalk-v0": "surefoot.mdp.environments:CliffWalkEnv",
    "surefoot/RiskyCliff-v0": "surefoot.mdp.environments:RiskyCliffEnv",
}


def register() -> None:
    """Make the two cliffs known to `gymnasium.make`; calling it again changes nothing."""
    for env_id, entry_point in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry_point=entry_point, max_episode_steps=HORIZON)
