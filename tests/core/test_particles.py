"""Particles: values by hand, numerical oracles, and the same answer in every array library."""

from __future__ import annotations

import functools
import math
from functools import cache
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled
from core_kinds import KINDS, is_kind, particles, shares, to_kind
from hypothesis import given, settings
from scipy import stats
from scipy.optimize import linprog

from surefoot.core import particles as sp
from surefoot.errors import InputError

Z = np.array([3.0, -1.0, 0.0, 2.0])  # sorted: -1, 0, 2, 3


def test_values_by_hand() -> None:
    # F^-1: quarters belong to -1, 0, 2, 3; at a breakpoint the lower particle still counts.
    assert sp.quantile(Z, np.array([0.0, 0.1, 0.25, 0.26, 0.75, 1.0])).tolist() == [
        -1.0, -1.0, -1.0, 0.0, 2.0, 3.0,
    ]  # fmt: skip
    # F^-2 at 1/4, 2/4, 3/4, 1: -1/4, (-1+0)/4, (-1+0+2)/4, 4/4.
    assert sp.cumulative_quantile(Z).tolist() == [-0.25, -0.25, 0.25, 1.0]
    # Between breakpoints linear: F^-2(0.6) = -0.25 + 0.1 * 2.
    assert sp.cumulative_quantile(Z, 0.6) == pytest.approx(-0.05)
    assert sp.cumulative_quantile(Z, 0.0) == 0.0
    # CVaR at 0.6: the two lowest in full, 0.1 / 0.25 of the third: (-0.25 + 0.2) / 0.6.
    assert sp.cvar(Z, 0.6) == pytest.approx(-0.05 / 0.6)
    assert sp.cvar(Z, 1.0) == pytest.approx(1.0)
    assert sp.cvar(Z, 0.05) == pytest.approx(-1.0)
    # The lower of two draws: of 16 pairs -1 in 7, 0 in 5, 2 in 3, 3 in 1: (-7 + 0 + 6 + 3) / 16.
    assert sp.worse_of_two(Z) == pytest.approx(0.125)
    # E[(1 - Z)_+] = (2 + 1) / 4.
    assert sp.cumulative_cdf(Z, 1.0) == pytest.approx(0.75)
    # Variance: mean of squares 14 / 4 minus 1; third moment (-1 + 8 + 27) / 4.
    assert sp.variance(Z) == pytest.approx(2.5)
    assert sp.std(Z) == pytest.approx(2.5**0.5)
    assert sp.moment(Z, 3) == pytest.approx(8.5)
    # Sorted against 0, 0, 1, 1: gaps 1, 0, 1, 2.
    other = np.array([1.0, 0.0, 1.0, 0.0])
    assert sp.wasserstein(Z, other, 1) == pytest.approx(1.0)
    assert sp.wasserstein(Z, other, 2) == pytest.approx(1.5**0.5)
    assert sp.wasserstein(Z, other, math.inf) == pytest.approx(2.0)


def test_weighted_values_by_hand() -> None:
    z, w = np.array([2.0, 0.0, 1.0]), np.array([0.5, 0.2, 0.3])
    # Sorted 0 (0.2), 1 (0.3), 2 (0.5): F^-2 is 0, 0.3, 1.3 at 0.2, 0.5, 1.
    assert sp.cumulative_quantile(z, weights=w) == pytest.approx([0.0, 0.3, 1.3])
    assert sp.quantile(z, np.array([0.2, 0.21, 0.5, 0.51]), weights=w).tolist() == [0, 1, 1, 2]
    assert sp.mean(z, weights=w) == pytest.approx(1.3)
    assert sp.variance(z, weights=w) == pytest.approx(0.3 + 2.0 - 1.69)
    assert sp.cvar(z, 0.4, weights=w) == pytest.approx(0.2 / 0.4)
    assert sp.cumulative_cdf(z, 1.5, weights=w) == pytest.approx(0.2 * 1.5 + 0.3 * 0.5)


