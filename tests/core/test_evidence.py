"""How well an estimate is known: standard errors by hand and against SciPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from core_compiled import compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.core import evidence
from surefoot.core.array import power_below
from surefoot.core.evidence import MOST, Known
from surefoot.errors import InputError

pytestmark = pytest.mark.usefixtures("no_rank_promotion")
from_counts = compiled(evidence.from_counts)
from_ensemble = compiled(evidence.from_ensemble)
average = compiled(evidence.average)
student = compiled(evidence.student, "deviations")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_power_of_two_below_is_numpys(dtype: type, x64: None) -> None:
    rng = np.random.default_rng(0)
    x = (rng.uniform(1, 2, 200) * 2.0 ** rng.integers(-120, 120, 200)).astype(dtype)
    x = np.r_[x, dtype([1.0, 0.75, 8.0, np.nextafter(dtype(8), dtype(0))])]
    below = np.asarray(jax.jit(power_below)(x))
    np.testing.assert_array_equal(below, np.ldexp(dtype(1), np.frexp(x)[1] - 1))
    assert below[-4:].tolist() == [1.0, 0.5, 8.0, 4.0]


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


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (np.ones(2), r"n has shape \(2,\): it takes one count for each of 3 actions"),
        (5, r"n has shape \(\)"),
        ([1, 1, -1], r"n = \[1.0, 1.0, -1.0\]: counts must be finite and not negative"),
        ([1, 1, np.nan], "counts must be finite"),
        ([1, 1, np.inf], "counts must be finite"),
        (["a", "b", "c"], "n holds <U1"),
        ([1, 2j, 3], "n holds complex"),
        ([[1], [1, 2], [3]], "n: real numbers are needed"),
        (None, "n is None"),
        (Known([1, 1, -1], [1, 1, 1]), "counts must be finite and not negative"),
        (Known([1, 1], [1, 1, 1]), r"n has shape \(2,\)"),
        (Known([1, 1, 1], [1, 1]), r"error has shape \(2,\): it takes one error for each of 3"),
        (Known([1, 1, 1], [1, 1, -0.5]), r"error = \[1.0, 1.0, -0.5\]: errors must be numbers"),
        (Known([1, 1, 1], [1, 1, np.nan]), "errors must be numbers that are not negative"),
        (Known([1, 1, 1], None), "error is None"),
        (Known([1, 1, 1], "abc"), "error holds <U3"),
    ],
)
def test_counts_that_make_no_sense(n: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        evidence.as_counts(n, (3,))
    assert "\n" not in str(caught.value)


def test_lists_of_counts_and_errors_are_taken() -> None:
    found = evidence.as_counts(Known([3, 4, 5], [0.5, 1, np.inf]), (3,))
    assert isinstance(found, Known)
    assert (found.n.tolist(), found.error.tolist()) == ([3, 4, 5], [0.5, 1, np.inf])
    assert evidence.as_counts(np.array([2**40, 1]), (2,)).tolist() == [2**40, 1]
