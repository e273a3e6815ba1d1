"""The network: a multi-layer perceptron as a plain tree of arrays, one per layer."""

from __future__ import annotations

import jax
import jax.numpy as jnp

Params = tuple[jax.Array, ...]
"""Per layer `[inputs + 1, outputs]`: the last row is the bias, which meets a constant one.

One array a layer and not two: each array costs some microseconds per compiled call, and the
gradient of the bias comes out of the same product as that of the weights.
"""


def init_mlp(key: jax.Array, sizes: tuple[int, ...]) -> Params:
    """Weights and biases uniform within `1 / sqrt(inputs)`, as PyTorch has it; a key per layer.

    Observations of control tasks are small and close to the origin. Without biases every unit of
    the first layer would bend just there; with He's scale the first values would be of the size
    of a reward. Measured on CartPole: `docs/neural.md`.
    """
    keys = jax.random.split(key, len(sizes) - 1)

    def layer(key: jax.Array, inputs: int, outputs: int) -> jax.Array:
        bound = inputs**-0.5
        return jax.random.uniform(key, (inputs + 1, outputs), minval=-bound, maxval=bound)

    return tuple(layer(*args) for args in zip(keys, sizes[:-1], sizes[1:], strict=True))


def mlp(params: Params, x: jax.Array, shaping: int) -> tuple[jax.Array, jax.Array]:
    """`x[B, inputs]` through ReLU layers and a linear last one, whose first outputs `shaping` in
    number shape the layers before it; the others learn from them and leave them alone."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(_with_one(x) @ layer)
    x = _with_one(x)
    return x @ last[:, :shaping], jax.lax.stop_gradient(x) @ last[:, shaping:]


def _with_one(x: jax.Array) -> jax.Array:
    return jnp.concatenate([x, jnp.ones((x.shape[0], 1), x.dtype)], axis=1)
