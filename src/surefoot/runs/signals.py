"""Ctrl-C and SIGTERM as a request to stop, which `learn` follows after saving."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WORDS = b"\nsurefoot: stopping after this stretch of steps; Ctrl-C again stops at once\n"


class Stop:
    """Whether someone asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.asked: str | None = None
        self.met = False  # whether `learn` has ended for it

    def __call__(self, number: int, frame: Any) -> None:
        if self.asked is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.asked is None:
            self.asked = signal.Signals(number).name
            os.write(2, WORDS)  # not print: a handler may run in the middle of another print


_STOP: Stop | None = None


@contextmanager
def stopping() -> Iterator[Stop]:
    """Within the block, Ctrl-C and SIGTERM end `learn` at its next look at the clock.

    If checkpoints are being kept one is saved, then `Interrupted` says how to resume. A second
    Ctrl-C does not wait. Signals reach the main thread only; elsewhere the block does nothing.
    """
    global _STOP
    if _STOP is not None or threading.current_thread() is not threading.main_thread():
        yield _STOP or Stop()
        return
    _STOP = stop = Stop()
    old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        _STOP = None
        for number, handler in old.items():
            signal.signal(number, handler)
    if stop.asked is not None and not stop.met:  # it came too late for `learn` to see it
        raise KeyboardInterrupt


def asked() -> Stop | None:
    """The wish to stop, if there is one that has not been met yet."""
    return _STOP if _STOP is not None and _STOP.asked is not None else None
