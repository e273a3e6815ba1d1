"""What `learn` does between two stretches of steps: keep, complain, stop when asked.

Ctrl-C and SIGTERM are a request to stop, which `learn` follows after saving.

A run in a Gymnasium environment goes on from where an episode begins, so checkpoints are taken
there. One that is resumed repeats, bit for bit, what came after.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from surefoot.errors import InputError, Interrupted, SurefootError
from surefoot.runs.checkpoints import Checkpoints, Kept

PATIENCE = 5.0  # seconds a stop waits for the end of an episode, or of an evaluation
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

    def end(self, moved: int) -> float:
        """After so many steps; the seconds they took."""
        spent = time.monotonic() - self._began
        self._steps = max(1, min(self._most, int(moved / (spent + 1e-9) * LONGEST)))
        return spent


class Session:
    """One call of `learn`. The agent says by `at_boundary` whether its run can be taken up again
    from where it is; `begin` is called once the checkpoints' directory is ours."""

    def __init__(
        self, agent: Kept, checkpoints: Checkpoints | None, begin: Callable[[], None]
    ) -> None:
        if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
            raise InputError(
                f"checkpoints is a {type(checkpoints).__name__}: pass Checkpoints(...)"
            )
        self.agent, self.checkpoints, self._begin = agent, checkpoints, begin
        self._stack = ExitStack()
        self._warned = False
        self._began = 0  # step at which the episode under way began, as far as it was seen

    def __enter__(self) -> Session:
        keeper, self._began = self.checkpoints, self.agent.num_timesteps
        if keeper is None:
            self._begin()
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                # Not in the middle of a compiled call, which would leave the agent in pieces.
                self._stack.enter_context(stopping((signal.SIGINT,)))
        else:
            keeper.open(self.agent.num_timesteps)
            try:
                self._begin()  # not before: what is there may be another process's
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
                    "and this one does not end; set a time limit in the environment",
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
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, Interrupted):
                self._stop_at_once()

    def _stop(self) -> None:
        """Save, and end `learn`."""
        stop, keeper = asked(), self.checkpoints
        assert stop is not None
        if keeper and not self.agent.at_boundary and not stop.overdue:
            return
        stop.met = True
        step = self.agent.num_timesteps
        if keeper is None:
            raise Interrupted(
                f"interrupted at step {step}; no checkpoints were being kept: the agent is as it "
                "was after that step, and learn goes on with it, but nothing of it is on disk"
            )
        path = self._last()
        saved = (
            "saved" if keeper.last == step else f"within an episode; step {keeper.last} is saved:"
        )
        self._end(f"{saved} {path}", path)

    def _stop_at_once(self) -> None:
        """Nothing more is saved: what an evaluation was to write down at this step is missing."""
        keeper, stop = self.checkpoints, asked()
        assert keeper is not None
        if stop is not None:
            stop.met = True
        path = None if keeper.last is None else keeper.path_of(keeper.last)
        if path is not None and path.exists():
            self._end(f"step {keeper.last} is saved: {path}", path)

    def _end(self, saved: str, path: Path) -> NoReturn:
        keeper, kind = self.checkpoints, type(self.agent).__name__
        assert keeper is not None
        how = keeper.hint or f"{kind}.resume({str(keeper.directory)!r})"
        step = self.agent.num_timesteps
        raise Interrupted(f"interrupted at step {step}, {saved}; go on with {how}", path) from None

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


# --- signals -----------------------------------------------------------------------------

WORDS = b"\nsurefoot: stopping after this stretch of steps; Ctrl-C again stops at once\n"


class Stop:
    """Whether someone asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.asked: str | None = None
        self.met = False  # whether `learn` has ended for it
        self._since = 0.0

    def __call__(self, number: int, frame: Any) -> None:
        if self.asked is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.asked is None:
            self.asked, self._since = signal.Signals(number).name, time.monotonic()
            os.write(2, WORDS)  # not print: a handler may run in the middle of another print

    @property
    def overdue(self) -> bool:
        """Whether someone has waited for the end of an episode for long enough."""
        return self.asked is not None and time.monotonic() - self._since >= PATIENCE


_STOP: Stop | None = None


@contextmanager
def stopping(
    signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
) -> Iterator[Stop]:
    """Within the block, Ctrl-C and SIGTERM end `learn` at its next look at the clock.

    If checkpoints are being kept one is saved, then `Interrupted` says how to resume. A second
    Ctrl-C does not wait. Signals reach the main thread only; elsewhere the block does nothing.
    """
    global _STOP
    if _STOP is not None or threading.current_thread() is not threading.main_thread():
        yield _STOP or Stop()
        return
    _STOP = stop = Stop()
    old = {number: signal.signal(number, stop) for number in signals}
    try:
        yield stop
    finally:
        _STOP = None
        for number, handler in old.items():
            signal.signal(number, handler)
    if stop.asked is not None and not stop.met:  # it came too late for `learn` to see it
        raise KeyboardInterrupt


@contextmanager
def resumable(place: object) -> Iterator[None]:
    """Ctrl-C within the block says how to go on: what is finished is on disk already."""
    try:
        yield
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted) and error.path is not None:
            raise
        raise Interrupted(
            f"interrupted; what is finished is in {place}; go on with the same command", place
        ) from None


def asked() -> Stop | None:
    """The wish to stop, if there is one that has not been met yet."""
    return _STOP if _STOP is not None and _STOP.asked is not None else None


def end_if_overdue() -> None:
    """What may go on for long, as an evaluation, looks here: a stop does not wait for its end."""
    stop = asked()
    if stop is not None and stop.overdue:
        stop.met = True
        raise KeyboardInterrupt
