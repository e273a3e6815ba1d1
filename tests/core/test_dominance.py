"""Dominance: values by hand, F^(2) at every breakpoint as oracle, the laws of an order."""

from __future__ import annotations

from functools import cache
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled
from core_kinds import KINDS, is_kind, particles, shares, to_kind
from hypothesis import assume, given, settings

from surefoot.core import dominance as sd
from surefoot.core import particles as sp
from surefoot.errors import InputError

quick = settings(max_examples=80, deadline=None)


def test_values_by_hand() -> None:
    sure, risky = np.array([1.0, 1.0]), np.array([0.0, 2.0])
    # Partial sums / N: (0.5, 1) against (0, 1): sure is nowhere below, risky short by 0.5.
    assert sd.ssd_dominates(sure, risky)
    assert not sd.ssd_dominates(risky, sure)
    assert sd.violation(risky, sure) == pytest.approx(0.5)
    assert sd.violation(sure, risky) == 0.0
    # Neither dominates in the first order: 1 > 0 at the low end, 1 < 2 at the high end.
    assert not sd.fsd_dominates(sure, risky)
    assert not sd.fsd_dominates(risky, sure)
    assert sd.fsd_dominates(risky + 1, risky)
    # A tolerance of 0.5 on the scale of F^-2 forgives exactly that shortfall.
    assert sd.ssd_dominates(risky, sure, tolerance=0.5)
    assert not sd.ssd_dominates(risky, sure, tolerance=0.49)
    assert sd.fsd_dominates(risky, sure, tolerance=1.0)


def test_unequal_sizes_by_hand() -> None:
    # x = {0, 3} against y = {0, 1, 2}: F^-2 at 1/3: 0, 0; at 1/2: 0, 1/6; at 2/3: 1/2, 1/3;
    # at 1: 3/2, 1. So x falls short only at 1/2, by 1/6; a check at N or M levels alone would
    # have to look at both to see it.
    x, y = np.array([0.0, 3.0]), np.array([0.0, 1.0, 2.0])
    assert sd.violation(x, y) == pytest.approx(1 / 6)
    assert sd.violation(y, x) == pytest.approx(0.5)


def test_almost_dominance_by_hand() -> None:
    # x = {0, 3}, y = {0.5, 1.5}: F^(2)_x - F^(2)_y rises to 0.25 on [0, 0.5], stays until 1.5 and
    # falls to -0.5 at 3, through zero at 2. Area above: 0.0625 + 0.25 + 0.0625; below: 0.25.
    x, y = np.array([0.0, 3.0]), np.array([0.5, 1.5])
    assert sd.almost_ssd_ratio(x, y) == pytest.approx(0.375 / 0.625)
    assert sd.almost_ssd_ratio(y, x) == pytest.approx(0.25 / 0.625)
    assert sd.almost_ssd_ratio(x, x) == 0.0
    assert sd.almost_ssd_ratio(x + 1, x) == 0.0
    assert sd.almost_ssd_ratio(x, x + 1) == pytest.approx(1.0)


def test_matrix_and_set_by_hand() -> None:
    z = np.array([[1.0, 1.0], [0.0, 2.0], [0.5, 1.2]])
    # Curves (0.5, 1), (0, 1), (0.25, 0.85): the first tops all, the others cross.
    expected = [[True, True, True], [False, True, False], [False, False, True]]
    assert sd.dominance_matrix(z).tolist() == expected
    assert sd.dominant_set(z).tolist() == [True, False, False]
    first = [[True, False, False], [False, True, False], [False, False, True]]
    assert sd.dominance_matrix(z, order=1).tolist() == first
    assert not sd.dominant_set(z[1:]).any()


