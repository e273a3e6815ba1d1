"""More tests of a pair: by hand, on PySDTest's grid, against deepsig, and in level."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import oracle

from surefoot.comparison import (
    almost_dominance,
    compare,
    compare_file,
    further_tests,
    maximality,
    pair_tests,
    relative_ranking,
    write_returns,
)
from surefoot.comparison.almost import ratios
from surefoot.comparison.stepdown import step_down
from surefoot.core.stats import holm
from surefoot.errors import InputError
from surefoot.training.engines import run_jobs

samples = st.lists(st.integers(-20, 20).map(lambda v: v / 4), min_size=4, max_size=12).map(np.array)


def by_method(tests: tuple, method: str) -> list[float]:
    return [test.statistic for test in tests if test.method == method]


def test_statistics_by_hand() -> None:
    # x = {0, 4}, y = {1, 2}: D_x - D_y of order 1 is 1/2, 0, -1/2, 0 from 0, 1, 2 and 4 on; of
    # order 2 it is 0, 1/2, 1/2, -1/2 at 0, 1, 2, 4; of order 3 its integral: 0, 1/4, 3/4, 3/4, and
    # 1 - v^2/4 between 2 and 4, with v from -1 to 1: its top is 1, at 3.
    # Squares above 0: order 1: 1/4 over a width of 1. Order 2: 1/12 on [0, 1], 1/4 on [1, 2], and
    # half of [2, 4] above 0: a line from 1/2 to 0 over a width of 1, 1/12: together 5/12. Order 3:
    # (u^2/4)^2 on [0, 1]: 1/80, (1/4 + u/2)^2: 13/48, (1 - v^2/4)^2: 2 - 1/3 + 1/40; in all 1.975.
    x, y = np.array([0.0, 4, 0, 4, 0, 4, 0, 4]), np.array([1.0, 2, 1, 2, 1, 2, 1, 2])
    tests = further_tests(x, y, resamples=19, dependence="none")
    assert by_method(tests, "barrett-donald") == pytest.approx([1.0, 1.0, 2.0])  # root = 2
    assert by_method(tests, "donald-hsu") == by_method(tests, "linton-subsample")
    assert by_method(tests, "contact-set") == pytest.approx([4 / 4, 4 * 5 / 12, 4 * 1.975])


@given(samples, samples)
@settings(max_examples=30, deadline=None)
def test_statistics_are_those_of_a_fine_grid(x: np.ndarray, y: np.ndarray) -> None:
    """Between observed values D is constant, linear or a parabola; a grid comes near from below."""
    pooled = np.concatenate([x, y])
    grid = np.linspace(pooled.min(), pooled.max(), 20_001)
    options = {"resamples": 19, "dependence": "none"}
    exact, near = further_tests(x, y, **options), further_tests(x, y, grid=grid, **options)
    for one, other in zip(exact, near, strict=True):
        assert other.statistic == pytest.approx(one.statistic, rel=2e-2, abs=1e-3)
        if one.method != "contact-set":
            assert other.statistic <= one.statistic + 1e-9


@given(samples, samples)
@settings(max_examples=30, deadline=None)
def test_the_first_method_is_that_of_compare(x: np.ndarray, y: np.ndarray) -> None:
    options = {"resamples": 39, "dependence": "none"}
    plain = pair_tests(x, y, **options).forward
    tests = [t for t in further_tests(x, y, **options) if t.method == "barrett-donald"]
    for one, other in zip(plain, tests, strict=False):
        assert other.statistic == pytest.approx(one.statistic, abs=1e-9)
        assert other.p_value == pytest.approx(one.dominance_p, abs=2 / 40)


def test_no_unit_matters() -> None:
    """What rounding may do was counted in units of the data: too much for returns of minutes."""
    rng = np.random.default_rng(4)
    x, y, z = rng.normal(-0.3, 1, 60), rng.normal(size=60), rng.normal(0, 3, 60)
    options = {"resamples": 199, "dependence": "none"}
    small = 2.0**-20  # exactly the same digits
    plain, fine = further_tests(x, y, **options), further_tests(x * small, y * small, **options)
    assert [t.p_value for t in plain] == [t.p_value for t in fine]
    assert min(t.p_value for t in plain) < 0.5
    table = {"x": x, "y": y, "z": z}
    for order in (1, 2):
        units = (1.0, small)
        one, other = (
            maximality({k: u * v for k, v in table.items()}, order, **options) for u in units
        )
        assert one.p_value == other.p_value


@pytest.mark.slow
def test_all_methods_keep_their_level() -> None:
    """A narrow contact set rejected in one of eight trials."""
    counts: dict[str, float] = {}
    for seed in range(300):
        x, y = np.random.default_rng(seed).normal(size=(2, 60))
        for t in further_tests(x, y, resamples=99, dependence="none"):
            counts[t.method] = counts.get(t.method, 0) + (t.p_value <= 0.05) / 900
    assert max(counts.values()) <= 0.09  # orders go together: 0.05 and three standard errors


@pytest.mark.slow
def test_power_and_level_of_all_methods() -> None:
    def rejected(shift: float) -> dict[str, float]:
        counts: dict[str, float] = {}
        for seed in range(60):
            rng = np.random.default_rng(seed)
            x, y = rng.normal(shift, 1, 120), rng.normal(size=120)
            for t in further_tests(x, y, resamples=99, dependence="none"):
                counts[t.method] = counts.get(t.method, 0) + (t.p_value <= 0.05) / 180
        return counts

    equal, worse, better = rejected(0.0), rejected(-0.6), rejected(0.6)
    assert max(equal.values()) <= 0.16  # 60 trials: 0.05 and four standard errors
    assert min(worse.values()) >= 0.7
    assert max(better.values()) <= 0.02
    assert worse["donald-hsu"] >= worse["barrett-donald"] - 0.02  # recentring less cannot hurt


@pytest.mark.slow
def test_against_pysdtest_on_its_grid() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), rng.normal(0.2, 1.3, size=30)
    code = """
