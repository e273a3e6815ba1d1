"""Section 5.1's data and fits: trials drawn from a Gaussian mixture, and N particles fitted to
their N samples, all trials at once, by quantile regression and by JKO flows.

The paper's appendix ("Regression Comparison") speaks of five components, i = 1..5 with weight 1/5,
and lists six means and six deviations. The first five are our reading; all six, equally likely, are
the other one.

All fits answer in the same form and say how far they ended from where they would end. Distances are
shares of the range of the training sample, so that a tolerance means the same at any scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core.losses import midpoints, quantile_huber_slope
from surefoot.core.particles import quantile
from surefoot.core.stats import Interval, mean_interval
from surefoot.errors import InputError
from surefoot.transport import proximal_step

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


# --- fits ---------------------------------------------------------------------------------

TOLERANCE = 5e-5
"""A fit has converged once no particle has farther to go than this share of the data's range."""


class Fit(NamedTuple):
    """Fitted particles of each trial and how they were reached."""

    z: Any  # [trials, N]
    converged: Any  # [trials] distance_left <= tolerance, and the last step's solve converged
    distance_left: Any  # [trials] of the farthest particle, as a share of the data's range
    steps: Any  # [trials] JKO or gradient steps taken
    iterations: Any  # [trials] solver iterations over all steps
    unsolved: Any  # [trials] steps whose solve stopped at its iteration limit


def fit_quantiles(
    trials: SampledTrials,
    *,
    steps: int = 5000,
    first: float = 0.5,
    last: float = 1e-4,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Quantile regression by full-batch gradient steps on the pure quantile loss (kappa = 0).

    The step size falls geometrically from `first` to `last` times the range of the data. The
    gradient `F_T(z_i) - tau_i` of a particle one gap away from its quantile is only `1 / (2 N)`,
    which asks for large first steps; near it, it jumps by `1 / N`, which asks for small last ones.
    """
    z, target_z = trials.start_z.astype(np.float32), trials.target_z.astype(np.float32)
    return _numpy(_fit_quantiles(z, target_z, steps, first, last, tolerance))


@partial(jax.jit, static_argnums=(2,))
def _fit_quantiles(
    start_z: jax.Array, target_z: jax.Array, steps: int, first: float, last: float, tolerance: float
) -> Fit:
    def one(z: jax.Array, target_z: jax.Array) -> Fit:
        span = target_z[-1] - target_z[0]

        def descend(z: jax.Array, k: jax.Array) -> tuple[jax.Array, None]:
            rate = span * first * (last / first) ** (k / steps)
            return z - rate * quantile_huber_slope(z, target_z, kappa=0.0), None

        z, _ = jax.lax.scan(descend, z, jnp.arange(steps))
        # The minimiser is known: no tau_i = (2 i - 1) / (2 N) is a step of the sample's CDF.
        goal = quantile(target_z, midpoints(z.shape[0], z.dtype), assume_sorted=True)
        left = jnp.max(jnp.abs(z - goal)) / span
        return Fit(z, left <= tolerance, left, jnp.asarray(steps), jnp.asarray(steps), 0)

    return jax.vmap(one)(start_z, target_z)


def fit_flow(
    trials: SampledTrials,
    transport: str,
    *,
    step_size: float = 1.0,
    steps: int = 100,
    tolerance: float = TOLERANCE,
    max_iterations: int = 1000,
    double: bool = False,
    **options: Any,
) -> Fit:
    """JKO steps towards the training sample, each anchored at the one before, to equilibrium.

    The exact step covers `h / (1 + h)` of the way, so a step that moves by d has d (1 + h) / h to
    go: that is `distance_left`. A trial stops within `tolerance` of equilibrium or after `steps`.
    Each proximal step is solved ten times as finely, as far as the precision goes. `double`
    computes in float64 without touching the global precision; further `options` go to
    `proximal_step`.
    """
    # A share of 1e-6 is some ten roundings of float32: below it a solve may never settle.
    fine = max(tolerance * step_size / (1 + step_size) / 10, 1e-8 if double else 1e-6)
    fixed = {"tolerance": fine, "max_iterations": max_iterations, **options}
    with jax.enable_x64(double):
        dtype = np.float64 if double else np.float32
        z, target_z = trials.start_z.astype(dtype), trials.target_z.astype(dtype)
        return _numpy(
            _fit_flow(z, target_z, transport, step_size, steps, tolerance, tuple(fixed.items()))
        )


@partial(jax.jit, static_argnums=(2, 3, 4, 5, 6))
def _fit_flow(
    start_z: jax.Array,
    target_z: jax.Array,
    transport: str,
    step_size: float,
    steps: int,
    tolerance: float,
    options: tuple[tuple[str, Any], ...],
) -> Fit:
    def one(z: jax.Array, target_z: jax.Array) -> Fit:
        span = target_z[-1] - target_z[0]

        def unfinished(fit: Fit) -> jax.Array:
            return ~fit.converged & (fit.steps < steps)

        def advance(fit: Fit) -> Fit:
            step = proximal_step(
                fit.z, target_z, step_size, transport, assume_sorted=True, **dict(options)
            )
            moved = jnp.max(jnp.abs(step.z - fit.z)) / span
            left = moved * (1 + step_size) / step_size
            return Fit(
                step.z,
                (left <= tolerance) & step.converged,
                left,
                fit.steps + 1,
                fit.iterations + step.iterations,
                fit.unsolved + ~step.converged,
            )

        none = jnp.zeros((), int)
        begin = Fit(z, jnp.asarray(False), jnp.asarray(jnp.inf, z.dtype), none, none, none)
        return jax.lax.while_loop(unfinished, advance, begin)

    return jax.vmap(one)(start_z, target_z)


def _numpy(fit: Fit) -> Fit:
    return Fit(*(np.asarray(part) for part in fit))


def moments(z: np.ndarray) -> np.ndarray:
    """First and second raw moment of particles `[..., N]`, as `[..., 2]`."""
    wide = np.asarray(z, np.float64)
    return np.stack([wide.mean(-1), (wide**2).mean(-1)], axis=-1)


def rmse(errors: np.ndarray) -> Interval:
    """Root of the mean squared error over trials, its interval from that of the mean square."""
    square = mean_interval(np.asarray(errors) ** 2)
    low, mean, high = np.sqrt(np.maximum([square.low, square.mean, square.high], 0.0))
    return Interval(float(mean), float(low), float(high), square.n, square.level)
