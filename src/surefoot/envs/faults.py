"""A Gymnasium environment of anybody's making, as training uses it.

Every episode starts from a seed made of the run's seed and the episode's number, always: that is
what lets a run be taken up again between two episodes. What goes wrong in a step is a `Fault`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.making import env_name
from surefoot.errors import InputError, at_least

MODES = ("stop", "retry")


@dataclass(frozen=True)
class FaultPolicy:
    """What `learn` does when an environment raises, hangs or returns no number.

    The faulty step is never learned from. With retries left the episode ends there as
    truncated, the environment is made anew (or reset, if it came as an object) and the
    run goes on; without, the run stops with all it had.
    """

    retries: int = 0
    """Faults in one call of `learn` to go on after."""
    step_timeout: float | None = None
    """Seconds a step or a reset may take; needs POSIX signals and the main thread."""

    def __post_init__(self) -> None:
        at_least(0, retries=self.retries)
        if self.step_timeout is not None and not 0 < self.step_timeout < 1e6:
            raise InputError(f"step_timeout = {self.step_timeout!r}: it must be positive seconds")


def fault_policy(wanted: str | FaultPolicy) -> FaultPolicy:
    """`FaultPolicy`, or "stop", or "retry" (up to ten times)."""
    if isinstance(wanted, FaultPolicy):
        return wanted
    if wanted not in MODES:
        raise InputError(f"on_fault = {wanted!r}: use 'stop', 'retry' or a FaultPolicy")
    return FaultPolicy(retries=10 if wanted == "retry" else 0)


class Fault(Exception):
    """A step that came to nothing: the next one to be made, or the number `step`.

    `lasting` if what the agent has learned is spoilt too; `ended` are the episodes before it.
    """

    def __init__(
        self, message: str, *, lasting: bool = False, step: int | None = None, ended: Any = ()
    ) -> None:
        super().__init__(message)
        self.lasting, self.step, self.ended = lasting, step, ended


class Hang(Exception):
    """A step took longer than it may."""


def fault_from(error: Exception) -> Fault:
    """What an environment raised, in one line."""
    if isinstance(error, Fault | InputError):
        return Fault(str(error))
    text = " ".join(str(error).split())
    return Fault(f"the environment raised {type(error).__name__}: {text}")


EVALUATION = 1  # a third word beside a run's seed and an episode's number, which training lacks


def episode_seed(seed: int, number: int) -> int:
    """The seed that episode `number` starts from: the run's own for the first."""
    if number == 0:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def evaluation_seed(seed: int, number: int) -> int:
    """The seed of episode `number` of an evaluation: no two runs or episodes share one, nor do
    training and evaluation."""
    return int(np.random.SeedSequence([seed, number, EVALUATION]).generate_state(1)[0])


class TrainingEnv:
    """The environment of one run: seeds its episodes, limits their time, is renewed after a fault.

    `step` and `reset` are what the environment has, or limited to `limit_time`'s seconds.
    """

    def __init__(
        self, env: gym.Env[Any, Any], seed: int, remake: Callable[[], Any] | None = None
    ) -> None:
        self.env, self.seed, self.remake = env, seed, remake
        self._timeout: float | None = None
        self.step: Callable[[Any], Any] = env.step

    @property
    def name(self) -> str:
        return env_name(self.env)

    @property
    def environments(self) -> list[Any]:
        """All there are: one."""
        return [self.env]

    def limit_time(self, seconds: float | None) -> None:
        """How long a step or a reset may take from now on."""
        self._timeout = seconds
        self.step = self.env.step if seconds is None else limited(self.env.step, seconds)

    def reset(self, number: int) -> tuple[Any, dict[str, Any]]:
        """The observation that episode `number` starts with, whatever was before, and the info."""
        reset = self.env.reset if self._timeout is None else limited(self.env.reset, self._timeout)
        return reset(seed=episode_seed(self.seed, number))

    def renew(self) -> None:
        """Another environment instead of one that has failed, if we know how to make it."""
        if self.remake is not None:
            with contextlib.suppress(Exception):
                self.env.close()
            self.env = self.remake()
            self.limit_time(self._timeout)


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
