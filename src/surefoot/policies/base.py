"""What every policy is: a pure function from return distributions and a key to an action.

`policy(z, key)` takes particles `z[A, N]` and gives the action; `policy.decide(z, key)` gives the
action together with who decided and why. Policies are frozen dataclasses: hashable, comparable,
static under `jit`; batches are the caller's `jax.vmap`.

One tolerance serves all: actions whose statistic lies within `tolerance` of the best, in the
units of the returns, are tied. It should lie above the jitter of the estimates and below the
dispersion that is to be seen.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core import array as _array
from surefoot.core.sorting import network_sort
from surefoot.errors import InputError


class DecidedBy(IntEnum):
    """Who chose the action."""

    SCORE = 0  # the policy's statistic had one best action
    DOMINANCE = 1  # one action dominates every other
    TIE_BREAK = 2  # several were equal up to the tolerance, one was drawn
    FALLBACK = 3  # no action dominates: `undecided` chose
    EXPLORATION = 4  # a random action


class Decision(NamedTuple):
    """An action and its reasons; a PyTree, so it passes through `jit` and `vmap`."""

    action: jax.Array  # int32
    decided_by: jax.Array  # int32, a DecidedBy
    tied: jax.Array  # [A] bool: mean within the tolerance of the best mean
    candidates: jax.Array  # [A] bool: the set the action was drawn from
    margin: jax.Array  # how far its F^-2 rises above all others where it leads most
    violations: jax.Array  # [A, A] largest shortfall of F^-2 of a below that of b

    @property
    def multiple_solutions(self) -> jax.Array:
        """Whether more than one action had the best mean: when a choice is to be made."""
        return jnp.sum(self.tied, axis=-1) > 1


class View(NamedTuple):
    """What policies look at, computed once: infeasible actions lie far below all others."""

    z: jax.Array  # [A, N] ascending
    curve: jax.Array  # [A, N] F^-2 at the breakpoints
    mean: jax.Array  # [A]
    lag: jax.Array  # [A] how far the curve falls below the highest one where it falls most
    mask: jax.Array  # [A] bool


@dataclass(frozen=True)
class Policy(ABC):
    """Base of all policies."""

    tolerance: float = field(default=1e-3, kw_only=True)

    def __post_init__(self) -> None:
        _array.check_tolerance(self.tolerance)

    @abstractmethod
    def choose(self, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The set of candidates `[A]` to draw from, and who decided."""

    def __call__(
        self,
        z: jax.Array,
        key: jax.Array,
        mask: jax.Array | None = None,
        *,
        assume_sorted: bool = False,
    ) -> jax.Array:
        return self.decide(z, key, mask, assume_sorted=assume_sorted).action

    def decide(
        self,
        z: jax.Array,
        key: jax.Array,
        mask: jax.Array | None = None,
        *,
        assume_sorted: bool = False,
    ) -> Decision:
        """Choose among the feasible actions (`mask[A]`, all by default) and say why."""
        view = look(z, mask, assume_sorted)
        candidates, decided_by = self.choose(view, key)
        action = draw(candidates, key)
        tied = near_best(view.mean, view.mask, self.tolerance)
        violations = _shortfall(view.curve)
        return Decision(action, decided_by, tied, candidates, _lead(view, action), violations)


def look(z: jax.Array, mask: jax.Array | None, assume_sorted: bool) -> View:
    z = jnp.asarray(z)
    if z.ndim != 2 or 0 in z.shape:
        raise InputError(f"z has shape {z.shape}: a policy takes [A, N]; use jax.vmap for batches")
    z = _array.as_float(jnp, z)
    z = z if assume_sorted else network_sort(z)
    if mask is None:
        mask = jnp.ones(z.shape[0], bool)
        return View(z, _curve(z, 0.0), *_mean_and_lag(z, 0.0), mask)
    mask = jnp.asarray(mask, bool)
    if mask.shape != z.shape[:1]:
        raise InputError(f"mask has shape {mask.shape}, there are {z.shape[0]} actions")
    feasible = mask.any()
    if not _array.is_traced(feasible) and not bool(feasible):  # under jit constants are traced too
        raise InputError("mask leaves no feasible action")
    start = jnp.where(mask, 0.0, jnp.finfo(z.dtype).min / 8)
    return View(z, _curve(z, start), *_mean_and_lag(z, start), mask)


def _mean_and_lag(z: jax.Array, start: jax.Array | float) -> tuple[jax.Array, jax.Array]:
    """Mean and lag of each action in one pass over the particles, no curve kept.

    The partial sums are added one particle after the other and divided last, so that no batch
    width, vector width or fused multiply-add changes a bit.
    """
    actions, particles = z.shape

    def add(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        total, lag = state
        total = total + jax.lax.dynamic_index_in_dim(z, j, axis=1, keepdims=False)
        short = largest(total) - total
        return total, jnp.where(short > lag, short, lag)

    zero = jnp.zeros(actions, z.dtype)
    total, lag = jax.lax.fori_loop(0, particles, add, (zero + start, zero))
    return total / particles, lag / particles


def _curve(z: jax.Array, start: jax.Array | float) -> jax.Array:
    """`F^-2` at the breakpoints, by the same additions in the same order."""

    def add(total: jax.Array, column: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = total + column
        # Divided here and not after the loop, where XLA would fuse the division into differences
        # of curves and round them by the width of the batch.
        return total, total / z.shape[1]

    first = jnp.zeros(z.shape[0], z.dtype) + start
    return jax.lax.scan(add, first, z.T)[1].T


def near_best(score: jax.Array, mask: jax.Array, tolerance: float) -> jax.Array:
    """Feasible actions within the tolerance of the best score."""
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


FEW = 32  # up to so many actions are folded one by one: XLA fuses that, but no reduction


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


def _shortfall(curve: jax.Array) -> jax.Array:
    return jnp.max(jnp.maximum(curve[None, :, :] - curve[:, None, :], 0.0), axis=-1)


def _lead(view: View, action: jax.Array) -> jax.Array:
    others = jnp.arange(view.curve.shape[0])[:, None] != action
    best = jnp.max(jnp.where(others & view.mask[:, None], view.curve, -jnp.inf), axis=0)
    lead = jnp.max(view.curve[action] - best)
    return jnp.where(jnp.isfinite(lead), lead, 0.0)  # an only action leads nobody
