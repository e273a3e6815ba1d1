"""How well a network's means are known: a bootstrapped ensemble of means on one trunk.

Beside the particles of every action the last layer has `E` estimates of its mean. Each learns from
its own resample of the replay, so that their spread is the error of a mean, not the jitter of
gradient steps (evidence note E4: members on the same data underestimate it fourfold). A resample
is a weight per transition, Poisson(1), the number of times it would be drawn; it is a hash of the
transition's number, so that nothing is stored.

All members read the same features, and those have learned some of the noise, too: the spread was
1.0 to 1.9 times smaller than the error where that could be measured. Decisions widen it (`WIDER`).
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core.evidence import from_ensemble, student
from surefoot.core.sorting import network_sort
from surefoot.policies import SSD, Policy
from surefoot.policies.ssd import saved

# Poisson(1), from 0 times upwards; beyond 8 there is less than a 24-bit number can tell.
_UP_TO = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(9)]).astype(np.float32)

WIDER = 1.25  # by tasks with known answers: 1.5 can miss a lead, 1 can take noise for one


def resample(numbers: jax.Array, members: int) -> jax.Array:
    """How often each member draws the transitions with these numbers: `[B, E]`, one on average."""
    member = jnp.arange(members, dtype=jnp.uint32) * jnp.uint32(0x85EBCA6B)
    word = numbers.astype(jnp.uint32)[:, None] * jnp.uint32(0x9E3779B9) ^ member[None, :]
    unit = (mixed(word) >> 8).astype(jnp.float32) * 2.0**-24
    return sum((unit >= edge).astype(jnp.float32) for edge in _UP_TO)


def mixed(word: Any) -> jax.Array:
    """A word whose bits all depend on all bits of `word`."""
    word = jnp.asarray(word).astype(jnp.uint32)
    word = (word ^ (word >> 16)) * jnp.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * jnp.uint32(0x846CA68B)
    return word ^ (word >> 16)


def widened(means: jax.Array) -> jax.Array:
    """`means[B, E, A]` as far about their middle as the error is large."""
    middle = jnp.mean(means, axis=1, keepdims=True)
    return middle + WIDER * (means - middle)


def members(z: jax.Array, means: jax.Array) -> jax.Array:
    """An ensemble `[B, E, A, N]`: the particles `z[B, A, N]`, moved to the `means[B, E, A]`."""
    shift = means - jnp.mean(z, axis=-1)[:, None]
    return z[:, None] + shift[..., None]


TARGET_ERRORS = 2.0
"""Standard errors within which a target takes actions for worth the same."""


def surest_of_tied(
    policy: Policy, z: jax.Array, means: jax.Array, key: jax.Array, masks: Any = None
) -> tuple[jax.Array, jax.Array]:
    """For a target: of the actions that are worth the same by `means[B, E, A]` the surest `[B]`,
    and whether dominance chose it `[B]`.

    Worth the same is what `SSD()` calls so, but within two errors: more would hold learning back
    where many actions are nearly as good as the best. Among these the means play no part: the
    largest of several noisy means that are worth the same is too large by their noise, and that
    draws a greedy target to risk. `masks[B, A]` leaves the legal actions.
    """
    assert isinstance(policy, SSD)
    errors = min(policy.standard_errors, TARGET_ERRORS)

    def one(z: jax.Array, means: jax.Array, mask: Any) -> tuple[jax.Array, jax.Array]:
        middle = jnp.mean(means, axis=0)
        middle = middle if mask is None else jnp.where(mask, middle, -jnp.inf)
        best = jnp.argmax(middle)
        is_best = jnp.arange(len(middle)) == best  # compiled, its gap may round above zero
        error, freedom = from_ensemble(means[..., None], best)
        gap = middle[best] - middle
        tied = (gap <= student(errors, freedom) * error) & (gap <= saved(z, is_best)) | is_best
        return policy.surest(z, tied, key)

    return jax.vmap(one)(network_sort(z), means, masks)
