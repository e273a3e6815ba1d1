"""Statistics: values by hand, formulas, brute force and rliable as oracles, and properties."""

from __future__ import annotations

from itertools import combinations, product
from math import pi, sqrt, tan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surefoot.core.bootstrap import (
    bootstrap_interval,
    improvement,
    interquartile_mean,
    iqm_interval,
    performance_profile,
)
from surefoot.core.stats import (
    Interval,
    equivalence,
    holm,
    mean_interval,
    mean_share_interval,
    paired_difference,
    share_interval,
    welch,
)
from surefoot.errors import InputError

numbers = st.floats(-1e3, 1e3, allow_subnormal=False)
samples = arrays(np.float64, st.integers(2, 30), elements=numbers)
RNG = np.random.default_rng(7)
X, Y = RNG.normal(0.3, 1.0, 40), RNG.normal(0.0, 2.0, 40)


def test_mean_interval_by_hand():
    # [0, 2]: mean 1, variance 2, standard error sqrt(2 / 2) = 1. Student's t with one degree
    # of freedom is Cauchy, its quantile at 0.975 is tan(0.475 pi) = 12.706.
    interval = mean_interval([0.0, 2.0])
    assert interval.mean == 1.0
    assert interval.half_width == pytest.approx(tan(0.475 * pi))
    assert (interval.n, interval.level) == (2, 0.95)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_mean_interval_agrees_with_scipy(level):
    mine = mean_interval(X, level)
    theirs = scipy.stats.ttest_1samp(X, 0.0).confidence_interval(level)
    assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high))


def test_mean_interval_covers_as_often_as_it_says():
    # 4,000 experiments of five normal values: the share that covers has s.e. 0.0034.
    draws = np.random.default_rng(0).normal(3.0, 2.0, (5, 4000))
    interval = mean_interval(draws, 0.95)
    covered = np.mean((interval.low <= 3.0) & (interval.high >= 3.0))
    assert abs(covered - 0.95) < 4 * 0.0034


def test_mean_interval_along_an_axis_is_that_of_each_column():
    table = RNG.normal(size=(6, 3, 4))
    whole = mean_interval(table, axis=1)
    assert whole.mean.shape == (6, 4)
    alone = mean_interval(table[2, :, 1])
    one = whole[2, 1]
    assert isinstance(one.mean, float)
    assert (one.mean, one.low, one.high) == pytest.approx((alone.mean, alone.low, alone.high))
    assert "24 intervals" in str(whole)


@given(samples, st.floats(0.01, 100), numbers)
def test_mean_interval_moves_and_scales_with_the_data(x, scale, shift):
    base, moved = mean_interval(x), mean_interval(scale * x + shift)
    tolerance = 1e-9 * (1 + scale) * 1e3
    assert moved.mean == pytest.approx(scale * base.mean + shift, abs=tolerance)
    assert moved.half_width == pytest.approx(scale * base.half_width, rel=1e-6, abs=tolerance)
    assert x.min() - 1e-9 <= base.mean <= x.max() + 1e-9


def test_constant_data_has_no_width_in_spite_of_rounding():
    # The plain mean of ten times 0.1 is not 0.1, which would pass for a variance.
    interval = mean_interval([0.1] * 10)
    assert (interval.mean, interval.low, interval.high) == (0.1, 0.1, 0.1)
    assert welch([0.1] * 10, [0.1] * 7).p_value == 1.0
    assert welch([0.1] * 10, [0.2] * 7).p_value == 0.0


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.983, 0.979, 0.987, 50), "0.983 [0.979, 0.987]"),
        (Interval(56.5, 53.4, 59.6, 50), "56.5 [53.4, 59.6]"),
        (Interval(-13.0012, -13.0014, -13.001, 50), "-13.0012 [-13.0014, -13.0010]"),
        (Interval(-100.0, -100.0, -100.0, 50), "-100 [-100, -100]"),
        (Interval(0.0, 0.0, 0.0, 50), "0 [0, 0]"),
        (Interval(1e-9, -0.1, 0.1, 50), "0.000 [-0.100, 0.100]"),
        (Interval(1.5e-7, 1.4e-7, 1.6e-7, 50), "1.50e-07 [1.40e-07, 1.60e-07]"),
        (Interval(12345.0, 12145.0, 12545.0, 50), "12345 [12145, 12545]"),
    ],
)
def test_intervals_read_well(interval, text):
    assert str(interval) == text


