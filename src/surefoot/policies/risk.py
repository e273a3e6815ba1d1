"""Policies that maximise one statistic of the return: mean, tail, distortion, mean-variance.

All but one are distorted expectations, weights on the ascending particles: the statistic is
`sum_i w_i z_[i]` with `w_i = D(i / N) - D((i - 1) / N)` for a distortion `D` of the levels.
For a risk measure of your own, subclass `RiskMeasure` and write `score`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core.array import check_level, pairwise_sum
from surefoot.errors import InputError, real, shown
from surefoot.policies.base import DecidedBy, Policy, View, near_best


@dataclass(frozen=True)
class RiskMeasure(Policy):
    """Take the action with the best score; draw among those within the tolerance of it."""

    @abstractmethod
    def score(self, z: jax.Array) -> jax.Array:
        """One number per action from ascending particles `z[A, N]`: larger is better."""

    def usable(self, view: View) -> jax.Array:
        return view.mask & jnp.isfinite(self.score(view.z))

    def choose(self, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        best = near_best(self.score(view.z), view.mask, self.tolerance)
        several = jnp.sum(best) > 1
        return best, jnp.where(several, DecidedBy.TIE_BREAK, DecidedBy.SCORE)


@dataclass(frozen=True)
class Greedy(RiskMeasure):
    """The largest mean, risk-neutral."""

    def score(self, z: jax.Array) -> jax.Array:
        return pairwise_sum(z) / z.shape[-1]

    def tied(self, view: View) -> jax.Array:
        """Its candidates: one sum serves both."""
        return near_best(self.score(view.z), view.mask, self.tolerance)


@dataclass(frozen=True)
class Distortion(RiskMeasure):
    """A distorted expectation; `share(tau)` is the weight of all levels up to `tau`."""

    @abstractmethod
    def share(self, tau: np.ndarray) -> np.ndarray: ...

    def weights(self, n: int) -> np.ndarray:
        return np.diff(self.share(np.arange(n + 1) / n))

    def score(self, z: jax.Array) -> jax.Array:
        weights = jnp.asarray(self.weights(z.shape[-1]), z.dtype)
        return pairwise_sum(z * weights[None, :])


@dataclass(frozen=True)
class CVaR(Distortion):
    """The mean of the worst `alpha` share of outcomes."""

    alpha: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level(self.alpha, "alpha")

    def share(self, tau: np.ndarray) -> np.ndarray:
        return np.minimum(tau / self.alpha, 1.0)


@dataclass(frozen=True)
class Wang(Distortion):
    """Wang's transform, `Phi(Phi^-1(tau) - eta)`: `eta < 0` is averse, `eta > 0` seeks risk.

    The sign follows Dabney et al. (2018), whose sampled level is `Phi(Phi^-1(tau) + eta)`.
    """

    eta: float = -0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(real(self.eta)):
            raise InputError(f"eta = {shown(self.eta)}: it must be finite")

    def share(self, tau: np.ndarray) -> np.ndarray:
        normal = NormalDist()
        inner = [normal.cdf(normal.inv_cdf(t) - self.eta) for t in tau[1:-1]]
        return np.asarray([0.0, *inner, 1.0])


@dataclass(frozen=True)
class CPW(Distortion):
    """Cumulative probability weighting (Tversky and Kahneman), human-like; `eta = 0.71`.

    The sampled level is `b(tau) = tau^eta / (tau^eta + (1 - tau)^eta)^(1 / eta)`, as in Dabney
    et al. (2018); the share of levels up to `tau` is its inverse.
    """

    eta: float = 0.71

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.3 <= real(self.eta) <= 1:  # below, b is no longer monotone
            given = shown(self.eta)
            raise InputError(f"eta = {given}: cumulative probability weighting needs [0.3, 1]")

    def share(self, tau: np.ndarray) -> np.ndarray:
        low, high = np.zeros_like(tau), np.ones_like(tau)
        for _ in range(60):  # bisection: b rises strictly
            middle = (low + high) / 2
            below = self._level(middle) < tau
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.concatenate([[0.0], low[1:-1], [1.0]])

    def _level(self, tau: np.ndarray) -> np.ndarray:
        up, down = tau**self.eta, (1 - tau) ** self.eta
        return up / (up + down) ** (1 / self.eta)


@dataclass(frozen=True)
class MeanVariance(RiskMeasure):
    """Markowitz: `mean - weight * variance`."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(real(self.weight)):
            raise InputError(f"weight = {shown(self.weight)}: it must be finite")

    def score(self, z: jax.Array) -> jax.Array:
        n = z.shape[-1]
        mean = pairwise_sum(z) / n
        return mean - self.weight * pairwise_sum((z - mean[..., None]) ** 2) / n
