"""The core broadcasts nothing by accident: arrays of different rank do not meet silently."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def no_rank_promotion() -> Iterator[None]:
    with jax.numpy_rank_promotion("raise"):
        yield
