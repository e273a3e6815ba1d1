"""What all tests share: a compile cache beside the sources and double precision on request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".cache" / "jax")
)

import jax
import pytest
from hypothesis import HealthCheck, settings

# Eager JAX compiles hundreds of tiny programs; a second run finds all of them on disk.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# No test is timed: a busy machine is no defect.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def x64() -> Iterator[None]:
    """Run one test in double precision; the others keep JAX's default."""
    with jax.enable_x64(True):
        yield