def test_interval_survives_a_dict_and_knows_overlap():
    interval = Interval(1.0, 0.5, 1.5, 9, 0.9)
    assert Interval.from_dict(interval.as_dict()) == interval
    assert interval.overlaps(Interval(2.0, 1.5, 2.5, 9))
    assert not interval.overlaps(Interval(2.0, 1.6, 2.4, 9))
    with pytest.raises(InputError, match="not an interval"):
        Interval.from_dict({"mean": 1.0})


def test_an_interval_of_shares_stays_between_0_and_1():
    # 0, 0, 0.4: mean 2/15, standard error 2/15, so that Student's interval begins at -0.44.
    made = mean_share_interval([0, 0, 0.4])
    assert (made.low, made.mean) == (0, pytest.approx(2 / 15))
    assert made.high == mean_interval([0, 0, 0.4]).high
    assert mean_share_interval([0.4, 0.5, 0.6]) == mean_interval([0.4, 0.5, 0.6])


def test_share_interval_by_hand():
    # Never in n: the high end h has (1 - h)^n = 0.025. With n = 1 that is h = 0.975.
    never = share_interval([False])
    assert (never.mean, never.low, never.n) == (0.0, 0.0, 1)
    assert never.high == pytest.approx(0.975)
    assert share_interval(np.zeros(100)).high == pytest.approx(1 - 0.025**0.01)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([0.8, 0.95]))
def test_share_interval_is_clopper_and_pearsons(hits, level):
    share, k, n = share_interval(hits, level), sum(hits), len(hits)
    tail = (1 - level) / 2
    low = scipy.stats.beta.ppf(tail, k, n - k + 1) if k else 0.0
    high = scipy.stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
    assert (share.low, share.mean, share.high) == pytest.approx((low, k / n, high))
    with pytest.raises(InputError, match="hits is empty"):
        share_interval([])


def test_interquartile_mean_by_hand():
    # Of eight values two fall at either end; the outlier is one of them.
    assert interquartile_mean([7, 0, 3, 2, 5, 4, 1, 1000]) == (2 + 3 + 4 + 5) / 4
    # Of five or six values one falls at either end: floor(5 / 4) = floor(6 / 4) = 1.
    assert interquartile_mean([9, 1, 2, 3, 4]) == 3.0
    assert interquartile_mean([[9, 1], [2, 3], [4, 4]]) == (2 + 3 + 4 + 4) / 4


@given(arrays(np.float64, st.integers(1, 60), elements=numbers))
def test_interquartile_mean_is_that_of_the_sorted_middle(x):
    value, cut = interquartile_mean(x), len(x) // 4
    assert value == pytest.approx(np.sort(x)[cut : len(x) - cut].mean(), abs=1e-9)


def test_iqm_interval_agrees_with_all_possible_resamples():
    # Three runs of two tasks have 3^3 resamples a task, 729 in all and equally likely, so
    # the bootstrap distribution is known exactly; its atoms may sit astride a quantile.
    # Monte-Carlo s.e. of the level 0.025: 0.0005.
    scores = np.array([[0.13, 2.7], [0.94, 1.1], [0.41, 3.9]])
    picks = list(product(range(3), repeat=3))
    exact = np.array(
        [
            scipy.stats.trim_mean(np.r_[scores[list(a), 0], scores[list(b), 1]], 0.25)
            for a in picks
            for b in picks
        ]
    )
    interval = iqm_interval(scores, seed=0, resamples=100_000)
    for bound, level in ((interval.low, 0.025), (interval.high, 0.975)):
        below, up_to = np.mean(exact < bound - 1e-9), np.mean(exact < bound + 1e-9)
        assert below - 0.002 <= level <= up_to + 0.002
    assert interval.mean == pytest.approx(scipy.stats.trim_mean(scores.ravel(), 0.25))
    assert interval.n == 3


def test_iqm_interval_keeps_every_task_in_every_resample():
    # Runs that agree within each task leave nothing to resample; drawing over tasks would.
    scores = np.tile([0.0, 5.0, 100.0], (4, 1))
    interval = iqm_interval(scores, seed=1, resamples=500)
    assert interval.low == interval.mean == interval.high


