"""Facts about the paper's method that decide the design, each measured again.

Numbers in comments come from a prototype; the bands leave room for seeds and rounding.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled, proximal_step, sinkhorn
from scipy import stats

from surefoot import transport as eager
from surefoot.core.losses import quantile_huber_loss, quantile_huber_slope
from surefoot.transport import POTENTIALS, project

pytestmark = pytest.mark.usefixtures("no_rank_promotion")
N = 16


def learn_terminal_reward(memory: int, potential: str, h: float, steps: int) -> tuple:
    """Particle std and jitter of the mean while learning `r ~ N(-1, 1)` of a last step.

    The target pools the last `memory` rewards; 1 is the paper's single transition.
    """
    rewards = np.random.default_rng(0).normal(-1.0, 1.0, size=steps + memory)
    rewards = jnp.asarray(rewards, jnp.float32)
    places = np.arange(steps)

    def update(z: jax.Array, i: jax.Array) -> tuple[jax.Array, tuple]:
        seen = jax.lax.dynamic_slice(rewards, (i,), (memory,))
        target = project(jnp.repeat(seen, N), N) if potential == "bellman" else seen
        z = eager.proximal_step(z, target, h, "exact", potential, assume_sorted=True).z
        return z, (jnp.mean(z), jnp.std(z))

    _, (mean, std) = compiled(lambda z: jax.lax.scan(update, z, places))(np.zeros(N, "float32"))
    settled = slice(steps // 10, None)
    return float(std[settled].mean()), float(mean[settled].std())


def test_a1_a_single_sample_target_cannot_see_reward_noise() -> None:
    std, jitter = learn_terminal_reward(1, "bellman", 1.0, 2000)
    assert std == pytest.approx(0.0, abs=1e-5)  # truth 1.0: the particles move as one
    assert jitter == pytest.approx(0.58, abs=0.04)


@pytest.mark.parametrize(
    ("memory", "std", "jitter"), [(4, 0.77, 0.41), (16, 0.95, 0.26), (128, 0.98, 0.09)]
)
def test_a1_mixture_targets_can(memory: int, std: float, jitter: float) -> None:
    found = learn_terminal_reward(memory, "bellman", 1.0, 2000)
    assert found[0] == pytest.approx(std, abs=0.03)
    assert found[1] == pytest.approx(jitter, abs=0.05)


def equilibrium(transport: str, std: float, solver: str = "fixed_point") -> float:
    """Share of the target's standard deviation left after 60 JKO steps against it, h = 1."""
    return float(sixty_steps(std * STANDARD, transport, solver).std()) / std


STANDARD = stats.norm.ppf((np.arange(64) + 0.5) / 64)
STANDARD = (STANDARD / STANDARD.std()).astype("float32")


def _sixty_steps(target: jax.Array, transport: str, solver: str) -> jax.Array:
    def again(z: jax.Array, _: None) -> tuple[jax.Array, None]:
        step = eager.proximal_step(z, target, 1.0, transport, solver=solver, assume_sorted=True)
        return step.z, None

    return jax.lax.scan(again, target, None, length=60)[0]


sixty_steps = compiled(_sixty_steps, "transport", "solver")


# The share the three annealed sweeps leave, and what is left when the entropic problem is
# solved to its end: fewer sweeps blur more, so the two differ where std is near sqrt(T) = 0.5.
SHRINKAGE = [(3.0, 0.994, 0.997), (1.0, 0.87, 0.93), (0.5, 0.71, 0.735), (0.1, 0.505, 0.505)]


@pytest.mark.parametrize(("std", "three_sweeps", "solved"), SHRINKAGE)
def test_a2_the_entropic_step_shrinks(std: float, three_sweeps: float, solved: float) -> None:
    assert equilibrium("sinkhorn", std, "gradient") == pytest.approx(three_sweeps, abs=0.01)
    assert equilibrium("sinkhorn", std) == pytest.approx(solved, abs=0.015)


@pytest.mark.parametrize("std", [3.0, 1.0, 0.5, 0.1])
def test_a2_the_debiased_and_the_exact_step_do_not(std: float) -> None:
    assert equilibrium("divergence", std) == pytest.approx(1.0, abs=0.015)
    assert equilibrium("exact", std) == pytest.approx(1.0, abs=1e-5)


def test_a3_without_entropy_the_step_is_a_weighted_mean() -> None:
    rng = np.random.default_rng(1)
    anchor, target = np.sort(rng.normal(size=(2, N))).astype("float32")
    for h in (0.1, 1.0, 7.0):
        step = proximal_step(anchor, target, h, "exact").z
        assert step == pytest.approx((anchor + h * target) / (1 + h), abs=1e-6)
        # It is the limit of the entropic step as the temperature vanishes.
        cold = proximal_step(anchor, target, h, temperatures=(1e-4,), tolerance=1e-5).z
        assert cold == pytest.approx(step, abs=5e-3)


