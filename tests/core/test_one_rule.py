"""One relation, one rule: whoever is asked about dominance gives the same answer.

`decide` (compiled), `explain`, `dominance_matrix`, `dominant_set`, `ssd_dominates` and `violation`
on near-ties, where three rules contradicted each other.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from surefoot.agents.explain import explain
from surefoot.core import dominance as sd
from surefoot.core import shortfall
from surefoot.errors import InputError
from surefoot.policies import (
    SSD,
    CVaR,
    DecidedBy,
    Decision,
    Explore,
    Greedy,
    MeanVariance,
    Policy,
    Wang,
)

KEY = jax.random.key(0)
TOLERANCES = (0.0, 1e-3, 0.1)
A, N = 3, 4


@st.composite
def near_ties(draw: st.DrawFn) -> np.ndarray:
    """Actions that differ by a few units in the last place, a contraction, or the tolerance."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    base = draw(
        hnp.arrays(np.float64, N, elements=st.floats(-100, 100, width=32, allow_subnormal=False))
    )
    rows = [np.sort(base)]
    for _ in range(A - 1):
        row = rows[draw(st.integers(0, len(rows) - 1))].copy()
        match draw(st.sampled_from(["ulp", "contract", "shift", "far"])):
            case "ulp":
                at = draw(st.integers(0, N - 1))
                row = row.astype(dtype)
                towards = dtype(draw(st.sampled_from([-200, 200])))
                tiny = abs(row[at]) < 1e-20  # XLA takes subnormal numbers for zero
                row[at] = towards * dtype(1e-20) if tiny else np.nextafter(row[at], towards)
            case "contract":
                part = draw(st.floats(0, 1))
                row = row + part * (row.mean() - row)
            case "shift":
                row = row + draw(st.sampled_from([*TOLERANCES, *(-t for t in TOLERANCES)]))
            case "far":
                row = row - 1e6
        rows.append(row.astype(np.float64))
    return np.stack(rows).astype(dtype)


