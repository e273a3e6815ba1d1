"""The explanatory figures: what they say is what the library finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from surefoot.core.dominance import ssd_dominates
from surefoot.errors import InputError
from surefoot.paper import figures
from surefoot.paper.figures import PAIRS, DrawnPair, FiguresConfig
from surefoot.runs.directory import RunDir

values = st.integers(-50, 50)


def test_area_by_hand():
    # {0, 2}: F^(2) is alpha / 2 on [0, 2] and meets alpha - 1 at 2. The triangle under it has
    # area 1, that under the asymptote 1/2: what is left, 1/2, is half the variance of 1.
    assert figures.area(np.array([0.0, 2.0])) == pytest.approx(0.5)


def test_area_agrees_with_quadrature():
    z = figures.BIMODAL

    def above(alpha):
        return np.maximum(alpha - z, 0).mean() - max(alpha - z.mean(), 0)

    expected, _ = integrate.quad(above, z.min(), z.max(), points=[*z, z.mean()], limit=200)
    assert figures.area(z) == pytest.approx(expected)


@given(st.lists(values, min_size=2, max_size=12))
def test_area_is_half_the_variance(particles):
    z = np.array(particles, float)
    assert figures.area(z) == pytest.approx(z.var() / 2, abs=1e-9)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=8))
def test_the_definition_and_the_library_agree(pairs):
    x, y = np.array(pairs, float).T
    assert figures.dominates_by_definition(x, y) == bool(ssd_dominates(x, y))


@pytest.mark.parametrize(("pair", "orders"), zip(PAIRS, [(1, 1), (0, 1), (0, 0)], strict=True))
def test_the_pairs_are_what_the_paper_shows_by_hand(pair, orders):
    x, y = np.sort(pair.x), np.sort(pair.y)
    assert (bool((x >= y).all()), bool((np.cumsum(x) >= np.cumsum(y)).all())) == orders
    assert figures.orders(pair.x, pair.y) == pair.paper == orders
    assert figures.orders(pair.y, pair.x) == (False, False)


def test_the_verdict_follows_the_particles():
    low, high = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    assert figures.verdict(high, low) == "first order: X dominates Y\nsecond order: X dominates Y"
    assert figures.verdict(low, high) == "first order: Y dominates X\nsecond order: Y dominates X"
    assert figures.verdict(low, low) == "first order: equal\nsecond order: equal"


def test_titles_are_the_librarys_verdict(monkeypatch):
    titles = [ax.get_title() for ax in figures.draw_comparisons().axes[:3]]
    assert titles == [
        f"({letter}) {figures.verdict(pair.x, pair.y)}"
        for letter, pair in zip("abc", PAIRS, strict=True)
    ]
    swapped = tuple(DrawnPair(p.name, p.y, p.x, p.paper) for p in PAIRS)
    monkeypatch.setattr(figures, "PAIRS", swapped)
    assert "Y dominates X" in figures.draw_comparisons().axes[0].get_title()
    assert figures.claims_of(figures.check(FiguresConfig(trials=10)))[2].verdict == "not reproduced"


def test_dispersion_figure_states_area_and_variance():
    ax = figures.draw_dispersion(np.array([0.0, 2.0])).axes[0]
    assert any(text.get_text() == "area = 0.500\nvariance / 2 = 0.500" for text in ax.texts)


def test_checks_look_at_both_kinds_of_pairs():
    found = figures.check(FiguresConfig(trials=100))
    assert 10 < found["eq_5"].sum() < 90
    assert found["agree"].all()
    spoilt = found | {"agree": np.arange(100) > 0}
    assert figures.claims_of(spoilt)[1].verdict == "not reproduced"


@pytest.mark.wide
def test_a_run_leaves_everything_behind(tmp_path):
    config = FiguresConfig(trials=20)
    claims = figures.run(config, tmp_path / "run")
    store = RunDir.open(tmp_path / "run")
    assert store.complete
    assert store.figures == ["dispersion-space", "dominance"]
    assert [claim.verdict for claim in claims] == ["reproduced"] * 5
    assert claims[1].intervals["share that agrees"].low < 1  # 20 of 20 is not certainty
    assert figures.run(config, tmp_path / "run", "resume") == claims
    with pytest.raises(InputError, match="already holds a run"):
        figures.run(config, tmp_path / "run")


def test_mistakes_are_told():
    with pytest.raises(InputError, match="at least 2"):
        FiguresConfig(particles=1)
