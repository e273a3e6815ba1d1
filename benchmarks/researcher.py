"""Algorithm 1 as a researcher would write it with torch and GeomLoss, one trial at a time."""

from __future__ import annotations

import geomloss
import numpy as np
import torch


class ResearcherAgent:
    """A table of particles, 50 gradient steps on the proximal loss for every transition."""

    def __init__(self, states: int, actions: int, particles: int = 16, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.z = torch.randn(states, actions, particles).sort(-1).values
        # blur is a length: its square is the temperature of the entropy.
        self.distance = geomloss.SamplesLoss("sinkhorn", p=2, blur=0.5, debias=False, scaling=0.7)

    def act(self, state: int, rng: np.random.Generator, explore: float = 0.1) -> int:
        if rng.random() < explore:
            return int(rng.integers(self.z.shape[1]))
        return int(self.z[state].mean(-1).argmax())

    def update(self, s: int, a: int, r: float, s1: int, terminated: bool, h: float = 1.0) -> None:
        best = int(self.z[s1].mean(-1).argmax())
        target = r + (0.0 if terminated else 1.0) * self.z[s1, best]
        anchor = self.z[s, a].clone()
        z = anchor.clone().requires_grad_(True)
        for _ in range(50):
            loss = self.distance(z[:, None], anchor[:, None]) * 2
            loss = loss + 2 * h * 0.5 * ((target - z) ** 2).mean()
            (slope,) = torch.autograd.grad(loss, z)
            with torch.no_grad():
                z -= 0.25 * z.shape[0] * slope
        self.z[s, a] = z.detach().sort().values