def by_cumulative_cdf(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """The definition (eq. 2): F^(2)_x <= F^(2)_y at every breakpoint and, beyond, in the mean."""
    at = np.concatenate([x[a > 0], y[b > 0]])
    below = sp.cumulative_cdf(x, at, weights=a) <= sp.cumulative_cdf(y, at, weights=b) + 1e-10
    return bool(below.all() and a @ x >= b @ y - 1e-10)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_against_the_definition_at_every_breakpoint(data: st.DataObject) -> None:
    x, y = data.draw(particles()), data.draw(particles())
    a, b = data.draw(shares(x.size)), data.draw(shares(y.size))
    expected = by_cumulative_cdf(x, y, a, b)
    gap = sd.violation(x, y, x_weights=a, y_weights=b)
    assume(gap == 0.0 or gap > 1e-9)
    assert bool(sd.ssd_dominates(x, y, x_weights=a, y_weights=b)) == expected
    assert (sd.almost_ssd_ratio(x, y, x_weights=a, y_weights=b) < 1e-9) == expected


@given(st.data())
@quick
def test_first_order_against_the_distribution_functions(data: st.DataObject) -> None:
    x, y = data.draw(particles()), data.draw(particles())
    at = np.concatenate([x, y])
    cdf = lambda z: (z[None, :] <= at[:, None]).mean(axis=1)  # noqa: E731
    expected = bool((cdf(x) <= cdf(y) + 1e-12).all())
    assert bool(sd.fsd_dominates(x, y)) == expected
    if expected:
        assert sd.ssd_dominates(x, y)


@given(st.data())
@quick
def test_violation_is_the_largest_shortfall_on_a_fine_grid(data: st.DataObject) -> None:
    x, y = data.draw(particles()), data.draw(particles())
    # Every breakpoint of 1..12 particles lies on this grid.
    tau = np.arange(1, 27_721) / 27_720
    gap = sp.cumulative_quantile(y, tau) - sp.cumulative_quantile(x, tau)
    assert sd.violation(x, y) == pytest.approx(max(gap.max(), 0.0), abs=1e-9)


@given(particles())
@quick
def test_reflexive(x: np.ndarray) -> None:
    assert sd.ssd_dominates(x, x)
    assert sd.fsd_dominates(x, x)
    assert sd.violation(x, np.repeat(x, 3)) == 0.0  # the same distribution, written longer


@given(st.integers(1, 5).flatmap(lambda n: st.tuples(*[particles(n)] * 3)))
@settings(max_examples=300, deadline=None)
def test_transitive(three: tuple[np.ndarray, ...]) -> None:
    x, y, z = three
    # Make chains frequent: lift x above y above z where they are not.
    y = y + sd.violation(y, z) * y.size
    x = x + sd.violation(x, y) * x.size
    assert sd.ssd_dominates(x, y)
    assert sd.ssd_dominates(y, z)
    assert sd.ssd_dominates(x, z)


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(particles(n), particles(n))))
@quick
def test_antisymmetric_up_to_equal_curves(two: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = two
    equal = np.array_equal(np.sort(x), np.sort(y))
    both = bool(sd.ssd_dominates(x, y)) and bool(sd.ssd_dominates(y, x))
    assert both == equal


@given(particles(st.integers(2, 12)), st.integers(0, 255), st.integers(0, 11), st.integers(0, 11))
@quick
def test_a_mean_preserving_spread_is_dominated(
    x: np.ndarray, spread: int, low: int, high: int
) -> None:
    order = np.argsort(x)
    low, high = sorted((low % x.size, high % x.size))
    assume(low != high)
    wide = x.copy()
    wide[order[low]] -= spread / 64
    wide[order[high]] += spread / 64
    assert sd.ssd_dominates(x, wide)
    if spread:
        assert not sd.ssd_dominates(wide, x)


@given(
    st.tuples(particles(), particles()),
    st.integers(-64, 64),
    st.sampled_from([0.25, 0.5, 2.0, 8.0]),
    st.randoms(use_true_random=False),
)
@quick
def test_shift_scale_and_permutation(
    two: tuple[np.ndarray, np.ndarray], shift: int, scale: float, random: object
) -> None:
    x, y = (scale * v + shift for v in two)
    random.shuffle(x)  # type: ignore[attr-defined]
    gap = sd.violation(two[0], two[1])
    assert sd.violation(x, y) == pytest.approx(scale * gap, abs=1e-9)
    assert bool(sd.ssd_dominates(x, y)) == bool(sd.ssd_dominates(*two))
    ratio = sd.almost_ssd_ratio(*two)
    assert sd.almost_ssd_ratio(x, y) == pytest.approx(float(ratio), abs=1e-9)


@given(st.data(), st.sampled_from([1, 2]), st.sampled_from([0.0, 0.5]))
@settings(max_examples=40, deadline=None)
def test_matrix_holds_the_pairs(data: st.DataObject, order: int, tolerance: float) -> None:
    z = np.stack([[data.draw(particles(4)) for _ in range(3)] for _ in range(2)])
    compare = sd.ssd_dominates if order == 2 else sd.fsd_dominates
    matrix = sd.dominance_matrix(z, order, tolerance)
    w = np.full_like(z, 0.25)
    assert np.array_equal(sd.dominance_matrix(z, order, tolerance, weights=w), matrix)
    for b in range(2):
        for i in range(3):
            for j in range(3):
                assert matrix[b, i, j] == bool(compare(z[b, i], z[b, j], tolerance))
    assert np.array_equal(sd.dominant_set(z, order, tolerance), matrix.all(axis=-1))
    assert np.array_equal(sd.dominant_set(z, order, tolerance, weights=w), matrix.all(axis=-1))


FUNCTIONS = {
    "ssd": lambda x, y, w: sd.ssd_dominates(x, y, x_weights=w),
    "fsd": lambda x, y, w: sd.fsd_dominates(x, y, x_weights=w),
    "violation": lambda x, y, w: sd.violation(x, y, x_weights=w),
    "ratio": lambda x, y, w: sd.almost_ssd_ratio(x, y, x_weights=w),
    "matrix": lambda x, y, w: sd.dominance_matrix(x, weights=w),
    "set": lambda x, y, w: sd.dominant_set(x, tolerance=0.1, weights=w),
}


def samples(weighted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 3)) - 0.5
    return x, y, rng.dirichlet(np.ones(4), size=(2, 5)) if weighted else None


