"""How well an estimate is known: standard errors by hand, against SciPy, against resampled data."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled
from core_kinds import particles
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.core import evidence
from surefoot.core.evidence import MOST, curve_error
from surefoot.errors import InputError

pytestmark = pytest.mark.usefixtures("no_rank_promotion")
from_counts = compiled(evidence.from_counts)
from_ensemble = compiled(evidence.from_ensemble)
average = compiled(evidence.average)
student = compiled(evidence.student, "deviations")


# --- F^-2 ----------------------------------------------------------------------------------


def test_curve_error_by_hand() -> None:
    # z = (0, 2) from 5 observations. At tau = 1/2, q = 0: (q - Z)^+ = (0, 0), variance 0. At
    # tau = 1, q = 2: (2, 0), variance 1: the variance of the mean, so 1 / sqrt(4).
    assert curve_error(np.array([2.0, 0.0]), 5).tolist() == [0.0, 0.5]
    # About the mean: + tau Z. At 1/2: (0, 0) + (-1, 1) / 2, variance 1/4; at 1 a constant.
    assert curve_error(np.array([2.0, 0.0]), 5, centred=True).tolist() == [0.25, 0.0]
    # One observation shows no dispersion, none nothing at all.
    rows = curve_error(np.array([[0.0, 2.0]] * 3), np.array([0, 1, 2]))
    assert rows.tolist() == [[np.inf] * 2, [np.inf] * 2, [0.0, 1.0]]


@pytest.mark.parametrize("centred", [False, True])
@given(particles(), st.integers(2, 50))
@settings(max_examples=40, deadline=None)
def test_curve_error_is_its_definition(centred: bool, z: np.ndarray, n: int) -> None:
    size, ranks = len(z), np.sort(z)
    falls = np.maximum(ranks[:, None] - z[None, :], 0)  # (q - Z)^+, a row for each level
    if centred:
        falls = falls + (np.arange(1, size + 1) / size)[:, None] * z[None, :]
    expected = np.sqrt(falls.var(axis=1) / (n - 1))
    found = curve_error(z, n, centred=centred)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    # In another unit, and from another zero.
    for power in (-60, 60):
        scaled = curve_error(z * 2.0**power, n, centred=centred)
        np.testing.assert_array_equal(scaled, found * 2.0**power)
    np.testing.assert_allclose(curve_error(z + 1000, n, centred=centred), found, atol=1e-4)


@pytest.mark.parametrize("centred", [False, True])
def test_curve_error_is_the_deviation_of_resampled_curves(centred: bool) -> None:
    n, rng = 400, np.random.default_rng(0)
    z = stats.gamma(2.0).ppf((np.arange(n) + 0.5) / n)
    curves = np.sort(rng.gamma(2.0, size=(4000, n)), axis=-1).cumsum(axis=-1) / n
    if centred:
        curves -= curves[:, -1:] * np.arange(1, n + 1) / n
    at = np.array([39, 99, 199, 299, 379] if centred else [39, 99, 199, 299, 399])
    found = curve_error(z, n, centred=centred)[at]
    np.testing.assert_allclose(found, curves.std(axis=0)[at], rtol=0.06)


def test_curve_error_is_the_same_compiled() -> None:
    z = np.random.default_rng(1).normal(size=(3, 8)).astype("float32")
    n = np.array([2, 5, 9], np.int32)
    found = compiled(curve_error, "centred")(z, n, centred=True)
    np.testing.assert_allclose(found, curve_error(z, n, centred=True), rtol=1e-3, atol=1e-3)


# --- means ---------------------------------------------------------------------------------


def test_from_counts_by_hand() -> None:
    # Variances 1 and 4, from 5 and 17 observations: 1/4 + 4/16 = 1/2. Welch's degrees of freedom:
    # (1/2)^2 / ((1/4)^2 / 4 + (1/4)^2 / 16) = 0.25 / (0.0625 * 5 / 16) = 12.8.
    z = np.float32([[0.0, 2.0], [1.0, 5.0], [7.0, 7.0]])
    error, freedom = from_counts(z, np.array([5, 17, 1]), 1)
    assert error[0] == pytest.approx(0.5**0.5)
    assert freedom[0] == pytest.approx(12.8)
    assert error[2] == np.inf  # one observation
    assert not np.isfinite(from_counts(z, np.array([5, 17, 1]), 2).error).any()  # the best's


@given(st.integers(0, 10_000), st.integers(2, 9))
@settings(max_examples=15, deadline=None)
def test_from_counts_is_welch(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2, 8)) * rng.uniform(0.1, 10, (2, 1))
    with jax.enable_x64(True):
        error, freedom = from_counts(z, np.array([8, 8]), 0)
        other = from_counts(z, np.array([8, size]), 0)
    test = stats.ttest_ind(*z, equal_var=False)
    assert (z[0].mean() - z[1].mean()) / error[1] == pytest.approx(test.statistic)
    assert freedom[1] == pytest.approx(test.df)
    # From summaries, where the counts differ: SciPy wants the deviation with n - 1.
    spread = z.std(axis=1) * np.sqrt(np.array([8, size]) / np.array([7, size - 1]))
    pairs = [x for pair in zip(z.mean(axis=1), spread, (8, size), strict=True) for x in pair]
    both = stats.ttest_ind_from_stats(*pairs, equal_var=False)
    assert (z[0].mean() - z[1].mean()) / other.error[1] == pytest.approx(both.statistic)


def test_from_ensemble_by_hand_and_by_numpy() -> None:
    # Means of action 0: 1, 2, 3; of action 1: 2, 2, 5. Gaps to it 1, 0, 2: deviation 1.
    z = np.float32([[[1, 1], [2, 2]], [[1, 3], [0, 4]], [[3, 3], [4, 6]]])
    error, freedom = from_ensemble(z, 1)
    assert error.tolist() == [1.0, 0.0]
    assert freedom.tolist() == [2.0, 2.0]
    many = np.random.default_rng(2).normal(size=(20, 4, 7)).astype("float32")
    means = many.mean(axis=-1)
    expected = (means[:, 2:3] - means).std(axis=0, ddof=1)
    np.testing.assert_allclose(from_ensemble(many, 2).error, expected, rtol=1e-5)
    np.testing.assert_allclose(average(many), many.mean(axis=0), rtol=1e-5, atol=1e-7)
    alone = from_ensemble(many[:1], 2)
    assert np.isinf(alone.error).all()


@pytest.mark.parametrize("third", [1e30, 1e-30, np.nan, np.inf])
def test_a_third_action_plays_no_part(third: float) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=(6, 3, 8)).astype("float32")
    other = z.copy()
    other[:, 2] *= np.float32(third)
    n = np.array([4, 9, 7])
    pairs = [(from_counts(x[0], n, 0), from_ensemble(x, 0)) for x in (z, other)]
    for before, after in zip(*pairs, strict=True):
        np.testing.assert_array_equal(before.error[:2], after.error[:2])
        np.testing.assert_array_equal(before.freedom[:2], after.freedom[:2])


@pytest.mark.parametrize("deviations", [2.0, 3.0])
def test_student_is_scipy_s(deviations: float) -> None:
    freedom = np.float32([1, 2, 2.9, 12.8, 127, 128, 1e6])
    expected = stats.t.ppf(stats.norm.cdf(deviations), [1, 2, 2, 12, 127, MOST, MOST])
    found = student(deviations, freedom)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (np.diff(found) <= 0).all()
    assert deviations < found[-1] < 1.02 * deviations


def test_counts_that_make_no_sense() -> None:
    with pytest.raises(InputError, match=r"n has shape \(2,\): .* each of 3 actions"):
        evidence.check_counts(np.ones(2), 3)
    with pytest.raises(InputError, match="must not be negative"):
        evidence.check_counts(jnp.asarray([1, -1]), 2)
