"""What `learn` does between two stretches of steps: keep, complain, stop when asked.

A run in a Gymnasium environment goes on from where an episode begins, so checkpoints are taken
there. One that is resumed repeats, bit for bit, what came after.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from surefoot.errors import InputError, Interrupted, SurefootError
from surefoot.runs.checkpoints import Checkpoints, Kept
from surefoot.runs.signals import asked, stopping

PATIENCE = 5.0  # seconds a stop waits for the end of an episode
LONGEST = 0.5  # seconds between two looks; a slow environment gets shorter stretches
TOO_LONG = 2  # periods of checkpoints that an episode may last before a stop cuts it
OVERDUE = 10  # periods without a checkpoint that are worth a warning


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
    """One call of `learn`. The agent says by `at_boundary` whether its run can be taken up again
    from where it is."""

    def __init__(self, agent: Kept, checkpoints: Checkpoints | None) -> None:
        if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
            raise InputError(
                f"checkpoints is a {type(checkpoints).__name__}: pass Checkpoints(...)"
            )
        self.agent, self.checkpoints = agent, checkpoints
        self._stack = ExitStack()
        self._asked_at: float | None = None
        self._warned = False
        self._began = 0  # step at which the episode under way began, as far as it was seen

    def __enter__(self) -> Session:
        keeper, self._began = self.checkpoints, self.agent.num_timesteps
        if keeper is not None:
            keeper.open(self.agent.num_timesteps)
            try:
                # A run that is killed before its first checkpoint is due can go on too, and
                # its logs know where they began.
                if self.agent.at_boundary:
                    keeper.save(self.agent)
            except BaseException:
                keeper.close()
                raise
            self._stack.enter_context(stopping())
        return self

    def between(self) -> None:
        """Between two stretches of steps."""
        keeper = self.checkpoints
        if self.agent.at_boundary:
            self._began = self.agent.num_timesteps
        if keeper is not None:
            keeper.complain()
        if asked() is not None:
            self._stop()
        if keeper is not None and keeper.due(self.agent.num_timesteps):
            if self.agent.at_boundary:
                keeper.offer(self.agent.snapshot)
            elif self._lasted() > OVERDUE * keeper.every and not self._warned:
                self._warned = True
                warnings.warn(
                    f"no checkpoint for {self._lasted()} steps: they are taken between episodes, "
                    "and this one does not end; give the environment a time limit",
                    stacklevel=4,
                )

    def save(self) -> None:
        """Keep the run as it is, if any is kept."""
        if self.checkpoints is not None:
            self.checkpoints.save(self.agent)

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
                        self._stop()
            finally:
                # The first error is the one to tell.
                with contextlib.suppress(*((SurefootError,) if error is not None else ())):
                    keeper.close()

    def _stop(self) -> None:
        """Save, and end `learn`."""
        stop, keeper = asked(), self.checkpoints
        assert stop is not None
        now = time.monotonic()
        self._asked_at = self._asked_at or now
        if keeper and not self.agent.at_boundary and now - self._asked_at < PATIENCE:
            return
        stop.met = True
        step = self.agent.num_timesteps
        if keeper is None:
            raise Interrupted(f"interrupted at step {step}; no checkpoints were being kept")
        path = self._last()
        kind = type(self.agent).__name__
        how = keeper.hint or f"{kind}.resume({str(keeper.directory)!r})"
        saved = (
            "saved" if keeper.last == step else f"within an episode; step {keeper.last} is saved:"
        )
        raise Interrupted(f"interrupted at step {step}, {saved} {path}; go on with {how}", path)

    def _last(self) -> Path:
        """The checkpoint that the run would go on from: of this very step if an episode begins
        here, else of the last one that began. An episode that lasts too long is cut for it."""
        keeper, step = self.checkpoints, self.agent.num_timesteps
        assert keeper is not None
        keeper.settle()
        within = not self.agent.at_boundary and self._lasted() <= TOO_LONG * keeper.every
        if keeper.last is not None and (keeper.last == step or within):
            path = keeper.path_of(keeper.last)
            if path.exists():
                return path
        return keeper.save(self.agent)

    def _lasted(self) -> int:
        """Steps of the episode under way."""
        return self.agent.num_timesteps - self._began
