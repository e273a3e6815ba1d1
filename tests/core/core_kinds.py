"""Array libraries and particle strategies the core is tested with."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis.extra import numpy as hnp


def to_kind(kind: str, x: Any) -> Any:
    if kind == "torch":
        return pytest.importorskip("torch").asarray(np.array(x))
    return jnp.asarray(x) if kind == "jax" else np.asarray(x)


def is_kind(kind: str, x: Any) -> bool:
    module = type(x).__module__.split(".")[0]
    return module.startswith({"jax": "jax", "torch": "torch", "numpy": "numpy"}[kind])


KINDS = [
    pytest.param("numpy"),
    pytest.param("jax"),
    pytest.param("torch", marks=pytest.mark.torch),
]

# Multiples of 1/64 add up exactly in double precision, so that equality means equality.
grid = st.integers(-640, 640).map(lambda k: k / 64)


def particles(
    n: st.SearchStrategy[int] | int | None = None,
) -> st.SearchStrategy[np.ndarray]:
    """One-dimensional float64 particles on the grid, up to a dozen unless told."""
    return hnp.arrays(np.float64, st.integers(1, 12) if n is None else n, elements=grid)


def shares(n: int) -> st.SearchStrategy[np.ndarray]:
    """Weights that sum to one, zeros among them."""
    whole = hnp.arrays(np.int64, n, elements=st.integers(0, 7))
    return whole.filter(lambda w: w.sum() > 0).map(lambda w: w / w.sum())
