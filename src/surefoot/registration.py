"""Environments by their Gymnasium id: surefoot's are made known, and any is made.

Light: surefoot's own are imported when one is made.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym

from surefoot.errors import InputError

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


def made_env(env_id: str, **options: Any) -> gym.Env[Any, Any]:
    """`gymnasium.make`, with what can go wrong told in one line."""
    try:
        return gym.make(env_id, **options)
    except Exception as error:  # an environment of the user's own can raise anything
        known = isinstance(error, gym.error.Error | ImportError)
        text = f"{'' if known else f'{type(error).__name__}: '}{' '.join(str(error).split())}"
        raise InputError(f"environment {env_id!r}: {text}") from error


def suited_agent(env_id: str, **options: Any) -> Literal["neural", "tabular"]:
    """Tabular where the observations can be numbered, else neural."""
    from surefoot.mdp.discrete import space_size

    env = made_env(env_id, **options)
    try:
        space_size(env.observation_space)
    except InputError:
        return "neural"
    finally:
        env.close()
    return "tabular"
