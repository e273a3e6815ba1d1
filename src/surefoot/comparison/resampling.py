"""Which rows each resample takes, as one number for each row: how often, less one.

Everything a bootstrap asks of a resample is a weighted sum over the rows, so a resample is its
weights. They are made a few resamples at a time, and the same ones come whenever they are asked
for, however many at a time: each kind of draw has a stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.memory import Blocks

Weights = NDArray[np.int16]
_SIDE = 64
_AT_ONCE = 1 << 27  # weights in memory: a quarter of a gigabyte
_DRAWN = 1 << 18  # rows times resamples drawn at once: more fall out of the cache (measured)


@dataclass(frozen=True)
class Resampling:
    """Resamples of `n` rows in blocks of `length` consecutive ones; the last follows the first."""

    n: int
    resamples: int
    seed: int
    stream: int = 0
    """Columns of one table share a stream, so their rows stay together; others have their own."""
    length: int = 1
    """Rows of a block, on average where they are stationary; 1 draws each row on its own."""
    blocks: Blocks = "circular"

    def chunks(self, most: int) -> Iterator[Weights]:
        """Weights less one, `[n, resamples]`, at most so many resamples at a time."""
        seeds = np.random.SeedSequence(self.seed).spawn(2)[self.stream]
        starts, breaks = map(np.random.default_rng, (seeds, seeds.spawn(1)[0]))
        for start in range(0, self.resamples, most):
            out = np.empty((self.n, min(most, self.resamples - start)), np.int16)
            for at in range(0, out.shape[1], _SIDE):
                side = out[:, at : at + _SIDE]
                lines = np.empty((side.shape[1], self.n), np.int16)  # turned over in one go
                for i in range(0, len(lines), step := max(1, _DRAWN // self.n)):
                    part = lines[i : i + step]
                    part[:] = self._counts(len(part), starts, breaks)
                np.subtract(lines.T, 1, out=side)
            yield out

    def _counts(
        self, rows: int, starts: np.random.Generator, breaks: np.random.Generator
    ) -> NDArray[np.int64]:
        """How often each row is taken, `[rows, n]`."""
        n = self.n
        if self.length <= 1:
            drawn = starts.integers(n, size=(rows, n), dtype=np.int32)
            drawn += np.arange(rows, dtype=np.int32)[:, None] * n
            return _count(drawn.ravel(), rows, n)
        if self.blocks == "circular":
            begin = np.arange(0, n, self.length)
            row, begin = np.repeat(np.arange(rows), len(begin)), np.tile(begin, rows)
        else:  # a block goes on with probability 1 - 1 / length
            fresh = breaks.random((rows, n), dtype=np.float32) < 1 / self.length
            fresh[:, 0] = True
            row, begin = np.nonzero(fresh)
        end = np.where(np.append(row[1:] == row[:-1], False), np.append(begin[1:], 0), n)
        source = starts.integers(n, size=len(begin), dtype=np.int32)
        return _cover(row, source, source + (end - begin), rows, n)


Draws = tuple[Resampling, Resampling]


def together(draws: Draws, most: int) -> Iterator[tuple[Weights, Weights]]:
    """Weights of both columns of a pair; one array for both where they share their rows."""
    if draws[0] == draws[1]:
        yield from ((weights, weights) for weights in draws[0].chunks(most))
    else:
        yield from zip(*(draw.chunks(most) for draw in draws), strict=True)


def parts(draws: Draws) -> int:
    """In how many parts the weights of a pair fit in memory."""
    return -(-draws[0].resamples // _size(draws))


def in_parts(draws: Draws) -> Iterator[Weights]:
    """The weights of a pair, those of y below those of x unless they are the same."""
    for x, y in together(draws, _size(draws)):
        yield x if x is y else np.concatenate([x, y])


def _size(draws: Draws) -> int:
    return max(1, _AT_ONCE // max(draw.n for draw in draws))


def _cover(
    row: NDArray[Any], start: NDArray[Any], stop: NDArray[Any], rows: int, n: int
) -> NDArray[np.int64]:
    """How many of the stretches `start, ..., stop - 1` (modulo n) of its row cover each place."""
    around = stop > n
    change = _count(row * (n + 1) + start, rows, n + 1)
    change -= _count(row * (n + 1) + np.where(around, stop - n, stop), rows, n + 1)
    change[:, 0] += np.bincount(row[around], minlength=rows)
    return np.cumsum(change, axis=1)[:, :n]


def _count(places: NDArray[Any], rows: int, width: int) -> NDArray[np.int64]:
    return np.bincount(places, minlength=rows * width).reshape(rows, width)