from pysdtest import pysdtest as p
np.trapz = getattr(np, 'trapz', None) or np.trapezoid
out = []
for s in (1, 2, 3):
    one = p.test_sd(x, y, 50, s, 'bootstrap', nboot=5, quiet=True)
    two = p.test_sd_contact(x, y, 50, s, 'bootstrap', nboot=5, quiet=True)
    two.D_s = None
    three = p.test_sd_SR(x, y, 50, s, 'bootstrap', nboot=5, quiet=True)
    runs = p.test_sd(x[:30], y, 50, s, 'subsampling', b1=12, b2=12, quiet=True)
    stats = [float(np.ravel(t.T_N())[0]) for t in (one, two, three, runs)]
    reached = int(np.sum(runs.resampled_stat() >= stats[-1] - 1e-12))
    out.append([*stats, reached, *(t.grid.ravel().tolist() for t in (one, runs))])
print(json.dumps(out))
"""
    theirs = oracle(code, x=x, y=y)
    for order, said in enumerate(theirs, start=1):  # type: ignore[arg-type]
        sup, area, recentred, of_runs, reached, *grids = said
        # It counts values below t, we those up to t: the same just before t.
        grid, shorter = (np.nextafter(points, -np.inf) for points in grids)
        ours = further_tests(x, y, grid=grid, resamples=19)
        assert by_method(ours, "barrett-donald")[order - 1] == pytest.approx(sup, abs=1e-9)
        assert by_method(ours, "donald-hsu")[order - 1] == pytest.approx(recentred, abs=1e-9)
        # All 19 runs of 12 of 30 rows.
        few = further_tests(x[:30], y, grid=shorter, resamples=19, subsample=12)
        (one,) = (t for t in few if (t.method, t.order) == ("linton-subsample", order))
        assert one.statistic == pytest.approx(of_runs, abs=1e-9)
        assert one.p_value == pytest.approx((1 + reached) / 20)
        step = grid[1] - grid[0]  # its integral has steps of 1
        assert by_method(ours, "contact-set")[order - 1] / step == pytest.approx(area, abs=1e-9)


def test_ratios_by_hand() -> None:
    # Quantiles of x: 0, 4; of y: 1, 2. Gaps -1, 2: squares 1 and 4, so a share of 1/5 against x.
    # F^-2 gaps at 0, 1/2, 1: 0, -1/2, 1/2. Below 0: a line 0 to -1/2 over 1/2 (1/24), then -1/2
    # to 0 over 1/4 (1/48); above: 0 to 1/2 over 1/4 (1/48). (1/24 + 1/48) / (1/24 + 2/48) = 3/4.
    x, y = np.array([[0.0, 4.0]]), np.array([[1.0, 2.0]])
    np.testing.assert_allclose(ratios(x, y), [[0.2, 0.75]])
    np.testing.assert_allclose(ratios(y, x), [[0.8, 0.25]])
    np.testing.assert_allclose(ratios(x, x), [[0.0, 0.0]])
    # Three against two: levels 1/3, 1/2, 2/3, 1. x = 0, 1, 2; y = 0.5, 1.5: gaps -+-+ 0.5.
    one = ratios(np.array([[0.0, 1, 2]]), np.array([[0.5, 1.5]]))
    assert one[0, 0] == pytest.approx(0.5)


@given(samples, samples)
@settings(max_examples=30, deadline=None)
def test_ratios_against_a_fine_grid(x: np.ndarray, y: np.ndarray) -> None:
    x, y = np.sort(x), np.sort(y)
    if np.array_equal(np.unique(x), np.unique(y)):
        return
    tau = (np.arange(20_000) + 0.5) / 20_000
    gap = x[(tau * len(x)).astype(int)] - y[(tau * len(y)).astype(int)]
    second = np.cumsum(gap)
    expected = [(g[g < 0] ** 2).sum() / max((g**2).sum(), 1e-300) for g in (gap, second)]
    np.testing.assert_allclose(ratios(x[None], y[None])[0], expected, atol=0.01)


@pytest.mark.slow
def test_almost_dominance_against_deepsig() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.2, 1, 120), rng.normal(0.0, 1.1, 100)
    code = """
