"""The Gaussian mixture of the paper's regression experiments (appendix, "Regression Comparison").

The appendix speaks of five components, i = 1..5 with weight 1/5, and lists six means and six
deviations. The first five are our reading; all six, equally likely, are the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from surefoot.errors import InputError

MEANS = (-5.0, -3.0, 0.0, 5.0, 6.0, 9.0)
DEVIATIONS = (1.0, 2.0, 1.0, 2.0, 1.0, 0.5)
EVALUATION = 10_000  # the paper's 10^4 samples behind each target moment


@dataclass(frozen=True)
class Mixture:
    """Equally likely Gaussian components."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.means or len(self.means) != len(self.deviations):
            raise InputError(
                f"a mixture needs as many means as deviations, not {len(self.means)} "
                f"and {len(self.deviations)}"
            )
        if min(self.deviations) <= 0:
            raise InputError(f"deviations = {self.deviations}: all must be positive")

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        which = rng.integers(len(self.means), size=size)
        means, deviations = np.asarray(self.means), np.asarray(self.deviations)
        return means[which] + deviations[which] * rng.normal(size=size)

    def moment(self, order: int) -> float:
        """The raw moment `E[X^order]`, order 1 to 4, in closed form."""
        m, v = np.asarray(self.means), np.asarray(self.deviations) ** 2
        raw = {1: m, 2: m**2 + v, 3: m**3 + 3 * m * v, 4: m**4 + 6 * m**2 * v + 3 * v**2}
        if order not in raw:
            raise InputError(f"order = {order}: moments are known from order 1 to 4")
        return float(raw[order].mean())

    def standard_error(self, order: int, samples: int) -> float:
        """Of the sample moment of `order` 1 or 2: what no method that sees only a sample beats."""
        return sqrt((self.moment(2 * order) - self.moment(order) ** 2) / samples)


def paper_mixture(components: int = 5, scale: float = 1.0) -> Mixture:
    """The first `components` of the paper's list, all values multiplied by `scale`."""
    if not 1 <= components <= len(MEANS):
        raise InputError(f"components = {components}: the paper lists 1 to {len(MEANS)}")
    if not scale > 0:
        raise InputError(f"scale = {scale}: it must be positive")
    return Mixture(
        tuple(scale * value for value in MEANS[:components]),
        tuple(scale * value for value in DEVIATIONS[:components]),
    )


class SampledTrials(NamedTuple):
    """What independent trials start from."""

    start_z: np.ndarray  # [trials, N] ascending, from N(0, 1)
    target_z: np.ndarray  # [trials, N] ascending, the training sample
    truth: np.ndarray  # [trials, 2] first and second raw moment of fresh samples


def draw_trials(mixture: Mixture, seed: int, trials: int, particles: int) -> SampledTrials:
    """Independent trials; trial k has the same data however many trials there are."""
    starts, targets, truths = [], [], []
    for trial in range(trials):
        rng = np.random.default_rng([seed, particles, trial])
        targets.append(np.sort(mixture.sample(rng, particles)))
        starts.append(np.sort(rng.normal(size=particles)))
        fresh = mixture.sample(rng, EVALUATION)
        truths.append([fresh.mean(), (fresh**2).mean()])
    return SampledTrials(np.array(starts), np.array(targets), np.array(truths))
