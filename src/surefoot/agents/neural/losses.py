"""What the network is trained on: one small class per family of losses, all unbatched.

A network gives `outputs[A, W]`. A loss says what they mean as particles (`particles`, what
policies look at) and what they should become (`value`, for the action taken). Which of them can
learn more than the mean of a random return, one sampled transition at a time (note A1):

| loss | potential, transport | dispersion of random rewards and transitions |
|---|---|---|
| wgf, wgf-debiased, wgf-exact | bellman, sinkhorn / divergence / exact | cannot: barycentre |
| proximal-qr | energy, exact | learned: the sample gradient is unbiased |
| qr | quantile Huber | learned; shrunk where the noise is below kappa |
| c51 | cross-entropy on fixed atoms | learned; widened by less than an atom spacing |
| mse | squared error of the mean | none by construction |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from surefoot.agents.neural.config import NeuralConfig
from surefoot.core.losses import quantile_huber_loss
from surefoot.core.sorting import network_sort
from surefoot.transport import NAMED_LOSSES, SinkhornOptions, proximal_loss
from surefoot.transport.couplings import Transport, transport_named
from surefoot.transport.potentials import Potential, potential_named


class Bootstrap(NamedTuple):
    """What a transition is learned towards; carries no gradient."""

    anchor: jax.Array  # [W] the target network's outputs at the transition's own start
    reward_t: jax.Array
    discount_t: jax.Array
    outputs_t: jax.Array  # [W] of the bootstrap action at `obs_t`


class Loss(ABC):
    """`outputs` are `[W]` of the action taken."""

    anchored: bool = False
    """Whether `value` wants the anchor."""
    degree: int = 1
    """The loss of returns k times as large is k to this power times as large."""

    def particles(self, outputs: jax.Array) -> jax.Array:
        """`[..., W]` -> equally likely particles `[..., N]`, in any order."""
        return outputs

    @abstractmethod
    def value(self, outputs: jax.Array, aim: Bootstrap) -> jax.Array:
        """The loss of one transition."""

    def values(self, outputs: jax.Array, aims: Bootstrap) -> jax.Array:
        """`value` of each transition of a batch: every array has one more axis, its first."""
        return jax.vmap(self.value)(outputs, aims)


@dataclass(frozen=True)
class Proximal(Loss):
    """Algorithm 2 per sample; the anchor is the target network's prediction at `(s, a)`."""

    step_size: float
    transport: Transport
    potential: Potential
    anchored: bool = True
    degree: int = 2

    def value(self, outputs: jax.Array, aim: Bootstrap) -> jax.Array:
        return self.values(*jax.tree.map(lambda part: part[None], (outputs, aim)))[0]

    def values(self, outputs: jax.Array, aims: Bootstrap) -> jax.Array:
        # Ascending, so that ranks pair: the network is free to cross its particles.
        z, *others = jnp.swapaxes(_ascending(outputs, aims.anchor, aims.outputs_t), 1, 2)
        anchor_z, next_z = map(jax.lax.stop_gradient, others)  # or their slopes are computed too
        target_z = aims.reward_t + aims.discount_t * next_z
        return proximal_loss(
            z, anchor_z, target_z, self.step_size, self.transport, self.potential
        )  # Algorithm 2, line 3


@jax.custom_vjp
def _ascending(*rows: jax.Array) -> jax.Array:
    """`[B, N]` each, sorted along their last axis, stacked. One sorting network for all, since it
    costs by its depth and hardly by its width. Only the first has a gradient.

    The sort leaves particles of one rank side by side. Pairs of one row are read next, and XLA
    would read them across rows, half as slow again; it does not see through a product with the
    identity, which is exact.
    """
    ordered = network_sort(jnp.stack(rows))
    return jnp.matmul(ordered, jnp.eye(ordered.shape[-1]), precision="highest")


