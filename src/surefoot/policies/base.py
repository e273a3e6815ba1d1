"""What every policy is: a pure function from return distributions and a key to an action.

`policy(z, key)` takes particles `z[A, N]` and gives the action; `policy.decide(z, key)` gives the
action together with who decided and why. Policies are frozen dataclasses: hashable, comparable,
static under `jit`; batches are the caller's `jax.vmap`.

One tolerance serves all: actions whose statistic lies within `tolerance` of the best, in the
units of the returns, are tied. It should lie above the jitter of the estimates and below the
dispersion that is to be seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp

from surefoot import _array
from surefoot._sorting import network_sort
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
    curve = _array.cumsum(jnp, z) / z.shape[-1]
    if mask is None:
        return View(z, curve, curve[:, -1], jnp.ones(z.shape[0], bool))
    mask = jnp.asarray(mask, bool)
    if mask.shape != z.shape[:1]:
        raise InputError(f"mask has shape {mask.shape}, there are {z.shape[0]} actions")
    if not _array.is_traced(mask) and not bool(mask.any()):
        raise InputError("mask leaves no feasible action")
    low = jnp.finfo(z.dtype).min / 8
    return View(z, jnp.where(mask[:, None], curve, low), jnp.where(mask, curve[:, -1], low), mask)


def near_best(score: jax.Array, mask: jax.Array, tolerance: float) -> jax.Array:
    """Feasible actions within the tolerance of the best score."""
    score = jnp.where(mask, score, -jnp.inf)
    return mask & (score >= jnp.max(score) - tolerance)


def draw(candidates: jax.Array, key: jax.Array) -> jax.Array:
    """One of the candidates, uniformly: the k-th true entry for a uniform k."""
    ranks = _array.cumsum(jnp, candidates.astype(jnp.float32))
    k = jnp.floor(jax.random.uniform(key) * ranks[-1])
    return jnp.argmax(ranks > jnp.minimum(k, ranks[-1] - 1)).astype(jnp.int32)


def _shortfall(curve: jax.Array) -> jax.Array:
    return jnp.max(jnp.maximum(curve[None, :, :] - curve[:, None, :], 0.0), axis=-1)


def _lead(view: View, action: jax.Array) -> jax.Array:
    others = jnp.arange(view.curve.shape[0])[:, None] != action
    best = jnp.max(jnp.where(others & view.mask[:, None], view.curve, -jnp.inf), axis=0)
    lead = jnp.max(view.curve[action] - best)
    return jnp.where(jnp.isfinite(lead), lead, 0.0)  # an only action leads nobody
