"""Models of other libraries as adapters: sb3-contrib's QR-DQN, and tianshou 2's distributional
value policies (QR-DQN, IQN, FQF, C51, Rainbow)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.core.array import as_float, refuse_masked
from surefoot.core.particles import cumulative_quantile
from surefoot.errors import InputError, at_least, must_fit

_KINDS = ("FQFPolicy", "IQNPolicy", "QRDQNPolicy", "C51Policy")  # subclasses before their bases


class SB3Adapter:
    """Quantiles of an sb3-contrib `QRDQN` model (or of its policy) as particles.

    Its network gives `[B, N, A]`; neighbouring quantiles cross, so they are sorted, which leaves
    the distribution they stand for as it is.
    """

    def __init__(self, model: Any) -> None:
        self.policy = getattr(model, "policy", model)
        self.observation_space = self.policy.observation_space
        self.action_space = self.policy.action_space

    def is_single(self, obs: Any) -> bool:
        """SB3's own answer, which knows of images with their channels last."""
        return not self.policy.is_vectorized_observation(obs)

    def __call__(self, obs: Any) -> NDArray[np.float32]:
        import torch

        policy, training = self.policy, self.policy.training
        policy.set_training_mode(False)
        try:
            with torch.no_grad():
                tensor, _ = policy.obs_to_tensor(obs)
                quantiles = policy.quantile_net(tensor)
        finally:
            policy.set_training_mode(training)
        return np.sort(np.swapaxes(quantiles.cpu().numpy(), 1, 2), axis=-1)


class TianshouAdapter:
    """Return distributions of a tianshou algorithm, or of its policy, as particles.

    - QR-DQN: its quantiles, sorted;
    - IQN: the quantile function at the `particles` midpoints (2i - 1) / 2N, sorted. The library
      itself draws the levels anew at every call; here equal observations get equal answers;
    - FQF: quantiles with the widths of their proposed fractions, projected on equal particles;
    - C51 and Rainbow: atoms with their probabilities, projected on equal particles.

    The projection is `equal_particles`.
    """

    def __init__(self, model: Any, particles: int = 200) -> None:
        self.policy = getattr(model, "policy", model)
        self.particles = particles
        bases = [base.__name__ for base in type(self.policy).__mro__]
        kinds = [kind for kind in _KINDS if kind in bases]
        if not kinds:
            raise InputError(
                f"{type(self.policy).__name__} of tianshou has no return distribution: "
                "there is QRDQN, IQN, FQF, C51 and Rainbow"
            )
        self.kind = kinds[0]
        self.action_space = self.policy.action_space
        self.observation_space = self.policy.observation_space

    def __call__(self, obs: Any) -> NDArray[np.floating[Any]]:
        import torch

        policy, training = self.policy, self.policy.training
        policy.eval()
        try:
            with torch.no_grad():
                return getattr(self, f"_{self.kind.removesuffix('Policy').lower()}")(obs)
        finally:
            policy.train(training)

    def _qrdqn(self, obs: Any) -> NDArray[np.floating[Any]]:
        return np.sort(_numpy(self.policy.model(obs)[0]), axis=-1)

    def _iqn(self, obs: Any) -> NDArray[np.floating[Any]]:
        import torch

        model = self.policy.model
        features, _ = model.preprocess(obs)  # [B, H]
        levels = (torch.arange(self.particles, dtype=features.dtype) + 0.5) / self.particles
        embedded = model.embed_model(levels.to(features.device)[None])  # [1, N, H]
        z = model.last((features[:, None] * embedded).flatten(0, 1))
        z = z.reshape(len(features), self.particles, -1).transpose(1, 2)
        return np.sort(_numpy(z), axis=-1)

    def _fqf(self, obs: Any) -> NDArray[np.floating[Any]]:
        quantiles, fractions, _ = self.policy.model(obs, propose_model=self.policy.fraction_model)[
            0
        ]
        width = np.diff(_numpy(fractions.taus), axis=-1)[:, None]  # [B, 1, N]
        return equal_particles(_numpy(quantiles), width, self.particles)

    def _c51(self, obs: Any) -> NDArray[np.floating[Any]]:
        probabilities = _numpy(self.policy.model(obs)[0])  # [B, A, atoms]
        return equal_particles(_numpy(self.policy.support), probabilities, self.particles)


def _numpy(tensor: Any) -> NDArray[np.floating[Any]]:
    return tensor.detach().cpu().numpy()


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