def exactly(z: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Who dominates whom in exact arithmetic; None where that is closer than what is promised:

    a shortfall below `eps^2` of the sums, or one within rounding of a tolerance above zero.
    """
    rows = [[Fraction(float(v)) for v in np.sort(row)] for row in z]
    sums = [[sum(row[: j + 1], Fraction(0)) for j in range(N)] for row in rows]
    worst = [[max(b - a for a, b in zip(x, y, strict=True)) / N for y in sums] for x in sums]
    allowed = Fraction(float(z.dtype.type(tolerance)))
    eps = Fraction(float(np.finfo(z.dtype).eps))
    near = eps**2 * sum(abs(v) for row in rows for v in row) + 2 * eps * allowed
    if any(abs(w - allowed) <= near and w != allowed for row in worst for w in row):
        return None
    return np.array([[w <= allowed for w in row] for row in worst])


@pytest.mark.optimised
@given(near_ties(), st.sampled_from(TOLERANCES))
@settings(max_examples=150, deadline=None)
def test_nobody_contradicts_anybody(z: np.ndarray, tolerance: float) -> None:
    matrix = sd.dominance_matrix(z, 2, tolerance)
    exact = exactly(z, tolerance)
    if exact is not None:
        assert np.array_equal(matrix, exact)
    for a in range(A):
        for b in range(A):
            assert matrix[a, b] == bool(sd.ssd_dominates(z[a], z[b], tolerance))
            assert matrix[a, b] == bool(sd.violation(z[a], z[b]) <= tolerance)
    dominant = matrix.all(axis=-1)
    assert np.array_equal(sd.dominant_set(z, 2, tolerance), dominant)

    policy = SSD(tolerance=tolerance)
    decision = decide_sorted(z, tolerance)
    assert decision.violations.dtype == z.dtype
    assert np.array_equal(np.asarray(decision.violations) <= tolerance, matrix)
    if dominant.any():
        assert np.array_equal(decision.candidates, dominant)
        assert not (dominant & ~np.asarray(decision.tied)).any()
    else:
        assert decision.decided_by == DecidedBy.FALLBACK
    told = explain(z, policy, KEY)
    assert np.array_equal(told.dominates, matrix)
    assert told.action == int(decision.action)
    assert told.decided_by == int(decision.decided_by)
    if told.decided_by is DecidedBy.DOMINANCE:
        assert told.dominates[told.action].all()

    # A bystander changes nothing between the others.
    aside = np.concatenate([z, np.full((1, N), z.min() * 2 - 1000, z.dtype)])
    assert np.array_equal(sd.dominance_matrix(aside, 2, tolerance)[:A, :A], matrix)
    # Violations know no tolerance: one program for all of them.
    beside = decide_sorted(aside, TOLERANCES[0]).violations
    assert np.array_equal(beside[:A, :A], decision.violations)


def decide_sorted(z: np.ndarray, tolerance: float) -> Decision:
    """Sorted here, as `explain` does it: the two share their programs."""
    z = np.sort(z, axis=-1)
    return jax.device_get(SSD(tolerance=tolerance).decide(z, KEY, assume_sorted=True))


@pytest.mark.optimised
@given(near_ties(), st.sampled_from(TOLERANCES))
@settings(max_examples=50, deadline=None)
def test_compiled_in_a_batch_as_alone(z: np.ndarray, tolerance: float) -> None:
    z = z.astype(np.float32)
    matrix = sd.dominance_matrix(z, 2, tolerance)
    batch = jnp.asarray(np.stack([z, z[::-1], z - z]))
    assert np.array_equal(_matrices(batch, tolerance)[0], matrix)
    candidates, tied = _decide_batch(batch, tolerance)
    alone = decide_sorted(z, tolerance)
    assert np.array_equal(candidates[0], alone.candidates)
    assert np.array_equal(candidates[1][::-1], alone.candidates)
    assert np.array_equal(tied[0], alone.tied)
    assert tied[2].all()


@jax.jit
def _matrices(z: jax.Array, tolerance: jax.Array) -> jax.Array:
    return sd.dominance_matrix(z, 2, tolerance)  # type: ignore[arg-type]


@jax.jit
def _decide_batch(z: jax.Array, tolerance: jax.Array) -> tuple[jax.Array, jax.Array]:
    decided = jax.vmap(lambda z: SSD(tolerance=tolerance).decide(z, KEY))(z)  # type: ignore[arg-type]
    return decided.candidates, decided.tied


MANY = [
    *(SSD(1e-3, undecided=name) for name in ("greedy", "lexicographic", "least_violation")),
    *(Greedy(), CVaR(), MeanVariance(), Wang()),
    *(Explore(policy=SSD(1e-3), explore=1.0), Explore(explore=0.5)),
]
HOLES = np.float32([[np.nan, np.nan], [3, 4], [1, 2], [np.inf, 1], [9, np.nan], [-np.inf, 0]])
KEYS = jax.random.split(KEY, 40)


@cache
def taken_by_all() -> list[Decision]:
    decide = jax.vmap(lambda key: [policy.decide(HOLES, key) for policy in MANY])
    return jax.device_get(jax.jit(decide)(KEYS))


@pytest.mark.parametrize("policy", MANY, ids=repr)
def test_not_a_number_is_never_chosen(policy: Policy) -> None:
    taken = taken_by_all()[MANY.index(policy)]
    assert set(taken.action.tolist()) <= {1, 2}
    assert not taken.candidates[:, [0, 3, 4, 5]].any()
    assert not taken.tied[:, [0, 3, 4, 5]].any()
    assert int(policy(HOLES, KEYS[0])) == taken.action[0]


def test_nothing_but_not_a_number() -> None:
    bad = np.full((2, 2), np.nan)
    for policy in (SSD(1e-3), Greedy(), CVaR()):
        with pytest.raises(InputError, match="not finite for any feasible action"):
            policy.decide(bad, KEY)
        # Compiled, nobody can raise: a feasible action by lot, said to be a fallback.
        decide = jax.jit(lambda z, m, policy=policy: policy.decide(z, KEY, m))
        decision = decide(jnp.asarray(bad), jnp.asarray([False, True]))
        assert int(decision.action) == 1
        assert int(decision.decided_by) == DecidedBy.FALLBACK


def test_float64_is_decided_in_float64() -> None:
    z = np.array([[1.0, 1.0], [1.0 + 1e-12, 1.0 + 1e-12]])
    decision = SSD(tolerance=0.0).decide(z, KEY)
    assert int(decision.action) == 1
    assert int(decision.decided_by) == DecidedBy.DOMINANCE
    assert decision.violations[0, 1] == pytest.approx(1e-12, rel=1e-3)
    # Whole numbers too: they would be equal in float32.
    whole = np.array([[10**12, 10**12], [10**12 + 1000, 10**12 + 1000]])
    assert int(SSD(1e-3).decide(whole, KEY).action) == 1


def rows_near(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    """Ascending rows over many scales: copies, contractions, and copies changed in a last place."""
    base = np.sort(rng.normal(size=shape) * 10.0 ** rng.integers(-8, 9, size=shape), axis=-1)
    rows = np.repeat(base[..., :1, :], shape[-2], axis=-2).astype(dtype)
    mean = rows.mean(axis=-1, keepdims=True)
    rows = np.where(rng.random(shape[:-1])[..., None] < 0.3, (rows + mean) / 2, rows)
    at = rng.random(shape) < 2 / shape[-1]
    return np.sort(np.where(at, np.nextafter(rows, dtype(np.inf)), rows), axis=-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 40, 3000])
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e28])
def test_plain_sums_decide_nothing_that_exact_ones_would_not(
    dtype: type, n: int, scale: float
) -> None:
    # The tolerance is the very shortfall of some pair, or the float beside it: what is added
    # plainly must leave each of these to the exact sums.
    rng = np.random.default_rng(n)
    z = (rows_near(rng, dtype, 5, 4, n) * dtype(scale)).astype(dtype)
    short = np.stack([sd.violation(z[:, a : a + 1], z) for a in range(4)], axis=1)
    assert short.dtype == dtype
    for at in rng.choice(short.ravel(), 8):
        for tolerance in (at, np.nextafter(at, dtype(0)), np.nextafter(at, dtype(np.inf))):
            within = short <= tolerance
            assert np.array_equal(sd.dominance_matrix(z, 2, tolerance), within)
            assert np.array_equal(sd.dominant_set(z, 2, tolerance), within.all(axis=-1))
            pairs = sd.ssd_dominates(z[:, :, None], z[:, None], tolerance)
            assert np.array_equal(pairs, within)


def test_sums_beyond_the_range_are_refused() -> None:
    # Three times 1e308 is infinite in float64; float32 is added where it is not.
    z = np.full((2, 3), 1e308)
    for call in (lambda: sd.ssd_dominates(z[0], z[1]), lambda: sd.dominance_matrix(z)):
        with pytest.raises(InputError, match="too large to be added up"):
            call()
    assert sd.dominance_matrix(np.full((2, 3), 3e38, np.float32)).all()


@pytest.mark.optimised
def test_compiled_as_numpy_to_the_bit() -> None:
    z = rows_near(np.random.default_rng(0), np.float32, 64, 4, 40)
    short = np.stack([sd.violation(z[:, a : a + 1], z) for a in range(4)], axis=1)
    assert (short > 0).any()
    rows = jnp.asarray(z)
    assert np.array_equal(shortfall.violations(jnp, rows), short)
    assert np.array_equal(sd.violation(rows[:, :, None], rows[:, None]), short)
    assert np.array_equal(shortfall.standings(rows).lag, short.max(axis=-1))
    mask = np.random.default_rng(1).random((64, 4)) < 0.6
    feasible = np.where(mask[:, None], short, 0).max(axis=-1)
    assert np.array_equal(shortfall.standings(rows, jnp.asarray(mask)).lag, feasible)


@pytest.mark.optimised
def test_exact_sums_in_float64_as_numpy_to_the_bit(x64: None) -> None:
    z = rows_near(np.random.default_rng(0), np.float64, 8, 3, 40)
    short = np.stack([sd.violation(z[:, a : a + 1], z) for a in range(3)], axis=1)
    rows = jnp.asarray(z)
    assert np.array_equal(sd.violation(rows[:, :, None], rows[:, None]), short)
    assert np.array_equal(shortfall.standings(rows).lag, short.max(axis=-1))
