"""The experiment on policy improvement: what it counts, and that its page says the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper import theory
from surefoot.paper.theory import TheoryConfig
from surefoot.runs.directory import RunDir
from surefoot.runs.files import read_json

ROOT = Path(__file__).resolve().parents[2]
SMALL = TheoryConfig(trials=150, seed=3, levels=(0.25,))


@pytest.fixture(scope="module")
def table():
    return {name: np.array(column) for name, column in theory.check(SMALL).items()}


def test_both_policies_of_every_process_are_checked(table):
    assert table["trial"].tolist() == np.repeat(np.arange(150), 2).tolist()
    assert not table["dominant_broken"].any()
    assert not table["above_broken"].any()
    assert not table["fallback_mean_worse"].any()
    assert (table["decided"] <= table["choices"]).all()
    assert (table["first_order"] <= table["decided"]).all()
    second = table["decided"].sum() - table["first_order"].sum()
    assert second > 20  # not only what first order decides
    best = theory.only(table, "best mean")
    assert best["dominant_changed"].mean() < theory.only(table, "random")["dominant_changed"].mean()


def test_a_counterexample_would_be_seen(table):
    assert [claim.verdict for claim in theory.claims_of(table)[:2]] == ["reproduced"] * 2
    for name in ("dominant_broken", "above_broken", "fallback_mean_worse"):
        spoilt = table | {name: np.arange(300) == 7}
        assert [c.verdict for c in theory.claims_of(spoilt)].count("not reproduced") >= 1
        claim = theory.claims_of(spoilt)[1 if name.startswith("fallback") else 0]
        assert claim.verdict == "not reproduced"
        assert claim.measured.startswith("1 counterexamples on 300 policies")


def test_the_figure_says_the_numbers_of_the_counterexample():
    axes = theory.figures()["counterexample"].axes
    words = [t.get_text() for ax in axes for t in ax.texts]
    words += [t.get_text() for ax in axes[1:] for t in ax.get_legend().get_texts()]
    words += [ax.get_title() for ax in axes]
    words = [text.replace("\N{MINUS SIGN}", "-") for text in words]
    for text in (
        "return -2", "sure (new)", "coin (old)", "In state 1 the new CVaR is better",
        "From the start the new CVaR is worse", "old (coin): CVaR -2, mean -0.5",
        "new (sure): CVaR -1, mean -1", "old (coin): CVaR -0.5, mean -0.125",
        "new (sure): CVaR -1, mean -0.25",
    ):  # fmt: skip
        assert text in words
    # The curve from the start, before: -2 with 1/16, then nothing more is lost.
    np.testing.assert_allclose(
        axes[2].lines[0].get_xydata(), [[0, 0], [1 / 16, -1 / 8], [1, -1 / 8]]
    )


def test_a_run_leaves_everything_behind(tmp_path):
    config = TheoryConfig(trials=20, seed=3)
    claims = theory.run(config, tmp_path / "run")
    store = RunDir.open(tmp_path / "run")
    assert store.figures == ["counterexample"]
    assert [claim.id for claim in claims] == [
        "theory/dominance", "theory/fallback", "theory/cvar-0.05", "theory/cvar-0.25",
        "theory/cvar-0.45",
    ]  # fmt: skip
    summary = store.read_summary()
    assert summary["processes"] == 20
    assert summary["drawn"]["old"]["cvar_at_the_start"] == -0.5
    assert summary["drawn"]["new"]["cvar_at_the_start"] == -1
    assert theory.run(config, tmp_path / "run", "resume") == claims


def test_mistakes_are_told():
    with pytest.raises(InputError, match="at least 2"):
        TheoryConfig(states=1)
    with pytest.raises(InputError, match="between 0 and 1"):
        TheoryConfig(levels=(0.5, 1.5))


def test_the_page_has_the_numbers_of_the_results():
    summary = read_json(ROOT / "results" / "theory" / "summary.json")
    lines = (ROOT / "docs" / "theory.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    rows = [
        ("decided",), ("first_order",), ("dominant", "changed"), ("dominant", "broken"),
        ("fallback", "mean_worse"), ("fallback", "broken"), ("cvar_0.05", "worse"),
        ("cvar_0.25", "worse"), ("cvar_0.45", "worse"), ("cvar_0.25", "worse_where_changed"),
    ]  # fmt: skip
    for line, names in zip(table, rows, strict=True):
        cells = [summary["policies"][policy] for policy in theory.POLICIES]
        for name in names:
            cells = [cell[name] for cell in cells]
        assert line.endswith(f"| {' | '.join(str(Interval.from_dict(c)) for c in cells)} |")
    assert summary["processes"] == 10_000
    assert summary["policies"]["random"]["dominant"]["broken"]["mean"] == 0


@pytest.mark.slow
def test_no_counterexample_in_ten_thousand():
    """Other processes than those of the stored results."""
    table = theory.check(TheoryConfig(seed=2, levels=(0.25,)))
    assert len(table["trial"]) == 20_000
    assert not any(table["dominant_broken"] + table["above_broken"])
    assert not any(table["fallback_mean_worse"])
    assert sum(table["cvar_0.25_worse"]) > 50
