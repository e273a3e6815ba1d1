"""All pairs of a table: the same numbers wherever and in whatever pieces they are computed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.comparison import bootstrap, compare, pairs, process
from surefoot.comparison.pairs import facts
from surefoot.comparison.process import Pair
from surefoot.comparison.resampling import Resampling
from surefoot.comparison.tally import WAYS, Tally
from surefoot.core.dominance import almost_ssd_ratio, fsd_dominates, ssd_dominates, violation
from surefoot.training.engines import run_jobs

columns = st.lists(st.integers(-8, 8).map(lambda v: v / 4), min_size=2, max_size=10).map(np.sort)


@given(columns, columns, st.sampled_from([0.0, 0.25]))
@settings(deadline=None)
def test_facts_are_those_of_the_one_rule(x: np.ndarray, y: np.ndarray, tolerance: float) -> None:
    for fact, (a, b) in zip(facts(x, y, tolerance), ((x, y), (y, x)), strict=True):
        assert fact.first == bool(fsd_dominates(a, b, tolerance))
        assert (fact.violation <= tolerance) == bool(ssd_dominates(a, b, tolerance))
        assert fact.violation == float(violation(a, b))
        assert fact.almost_ratio == pytest.approx(float(almost_ssd_ratio(a, b)), abs=1e-12)


def table(seed: int = 0, n: int = 120) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    day = rng.normal(size=n)
    return {f"c{i}": day + rng.normal(0.3 * i, 1 + 0.2 * (i % 3), n) for i in range(6)}


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.6])
def test_what_is_left_out_changes_no_count(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Suprema and points that blocks decide, against every value of every resample."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(shift, 1, 400), rng.normal(0, 1.2, 400)
    weights = next(Resampling(400, 300, 1).chunks(300))
    pair = Pair(x, y, 0.05)
    quick, slow = Tally(pair.second), Tally(pair.second, keep=True)
    pair.walk(weights, weights, None, quick)
    pair.walk(weights, weights, None, slow)
    for way in WAYS:
        reached = np.count_nonzero(slow.suprema(way) >= slow.excess[way] - pair.second.slack)
        assert quick.reached(way) == slow.reached(way) == reached
    assert set(quick.pointwise) == set(slow.pointwise)
    for way, counts in slow.pointwise.items():
        inside = pair.second.inside
        assert quick.pointwise[way][inside].max() == counts[inside].max()


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(table(), resamples=150).to_dict()
    monkeypatch.setattr(bootstrap, "_CHUNK", 120 * 40)  # resamples in four parts
    monkeypatch.setattr(process, "_BLOCK", 16)
    monkeypatch.setattr(pairs, "_TILE", 2)
    assert compare(table(), resamples=150).to_dict() == whole
    spread = partial(run_jobs, engine="serial")
    assert compare(table(), resamples=150, spread=spread).to_dict() == whole


@pytest.mark.slow
def test_workers_give_the_same_numbers() -> None:
    spread = partial(run_jobs, engine="local", workers=2)
    assert compare(table(), resamples=99, spread=spread).to_dict() == (
        compare(table(), resamples=99).to_dict()
    )


def test_an_interruption_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pairs, "run_pair", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare(table(), resamples=19, progress=True)
