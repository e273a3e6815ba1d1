"""What of Gymnasium's spaces is supported, and how it becomes numbers.

Vectors go in as they are, a Discrete one-hot. A picture (a Box of three axes) keeps its shape and
goes through convolutions. All else that Gymnasium can flatten is flattened by Gymnasium.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from surefoot.envs.discrete import decode, space_size
from surefoot.errors import InputError

MOST_ACTIONS = 1024  # of a product of several choices: the network has outputs for each
KEPT_APART = (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)  # resets that take no step
SMALLEST_PICTURE = 5  # pixels on its shorter side; what is smaller is flattened
SUPPORTED = (
    "supported are observations that gymnasium.spaces.utils.flatten turns into numbers, and "
    f"Discrete actions or products of them (MultiDiscrete) of up to {MOST_ACTIONS}"
)


@dataclass(frozen=True)
class Spec:
    """Observations `[obs_size]` of `obs_dtype`, or one of `categories`, or a `picture`; actions
    from `action_start`. Hashable by shapes alone, so that it is static under `jit`."""

    obs_size: int
    obs_dtype: str
    num_actions: int
    action_start: int = 0
    categories: int = 0
    """States of a Discrete observation, which enters the network one-hot; 0 for a Box."""
    category_start: int = 0
    picture: tuple[int, ...] = ()
    """Shape of a picture as the environment shows it; () where there is none."""
    channels_first: bool = False
    brightest: float = 1.0
    """What the pixels are divided by."""
    voids: bool = False
    """Whether some steps are none: those in which a VectorEnv resets an environment."""
    body: Callable[[Any, jax.Array], jax.Array] | None = None
    """The caller's own layers below the last one."""
    nested: Any = field(default=None, compare=False, repr=False)
    """The observation space, where it has to be flattened."""
    choices: Any = field(default=None, compare=False, repr=False)
    """The action space, where an action is not one number."""

    @cached_property
    def obs_shape(self) -> tuple[int, ...]:
        """As it is stored."""
        return () if self.categories else self.picture or (self.obs_size,)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """As the network takes it: `[obs_size]`, or a picture with its channels last."""
        if not self.picture:
            return (self.obs_size,)
        return (*self.picture[1:], self.picture[0]) if self.channels_first else self.picture

    def features(self, obs: jax.Array) -> jax.Array:
        """`[B, *obs_shape]` as stored -> `[B, *input_shape]` as the network takes it."""
        if self.categories:
            return jax.nn.one_hot(obs.astype(jnp.int32) - self.category_start, self.categories)
        if self.channels_first:
            obs = jnp.moveaxis(obs, 1, -1)
        obs = obs.astype(jnp.float32)
        return obs if self.brightest == 1 else obs * np.float32(1 / self.brightest)

    def own_action(self, action: int) -> Any:
        """An action that counts from 0 in the environment's own words."""
        if self.choices is None:
            return action + self.action_start
        return decode(self.choices, action)

    def take(self, obs: Any) -> Any:
        """One observation of the environment as it is stored; another shape is an error."""
        if self.nested is not None:
            obs = spaces.utils.flatten(self.nested, obs)
        shape = obs.shape if isinstance(obs, np.ndarray) else np.shape(obs)
        if shape != self.obs_shape:
            raise InputError(f"obs has shape {shape}: it must be {self.obs_shape}")
        return obs

    def check(self, obs: Any, name: str = "obs", *, flat: bool = False) -> np.ndarray:
        """An observation, or a batch of them, as an array of the stored type. `flat`: it is one
        that has been taken."""
        if self.nested is not None and not flat:
            obs = self._flattened(obs, name)
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

    def _flattened(self, obs: Any, name: str) -> np.ndarray:
        """Of one, of a list of them, or of a batch as vector environments have it."""
        try:
            if _fits(self.nested, obs):
                return np.asarray(spaces.utils.flatten(self.nested, obs))
            if not isinstance(obs, list):
                obs = gym.vector.utils.iterate(_batched(self.nested, obs), obs)
            flat: Any = [spaces.utils.flatten(self.nested, one) for one in obs]
            return np.stack(flat)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise InputError(f"{name} does not fit {self.nested}: {error}") from None


