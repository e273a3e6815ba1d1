"""The paper's lemmas, propositions and theorem as executable checks, one test each."""

from __future__ import annotations

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from core_compiled import compiled, proximal_step
from core_kinds import particles
from hypothesis import assume, given, settings
from scipy import stats
from scipy.optimize import minimize

from surefoot.core import particles as sp
from surefoot.core.dominance import ssd_dominates, violation
from surefoot.transport import POTENTIALS, TRANSPORTS, jko_flow


@given(particles(st.integers(1, 12)), st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_lemma_1_cumulative_quantile_is_a_partial_expectation(z: np.ndarray, j: int) -> None:
    """`F^-2(tau) = E[X 1{X <= xi}]` for `xi = F^-1(tau)` and `tau = F(xi)`."""
    xi = np.sort(z)[min(j, z.size) - 1]
    tau = np.mean(z <= xi)
    assert sp.quantile(z, tau) == xi
    assert sp.cumulative_quantile(z, tau) == pytest.approx(np.mean(z * (z <= xi)), abs=1e-12)


def test_lemma_1_for_a_normal_distribution() -> None:
    # E[X 1{X <= xi}] of the standard normal is -phi(xi).
    z = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    for tau in (0.05, 0.3, 0.9):
        expected = -stats.norm.pdf(stats.norm.ppf(tau))
        assert sp.cumulative_quantile(z, tau) == pytest.approx(expected, abs=1e-3)


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(particles(n), particles(n))))
@settings(max_examples=150, deadline=None)
def test_finite_ssd_proposition(two: tuple[np.ndarray, np.ndarray]) -> None:
    """`X >=_(2) Y` if and only if every partial sum of the sorted particles is as large."""
    x, y = two
    by_sums = bool((np.cumsum(np.sort(x)) >= np.cumsum(np.sort(y))).all())
    alpha = np.concatenate([x, y, [100.0]])
    by_definition = bool((sp.cumulative_cdf(x, alpha) <= sp.cumulative_cdf(y, alpha) + 1e-12).all())
    assert by_sums == by_definition == bool(ssd_dominates(x, y))


@given(st.integers(2, 6).flatmap(lambda n: st.tuples(particles(n), particles(n))), st.booleans())
@settings(max_examples=150, deadline=None)
def test_moment_ordering_of_fishburn(two: tuple[np.ndarray, np.ndarray], lift: bool) -> None:
    """`X >=_(2) Y` implies a larger mean, or equal means and a smaller second moment."""
    x, y = two
    x = x + violation(x, y) * x.size if lift else x - x.mean() + y.mean()
    assume(ssd_dominates(x, y))
    assert sp.mean(x) >= sp.mean(y) - 1e-12
    if abs(sp.mean(x) - sp.mean(y)) < 1e-12:
        assert sp.moment(x, 2) <= sp.moment(y, 2) + 1e-9


@pytest.mark.parametrize("potential", POTENTIALS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_lyapunov_decrease_of_the_free_energy(transport: str, potential: str, x64: None) -> None:
    """No step of the flow increases the free energy (proof beside `Flow.free_energy`)."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=(3, 8)) * np.array([[3.0], [1.0], [0.3]])
    target = rng.normal(size=(3, 8)) + 1
    flow = compiled(
        jax.vmap(
            lambda z, t: jko_flow(
                z, t, 10, 0.5, transport, potential, tolerance=1e-7, max_iterations=3000
            )
        )
    )(start, target)
    assert bool(flow.converged.all())
    energy = flow.potential + flow.entropic
    assert (np.diff(energy, axis=-1) <= 1e-9).all()
    assert (energy[:, -1] < energy[:, 0] - 1e-2).all()
    if transport != "sinkhorn":
        assert (flow.entropic == 0).all()


@pytest.mark.wide
def test_theorem_a_bellman_fixed_point_is_a_fixed_point_of_the_proximal_operator(
    x64: None,
) -> None:
    """`T mu = mu` implies `Prox(mu) = mu` as the entropy vanishes."""
    z = np.sort(np.random.default_rng(1).normal(size=12))
    moved = []
    for temperature in (1.0, 0.1, 0.01, 0.001):
        step = proximal_step(z, z, temperatures=(temperature,), tolerance=1e-9, max_iterations=5000)
        moved.append(np.abs(step.z - z).max())
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 0.1
    assert moved[-1] < 0.01
    # Without entropy at once, for any step size, potential and debiased transport.
    for h in (0.1, 1.0, 10.0):
        assert proximal_step(z, z, h, "exact").z == pytest.approx(z, abs=1e-12)
        debiased = proximal_step(z, z, h, "divergence", tolerance=1e-9, max_iterations=5000)
        assert debiased.z == pytest.approx(z, abs=1e-6)
    assert proximal_step(z, z, 1.0, "exact", "energy").z == pytest.approx(z, abs=1e-12)
    # A measure that is no fixed point of the Bellman operator is none of the proximal one.
    assert np.abs(proximal_step(z, 0.5 * z + 1, 1.0, "exact").z - z).max() > 0.1


def test_gibbs_measure_minimises_the_free_energy(x64: None) -> None:
    """`exp(-beta U) / Z` minimises `F + H / beta` among densities on a grid (eq. 6)."""
    beta, grid = 2.0, np.linspace(-3.0, 5.0, 41)
    width = grid[1] - grid[0]
    value = compiled(jax.vmap(POTENTIALS["bellman"].value, in_axes=(0, None)))
    u = value(grid[:, None], np.array([1.0]))

    def free_energy(density: np.ndarray) -> float:
        entropy = np.sum(np.where(density > 0, density * np.log(np.maximum(density, 1e-300)), 0))
        return float(np.sum(density * u) * width + entropy * width / beta)

    def normal(x: np.ndarray) -> np.ndarray:
        return x / (x.sum() * width)

    gibbs = normal(np.exp(-beta * u))
    lowest = free_energy(gibbs)
    # U is quadratic, so it is the normal distribution of variance 1 / beta around the target.
    assert gibbs == pytest.approx(stats.norm.pdf(grid, 1.0, beta**-0.5), abs=1e-3)
    # Any other density lies above it by its relative entropy / beta.
    rng = np.random.default_rng(2)
    for _ in range(50):
        other = normal(gibbs * np.exp(rng.normal(size=grid.size)))
        relative = np.sum(other * np.log(other / gibbs)) * width
        assert free_energy(other) - lowest == pytest.approx(relative / beta, abs=1e-10)
        assert relative > 0
    # And an optimiser that knows nothing of it arrives there.

    def objective(logits: np.ndarray) -> tuple[float, np.ndarray]:
        density = normal(np.exp(logits - logits.max()))
        slope = u + (np.log(density) + 1) / beta
        return free_energy(density), density * width * (slope - np.sum(density * slope) * width)

    found = minimize(objective, np.zeros(grid.size), jac=True, options={"gtol": 1e-8})
    assert found.fun == pytest.approx(lowest, abs=1e-8)
    assert normal(np.exp(found.x)) == pytest.approx(gibbs, abs=1e-3)
