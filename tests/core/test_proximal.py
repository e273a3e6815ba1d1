"""The proximal step: closed forms, agreement of the solvers, order, batches, errors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled, proximal_loss, proximal_step
from hypothesis import given, settings
from scipy.optimize import minimize

from surefoot import transport as eager
from surefoot.core.losses import midpoints
from surefoot.errors import InputError
from surefoot.transport import NAMED_LOSSES, POTENTIALS, TRANSPORTS, jko_flow, project

pytestmark = pytest.mark.usefixtures("no_rank_promotion")


def pair(n: int = 8, spread: float = 1.0, shift: float = 1.0, seed: int = 0) -> tuple:
    rng = np.random.default_rng(seed)
    anchor, target = rng.normal(size=n) * spread, rng.normal(size=n) * spread + shift
    return np.sort(anchor), np.sort(target)


def test_exact_bellman_step_by_hand() -> None:
    # (z0 + h Tz) / (1 + h) with h = 3: (0 + 3 * 4) / 4 = 3, (2 + 3 * 6) / 4 = 5.
    step = proximal_step(np.array([0.0, 2.0]), np.array([4.0, 6.0]), 3.0, "exact")
    assert step.z.tolist() == [3.0, 5.0]
    assert bool(step.converged)
    # Unsorted input is sorted first, and the answer ascends.
    mixed = proximal_step(np.array([2.0, 0.0]), np.array([6.0, 4.0]), 3.0, "exact")
    assert mixed.z.tolist() == [3.0, 5.0]


def test_exact_energy_step_by_hand() -> None:
    # One target at 0, particles at -2, 1 (tau 1/4, 3/4), h = 1: z + 2 F_T(z) = pulled + 2 tau.
    # First: level -1.5, left of the target F_T = 0, z = -1.5. Second: level 2.5, beyond it
    # F_T = 1, z = 0.5.
    z, target = np.array([-2.0, 1.0]), np.array([0.0])
    step = proximal_step(z, target, 1.0, "exact", "energy")
    assert step.z.tolist() == [-1.5, 0.5]
    # A level between 0 and 2 stops at the target itself.
    assert proximal_step(np.array([0.5]), target, 1.0, "exact", "energy").z.tolist() == [0.0]


def test_losses_by_hand() -> None:
    z, anchor, target = np.array([0.0, 2.0]), np.array([1.0, 1.0]), np.array([0.0, 4.0])
    # W2^2 = (1 + 1) / 2; F = ((0)^2 + (2)^2) / 2 / 2 = 1; L = 1 + 2 * 0.5 * 1.
    assert proximal_loss(z, anchor, target, 0.5, "exact") == pytest.approx(2.0)
    # Energy: E|Z-T| = (0 + 4 + 2 + 2) / 4 = 2, E|Z-Z'| = 1, E|T-T'| = 2: 2 - 0.5 - 1 = 0.5.
    assert compiled(POTENTIALS["energy"].value)(z, target) == pytest.approx(0.5)
    assert proximal_loss(z, anchor, target, 0.5, "exact", "energy") == pytest.approx(1.5)


def test_energy_potential_against_its_integral(x64: None) -> None:
    # The energy distance on the line is 2 times the integral of (F - G)^2, halved here: E|Z-T| -
    # E|Z-Z'|/2 - E|T-T'|/2 = integral of (F_Z - F_T)^2.
    z, t = pair(6)
    x = np.linspace(-8, 8, 400_001)
    cdf = lambda p: np.searchsorted(p, x, side="right") / p.size  # noqa: E731
    expected = np.trapezoid((cdf(z) - cdf(t)) ** 2, x)
    assert compiled(POTENTIALS["energy"].value)(z, t) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("potential", POTENTIALS)
def test_slopes_are_the_gradients(potential: str, x64: None) -> None:
    z, t = pair(7)
    drawn = POTENTIALS[potential]
    expected = 7 * compiled(jax.grad(drawn.value))(z, t)
    assert compiled(drawn.slope)(z, t) == pytest.approx(expected, abs=1e-10)


energy_implicit = compiled(POTENTIALS["energy"].implicit)


@given(
    st.lists(st.integers(-64, 64), min_size=3, max_size=3),
    st.sampled_from([1, 5]).flatmap(
        lambda n: st.lists(st.integers(-64, 64), min_size=n, max_size=n)
    ),
    st.sampled_from([0.1, 1.0, 30.0]),
)
@settings(max_examples=60, deadline=None)
def test_energy_step_solves_its_equation(anchor: list, target: list, h: float) -> None:
    pulled = np.sort(np.asarray(anchor) / 16).astype("float32")
    t = np.sort(np.asarray(target) / 16).astype("float32")
    z = energy_implicit(pulled, t, h)
    tau = (2 * np.arange(3) + 1) / 6
    level = pulled + 2 * h * tau
    # At a target F_T may take any value between its left and right limits.
    noise = 1e-4 * (1 + h)
    low = z + 2 * h * (t[None, :] < z[:, None] - noise).mean(axis=1)
    high = z + 2 * h * (t[None, :] <= z[:, None] + noise).mean(axis=1)
    assert (low <= level + noise).all()
    assert (high >= level - noise).all()
    assert (np.diff(z) >= 0).all()


@pytest.mark.parametrize("potential", ["bellman", "energy"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_step_is_the_minimiser_scipy_finds(transport: str, potential: str, x64: None) -> None:
    anchor, target = pair(5, spread=0.6, shift=0.5)
    options = {} if transport == "exact" else {"sinkhorn_tolerance": 1e-12}

    @jax.jit
    def loss(z: jax.Array) -> jax.Array:
        z = jnp.sort(z)
        return eager.proximal_loss(z, anchor, target, 0.7, transport, potential, **options)

    step = proximal_step(
        anchor, target, 0.7, transport, potential, tolerance=1e-10, max_iterations=5000
    )
    assert bool(step.converged)
    best = minimize(
        lambda z: float(loss(z)),
        step.z + 0.05 * np.linspace(-1, 1, 5),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
    )
    assert loss(step.z) <= best.fun + 1e-8
    if potential == "bellman":  # the other has kinks, on which the simplex may stall
        assert step.z == pytest.approx(np.sort(best.x), abs=2e-3)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_fixed_point_and_gradient_agree(transport: str, x64: None) -> None:
    # On the converged loss the two solvers are two ways to one minimiser.
    anchor, target = pair(8, spread=0.8)
    fixed = proximal_step(anchor, target, 1.0, transport, tolerance=1e-9, max_iterations=3000)
    descent = proximal_step(
        anchor,
        target,
        1.0,
        transport,
        solver="gradient",
        sinkhorn_tolerance=1e-10,
        tolerance=1e-9,
        max_iterations=3000,
    )
    assert bool(fixed.converged)
    assert bool(descent.converged)
    assert fixed.z == pytest.approx(descent.z, abs=1e-5)


def test_gradient_solver_takes_the_paper_steps(x64: None) -> None:
    # One step of size r from the anchor: z0 - r (N dW + 2 h (z0 - Tz)); exact transport has no
    # slope there, so with r = 0.25, h = 1 it goes half the way to the target.
    anchor, target = pair(4)
    step = proximal_step(anchor, target, 1.0, "exact", solver="gradient", max_iterations=1)
    assert step.z == pytest.approx((anchor + target) / 2, abs=1e-12)
    assert int(step.iterations) == 1
    # The same size on the exact loss is Newton's: one more step and it stands.
    done = proximal_step(anchor, target, 1.0, "exact", solver="gradient")
    assert int(done.iterations) == 2
    assert bool(done.converged)
    # The paper's 0.5 at h = 1 oscillates: after any even number of steps it is back.
    back = proximal_step(anchor, target, 1.0, "exact", solver="gradient", gradient_step=0.5)
    assert not bool(back.converged)
    assert back.z == pytest.approx(anchor, abs=1e-9)


@given(
    st.lists(st.floats(-20, 20, width=32), min_size=6, max_size=6),
    st.lists(st.floats(-20, 20, width=32), min_size=6, max_size=6),
    st.sampled_from([0.05, 1.0, 10.0]),
    st.sampled_from(["exact", "sinkhorn"]),
    st.sampled_from(["bellman", "energy"]),
)
@settings(max_examples=150, deadline=None)
def test_order_is_preserved(
    anchor: list, target: list, h: float, transport: str, potential: str
) -> None:
    """The projection onto the anchor rises with the particle, for whatever dual potentials.

    Its slope is `2 Var_i / T >= 0`, the variance of the plan's row. The implicit step is
    increasing in the point it is pulled to. So every iterate ascends, converged or not.
    """
    z = proximal_step(np.float32(anchor), np.float32(target), h, transport, potential).z
    assert np.isfinite(z).all()
    # A particle may equal its neighbour; rounding of a softmax mean is all that is forgiven.
    assert (np.diff(z) >= -4e-6 * (1 + np.abs(z).max())).all()


def test_shift_and_scale_of_the_exact_step() -> None:
    anchor, target = pair(8)
    step = proximal_step(anchor, target, 0.5, "exact").z
    moved = proximal_step(3 * anchor - 2, 3 * target - 2, 0.5, "exact").z
    assert moved == pytest.approx(3 * step - 2, abs=1e-5)


@pytest.mark.parametrize("transport", ["sinkhorn", "divergence"])
def test_shift_of_the_entropic_step(transport: str) -> None:
    anchor, target = pair(8)
    step = proximal_step(anchor, target, 0.5, transport).z
    moved = proximal_step(anchor + 5, target + 5, 0.5, transport).z
    assert moved == pytest.approx(step + 5, abs=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_jit_vmap_and_grad_in_both_precisions(transport: str, dtype: str, x64: None) -> None:
    rng = np.random.default_rng(1)
    anchor, target = np.sort(rng.normal(size=(2, 3, 6)), -1).astype(dtype)
    one = lambda a, t: eager.proximal_step(a, t, 1.0, transport, assume_sorted=True)  # noqa: E731
    batch = compiled(jax.vmap(one))(anchor, target)
    assert batch.z.dtype == dtype
    alone = compiled(one)(anchor[1], target[1])
    assert batch.z[1] == pytest.approx(alone.z, abs=2e-3)
    loss = lambda z, a, t: eager.proximal_loss(z, a, t, 1.0, transport)  # noqa: E731
    slope = compiled(jax.grad(loss))(target[0], anchor[0], target[0])
    assert slope.dtype == dtype
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("transport", ["sinkhorn", "divergence", "exact"])
@pytest.mark.parametrize("potential", ["bellman", "energy"])
def test_loss_of_a_batch_is_that_of_its_columns(transport: str, potential: str, x64: None) -> None:
    """Particles first, batch last: the same losses and gradients as `vmap` over rows."""
    z, anchor, target = np.sort(np.random.default_rng(5).normal(size=(3, 7, 4)) * 3, axis=2)

    def loss(z: jax.Array, anchor: jax.Array, target: jax.Array) -> jax.Array:
        return eager.proximal_loss(z, anchor, target, 0.7, transport, potential)

    def total(*columns: jax.Array) -> tuple[jax.Array, jax.Array]:
        losses = loss(*columns)
        return losses.sum(), losses

    rows, slopes = compiled(jax.vmap(jax.value_and_grad(loss)))(z, anchor, target)
    columns = z.T, anchor.T, target.T
    (_, losses), downhill = compiled(jax.value_and_grad(total, has_aux=True))(*columns)
    assert losses.shape == (7,)
    np.testing.assert_allclose(losses, rows, rtol=1e-12)
    np.testing.assert_allclose(downhill.T, slopes, rtol=1e-10, atol=1e-13)


@functools.cache
def exact_steps(potential: str) -> Callable[..., np.ndarray]:
    def step(anchor: jax.Array, target: jax.Array) -> jax.Array:
        return eager.proximal_step(anchor, target, 0.3, "exact", potential, assume_sorted=True).z

    return compiled(jax.vmap(step))


@pytest.mark.optimised
@pytest.mark.parametrize("potential", ["bellman", "energy"])
@pytest.mark.parametrize("width", [1, 7, 50])
def test_exact_step_has_the_same_bits_in_every_batch_width(potential: str, width: int) -> None:
    rng = np.random.default_rng(2)
    anchor, target = np.sort(rng.normal(size=(2, 64, 16)), -1).astype("float32")
    step = exact_steps(potential)
    assert np.array_equal(step(anchor, target)[:width], step(anchor[:width], target[:width]))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_projection_is_the_means_of_quantile_bins(k: int) -> None:
    rng = np.random.default_rng(3)
    rows = np.sort(rng.normal(size=(k, 4)), axis=-1)
    expected = np.sort(rows.ravel()).reshape(4, k).mean(axis=1)
    onto = compiled(project, "particles", "sorted_rows")
    assert onto(rows, 4, sorted_rows=True) == pytest.approx(expected, abs=1e-6)
    assert onto(rows.ravel(), 4) == pytest.approx(expected, abs=1e-6)


def test_projection_is_the_closest_of_all(x64: None) -> None:
    values = np.sort(np.random.default_rng(4).normal(size=12))
    best = compiled(project, "particles")(values, 3)

    def distance(z: np.ndarray) -> float:
        return float(np.mean((np.repeat(np.sort(z), 4) - values) ** 2))

    found = minimize(distance, best + 0.1, method="Nelder-Mead")
    assert distance(best) <= found.fun + 1e-9


def test_whole_numbers_and_lists_are_taken_as_floats() -> None:
    # (z0 + Tz) / 2 of the step by hand above, and halfway again; whole numbers would be cut short.
    flow = jko_flow([0, 1, 2], np.array([1, 2, 4]), 2, transport="exact")
    assert flow.path.tolist() == [[0, 1, 2], [0.5, 1.5, 3], [0.75, 1.75, 3.5]]
    assert project(np.array([3, 1, 2, 6]), 2).tolist() == [1.5, 4.5]
    assert project([0, 1, 2], 3).tolist() == [0, 1, 2]


def test_flow_reports_its_path() -> None:
    anchor, target = pair(6)
    flow = compiled(jko_flow, "steps", "step_size", "transport")(anchor, target, 3, 1.0, "exact")
    assert flow.path.shape == (4, 6)
    # Exact transport halves the distance with h = 1: after k steps target + (z0 - target) / 2^k.
    for k in range(4):
        expected = target + (anchor - target) / 2**k
        assert flow.path[k] == pytest.approx(expected, abs=1e-6)
    assert flow.entropic.tolist() == [0.0] * 4
    assert flow.potential[0] == pytest.approx(np.mean((anchor - target) ** 2) / 2)
    assert flow.loss.shape == (3,)
    assert bool(flow.converged.all())
    assert flow.free_energy == pytest.approx(flow.potential)


def test_named_losses_are_of_the_potentials_and_transports_tested_here() -> None:
    for potential, transport in NAMED_LOSSES.values():
        assert potential in POTENTIALS
        assert transport in TRANSPORTS


def test_midpoints_by_hand() -> None:
    assert midpoints(2, jnp.float32).tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: proximal_step(a, a, 0.0), ["step_size = 0.0", "positive"]),
        (lambda a: proximal_step(a, a, 1.0, "sinkhron"), ["transport", "'sinkhorn'?"]),
        (lambda a: proximal_step(a, a, 1.0, potential="belman"), ["potential", "'bellman'?"]),
        (
            lambda a: proximal_step(a, a, 1.0, solver="newton"),
            ["solver 'newton'", "gradient"],
        ),
        (lambda a: proximal_step(a, a[:2], 1.0, "exact"), ["target_z", "(2,)", "project"]),
        (
            lambda a: proximal_loss(a, a, a, temperatures=(-1.0,)),
            ["temperatures", "positive"],
        ),
        (lambda a: project(a, 2), ["3 values", "2 equal"]),
        (lambda a: project(a, 0), ["particles = 0", "at least 1"]),
        (lambda a: project(a, 1.5), ["particles = 1.5", "whole number"]),
        (lambda a: project(a, 3, sorted_rows=True), ["values has shape (3,)", "[K, N]"]),
        (lambda a: proximal_step(a, a, math.nan), ["step_size = nan", "positive"]),
        (lambda a: proximal_step(a, a, max_iterations=0), ["max_iterations = 0"]),
        (lambda a: proximal_step(a, a, tolerance="a"), ["tolerance = 'a'"]),
        (lambda a: eager.proximal_loss(a, a[:2], a, transport="exact"), ["equally many"]),
        (lambda a: eager.proximal_loss(a, a, a, -1.0), ["step_size = -1.0", "negative"]),
        (lambda a: jko_flow(a, a, -1), ["steps = -1", "at least 0"]),
        (lambda a: jko_flow(a, a, 1.5), ["steps = 1.5", "whole number"]),
        (lambda a: jko_flow([0.0, math.nan], a, 1), ["start_z[1] = nan", "not finite"]),
        (lambda a: jko_flow(np.ones((2, 3)), np.ones((2, 3)), 1), ["start_z", "[N]"]),
        (lambda a: jko_flow(None, a, 1), ["start_z is None"]),
        (lambda a: jko_flow(a, a, 1, potential=3), ["unknown potential 3"]),
        (lambda a: jko_flow(a, a, 1, transport=None), ["unknown transport None"]),
    ],
)
def test_mistakes_are_named(call: object, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call(jnp.arange(3.0))  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)
