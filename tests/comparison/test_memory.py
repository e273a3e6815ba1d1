"""Series with memory: what is seen of it, how long blocks are, and which rows they draw."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from benchmarks.size_power import LEVEL, OUT, cells
from surefoot.comparison import compare, dominance_test, pair_tests
from surefoot.comparison.memory import (
    autocovariances,
    block_length,
    ljung_box,
    look,
    memory_of,
    stretch,
)
from surefoot.comparison.resampling import Resampling
from surefoot.errors import InputError


def ar1(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    return lfilter([1], [1, -phi], rng.normal(size=n + 100))[100:]


def garch(rng: np.random.Generator, n: int) -> np.ndarray:
    out, variance = np.empty(n + 200), 1.0
    for i, e in enumerate(rng.normal(size=n + 200)):
        out[i] = np.sqrt(variance) * e
        variance = 0.02 + 0.1 * out[i] ** 2 + 0.88 * variance
    return out[200:]


def test_autocovariances_by_hand() -> None:
    # 1, 2, 4, 1 less the mean 2: -1, 0, 2, -1. R(0) = 6/4; R(1) = (0 + 0 - 2)/4; R(2) = -2/4.
    np.testing.assert_allclose(autocovariances(np.array([1.0, 2, 4, 1]), 2), [1.5, -0.5, -0.5])


def test_ljung_box_by_hand() -> None:
    # The same series, one lag: rho = -1/3, Q = n (n + 2) rho^2 / (n - 1) = 24 / 9 / 3 = 8 / 9;
    # P(chi2_1 > 8/9) = 2 (1 - Phi(0.9428)) = 0.3458.
    assert ljung_box(np.array([1.0, 2, 4, 1]), lags=1) == pytest.approx(0.3458, abs=1e-4)


def test_ljung_box_keeps_its_level_and_sees_memory() -> None:
    p = [ljung_box(np.random.default_rng(i).normal(size=200)) for i in range(400)]
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.09
    assert ljung_box(ar1(np.random.default_rng(0), 250, 0.3)) < 0.01
    assert ljung_box(np.ones(50)) == ljung_box(np.arange(4.0)) == 1.0  # nothing to see


@pytest.mark.parametrize("blocks", ["circular", "stationary"])
def test_block_length_against_arch(blocks: str) -> None:
    bootstrap = pytest.importorskip("arch.bootstrap", reason="arch is in the bench extra")
    rng = np.random.default_rng(3)
    series = [ar1(rng, n, phi) for n in (250, 1000) for phi in (-0.4, 0.0, 0.3, 0.6, 0.9)]
    for z in series:
        expected = float(bootstrap.optimal_block_length(z)[blocks].iloc[0])
        assert block_length(z, blocks) == pytest.approx(expected, rel=1e-6)


def test_block_length_by_hand() -> None:
    # n = 100 alternating -1, 1: R(k) = (-1)^k (100 - k) / 100. No correlation is insignificant, so
    # the window is its most, 10 + 5 = 15 lags, with weights 1 up to lag 7 and 2 (1 - k / 15) above.
    z = np.tile([-1.0, 1.0], 50)
    lag = np.arange(1, 16)
    weighted = 2 * np.minimum(1, 2 * (1 - lag / 15)) * (-1.0) ** lag * (100 - lag) / 100
    g, spectrum = np.sum(lag * weighted), 1 + weighted.sum()
    expected = (2 * g**2 / (2 * spectrum**2) * 100) ** (1 / 3)
    assert block_length(z, "stationary") == pytest.approx(min(expected, 30.0))


def test_what_is_seen() -> None:
    rng = np.random.default_rng(2)
    assert look(rng.normal(size=300)).length == 1
    assert look(rng.normal(size=300)).seen == "none"
    correlated, clustered = look(ar1(rng, 300, 0.5)), look(garch(rng, 2000))
    assert correlated.seen == "serial correlation of the values"
    assert 5 <= correlated.length <= 40
    assert "of the squares" in clustered.seen
    assert clustered.length > 40
    assert memory_of(ar1(rng, 300, 0.5), "none").length == 1
    assert memory_of(ar1(rng, 300, 0.5), 12).length == 12
    assert memory_of(ar1(rng, 300, 0.5), 12).seen == "none"


@pytest.mark.parametrize("wrong", ["some", 0, 151, True])
def test_wrong_dependence(wrong: object) -> None:
    with pytest.raises(InputError, match="dependence"):
        memory_of(np.arange(300.0), wrong)


def test_wrong_blocks() -> None:
    with pytest.raises(InputError, match="Did you mean 'circular'"):
        dominance_test(np.arange(9.0), np.arange(9.0), blocks="circula")


def weights(n: int, resamples: int, most: int = 10_000, **options) -> np.ndarray:
    chunks = list(Resampling(n, resamples, 5, **options).chunks(most))
    return np.concatenate(chunks, axis=1) + 1


@given(st.integers(2, 40), st.integers(1, 20), st.sampled_from(["circular", "stationary"]))
@settings(max_examples=60, deadline=None)
def test_every_resample_has_as_many_rows(n: int, length: int, blocks: str) -> None:
    drawn = weights(n, 30, length=min(length, n), blocks=blocks)
    assert drawn.min() >= 0
    assert (drawn.sum(axis=0) == n).all()
    # However many are made at a time, they are the same.
    np.testing.assert_array_equal(drawn, weights(n, 30, 7, length=min(length, n), blocks=blocks))


def test_circular_blocks_by_hand() -> None:
    # Blocks of n rows: whatever the start, every row once. Blocks of n / 2: two of them, so each
    # row 0, 1 or 2 times, and rows half the table apart add up to 2.
    assert (weights(12, 50, length=12) == 1).all()
    halves = weights(12, 500, length=6)
    assert set(np.unique(halves)) == {0, 1, 2}
    assert (halves[:6] + halves[6:] == 2).all()
    # Ten rows in blocks of four: three stretches, whose ends change the counts by one each.
    drawn = weights(10, 500, length=4)
    assert np.abs(drawn - np.roll(drawn, 1, axis=0)).sum(axis=0).max() <= 6


@pytest.mark.parametrize("blocks", ["circular", "stationary"])
def test_the_variance_of_a_mean_is_that_of_the_blocks(blocks: str) -> None:
    """Of a circular series: sum of its covariances by the weights that the blocks imply."""
    n, length = 60, 5
    z = ar1(np.random.default_rng(2), n, 0.5)
    e = z - z.mean()
    circular = np.array([np.mean(e * np.roll(e, k)) for k in range(n)])
    lag = np.arange(n)
    if blocks == "circular":
        weight = np.maximum(0, 1 - lag / length)
        weight += np.maximum(0, 1 - (n - lag) / length)
    else:  # Politis and Romano (1994): (1 - k/n) (1 - 1/l)^k + k/n (1 - 1/l)^(n - k)
        stay = 1 - 1 / length
        weight = (1 - lag / n) * stay**lag + lag / n * stay ** (n - lag)
    weight[0] = 1
    expected = np.sum(weight * circular) / n
    means = (weights(n, 40_000, length=length, blocks=blocks) * z[:, None]).mean(axis=0)
    assert means.mean() == pytest.approx(z.mean(), abs=4 * np.sqrt(expected / 40_000))
    assert means.var() == pytest.approx(expected, rel=0.04)


def test_stretch_is_the_critical_value_of_a_t_ratio_with_so_few_blocks() -> None:
    """Simulated: the mean of independent normals over a variance with triangular weights."""
    n, length = 200, 20
    e = np.random.default_rng(4).normal(size=(20_000, n))
    mean = e.mean(axis=1)
    e -= mean[:, None]
    variance = np.mean(e * e, axis=1)
    for k in range(1, length):
        variance += 2 * (1 - k / length) * np.sum(e[:, k:] * e[:, :-k], axis=1) / n
    critical = np.quantile(np.sqrt(n) * mean / np.sqrt(variance), [0.95, 0.99])
    assert stretch(length, n) == pytest.approx(critical[0] / 1.6449, rel=0.02)
    assert stretch(length, n, level=0.01) == pytest.approx(critical[1] / 2.3263, rel=0.03)
    assert stretch(1, n) == 1.0
    assert stretch(20, n, "stationary") > stretch(20, n) > stretch(10, n) > 1.0


def test_the_verdicts_take_the_blocks_of_the_data() -> None:
    rng = np.random.default_rng(0)
    day = ar1(rng, 300, 0.6)
    table = {"a": day + rng.normal(size=300), "b": ar1(rng, 300, 0.6), "c": rng.normal(size=300)}
    c = compare(table, resamples=99)
    assert c.paired
    expected = max(c.memory["a"].length, c.memory["b"].length)
    assert c.verdict("a", "b").test.length == expected > 1
    assert "serial correlation of the values" in c.rows_drawn
    assert str(c.memory["b"].length) in str(c)
    assert (
        compare(table, resamples=99, dependence="none").rows_drawn == "single rows drawn (as asked)"
    )
    asked = compare(table, resamples=99, dependence=7, blocks="stationary")
    assert asked.rows_drawn == "stationary blocks of 7 rows drawn (as asked)"
    independent = {name: rng.normal(size=50) for name in "ab"} | {"c": rng.normal(size=40)}
    c = compare(independent, resamples=99)
    assert not c.paired
    assert c.rows_drawn == "single values of each column drawn (no serial correlation seen)"


def test_blocks_widen_the_processes_of_series_with_memory() -> None:
    rng = np.random.default_rng(7)
    x, y = ar1(rng, 400, 0.8), ar1(rng, 400, 0.8) + 0.4
    single = pair_tests(x, y, dependence="none", paired=True).forward[1]
    blocks = pair_tests(x, y, paired=True).forward[1]
    assert single.statistic == blocks.statistic
    assert single.dominance_p < blocks.dominance_p


def test_the_committed_simulation_keeps_its_limits() -> None:
    """Size where both are alike, in both directions; dominance established that does not hold."""
    stored = json.loads((OUT / "cells.json").read_text())
    assert set(stored) == {cell.key for cell in cells()}
    for cell in cells():
        shares = stored[cell.key]["shares"]
        assert stored[cell.key]["trials"] == 2000
        if cell.wanted is not None:
            low, high = cell.wanted
            sizes = shares["x dominates: rejected"] + shares["y dominates: rejected"]
            assert low <= min(sizes) <= max(sizes) <= high, cell.key
        if cell.part != "power":
            false = [shares["x dominates: established"][order - 1] for order in cell.false]
            assert max(false + shares["y dominates: established"]) <= LEVEL, cell.key
