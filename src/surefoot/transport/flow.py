"""Repeated proximal steps: the discrete path of a Wasserstein gradient flow (eq. 10)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core.names import ANNEALING
from surefoot.core.sorting import network_sort
from surefoot.transport.couplings import Transport
from surefoot.transport.potentials import Potential
from surefoot.transport.proximal import proximal_loss, proximal_step, resolve
from surefoot.transport.sinkhorn import SinkhornOptions


class Flow(NamedTuple):
    """The path of the particles and the free energy on it; index 0 is the start."""

    path: jax.Array  # [K + 1, N]
    potential: jax.Array  # [K + 1] F(z_k)
    entropic: jax.Array  # [K + 1] W(z_k, z_k) / (4 h), zero without entropy
    loss: jax.Array  # [K] the proximal loss that step k ended at
    converged: jax.Array  # [K]

    @property
    def free_energy(self) -> jax.Array:
        """`E_k = F(z_k) + W(z_k, z_k) / (4 h)`, which no step of the flow increases.

        The step is optimal: `W(z1, z0) + 2 h F(z1) <= W(z0, z0) + 2 h F(z0)`. The divergence
        `W(z1, z0) - W(z1, z1) / 2 - W(z0, z0) / 2` is not negative. Together:
        `2 h F(z1) + W(z1, z1) / 2 <= 2 h F(z0) + W(z0, z0) / 2`.

        The proof speaks of the solved entropic problem, so `W(z, z)` is always solved to the end
        here, and of an optimal step: one that stops at `tolerance` may rise by about as much.
        `solver="gradient"` on a few annealed sweeps descends another function than this one.
        """
        return self.potential + self.entropic


def jko_flow(
    start_z: jax.Array,
    target_z: jax.Array,
    steps: int,
    step_size: float = 1.0,
    transport: str | Transport = "sinkhorn",
    potential: str | Potential = "bellman",
    solver: str = "fixed_point",
    *,
    temperatures: tuple[float, ...] = ANNEALING,
    sinkhorn_tolerance: float | None = None,
    **solver_options: Any,
) -> Flow:
    """`steps` proximal steps towards a fixed target, each anchored at the one before."""
    options = SinkhornOptions(temperatures, "sorted", sinkhorn_tolerance)
    transport, potential = resolve(transport, potential, options)
    start_z, target_z = network_sort(start_z), network_sort(target_z)

    def advance(z: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        step = proximal_step(
            z,
            target_z,
            step_size,
            transport,
            potential,
            solver,
            assume_sorted=True,
            **solver_options,
        )
        loss = proximal_loss(step.z, z, target_z, step_size, transport, potential)
        return step.z, (step.z, loss, step.converged)

    _, (zs, losses, converged) = jax.lax.scan(advance, start_z, None, length=steps)
    path = jnp.concatenate([start_z[None], zs])
    energy = jax.vmap(lambda z: potential.value(z, target_z))(path)
    entropic = jax.vmap(transport.self_cost)(path) / (4 * step_size)
    return Flow(path, energy, entropic, losses, converged)
