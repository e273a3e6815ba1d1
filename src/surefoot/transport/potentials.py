"""Potentials `F` of the proximal step: what the particles are drawn to.

Each one is a value, its slope in the Wasserstein geometry (N times the partial derivative), and
the implicit step `argmin_z |z - pulled|^2 / N + 2 h F(z)`, closed in one dimension.

| potential | F(z) | implicit step |
|---|---|---|
| bellman | `mean (Tz_i - z_i)^2 / 2` (Algorithm 2, line 2) | `(pulled + h Tz) / (1 + h)` |
| energy | `E|Z - T| - E|Z - Z'| / 2 - E|T - T'| / 2` | monotone equation, see `implicit` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core.losses import midpoints
from surefoot.errors import InputError, unknown


class Potential(ABC):
    @abstractmethod
    def value(self, z: jax.Array, target_z: jax.Array) -> jax.Array:
        """`F(z)`, never negative and zero where the particles match the target.

        Particles lie along the first axis; further axes are a batch.
        """

    @abstractmethod
    def slope(self, z: jax.Array, target_z: jax.Array) -> jax.Array:
        """`N dF/dz_i`: the velocity of the flow with its sign turned."""

    @abstractmethod
    def implicit(self, pulled: jax.Array, target_z: jax.Array, step_size: float) -> jax.Array:
        """The particles at which `z - pulled + step_size * slope(z) = 0`."""


class Bellman(Potential):
    """The paper's squared Bellman residual between particles of equal rank."""

    def value(self, z: jax.Array, target_z: jax.Array) -> jax.Array:
        return 0.5 * jnp.mean((_paired(target_z, z) - z) ** 2, axis=0)

    def slope(self, z: jax.Array, target_z: jax.Array) -> jax.Array:
        return z - _paired(target_z, z)

    def implicit(self, pulled: jax.Array, target_z: jax.Array, step_size: float) -> jax.Array:
        return (pulled + step_size * _paired(target_z, pulled)) / (1 + step_size)


class Energy(Potential):
    """The energy (Cramer) distance to the target: quantile regression as a flow.

    Its slope at rank i is `2 (F_T(z_i) - tau_i)`, `tau_i = (2 i - 1) / (2 N)`: twice the
    quantile-regression gradient, and linear in the target measure, so that one sampled target at
    a time finds the mixture of all of them.
    """

    def value(self, z: jax.Array, target_z: jax.Array) -> jax.Array:
        across = jnp.mean(jnp.abs(z[:, None] - target_z[None, :]), axis=(0, 1))
        return across - _gini(z) / 2 - _gini(target_z) / 2

    def slope(self, z: jax.Array, target_z: jax.Array) -> jax.Array:
        below = jnp.mean((target_z[:, None] < z[None, :]).astype(z.dtype), axis=0)
        upto = jnp.mean((target_z[:, None] <= z[None, :]).astype(z.dtype), axis=0)
        return below + upto - 2 * midpoints(z.shape[0], z.dtype)

    def implicit(self, pulled: jax.Array, target_z: jax.Array, step_size: float) -> jax.Array:
        """Solve `z + 2 h F_T(z) = pulled + 2 h tau`, whose left side rises strictly.

        With k of the M targets passed, `z = c - 2 h k / M` unless that lies beyond the next
        target, where `z` stays. Fewer passed targets bound it from below, so the solution is
        the largest over k of `min(t_(k+1), c - 2 h k / M)`. Stable for any step size.
        """
        n, m, dtype = pulled.shape[0], target_z.shape[0], pulled.dtype
        # Constants, not products: a fused multiply-add would round by the width of the batch.
        lift = jnp.asarray(step_size * (2 * np.arange(n) + 1) / n, dtype)
        passed = jnp.asarray(2 * step_size * np.arange(m + 1) / m, dtype)
        level = pulled + lift
        ceiling = jnp.concatenate([target_z, jnp.full((1,), jnp.inf, dtype)])
        free = level[None, :] - passed[:, None]
        return jnp.max(jnp.minimum(ceiling[:, None], free), axis=0)


def _gini(z: jax.Array) -> jax.Array:
    """Gini's mean difference of ascending particles, without the pairs."""
    level = 2 * midpoints(z.shape[0], z.dtype) - 1
    return 2 * jnp.mean(z * level.reshape(-1, *(1,) * (z.ndim - 1)), axis=0)


def _paired(target_z: jax.Array, z: jax.Array) -> jax.Array:
    if target_z.shape != z.shape:
        raise InputError(
            f"target_z has shape {target_z.shape}, the particles {z.shape}: the bellman potential "
            "pairs equal ranks; project the target first (surefoot.transport.project)"
        )
    return target_z


POTENTIALS: dict[str, Potential] = {"bellman": Bellman(), "energy": Energy()}


def potential_named(name: str) -> Potential:
    if not isinstance(name, str) or name not in POTENTIALS:
        raise unknown("potential", name, POTENTIALS)
    return POTENTIALS[name]
