"""A Gymnasium environment as training uses it: how it starts, restarts, is stored and fails."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.restoring import Unrestorable, capture, restore
from surefoot.errors import InputError

MODES = ("stop", "retry")


@dataclass(frozen=True)
class FaultPolicy:
    """What `learn` does when an environment raises, hangs or gives no number.

    The faulty step is never learned from. With retries left the episode ends there as
    truncated, the environment is made anew (or reset, if it was given as an object) and the
    run goes on; without, the run stops with all it had.
    """

    retries: int = 0
    """Faults in one call of `learn` to go on after."""
    step_timeout: float | None = None
    """Seconds a step or a reset may take; needs POSIX signals and the main thread."""

    def __post_init__(self) -> None:
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise InputError(f"retries = {self.retries!r}: it must be a whole number >= 0")
        if self.step_timeout is not None and not 0 < self.step_timeout < 1e6:
            raise InputError(f"step_timeout = {self.step_timeout!r}: it must be positive seconds")


def fault_policy(given: str | FaultPolicy) -> FaultPolicy:
    """`FaultPolicy`, or "stop", or "retry" (up to ten times)."""
    if isinstance(given, FaultPolicy):
        return given
    if given not in MODES:
        raise InputError(f"on_fault = {given!r}: give 'stop', 'retry' or a FaultPolicy")
    return FaultPolicy(retries=10 if given == "retry" else 0)


class Fault(Exception):
    """A step that came to nothing; `lasting` if what the agent has learned is spoilt too."""

    def __init__(self, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class Hang(Exception):
    """A step took longer than it may."""


def episode_seed(seed: int, number: int) -> int:
    """The seed an episode's reset gets where it gets one: the run's own for the first."""
    if number == 0:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


class Stage:
    """The training environment of one run."""

    def __init__(self, env: gym.Env[Any, Any], seed: int, remake: Callable[[], Any] | None) -> None:
        self.env, self.seed, self.remake = env, seed, remake
        self.obstacle: str | None = None  # why its state cannot be stored
        self.reseeds: bool | None = None  # known after the first reset
        self._warned = False

    def start(self, number: int) -> Any:
        """The observation that episode `number` begins with: by seed, whatever was before."""
        obs, _ = self.env.reset(seed=episode_seed(self.seed, number))
        if self.reseeds is None:
            try:
                capture(self.env)
                self.reseeds = False
            except Unrestorable as obstacle:
                self.give_up(str(obstacle))
        return obs

    def reset(self, number: int) -> Any:
        """The same after an episode has ended in the ordinary way.

        Where the environment's state can be stored its own random stream goes on. Where it
        cannot, each episode starts from a seed made of the run's and its number, so that a
        resumed run meets the same episodes as an uninterrupted one.
        """
        if self.reseeds:
            return self.env.reset(seed=episode_seed(self.seed, number))[0]
        return self.env.reset()[0]

    def give_up(self, obstacle: str) -> None:
        self.obstacle, self.reseeds = obstacle, True

    def state(self) -> tuple[list[Any] | None, dict[str, np.ndarray]]:
        """What a checkpoint holds of the environment; None where episodes are reseeded."""
        if not self.reseeds:
            try:
                return capture(self.env)
            except Unrestorable as obstacle:  # it held only plain data when it was first reset
                self.give_up(str(obstacle))
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the state of {env_name(self.env)} cannot be stored ({self.obstacle}): its "
                "checkpoints are taken between episodes, each of which starts from its own seed",
                stacklevel=2,
            )
        return None, {}

    def restore(
        self, told: Any, arrays: dict[str, np.ndarray], number: int, obs: Any, path: object
    ) -> None:
        """As it was; `obs` is what it showed last."""
        if told is not None:
            self.start(number)
            restore(self.env, told, arrays, path)
            self.reseeds = False
            return
        self.give_up("as before")
        if not np.array_equal(np.asarray(self.start(number), np.asarray(obs).dtype), obs):
            warnings.warn(
                f"{env_name(self.env)} does not start equal episodes from equal seeds: the "
                "resumed run will differ from an uninterrupted one",
                stacklevel=2,
            )

    def renew(self) -> None:
        """Another environment instead of one that has failed, if we know how to make it."""
        if self.remake is not None:
            with contextlib.suppress(Exception):
                self.env.close()
            self.env = self.remake()

    def stepper(self, timeout: float | None) -> Callable[[Any], Any]:
        """The environment's `step`; with a timeout, one that raises `Hang`."""
        return self.env.step if timeout is None else limited(self.env.step, timeout)


def limited(call: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """`call`, interrupted by SIGALRM after `seconds`. Code that never comes back to the Python
    interpreter cannot be interrupted by it."""
    main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not main:
        raise InputError("step_timeout needs POSIX signals and the main thread")

    def alarm(*_: Any) -> None:
        raise Hang(f"it took more than {seconds:g} s")

    def within(*args: Any, **options: Any) -> Any:
        old = signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return call(*args, **options)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)

    return within


# --- which environment -------------------------------------------------------------------


def env_name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def env_about(env: gym.Env[Any, Any] | None) -> dict[str, Any] | None:
    """What `gym.make` needs to make another one, or None where that is not known."""
    spec = None if env is None else env.spec
    if spec is None or spec.additional_wrappers or not _plain(spec.kwargs):
        return None
    if spec.id not in gym.registry:  # `gym.make("module:Name-v0")` finds it by importing
        return None
    return {"id": spec.id, "kwargs": spec.kwargs, "max_episode_steps": spec.max_episode_steps}


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) for k in value) and all(map(_plain, value.values()))
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def env_from(about: Mapping[str, Any], path: object) -> gym.Env[Any, Any]:
    """The environment a file names. Only what is registered already: a file imports nothing."""
    told = about.get("env")
    if told is None:
        raise InputError(f"{path}: does not say how to make its environment: give env=")
    try:
        name, options, limit = told["id"], told["kwargs"], told["max_episode_steps"]
        if name not in gym.registry or not _plain(options) or not isinstance(options, dict):
            raise InputError(f"{path}: environment {str(name)[:80]!r} is not registered: give env=")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise TypeError("max_episode_steps is not a whole number")
        return gym.make(name, max_episode_steps=limit, **options)
    except (gym.error.Error, TypeError, KeyError, ValueError, AssertionError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path}: its environment cannot be made ({text})") from None
