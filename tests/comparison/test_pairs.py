"""All pairs of a table: the same numbers wherever and in whatever pieces they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.comparison import compare, pairs, process, resampling
from surefoot.comparison.bootstrap import in_cells, pair_draws, run_pairs
from surefoot.comparison.pairs import facts
from surefoot.comparison.process import WAYS
from surefoot.comparison.settings import TestSettings
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
@pytest.mark.parametrize("digits", [9, 0])
def test_what_is_left_out_changes_no_count(shift: float, digits: int) -> None:
    """Suprema and counts that cells decide, against every value of every resample."""
    rng = np.random.default_rng(3)
    x, y = (rng.normal(mean, d, 400).round(digits) for mean, d in ((shift, 1.0), (0.0, 1.2)))
    chosen = TestSettings(300, paired=True)
    columns, draws = in_cells({"x": x, "y": y}, 0.0), pair_draws(400, 400, (1, 1), chosen)
    weights = next(draws[0].chunks(300)).astype(np.float64)
    quick, slow = (
        next(run_pairs(columns, [("x", "y")], draws, chosen, keep=keep)) for keep in (False, True)
    )
    t = np.sort(np.concatenate([x, y]))[:, None]
    heights = ((x <= t).astype(float) - (y <= t)) @ weights
    areas = (np.maximum(t - x, 0) - np.maximum(t - y, 0)) @ weights
    for way in WAYS:
        for few, all_kept, every in zip(
            quick.tallies(way), slow.tallies(way), (heights, areas), strict=True
        ):
            curve = few.curve
            suprema = np.maximum((way * every).max(axis=0), 0)
            np.testing.assert_allclose(all_kept.suprema(way), suprema, atol=1e-9)
            reached = np.count_nonzero(suprema >= few.excess[way] - max(curve.slack, 1e-9))
            assert few.reached(way) == all_kept.reached(way) == reached
            if way in few.pointwise:
                far = -way * every >= (few.margin(way) - 1e-9)[:, None]
                most = far[curve.inside].sum(axis=1).max()
                assert few.pointwise[way][curve.inside].max() == most
            weakest = all_kept.weakest(way)[0]
            np.testing.assert_allclose(all_kept.at_weakest(way), -way * every[weakest], atol=1e-9)


@pytest.mark.parametrize("correction", ["holm", "romano-wolf"])
def test_pieces_change_nothing(correction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"resamples": 150, "correction": correction}
    together = compare(table(), **chosen).to_dict()
    monkeypatch.setattr(resampling, "_AT_ONCE", 120 * 40)  # resamples in four parts
    monkeypatch.setattr(process, "_CELLS", 0.7)
    monkeypatch.setattr(pairs, "_TILE", 2)
    assert compare(table(), **chosen).to_dict() == together
    spread = partial(run_jobs, engine="serial")
    assert compare(table(), **chosen, spread=spread).to_dict() == together


def test_a_small_table_has_work_for_several_workers(capsys: pytest.CaptureFixture[str]) -> None:
    """Six columns, two a side: three squares off the diagonal and three on it."""
    sizes: list[int] = []

    def spread(function: Any, jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        sizes.extend(len(job.pairs) for job in jobs)
        return run_jobs(function, jobs, engine="serial")

    rng = np.random.default_rng(3)
    six = {name: rng.normal(0, 1 + i / 10, 40) for i, name in enumerate("abcdef")}
    spread_out = compare(six, resamples=99, spread=spread, progress=True)
    assert spread_out.to_dict() == compare(six, resamples=99).to_dict()
    assert sorted(sizes) == [1, 1, 1, 4, 4, 4]
    assert "15/15 pairs" in capsys.readouterr().err


def test_scales_that_have_nothing_in_common() -> None:
    """A column whose values all lie in one cell of the others'."""
    rng = np.random.default_rng(8)
    small = {"a": rng.normal(0.2, 1, 90), "b": rng.normal(0, 1, 90)}
    alone = compare(small, resamples=99).verdict("a", "b").test
    huge = {"far": rng.normal(1e9, 1, 90), "wide": rng.normal(0, 1e12, 90)}
    assert compare({**small, **huge}, resamples=99).verdict("a", "b").test == alone


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_workers_give_the_same_numbers(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: make peers")
    monkeypatch.setattr(pairs, "_TILE", 2)  # several jobs
    spread = partial(run_jobs, engine=engine, workers=2)
    assert compare(table(), resamples=99, spread=spread).to_dict() == (
        compare(table(), resamples=99).to_dict()
    )


def test_an_interruption_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pairs, "run_pairs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare(table(), resamples=19, progress=True)
