"""tianshou 2's distributional value policies as adapters: QR-DQN, IQN, FQF, C51, Rainbow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.agents.adapters.projection import equal_particles
from surefoot.errors import InputError

_KINDS = ("FQFPolicy", "IQNPolicy", "QRDQNPolicy", "C51Policy")  # subclasses before their bases


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
