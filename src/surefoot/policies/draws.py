"""The best of the actions `[A]`, and one of several by lot: small pure functions, quick for few."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from surefoot.core.shortfall import FEW


def near_best(score: jax.Array, mask: jax.Array, tolerance: float) -> jax.Array:
    """Feasible actions within the tolerance of the best score; only finite scores count."""
    mask = mask & jnp.isfinite(score)
    score = jnp.where(mask, score, -jnp.inf)
    return mask & (score >= largest(score) - tolerance)


def draw(candidates: jax.Array, key: jax.Array) -> jax.Array:
    """One of the candidates, uniformly: the k-th true entry for a uniform k."""
    number = count(candidates)
    k = jnp.minimum((_uniform(key) * number).astype(jnp.int32), number - 1)
    if candidates.shape[0] > FEW:
        passed = jnp.cumsum(candidates.astype(jnp.int32))
        return jnp.argmax(passed > k).astype(jnp.int32)
    passed, action = jnp.int32(0), jnp.int32(0)
    for candidate in candidates:  # as long as k candidates have not been passed, go on
        passed = passed + candidate.astype(jnp.int32)
        action = action + (passed <= k).astype(jnp.int32)
    return action


def largest(x: jax.Array) -> jax.Array:
    """The maximum over the actions `[A]`."""
    if x.shape[0] > FEW:
        return jnp.max(x)
    return functools.reduce(lambda a, b: jnp.where(b > a, b, a), x)


def count(x: jax.Array) -> jax.Array:
    """How many of the actions `[A]` are true."""
    if x.shape[0] > FEW:
        return jnp.sum(x, dtype=jnp.int32)
    return functools.reduce(jnp.add, x.astype(jnp.int32))


def _uniform(key: jax.Array) -> jax.Array:
    """One number in [0, 1) from a key: its words through MurmurHash3's finaliser, 24 bits kept.

    `jax.random.uniform` runs Threefry as a loop of small kernels, which here costs as much as
    comparing all actions. Split keys are random words already; the hash serves plain seeds.
    """
    words = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
    hashed = jnp.uint32(0x9E3779B9)
    for word in words.reshape(-1):
        hashed = (hashed ^ word) * jnp.uint32(0x85EBCA6B)
        hashed = (hashed ^ (hashed >> 13)) * jnp.uint32(0xC2B2AE35)
        hashed = hashed ^ (hashed >> 16)
    return (hashed >> 8).astype(jnp.float32) * jnp.float32(2**-24)
