"""Distributions with unequal probabilities as equally likely particles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.core.array import as_float, refuse_masked
from surefoot.core.particles import cumulative_quantile
from surefoot.errors import InputError, at_least, must_fit


def equal_particles(
    values: ArrayLike, probabilities: ArrayLike, particles: int
) -> NDArray[np.float64]:
    """N equally likely, ascending particles for atoms `[..., K]` with their probabilities.

    Particle i is the mean of the i-th of N equal shares of the distribution,
    `N (F^-2(i / N) - F^-2((i - 1) / N))`: the closest N particles in W2. The mean, and `F^-2` at
    every `i / N`, are kept exactly, so that greedy choices and dominance there do not change;
    quantiles at the midpoints, the usual projection, keep neither. Spread inside a share is lost.
    """
    at_least(1, particles=particles)
    must_fit(8 * particles, f"particles = {particles}: they")
    values, weights = _numbers(values, "values"), _numbers(probabilities, "probabilities")
    try:
        values, weights = np.broadcast_arrays(values, weights)
    except ValueError:
        raise InputError(
            f"values of shape {values.shape} and probabilities of shape {weights.shape} "
            "do not broadcast"
        ) from None
    total = weights.sum(axis=-1, keepdims=True)
    if not np.all(np.abs(total - 1) <= 1e-3) or np.any(weights < 0):
        raise InputError("probabilities must not be negative and must sum to one")
    # Networks give them in single precision: what is missing is rounding.
    levels = np.arange(1, particles + 1) / particles
    curve = np.asarray(cumulative_quantile(values, levels, weights=weights / total))
    shares = particles * np.diff(curve, axis=-1, prepend=0.0)
    return np.maximum.accumulate(shares, axis=-1)  # equal up to rounding where they are equal


def _numbers(x: ArrayLike, name: str) -> NDArray[np.float64]:
    refuse_masked(x, name)
    return np.asarray(as_float(np, np.asarray(x), name), dtype=np.float64)
