"""CartPole and MountainCar as pure functions of arrays (dynamics and constants of Gymnasium).

    state = env.reset(key)
    state, obs, reward, terminated, truncated = env.step(state, action)

The time limit is part of the state, so that truncation differs from termination. Nothing
resets by itself: the training loop does, and keeps the last observation of an episode.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv

from surefoot.envs.making import added_wrappers, env_name, time_limit
from surefoot.errors import InputError, unknown

NEVER = 2**31 - 1  # more steps than an episode can have


class EnvState(NamedTuple):
    x: jax.Array  # [D] float32, also the observation
    steps: jax.Array  # int32 since the reset
    noise: Any = ()  # uint32 [2], the key of what comes next in an environment with random numbers


StepResult = tuple[EnvState, jax.Array, jax.Array, jax.Array, jax.Array]
Moved = tuple[jax.Array, jax.Array, jax.Array]


@dataclass(frozen=True)
class PureEnv(ABC):
    """Hashable, so that it is static under `jit`."""

    env_id: str
    num_actions: int
    obs_size: int
    time_limit: int

    @abstractmethod
    def draw_start(self, key: jax.Array) -> jax.Array: ...

    @abstractmethod
    def move(self, x: jax.Array, action: jax.Array) -> Moved:
        """The next `x`, the reward and whether it terminated."""

    def reset(self, key: jax.Array) -> EnvState:
        return EnvState(self.draw_start(key), jnp.zeros((), jnp.int32))

    def step(self, state: EnvState, action: jax.Array) -> StepResult:
        x, reward, terminated = self.move(state.x, action)
        steps = state.steps + 1
        return EnvState(x, steps), x, reward, terminated, steps >= self.time_limit


@dataclass(frozen=True)
class RandomEnv(PureEnv):
    """An environment with one random number a step, drawn from a key in its state."""

    scale: float = 1.0
    """Of all rewards."""

    def draw(self, key: jax.Array) -> jax.Array:
        """The random number of a step."""
        return jax.random.normal(key)

    @abstractmethod
    def moved(self, x: jax.Array, action: jax.Array, noise: Any) -> Moved:
        """`move`, with the step's random number."""

    def move(self, x: jax.Array, action: jax.Array) -> Moved:
        return self.moved(x, action, 0.0)  # what happens on average

    def reset(self, key: jax.Array) -> EnvState:
        start, noise = jax.random.split(key)
        return EnvState(
            self.draw_start(start), jnp.zeros((), jnp.int32), jax.random.key_data(noise)
        )

    def step(self, state: EnvState, action: jax.Array) -> StepResult:
        key, now = jax.random.split(jax.random.wrap_key_data(state.noise))
        x, reward, terminated = self.moved(state.x, action, self.draw(now))
        steps = state.steps + 1
        after = EnvState(x, steps, jax.random.key_data(key))
        return after, x, self.scale * reward, terminated, steps >= self.time_limit


@dataclass(frozen=True)
class CartPole(PureEnv):
    """`CartPole-v1`: Barto, Sutton and Anderson (1983), Euler's method."""

    env_id: str = "CartPole-v1"
    num_actions: int = 2
    obs_size: int = 4
    time_limit: int = 500

    def draw_start(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)

    def move(self, x: jax.Array, action: jax.Array) -> Moved:
        gravity, pole_mass, total_mass, half_length, tau = 9.8, 0.1, 1.1, 0.5, 0.02
        position, speed, angle, turning = x
        force = jnp.where(action == 1, 10.0, -10.0)
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        push = (force + pole_mass * half_length * turning**2 * sine) / total_mass
        inertia = half_length * (4.0 / 3.0 - pole_mass * cosine**2 / total_mass)
        angular = (gravity * sine - cosine * push) / inertia
        linear = push - pole_mass * half_length * angular * cosine / total_mass
        new = jnp.stack(
            [
                position + tau * speed,
                speed + tau * linear,
                angle + tau * turning,
                turning + tau * angular,
            ]
        )
        fallen = (jnp.abs(new[0]) > 2.4) | (jnp.abs(new[2]) > 12 * 2 * np.pi / 360)
        return new, jnp.ones(()), fallen


@dataclass(frozen=True)
class MountainCar(PureEnv):
    """`MountainCar-v0`: Moore (1990)."""

    env_id: str = "MountainCar-v0"
    num_actions: int = 3
    obs_size: int = 2
    time_limit: int = 200

    def draw_start(self, key: jax.Array) -> jax.Array:
        position = jax.random.uniform(key, minval=-0.6, maxval=-0.4)
        return jnp.stack([position, jnp.zeros(())])

    def move(self, x: jax.Array, action: jax.Array) -> Moved:
        position, speed = x
        push = (action - 1) * 0.001 + jnp.cos(3 * position) * -0.0025
        speed = jnp.clip(speed + push, -0.07, 0.07)
        position = jnp.clip(position + speed, -1.2, 0.6)
        speed = jnp.where((position <= -1.2) & (speed < 0), 0.0, speed)
        arrived = (position >= 0.5) & (speed >= 0)
        return jnp.stack([position, speed]), -jnp.ones(()), arrived


ENVIRONMENTS: dict[str, PureEnv] = {env.env_id: env for env in (CartPole(), MountainCar())}


def pure_env_named(env_id: str) -> PureEnv:
    if env_id not in ENVIRONMENTS:
        raise unknown("compiled environment", env_id, ENVIRONMENTS)
    return ENVIRONMENTS[env_id]


def pure_env_of(env: gym.Env[Any, Any]) -> PureEnv:
    """An environment as functions, its own or ours. What is around it is not in the functions, nor
    is an argument of Gymnasium's environment: refused, but for a time limit."""
    if isinstance(env, VectorEnv):
        raise InputError("compiled: a VectorEnv is stepped from outside; pass the id and n_envs")
    own, limit = getattr(env.unwrapped, "pure", None), time_limit(env)
    if own is None and (env.spec is None or env.spec.id not in ENVIRONMENTS):
        raise unknown("compiled environment", env_name(env), ENVIRONMENTS)
    around = added_wrappers(env)
    if around:
        raise InputError(
            f"compiled: the wrapper {around[0]} would not be called; leave compiled out"
        )
    if isinstance(own, PureEnv):
        if limit is not None and limit < own.time_limit:
            raise InputError(
                f"max_episode_steps = {limit}: a compiled {own.env_id} ends its episodes itself, "
                f"after {own.time_limit} steps; leave compiled out"
            )
        return own
    assert env.spec is not None
    for name, value in env.spec.kwargs.items():
        if name != "render_mode":
            raise InputError(
                f"compiled: {env.spec.id} knows no {name} = {value!r}; leave compiled out"
            )
    pure = pure_env_named(env.spec.id)
    return dataclasses.replace(pure, time_limit=NEVER if limit is None else limit)