from deepsig import aso
print(json.dumps([float(aso(x, y, num_bootstrap_iterations=300, seed=s, show_progress=False,
                            num_jobs=1)) for s in range(2)]))
"""
    theirs = np.array(oracle(code, x=x, y=y))
    ours = [almost_dominance(x, y, resamples=1000, seed=s, dependence="none")[0] for s in range(3)]
    upper = np.mean([one.upper for one in ours])
    assert upper == pytest.approx(theirs.mean(), abs=0.03)  # theirs differ by so much between seeds
    assert ours[0].low <= ours[0].ratio <= ours[0].upper <= ours[0].high


def test_almost_dominance_of_what_dominates() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    over, under = (almost_dominance(a, b, resamples=99) for a, b in ((x + 1, x), (x, x + 1)))
    assert [one.ratio for one in over] == [0.0, 0.0]
    assert [one.ratio for one in under] == [1.0, 1.0]
    assert all(one.upper < 0.1 for one in over)


def test_all_in_one_call(tmp_path: Path) -> None:
    """The same numbers as one by one, in the terminal, Markdown, JSON, tables and a notebook."""
    rng = np.random.default_rng(3)
    table = {"a|b": rng.normal(0, 1, 60), "c": rng.normal(1, 1, 60), "d": rng.normal(0, 3, 60)}
    options = {"resamples": 99, "dependence": "none"}
    c = compare(table, further=True, **options)
    assert c.further is not None
    one = c.further.pair("c", "d")
    assert one.tests == further_tests(table["c"], table["d"], paired=True, **options)
    assert one.almost == almost_dominance(table["c"], table["d"], paired=True, **options)
    for order in (1, 2):
        ranks = tuple(rank for rank in c.further.ranking if rank.order == order)
        assert ranks == relative_ranking(table, order, **options)
        assert maximality(table, order, **options) in c.further.maximality
    raw = [pair.tests[0].p_value for pair in c.further.pairs]
    assert [pair.corrected[0] for pair in c.further.pairs] == holm(raw).tolist()
    frame = c.to_frame("further")
    assert frame.height == 6 * 4 * 3
    assert frame["p_value"].to_list()[:12] == [t.p_value for t in c.further.pairs[0].tests]
    row = ["a|b", "over", "c", *(f"{p:.3g}" for p in c.further.pairs[0].corrected)]
    assert row in [line.split() for line in str(c).splitlines()]
    assert "a\\|b over c" in c.to_markdown()
    assert "Almost dominance" in c._repr_html_()
    assert c.to_dict()["further"]["maximality"][0]["order"] == 2
    spread = partial(run_jobs, engine="serial")
    assert compare(table, further=True, spread=spread, **options).further == c.further
    path = write_returns(tmp_path / "r.csv", {"a": table["c"], "b": table["d"][:40]})
    apart = compare_file(path, further=True, **options).further
    assert apart is not None
    assert (apart.ranking, apart.maximality) == ((), ())
    with pytest.raises(InputError, match="not asked for"):
        compare(table, **options).to_frame("further")
    with pytest.raises(InputError, match="no tolerance"):
        compare(table, further=True, tolerance=0.1, **options)
    for ask in (further_tests, almost_dominance):
        with pytest.raises(InputError, match=r"trim = 0\.1: these tests have none"):
            ask(table["c"], table["d"], trim=0.1)


def test_relative_ranking() -> None:
    rng = np.random.default_rng(3)
    day = rng.normal(size=400)
    table = {
        "poor": day + rng.normal(-1, 1, 400),
        "sure": 0.5 * day + rng.normal(1, 0.5, 400),
        "wild": day + rng.normal(1, 2, 400),
    }
    for order in (1, 2):
        ranks = relative_ranking(table, order, resamples=200)
        assert [one.name for one in ranks][-1] == "poor"
        assert ranks[0].low <= ranks[0].ratio <= ranks[0].high
    assert [one.name for one in ranks] == ["sure", "wild", "poor"]
    assert ranks[0].better_than == ("poor", "wild")
    assert sum(one.ratio for one in ranks) == pytest.approx(
        1.5
    )  # each pair shares out 1, of 2 others
    with pytest.raises(InputError, match="rows belong together"):
        relative_ranking({"a": np.arange(5.0), "b": np.arange(4.0)})


def test_step_down_by_hand() -> None:
    # Two hypotheses with equal deviations: statistics 3 and 1, resamples (columns) below. The first
    # is compared with the larger of the two (0 2 2 4: one reaches 3), the second with itself
    # (0 2 0 4 reach 1 twice): (1 + 1) / 5 and (1 + 2) / 5.
    star = np.array([[0.0, 0.0, 2.0, 4.0], [0.0, 2.0, 0.0, 4.0]])
    np.testing.assert_allclose(step_down(np.array([3.0, 1.0]), star), [0.4, 0.6])


@given(st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_step_down_is_between_single_tests_and_bonferroni(seed: int) -> None:
    rng = np.random.default_rng(seed)
    star = np.abs(rng.normal(size=(5, 199)))
    observed = np.abs(rng.normal(size=5)) * 2
    single = (1 + (star >= observed[:, None]).sum(axis=1)) / 200
    adjusted = step_down(observed, star)
    assert (adjusted >= single - 1e-12).all()
    assert (adjusted <= np.minimum(1, holm(single)) * 1.5 + 0.05).all()


def test_romano_and_wolf_instead_of_holm() -> None:
    rng = np.random.default_rng(4)
    table = {f"c{i}": rng.normal(1.6 * (i == 0), 1, 150) for i in range(12)}
    few = compare(table, resamples=99)
    assert {v.word for v in few.verdicts} == {"cannot tell"}  # 132 pairs, 99 resamples
    joint = compare(table, resamples=99, correction="romano-wolf")
    assert joint.verdict("c3", "c0").word == "contradicted"
    assert joint.verdict("c0", "c3").word == "established"
    assert not joint.notes
    assert "Romano and Wolf" in joint.to_markdown()
    for v in joint.verdicts:  # a correction never makes a single test's p-value smaller
        assert v.dominance_p >= v.test.dominance_p
        assert v.nondominance_p >= v.test.nondominance_p
    with pytest.raises(InputError, match="rows belong together"):
        compare(table, correction="romano-wolf", paired=False)
    with pytest.raises(InputError, match="Did you mean 'holm'"):
        compare(table, correction="holms")


@pytest.mark.slow
def test_romano_and_wolf_keep_their_level() -> None:
    """Any false word in 200 tables of four equal columns with a common factor: 5 % or so each."""
    rng = np.random.default_rng(11)
    wrong = {"contradicted": 0, "established": 0}
    for trial in range(200):
        table = 0.7 * rng.normal(size=(120, 1)) + rng.normal(size=(120, 4))
        result = compare(
            table, list("abcd"), resamples=199, seed=trial, correction="romano-wolf",
            dependence="none",
        )  # fmt: skip
        for word in wrong:
            wrong[word] += any(v.word == word and v.order == 2 for v in result.verdicts)
    # Binomial(200, 0.05) exceeds 20 with a probability of 0.001.
    assert max(wrong.values()) <= 20


def test_maximality() -> None:
    rng = np.random.default_rng(5)
    dominated = {"a": rng.normal(0, 1, 200), "b": rng.normal(1, 1, 200), "c": rng.normal(0, 2, 200)}
    one = maximality(dominated, resamples=199)
    assert one.p_value > 0.5
    assert one.pair[0] == "b"
    # Crossing at both orders: the calmer has the lower mean.
    maximal = {"calm": rng.normal(0, 0.3, 400), "mid": rng.normal(0.6, 1.5, 400)}
    assert maximality(maximal, 1, resamples=199).p_value < 0.05
    assert maximality(maximal, 2, resamples=199).p_value < 0.05
