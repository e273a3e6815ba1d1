"""What every policy is: a pure function from return distributions and a key to an action.

`policy(z, key)` takes particles `z[A, N]` and returns the action; `policy.decide(z, key)` returns
the action together with who decided and why. Beside the particles it takes evidence of how well
they are known: counts `n[A]`, or an ensemble `z[E, A, N]` instead of one estimate. Policies are
frozen dataclasses: hashable, comparable, static under `jit`; batches are the caller's `jax.vmap`.

Actions whose statistic lies within `tolerance` of the best, in the units of the returns, are tied.
`SSD()` needs none: it asks the evidence.
"""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core import array
from surefoot.core.evidence import (
    Evidence,
    Known,
    as_counts,
    average,
    from_counts,
    from_ensemble,
)
from surefoot.core.markup import html_lines, html_table
from surefoot.core.particles import centred
from surefoot.core.shortfall import FEW, standings, violations
from surefoot.core.sorting import network_sort
from surefoot.errors import InputError, at_least, is_whole, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class DecidedBy(IntEnum):
    """Who chose the action."""

    SCORE = 0  # the policy's statistic had one best action
    DOMINANCE = 1  # one action dominates every other: worth as much, and surer
    TIE_BREAK = 2  # several were equal, one was drawn
    FALLBACK = 3  # no action dominates, or none is known well enough: `undecided` chose
    EXPLORATION = 4  # a random action


class Decision(NamedTuple):
    """An action and its reasons; a PyTree, so it passes through `jit` and `vmap`."""

    action: jax.Array  # int32
    decided_by: jax.Array  # int32, a DecidedBy
    tied: jax.Array  # [A] bool: worth the same as the best mean
    candidates: jax.Array  # [A] bool: the set the action was drawn from
    margin: jax.Array  # how far its F^-2 rises above all others where it leads most
    violations: jax.Array  # [A, A] largest shortfall of F^-2 of a below that of b
    gap: jax.Array  # [A] how far the mean lies below the best
    error: jax.Array  # [A] standard error of that gap; infinite where nothing is known of it
    surer: jax.Array  # [A] how far its centred F^-2 rises above the action's, where it does most

    @property
    def multiple_solutions(self) -> jax.Array:
        """Whether more than one action had the best mean: when a choice is to be made."""
        return jnp.sum(self.tied, axis=-1) > 1

    def _repr_html_(self) -> str:
        """What a notebook shows of one decision; of a batch, who decided how often."""
        who = np.asarray(self.decided_by)
        names = [kind.name.lower().replace("_", "-") for kind in DecidedBy]
        if who.ndim:
            counts = [(name, str(int((who == k).sum()))) for k, name in enumerate(names)]
            return html_table(("decided by", f"of {who.size}"), counts)
        rows = [
            (str(a), f"{gap:.4g}", f"{error:.3g}", "yes" if tied else "no")
            for a, (gap, error, tied) in enumerate(
                zip(self.gap, self.error, self.tied, strict=True)
            )
        ]
        header = ("action", "below the best mean", "standard error", "worth the same")
        said = html_lines([f"action {int(self.action)}, decided by {names[int(who)]}"])
        return f"<div>{said}{html_table(header, rows, strong=int(self.action))}</div>"

    def figure(self) -> Figure:
        """A matplotlib figure of one decision: how far each mean lies below the best, and how well
        that is known."""
        from surefoot.plots import draw_gaps

        if np.ndim(self.action):
            raise InputError("a batch of decisions: take one of them to draw it")
        who = DecidedBy(int(self.decided_by)).name.lower().replace("_", "-")
        title = f"action {int(self.action)}, decided by {who}"
        return draw_gaps(self.gap, self.error, self.tied, int(self.action), title)


class View(NamedTuple):
    """What policies look at; what a policy does not read is never computed under `jit`."""

    z: jax.Array  # [A, N] ascending
    mask: jax.Array  # [A] bool: feasible
    sound: jax.Array  # [A] bool: the particles and their sum are finite
    lag: jax.Array  # [A] largest violation of dominance against any feasible action
    mean_lag: jax.Array  # [A] how far the mean lies below the best feasible one
    evidence: Evidence | None = None  # how well that is known


