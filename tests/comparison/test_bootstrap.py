"""The bootstrap test of dominance: by hand, against oracles, and in level and power."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import oracle
from scipy.stats import ks_2samp

from surefoot.comparison import dominance_test, pair_tests, process, resampling
from surefoot.comparison.memory import stretch
from surefoot.comparison.resampling import Resampling
from surefoot.core.dominance import violation
from surefoot.errors import InputError

samples = st.lists(
    st.integers(-20, 20).map(lambda v: v / 4) | st.floats(-100, 100), min_size=2, max_size=12
).map(np.array)


def test_statistics_by_hand() -> None:
    # x = {0, 4}, y = {1, 2}, support 0, 1, 2, 4; sqrt(n m / (n + m)) = sqrt(4 / 4) = 1.
    # F_x = 1/2, 1/2, 1/2, 1   F_y = 0, 1/2, 1, 1   F_x - F_y = 1/2, 0, -1/2, 0
    # D_x - D_y (integral): 0, 1/2, 1/2, -1/2.
    x, y = np.array([0.0, 4.0]), np.array([1.0, 2.0])
    found = pair_tests(x, y, resamples=19)
    assert [t.statistic for t in found.forward] == [0.5, 0.5]
    assert [t.statistic for t in found.backward] == [0.5, 0.5]
    # With y = {2, 2} the mean of both is 2: D_x - D_y = 0, 1, 0 at 0, 2, 4. y dominates.
    found = pair_tests(x, np.array([2.0, 2.0]), resamples=19)
    assert [t.statistic for t in found.forward] == [0.5, 1.0]
    assert found.backward[1].statistic == 0.0
    assert found.backward[1].dominance_p == 1.0


def test_p_value_by_hand() -> None:
    # x = {0, 1}, y = {1, 1}: F_x - F_y = 1/2 at 0, S = 1/2. A resample of x has k zeros with
    # probability 1/4, 1/2, 1/4 for k = 0, 1, 2; recentred: (k - 1) / 2, so S* = 1/2 only for
    # k = 2 (S* is 0 otherwise): the p-value is 1/4 up to the resampling.
    test = dominance_test(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 1, resamples=20_000)
    assert test.statistic == 0.5
    assert test.dominance_p == pytest.approx(0.25, abs=0.012)  # four standard errors


def naive_p_values(
    x: np.ndarray, y: np.ndarray, draws: list, trim: float, wider: tuple[float, float]
) -> list[list[float]]:
    """The definitions, one resample at a time, without sharing anything: both hypotheses."""
    support = np.union1d(x, y)
    share = [(np.concatenate([x, y]) <= t).mean() for t in support]
    ranges = [
        [i for i, s in enumerate(share) if trim <= s <= 1 - trim],
        [i for i, s in enumerate(share) if trim <= s],
    ]

    def curves(sample: np.ndarray) -> np.ndarray:
        first = (sample[None] <= support[:, None]).mean(axis=1)
        return np.array([first, np.maximum(support[:, None] - sample[None], 0).mean(axis=1)])

    base = curves(x) - curves(y)
    observed = np.maximum(base.max(axis=1), 0)
    reached, opposite = np.zeros(2), np.zeros(base.shape)
    for i, j in zip(*draws, strict=True):
        moved = curves(np.repeat(x, i + 1)) - curves(np.repeat(y, j + 1)) - base
        reached += wider[0] * np.maximum(moved.max(axis=1), 0) >= observed - 1e-9
        opposite += wider[1] * moved <= base + 1e-9  # at least as far below 0 as the sample's own
    many = 1 + len(draws[0])
    nondominance = [
        (1 + max(opposite[o, ranges[o]])) / many if (base[o, ranges[o]] < -1e-9).all() else 1.0
        for o in range(2)
    ]
    return [list((1 + reached) / many), nondominance]


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("shift", [0.2, -1.5])
@pytest.mark.parametrize("length", [1, 4])
def test_against_the_definition_one_resample_at_a_time(
    paired: bool, discrete: bool, shift: float, length: int
) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=17), rng.normal(shift, 1.3, size=17 if paired else 11)
    if discrete:
        x, y = np.round(x), np.round(y)
    draws = [
        next(Resampling(len(z), 150, 7, stream, length).chunks(150)).T
        for z, stream in ((x, 0), (y, 0 if paired else 1))
    ]
    options = {"resamples": 150, "seed": 7, "paired": paired, "trim": 0.1}
    found = pair_tests(x, y, dependence=length, **options)
    shorter = min(len(x), len(y))
    wider = stretch(length, shorter), stretch(length, shorter, level=0.01)
    dominance, nondominance = naive_p_values(x, y, draws, 0.1, wider)
    assert [t.dominance_p for t in found.forward] == pytest.approx(dominance)
    assert [t.nondominance_p for t in found.forward] == pytest.approx(nondominance)
    dominance, nondominance = naive_p_values(y, x, draws[::-1], 0.1, wider)
    assert [t.dominance_p for t in found.backward] == pytest.approx(dominance)
    assert [t.nondominance_p for t in found.backward] == pytest.approx(nondominance)


def test_nondominance_by_hand() -> None:
    # x = {1, 1, 1, 1}, y = {0, 0, 1, 1}; at the first order the range (trim 0.1) is t = 0 alone, as
    # at t = 1 both F are 1. The margin is F_y - F_x = 1/2. Resampled, F_y* has k zeros of 4 draws,
    # k ~ binomial(4, 1/2): k/4 - 1/2 >= 1/2 only for k = 4, with probability 1/16.
    x, y = np.ones(4), np.array([0.0, 0.0, 1.0, 1.0])
    test = dominance_test(x, y, 1, resamples=20_000, trim=0.1)
    assert (test.low, test.high, test.weakest, test.margin) == (0.0, 0.0, 0.0, 0.5)
    assert test.nondominance_p == pytest.approx(1 / 16, abs=4 * 0.0017)
    # At the second order D_y - D_x at t = 1 is 1/2, and D_y* - D_x* = k/4 likewise; t = 0 is in the
    # range and both D are 0 there: nothing can be established. From trim 0.3 on t = 0 is left out.
    assert dominance_test(x, y, 2, resamples=99, trim=0.1).nondominance_p == 1.0
    test = dominance_test(x, y, 2, resamples=20_000, trim=0.3)
    assert (test.low, test.high, test.margin) == (1.0, 1.0, 0.5)
    assert test.nondominance_p == pytest.approx(1 / 16, abs=4 * 0.0017)


@given(samples, samples)
@settings(deadline=None)
def test_the_statistic_is_the_violation_and_the_kolmogorov_distance(
    x: np.ndarray, y: np.ndarray
) -> None:
    root = np.sqrt(len(x) * len(y) / (len(x) + len(y)))
    found = pair_tests(x, y, resamples=19)
    # F^(2) and F^-2 are convex conjugates: their one-sided distances agree.
    assert found.forward[1].statistic == pytest.approx(root * violation(x, y), abs=1e-9)
    assert found.backward[1].statistic == pytest.approx(root * violation(y, x), abs=1e-9)
    distance = ks_2samp(x, y, alternative="greater", method="asymp").statistic
    assert found.forward[0].statistic == pytest.approx(root * distance, abs=1e-12)


@given(samples, samples, st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_properties(x: np.ndarray, y: np.ndarray, seed: int) -> None:
    options = {"resamples": 39, "seed": seed, "dependence": "none"}
    found = pair_tests(x, y, **options)
    for test in (*found.forward, *found.backward):
        assert 1 / 40 <= test.nondominance_p <= 1
        assert test.low <= test.weakest <= test.high
        assert test.margin > 0 or test.nondominance_p == 1
        assert 1 / 40 <= test.dominance_p <= 1
        assert test.dominance_p == 1 or test.statistic > 0
    # A power of two scales without rounding: p-values stay, second-order statistics scale.
    scaled = pair_tests(4 * x, 4 * y, **options)
    assert [t.dominance_p for t in scaled.forward] == [t.dominance_p for t in found.forward]
    assert scaled.forward[1].statistic == pytest.approx(4 * found.forward[1].statistic)
    # A tolerance loosens the hypothesis.
    loose = pair_tests(x, y, tolerance=0.5, **options)
    assert loose.forward[1].dominance_p >= found.forward[1].dominance_p
    assert loose.forward[1].statistic <= found.forward[1].statistic
    assert loose.forward[1].nondominance_p <= found.forward[1].nondominance_p
    same = pair_tests(x, x, **options)
    assert [t.nondominance_p for t in same.forward + same.backward] == [1.0] * 4
    assert [t.dominance_p for t in same.forward + same.backward] == [1.0] * 4


def test_tolerance_is_that_of_the_verdicts() -> None:
    x, y = np.array([0.0, 4.0]), np.array([1.0, 2.0])
    # Second order: the violation is 1/2 (first test above). First order: quantiles of x fall
    # short by 1 at most (0 against 1).
    assert pair_tests(x, y, resamples=19, tolerance=0.5).forward[1].statistic == 0.0
    assert pair_tests(x, y, resamples=19, tolerance=0.25).forward[1].statistic == 0.25
    assert pair_tests(x, y, resamples=19, tolerance=1.0).forward[0].statistic == 0.0
    assert pair_tests(x, y, resamples=19, tolerance=0.99).forward[0].statistic == 0.5
    # Backwards at first order: y falls short of x by 2 (2 against 4).
    assert pair_tests(x, y, resamples=19, tolerance=2.0).backward[0].statistic == 0.0
    assert pair_tests(x, y, resamples=19, tolerance=1.99).backward[0].statistic == 0.5


def test_the_seed_decides_and_the_chunks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), rng.normal(0.1, 1.2, size=30)
    first = pair_tests(x, y, resamples=200, seed=3)
    assert pair_tests(x, y, resamples=200, seed=3) == first
    assert pair_tests(x, y, resamples=200, seed=4) != first
    monkeypatch.setattr(resampling, "_AT_ONCE", 1000)
    monkeypatch.setattr(process, "_CELLS", 0.5)
    monkeypatch.setattr(process, "_LOOKED_AT", 7)
    assert pair_tests(x, y, resamples=200, seed=3) == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "order = 3"),
        ({"resamples": 5}, "resamples = 5"),
        ({"seed": -1}, "seed = -1"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"trim": 0.5}, "trim = 0.5"),
        ({"paired": True}, "3 rows and y has 2"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        dominance_test(np.arange(3.0), np.arange(2.0), **options)


@pytest.mark.parametrize("bad", [[1.0], [1.0, np.nan], [[1.0, 2.0]], ["a", "b"]])
def test_wrong_samples(bad: list) -> None:
    with pytest.raises(InputError, match="y"):
        dominance_test(np.arange(3.0), np.array(bad))


@pytest.mark.slow
def test_against_pysdtest() -> None:
    """Same statistic where its grid is the support; p-values within the resampling error."""
    rng = np.random.default_rng(2)
    x = np.concatenate([[0, 20], rng.binomial(20, 0.5, 40)]).astype(float)
    y = np.concatenate([[0, 20], rng.binomial(20, 0.55, 30)]).astype(float)
    code = """
