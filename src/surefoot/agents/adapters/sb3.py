"""sb3-contrib's QR-DQN as an adapter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
