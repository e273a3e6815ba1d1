"""What a page is made from: experiments, folders, comparisons, trainings, sweeps, by their kind."""

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import surefoot as sf
from surefoot.cli import main
from surefoot.comparison import compare
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper.claims import Claim, write_claims
from surefoot.report import report
from surefoot.report.page import DataTable, Explorer, Figure, Folded, Note
from surefoot.report.sources import page_of
from surefoot.report.sweep import NUMBERS
from surefoot.runs.directory import RunDir
from surefoot.training.sweep.summary import to_table

pytestmark = pytest.mark.wide

RESULTS = Path(__file__).resolve().parents[2] / "results"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" /></svg>'
PNG = b"\x89PNG\r\n\x1a\n"


@cache
def result_page(name):
    """A stored experiment as a fresh clone has it."""
    return page_of(RESULTS / name)


def of_kind(page, kind):
    page = page_of(page) if isinstance(page, Path) else page
    return [part for section in page.sections for part in section.parts if isinstance(part, kind)]


def figures(page):
    return [figure.name for figure in of_kind(page, Figure)]


def warnings(page):
    return " ".join(note.text for note in of_kind(page, Note) if note.tone == "warning")


def copied(path, to):
    return Path(shutil.copytree(path, to / path.name))


def small_run(path, claims=(), kind="figures", **config):
    run = RunDir.create(path, config, kind=kind, seeds=[3], command=["surefoot", "x y"])
    write_claims(run, claims)
    run.write_figure("a-figure", PNG, SVG)
    run.mark_complete()
    return run.path


def configured(path, **changes):
    """Change the configuration of a run; None takes a setting away."""
    config = json.loads((path / "config.json").read_text()) | changes
    kept = {name: value for name, value in config.items() if value is not None}
    (path / "config.json").write_text(json.dumps(kept))
    return path


# --- experiments ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["figures", "ablation", "regression", "gym", "risky-cliff"])
def test_a_fresh_clone_shows_every_claim_and_every_figure(name):
    page = result_page(name)
    stored = {path.stem for path in (RESULTS / name / "figures").glob("*.svg")}
    assert set(figures(page)) == stored
    assert all(f.uri.startswith("data:image/svg+xml,") for f in of_kind(page, Figure))
    claims = json.loads((RESULTS / name / "claims.json").read_text())["claims"]
    (table,) = of_kind(page, DataTable)
    assert [row[0][0] for row in table.rows] == [claim["id"] for claim in claims]
    assert [row[3].text for row in table.rows] == [claim["verdict"] for claim in claims]
    # What every page ends with.
    assert [f.title.split(":")[0].split(",")[0] for f in of_kind(page, Folded)] == [
        "Numbers of the summary", "Provenance", "Configuration"
    ]  # fmt: skip


def test_numbers_are_those_of_the_summary():
    summary = json.loads((RESULTS / "risky-cliff" / "summary.json").read_text())
    falls = summary["losses"]["qr"]["ssd"]["falls"]
    rows = dict(of_kind(result_page("risky-cliff"), Folded)[0].rows)
    shown = rows["losses, qr, ssd, falls"]
    assert shown == f"{Interval.from_dict(falls)}, n = {falls['n']}"


