"""Transports of the proximal step: what holds the particles to the anchor.

Each one is a cost `W(z, z0)` with its gradient, and the point each particle is pulled to: the
`pulled` with `N dW/dz_i = 2 (z_i - pulled_i)`. A fixed-point solve keeps dual potentials between
its iterations; they follow the particles to first order, by the envelope theorem.

| transport | W(z, z0) | pulled_i |
|---|---|---|
| exact | `mean (z_i - z0_i)^2` | `z0_i` |
| sinkhorn | `W_beta(z, z0)` | projection of `z_i` onto `z0` under the plan |
| divergence | `W_beta(z, z0) - W_beta(z, z) / 2 - W_beta(z0, z0) / 2` | `z_i +` that `-` onto `z` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from surefoot.errors import unknown
from surefoot.transport import sinkhorn as sk

Duals = tuple[jax.Array, ...]
SORTED = sk.SinkhornOptions(start="sorted")
# A sweep moves the potential by this much of its update. Any value below 2 contracts near the
# solution; 1.5 saves up to a third of the iterations and moves no particle out of order.
OVERRELAXATION = 1.5


class Transport(ABC):
    @abstractmethod
    def cost(self, z: jax.Array, anchor_z: jax.Array) -> jax.Array: ...

    def self_cost(self, z: jax.Array) -> jax.Array:
        """`W(z, z)`, fully solved: what the transport charges for standing still."""
        return jnp.zeros((), z.dtype)

    @abstractmethod
    def start(self, z: jax.Array, anchor_z: jax.Array) -> Duals: ...

    @abstractmethod
    def pull(self, duals: Duals, z: jax.Array, anchor_z: jax.Array) -> tuple[Duals, jax.Array]:
        """One sweep of the duals at the particles `z`, and where it pulls them."""

    def follow(self, duals: Duals, slopes: jax.Array, move: jax.Array) -> Duals:
        return duals


@dataclass(frozen=True)
class Exact(Transport):
    """No entropy: the limit of the paper's theorem, in closed form."""

    def cost(self, z: jax.Array, anchor_z: jax.Array) -> jax.Array:
        return sk.exact_cost(z, anchor_z)

    def start(self, z: jax.Array, anchor_z: jax.Array) -> Duals:
        return ()

    def pull(self, duals: Duals, z: jax.Array, anchor_z: jax.Array) -> tuple[Duals, jax.Array]:
        return duals, anchor_z


@dataclass(frozen=True)
class Entropic(Transport):
    """The paper's transport; it blurs, so the particles shrink towards each other."""

    options: sk.SinkhornOptions = SORTED

    def cost(self, z: jax.Array, anchor_z: jax.Array) -> jax.Array:
        return sk.entropic_cost(z, anchor_z, self.options)

    def self_cost(self, z: jax.Array) -> jax.Array:
        return sk.self_cost(z, self.options.temperatures[-1])

    def start(self, z: jax.Array, anchor_z: jax.Array) -> Duals:
        return (sk.sorted_potential(z, anchor_z),)

    def pull(self, duals: Duals, z: jax.Array, anchor_z: jax.Array) -> tuple[Duals, jax.Array]:
        flat = jnp.full_like(z, -jnp.log(float(z.shape[0])))
        last = self.options.temperatures[-1]
        f, _, projection = sk.sweep(duals[0], z, anchor_z, flat, flat, last)
        return (_relaxed(duals[0], f),), projection

    def follow(self, duals: Duals, slopes: jax.Array, move: jax.Array) -> Duals:
        return (duals[0] + slopes * move,)


@dataclass(frozen=True)
class Debiased(Transport):
    """The Sinkhorn divergence: entropy in the solve, none left in the answer."""

    options: sk.SinkhornOptions = SORTED

    def cost(self, z: jax.Array, anchor_z: jax.Array) -> jax.Array:
        return sk.divergence(z, anchor_z, self.options)

    def start(self, z: jax.Array, anchor_z: jax.Array) -> Duals:
        return sk.sorted_potential(z, anchor_z), jnp.zeros_like(z)

    def pull(self, duals: Duals, z: jax.Array, anchor_z: jax.Array) -> tuple[Duals, jax.Array]:
        flat = jnp.full_like(z, -jnp.log(float(z.shape[0])))
        last = self.options.temperatures[-1]
        f, _, projection = sk.sweep(duals[0], z, anchor_z, flat, flat, last)
        update, onto_self = sk.soft_minimum(duals[1], z, flat, z, last)
        own = (duals[1] + update) / 2  # the symmetric problem has one potential
        return (_relaxed(duals[0], f), own), z + projection - onto_self


def _relaxed(before: jax.Array, after: jax.Array) -> jax.Array:
    return before + OVERRELAXATION * (after - before)


def transport_named(name: str, options: sk.SinkhornOptions | None = None) -> Transport:
    options = SORTED if options is None else options.checked()
    transports: dict[str, Transport] = {
        "sinkhorn": Entropic(options),
        "divergence": Debiased(options),
        "exact": Exact(),
    }
    if not isinstance(name, str) or name not in transports:
        raise unknown("transport", name, transports)
    return transports[name]
