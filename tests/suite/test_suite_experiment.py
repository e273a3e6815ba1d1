"""`surefoot suite`: what is made of its tables, its page, its mistakes; slow: the real thing."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import surefoot as sf
from surefoot.cli import main
from surefoot.cli.suite import overview
from surefoot.envs import FINITE_TASKS
from surefoot.errors import InputError
from surefoot.plots import render
from surefoot.report import report
from surefoot.runs.directory import RunDir
from surefoot.suite import QUICK_NOTE, TABLES, heading
from surefoot.suite.cells import SuiteConfig
from surefoot.suite.experiment import EXPERIMENT, judge, read, summary
from surefoot.suite.figures import draw

ROOT = Path(__file__).parents[2]
SEEDS = 6


def table(question, right):
    """As a cell writes it: `right` is the share of right decisions of each player."""
    players = [name for name in right for _ in range(SEEDS)]
    shares = np.repeat(list(right.values()), SEEDS)
    lost = 0.75 * (1 - shares) if question == "price" else np.zeros(len(shares))
    words = np.where(shares == 1, "not contradicted", "same")
    return {
        "player": np.array(players),
        "seed": np.tile(np.arange(SEEDS), len(right)),
        "right": shares,
        "given_up": lost,
        "spread": 1 - shares,
        "word": words,
    }


@pytest.fixture
def results():
    config = SuiteConfig(tasks=("insurance", "portfolio"), seeds=SEEDS, agents=("ssd", "greedy"))
    tables = {}
    for cell in config.cells():
        greedy = 1.0 if cell.question == "price" else 0.5
        own = 0.9 if (cell.task, cell.question) == ("portfolio", "price") else 1.0
        tables[cell.name] = table(cell.question, {"ssd": own, "greedy": greedy})
    return read(config, tables)


def test_cells_are_named_apart():
    names = [cell.name for cell in SuiteConfig(tasks=("all",)).cells()]
    assert len(set(names)) == len(names)
    assert "same-insurance-tie-x1000" in names
    assert "network-noisy-cartpole-trap-8-times-9" in names
    assert not any(name.startswith("sb3-insurance") for name in names)
    # By default the finite tasks; in a quick look all of them, if none is named.
    assert {cell.task for cell in SuiteConfig().cells()} == set(FINITE_TASKS)
    assert len({cell.task for cell in SuiteConfig(quick=True).cells()}) == 9
    assert {cell.task for cell in SuiteConfig(quick=True, tasks=("portfolio",)).cells()} == {
        "portfolio"
    }


def test_rows_and_claims(results):
    row = next(r for r in results.of("same", "ssd") if r.title == "portfolio, price")
    assert row.given_up.mean == pytest.approx(0.075)
    assert row.solved is False
    assert next(r for r in results.of("same", "greedy") if r.title == "portfolio, price").solved
    claims = {claim.id: claim for claim in judge(results)}
    assert claims["suite/same-tie"].verdict == "reproduced"
    assert claims["suite/same-price"].verdict == "partly"
    assert "portfolio, price (right 0.90, gives up 0.07)" in str(claims["suite/same-price"])
    assert claims["suite/same-others"].verdict == "not reproduced"
    assert claims["suite/online-established"].verdict == "not reproduced"


def test_an_interval_of_shares_ends_where_shares_end():
    config = SuiteConfig(tasks=("insurance",), seeds=SEEDS, agents=("greedy",), tables=("same",))
    made = table("tie", {"greedy": 0.9})
    made["right"] = np.array([1, 1, 1, 1, 1, 0.4])
    row = read(config, {cell.name: made for cell in config.cells()}).of("same", "greedy")[0]
    # The mean is 0.9, Student's interval 0.9 -+ 0.26; a loss may well lie below 0.
    assert (row.right.mean, row.right.high) == (pytest.approx(0.9), 1.0)
    assert row.right.low == pytest.approx(0.9 - 2.5706 * 0.1, abs=1e-3)


def test_networks_are_judged():
    # SSD is right everywhere, greedy only on prices; trading has no right action and is left out.
    config = SuiteConfig(tasks=("two-roads", "mean-reversion"), network_seeds=2)
    tables = {}
    for cell in config.cells():
        one = 1.0 if cell.question == "price" else 0.5
        ours = {"network: ssd": 1.0, "network: greedy": one}
        made = table(cell.question, ours if cell.way == "network" else {"qr-dqn as it is": 0.5})
        if cell.task == "mean-reversion":
            made["right"] = np.full(len(made["right"]), np.nan)
        tables[cell.name] = made | {"mean": made["right"], "note": np.full(len(made["word"]), "")}
    results = read(config, tables)
    # Three questions, at three scales.
    claims = {claim.id: claim for claim in judge(results)}
    assert claims["suite/network-tie"].measured == "3 of 3"
    assert claims["suite/network-others"].verdict == "reproduced"
    assert "all 3 questions" in claims["suite/network-others"].paper
    assert "network: ssd 3" in claims["suite/network-others"].measured
    assert set(draw(results)) == {"table-network"}
    tasks = {one["task"] for one in summary(results)["against ssd"]}
    assert "two-roads, tie" in tasks
    assert "mean-reversion, tie" not in tasks


def test_differences_are_corrected(results):
    found = summary(results)["against ssd"]
    same = [one for one in found if one["way"] == "same" and one["task"] == "insurance, tie"]
    assert same[0]["difference"].mean == pytest.approx(0.5)
    assert all(one["holm_p"] >= one["p"] for one in found)


def test_the_picture_says_it_without_colour(results):
    figures = draw(results)
    assert set(figures) == {"table-same", "table-online"}
    signs = {text.get_text() for text in figures["table-same"].axes[0].texts}
    assert {"✓", "✗"} <= signs
    assert "price: deviations of return given up" in figures["table-same"].axes[0].get_title()
    png, _ = render(figures["table-same"])
    assert png[:4] == b"\x89PNG"


def test_the_page_begins_with_the_table(results, tmp_path):
    run = RunDir.create(tmp_path / "suite", {"seeds": SEEDS}, kind="suite", seeds=[0])
    run.write_summary(summary(results))
    page = report(run.path).read_text("utf-8")
    assert page.index("The rule: all decide") < page.index("Provenance")
    assert QUICK_NOTE not in page
    assert "✗" in page
    assert "insurance, price" in page
    (run.path / "summary.json").write_text(json.dumps({"rows": [{"way": "same"}]}))
    assert "is not that of a suite" in report(run.path).read_text("utf-8")


def test_a_quick_run_says_that_it_does_not_judge(results, tmp_path):
    run = RunDir.create(tmp_path / "suite", {"quick": True}, kind="suite", seeds=[0])
    run.write_summary(summary(results))
    assert QUICK_NOTE in report(run.path).read_text("utf-8")


def test_the_tables_fit_a_terminal_of_80_columns():
    rows = json.loads((ROOT / "results" / "suite" / "summary.json").read_text())["rows"]
    console = Console(file=io.StringIO(), width=80)
    for title, ways in TABLES.values():
        for made in overview(rows, title, ways):
            console.print(*made)
    printed = console.file.getvalue()
    assert "…" not in printed
    for row in rows:  # every player by its whole name
        assert row["player"] in printed
    assert "-0.00" not in printed
    # Of trading no action is known to be right: it is among no ties.
    assert printed.count("mean-\n") == 1
    assert heading("mean-reversion", "tie") == "mean-reversion"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "insurances"], "unknown task 'insurances'"),
        (["--agents", "sdd"], "unknown agent 'sdd'"),
        (["--seeds", "1"], "seeds = 1"),
        (["--scales", "2"], "scales = (2.0,)"),
        (["--engine", "remote"], "unknown engine 'remote'"),
    ],
)
def test_mistakes_are_one_line(words, said, capsys):
    assert main(["suite", *words]) == 2
    text = capsys.readouterr().err
    assert said in text
    assert len(text.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_quick_suite_can_be_taken_up_again(tmp_path, capsys):
    words = ["suite", "--quick", "--tasks", "portfolio", "--engine", "serial", "--agents", "ssd",
             "cvar:0.25", "--out", str(tmp_path / "suite")]  # fmt: skip
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "all decide on the same learned tables\ntrap: share of right decisions\n" in printed
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "suite").glob("*.parquet")}
    for name in ("complete.json", "online-portfolio-trap.parquet"):
        (tmp_path / "suite" / name).unlink()
    assert main(words) == 0
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "suite").glob("*.parquet")}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"online-portfolio-trap.parquet"}
    rows = EXPERIMENT.results(RunDir(tmp_path / "suite")).of("same", "ssd")
    assert next(row for row in rows if row.question == "trap").right.mean > 0.5


@pytest.mark.slow
def test_a_model_of_sb3():
    sb3 = pytest.importorskip("sb3_contrib", reason="`make peers`")

    def train(env, seed):
        model = sb3.QRDQN("MlpPolicy", env, seed=seed, learning_starts=50, device="cpu")
        return model.learn(1_500)

    scores = sf.suite.run(train=train, tasks=("portfolio", "two-roads"), questions=("trap",))
    assert scores.rows[0][2].right in (0.0, 1.0)
    assert 0 <= scores.rows[1][2].right <= 1
    models = [train(sf.suite.strangers.environment("portfolio", "trap"), seed) for seed in (0, 1)]
    own = sf.suite.run(sf.adapters.act(models), tasks=("portfolio",), questions=("trap",))
    assert own.rows[0][2].given_up >= 0
    with pytest.raises(InputError, match="one model"):
        sf.suite.run(sf.adapters.act(models[0]), tasks=("portfolio",))