def test_a_page_of_stored_figures_needs_neither_jax_nor_matplotlib():
    code = (
        "import sys; from pathlib import Path; from surefoot.report.page import render; "
        "from surefoot.report.sources import page_of; render(page_of(Path(sys.argv[1]))); "
        "print([m for m in ('jax', 'matplotlib', 'plotly', 'polars') if m in sys.modules])"
    )  # a fresh interpreter: what this session has loaded does not count
    words = [sys.executable, "-c", code, str(RESULTS / "ablation")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_risky_cliff_is_explored_from_its_particles(tmp_path):
    settings = {
        "rows": 4, "columns": 12, "sigma": 1e-3, "losses": ["wgf-mixture"], "checks": ["qr"],
        "policies": ["ssd"], "check_policies": [], "tolerance": 1e-3, "seed": 0,
    }  # fmt: skip
    path = small_run(tmp_path / "run", kind="risky-cliff", **settings)
    (note,) = [n for n in of_kind(path, Note) if "particles" in n.text]
    assert note.tone == "quiet"
    z = np.random.default_rng(0).normal(size=(48, 4, 4))
    z[30] = np.nan  # a state that ran away is left out, not the page
    index = np.indices(z.shape).reshape(3, -1)
    columns = dict(zip(("state", "action", "particle"), index, strict=True))
    RunDir(path).write_table({**columns, "z": z.ravel()}, "particles.wgf-mixture.ssd")
    (explorer,) = of_kind(path, Explorer)
    assert list(explorer.data["learned"]) == ["wgf-mixture, behaviour ssd"]
    assert explorer.data["start"] == 24
    learned = explorer.data["learned"]["wgf-mixture, behaviour ssd"]
    assert len(learned["states"]) == 48 - 11 - 1  # neither cliff and goal nor the broken state
    np.testing.assert_allclose(learned["states"]["5"]["z"], np.sort(z[5]), rtol=1e-7)
    np.testing.assert_allclose(learned["states"]["5"]["mean"], z[5].mean(-1), rtol=1e-6)
    json.dumps(explorer.data, allow_nan=False)
    # A table of another shape is said, and the rest of the page stays.
    RunDir(path).write_table({"z": [1.0]}, "particles.wgf-mixture.ssd")
    assert "The cliff, state by state: not shown" in warnings(path)
    assert figures(path) == ["a-figure"]


@pytest.mark.slow
def test_the_evaluation_is_explored_by_rollouts():
    (explorer,) = of_kind(RESULTS / "evaluation", Explorer)
    start = explorer.data["learned"]["rollouts"]["states"]["36"]
    # Moving right from the start falls for sure: at once -100, then at least 13 steps at 0.9.
    assert max(start["z"][1]) < -100
    assert start["mean"][1] == pytest.approx(np.mean(start["z"][1]), rel=1e-5)


# --- kinds ---------------------------------------------------------------------------------


def test_a_run_of_0_1_0_shows_what_it_stores(tmp_path):
    claim = Claim("a/b", "1", "said", "found", "partly", "since", {"x": Interval(1, 0, 2, 9)})
    path = configured(small_run(tmp_path / "old", [claim]), kind=None)
    provenance = json.loads((path / "provenance.json").read_text())
    provenance["versions"]["surefoot"] = "0.1.0"
    (path / "provenance.json").write_text(json.dumps(provenance))
    assert "Written by surefoot 0.1.0" in warnings(path)
    assert figures(path) == ["a-figure"]
    (table,) = of_kind(path, DataTable)
    assert table.rows[0][2] == ["found", "x 1.00 [0.00, 2.00]"]
    # Without claims and figures there is nothing to show: which version made it is said.
    (path / "claims.json").unlink()
    shutil.rmtree(path / "figures")
    with pytest.raises(InputError, match=r"written by surefoot 0\.1\.0: use that version"):
        page_of(path)


def test_a_kind_of_the_future_is_named(tmp_path):
    path = configured(small_run(tmp_path / "new"), kind="seance")
    with pytest.raises(InputError, match="knows no runs of kind 'seance'"):
        page_of(path)


def test_settings_do_not_decide_what_a_run_is(tmp_path):
    """In 0.1.0 a setting called `sweep` made every run a sweep."""
    path = small_run(tmp_path / "run", kind="ablation", sweep=1, check_policies=[], narrow=2)
    assert page_of(path).title == "ablation"
    assert figures(path) == ["a-figure"]


# --- damage and folders --------------------------------------------------------------------


def test_one_damaged_file_costs_one_part(tmp_path):
    path = copied(RESULTS / "ablation", tmp_path)
    (path / "claims.json").write_text("{")
    (path / "summary.json").write_text('{"cells": {"mean": {}, "low": 1, "high": [], "n": null}}')
    (path / "provenance.json").write_text('{"versions": [1], "resumed": [2], "command": {}}')
    shutil.copy(path / "figures" / "ablation.svg", path / "figures" / "other.svg")
    (path / "figures" / "ablation.svg").write_text("<svg")
    (path / "complete.json").unlink()
    page = page_of(path)
    assert figures(page) == ["other"]
    told = warnings(page)
    for what in (
        "Claims: not shown",
        "Ablation: not shown",
        "Provenance: not shown",
        "This run is not finished",
    ):
        assert what in told
    assert report(path).stat().st_size > 100_000


def test_a_folder_holds_all_its_runs_and_says_which_is_broken(tmp_path):
    for name in ("gym", "figures"):
        copied(RESULTS / name, tmp_path)
    small_run(tmp_path / "a")
    small_run(tmp_path / "broken")
    (tmp_path / "broken" / "config.json").write_text("{")
    (tmp_path / "linked").symlink_to(RESULTS / "ablation")
    page = page_of(tmp_path)
    titles = [section.title for section in page.sections]
    assert titles == ["Overview", "figures", "gym", "figures", "broken"]  # the paper's order first
    assert "This run cannot be shown" in page.sections[-1].parts[0].text
    assert "not valid JSON" in page.sections[-1].parts[0].text
    rows = page.sections[0].parts[0].rows
    assert rows[0][2] == "5 claims: 5 reproduced"
    assert rows[1][1].startswith("Section 5.3: WGF against QR")


def test_no_run_at_all_can_bring_a_folder_down(tmp_path, monkeypatch):
    small_run(tmp_path / "a")
    monkeypatch.setattr("surefoot.report.sources._claims", lambda stored: 1 / 0)
    monkeypatch.setattr("surefoot.report.sources._figures", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in warnings(tmp_path)


# --- comparisons ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A file of returns and what `surefoot compare --out` leaves of it."""
    from surefoot.comparison import compare_file

    folder = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(0)
    rows = zip(rng.normal(2, 1, 60), rng.normal(0, 2, 60), strict=True)
    path = folder / "returns.csv"
    path.write_text("good,bad\n" + "\n".join(f"{a},{b}" for a, b in rows))
    compare_file(path, out=folder / "out", resamples=200)
    return path


def test_a_comparison_by_its_file_and_by_its_directory(compared):
    for path in (compared, compared.parent / "out"):
        page = page_of(path)
        choice, second, first, columns, pairs = of_kind(page, DataTable)
        assert choice.rows[0][1:] == ("good", "good", "good")
        assert [row[0] for row in columns.rows] == ["good", "bad"]
        assert second.header == first.header == ("row over column", "good", "bad")
        assert second.rows[0][1] == second.rows[1][2] == ""
        assert second.rows[0][2].text == "established"
        assert second.rows[1][1].text == "contradicted"
        assert " / " in second.rows[0][2].detail
        assert len(pairs.rows) == 1  # each pair once
        assert pairs.rows[0][2] == "a dominates b"
        assert figures(page) == ["comparison", "bands"]
        assert "all τ at once" in of_kind(page, Figure)[1].caption


def derived(p, reverse, level=0.05):
    """The word, from what stands below two badges."""
    (over, not_over), back = p.split(" / "), reverse.split(" / ")[0]
    if float(over.strip("*")) <= level:
        return "contradicted"
    if float(not_over) <= level:
        return "established"
    if float(back.strip("*")) <= level and "*" not in over:
        return "not contradicted"
    return "cannot tell"


def method_of(page):
    (note,) = [note.text for note in of_kind(page, Note) if "P-values are those of" in note.text]
    assert "comparison.json" not in note
    return note


def test_words_of_a_comparison_follow_from_what_the_page_shows(tmp_path):
    rng = np.random.default_rng(2)
    columns = {f"c{i}": rng.normal(0.2 * i, 1 + i % 2, 60) for i in range(6)}
    compare(columns, resamples=999).save(tmp_path / "out")
    page = page_of(tmp_path / "out")
    tables = of_kind(page, DataTable)
    seen = set()
    for table in tables[1:3]:
        cells = {(i, j): table.rows[i][j + 1] for i in range(6) for j in range(6) if i != j}
        for (i, j), cell in cells.items():
            assert cell.text == derived(cell.detail, cells[j, i].detail)
            seen.add(cell.text)
    assert len(seen) >= 3
    # 60 + 60 values: 20 of them are more than 5 %.
    assert "on all but the lowest 17 % of the pooled values (and highest" in method_of(page)
    (pairs,) = [t for t in tables if t.title == "In the sample, pair by pair"]
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text())["verdicts"]
    for row in pairs.rows:
        for cell, order in zip(row[-2:], (2, 1), strict=True):
            key = [*row[:2], order]
            (test,) = [v["test"] for v in stored if [v["a"], v["b"], v["order"]] == key]
            assert cell == f"{test['low']:.4g} to {test['high']:.4g}"


def test_words_of_very_many_columns_follow_too(tmp_path):
    rng = np.random.default_rng(2)
    columns = {f"c{i}": rng.normal(0.2 * i, 1, 40) for i in range(40)}
    result = compare(columns, resamples=99, correction="romano-wolf")
    result.save(tmp_path / "out")
    page = page_of(tmp_path / "out")
    method_of(page)
    tables, folded = of_kind(page, DataTable)[1:3], of_kind(page, Folded)
    for table, order, every in zip(tables, (2, 1), folded, strict=False):
        words = {}
        for _, _, over, back in table.rows:
            assert over.text == derived(over.detail, back.detail)
            assert back.text == derived(back.detail, over.detail)
        assert len(table.rows) == 300  # there are more: all of them are below
        assert every.title.startswith("All ")
        for line in every.code.split("\n"):
            a, b, word, p, back, reverse = line.split("\t")
            assert (word, back) == (derived(p, reverse), derived(reverse, p))
            words |= {(a, b): word, (b, a): back}
        assert f"Cannot tell: the other {780 - len(words) // 2}, " in table.caption
        for v in result.verdicts:
            if v.order == order:
                assert v.word == words.get((v.a, v.b), "cannot tell")


def test_a_comparison_with_dates_has_a_year(tmp_path):
    rng = np.random.default_rng(0)
    months = np.arange("2010-01", "2012-01", dtype="M8[M]").astype("M8[D]")
    rows = zip(months, rng.normal(0, 0.04, 24), rng.normal(0, 0.02, 24), strict=True)
    path = tmp_path / "returns.csv"
    path.write_text("month,a,b\n" + "\n".join(f"{m},{a},{b}" for m, a, b in rows))
    page = page_of(path)
    (year,) = [t for t in of_kind(page, DataTable) if t.title == "A year of each column"]
    assert year.header[-1] == "rows a year"
    assert [row[-1] for row in year.rows] == ["12", "12"]
    assert all(row[1].endswith("%") for row in year.rows)
    assert any("2010-01-01 to 2011-12-01" in note.text for note in of_kind(page, Note))


def test_a_comparison_with_further_tests(tmp_path):
    rng = np.random.default_rng(0)
    c = compare({"a": rng.normal(size=40), "b": rng.normal(1, 1, 40)}, resamples=39, further=True)
    c.save(tmp_path / "out")
    tables = of_kind(page_of(tmp_path / "out"), DataTable)[5:]
    assert [len(table.rows) for table in tables] == [2, 2, 2, 2, 2]
    assert tables[0].rows[0] == ("a over b", *(f"{p:.3g}" for p in c.further.pairs[0].corrected))
    assert tables[1].rows[0][1] == f"{c.further.pairs[0].almost[0].ratio:.3f}"
    assert [table.rows[0][0] for table in tables[2:4]] == ["b", "b"]


def test_a_comparison_saved_by_the_library(compared, tmp_path):
    """`Comparison.save` leaves no configuration, and the figure beside the numbers."""
    shutil.copy(compared.parent / "out" / "comparison.json", tmp_path)
    shutil.copy(compared.parent / "out" / "figures" / "comparison.svg", tmp_path)
    assert page_of(tmp_path).title.startswith("Comparison: ")
    assert figures(tmp_path) == ["comparison"]


# --- trainings and sweeps ------------------------------------------------------------------


def test_a_training_run(trained, trained_page):
    assert trained_page.title == "Training: cliff on surefoot/RiskyCliff-v0"
    assert figures(trained_page) == ["learning", "watched-0"]
    watched, table = of_kind(trained_page, Explorer)
    assert list(watched.data["learned"]) == ["step 1,500", "step 1,000", "step 500"]
    assert watched.data["places"][0]["text"] == "0: start"
    assert "was not written down" in watched.caption  # as in runs of earlier versions
    assert table.data["columns"] == 12
    assert [place["mark"] for place in table.data["places"]].count("cliff") == 10
    policies = list(table.data["learned"]["this agent"]["decisions"])
    assert [name.split(",")[0] for name in policies] == ["SSD", "greedy", "CVaR 0.25"]
    assert not warnings(trained_page)


def test_a_policy_with_a_tolerance_is_the_agents_own(trained, tmp_path):
    """Then the table of watched distributions has all that it asks for."""
    shutil.copytree(trained, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"evaluation": "ssd:0.001"}))
    watched = of_kind(page_of(tmp_path / "run"), Explorer)[0]
    assert "not written down" not in watched.caption
    assert "SSD, tolerance 0.001" in watched.data["learned"]["step 500"]["decisions"]


