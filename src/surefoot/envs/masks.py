"""Which actions are legal: `info["action_mask"]`, or `env.action_masks()` as sb3-contrib has it."""

from __future__ import annotations

from functools import reduce
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from surefoot.core.array import as_flags
from surefoot.envs.discrete import space_size
from surefoot.errors import InputError


class Masks:
    """Reads the mask of the observation that an environment has just shown. Of a VectorEnv it
    reads what the info says of one of its environments."""

    def __init__(self, env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> None:
        if isinstance(env, VectorEnv):
            self.space, self._ask = env.single_action_space, None
            return
        self.space = env.action_space
        has = env.has_wrapper_attr("action_masks")
        self._ask = env.get_wrapper_attr("action_masks") if has else None

    def read(self, info: dict[str, Any], *, final: bool = False) -> np.ndarray | None:
        """The legal actions `[A]`, counted from 0; None if the environment has no masks.

        After a `final` observation no action follows: none need be legal, and none named.
        """
        if "action_mask" in info:
            mask = joint_mask(self.space, info["action_mask"])
        elif self._ask is not None:
            mask = joint_mask(self.space, self._ask())
        else:
            return None
        if not mask.any():
            if not final:
                raise InputError("action_mask leaves no legal action")
            mask[:] = True
        return mask

    def after_step(self, info: dict[str, Any], *, masked: bool, final: bool = False) -> Any:
        """The same after a step; None in an environment that has shown no mask before."""
        if masked:
            return self.expect(info, final=final)
        if "action_mask" in info:
            raise InputError("info has an action_mask after a step, but had none after a reset")
        return None

    def expect(self, info: dict[str, Any], *, final: bool = False) -> np.ndarray:
        """The same from an environment that has shown a mask before."""
        mask = self.read(info, final=final)
        if mask is None:
            if not final:
                raise InputError("info has no action_mask, which it had before")
            mask = np.ones(space_size(self.space, "action_space"), bool)
        return mask


def joint_mask(space: gym.Space[Any], allowed: Any) -> np.ndarray:
    """A mask as the environment gives it as one of all actions `[A]`, the product for a
    MultiDiscrete: it has one for each part, as a tuple (Gymnasium) or in a row (sb3-contrib)."""
    if isinstance(space, spaces.MultiDiscrete):
        sizes = [int(n) for n in space.nvec.ravel()]
        if not isinstance(allowed, tuple):
            several = len(sizes) > 1
            allowed = np.split(np.asarray(allowed), np.cumsum(sizes)[:-1]) if several else [allowed]
        parts = [_one_mask(part, size) for part, size in zip(allowed, sizes, strict=False)]
        if len(allowed) != len(sizes):
            raise InputError(f"action_mask has {len(allowed)} parts for {len(sizes)} actions")
        return reduce(lambda a, b: (a[:, None] & b[None, :]).ravel(), parts)
    return _one_mask(allowed, space_size(space, "action_space"))


def _one_mask(allowed: Any, size: int) -> np.ndarray:
    mask = np.asarray(as_flags(allowed, "action_mask"))
    if mask.shape != (size,):
        raise InputError(f"action_mask has shape {mask.shape}, it must be {size} times 0 or 1")
    return mask


def checked_masks(masks: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Masks of a batch `[B, A]`, of which each leaves an action; one alone may be `[A]`."""
    masks = np.atleast_2d(np.asarray(as_flags(masks, "action_masks")))
    if masks.shape != shape:
        raise InputError(f"action_masks of shape {masks.shape}: it must be {shape}")
    if not masks.any(axis=-1).all():
        raise InputError("action_masks leaves no feasible action")
    return masks