def _ascending_forward(*rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    return _ascending(*rows), rows[0]


def _ascending_backward(z: jax.Array, slopes: jax.Array) -> tuple[jax.Array, ...]:
    """To each particle the slope at its rank: cheaper to count than to go back through the
    comparisons. Of equal ones the first has the lower rank."""
    other, own = z[:, :, None], z[:, None, :]
    earlier = jnp.arange(z.shape[1])[:, None] < jnp.arange(z.shape[1])[None, :]
    rank = jnp.sum((other < own) | ((other == own) & earlier[None]), axis=1)
    zero = jnp.zeros_like(z)
    return jnp.take_along_axis(slopes[0], rank, axis=1), zero, zero


_ascending.defvjp(_ascending_forward, _ascending_backward)


@dataclass(frozen=True)
class QuantileHuber(Loss):
    """Dabney et al. (2018), eq. 10."""

    kappa: float

    def value(self, outputs: jax.Array, aim: Bootstrap) -> jax.Array:
        target_z = aim.reward_t + aim.discount_t * aim.outputs_t
        return quantile_huber_loss(outputs, target_z, self.kappa)


@dataclass(frozen=True)
class Squared(Loss):
    """Plain DQN: one output per action, the mean."""

    degree: int = 2

    def value(self, outputs: jax.Array, aim: Bootstrap) -> jax.Array:
        return jnp.mean((aim.reward_t + aim.discount_t * aim.outputs_t - outputs) ** 2)


@dataclass(frozen=True)
class Categorical(Loss):
    """Bellemare et al. (2017), Algorithm 1: outputs are logits of equally spaced returns."""

    low: float
    high: float
    atoms: int
    degree: int = 0

    def support(self) -> jax.Array:
        return jnp.linspace(self.low, self.high, self.atoms)

    def particles(self, outputs: jax.Array) -> jax.Array:
        return equal_particles(self.support(), jax.nn.softmax(outputs, axis=-1))

    def value(self, outputs: jax.Array, aim: Bootstrap) -> jax.Array:
        atoms = self.support()
        spacing = (self.high - self.low) / (self.atoms - 1)
        moved = jnp.clip(aim.reward_t + aim.discount_t * atoms, self.low, self.high)
        # Each moved atom is shared between its two neighbours, nearer ones taking more.
        share = jnp.clip(1 - jnp.abs(moved[:, None] - atoms[None, :]) / spacing, 0.0, 1.0)
        target = jax.nn.softmax(aim.outputs_t) @ share
        return -jnp.sum(target * jax.nn.log_softmax(outputs))


def equal_particles(atoms: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Ascending `atoms[W]` with `probabilities[..., W]` as W equally likely particles.

    Particle i is the mean of the quantile function over `((i - 1) / W, i / W)`: the W2
    projection, which keeps the mean exactly.
    """
    n = atoms.shape[0]
    upto = jnp.cumsum(probabilities, axis=-1)
    below = upto - probabilities
    edges = jnp.arange(n + 1) / n
    # Mass of each atom within each bin of levels: the overlap of two intervals.
    top = jnp.minimum(upto[..., None, :], edges[1:, None])
    bottom = jnp.maximum(below[..., None, :], edges[:-1, None])
    mass = jnp.maximum(top - bottom, 0.0)
    return jnp.sum(mass * atoms, axis=-1) / jnp.maximum(jnp.sum(mass, axis=-1), 1e-12)


def loss_of(config: NeuralConfig) -> Loss:
    if config.loss in NAMED_LOSSES:
        potential, transport = config.proximal
        options = SinkhornOptions(config.temperatures, "sorted")
        degree = 2 if potential == "bellman" else 1  # h is in units of return for the energy
        return Proximal(
            config.step_size, transport_named(transport, options), potential_named(potential),
            degree=degree,
        )  # fmt: skip
    if config.loss == "qr":
        return QuantileHuber(config.kappa)
    if config.loss == "mse":
        return Squared()
    assert config.value_range is not None  # checked by NeuralConfig
    return Categorical(*config.value_range, config.particles)
