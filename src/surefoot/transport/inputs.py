"""What the functions of this package take: arrays or lists of numbers, which become floats of JAX.

Values are checked where they exist: under `jit`, `vmap` or `grad` they do not.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from surefoot.core import array
from surefoot.errors import InputError, real, shown


def particles(**given: Any) -> tuple[jax.Array, ...]:
    """Each as floats, with at least one particle along its first axis; further axes are a batch,
    the same for all. The keywords name them."""
    made = {name: array.as_jax(values, name) for name, values in given.items()}
    for name, z in made.items():
        if z.ndim == 0 or 0 in z.shape:
            raise InputError(f"{name} has shape {z.shape}: particles along one axis are needed")
        array.check_where(jnp, jnp.isfinite(z), z, name, "is not finite")
    (first, one), *others = made.items()
    for name, z in others:
        if z.shape[1:] != one.shape[1:]:
            raise InputError(
                f"{first} has shape {one.shape}, {name} {z.shape}: only the first axes may differ"
            )
    return tuple(made.values())


def one_row(**given: Any) -> tuple[jax.Array, ...]:
    """The same without a batch: `[N]` each."""
    made = particles(**given)
    for name, z in zip(given, made, strict=True):
        if z.ndim != 1:
            raise InputError(f"{name} has shape {z.shape}: it takes [N]; use jax.vmap for batches")
    return made


def equally_many(**given: jax.Array) -> None:
    """Refuse sets of particles that are not of one size."""
    (first, one), *others = given.items()
    for name, z in others:
        if z.shape != one.shape:
            raise InputError(
                f"{first} has shape {one.shape}, {name} {z.shape}: equally many are needed"
            )


def shares(weights: Any, z: jax.Array, name: str) -> jax.Array:
    """The weights of particles `z[N, ...]`: not negative, of sum one; equal ones for None."""
    if weights is None:
        return jnp.full(z.shape, 1 / z.shape[0], z.dtype)
    weights = array.as_jax(weights, name)
    if weights.shape not in (z.shape, z.shape[:1]):
        raise InputError(f"{name} has shape {weights.shape}, the particles {z.shape}")
    last, particles_last = (jnp.moveaxis(values, 0, -1) for values in (weights, z))
    checked = array.check_weights(jnp, last, particles_last, name)
    return jnp.moveaxis(checked, -1, 0).astype(z.dtype)


def positive(value: Any, name: str) -> float:
    """A finite number above zero; a traced one cannot be looked at."""
    if array.is_traced(value):
        return value
    if not 0 < real(value) < math.inf:
        raise InputError(f"{name} = {shown(value)}: it must be a positive, finite number")
    return float(value)
