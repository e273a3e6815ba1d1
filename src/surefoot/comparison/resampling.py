"""Which rows each resample takes, as one number for each row: how often, less one.

Everything a bootstrap asks of a resample is a weighted sum over the rows, so a resample is its
weights. They are made a few resamples at a time, and the same ones come whenever they are asked
for, however many at a time: each kind of draw has a stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.int16]
_DRAWN = 1 << 18  # rows times resamples drawn at once: more fall out of the cache (measured)


@dataclass(frozen=True)
class Resampling:
    """Resamples of `n` rows, each drawn on its own."""

    n: int
    resamples: int
    seed: int
    stream: int = 0
    """Columns of one table share a stream, so their rows stay together; others have their own."""

    def chunks(self, most: int) -> Iterator[Weights]:
        """Weights less one, `[n, resamples]`, at most so many resamples at a time."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed).spawn(2)[self.stream])
        for start in range(0, self.resamples, most):
            out = np.empty((self.n, min(most, self.resamples - start)), np.int16)
            step = max(1, _DRAWN // self.n)
            for at in range(0, out.shape[1], step):
                part = out[:, at : at + step]
                part[:] = self._counts(part.shape[1], rng).T
            out -= 1
            yield out

    def _counts(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        drawn = rng.integers(self.n, size=(rows, self.n), dtype=np.int32)
        offset = (np.arange(rows) * self.n)[:, None]
        flat = np.bincount((drawn + offset).ravel(), minlength=rows * self.n)
        return flat.reshape(rows, self.n)
