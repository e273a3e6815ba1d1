"""What README shows is seen, whatever the seed."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from surefoot.agents.neural import NeuralConfig
from surefoot.core.stats import Interval
from surefoot.policies import DecidedBy
from surefoot.runs.directory import RunDir
from surefoot.runs.files import read_json

README = Path(__file__).parents[2] / "README.md"
CODE = README.read_text().split("```python\n", 1)[1].split("```", 1)[0]


def test_its_numbers_are_those_of_the_results():
    summary = read_json(README.parent / "results" / "risky-cliff" / "summary.json")
    cells = summary["losses"]["wgf-mixture"]
    text = " ".join(README.read_text().split())
    for policy in ("ssd", "greedy"):
        for name in ("falls", "top_row_share"):
            assert str(Interval.from_dict(cells[policy][name])) in text
    claims = {c["id"]: c for c in read_json(README.parent / "results" / "claims.json")["claims"]}
    assert claims["falls-wgf-mixture"]["verdict"] == "reproduced"  # fewer than all others
    best = claims["best-greedy-falls"]  # and each set up as suits it best: as many
    assert best["verdict"] == "not reproduced"
    for interval in best["intervals"]:
        assert str(Interval.from_dict(interval)) in text


def test_its_picture_and_the_words_under_it_are_made_from_the_results():
    surest = README.parent / "results" / "surest"
    if not (surest / "complete.json").exists():
        pytest.skip("results/surest is not complete")
    spec = spec_from_file_location("pages", README.parent / "tools" / "pages.py")
    pages = module_from_spec(spec)
    spec.loader.exec_module(pages)
    made = pages.promise(RunDir.open(surest))
    assert made in README.read_text()
    # What a share is of, what small leads take, and what networks answer, is said.
    words = " ".join(made.split())
    assert "on average over the 7 settings of networks (from" in words
    assert "(3 x deviation / lead)² trials" in words
    networks = pages.answered(RunDir.open(README.parent / "results" / "suite"))
    assert f"Networks, on {networks['asked']} questions of their own" in words
    assert networks["network"]["ssd"] <= networks["asked"]


def test_the_first_pages_speak_of_no_tolerance():
    for page in (README, README.parent / "docs" / "index.md"):
        assert "tolerance" not in page.read_text().lower()


def test_the_sweep_it_shows_takes_losses_that_see_risk():
    losses = README.read_text().split("--grid loss=", 1)[1].split()[0].split(",")
    assert len(losses) > 1
    assert not any(NeuralConfig(loss=loss).blind for loss in losses)  # each would warn


def test_why_three_is_what_was_simulated():
    summary = README.parent / "results" / "surest" / "summary.json"
    if not summary.exists():
        pytest.skip("results/surest is not complete")
    rows = [row for row in read_json(summary)["rule"] if row["n"] == 32]
    page = (README.parent / "docs" / "concepts.md").read_text()
    for errors in (1, 2, 3):
        own = {(r["noisy"], r["lead"]): r["noisy_taken"] for r in rows if r["errors"] == errors}
        tie = " / ".join(f"{own[m, 0]:.3f}" for m in (1, 4, 10))
        ahead = " | ".join(f"{own[1, lead]:.3f}" for lead in (0.25, 0.5, 1))
        assert f"| {errors} | {tie} | {ahead} |" in page


@pytest.mark.slow  # the quick tests run it with its own seed, among all blocks of the pages
@pytest.mark.parametrize("seed", range(6))
def test_the_ten_lines_take_the_sure_path(seed, capsys):
    assert "seed=1" in CODE
    names: dict = {}
    exec(compile(CODE.replace("seed=1", f"seed={seed}"), "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("True False\naction up: ")
    explanation = names["agent"].explain(24)
    up, right = explanation.names.index("up"), explanation.names.index("right")
    # Where the path along the cliff looks better by chance, dominance takes the sure one.
    if explanation.gap[up] > 0:
        assert explanation.decided_by is DecidedBy.DOMINANCE
        assert explanation.tied[[up, right]].all()
    else:
        assert explanation.decided_by is DecidedBy.SCORE
        assert seed != 1  # README's own
    assert explanation.z[up].std() < explanation.z[right].std()
