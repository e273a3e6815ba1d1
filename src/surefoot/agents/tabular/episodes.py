"""The counts of all finished episodes, in one array that grows by doubling."""

from __future__ import annotations

import numpy as np


class Episodes:
    """Rows of float32; tens of bytes for an episode, however many there are."""

    def __init__(self, width: int, rows: np.ndarray | None = None) -> None:
        self._room = np.zeros((64, width), np.float32)
        self._number = 0
        if rows is not None:
            self.extend(rows)

    def __len__(self) -> int:
        return self._number

    @property
    def rows(self) -> np.ndarray:
        """What is there so far; not a copy, and not to be written to."""
        view = self._room[: self._number]
        view.setflags(write=False)
        return view

    def extend(self, rows: np.ndarray) -> None:
        end = self._number + len(rows)
        if end > len(self._room):
            room = np.zeros((max(end, 2 * len(self._room)), self._room.shape[1]), np.float32)
            room[: self._number] = self._room[: self._number]
            self._room = room
        self._room[self._number : end] = rows
        self._number = end