STEPS = (500, 1000, 1500)  # those of the fixture


@pytest.mark.parametrize("kind", ["counts", "counts and errors", "ensemble"])
def test_watched_observations_are_decided_as_the_agent_decides(trained, tmp_path, kind):
    """A sure action and a risky one whose mean is better by a quarter: noise after 500 steps, so
    the sure one is taken; known after 1,500."""
    from surefoot.core.evidence import Known
    from surefoot.runs.logs import RunLog

    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "distributions.csv").unlink()
    (run / "agent.safetensors").unlink()
    z = np.array([[[0.9, 0.95, 1.05, 1.1], [-1.75, -0.75, 3.25, 4.25]]])
    with RunLog(run) as log:
        for step, n in zip(STEPS, (10, 100, 4000), strict=True):
            error = z.std(-1) / np.sqrt(n)
            counts = np.full((1, 2), n)
            if kind == "ensemble":
                shift = np.linspace(-1.5, 1.5, 10)[None, :, None] * error[:, None]
                log.distribution(step, z[:, None] + shift[..., None])
            else:
                log.distribution(step, z, counts if kind == "counts" else Known(counts, error))
    watched = of_kind(page_of(run), Explorer)[0]
    assert "not written down" not in watched.caption
    actions = {}
    for step, n in zip(STEPS, (10, 100, 4000), strict=True):
        taken = watched.data["learned"][f"step {step:,}"]["decisions"]["SSD, by evidence"]["0"][0]
        if kind != "ensemble":
            assert taken == sf.SSD().decide(z[0], 0, n=np.full(2, n)).action
        actions[step] = taken
    assert (actions[500], actions[1500]) == (0, 1)