@cache
def by_jax(weighted: bool) -> dict[str, tuple[Any, Any]]:
    """All functions, as they are and under `vmap`, in one program."""

    def both(*args: Any) -> dict[str, tuple[Any, Any]]:
        axes = (0, 0, 0 if weighted else None)
        return {k: (f(*args), jax.vmap(f, axes)(*args)) for k, f in FUNCTIONS.items()}

    return compiled(both)(*samples(weighted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_libraries_agree(kind: str, weighted: bool, name: str) -> None:
    x, y, w = samples(weighted)
    expected = FUNCTIONS[name](x, y, w)
    assert 0 < np.asarray(expected).astype(float).mean() < 1 or name == "set"
    if kind == "jax":
        direct, rows = by_jax(weighted)[name]
        assert rows == pytest.approx(expected, abs=1e-5)
        assert direct == pytest.approx(expected, abs=1e-5)
        return
    small = [None if a is None else to_kind(kind, a.astype("float32")) for a in (x, y, w)]
    got = FUNCTIONS[name](*small)
    assert is_kind(kind, got)
    assert np.asarray(got) == pytest.approx(expected, abs=1e-5)


def test_exact_differences_are_not_forgiven() -> None:
    # However small beside the returns: neighbouring floats, in any row of a long sum.
    for dtype in ("float32", "float64"):
        low = np.full(64, -100, dtype)
        high = np.nextafter(low, np.asarray(0, dtype))
        assert not sd.ssd_dominates(low, high)
        assert sd.ssd_dominates(high, low)
        one = low.copy()
        one[-1] = high[-1]  # the means differ by 1 / 64 of the smallest step
        assert sd.dominance_matrix(np.stack([low, one])).tolist() == [[True, False], [True, True]]
        assert sd.violation(low, one) == (high[0] - low[0]) / 64
    assert not sd.ssd_dominates(np.float32([-100]), np.float32([-99.9998]))


def test_a_bystander_changes_nothing() -> None:
    z = np.float32([[-13] * 32, [-13.0002] * 32, [-1e6] * 32])
    for matrix in (sd.dominance_matrix, compiled(sd.dominance_matrix)):
        alone, beside = matrix(z[:2]), matrix(z)
        assert np.array_equal(beside[:2, :2], alone)
        assert alone.tolist() == [[True, True], [False, True]]


def test_not_a_number_never_dominates_under_jit() -> None:
    good, bad = np.array([5.0, 6.0]), np.array([np.nan, 1.0])
    compare = compiled(lambda x, y: [sd.ssd_dominates(x, y), sd.fsd_dominates(x, y)])
    for x, y in ((bad, good), (good, bad), (bad, bad)):
        assert compare(x, y) == [False, False]
    z = np.array([[3.0, 4.0], [1.0, 2.0], [np.nan, 9.0], [np.inf, np.inf]])
    expected = np.zeros((4, 4), bool)
    expected[0, :2] = expected[1, 1] = True
    among = compiled(lambda z: [(sd.dominance_matrix(z, k), sd.dominant_set(z, k)) for k in (1, 2)])
    for matrix, chosen in among(z):
        assert np.array_equal(matrix[:3, :3], expected[:3, :3])
        assert chosen.tolist() == [True, False, False, False]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_of_the_violation(dtype: str, x64: None) -> None:
    x, y = np.array([0.0, 2.0], dtype), np.array([1.0, 1.0], dtype)
    # The shortfall at tau = 1/2 is (1 - 0) / 2: only the lowest particle of x closes it.
    assert compiled(jax.grad(sd.violation))(x, y).tolist() == [-0.5, 0.0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 3)])