def test_weighted_zero_mass_is_invisible() -> None:
    z, w = np.array([0.0, 5.0, 1.0, 9.0]), np.array([0.5, 0.0, 0.5, 0.0])
    assert sp.wasserstein(z, np.array([0.0, 1.0]), math.inf, x_weights=w) == pytest.approx(0.0)
    assert sp.quantile(z, 1.0, weights=w) in (1.0, 9.0)  # rounding decides who ends at one
    assert sp.cvar(z, 1.0, weights=w) == pytest.approx(0.5)


def test_dispersion_space_lies_between_its_asymptotes() -> None:
    alpha = np.linspace(-30.0, 30.0, 60_001)
    space = sp.dispersion_space(Z, alpha)
    assert (space.frontier >= space.left_asymptote - 1e-12).all()
    assert (space.frontier >= space.right_asymptote - 1e-12).all()
    assert space.frontier[0] == 0.0
    assert space.frontier[-1] == pytest.approx(space.right_asymptote[-1])
    # The area between the frontier and the higher of the two asymptotes is half the variance.
    edge = np.maximum(space.left_asymptote, space.right_asymptote)
    assert np.trapezoid(space.frontier - edge, alpha) == pytest.approx(2.5 / 2, rel=1e-4)


def test_cumulative_quantile_is_the_integral_of_the_quantile() -> None:
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=7), rng.dirichlet(np.ones(7))
    tau = (np.arange(100_000) + 0.5) / 100_000
    for weights in (None, w):
        running = np.cumsum(sp.quantile(z, tau, weights=weights)) / tau.size
        at = np.array([0.1, 0.35, 0.8, 1.0])
        expected = running[(at * tau.size).astype(int) - 1]
        assert sp.cumulative_quantile(z, at, weights=weights) == pytest.approx(expected, abs=1e-4)