def test_iqm_interval_depends_on_the_seed_and_on_nothing_else():
    np.random.seed(0)  # noqa: NPY002 - the global state must not matter
    scores = RNG.normal(size=(5, 3))
    one = iqm_interval(scores, seed=3, resamples=200)
    np.random.seed(1)  # noqa: NPY002
    assert iqm_interval(scores, seed=3, resamples=200) == one
    assert iqm_interval(scores, seed=4, resamples=200) != one


def test_iqm_interval_in_chunks_is_one_of_a_list_of_runs():
    scores = RNG.normal(size=3000)  # 666 resamples a chunk: the last chunk is a short one
    interval = iqm_interval(scores, seed=0, resamples=1500)
    assert interval == iqm_interval(scores[:, None], seed=0, resamples=1500)
    assert interval.low < interval.mean < interval.high


def test_iqm_interval_agrees_with_rliable():
    try:
        from rliable import library, metrics
    except Exception as error:  # it also fails to import beside a pandas that is too new
        pytest.skip(f"rliable cannot be imported: {error!r}")

    scores = np.random.default_rng(5).gamma(2.0, size=(10, 6))
    mine = iqm_interval(scores, seed=0, resamples=20_000)
    points, theirs = library.get_interval_estimates(
        {"a": scores}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=20_000
    )
    assert mine.mean == pytest.approx(points["a"][0])
    width = mine.high - mine.low
    assert mine.low == pytest.approx(theirs["a"][0, 0], abs=0.03 * width)
    assert mine.high == pytest.approx(theirs["a"][1, 0], abs=0.03 * width)


def test_holm_by_hand():
    # Sorted 0.005 x 4 = 0.02, 0.01 x 3 = 0.03, 0.03 x 2 = 0.06, 0.04 x 1 -> not below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closed_test_of_bonferroni(p):
    # A hypothesis falls when every intersection that contains it falls by Bonferroni.
    every = range(len(p))
    subsets = [s for size in range(1, len(p) + 1) for s in combinations(every, size)]
    closed = [
        max(min(1.0, len(s) * min(p[j] for j in s)) for s in subsets if i in s) for i in every
    ]
    adjusted = holm(p)
    assert adjusted == pytest.approx(closed)
    assert np.all((adjusted >= p) & (adjusted <= 1))


