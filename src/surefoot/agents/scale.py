"""The unit an agent learns in: the size of the rewards seen so far, a power of two.

Step sizes, losses and layers suit values of the order of one. Rewards are divided by the unit to
learn from them, and particles are multiplied by it to show them. A power of two makes both exact:
rewards 1024 times as large teach the same, bit for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core.array import power_below


class Scale(NamedTuple):
    number: jax.Array  # of rewards so far
    square: jax.Array  # their mean square
    unit: jax.Array  # 0 until a reward that is not zero has been learned from


def initial_scale(unit: float | None) -> Scale:
    """Before the first reward; with a fixed unit, or None for one made of the rewards."""
    zero = jnp.zeros((), jnp.float32)
    return Scale(jnp.zeros((), jnp.int32), zero, jnp.asarray(unit or 0.0, jnp.float32))


def observe(scale: Scale, reward: jax.Array, real: jax.Array | None = None) -> Scale:
    """With one more reward, or with several, or with those of several that are `real`."""
    if real is not None:
        counted, squares = jnp.sum(real), jnp.sum(jnp.where(real, reward * reward, 0.0))
        after = scale.number + counted
        change = (squares - counted * scale.square) / jnp.maximum(after, 1)
        return scale._replace(number=after, square=scale.square + change)
    several = jnp.size(reward)
    number = scale.number + several
    more = (
        jnp.sum(reward * reward) - several * scale.square
        if several > 1
        else (reward * reward - scale.square)
    )
    square = scale.square + more / number
    return scale._replace(number=number, square=square)


def begun(scale: Scale) -> Scale:
    """With a unit, if there has been a reward."""
    return scale._replace(unit=jnp.where(scale.unit > 0, scale.unit, power_of_two(scale.square)))


def shown(scale: Scale) -> jax.Array:
    """What to multiply returns by to show them."""
    return jnp.where(scale.unit > 0, scale.unit, 1.0)


def renewed(scale: Scale) -> tuple[Scale, jax.Array]:
    """Another unit where rewards have become four times as large or small, and what values that
    were learned in the old one have to be multiplied by."""
    wanted = power_of_two(scale.square)
    ratio = jnp.where((scale.unit > 0) & (wanted > 0), scale.unit / wanted, 1.0)
    ratio = jnp.where((ratio >= 4) | (ratio <= 0.25), ratio, 1.0)
    return scale._replace(unit=jnp.where(ratio == 1, scale.unit, wanted)), ratio


def power_of_two(square: jax.Array) -> jax.Array:
    """The power of two nearest to the root, in ratio; 0 of 0, and of what is not a number."""
    known = (square > 0) & jnp.isfinite(square)  # rewards above 1e19 have no square in float32
    root = jnp.sqrt(jnp.where(known, square, 1.0))
    below = power_below(root)
    return jnp.where(known, jnp.where(root / below < 2**0.5, below, 2 * below), 0.0)
