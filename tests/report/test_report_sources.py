"""What a page is made from: experiments, fresh clones, folders, comparisons, trainings."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from surefoot.cli import main
from surefoot.comparison import compare_file
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper.claims import Claim, write_claims
from surefoot.report import report
from surefoot.report.parts import Chart, Explorer, Note, Picture, Table
from surefoot.report.sources import page_of
from surefoot.runs.directory import RunDir

RESULTS = Path(__file__).resolve().parents[2] / "results"
PNG = bytes.fromhex("89504e470d0a1a0a")


def of_kind(path, kind):
    sections = page_of(path).sections
    return [part for section in sections for part in section.parts if isinstance(part, kind)]


def named(path, kind):
    return [part.name for part in of_kind(path, kind)]


def fresh_clone(name, to):
    """A stored experiment as git has it: no tables, but summary, claims and pictures."""
    ignore = shutil.ignore_patterns("*.parquet", "*.svg", "report.html")
    return Path(shutil.copytree(RESULTS / name, to / name, ignore=ignore))


@pytest.mark.parametrize(
    ("name", "charts", "pictures"),
    [
        ("figures", {"dispersion-space", "dominance"}, set()),
        ("ablation", {"ablation"}, set()),
        ("regression", {"differences-five", "differences-six", "differences-narrow"},
         {"errors-five", "errors-six", "errors-narrow"}),
        ("risky-cliff", {"final", "who-decided", "tolerance"},
         {"steps", "return", "falls", "top-row", "ties", "paths"}),
    ],
)  # fmt: skip
def test_a_fresh_clone_shows_every_figure(name, charts, pictures, tmp_path):
    path = fresh_clone(name, tmp_path)
    assert set(named(path, Chart)) == charts
    shown = of_kind(path, Picture)
    assert {picture.name for picture in shown} == pictures
    assert all(".parquet is not here" in picture.why for picture in shown)
    claims = json.loads((path / "claims.json").read_text())["claims"]
    table = of_kind(path, Table)[0]
    assert [row[0][0] for row in table.rows] == [claim["id"] for claim in claims]
    assert [row[3].text for row in table.rows] == [claim["verdict"] for claim in claims]


@pytest.mark.slow
def test_a_fresh_clone_of_the_evaluation_is_explored_by_rollouts(tmp_path):
    path = fresh_clone("evaluation", tmp_path)
    assert named(path, Chart) == ["errors"]
    assert len(of_kind(path, Picture)) == 5
    (explorer,) = of_kind(path, Explorer)
    (learned,) = explorer.data["learned"].values()
    start = learned["states"]["36"]
    # Moving right from the start falls for sure: at once -100, then at least 13 steps at 0.9.
    assert max(start["z"][1]) < -100
    assert start["mean"][1] == pytest.approx(np.mean(start["z"][1]), rel=1e-5)


def test_violins_hold_the_errors_of_the_table(tmp_path):
    path = fresh_clone("regression", tmp_path)
    estimates = np.array([1.0, 2.0, 5.0])
    columns = {"reading": ["five"] * 3, "method": ["QR"] * 3, "particles": [5] * 3}
    columns |= {"converged": [True, True, False], "trial": [0, 1, 2]}
    columns |= {f"estimate_{k}": estimates for k in (1, 2)}
    columns |= {f"truth_{k}": np.full(3, 1.5) for k in (1, 2)}
    RunDir(path).write_table(columns)
    chart = next(c for c in of_kind(path, Chart) if c.name == "errors-five")
    (trace,) = chart.variants[""][0].data
    assert trace["y"] == [0.5, 0.5]  # the trial that did not converge is left out
    assert trace["x"] == ["5 particles"] * 2


def gym_run(path, **config):
    run = RunDir.create(
        path, {"tasks": ["cart-pole"], **config}, kind=path.name, seeds=[0, 1], command=["x"]
    )
    write_claims(run, [])
    run.mark_complete()
    return run


def test_control_tasks(tmp_path):
    run = gym_run(tmp_path / "gym", target_period=100)
    for loss, gain in (("qr", 1.0), ("wgf", 2.0)):
        for seed in (0, 1):
            table = {"loss": [loss] * 3, "seed": [seed] * 3, "step": [10, 20, 30],
                     "return": [gain * (seed + 1) * s for s in (1.0, 2.0, 3.0)]}  # fmt: skip
            run.write_table(table, f"cart-pole.{loss}-{seed}")
    moments = {"qr": {"arms": 0.9, "fork": 0.8, "mean_error": 0.1}}
    scores = {"qr": [1.0, 2.0], "wgf": [3.0, 4.0], "exploring": {"qr": [5.0], "wgf": [6.0]}}
    run.write_summary({"cart-pole": scores, "moments": moments})
    charts = {chart.name: chart for chart in of_kind(run.path, Chart)}
    assert set(charts) == {"returns", "scores", "second-moments"}
    thick = [t for t in charts["returns"].variants[""][0].data if "opacity" not in t]
    assert [t["legendgroup"] for t in thick] == ["qr", "wgf"]
    assert thick[1]["y"] == [3, 6, 9]  # the mean of 2 and 4 times the step
    assert charts["scores"].variants[""][0].data[0]["x"] == [1, 2, 5]


def test_choices_of_the_control_tasks(tmp_path):
    run = gym_run(tmp_path / "gym-choices", target_periods=[100])
    row = {"target_period": 100, "step_size": 1.0, "half": [1.0], "whole": [2.0]}
    rows = [
        row | {"loss": "qr", "max_grad_norm": 10.0},
        row | {"loss": "wgf", "max_grad_norm": None, "target_mix": 0.01},
    ]
    run.write_summary({"cart-pole": rows})
    (chart,) = of_kind(run.path, Chart)
    (panel,) = chart.variants[""]
    assert [t["x"] for t in panel.data] == [[1], [2], [1], [2]]
    told = panel.layout["yaxis"]["ticktext"]
    assert told == ["qr, period 100, clip 10", "wgf, average 0.01, h 1, no clip"]


def test_a_sweep(tmp_path):
    run = RunDir.create(tmp_path / "s", {}, kind="sweep", seeds=[0, 1], command=["x"])
    cell = {"loss": "qr", "seeds": 2, "failed": 1, "mean": 3.0, "low": 1.0, "high": 5.0,
            "cvar_0.25": 2.0, "training_return": None}  # fmt: skip
    run.write_summary({"cells": [cell], "failures": {"loss=qr seed=2": "it <b>broke</b>"}})
    (run.path / "trials.csv").write_text("loss,seed,return,key\nqr,0,2,aa\nqr,1,4,bb\n")
    (run.path / "results").mkdir()
    for key, gain in (("aa", 1), ("bb", 2)):
        curve = json.dumps({"curve": [[10, gain], [20, 2 * gain]]})
        (run.path / "results" / f"{key}.json").write_text(curve)
    charts = {chart.name: chart for chart in of_kind(run.path, Chart)}
    mean = charts["cells"].variants[""][0].data[0]
    assert (mean["x"], mean["error_x"]["array"]) == ([3], [2])
    assert charts["curves"].variants[""][0].data[1]["y"] == [1.5, 3]  # (1 + 2) / 2, (2 + 4) / 2
    assert "loss=qr seed=2: it <b>broke</b>." in [note.text for note in of_kind(run.path, Note)]


def test_numbers_of_a_chart_are_those_of_the_summary(tmp_path):
    path = fresh_clone("risky-cliff", tmp_path)
    summary = json.loads((path / "summary.json").read_text())["losses"]["wgf-mixture"]["ssd"]
    final = next(c for c in of_kind(path, Chart) if c.name == "final")
    falls = final.variants[""][1]
    trace = next(t for t in falls.data if t["legendgroup"] == "SSD")
    assert trace["x"][0] == pytest.approx(summary["falls"]["mean"], rel=1e-5)
    half = summary["falls"]["high"] - summary["falls"]["mean"]
    assert trace["error_x"]["array"][0] == pytest.approx(half, rel=1e-4)


def some_run(path, claims=(), **config):
    run = RunDir.create(
        path, {"something": 1, **config}, kind="figures", seeds=[3], command=["surefoot", "x y"]
    )
    write_claims(run, claims)
    run.write_figure("a-figure", PNG, b"<svg/>")
    run.mark_complete()
    return run


def test_an_unknown_experiment_shows_its_claims_and_pictures(tmp_path):
    claim = Claim("a/b", "1", "said", "found", "partly", "since", {"x": Interval(1, 0, 2, 9)})
    some_run(tmp_path / "run", [claim])
    (table,) = of_kind(tmp_path / "run", Table)
    assert table.rows[0][2] == ["found", "x 1.00 [0.00, 2.00]"]
    assert named(tmp_path / "run", Picture) == ["a-figure"]
    text = report(tmp_path / "run").read_text()
    assert "surefoot &#x27;x y&#x27;" in text  # the command, as a shell takes it
    assert "[3]" in text


def test_a_damaged_table_is_said_and_its_picture_shown(tmp_path):
    path = fresh_clone("regression", tmp_path)
    (path / "results.parquet").write_bytes(b"PAR1 and nothing else")
    shown = {p.name: p.why for p in of_kind(path, Picture)}
    assert set(shown) == {"errors-five", "errors-six", "errors-narrow"}
    assert "results.parquet" in shown["errors-five"]


@pytest.mark.parametrize("name", ["figures", "ablation", "regression", "risky-cliff", "evaluation"])
def test_a_summary_of_nonsense_is_no_traceback(name, tmp_path):
    path = fresh_clone(name, tmp_path)
    (path / "summary.json").write_text('{"losses": 3, "cells": {}, "accuracy": [1]}')
    assert page_of(path).sections


def test_an_unfinished_run_says_so(tmp_path):
    path = fresh_clone("figures", tmp_path)
    (path / "complete.json").unlink()
    assert "not come to its end" in of_kind(path, Note)[0].text


def test_a_folder_holds_all_its_runs_and_tells_the_broken_one(tmp_path):
    fresh_clone("figures", tmp_path)
    fresh_clone("ablation", tmp_path)
    some_run(tmp_path / "broken")
    (tmp_path / "broken" / "claims.json").write_text("{")
    page = page_of(tmp_path)
    assert [s.title for s in page.sections] == ["Overview", "figures", "ablation", "broken"]
    assert "cannot be shown" in page.sections[-1].parts[0].text
    rows = page.sections[0].parts[0].rows
    assert rows[0][2] == "5 claims: 5 reproduced"


# --- comparisons ---------------------------------------------------------------------------


@pytest.fixture
def returns(tmp_path):
    rng = np.random.default_rng(0)
    rows = zip(rng.normal(2, 1, 60), rng.normal(0, 2, 60), strict=True)
    path = tmp_path / "returns.csv"
    path.write_text("good,bad\n" + "\n".join(f"{a},{b}" for a, b in rows))
    return path


def test_a_file_and_a_directory_give_the_same_page_of_a_comparison(returns, tmp_path):
    compare_file(returns, out=tmp_path / "out", resamples=200)
    charts = [of_kind(path, Chart)[0] for path in (returns, tmp_path / "out")]
    assert charts[0].variants == charts[1].variants
    overview = of_kind(tmp_path / "out", Table)[0]
    assert overview.rows[0][1:] == ("good", "good", "good")


def test_a_comparison_without_its_returns_draws_its_percentiles(returns, tmp_path):
    compare_file(returns, out=tmp_path / "out", resamples=200)
    before = of_kind(tmp_path / "out", Chart)[0]
    for kind in ("csv", "parquet"):
        (tmp_path / "out" / f"returns.{kind}").unlink(missing_ok=True)
    after = of_kind(tmp_path / "out", Chart)[0]
    assert "not here" in after.caption
    # F^-2 at the percentiles is stored: the curves agree there.
    for panel in (1, 2):
        old, new = (c.variants[""][panel].data[0]["y"][9::10] for c in (before, after))
        np.testing.assert_allclose(old, new, atol=2e-3)


# --- trainings -----------------------------------------------------------------------------


def test_a_training_run(trained):
    assert named(trained, Chart) == ["learning", "watched"]
    assert named(trained, Explorer) == ["explorer"]
    learning = of_kind(trained, Chart)[0].variants[""][0]
    own = [trace for trace in learning.data if trace["legendgroup"] == "evaluation"]
    evaluation = next(trace for trace in own if trace["mode"] != "lines")
    # Returns of evaluation i were -50 + i k for k = 0, 1, 2: their mean is -50 + i.
    assert evaluation["y"] == [-49, -48, -47]
    assert list(of_kind(trained, Chart)[1].variants) == ["0: start"]


def test_a_training_without_its_agent_still_has_curves(trained, tmp_path):
    path = Path(shutil.copytree(trained, tmp_path / "run"))
    (path / "agent.safetensors").write_bytes(b"broken")
    assert named(path, Chart) == ["learning", "watched"]
    assert "agent cannot be opened" in of_kind(path, Note)[0].text


def test_no_module_that_a_run_names_is_imported(trained, tmp_path, monkeypatch):
    path = Path(shutil.copytree(trained, tmp_path / "run"))
    (tmp_path / "stranger_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"env": "stranger_module:Env-v0"}))
    assert named(path, Chart) == ["learning", "watched"]
    assert "made by 'stranger_module'" in of_kind(path, Note)[0].text


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
    path = fresh_clone("figures", tmp_path)
    (path / "report.html").write_text("old")
    assert main(["report", str(path)]) == 0
    assert "report.html" in capsys.readouterr().out
    assert (path / "report.html").read_text().startswith("<!doctype html>")
    assert (path / "report.html").stat().st_size < 15e6
    assert main(["report", str(path), "--out", str(tmp_path / "sub" / "page.html")]) == 0
    assert (tmp_path / "sub" / "page.html").is_file()
    assert main(["report"]) == 2
