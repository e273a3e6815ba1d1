"""Environments made by their Gymnasium id."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym

from surefoot.errors import InputError


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
    from surefoot.envs.discrete import space_size

    env = made_env(env_id, **options)
    try:
        space_size(env.observation_space)
    except InputError:
        return "neural"
    finally:
        env.close()
    return "tabular"