def test_a3_with_entropy_the_step_is_a_fixed_point(x64: None) -> None:
    rng = np.random.default_rng(2)
    anchor, target = np.sort(rng.normal(size=(2, N)))
    z = proximal_step(anchor, target, 1.0, tolerance=1e-10, max_iterations=5000).z
    solved = sinkhorn(z, anchor, tolerance=1e-9, max_sweeps=50_000, start="sorted")
    assert bool(solved.converged)
    projection = solved.projection
    assert z == pytest.approx((projection + target) / 2, abs=1e-6)


def test_a4_quantile_regression_is_the_energy_flow(x64: None) -> None:
    rng = np.random.default_rng(3)
    z, target = np.sort(rng.normal(size=N)), rng.normal(size=9)
    tau = (2 * np.arange(N) + 1) / (2 * N)
    below = (target[None, :] < z[:, None]).mean(axis=1)
    slope = compiled(POTENTIALS["energy"].slope)(z, target)
    assert slope == pytest.approx(2 * (below - tau), abs=1e-12)
    half = compiled(quantile_huber_slope, "kappa")(z, target, 0.0)
    assert slope == pytest.approx(2 * half, abs=1e-12)
    by_autodiff = compiled(jax.grad(quantile_huber_loss), "kappa")(z, target, kappa=0.0)
    assert slope == pytest.approx(2 * by_autodiff, abs=1e-12)


def test_a4_its_sample_gradient_is_unbiased() -> None:
    rng = np.random.default_rng(4)
    z, mixture = np.sort(rng.normal(size=N)), rng.normal(size=40)
    slope = POTENTIALS["energy"].slope
    one_by_one = compiled(jax.vmap(slope, in_axes=(None, 0)))(z, mixture[:, None])
    assert one_by_one.mean(axis=0) == pytest.approx(compiled(slope)(z, mixture), abs=1e-6)


def test_a4_one_transition_at_a_time_finds_the_spread() -> None:
    # The same stream of single rewards that leaves std 0.0 under the bellman potential. The
    # midpoint quantiles of N(-1, 1) at N = 16 have std 0.96.
    std, jitter = learn_terminal_reward(1, "energy", 0.02, 20_000)
    assert std == pytest.approx(0.96, abs=0.05)
    assert jitter < 0.12


@pytest.mark.parametrize("h", [1e-3, 1.0, 1e3])
def test_a4_the_implicit_energy_step_is_stable_for_any_step_size(h: float) -> None:
    rng = np.random.default_rng(5)
    anchor = np.sort(rng.normal(size=N) * 10).astype("float32")
    target = np.sort(rng.normal(size=N)).astype("float32")
    step = proximal_step(anchor, target, h, "exact", "energy").z
    low, high = min(anchor[0], target[0]), max(anchor[-1], target[-1])
    assert ((step >= low - 1e-3 * h) & (step <= high + 1e-3 * h)).all()
    if h == 1e3:  # a long step lands on the target
        assert step == pytest.approx(target, abs=1e-3)


@pytest.mark.parametrize(("spread", "from_zero"), [(3.0, 1.5), (10.0, 6.0)])
def test_three_sweeps_from_zero_are_far_from_converged_when_particles_spread(
    spread: float, from_zero: float
) -> None:
    """Found here: Algorithm 3 misses the plan once the spread exceeds the root of the temperature.

    A sweep carries mass no further than about sqrt(T), so from zero potentials the projection is
    off by as much as the spread itself. Starting from the sorted potentials cures it.
    """
    x = np.float32(spread) * STANDARD
    y = x + np.float32(0.5 * spread)
    solved = sinkhorn(x, y, start="sorted", tolerance=1e-3, max_sweeps=3000)
    assert bool(solved.converged)
    zeros, begun = sinkhorn(x, y), sinkhorn(x, y, start="sorted")
    assert np.abs(zeros.projection - solved.projection).max() > from_zero
    assert np.abs(begun.projection - solved.projection).max() < 0.02
    assert zeros.marginal_error > 0.3  # and the output says so
    assert begun.marginal_error < 0.01


def test_three_sweeps_suffice_where_particles_are_close() -> None:
    x = np.linspace(-0.3, 0.3, 32)
    solved = sinkhorn(x, x + 0.1, tolerance=1e-5)
    assert sinkhorn(x, x + 0.1).projection == pytest.approx(solved.projection, abs=0.01)