def test_paired_difference_by_hand():
    # Differences (1, 2, 3): mean 2, variance 1, standard error 1/sqrt(3), t = 2 sqrt(3).
    # With two degrees of freedom P(|T| > t) = 1 - t / sqrt(2 + t^2) = 1 - sqrt(12/14).
    # All three signs agree: two of the eight sign patterns are that extreme, p = 0.25.
    result = paired_difference([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert result.interval.mean == 2.0
    assert (result.t, result.df) == (pytest.approx(2 * sqrt(3)), 2.0)
    assert result.p_value == pytest.approx(1 - sqrt(12 / 14))
    assert result.wilcoxon_p_value == pytest.approx(0.25)


def by_formula(estimate, error, df):
    """t, the two-sided p-value and the 95 % interval from the t distribution."""
    t = estimate / error
    half = scipy.stats.t.ppf(0.975, df) * error
    return t, 2 * scipy.stats.t.sf(abs(t), df), estimate - half, estimate + half


def test_paired_difference_agrees_with_its_formula():
    mine, d = paired_difference(X, Y), X - Y
    wanted = by_formula(d.mean(), d.std(ddof=1) / sqrt(len(d)), len(d) - 1)
    found = mine.t, mine.p_value, mine.interval.low, mine.interval.high
    assert found == pytest.approx(wanted)


def test_paired_difference_of_ties():
    same = paired_difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (same.t, same.p_value, same.wilcoxon_p_value) == (0.0, 1.0, 1.0)
    shifted = paired_difference([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert (shifted.t, shifted.p_value) == (-np.inf, 0.0)


def test_welch_by_hand_and_by_its_formula():
    # [1, 3] and [0, 2]: variances 2, standard error sqrt(1 + 1), df = 2^2 / (1 + 1) = 2,
    # t = 1 / sqrt(2), p = 1 - t / sqrt(2 + t^2) = 1 - sqrt(0.5 / 2.5).
    hand = welch([1.0, 3.0], [0.0, 2.0])
    assert (hand.df, hand.t) == pytest.approx((2.0, 1 / sqrt(2)))
    assert hand.p_value == pytest.approx(1 - sqrt(0.2))
    mine, parts = welch(X, Y[:25]), (X.var(ddof=1) / 40, Y[:25].var(ddof=1) / 25)
    df = sum(parts) ** 2 / (parts[0] ** 2 / 39 + parts[1] ** 2 / 24)  # Welch-Satterthwaite
    wanted = by_formula(X.mean() - Y[:25].mean(), sqrt(sum(parts)), df)
    found = mine.t, mine.p_value, mine.interval.low, mine.interval.high
    assert found == pytest.approx(wanted)
    assert mine.df == pytest.approx(df)
    assert mine.interval.n == 65


def test_equivalence_by_hand():
    # Differences (-1, 1): mean 0, standard error 1, one degree of freedom (Cauchy):
    # P(T >= margin) = 1/2 - atan(margin) / pi, so 0.25 at 1 and 0.05 at tan(0.45 pi).
    x, y = [0.0, 2.0], [1.0, 1.0]
    assert equivalence(x, y, 1.0, paired=True).p_value == pytest.approx(0.25)
    limit = tan(0.45 * pi)
    assert equivalence(x, y, limit, paired=True).p_value == pytest.approx(0.05)
    assert equivalence(x, y, 1.001 * limit, paired=True).equivalent
    assert not equivalence(x, y, 0.999 * limit, paired=True).equivalent


def test_equivalence_is_the_worse_of_two_one_sided_tests():
    d, error = X - Y, (X - Y).std(ddof=1) / sqrt(40)
    below, above = (scipy.stats.t.sf((0.8 + s * d.mean()) / error, 39) for s in (1, -1))
    found = equivalence(X, Y, 0.8, paired=True)
    assert (found.p_below, found.p_above) == pytest.approx((below, above))
    assert below != pytest.approx(above)
    assert found.p_value == pytest.approx(max(below, above))


@settings(max_examples=60)
@given(samples, st.integers(0, 99), st.floats(0.1, 1000), st.booleans())
def test_equivalence_is_the_interval_inside_the_margin(x, seed, margin, paired):
    y = x + np.random.default_rng(seed).normal(size=x.size)
    result = equivalence(x, y, margin, paired=paired)
    assert result.interval.level == pytest.approx(0.9)
    inside = -margin < result.interval.low and result.interval.high < margin
    if abs(result.p_value - 0.05) > 1e-9:
        assert result.equivalent == inside
    assert equivalence(y, x, margin, paired=paired).p_value == pytest.approx(result.p_value)


def test_equivalence_of_constants():
    assert equivalence([1.0, 1.0], [1.0, 1.0], 0.1, paired=True).p_value == 0.0
    assert equivalence([1.0, 1.0], [2.0, 2.0], 0.1, paired=False).p_value == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([]), "x is empty"),
        (lambda: mean_interval([1.0]), "x needs at least 2 values, not 1"),
        (lambda: mean_interval([1.0, np.nan, np.inf]), "x has 2 of 3 values that are NaN"),
        (lambda: mean_interval(3.0), "has no axis 0"),
        (lambda: mean_interval([1.0, 2.0], axis=1), "has no axis 1"),
        (lambda: mean_interval([1.0, 2.0], level=95), "level = 95: it must lie between 0 and 1"),
        (lambda: mean_interval([1.0, 2.0], level="a"), "level = 'a'"),
        (lambda: mean_interval([1.0, 2.0], axis="a"), "has no axis a"),
        (lambda: share_interval([]), "hits is empty"),
        (lambda: share_interval([True, 2]), "hits must be true or false"),
        (lambda: share_interval([0.5, -1]), "hits must be true or false"),
        (lambda: share_interval(["a"]), "hits must hold numbers"),
        (lambda: share_interval(3), "hits of shape"),
        (lambda: share_interval([np.nan]), "hits has 1 of 1"),
        (lambda: share_interval(np.ma.array([1, 0], mask=[1, 0])), "hits is a masked array"),
        (lambda: share_interval([True], level=1), "level = 1"),
        (lambda: share_interval([True], level=None), "level = None"),
        (lambda: mean_interval(["a", "b"]), "x must hold numbers"),
        (lambda: interquartile_mean([]), "scores is empty"),
        (lambda: iqm_interval([[1.0, 2.0]], seed=0), "scores needs at least 2"),
        (lambda: iqm_interval(np.zeros((2, 2, 2)), seed=0), r"must be \[runs, tasks\]"),
        (lambda: iqm_interval([1.0, 2.0], seed=0, resamples=5), "resamples = 5"),
        (lambda: iqm_interval([1.0, 2.0], seed=0, resamples="a"), "resamples = 'a'"),
        (lambda: iqm_interval([1.0, 2.5], seed=-1), "seed = -1"),
        (lambda: bootstrap_interval([1.0, 2.5], seed="a"), "seed = 'a'"),
        (lambda: holm([]), "p_values is empty"),
        (lambda: holm([0.1, np.nan]), "p_values has 1 of 2"),
        (lambda: holm([0.1, 1.2]), r"p_values must lie in \[0, 1\]"),
        (lambda: holm([[0.1]]), "p_values must be a list"),
        (lambda: paired_difference([1, 2], [1, 2, 3]), "x has 2 values and y has 3"),
        (lambda: welch([1, 2], [1]), "y needs at least 2"),
        (lambda: welch([[1, 2], [3, 4]], [1, 2]), "x must be a list"),
        (lambda: equivalence([1, 2], [1, 2], 0.0, paired=True), "margin must be a positive"),
        (lambda: equivalence([1, 2], [1, 2], 1, paired=True, alpha=5), "alpha must lie"),
        (lambda: equivalence([1, 2], [1, 2], "a", paired=True), "margin must be a positive"),
        (lambda: equivalence([1, 2], [1, 2], 1, paired=True, alpha="a"), "alpha must lie"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


# --- few runs: bootstrap, profiles, probability of improvement ---------------------------------


def test_a_bootstrap_interval_stays_within_the_values_and_agrees_with_scipy():
    x = np.array([500.0, 500.0, 500.0, 20.0, 480.0])
    own = bootstrap_interval(x, seed=3, resamples=20_000)
    theirs = scipy.stats.bootstrap((x,), np.mean, n_resamples=20_000, method="percentile",
                                   rng=np.random.default_rng(1)).confidence_interval  # fmt: skip
    assert own.mean == pytest.approx(400.0)
    np.testing.assert_allclose([own.low, own.high], [theirs.low, theirs.high], atol=4.0)
    assert own.high <= 500 < mean_interval(x).high  # Student's holds what cannot be
    both = bootstrap_interval(np.stack([x, 2 * x], axis=1), seed=3)
    np.testing.assert_allclose(both.low[1], 2 * both.low[0])
    assert bootstrap_interval([7.0, 7.0, 7.0]).half_width == 0
    with pytest.raises(InputError, match="at least 2 values"):
        bootstrap_interval([1.0])


def test_of_few_values_a_bootstrap_interval_is_too_narrow():
    """The figures in its description: 5 normal values 84 %, 10 values 90 %."""
    rng = np.random.default_rng(0)
    for n, share in ((5, 0.84), (10, 0.90)):
        made = [bootstrap_interval(rng.normal(size=n), resamples=300) for _ in range(1500)]
        held = [each.low <= 0 <= each.high for each in made]
        assert np.mean(held) == pytest.approx(share, abs=0.025)


def test_probability_of_improvement_by_hand_and_by_mann_whitney():
    # Of six pairs 3 beats 1 and 2, 2 beats 1; 2 and 2, 1 and 1 are halves: (2 + 1.5 + 0.5) / 6.
    assert improvement([([3, 2, 1], [1, 2])]).mean == pytest.approx(4 / 6)
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=9).round(1), rng.normal(size=7).round(1)
    u = scipy.stats.mannwhitneyu(x, y).statistic / 63
    there, back = improvement([(x, y)]), improvement([(y, x)])
    assert there.mean == pytest.approx(u)
    assert there.mean + back.mean == pytest.approx(1.0)
    assert 0 <= there.low <= there.mean <= there.high <= 1
    # Over tasks of any scale it is the mean of the tasks.
    tasks = improvement([(x, y), (1000 * y, 1000 * x)])
    assert tasks.mean == pytest.approx(0.5)
    assert improvement([([2.0, 3.0], [0.0, 1.0])]).low == 1.0


def test_a_performance_profile_counts_runs_above():
    shares = performance_profile([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.5, 4.0])
    np.testing.assert_allclose(shares.mean, [1.0, 0.75, 0.5, 0.0])
    assert (shares.low <= shares.mean).all()
    assert shares.low[0] == shares.high[0] == 1
    assert shares.high[3] == 0
