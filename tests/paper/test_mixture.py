"""The paper's mixture: closed moments, sampling errors, reproducible draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from surefoot.errors import InputError
from surefoot.paper.fitting import DEVIATIONS, MEANS, Mixture, draw_trials, paper_mixture


def test_moments_of_both_readings_by_hand():
    # mu: (-5 - 3 + 0 + 5 + 6) / 5 = 3/5.  mu^2 + sigma^2: (26 + 13 + 1 + 29 + 37) / 5 = 106/5.
    assert paper_mixture(5).moment(1) == pytest.approx(0.6)
    assert paper_mixture(5).moment(2) == pytest.approx(21.2)
    # With the sixth component (9, 0.5): (3 + 9) / 6 and (106 + 81.25) / 6.
    assert paper_mixture(6).moment(1) == pytest.approx(2.0)
    assert paper_mixture(6).moment(2) == pytest.approx(187.25 / 6)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_moments_agree_with_numerical_integration(order):
    def weighted(x):
        return x**order * np.mean(
            [norm.pdf(x, m, s) for m, s in zip(MEANS, DEVIATIONS, strict=True)]
        )

    expected, _ = integrate.quad(weighted, -20, 25, points=MEANS, limit=300)
    assert paper_mixture(6).moment(order) == pytest.approx(expected, rel=1e-6)


def test_standard_error_is_that_of_many_sample_moments():
    mixture = paper_mixture(5)
    x = mixture.sample(np.random.default_rng(1), 200_000).reshape(-1, 10)
    for order in (1, 2):
        spread = (x**order).mean(-1).std()
        assert mixture.standard_error(order, 10) == pytest.approx(spread, rel=0.02)


@given(st.floats(0.01, 100.0), st.integers(1, 6), st.integers(1, 4))
def test_moments_scale_with_their_order(scale, components, order):
    plain = paper_mixture(components).moment(order)
    assert paper_mixture(components, scale).moment(order) == pytest.approx(
        scale**order * plain, rel=1e-9, abs=1e-9 * scale**order
    )


def test_trials_ascend_and_do_not_hang_on_their_number():
    few, many = (draw_trials(paper_mixture(), 3, trials, 7) for trials in (2, 5))
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a, b[:2])
    assert (np.diff(many.target_z) > 0).all()
    assert (np.diff(many.start_z) > 0).all()


def test_trials_differ_by_seed_size_and_trial():
    base = draw_trials(paper_mixture(), 0, 2, 5)
    other = draw_trials(paper_mixture(), 1, 2, 5)
    for a, b in zip(base, other, strict=True):
        assert not np.isclose(a, b).any()
        assert not np.isclose(a[0], a[1]).any()
    larger = draw_trials(paper_mixture(), 0, 2, 6)
    assert not np.isin(base.target_z, larger.target_z).any()


def test_truth_is_near_the_closed_moments():
    truth = draw_trials(paper_mixture(), 0, 50, 5).truth
    mixture = paper_mixture()
    for k in (1, 2):
        error = mixture.standard_error(k, 50 * 10_000)
        assert abs(truth[:, k - 1].mean() - mixture.moment(k)) < 4 * error


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: paper_mixture(7), "components = 7"),
        (lambda: paper_mixture(5, 0.0), "scale = 0"),
        (lambda: Mixture((1.0,), ()), "as many means as deviations"),
        (lambda: Mixture((1.0,), (-1.0,)), "must be positive"),
        (lambda: paper_mixture().moment(5), "order = 5"),
    ],
)
def test_mistakes_are_told(make, told):
    with pytest.raises(InputError, match=told):
        make()
