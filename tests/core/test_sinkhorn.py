"""Sinkhorn: OTT-JAX, linear programming and plain autodiff as oracles of Algorithm 3."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled
from core_compiled import sinkhorn as solve
from scipy.optimize import linprog

from surefoot.errors import InputError
from surefoot.transport import sinkhorn
from surefoot.transport.sinkhorn import (
    ANNEALING,
    Sinkhorn,
    SinkhornOptions,
    divergence,
    entropic_cost,
    exact_cost,
    plan,
    self_cost,
    sorted_potential,
    sweep,
)

pytestmark = pytest.mark.usefixtures("no_rank_promotion")
LAST = ANNEALING[-1]
TIGHT = SinkhornOptions(start="sorted", tolerance=1e-12, max_sweeps=20_000)


def pair(n: int = 8, m: int | None = None, spread: float = 1.0, seed: int = 0) -> tuple:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n) * spread, rng.normal(size=m or n) * spread + 0.5
    return np.sort(x), np.sort(y)


def test_one_particle_each_by_hand(x64: None) -> None:
    # The only plan sends 1 to 3: cost 4, no entropy relative to the product of the marginals.
    found = solve(np.array([1.0]), np.array([3.0]))
    assert found.cost == pytest.approx(4.0)
    assert found.projection.tolist() == [3.0]
    assert found.marginal_error == pytest.approx(0.0, abs=1e-12)
    assert int(found.sweeps) == 3


def test_two_particles_by_hand(x64: None) -> None:
    # x = y = {0, 1}, temperature T: by symmetry P = [[p, q], [q, p]] / 2 with p + q = 1 and
    # p / q = exp(1 / T). Cost q; KL to the product = p log 2p + q log 2q.
    x, t = np.array([0.0, 1.0]), 0.25
    p = np.exp(1 / t) / (1 + np.exp(1 / t))
    q = 1 - p
    expected = q + t * (p * np.log(2 * p) + q * np.log(2 * q))
    found = solve(x, x, temperatures=(t,), tolerance=1e-12)
    assert bool(found.converged)
    assert found.cost == pytest.approx(expected, abs=1e-10)
    assert compiled(self_cost)(x, t) == pytest.approx(expected, abs=1e-10)
    assert compiled(plan)(found, x, x, t) == pytest.approx(
        np.array([[p, q], [q, p]]) / 2, abs=1e-10
    )
    assert found.projection == pytest.approx(np.array([q, p]), abs=1e-10)


@pytest.mark.parametrize(("n", "m"), [(8, 8), (5, 9)])
def test_three_sweeps_are_those_of_ott(n: int, m: int, x64: None) -> None:
    pytest.importorskip("ott")
    from ott.geometry import epsilon_scheduler, pointcloud
    from ott.solvers import linear

    def theirs(x: jax.Array, y: jax.Array) -> jax.Array:
        schedule = epsilon_scheduler.Epsilon(0.25, init=4.0, decay=0.5)
        cloud = pointcloud.PointCloud(x[:, None], y[:, None], epsilon=schedule)
        limits = {"threshold": -1.0, "min_iterations": 3, "max_iterations": 3}
        return linear.solve(cloud, **limits, inner_iterations=3, use_danskin=True).reg_ot_cost

    x, y = pair(n, m, spread=2.0)
    with jax.numpy_rank_promotion("allow"):
        cost, slope = compiled(jax.value_and_grad(theirs))(x, y)
    ours, our_slope = compiled(jax.value_and_grad(entropic_cost))(x, y)
    assert ours == pytest.approx(cost, abs=1e-6 * max(1.0, abs(cost)))
    assert our_slope == pytest.approx(slope, abs=1e-6)


def test_general_weights_against_ott_at_convergence(x64: None) -> None:
    pytest.importorskip("ott")
    from ott.geometry import pointcloud
    from ott.solvers import linear

    rng = np.random.default_rng(3)
    x, y = pair(6, 4)
    a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(4))

    def theirs(x: jax.Array, y: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        cloud = pointcloud.PointCloud(x[:, None], y[:, None], epsilon=0.25)
        return linear.solve(cloud, a=a, b=b, threshold=1e-12, max_iterations=5000).reg_ot_cost

    with jax.numpy_rank_promotion("allow"):
        expected = compiled(theirs)(x, y, a, b)
    found = solve(x, y, x_weights=a, y_weights=b, tolerance=1e-12, max_sweeps=5000)
    assert bool(found.converged)
    assert found.cost == pytest.approx(expected, abs=1e-8)


def test_vanishing_temperature_is_linear_programming(x64: None) -> None:
    rng = np.random.default_rng(4)
    x, y = pair(5, 4)
    a, b = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4))
    cost = (x[:, None] - y[None, :]) ** 2
    rows, columns = np.kron(np.eye(5), np.ones(4)), np.kron(np.ones(5), np.eye(4))
    best = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.r_[a, b]).fun
    found = solve(
        x,
        y,
        temperatures=(1.0, 0.3, 0.1, 0.03, 0.01, 0.003),
        x_weights=a,
        y_weights=b,
        tolerance=1e-7,
        max_sweeps=50_000,
    )
    assert bool(found.converged)
    # KL is at most log 20, so the entropic cost lies within T log 20 above the true one.
    assert best <= float(found.cost) <= best + 0.003 * np.log(20)


def test_a_solve_keeps_its_marginals_and_says_when_it_does_not(x64: None) -> None:
    x, y = pair(7)
    plan_of = compiled(plan)
    rough, fine = solve(x, y), solve(x, y, start="sorted", tolerance=1e-10, max_sweeps=20_000)
    assert not bool(rough.converged)
    assert bool(fine.converged)
    for found in (rough, fine):
        p = plan_of(found, x, y, 0.25)
        assert p.sum(axis=1) == pytest.approx(np.full(7, 1 / 7), abs=1e-12)
        off = np.abs(p.sum(axis=0) - 1 / 7).sum()
        assert found.marginal_error == pytest.approx(off, abs=1e-9)
        assert found.projection == pytest.approx(7 * p @ y, abs=1e-9)
    assert fine.marginal_error <= 1e-10 < rough.marginal_error
    stopped = solve(x, y, tolerance=1e-12, max_sweeps=5)
    assert int(stopped.sweeps) == 5
    assert not bool(stopped.converged)


def test_envelope_gradient_against_autodiff_through_the_sweeps(x64: None) -> None:
    x, y = pair(6, 5)
    a, b = np.random.default_rng(5).dirichlet(np.ones(6)), np.full(5, 0.2)

    def unrolled(x: jax.Array, y: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        def again(f: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            f, g, _ = sweep(f, x, y, jnp.log(a), jnp.log(b), 0.25)
            return f, g

        f, gs = jax.lax.scan(again, jnp.zeros_like(x), None, length=400)
        return jnp.sum(f * a) + jnp.sum(gs[-1] * b)

    def ours(x: jax.Array, y: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        return sinkhorn(x, y, temperatures=(0.25,), x_weights=a, y_weights=b, tolerance=1e-13).cost

    expected = compiled(jax.grad(unrolled, argnums=(0, 1, 2, 3)))(x, y, a, b)
    got = compiled(jax.grad(ours, argnums=(0, 1, 2, 3)))(x, y, a, b)
    for theirs, mine in zip(expected[:2], got[:2], strict=True):
        assert mine == pytest.approx(theirs, abs=1e-8)
    for theirs, mine in zip(expected[2:], got[2:], strict=True):
        # Weights must keep their sum: potentials count up to a constant, and so does this.
        assert mine - mine.mean() == pytest.approx(theirs - theirs.mean(), abs=1e-7)


def test_envelope_gradient_against_finite_differences(x64: None) -> None:
    x, y = pair(6, spread=2.0, seed=7)
    step = 1e-5
    push = step * np.eye(6)
    for cost in (entropic_cost, divergence):
        value = jax.value_and_grad(lambda x, cost=cost: cost(x, y, TIGHT))
        costs, slopes = compiled(jax.vmap(value))(np.stack([x, *(x + push), *(x - push)]))
        measured = (costs[1:7] - costs[7:]) / (2 * step)
        assert slopes[0] == pytest.approx(measured, abs=1e-6)


def test_gradient_is_the_barycentric_projection() -> None:
    x, y = pair(8)

    @compiled
    def slopes(x: jax.Array, y: jax.Array) -> tuple[Sinkhorn, jax.Array, jax.Array, jax.Array]:
        found = sinkhorn(x, y)
        slope = jax.grad(lambda x: sinkhorn(x, y).cost)(x)
        return found, slope, jax.grad(entropic_cost, argnums=1)(x, y), plan(found, x, y, LAST)

    found, in_x, in_y, p = slopes(x, y)
    assert in_x == pytest.approx(2 * (x - found.projection) / 8, abs=1e-6)
    # In y the plan's own column sums count, exact or not.
    assert in_y == pytest.approx(2 * (p.sum(axis=0) * y - p.T @ x), abs=1e-5)


def test_divergence_is_a_distance_and_entropic_cost_is_not(x64: None) -> None:
    x, y = pair(8, spread=0.7)
    apart = compiled(divergence, "options")
    assert compiled(lambda x: divergence(x, x))(x) == pytest.approx(0.0, abs=1e-12)
    assert apart(x, y, TIGHT) > 1e-3
    assert apart(x, y, TIGHT) == pytest.approx(apart(y, x, TIGHT), abs=1e-9)
    itself = compiled(entropic_cost, "options")(x, x, TIGHT)
    assert itself > 1e-2
    assert compiled(self_cost)(x) == pytest.approx(itself, abs=1e-9)


def test_entropic_cost_lies_between_transport_and_independence(x64: None) -> None:
    x, y = pair(8)
    cost = compiled(entropic_cost, "options")(x, y, TIGHT)
    independent = np.mean((x[:, None] - y[None, :]) ** 2)
    assert compiled(exact_cost)(x, y) <= cost <= independent


def test_sorted_potential_solves_the_unregularised_problem(x64: None) -> None:
    x, y = pair(9, spread=3.0)
    f = compiled(sorted_potential)(x, y)
    # Its c-transform closes the duality gap: <f> + <g> is the exact cost.
    g = np.min((x[:, None] - y[None, :]) ** 2 - f[:, None], axis=0)
    assert np.mean(f) + np.mean(g) == pytest.approx(compiled(exact_cost)(x, y), abs=1e-12)


@pytest.mark.parametrize("temperatures", [ANNEALING, (0.5, 0.5, 0.2)])
@pytest.mark.parametrize("spread", [0.1, 3.0, 100.0])
def test_few_sweeps_from_the_sorted_start_are_those_of_the_log_domain(
    temperatures: tuple[float, ...], spread: float, x64: None
) -> None:
    x, y = pair(7, spread=spread)
    even, options = np.full(7, 1 / 7), SinkhornOptions(temperatures, "sorted")

    def in_logs(x: jax.Array, y: jax.Array) -> jax.Array:  # given weights take the general way
        more = {"temperatures": temperatures, "start": "sorted"}
        return sinkhorn(x, y, x_weights=even, y_weights=even, **more).cost

    both = [
        compiled(jax.value_and_grad(cost, argnums=(0, 1)))(x, y)
        for cost in (lambda x, y: entropic_cost(x, y, options), in_logs)
    ]
    (ours, slopes), (expected, expected_slopes) = both
    assert ours == pytest.approx(expected, rel=1e-11)
    for mine, theirs in zip(slopes, expected_slopes, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-10 * spread)


def test_few_sweeps_stay_finite_where_the_start_rounds() -> None:
    # f0 is of the size 10^10 here: in float32 it is off by hundreds.
    x, y = (1e5 * particles.astype("float32") for particles in pair(32))
    value, slope = compiled(
        jax.value_and_grad(lambda x: entropic_cost(x, y, SinkhornOptions(start="sorted")))
    )(x)
    assert value == pytest.approx(np.mean((x - y) ** 2), rel=1e-4)
    assert slope == pytest.approx(2 * (x - y) / 32, rel=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_and_precision(dtype: str, x64: None) -> None:
    rng = np.random.default_rng(8)
    x, y = np.sort(rng.normal(size=(2, 4, 6)), axis=-1).astype(dtype)
    batch = compiled(jax.vmap(sinkhorn))(x, y)
    assert batch.cost.dtype == dtype
    for i in range(4):
        alone = solve(x[i], y[i])
        assert batch.cost[i] == pytest.approx(alone.cost, abs=1e-5)
        assert batch.projection[i] == pytest.approx(alone.projection, abs=1e-5)


def test_far_particles_do_not_overflow() -> None:
    cost = compiled(jax.value_and_grad(lambda x: sinkhorn(x, x + 500.0).cost))
    value, slope = cost(np.array([-1e3, 0.0, 1e3]))
    # Particles that far apart keep to their partners: 500^2 each. Both ends move together, so the
    # two slopes of 2 * 500 / 3 cancel, as far as float32 can tell them at this size.
    assert float(value) == pytest.approx(500.0**2, rel=1e-5)
    assert np.abs(slope).max() < 0.2 * 1000 / 3


@pytest.mark.parametrize("kind", [list, np.array, jnp.array])
def test_whole_numbers_and_lists_are_taken_as_floats(kind: Callable[[list], object]) -> None:
    x, y = [0, 1, 2], [1, 2, 4]
    floats = np.array(x, "float32"), np.array(y, "float32")
    for start in ("zeros", "sorted"):
        found, expected = sinkhorn(kind(x), kind(y), start=start), sinkhorn(*floats, start=start)
        assert found.cost == expected.cost
        assert found.projection.tolist() == expected.projection.tolist()
    for cost in (exact_cost, entropic_cost, divergence):
        assert cost(kind(x), kind(y)) == cost(*floats)
    assert exact_cost(kind([2**20, 0]), kind([0, 0])) == 2.0**39  # whole numbers would overflow


def test_weights_of_one_row_stand_for_a_batch() -> None:
    x, y = (np.sort(np.random.default_rng(k).normal(size=(3, 2)), axis=0) for k in (0, 1))
    weights = [0.2, 0.3, 0.5]
    both = sinkhorn(x, y, x_weights=weights).cost
    alone = [float(sinkhorn(x[:, i], y[:, i], x_weights=weights).cost) for i in (0, 1)]
    assert both.tolist() == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: sinkhorn(x, x, temperatures=()), ["temperatures = ()", "positive"]),
        (lambda x: sinkhorn(x, x, temperatures=(1.0, 0.0)), ["temperatures", "positive"]),
        (lambda x: sinkhorn(x, x, start="sortd"), ["unknown start 'sortd'", "'sorted'?"]),
        (lambda x: sinkhorn(x, x[:2], start="sorted"), ["equally many", "(3,)", "(2,)"]),
        (lambda x: sinkhorn(x, x, x_weights=jnp.ones(2)), ["x_weights", "(2,)", "(3,)"]),
        (lambda x: sinkhorn(x, x, y_weights=[-0.5, 0.5, 1]), ["y_weights[0] = -0.5", "negative"]),
        (lambda x: sinkhorn(x, x, x_weights=[1, 1, 1]), ["sum of x_weights", "not one"]),
        (lambda x: sinkhorn(x, x, x_weights="abc"), ["x_weights", "real numbers"]),
        (lambda x: sinkhorn(x, [0.0, np.nan]), ["y[1] = nan", "not finite"]),
        (lambda x: sinkhorn(x, "a"), ["y holds <U1"]),
        (lambda x: sinkhorn(None, x), ["x is None"]),
        (lambda x: sinkhorn(x, []), ["y has shape (0,)"]),
        (lambda x: sinkhorn(np.ones((3, 2)), np.ones((3, 5))), ["(3, 2)", "(3, 5)"]),
        (lambda x: sinkhorn(x, x, temperatures="a"), ["temperatures = 'a'", "positive"]),
        (lambda x: sinkhorn(x, x, temperatures=(np.inf,)), ["temperatures", "positive"]),
        (lambda x: sinkhorn(x, x, tolerance=-1), ["tolerance = -1"]),
        (lambda x: sinkhorn(x, x, max_sweeps=0), ["max_sweeps = 0"]),
        (lambda x: exact_cost(x, x[:2]), ["equally many", "(3,)", "(2,)"]),
    ],
)
def test_mistakes_are_named(call: object, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call(jnp.arange(3.0))  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)
