"""A stranger's player, asked for its actions: an agent, a model, or any callable.

It may return actions `[B]`, particles `[B, A, N]`, an ensemble of them `[B, E, A, N]`, or particles
with the number of observations behind them; what it returns is checked before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.agents.adapters import Actor, act
from surefoot.agents.base import Agent
from surefoot.core.evidence import Known
from surefoot.errors import InputError
from surefoot.policies import policy_named

Choose = Callable[[np.ndarray], np.ndarray]
"""Observations `[B, ...]` to actions `[B]`."""


def chooser(player: Any, actions: int, policy: str | None = None) -> Choose:
    """From observations `[B, ...]` to actions `[B]` of 0..actions-1.

    `policy` decides on the return distributions of callables (`ssd` by default) and of surefoot's
    agents (by default as they evaluate). What has SB3's `predict` (an `Actor` among them) decides
    for itself.
    """
    if isinstance(player, Agent):
        player = act(player, policy or player.config.evaluation)
    if isinstance(player, Actor):
        actor = player
        return lambda obs: _actions(actor.decide(obs).action, len(obs), actions, "the player")
    if hasattr(player, "predict"):
        return lambda obs: _actions(
            player.predict(obs, deterministic=True), len(obs), actions, type(player).__name__
        )
    if not callable(player):
        raise InputError(
            f"player is a {type(player).__name__}: pass an agent, a model with predict, or a "
            "callable from observations [B, ...] to actions [B] or to particles [B, A, N]"
        )
    return lambda obs: _called(player, obs, actions, policy or "ssd")


def _called(player: Any, obs: np.ndarray, actions: int, policy: str) -> np.ndarray:
    made = player(obs)
    z, n = made if isinstance(made, tuple) else (made, None)
    z = np.asarray(z.detach().cpu() if hasattr(z, "detach") else z)
    if z.ndim <= 1:
        return _actions(made, len(obs), actions, "the player")
    if z.ndim not in (3, 4) or len(z) != len(obs):
        raise InputError(
            f"the player returned shape {z.shape} for {len(obs)} observations: actions are "
            f"[{len(obs)}], particles [{len(obs)}, {actions}, N], an ensemble "
            f"[{len(obs)}, E, {actions}, N]"
        )
    if z.shape[-2] != actions:
        raise InputError(
            f"the player returned particles of {z.shape[-2]} actions: the task has {actions}"
        )
    known = n if isinstance(n, Known) else np.asarray(n)
    actor = Actor(lambda _: z if n is None else (z, known), policy_named(policy))
    return _actions(actor.decide(obs).action, len(obs), actions, "the player")


def _actions(made: Any, number: int, actions: int, who: str) -> np.ndarray:
    made = made[0] if isinstance(made, tuple) else made
    chosen = np.asarray(made.detach().cpu() if hasattr(made, "detach") else made)
    if chosen.dtype.kind not in "fiub" or not np.isfinite(chosen).all():
        raise InputError(f"{who} returned an action that is not a number")
    if chosen.shape != (number,) or (chosen != np.round(chosen)).any():
        raise InputError(
            f"{who} returned actions of shape {chosen.shape}: for {number} observations they are "
            f"{number} whole numbers"
        )
    if (bad := np.flatnonzero((chosen < 0) | (chosen >= actions))).size:
        raise InputError(
            f"{who} returned action {chosen[bad[0]]:g}: the task has actions 0..{actions - 1}"
        )
    return chosen.astype(np.int64)
