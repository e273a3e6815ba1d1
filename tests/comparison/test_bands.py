"""Bands of the difference of F^-2: by hand, against sorting, symmetric, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.comparison import compare
from surefoot.comparison.bands import DifferenceBand, difference_band, lowest_level
from surefoot.comparison.bootstrap import pair_draws
from surefoot.comparison.settings import TestSettings
from surefoot.core.particles import cumulative_quantile
from surefoot.errors import InputError


def band_of(
    x: np.ndarray, y: np.ndarray, paired: bool = False, length: int = 1, **more: int
) -> DifferenceBand:
    draws = pair_draws(len(x), len(y), (length, length), TestSettings(paired=paired, **more))
    return difference_band("x", "y", x, y, draws)


def test_a_constant_difference_is_known() -> None:
    # F^-2 of z + 1/2 is that of z plus tau / 2, in every resample of the rows.
    z = np.random.default_rng(0).normal(size=80)
    band = band_of(z + 0.5, z, paired=True, resamples=99)
    assert band.tau[0] == 0.25  # 20 of 80 values
    assert band.tau[-1] == 1.0
    for each in (band.difference, band.low, band.high):
        np.testing.assert_allclose(each, band.tau / 2, atol=1e-12)
    alone = band_of(z + 0.5, z, resamples=99)
    assert (alone.high - alone.low > 0.1).all()


def test_where_the_band_begins() -> None:
    assert lowest_level(40) == 0.5
    assert lowest_level(10) == 0.5
    assert lowest_level(100) == 0.2
    assert lowest_level(10_000) == 0.05


@pytest.mark.parametrize("paired", [True, False])
def test_against_resamples_that_are_sorted(paired: bool) -> None:
    """The linear change is that of F^-2 of the resample itself, but for a smaller order."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(0, 1, 2000), rng.normal(0, 2, 2000)
    band = band_of(x, y, paired, resamples=999)
    at, exact = np.arange(2000), []
    for _ in range(999):
        one = rng.choice(at, 2000)
        other = one if paired else rng.choice(at, 2000)
        exact.append(
            cumulative_quantile(x[one], band.tau) - cumulative_quantile(y[other], band.tau)
        )
    change = np.array(exact) - band.difference
    deviation = change.std(axis=0)
    critical = np.quantile(np.max(np.abs(change) / deviation, axis=1), 0.95)
    half = (band.high - band.low) / 2
    np.testing.assert_allclose(half, critical * deviation, rtol=0.12)


@given(
    st.lists(st.floats(-9, 9), min_size=6, max_size=25),
    st.lists(st.floats(-9, 9), min_size=6, max_size=25),
    st.floats(-5, 5),
    st.floats(0.5, 4),
)
@settings(max_examples=40, deadline=None)
def test_it_moves_with_the_returns(a: list, b: list, shift: float, scale: float) -> None:
    x, y = np.array(a), np.array(b)
    band = band_of(x, y, resamples=49)
    moved = band_of(scale * x + shift, scale * y + shift, resamples=49)
    for name in ("difference", "low", "high"):
        np.testing.assert_allclose(
            getattr(moved, name), scale * getattr(band, name), rtol=1e-7, atol=1e-7
        )
    assert (band.low <= band.difference).all()
    assert (band.difference <= band.high).all()


def test_of_a_comparison() -> None:
    rng = np.random.default_rng(0)
    c = compare({"a": rng.normal(1, 1, 300), "b": rng.normal(0, 2, 300)}, resamples=199)
    band = c.band("a", "b")
    assert (band.low > 0).all()
    assert c.verdict("a", "b").word == "established"
    assert band.level == c.level
    back = c.band("b", "a")
    np.testing.assert_allclose(back.difference, -band.difference)
    np.testing.assert_allclose(back.low, -band.high)
    with pytest.raises(InputError, match="unknown column"):
        c.band("a", "c")


def test_figure() -> None:
    rng = np.random.default_rng(0)
    five = {name: rng.normal(i, 1, 60) for i, name in enumerate("abcde")}
    figure = compare(five, resamples=99).figure("bands")
    drawn = [ax for ax in figure.axes if ax.axison]
    assert len(drawn) == 6  # of the four with the best means
    assert drawn[0].get_title() == "b less c"
    texts = [text.get_text() for text in drawn[0].texts]
    assert texts[0].startswith("b over c: ")
    assert texts[1].startswith("c over b: ")
    two = compare({"a": five["a"], "b": five["b"]}, resamples=99).figure("bands")
    assert len(two.axes) == 1
    with pytest.raises(InputError, match="unknown figure"):
        compare(five, resamples=99).figure("curves")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n", [50, 100, 400])
def test_how_often_it_holds(n: int, paired: bool) -> None:
    """Normal returns, of which F^-2 is `tau m - s phi(q)`; 400 trials, standard error 0.011."""
    rng = np.random.default_rng(n + paired)
    held = 0
    for _ in range(400):
        x, y = rng.normal(size=(2, n))
        y = 0.8 * x + 0.6 * y if paired else y
        band = band_of(x, 0.2 + 2 * y, paired, resamples=299, seed=int(rng.integers(1 << 30)))
        height = stats.norm.pdf(stats.norm.ppf(band.tau))
        truth = -height - (0.2 * band.tau - 2 * height)
        held += bool((band.low <= truth).all() and (truth <= band.high).all())
    assert 0.90 <= held / 400 <= 0.99