def test_cumulative_cdf_is_the_integral_of_the_cdf() -> None:
    x = np.linspace(-4, 4, 80_001)
    cdf = (Z[:, None] <= x[None, :]).mean(axis=0)
    # The running trapezoid starts at -4, left of every particle, where F^(2) is zero.
    steps = np.diff(x) * (cdf[1:] + cdf[:-1]) / 2
    assert sp.cumulative_cdf(Z, x[1:]) == pytest.approx(np.cumsum(steps), abs=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_wasserstein_against_linear_programming(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    for n, m, p in ((3, 5, 1.0), (4, 4, 2.0), (6, 3, 3.0)):
        x, y = rng.normal(size=n), rng.normal(size=m)
        a = rng.dirichlet(np.ones(n)) if weighted else np.full(n, 1 / n)
        b = rng.dirichlet(np.ones(m)) if weighted else np.full(m, 1 / m)
        cost = np.abs(x[:, None] - y[None, :]) ** p
        rows = np.kron(np.eye(n), np.ones(m))
        columns = np.kron(np.ones(n), np.eye(m))
        best = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.r_[a, b])
        wx, wy = (a, b) if weighted else (None, None)
        ours = sp.wasserstein(x, y, p, x_weights=wx, y_weights=wy)
        assert ours**p == pytest.approx(best.fun, abs=1e-9)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_wasserstein_against_scipy(data: st.DataObject) -> None:
    x, y = data.draw(particles()), data.draw(particles())
    a, b = data.draw(shares(x.size)), data.draw(shares(y.size))
    assert sp.wasserstein(x, y, 1, x_weights=a, y_weights=b) == pytest.approx(
        stats.wasserstein_distance(x, y, a, b), abs=1e-9
    )


@given(particles(), st.floats(-5, 5), st.floats(0.1, 5), st.floats(0.01, 1))
@settings(max_examples=60, deadline=None)
def test_shift_and_scale_pass_through(
    z: np.ndarray, shift: float, scale: float, tau: float
) -> None:
    moved = scale * z + shift
    at = sp.cumulative_quantile(z, tau)
    assert sp.cumulative_quantile(moved, tau) == pytest.approx(scale * at + shift * tau, abs=1e-9)
    assert sp.cvar(moved, tau) == pytest.approx(scale * sp.cvar(z, tau) + shift, abs=1e-9)
    assert sp.std(moved) == pytest.approx(scale * sp.std(z), abs=1e-9)
    assert sp.wasserstein(moved, z + shift, 2) == pytest.approx(
        abs(scale - 1) * sp.moment(z, 2) ** 0.5, abs=1e-7
    )


@given(particles(st.integers(2, 12)), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_order_of_the_particles_does_not_matter(z: np.ndarray, random: object) -> None:
    mixed = z.copy()
    random.shuffle(mixed)  # type: ignore[attr-defined]
    tau = np.linspace(0, 1, 9)
    assert np.array_equal(sp.cumulative_quantile(z, tau), sp.cumulative_quantile(mixed, tau))
    assert np.array_equal(sp.quantile(z, tau), sp.quantile(mixed, tau))
    assert sp.wasserstein(z, mixed, 2) == 0.0


@given(particles(), st.floats(0.02, 1), st.floats(0.02, 1))
@settings(max_examples=60, deadline=None)
def test_cvar_rises_with_its_level(z: np.ndarray, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert sp.cvar(z, low) <= sp.cvar(z, high) + 1e-12
    assert sp.cvar(z, high) <= sp.mean(z) + 1e-12


@given(particles(), particles())
@settings(max_examples=60, deadline=None)
def test_the_worse_of_two_draws(z: np.ndarray, other: np.ndarray) -> None:
    pairs = np.minimum(z[:, None], z[None, :])
    assert sp.worse_of_two(z) == pytest.approx(pairs.mean(), abs=1e-9)
    assert sp.worse_of_two(z) <= sp.mean(z) + 1e-12
    # What dominates in the second order is better by every concave yardstick, and by this one.
    floor = np.minimum(z, other.mean())  # dominated by z
    assert sp.worse_of_two(floor) <= sp.worse_of_two(z) + 1e-12


FUNCTIONS = {
    "quantile": lambda z, w, t: sp.quantile(z, t, weights=w),
    "cumulative_quantile": lambda z, w, t: sp.cumulative_quantile(z, t, weights=w),
    "breakpoints": lambda z, w, t: sp.cumulative_quantile(z, weights=w),
    "cumulative_cdf": lambda z, w, t: sp.cumulative_cdf(z, t, weights=w),
    "cvar": lambda z, w, t: sp.cvar(z, 0.3, weights=w),
    "variance": lambda z, w, t: sp.variance(z, weights=w),
    "worse_of_two": lambda z, w, t: sp.worse_of_two(z),
    "wasserstein": lambda z, w, t: sp.wasserstein(z, z[..., :3] + 1, 2, x_weights=w),
    "dispersion": lambda z, w, t: sp.dispersion_space(z, t, weights=w).right_asymptote,
}


def samples(dtype: str, weighted: bool) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    rng = np.random.default_rng(2)
    z = rng.normal(size=(2, 3, 5)).astype(dtype)
    w = rng.dirichlet(np.ones(5), size=(2, 3)).astype(dtype) if weighted else None
    return z, w, np.array([0.05, 0.33, 0.9], dtype)


@cache
def by_jax(dtype: str, weighted: bool) -> dict[str, np.ndarray]:
    """All functions in one program."""
    every = compiled(lambda *args: {name: f(*args) for name, f in FUNCTIONS.items()})
    return every(*samples(dtype, weighted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_libraries_agree(kind: str, dtype: str, weighted: bool, name: str, x64: None) -> None:
    z, w, t = samples(dtype, weighted)
    w64 = None if w is None else w.astype("float64") / w.sum(-1, dtype="float64")[..., None]
    expected = FUNCTIONS[name](z.astype("float64"), w64, t.astype("float64"))
    if kind == "jax":
        got = by_jax(dtype, weighted)[name]
    else:
        got = FUNCTIONS[name](*(None if a is None else to_kind(kind, a) for a in (z, w, t)))
        assert is_kind(kind, got)
    assert str(got.dtype).endswith(dtype)
    assert np.asarray(got) == pytest.approx(expected, abs=2e-5 if dtype == "float32" else 1e-12)


ROWS_AND_SLOPES: dict[bool, Any] = {}


def rows_and_slopes(z: jax.Array, w: jax.Array | None, t: jax.Array) -> dict[str, Any]:
    """Of all functions, so that they are compiled as one program."""
    axes = (0, None if w is None else 0, None)
    rows = {name: jax.vmap(f, axes)(z, w, t) for name, f in FUNCTIONS.items()}
    total = {k: lambda z, f=f: jnp.sum(f(z, w, t) ** 2) for k, f in FUNCTIONS.items()}
    return {name: (rows[name], jax.grad(total[name])(z)) for name in FUNCTIONS}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_jit_vmap_and_grad(name: str, weighted: bool, x64: None) -> None:
    rng = np.random.default_rng(3)
    z, t = rng.normal(size=(4, 5)), np.array([0.05, 0.33, 0.9])
    w = rng.dirichlet(np.ones(5), size=4) if weighted else None
    if weighted not in ROWS_AND_SLOPES:
        ROWS_AND_SLOPES[weighted] = compiled(rows_and_slopes)(z, w, t)
    rows, slope = ROWS_AND_SLOPES[weighted][name]
    assert rows == pytest.approx(FUNCTIONS[name](z, w, t), abs=1e-12)
    # NumPy's finite difference along one direction is the oracle of JAX's gradient.
    push, step = rng.normal(size=z.shape), 1e-6
    total = lambda z: np.sum(FUNCTIONS[name](z, w, t) ** 2)  # noqa: E731
    measured = (total(z + step * push) - total(z - step * push)) / (2 * step)
    assert np.vdot(slope, push) == pytest.approx(measured, rel=1e-5, abs=1e-7)


def test_assume_sorted_skips_the_sort_and_nothing_else() -> None:
    z = np.sort(np.random.default_rng(4).normal(size=(3, 6)), axis=-1)
    assert np.array_equal(
        sp.cumulative_quantile(z, assume_sorted=True), sp.cumulative_quantile(z[:, ::-1])
    )
    # The promise is taken at its word: a broken one changes the answer.
    assert sp.quantile(z[0, ::-1].copy(), 0.01, assume_sorted=True) == z[0, -1]


def test_jax_outside_of_jit() -> None:
    # Where values can be looked at, weights are: the same answer, and a JAX array.
    z, w, _ = samples("float32", weighted=True)
    got = sp.cvar(jnp.asarray(z), 0.3, weights=jnp.asarray(w))
    assert is_kind("jax", got)
    assert np.asarray(got) == pytest.approx(by_jax("float32", True)["cvar"], abs=1e-6)


def test_integers_become_floats() -> None:
    assert sp.cumulative_quantile(np.array([2, 1])).tolist() == [0.5, 1.5]
    assert sp.cvar(jnp.array([2, 1]), 0.5) == 1.0


Bad = pytest.param


@pytest.mark.parametrize(
    ("call", "words"),
    [
        Bad(lambda: sp.quantile(np.zeros((3, 0)), 0.5), ["z", "(3, 0)", "empty"], id="empty"),
        Bad(lambda: sp.quantile(np.float64(1) * np.ones(()), 0.5), ["z", "[..., N]"], id="scalar"),
        Bad(
            lambda: sp.cvar(np.array([[1.0, 2.0], [np.nan, 0.0]]), 0.5),
            ["z[1, 0]", "nan", "not finite"],
            id="nan",
        ),
        Bad(
            lambda: sp.cvar(jnp.array([1.0, jnp.inf, -jnp.inf]), 0.5),
            ["z[1]", "inf", "1 more place"],
            id="inf",
        ),
        Bad(
            lambda: sp.mean(np.ones(3), weights=np.array([0.5, -0.1, 0.6])),
            ["weights[1]", "-0.1", "negative"],
            id="negative",
        ),
        Bad(
            lambda: sp.mean(np.ones(2), weights=np.array([0.5, 0.6])),
            ["sum of weights", "1.1", "not one"],
            id="sum",
        ),
        Bad(
            lambda: sp.cvar(np.ones((2, 2)), 0.5, weights=np.array([[0.5, 0.5], [0.2, 0.2]])),
            ["sum of z_weights[1]", "not one"],
            id="sum-place",
        ),
        Bad(
            lambda: sp.mean(np.ones(3), weights=np.ones(2) / 2),
            ["weights", "(2,)", "(3,)"],
            id="weights-shape",
        ),
        Bad(lambda: sp.cvar(np.ones(2), 0.0), ["alpha = 0.0", "(0, 1]"], id="alpha-0"),
        Bad(lambda: sp.cvar(np.ones(2), 1.5), ["alpha = 1.5", "(0, 1]"], id="alpha-high"),
        Bad(lambda: sp.cvar(np.ones(2), math.nan), ["alpha = nan"], id="alpha-nan"),
        Bad(lambda: sp.cvar(np.ones(2), None), ["alpha = None"], id="alpha-none"),
        Bad(lambda: sp.cvar(np.ones(2), [0.5]), ["alpha = [0.5]"], id="alpha-list"),
        Bad(lambda: sp.cvar(np.ones(2), np.ones((9, 9))), ["alpha = array(["], id="alpha-array"),
        Bad(lambda: sp.wasserstein(np.ones(2), np.ones(2), "a"), ["p = 'a'"], id="p-text"),
        Bad(lambda: sp.moment(np.ones(2), "a"), ["order = 'a'"], id="order-text"),
        Bad(lambda: sp.quantile(np.ones(2), 1.2), ["tau", "[0, 1]"], id="tau"),
        Bad(
            lambda: sp.quantile(np.ones(2), [0.5]), ["tau", "list", "numpy.asarray"], id="tau-list"
        ),
        Bad(
            lambda: sp.wasserstein(np.ones(2), jnp.ones(2)),
            ["mixed array libraries", "x is numpy", "y is jax"],
            id="mixed",
        ),
        Bad(lambda: sp.mean([1.0, 2.0]), ["z is of type list", "numpy.asarray(z)"], id="list"),
        Bad(lambda: sp.mean(None), ["z is of type NoneType"], id="none"),
        Bad(lambda: sp.wasserstein(None, np.ones(2)), ["x is of type NoneType"], id="x-none"),
        Bad(lambda: sp.mean(np.ones(2) * 1j), ["z holds complex128"], id="complex"),
        Bad(
            lambda: sp.wasserstein(np.ones((2, 4)), np.ones((3, 4))),
            ["shape mismatch", "x", "y", "(2,)", "(3,)"],
            id="shapes",
        ),
        Bad(lambda: sp.wasserstein(np.ones(2), np.ones(2), 0.5), ["p = 0.5", "p >= 1"], id="p"),
        Bad(lambda: sp.moment(np.ones(2), 0), ["order = 0"], id="order"),
    ],
)
def test_mistakes_are_named(call: object, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.torch
def test_torch_and_numpy_do_not_mix() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="x is torch, y is numpy"):
        sp.wasserstein(torch.ones(2), np.ones(2))


@pytest.mark.parametrize("alpha", [1e-9, 1e-40, 1e-300, 5e-324])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_cvar_of_a_tiny_share_is_the_lowest_particle(alpha: float, dtype: str) -> None:
    # All of so small a share is the lowest particle that has any weight.
    z = np.array([2.0, 0.1, 0.7], dtype)
    near = functools.partial(pytest.approx, rel=4 * float(np.finfo(dtype).eps))
    assert sp.cvar(z, alpha) == near(float(z[1]))
    assert sp.cvar(z, alpha, weights=np.array([0.5, 0.0, 0.5])) == near(float(z[2]))
