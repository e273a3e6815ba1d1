"""What of Gymnasium's spaces is supported, and how it becomes numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from surefoot.errors import InputError

SUPPORTED = "supported are flat Box or Discrete observations and Discrete actions"


@dataclass(frozen=True)
class Spec:
    """Observations `[obs_size]` of `obs_dtype`, or one of `categories`; actions from `start`."""

    obs_size: int
    obs_dtype: str
    num_actions: int
    action_start: int = 0
    categories: int = 0
    """States of a Discrete observation, which enters the network one-hot; 0 for a Box."""
    category_start: int = 0

    @property
    def obs_shape(self) -> tuple[int, ...]:
        return () if self.categories else (self.obs_size,)

    def features(self, obs: jax.Array) -> jax.Array:
        """`[B, *obs_shape]` as stored -> `[B, obs_size]` as the network takes it."""
        if self.categories:
            return jax.nn.one_hot(obs.astype(jnp.int32) - self.category_start, self.categories)
        return obs.astype(jnp.float32)

    def check(self, obs: Any, name: str = "obs") -> np.ndarray:
        """An observation, or a batch of them, as an array of the stored type."""
        array = np.asarray(obs)
        if array.dtype.kind not in "biuf":
            raise InputError(f"{name} holds {array.dtype}, not numbers")
        own = len(self.obs_shape)
        if array.ndim not in (own, own + 1) or array.shape[array.ndim - own :] != self.obs_shape:
            batch = ", ".join(map(str, ("B", *self.obs_shape)))
            raise InputError(
                f"{name} has shape {array.shape}: it must be {self.obs_shape}, or [{batch}]"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{name} has values that are NaN or infinite")
        if self.categories:
            top = self.category_start + self.categories - 1
            if not ((array >= self.category_start) & (array <= top)).all():
                raise InputError(f"{name} must lie in {self.category_start}..{top}")
        return array.astype(self.obs_dtype)


def spec_of(env: gym.Env[Any, Any]) -> Spec:
    """The environment's spaces, or an error that says what is supported."""
    seen, done = env.observation_space, env.action_space
    if not isinstance(done, spaces.Discrete):
        raise InputError(f"action space {done}: {SUPPORTED}")
    actions: dict[str, int] = {"num_actions": int(done.n), "action_start": int(done.start)}
    if isinstance(seen, spaces.Discrete):
        n, start = int(seen.n), int(seen.start)
        return Spec(n, "int32", **actions, categories=n, category_start=start)
    if not isinstance(seen, spaces.Box):
        raise InputError(f"observation space {seen}: {SUPPORTED}")
    if len(seen.shape) != 1 or seen.shape[0] == 0:
        raise InputError(
            f"observation space {seen} is not flat: wrap the environment in "
            f"gymnasium.wrappers.FlattenObservation; {SUPPORTED}"
        )
    return Spec(int(seen.shape[0]), _stored_dtype(seen.dtype), **actions)


def _stored_dtype(dtype: Any) -> str:
    """As given, but nothing wider than 32 bits: the network computes in float32 anyway."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return "float16" if kind.itemsize == 2 else "float32"
    if kind.kind == "b":
        return "uint8"
    if kind.kind not in "iu":
        raise InputError(f"observations of type {kind} are not numbers; {SUPPORTED}")
    return f"{'int' if kind.kind == 'i' else 'uint'}{8 * min(kind.itemsize, 4)}"