from pysdtest import test_sd
out = []
for order in (1, 2):
    for a, b in ((x, y), (y, x)):
        test = test_sd(a, b, 21, order, 'bootstrap', nboot=500, quiet=True)
        np.random.seed(0)
        test.testing()
        out.append([float(np.ravel(test.result[name])[0]) for name in ('test_stat', 'p_val')])
print(json.dumps(out))
"""
    theirs = iter(oracle(code, x=x, y=y))
    for order in (1, 2):
        for a, b in ((x, y), (y, x)):
            ours = dominance_test(a, b, order, resamples=4000, dependence="none")
            statistic, p_value = next(theirs)
            assert ours.statistic == pytest.approx(max(statistic, 0), abs=1e-9)
            assert ours.dominance_p == pytest.approx(p_value, abs=0.08)


def rejection_rate(draw, order: int, times: int, *, paired: bool = False) -> float:
    """How often H0 "x dominates y" is rejected at level 0.05."""
    rejected = 0
    for seed in range(times):
        x, y = draw(np.random.default_rng(seed))
        test = dominance_test(
            x, y, order, resamples=199, seed=seed, paired=paired, dependence="none"
        )
        rejected += test.dominance_p <= 0.05
    return rejected / times


def equal_normals(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=60), rng.normal(size=90)


def spread(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x is a mean-preserving spread of y: it does not dominate.

    At order 2 the supremum is 0.4 (at the mean, (2 - 1) / sqrt(2 pi)), times sqrt(200) 5.6; the
    difference of means alone, also part of the process, has deviation sqrt(5 / 2) = 1.6.
    """
    return rng.normal(0, 2, size=400), rng.normal(0, 1, size=400)