def test_evidence_of_other_observations_is_not_taken(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    text = "step,state,action,member,mean,n,error\n500,0,0,0,1.0,10,0.1\n"
    (tmp_path / "run" / "evidence.csv").write_text(text)
    assert "not of the same observations" in warnings(page_of(tmp_path / "run"))


def test_what_is_explored_is_what_the_agent_holds(trained, trained_page):
    """Against sums made here; that the words are `agent.explain`'s is tested in the browser."""
    z = np.sort(np.asarray(sf.load(trained / "agent.safetensors").return_distribution(25)), -1)
    _, explorer = of_kind(trained_page, Explorer)
    learned = explorer.data["learned"]["this agent"]
    shown = learned["states"]["25"]
    np.testing.assert_allclose(shown["z"], z, rtol=1e-7)
    np.testing.assert_allclose(shown["curve"], np.cumsum(z, -1) / z.shape[1], rtol=1e-6)
    # F^(2) at a particle by its definition: the mean of what falls short of it.
    short = [[np.clip(x - row, 0, None).mean() for x in row] for row in z]
    np.testing.assert_allclose(shown["frontier"], short, rtol=1e-5, atol=1e-7)
    greedy = learned["decisions"]["greedy, tolerance 0"]["25"]
    assert greedy[0] == z.mean(-1).argmax()
    words = [explorer.data["sentences"][i] for i in greedy[3]]
    assert words[0].startswith(f"action {explorer.data['actions'][greedy[0]]}: ")


def test_a_training_without_its_agent_still_has_its_figures(trained, tmp_path):
    path = copied(trained, tmp_path)
    (path / "agent.safetensors").write_bytes(b"broken")
    (path / "episodes.csv").write_text("step,return\n1,x\n")
    page = page_of(path)
    assert figures(page) == ["watched-0"]
    assert len(of_kind(page, Explorer)) == 1  # the watched observations need no agent
    assert "the agent cannot be opened" in warnings(page)
    assert "Learning curve: not shown" in warnings(page)


def test_no_module_that_a_run_names_is_imported(trained, tmp_path, monkeypatch):
    (tmp_path / "stranger_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    path = configured(copied(trained, tmp_path), env="stranger_module:Env-v0")
    for name in ("distributions.csv", "episodes.csv"):
        (path / name).unlink()
    assert "made by 'stranger_module'" in warnings(path)


def test_an_agent_alone_is_a_training(trained, tmp_path):
    shutil.copy(trained / "agent.safetensors", tmp_path)
    (explorer,) = of_kind(tmp_path, Explorer)
    assert explorer.title == "The agent, state by state"


@pytest.mark.slow
def test_a_neural_agent_shows_its_first_decision(tmp_path):
    sf.NeuralAgent("CartPole-v1", hidden=(4,), seed=0).save(tmp_path / "agent.safetensors")
    (explorer,) = of_kind(tmp_path, Explorer)
    assert explorer.data["actions"] == ["push left", "push right"]
    assert explorer.data["places"][0]["label"].startswith("first observation, seed 0: ")


def test_a_sweep(tmp_path):
    run = RunDir.create(tmp_path / "s", {}, kind="sweep", seeds=[0, 1], command=["x"])
    cell = {"loss": "qr", "seeds": 2, "failed": 1, "mean": 3.0, "low": 1.0, "high": 5.0,
            "cvar_0.25": 2.0, "training_return": None}  # fmt: skip
    pair = {"a": "loss=qr", "b": "loss=wgf", "tasks": 1, "mean": 0.75, "low": 0.25, "high": 1.0}
    failures = {"loss=qr seed=2": "it <b>broke</b>"}
    run.write_summary({"cells": [cell], "improvements": [pair], "failures": failures})
    (run.path / "trials.csv").write_text("loss,seed,return,key\nqr,0,2,aa\nqr,1,4,../x\n")
    (run.path / "results").mkdir()
    (run.path / "results" / "aa.json").write_text('{"curve": [[10, 1], [20, 2]]}')
    page = page_of(run.path)
    assert figures(page) == ["cells", "profiles", "curves"]
    cells, better, failures = of_kind(page, DataTable)
    assert better.rows == (("loss=qr", "loss=wgf", "0.75 [0.25, 1.00]"),)
    assert "Few seeds: 2 in a cell." in warnings(page)
    assert cells.rows == (("loss qr", "2", "1", "3", "1", "5", "2", ""),)
    assert failures.rows == (("loss=qr seed=2", "it <b>broke</b>"),)
    assert "This run is not finished" in warnings(page)


# --- mistakes and the command --------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda p: p / "nowhere", "there is no such run directory or file"),
        (lambda p: p, "is not a run directory"),
        (lambda p: _written(p / "config.json", "[]").parent, "does not hold a JSON object"),
        (lambda p: _written(p / "config.json", "{").parent, "is not valid JSON"),
        (lambda p: _written(p / "comparison.json", "{}").parent, "is not a comparison"),
        (lambda p: _written(p / "one.csv", "a\n1\n2\n"), "at least 2 columns"),
    ],
)
def test_a_mistake_is_one_line(make, line, tmp_path, capsys):
    path = make(tmp_path)
    with pytest.raises(InputError, match=re.escape(line)):
        page_of(path)
    assert main(["report", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("surefoot: ")
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def _written(path, text):
    path.write_text(text)
    return path


def test_the_command_writes_and_replaces_the_page(tmp_path, capsys):
    path = copied(RESULTS / "figures", tmp_path)
    (path / "report.html").write_text("old")
    assert main(["report", str(path)]) == 0
    assert "report.html" in capsys.readouterr().out
    text = (path / "report.html").read_text()
    assert text.startswith("<!doctype html>")
    assert len(text) < 500_000  # 0.1.0: 5 MB, nearly all of it plotly
    drawn = re.search(r'src="data:image/svg\+xml,([^"]*)"', text)[1]
    assert unquote(drawn.replace("&#39;", "'")).startswith("<svg")
    assert main(["report", str(path), "--out", str(tmp_path / "sub" / "page.html")]) == 0
    assert (tmp_path / "sub" / "page.html").is_file()
    assert main(["report"]) == 2


def test_commands_are_written_as_a_shell_takes_them(tmp_path):
    rows = dict(of_kind(small_run(tmp_path / "run"), Folded)[0].rows)
    assert rows["command"] == "surefoot 'x y'"
    assert rows["seeds"] == "[3]"


def test_a_sweep_has_the_same_words_on_the_page_and_in_the_terminal():
    row = {"loss": "qr", "seeds": 2, "failed": 0, "mean": 1.0, "low": 0.0, "high": 2.0}
    row |= {"cvar_0.25": 0.0, "training_return": 1.0}
    heads = [column.header for column in to_table([row], "sweep").columns]
    assert heads[-1] == NUMBERS["training_return"]