@dataclass(frozen=True)
class Policy(ABC):
    """Base of all policies.

    An action whose particles are not all finite numbers is never chosen. Where that leaves no
    action, calls from Python raise `InputError`; compiled ones, which cannot, draw a feasible
    action by lot and call it `FALLBACK`.
    """

    tolerance: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        array.check_tolerance(self.tolerance)

    @property
    def needs_evidence(self) -> bool:
        """Whether particles alone are not enough to decide."""
        return False

    @abstractmethod
    def choose(self, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The set of candidates `[A]` to draw from, and who decided."""

    def usable(self, view: View) -> jax.Array:
        """The actions `[A]` that may be chosen: feasible, and nothing but numbers."""
        return view.mask & view.sound

    def tied(self, view: View) -> jax.Array:
        """The actions `[A]` whose mean lies within the tolerance of the best."""
        return self.usable(view) & (view.mean_lag <= self.tolerance)

    def __call__(
        self, z: Any, key: Any, mask: Any = None, *, n: Any = None, assume_sorted: bool = False
    ) -> jax.Array:
        return self.decide(z, key, mask, n=n, assume_sorted=assume_sorted).action

    def decide(
        self, z: Any, key: Any, mask: Any = None, *, n: Any = None, assume_sorted: bool = False
    ) -> Decision:
        """Choose among the feasible actions (`mask[A]`, all by default) and say why.

        `z` are particles `[A, N]`, of which `n[A]` says how many observations they rest on (or
        `Known(n, error)`, where the standard errors of the means are known themselves), or an
        ensemble `[E, A, N]` of estimates from resampled data, whose spread says it. `key` is a
        JAX key or a whole number. `z` is decided in its own precision: NumPy's float64 stays
        float64 whether or not JAX's x64 is on, half precision is calculated in float32.
        """
        if is_whole(key):
            at_least(0, key=int(key))
            key = jax.random.key(int(key))
        elif not hasattr(key, "dtype") or jnp.issubdtype(key.dtype, jnp.inexact):
            raise InputError(f"key = {shown(key)}: pass a whole number, or a key of JAX")
        if any(array.is_traced(x) for x in jax.tree.leaves((z, key, mask, n))):
            z = as_particles(z)
            n = self._as_counts(n, z)
            return self._decide(z, key, as_mask(mask, z), n, assume_sorted)
        with precision(z):
            z = as_particles(z)
            mask, n = as_mask(mask, z), self._as_counts(n, z)
            check_choice(z, mask)
            return _decide_compiled(self, z, key, mask, n, assume_sorted)

    def _as_counts(self, n: Any, z: jax.Array) -> jax.Array | Known | None:
        """Evidence that fits the particles, if there has to be any."""
        if n is None:
            if self.needs_evidence and (z.ndim == 2 or len(z) < 2):
                name = type(getattr(self, "policy", self)).__name__  # what Explore explores around
                raise InputError(
                    f"{name}() cannot tell from one estimate whether two actions are worth the "
                    "same. Pass n, how many observations each action's particles rest on, or an "
                    f"ensemble z[E, A, N], or set a tolerance: {name}(tolerance)"
                )
            return None
        if z.ndim == 3:
            raise InputError("n and an ensemble z[E, A, N]: pass one kind of evidence, not both")
        return as_counts(n, (len(z),))

    def _decide(
        self,
        z: jax.Array,
        key: jax.Array,
        mask: jax.Array | None,
        n: jax.Array | Known | None,
        assume_sorted: bool,
    ) -> Decision:
        z = z if assume_sorted else network_sort(z)
        members, z = z, average(z) if z.ndim == 3 else z
        feasible = jnp.ones(z.shape[0], bool) if mask is None else mask
        view = View(z, feasible, *standings(z, mask, in_place=assume_sorted))
        best = feasible & view.sound & (view.mean_lag == 0)
        evidence = None
        if members.ndim == 3:
            evidence = from_ensemble(members, jnp.argmax(best))
        elif n is not None:  # of equal means one that something is known of
            seen = n.n if isinstance(n, Known) else n
            evidence = from_counts(z, n, jnp.argmax(best.astype(jnp.int32) + (best & (seen > 1))))
        return self.settle(view._replace(evidence=evidence), key)

    def settle(self, view: View, key: jax.Array) -> Decision:
        """Draw from the candidates and write down the reasons."""
        candidates, decided_by = self.choose(view, key)
        none = count(candidates) == 0
        candidates = jnp.where(none, view.mask, candidates)
        action = draw(candidates, key)
        return Decision(
            action,
            jnp.where(none, DecidedBy.FALLBACK, decided_by).astype(jnp.int32),
            self.tied(view),
            candidates,
            _lead(view.z, self.usable(view), action),
            violations(jnp, view.z),
            view.mean_lag,
            jnp.full_like(view.mean_lag, jnp.inf) if view.evidence is None else view.evidence.error,
            _surer(view.z, action),
        )


@partial(jax.jit, static_argnums=(0, 5))
def _decide_compiled(
    policy: Policy,
    z: jax.Array,
    key: jax.Array,
    mask: jax.Array | None,
    n: jax.Array | Known | None,
    assume_sorted: bool,
) -> Decision:
    return policy._decide(z, key, mask, n, assume_sorted)


@partial(jax.jit, static_argnums=0)
def decide_rows(policy: Policy, z: Any, keys: Any, masks: Any = None, n: Any = None) -> Decision:
    """`decide` for each row of `z[B, A, N]` or of ensembles `[B, E, A, N]`, ascending, by its own
    key: one compiled call."""

    def one(z: jax.Array, key: jax.Array, mask: Any, n: Any) -> Decision:
        return policy.decide(z, key, mask, n=n, assume_sorted=True)

    return jax.vmap(one)(z, keys, masks, n)


def precision(z: Any) -> contextlib.AbstractContextManager[None]:
    """Where values from outside JAX keep their digits."""
    try:
        wide = not isinstance(z, jax.Array) and np.asarray(z).dtype.itemsize == 8
    except ValueError:  # rows of unequal lengths: `as_particles` says so
        wide = False
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


def as_particles(z: Any) -> jax.Array:
    z = array.as_jax(z, "z")
    if z.ndim not in (2, 3) or 0 in z.shape:
        raise InputError(
            f"z has shape {z.shape}: a policy takes [A, N], or an ensemble [E, A, N]; use jax.vmap "
            "for batches"
        )
    return z


def as_mask(mask: Any, z: Any) -> jax.Array | None:
    if mask is None:
        return None
    mask, actions = jnp.asarray(array.as_flags(mask, "mask")), z.shape[-2]
    if mask.shape != (actions,):
        raise InputError(f"mask has shape {mask.shape}, there are {actions} actions")
    return mask


def check_choice(z: jax.Array, mask: jax.Array | None) -> None:
    """One feasible action at least, whose particles are numbers."""
    feasible = np.ones(z.shape[-2], bool) if mask is None else np.asarray(mask)
    if not feasible.any():
        raise InputError("mask leaves no feasible action")
    values = np.asarray(z)
    finite = np.isfinite(values).all(axis=-1)
    if (np.abs(values[np.isfinite(values)]) > array.largest(np, values.dtype, z.shape[-1])).any():
        raise InputError("z is too large to be added up: scale the returns")
    if not (finite if finite.ndim == 1 else finite.all(axis=0))[feasible].any():
        raise InputError("z is not finite for any feasible action: there is nothing to choose from")


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


def _surer(z: jax.Array, action: jax.Array) -> jax.Array:
    """How far each action's centred `F^-2` rises above that of `action` where it does so most."""
    high, low = array.partial_sums(jnp, centred(z))
    curve = (high + low)[:, :-1] if z.shape[1] > 1 else high * 0
    return array.divide(jnp.max(curve - curve[action][None], axis=-1), z.shape[1])


def _lead(z: jax.Array, usable: jax.Array, action: jax.Array) -> jax.Array:
    """How far the action's `F^-2` rises above all other usable ones where it leads most."""
    high, low = array.partial_sums(jnp, z)
    curve = high + low
    others = (jnp.arange(z.shape[0]) != action) & usable
    best = jnp.max(jnp.where(others[:, None], curve, -jnp.inf), axis=0)
    lead = jnp.max(curve[action] - best)
    # An only action leads nobody.
    return jnp.where(jnp.isfinite(lead), array.divide(lead, z.shape[1]), 0.0)
