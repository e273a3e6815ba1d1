"""Which losses learn more than the mean of a random return (notes A1 and A4), measured.

Two probes with known answers, five seeds: two Gaussian arms, N(0, 0.5) and N(1, 2), and a fork
(a fair coin between two certain returns). The measure is the particles' standard deviation as
a share of the true one: 1 is right, 0 has seen no noise at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.neural.config import NeuralConfig
from surefoot.envs import probes
from surefoot.training.engines import run_jobs

SMALL = NeuralConfig(
    loss="qr", hidden=(64,), particles=16, learning_rate=1e-3, target_period=50, gamma=0.5,
    replay_size=2000, learning_starts=32, explore=1.0,
)  # fmt: skip
CONTENDERS: dict[str, dict[str, Any]] = {
    "wgf": {"loss": "wgf"},
    "wgf-debiased": {"loss": "wgf-debiased"},
    "wgf-exact": {"loss": "wgf-exact"},
    "proximal-qr": {"loss": "proximal-qr", "step_size": 3.0},
    "qr": {"loss": "qr"},
    "qr, kappa 0": {"loss": "qr", "kappa": 0.0},
    "c51": {"loss": "c51", "value_range": (-8.0, 8.0), "particles": 33},
    "mse": {"loss": "mse"},
}


@dataclass(frozen=True)
class Moments:
    """One trained agent: learned over true deviation, and the error of the mean."""

    name: str
    seed: int
    arms: float  # mean of the two arms' ratios
    fork: float
    mean_error: float  # largest absolute error of a mean, over both probes


def midpoint_std(n: int) -> float:
    """Deviation of a standard normal's n quantile midpoints: the most n particles can show."""
    z = [NormalDist().inv_cdf((2 * i + 1) / (2 * n)) for i in range(n)]
    return float(np.std(z))


def measure(name: str, seed: int, steps: int = 6000) -> Moments:
    options = CONTENDERS[name]
    arms = _trained(probes.NoisyArms((0.0, 1.0), (0.5, 2.0)), seed, steps, options)
    fork = _trained(probes.CoinFork(), seed, steps, options)
    z, y = arms.return_distribution([1.0]), fork.return_distribution(0)
    # The fork is worth 0.5 * (0 or 2) with equal chance, deviation 0.5 and mean 0.5 for any action.
    shares = z.std(axis=-1) / np.array([0.5, 2.0]) / midpoint_std(max(z.shape[-1], 2))
    errors = np.abs(np.concatenate([z.mean(axis=-1) - [0.0, 1.0], y.mean(axis=-1) - 0.5]))
    return Moments(
        name, seed, float(shares.mean()), float(y.std(axis=-1).mean() / 0.5), float(errors.max())
    )


def measure_all(
    names: Sequence[str], seeds: int, *, engine: str = "local", workers: int | None = None
) -> Iterator[Moments]:
    jobs = [(name, seed) for name in names for seed in range(seeds)]
    for _, moments in run_jobs(_job, jobs, engine=engine, workers=workers):
        yield moments


def _job(job: tuple[str, int]) -> Moments:
    return measure(*job)


def _trained(env: gym.Env[Any, Any], seed: int, steps: int, options: dict[str, Any]) -> NeuralAgent:
    return NeuralAgent(env, seed=seed, config=SMALL, **options).learn(steps)
