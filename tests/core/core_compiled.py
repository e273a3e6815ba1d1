"""Functions of the core as one program each, answers in NumPy.

Called eagerly, every operation of theirs is compiled by itself, and so is every look at a JAX
array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from surefoot import transport


def compiled(function: Callable[..., Any], *static: str) -> Callable[..., Any]:
    program = jax.jit(function, static_argnames=static)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return jax.device_get(program(*args, **options))

    return call


_LOSS = ("step_size", "transport", "potential", "temperatures", "sinkhorn_tolerance", "start")
_LIMITS = ("solver", "max_iterations", "tolerance", "gradient_step", "assume_sorted")
proximal_loss = compiled(transport.proximal_loss, *_LOSS)
proximal_step = compiled(transport.proximal_step, *_LOSS, *_LIMITS)
sinkhorn = compiled(transport.sinkhorn, "temperatures", "start", "tolerance", "max_sweeps")
