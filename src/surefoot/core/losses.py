"""Losses on particles, unbatched: the quantile Huber loss and plain squared errors.

The proximal losses live in `surefoot.transport`; quantile regression is the explicit step of
its energy potential (see the table in `surefoot.transport.proximal`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from surefoot.core.array import pairwise_sum


def quantile_huber_loss(z: jax.Array, target_z: jax.Array, kappa: float = 1.0) -> jax.Array:
    """Dabney et al. (2018), eq. 10: mean over targets, sum over the particles `z[N]`.

    `kappa = 0` is the pure quantile loss, whose gradient is `F_T(z_i) - tau_i` per particle.
    """
    tau = midpoints(z.shape[0], z.dtype)
    error = jax.lax.stop_gradient(target_z)[:, None] - z[None, :]
    weight = jnp.abs(tau[None, :] - (error < 0))
    size = jnp.abs(error)
    if kappa > 0:
        size = jnp.where(size <= kappa, 0.5 * error**2 / kappa, size - 0.5 * kappa)
    return jnp.sum(jnp.mean(weight * size, axis=0))


def quantile_huber_slope(z: jax.Array, target_z: jax.Array, kappa: float = 1.0) -> jax.Array:
    """The gradient of `quantile_huber_loss` in `z`, written out for tables."""
    tau = midpoints(z.shape[0], z.dtype)
    error = target_z[None, :] - z[:, None]
    weight = jnp.abs(tau[:, None] - (error < 0))
    pull = jnp.clip(error / kappa, -1.0, 1.0) if kappa > 0 else jnp.sign(error)
    return -pairwise_sum(weight * pull) / target_z.shape[0]


def midpoints(n: int, dtype: jnp.dtype) -> jax.Array:
    """Quantile levels `tau_i = (2 i - 1) / (2 N)`."""
    return (2 * jnp.arange(n, dtype=dtype) + 1) / (2 * n)
