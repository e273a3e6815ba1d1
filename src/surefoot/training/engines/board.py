"""How far each job has come, counted by the workers of this machine while they run."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot.runs.progress import Bar

CounterPlace = tuple[str, int] | None
EVERY = 0.5  # seconds between two looks at the counters


class Board:
    """A file of counters that workers write to and a progress bar follows.

        with progress(sum(steps), "trials", "steps") as bar, Board(steps, bar) as board:
            jobs = [(trial, board.place(i)) for i, trial in enumerate(trials)]

    Workers on other machines cannot see the file: with `here=False` there are no places, and a
    job counts once, when it is `finished`.
    """

    def __init__(self, sizes: Sequence[int], bar: Bar, *, here: bool = True) -> None:
        self._sizes, self._bar, self._here = list(sizes), bar, here
        self._shown, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Board:
        self._folder = tempfile.TemporaryDirectory(prefix="surefoot-")
        self._path = Path(self._folder.name) / "counters"
        np.zeros(max(len(self._sizes), 1), np.int64).tofile(self._path)
        self._counters = np.memmap(self._path, np.int64, "r+")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        del self._counters
        self._folder.cleanup()

    def place(self, index: int) -> CounterPlace:
        """What the worker passes to `counter`."""
        return (str(self._path), index) if self._here else None

    def finished(self, index: int) -> None:
        """A job is over, however far its worker had counted."""
        self._counters[index] = self._sizes[index]

    def _follow(self) -> None:
        while not self._done.wait(EVERY):
            self._look()

    def _look(self) -> None:
        # The most seen so far: the counter of a job that runs again begins anew.
        done = int(self._counters.sum())
        if done > self._shown:
            self._bar.advance(done - self._shown)
            self._shown = done


def counter(place: CounterPlace) -> np.ndarray:
    """An array of one number; setting it moves the bar, where there is a board to see it on."""
    if place is None:
        return np.zeros(1, np.int64)
    path, index = place
    return np.memmap(path, np.int64, "r+", offset=8 * index, shape=(1,))