def spec_of(env: Any, body: Any = None) -> Spec:
    """The environment's spaces, or an error that says what is supported."""
    seen, done, voids = env.observation_space, env.action_space, False
    if isinstance(env, VectorEnv):
        seen, done = env.single_observation_space, env.single_action_space
        voids = env.metadata.get("autoreset_mode") not in KEPT_APART
    actions: dict[str, Any] = _actions(done) | {"body": body, "voids": voids}
    if isinstance(seen, spaces.Discrete):
        n, start = int(seen.n), int(seen.start)
        return Spec(n, "int32", **actions, categories=n, category_start=start)
    if isinstance(seen, spaces.Box) and _is_picture(seen.shape):
        shape, dtype = tuple(map(int, seen.shape)), _stored_dtype(seen.dtype)
        brightest = float(np.max(seen.high)) if np.dtype(seen.dtype).kind == "u" else 1.0
        return Spec(
            int(np.prod(shape)),
            dtype,
            **actions,
            picture=shape,
            channels_first=_channels_first(shape),
            brightest=max(brightest, 1.0),
        )
    if isinstance(seen, spaces.Box) and len(seen.shape) == 1 and seen.shape[0] > 0:
        return Spec(int(seen.shape[0]), _stored_dtype(seen.dtype), **actions)
    flat = _flat_space(seen)
    return Spec(int(flat.shape[0]), _stored_dtype(flat.dtype, flat), **actions, nested=seen)


def _actions(space: gym.Space[Any]) -> dict[str, Any]:
    if isinstance(space, spaces.Discrete):
        return {"num_actions": int(space.n), "action_start": int(space.start)}
    try:
        size = space_size(space, "action space")
    except InputError:
        raise InputError(f"action space {space}: {SUPPORTED}") from None
    if size > MOST_ACTIONS:
        raise InputError(f"action space {space} has {size} actions: {SUPPORTED}")
    return {"num_actions": size, "choices": space}


def _flat_space(space: gym.Space[Any]) -> spaces.Box:
    try:
        flat = spaces.utils.flatten_space(space)
    except ValueError:  # of no parts
        raise InputError(f"observation space {space}: {SUPPORTED}") from None
    except NotImplementedError:
        part = _foreign_part(space, "observation space")
        raise InputError(f"{part}: {SUPPORTED}") from None
    if not isinstance(flat, spaces.Box) or len(flat.shape) != 1 or flat.shape[0] == 0:
        raise InputError(f"observation space {space}: {SUPPORTED}")
    return flat


def _foreign_part(space: gym.Space[Any], name: str) -> str:
    """The part of a nested space that Gymnasium cannot flatten, and how to do without it."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            try:
                spaces.utils.flatten_space(part)
            except NotImplementedError:
                return _foreign_part(part, f"observation {key!r}")
    text = f"{name} is a {type(space).__name__}, which is no number"
    return f"{text}; leave it out by a wrapper such as gymnasium.wrappers.FilterObservation"


def _is_picture(shape: tuple[int, ...]) -> bool:
    if len(shape) != 3 or 0 in shape:
        return False
    height, width = shape[1:] if _channels_first(shape) else shape[:2]
    return min(height, width) >= SMALLEST_PICTURE


def _channels_first(shape: tuple[int, ...]) -> bool:
    """Two equal sides are height and width; else the axis with fewer is the channels'."""
    first, middle, last = shape
    if first == middle:
        return False
    return middle == last or first < last


def _fits(space: gym.Space[Any], obs: Any) -> bool:
    """Whether it is one observation, by the shape of its first part."""
    if isinstance(space, spaces.Dict):
        key, part = next(iter(space.spaces.items()))
        return isinstance(obs, Mapping) and _fits(part, obs[key])
    if isinstance(space, spaces.Tuple):
        return isinstance(obs, tuple) and _fits(space.spaces[0], obs[0])
    if isinstance(space, spaces.OneOf):  # which one, and its value
        return isinstance(obs, tuple) and np.shape(obs[0]) == ()
    return np.shape(obs) == (space.shape or ())


def _batched(space: gym.Space[Any], obs: Any) -> gym.Space[Any]:
    part, first = obs, space
    while isinstance(first, spaces.Dict | spaces.Tuple):
        key: Any = next(iter(first.spaces)) if isinstance(first, spaces.Dict) else 0
        part, first = part[key], first.spaces[key]
    return gym.vector.utils.batch_space(space, len(part))


def _stored_dtype(dtype: Any, flat: spaces.Box | None = None) -> str:
    """As given, but nothing wider than 32 bits: the network computes in float32 anyway. Small whole
    numbers that come of flattening, such as one-hot ones, take a byte."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return "float16" if kind.itemsize == 2 else "float32"
    if kind.kind == "b":
        return "uint8"
    if kind.kind not in "iu":
        raise InputError(f"observations of type {kind} are not numbers; {SUPPORTED}")
    if flat is not None and np.all(flat.low >= 0) and np.all(flat.high <= 255):
        return "uint8"
    return f"{'int' if kind.kind == 'i' else 'uint'}{8 * min(kind.itemsize, 4)}"
