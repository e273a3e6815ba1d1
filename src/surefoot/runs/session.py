"""What `learn` does between two stretches of steps: keep, complain, stop when asked."""

from __future__ import annotations

import contextlib
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from surefoot.errors import InputError, Interrupted, SurefootError
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.signals import asked, stopping

PATIENCE = 5.0  # seconds a stop waits for the end of an episode that cannot be taken up again


LONGEST = 0.5  # seconds between two looks; a slow environment gets shorter stretches


class Pace:
    """How many steps a stretch may have, so that signals are not kept waiting."""

    def __init__(self, most: int) -> None:
        self._most = self._steps = most
        self._began = 0.0

    def begin(self) -> int:
        self._began = time.monotonic()
        return self._steps

    def end(self, moved: int) -> None:
        rate = moved / (time.monotonic() - self._began + 1e-9)
        self._steps = max(1, min(self._most, int(rate * LONGEST)))


class Session:
    """One call of `learn`. The agent says by `at_boundary` whether its environment can be
    taken up again from where it is."""

    def __init__(self, agent: Any, checkpoints: Checkpoints | None) -> None:
        if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
            raise InputError(
                f"checkpoints is a {type(checkpoints).__name__}: give Checkpoints(...)"
            )
        self.agent, self.checkpoints = agent, checkpoints
        self._stack = ExitStack()
        self._asked_at: float | None = None
        self.retried = 0  # faults that the run went on after

    def __enter__(self) -> Session:
        if self.checkpoints is not None:
            self.checkpoints.open(self.agent.num_timesteps)
            try:
                # A run that is killed before its first checkpoint is due can go on too, and
                # its logs know where they began.
                self._last()
            except BaseException:
                self.checkpoints.close()
                raise
            self._stack.enter_context(stopping())
        return self

    def wants_boundary(self) -> bool:
        """Whether the run should pause when the episode ends."""
        keeper = self.checkpoints
        return keeper is not None and (asked() is not None or keeper.due(self.agent.num_timesteps))

    def between(self) -> None:
        """Between two stretches of steps."""
        keeper = self.checkpoints
        if keeper is not None:
            keeper.complain()
        if asked() is not None:
            self._meet()
        if keeper is not None and keeper.due(self.agent.num_timesteps) and self.agent.at_boundary:
            keeper.offer(self.agent.snapshot)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        keeper = self.checkpoints
        with self._stack:
            if keeper is None:
                return
            try:
                if error is None:
                    self._last()
                    if asked() is not None:
                        self._meet()
            finally:
                # The first error is the one to tell.
                with contextlib.suppress(*((SurefootError,) if error is not None else ())):
                    keeper.close()

    def _meet(self) -> None:
        """Save, and end `learn`."""
        stop = asked()
        assert stop is not None
        now = time.monotonic()
        self._asked_at = self._asked_at or now
        if self.checkpoints and not self.agent.at_boundary and now - self._asked_at < PATIENCE:
            return
        stop.met = True
        step = self.agent.num_timesteps
        if self.checkpoints is None:
            raise Interrupted(f"interrupted at step {step}; no checkpoints were being kept")
        path = self._last()
        kind = type(self.agent).__name__
        how = self.checkpoints.hint or f"{kind}.resume({str(self.checkpoints.directory)!r})"
        raise Interrupted(f"interrupted at step {step}, saved {path}; go on with {how}", path)

    def _last(self) -> Path:
        """The newest checkpoint, of this very step."""
        keeper = self.checkpoints
        assert keeper is not None
        keeper.settle()
        path = keeper.directory / f"step-{self.agent.num_timesteps:012d}.safetensors"
        if keeper._last == self.agent.num_timesteps and path.exists() and self.agent.at_boundary:
            return path
        return keeper.save(self.agent, cut=not self.agent.at_boundary)