def test_weights_of_one_action_stand_for_all(order: int, shape: tuple[int, ...]) -> None:
    z = np.random.default_rng(0).normal(size=(2, 4, 3))
    weights = np.broadcast_to([0.2, 0.3, 0.5], shape)
    every = np.broadcast_to(weights, z.shape)
    for judge in (sd.dominance_matrix, sd.dominant_set):
        assert np.array_equal(judge(z, order, weights=weights), judge(z, order, weights=every))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sd.ssd_dominates(np.ones(2), jnp.ones(2)), ["x is numpy", "y is jax"]),
        (lambda: sd.ssd_dominates([1.0], np.ones(1)), ["x is of type list", "numpy.asarray(x)"]),
        (lambda: sd.violation(np.ones((2, 3)), np.ones((4, 3))), ["shape mismatch", "(2,)"]),
        (lambda: sd.violation(np.ones(2), np.array([0, np.nan])), ["y[1]", "not finite"]),
        (lambda: sd.ssd_dominates(np.ones(2), np.ones(2), -1.0), ["tolerance = -1.0"]),
        (lambda: sd.dominance_matrix(np.ones((2, 2)), order=3), ["order = 3", "1 and 2"]),
        (lambda: sd.dominant_set(np.ones(3)), ["z has shape (3,)", "[..., A, N]"]),
        (lambda: sd.dominant_set(np.ones((3, 0))), ["z has shape (3, 0)", "empty"]),
        (lambda: sd.dominant_set(np.ones((0, 3))), ["z has shape (0, 3)", "action axis"]),
        (lambda: sd.ssd_dominates(np.ones(2), np.ones(2), None), ["tolerance = None"]),
        (lambda: sd.ssd_dominates(np.ones(2), np.ones(2), [0]), ["tolerance = [0]"]),
        (lambda: sd.dominance_matrix(np.ones((2, 2)), np.array([1, 2])), ["order = array([1, 2])"]),
        (
            lambda: sd.dominance_matrix(np.ones((2, 2)), weights=np.ones((3, 2)) / 2),
            ["the particles (2, 2)", "weights (3, 2)"],
        ),
        (
            lambda: sd.dominance_matrix(np.ones((2, 2)), weights=np.array([0.5, 0.6])),
            ["the sum of weights", "not one"],
        ),
        (
            lambda: sd.ssd_dominates(np.ones(2), np.ones(2), y_weights=np.array([2.0, -1.0])),
            ["y_weights[1] = -1.0", "negative"],
        ),
    ],
)
def test_mistakes_are_named(call: object, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)
