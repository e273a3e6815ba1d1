"""The network: convolutions where there is a picture, ReLU layers, and a linear last one.

A plain tree of arrays. Its parts, in this order, those that there are: moments of the observations,
kernels, layers (or the caller's own parameters), the last layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.errors import InputError

if TYPE_CHECKING:
    from surefoot.agents.neural.spaces import Spec

Params = tuple[Any, ...]
"""Per layer `[inputs + 1, outputs]`: the last row is the bias, which meets a constant one.

One array a layer and not two: each array costs some microseconds per compiled call, and the
gradient of the bias comes out of the same product as that of the weights.
"""

# (kernel, stride, channels) by the shorter side of the picture, from so many pixels on: Mnih et al.
# (2015); one for thumbnails; the one layer of the MinAtar paper (Young and Tian, 2019).
CONVOLUTIONS = (
    (36, ((8, 4, 32), (4, 2, 64), (3, 1, 64))),
    (16, ((3, 2, 32), (3, 2, 64))),
    (0, ((3, 1, 16),)),
)
LONGEST = 1e6  # observations that the moments remember, about
CLIP = 10.0  # deviations


def convolutions(spec: Spec) -> tuple[tuple[int, int, int], ...]:
    """What the picture goes through, chosen by its size."""
    if not spec.picture or spec.body is not None:
        return ()
    side = min(spec.input_shape[:2])
    return next(layers for least, layers in CONVOLUTIONS if side >= least)


def init_network(
    key: jax.Array,
    spec: Spec,
    hidden: tuple[int, ...],
    outputs: int,
    *,
    normalise: bool = False,
    own: Any = None,
) -> Params:
    """Weights and biases uniform within `1 / sqrt(inputs)`, as PyTorch has it; a key per layer.

    Observations of control tasks are small and close to the origin. Without biases every unit of
    the first layer would bend just there; with He's scale the first values would be of the size
    of a reward. Measured on CartPole: `docs/neural.md`. `own` are the caller's parameters.
    """
    moments = (jnp.zeros((3, spec.input_shape[-1])),) if normalise else ()
    if spec.body is not None:
        size = _own_features(spec, own)
        return (*moments, jax.tree.map(jnp.asarray, own), *init_mlp(key, (size, outputs)))
    kernels, size = [], int(np.prod(spec.input_shape))
    if layers := convolutions(spec):
        keys = jax.random.split(jax.random.fold_in(key, 1), len(layers))
        height, width, channels = spec.input_shape
        for key_layer, (kernel, stride, filters) in zip(keys, layers, strict=True):
            kernels.append(_layer(key_layer, kernel * kernel * channels, filters))
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            channels = filters
        size = height * width * channels
    return (*moments, *kernels, *init_mlp(key, (size, *hidden, outputs)))


def init_mlp(key: jax.Array, sizes: tuple[int, ...]) -> Params:
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(_layer(*args) for args in zip(keys, sizes[:-1], sizes[1:], strict=True))


def _layer(key: jax.Array, inputs: int, outputs: int) -> jax.Array:
    bound = inputs**-0.5
    return jax.random.uniform(key, (inputs + 1, outputs), minval=-bound, maxval=bound)


def _own_features(spec: Spec, own: Any) -> int:
    """How many features the caller's function has; asked without computing anything."""
    rows = jax.ShapeDtypeStruct((2, *spec.input_shape), jnp.float32)
    try:
        made = jax.eval_shape(spec.body, own, rows)  # type: ignore[arg-type]
    except Exception as error:  # a function of the caller's can raise anything
        text = " ".join(str(error).split())[:200]
        raise InputError(f"network: its function fails on {rows.shape}: {text}") from error
    if getattr(made, "ndim", None) != 2 or made.shape[0] != 2:
        raise InputError(f"network: its function makes {made} of {rows.shape}, not [2, features]")
    return int(made.shape[1])


def network(
    spec: Spec, params: Params, obs: jax.Array, shaping: int, *, normalise: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Observations as stored `[B, *obs_shape]` through the layers. The first outputs of the last
    one, `shaping` in number, shape those before it; the others leave them alone."""
    x = spec.features(obs)
    if normalise:
        x, params = normalised(params[0], x), params[1:]
    for kernel, stride, _ in convolutions(spec):
        x, params = _convolve(params[0], x, kernel, stride), params[1:]
    if spec.body is not None:
        x, params = spec.body(params[0], x), params[1:]
    return mlp(params, x.reshape(len(x), -1), shaping)


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


def _convolve(layer: jax.Array, x: jax.Array, kernel: int, stride: int) -> jax.Array:
    """`x[B, H, W, C]` through one ReLU convolution."""
    weights = layer[:-1].reshape(kernel, kernel, x.shape[-1], layer.shape[1])
    made = jax.lax.conv_general_dilated(
        x, weights, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.nn.relu(made + layer[-1])


def given_network(network: Any, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The caller's function and its parameters, if any; and options with widths as `hidden`."""
    if network is None:
        return None, None, options
    if isinstance(network, tuple) and len(network) == 2 and callable(network[0]):
        return *network, options
    widths = isinstance(network, list | tuple) and all(isinstance(n, int) for n in network)
    if not widths or "hidden" in options:
        raise InputError(
            "network: it is the widths of the hidden layers (then leave out hidden), or a pair "
            "(function, parameters)"
        )
    return None, None, options | {"hidden": tuple(network)}


# --- running normalisation -----------------------------------------------------------------
#
# The moments `[3, inputs]` (number, mean, variance; of a picture per channel) are the first of the
# parameters. They have no gradient, and Adam leaves alone what has none; so they are saved,
# copied to the target network and averaged like the rest.


def normalised(moments: jax.Array, x: jax.Array) -> jax.Array:
    """In deviations from the mean of the observations so far."""
    _, mean, variance = jax.lax.stop_gradient(moments)
    return jnp.clip((x - mean) / jnp.sqrt(variance + 1e-8), -CLIP, CLIP)


def observed(moments: jax.Array, x: jax.Array) -> jax.Array:
    """The moments with observations `x[B, ..., inputs]` (Chan et al., for batches)."""
    number, mean, variance = moments
    rows = x.reshape(-1, x.shape[-1])
    count, middle, spread = len(rows), jnp.mean(rows, axis=0), jnp.var(rows, axis=0)
    total, gap = number + count, middle - mean
    share = count / total
    variance = variance + share * (spread - variance) + share * (1 - share) * gap**2
    return jnp.stack([jnp.minimum(total, LONGEST), mean + share * gap, variance])
