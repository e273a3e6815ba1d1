"""From an agent's file, or the directory of its training, to an explanation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from surefoot.agents.explain import Explanation, explain
from surefoot.agents.loading import load, resume
from surefoot.errors import InputError
from surefoot.policies import Policy, policy_named

# What actions are called, where the environment itself only numbers them.
ACTIONS = {
    "CartPole": ("push left", "push right"),
    "MountainCar": ("push left", "coast", "push right"),
    "Acrobot": ("torque -1", "no torque", "torque +1"),
    "LunarLander": ("coast", "left engine", "main engine", "right engine"),
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Blackjack": ("stick", "hit"),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
}


def open_agent(place: str | os.PathLike[str], env: Any = None) -> Any:
    """The agent of a file or checkpoint, or of a run directory: the trained one, else its newest
    checkpoint. Nothing is imported for it: the environment is given, or registered already."""
    path = Path(place)
    if path.is_dir():
        if (path / "agent.safetensors").is_file():
            path = path / "agent.safetensors"
        elif (path / "checkpoints").is_dir():
            return resume(path / "checkpoints", env)
        else:
            raise InputError(f"{place}: holds neither agent.safetensors nor checkpoints")
    elif not path.exists():
        raise InputError(f"{place}: there is no such file or run directory")
    return resume(path, env) if path.name.startswith("step-") else load(path, env)


def explain_agent(agent: Any, obs: Any, policy: Policy | str | None = None) -> Explanation:
    """Why the agent acts as it does, or what another policy would do with what it has learned."""
    chosen = policy_named(agent.config.evaluation if policy is None else policy)
    z = np.asarray(agent.return_distribution(obs))
    if z.ndim != 2:
        raise InputError(f"obs has the shape of a batch ({z.shape[0]} rows): explain takes one")
    key, mask = jax.random.key(agent.seed), None
    if hasattr(agent, "table"):  # a tabular agent breaks its ties by the state
        state = agent._state(obs)
        key, mask = jax.random.fold_in(key, state), agent._mask(state)
    return explain(z, chosen, key, mask=mask, names=action_names(agent, len(z)))


def env_of(agent: Any) -> Any:
    """The agent's Gymnasium environment, or None for arrays of its own."""
    env = getattr(agent, "env", None)
    return getattr(env, "env", env)


def action_names(agent: Any, size: int) -> tuple[str, ...]:
    """The agent's own names, else what the environment's actions are known as, else numbers."""
    own = tuple(getattr(agent, "action_names", ()))
    if own and own != tuple(str(a) for a in range(size)):
        return own
    spec = getattr(env_of(agent), "spec", None)
    known = ACTIONS.get(spec.id.split("-")[0] if spec else "", ())
    start = getattr(getattr(agent, "spec", None), "action_start", 0)
    return known if len(known) == size else tuple(str(start + a) for a in range(size))


def initial_obs(agent: Any, seed: int) -> Any:
    """What the agent sees first, after a reset with this seed."""
    mdp = getattr(agent, "mdp", None)
    if mdp is not None:
        start = np.asarray(mdp.start_distribution)
        return int(np.random.default_rng(seed).choice(len(start), p=start / start.sum()))
    return agent.env.reset(seed=seed)[0]


def read_obs(text: str, agent: Any) -> Any:
    """`36` or `14,10,0` for whole numbers, `0.1,0,0,0` for the others."""
    words = [word for word in text.replace(" ", ",").split(",") if word]
    try:
        values = [float(word) for word in words]
    except ValueError:
        raise InputError(f"obs = {text!r}: give numbers with commas between them") from None
    if not values:
        raise InputError("obs is empty: give numbers with commas between them")
    discrete = hasattr(agent, "table") or agent.spec.categories > 0
    if not discrete:
        return np.asarray(values, np.float32)
    if any(value != int(value) for value in values):
        raise InputError(f"obs = {text!r}: a state is made of whole numbers")
    numbers = tuple(int(value) for value in values)
    return numbers[0] if len(numbers) == 1 else numbers