def correlated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Equal in distribution, from the same days."""
    day = rng.normal(size=100)
    return day + 0.5 * rng.normal(size=100), day + 0.5 * rng.normal(size=100)


@pytest.mark.parametrize("order", [1, 2])
def test_level_and_power_quickly(order: int) -> None:
    # 300 trials: the standard error of a rate of 0.05 is 0.0126.
    assert rejection_rate(equal_normals, order, 300) <= 0.05 + 4 * 0.0126
    assert rejection_rate(spread, order, 60) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_level_where_the_two_are_equal(order: int) -> None:
    """The least favourable case: the rate must be near 0.05, neither above nor far below."""
    rate = rejection_rate(equal_normals, order, 3000)  # standard error 0.004
    assert 0.025 <= rate <= 0.066
    paired = rejection_rate(correlated, order, 3000, paired=True)
    assert 0.025 <= paired <= 0.066
    # Drawing rows apart where they belong together wastes the pairing: far below the level.
    assert rejection_rate(correlated, order, 1000) < paired - 0.01


@pytest.mark.slow
def test_power_grows_and_level_holds_inside_the_hypothesis() -> None:
    def shifted(n: int, shift: float):
        return lambda rng: (rng.normal(-shift, 1, size=n), rng.normal(size=n))

    small, large = (rejection_rate(shifted(n, 0.3), 2, 400) for n in (50, 200))
    assert 0.2 < small < large
    assert large > 0.85
    assert rejection_rate(shifted(100, -0.3), 2, 400) <= 0.01  # x truly dominates
