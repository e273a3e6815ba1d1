"""Every function against exact arithmetic, over precision and number of particles.

Whole numbers are exact in every precision, and Python adds them exactly: what remains is the
rounding of the answer itself. 0.1.0 lost real probability here, float32 from 1,449 particles,
float16 from 32.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from surefoot.core import dominance as sd
from surefoot.core import particles as sp
from surefoot.errors import InputError
from surefoot.policies import SSD

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16}
DTYPES["bfloat16"] = ml_dtypes.bfloat16
KINDS = ["numpy", "jax", pytest.param("torch", marks=pytest.mark.torch)]


def particles(n: int, seed: int = 0) -> np.ndarray:
    """Ascending whole numbers that every precision holds, negative and positive."""
    return np.sort(np.random.default_rng(seed).integers(-120, 100, n))


def to(kind: str, z: np.ndarray, dtype: str) -> Any:
    if kind == "torch":
        torch = pytest.importorskip("torch")
        return torch.asarray(z.astype(np.float64)).to(getattr(torch, dtype))
    return jnp.asarray(z, DTYPES[dtype]) if kind == "jax" else z.astype(DTYPES[dtype])


def number(x: Any) -> Any:
    return np.asarray(x.double() if type(x).__module__ == "torch" else x).astype(np.float64)


def integral(z: np.ndarray, tau: Fraction) -> Fraction:
    """F^-2(tau) in exact arithmetic."""
    full = math.floor(tau * len(z))
    rest = tau * len(z) - full
    return (int(z[:full].sum()) + (rest * int(z[full]) if rest else 0)) / Fraction(len(z))


def check_all(kind: str, dtype: str, n: int) -> None:
    z = particles(n)
    x, up = to(kind, z, dtype), to(kind, z + 1, dtype)
    close = {"rel": 4 * float(ml_dtypes.finfo(DTYPES[dtype]).eps), "abs": 1e-6}
    for tau in (Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(1)):
        rank = max(math.ceil(tau * n), 1)
        assert number(sp.quantile(x, float(tau))) == z[rank - 1]
        exact = integral(z, tau)
        assert number(sp.cumulative_quantile(x, float(tau))) == pytest.approx(float(exact), **close)
        assert number(sp.cvar(x, float(tau))) == pytest.approx(float(exact / tau), **close)
    curve = number(sp.cumulative_quantile(x))
    np.testing.assert_allclose(curve, np.cumsum(z) / n, rtol=close["rel"], atol=close["abs"])
    # The same shape one higher: every quantile, every distance and every shortfall is one.
    for p in (1, 2, math.inf):
        assert number(sp.wasserstein(x, up, p)) == pytest.approx(1.0, **close)
    assert sd.fsd_dominates(up, x)
    assert not sd.fsd_dominates(x, up)
    assert sd.ssd_dominates(up, x)
    assert not sd.ssd_dominates(x, up)
    assert number(sd.violation(x, up)) == pytest.approx(1.0, **close)
    assert number(sd.violation(up, x)) == 0.0
    both = to(kind, np.stack([z, z + 1]), dtype)
    assert number(sd.dominance_matrix(both)).tolist() == [[1, 0], [1, 1]]
    assert number(sd.dominance_matrix(both, 1)).tolist() == [[1, 0], [1, 1]]
    assert number(sd.dominant_set(both)).tolist() == [0, 1]
    assert number(sd.almost_ssd_ratio(x, up)) == 1.0
    assert number(sd.almost_ssd_ratio(up, x)) == 0.0
    # Only one of the particles differs, and by the least: a mean that is larger by 1 / n.
    one = z.copy()
    one[-1] += 1
    last = to(kind, one, dtype)
    assert sd.ssd_dominates(last, x)
    assert not sd.ssd_dominates(x, last)
    assert number(sp.wasserstein(x, last, math.inf)) == 1.0
    # Twice as many, the same distribution; and once more with the last one higher.
    twice = to(kind, np.repeat(z, 2), dtype)
    assert number(sp.wasserstein(x, twice, 1)) == 0.0
    assert sd.ssd_dominates(x, twice)
    assert sd.ssd_dominates(twice, x)
    assert not sd.ssd_dominates(twice, last)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 31, 64, 1449, 30_000])
def test_numpy(dtype: str, n: int) -> None:
    check_all("numpy", dtype, n)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_million(dtype: str) -> None:
    check_all("numpy", dtype, 1_000_000)


def test_a_million_float32_particles() -> None:
    z = particles(1_000_000)
    x = z.astype(np.float32)
    assert sp.quantile(x, 0.5, assume_sorted=True) == z[499_999]
    exact = float(integral(z, Fraction(1, 20)) * 20)
    assert sp.cvar(x, 0.05, assume_sorted=True) == pytest.approx(exact, rel=1e-6)
    assert sp.wasserstein(x, x - 1, math.inf, assume_sorted=True) == 1.0
    assert not sd.fsd_dominates(x - 1, x, assume_sorted=True)
    assert not sd.ssd_dominates(x - 1, x, assume_sorted=True)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [64, 10_000])
def test_torch(dtype: str, n: int) -> None:
    check_all("torch", dtype, n)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_jax(dtype: str) -> None:
    check_all("jax", dtype, 1449)


@pytest.mark.parametrize(("n", "m"), [(3, 7), (1000, 1001), (99_999, 100_000)])
def test_unequal_numbers_in_whole_ranks(n: int, m: int) -> None:
    x, y = particles(n), particles(m, seed=1)
    unit = math.lcm(n, m)
    ends = np.union1d(np.arange(1, n + 1) * (unit // n), np.arange(1, m + 1) * (unit // m))
    share = np.diff(ends, prepend=0)
    gap = y[(ends - 1) // (unit // m)] - x[(ends - 1) // (unit // n)]
    exact = max(np.cumsum(share * gap).max(), 0) / unit
    distance = (share * abs(gap)).sum() / unit
    for dtype in DTYPES.values():
        close = {"rel": 8 * float(ml_dtypes.finfo(dtype).eps), "abs": 1e-6}
        a, b = x.astype(dtype), y.astype(dtype)
        assert float(sd.violation(a, b)) == pytest.approx(exact, **close)
        assert float(sp.wasserstein(a, b, 1)) == pytest.approx(distance, **close)
        assert float(sp.wasserstein(a, b, math.inf)) == abs(gap).max()


@pytest.mark.parametrize("n", [10, 49, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_breakpoint_is_met(n: int, dtype: str) -> None:
    # The float nearest to j / n stands for j / n: particle j, as an array of either precision,
    # in NumPy and compiled; the next float above belongs to the next particle.
    z = np.arange(n)
    tau = (np.arange(1, n + 1) / n).astype(dtype)
    above = np.nextafter(tau[:-1], np.asarray(2, dtype))
    assert np.array_equal(sp.quantile(z, tau), z)
    assert np.array_equal(sp.quantile(z, above), z[1:])
    if dtype == "float32":
        compiled = jax.jit(sp.quantile)(jnp.asarray(z, jnp.float32), jnp.asarray(tau))
        assert np.array_equal(compiled, z)
    assert [float(sp.quantile(z, j / n)) for j in range(1, n + 1)] == z.tolist()


def test_weights_of_a_long_sample() -> None:
    # A hundred thousand float32 weights of one in a hundred thousand: 0.1.0 lost a twentieth.
    n = 100_000
    z = particles(n).astype(np.float32)
    w = np.full(n, 1 / n, np.float32)
    for tau in (0.05, 0.5):
        equal = sp.cvar(z, tau)
        assert sp.cvar(z, tau, weights=w) == pytest.approx(float(equal), rel=1e-4)
    assert not sd.fsd_dominates(z, z + 1, x_weights=w, y_weights=w)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_keep_their_digits(kind: str, x64: None) -> None:
    low = np.array([10**12, 10**12 + 5])
    make = {"numpy": np.asarray, "jax": jnp.asarray}.get(kind)
    make = make or pytest.importorskip("torch").asarray
    assert not sd.ssd_dominates(make(low), make(low + 1000))
    assert not sd.fsd_dominates(make(low), make(low + 1))
    assert number(sd.violation(make(low), make(low + 1000))) == 1000.0
    assert number(sp.quantile(make(low), 1.0)) == 10**12 + 5
    with pytest.raises(InputError, match="more than the 53 bits"):
        sp.mean(make(np.array([2**53 + 1, 0])))


def test_jax_without_float64_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(InputError, match=r"z\[0\] = 16777217.0 has more than the 24 bits"):
        sp.mean(jnp.asarray([2**24 + 1, 0]))
    with pytest.raises(InputError, match="24 bits"):
        SSD(0.0).decide(jnp.asarray([[2**24 + 1], [0]]), jax.random.key(0))
