"""What a careless or hostile user types, passes and leaves in folders: one line, or the answer."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from tiny import NETWORK, TABLE

import surefoot as sf
from surefoot.agents.adapters import act, equal_particles
from surefoot.agents.explain import explain
from surefoot.cli import main
from surefoot.core import stats
from surefoot.errors import markdown_text, visible
from surefoot.report import report
from surefoot.runs import tables
from surefoot.training.sweep import Sweep

CLIFF = "surefoot/RiskyCliff-v0"


def one_line(capsys, words: list[str], code: int = 2) -> str:
    """What is said of a mistake: one line, and the code for it."""
    capsys.readouterr()
    assert main(words) == code
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("surefoot: ")]
    assert len(told) == 1
    return told[0]


# --- what is typed ---------------------------------------------------------------------------

MODULES = {
    "gone_exit": "import sys; sys.exit('go away')",
    "gone_raise": "class Own(BaseException): pass\nraise Own('no')",
    "gone_syntax": "def (",
    "gone_import": "import surefoot_no_such_module",
}


@pytest.mark.parametrize("name", [*MODULES, "surefoot_nowhere", "", "..", "a b", "x:y", "a\0b"])
def test_an_environment_whose_import_fails(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    if name in MODULES:
        (tmp_path / f"{name}.py").write_text(MODULES[name])
    told = one_line(capsys, ["train", f"{name}:X-v0", "--out", "run"])
    assert "environment" in told
    assert "\0" not in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((CLIFF, "--steps", "9" * 200), "steps is about 2^665: it must be below 2^53"),
        ((CLIFF, "--seed", "9" * 30), "seed is about 2^100"),
        ((CLIFF, "--memory", "9" * 30), "memory is about 2^100"),
        ((CLIFF, "--particles", str(10**12)), "particles = 1000000000000: it must be below 2^31"),
        ((CLIFF, "--particles", str(10**9)), "a table of 48 states x 4 actions would take"),
        ((CLIFF, "--horizon", str(2**31)), "horizon = 2147483648: it must be below 2^31"),
        (("CartPole-v1", "--replay-size", str(10**15)), "the network with its replay would take"),
        (("CartPole-v1", "--hidden", str(10**14)), "the network with its replay would take"),
        ((CLIFF, "--eval-episodes", "1e12"), "eval_episodes = 1000000000000: they would take"),
        (
            (CLIFF, "--env-option", "rows=2000", "--env-option", "columns=20000"),
            "a cliff of 2,000 x 20,000 cells: at most 1,000,000",
        ),
    ],
)
def test_sizes_are_looked_at_before_anything_is_made(words, told, tmp_path, capsys):
    assert told in one_line(capsys, ["train", *words, "--out", str(tmp_path / "run")])
    assert not (tmp_path / "run").exists()


def test_a_hundred_thousand_layers_and_a_sweep_of_millions():
    with pytest.raises(sf.InputError, match="hidden has 100,000 layers: at most 100"):
        sf.NeuralConfig(hidden=(8,) * 100_000)
    base = {"env": CLIFF, "steps": 10}
    with pytest.raises(sf.InputError, match="a sweep of 200,000,000 trainings"):
        Sweep(base, {"memory": range(1, 2001), "particles": range(1, 20_001)})
    with pytest.raises(sf.InputError, match="a value occurs twice"):
        Sweep(base, {"hidden": [[8], [16], [8]]})
    from surefoot.training.sweep.spec import parse_seeds

    with pytest.raises(sf.InputError, match="at most 1,000,000"):
        parse_seeds("0:100000000000")


@pytest.mark.wide
def test_a_million_million_episodes_are_refused_before_the_first():
    table = sf.TabularAgent(CLIFF, **TABLE)
    network = sf.NeuralAgent("CartPole-v1", compiled=True, **NETWORK)
    for evaluate in (table.evaluate, network.evaluate, lambda n: sf.evaluate(table, episodes=n)):
        with pytest.raises(sf.InputError, match="episodes = 1000000000000: they would take"):
            evaluate(10**12)
    with pytest.raises(sf.InputError, match="eval_episodes = 1000000000000"):
        table.learn(10, eval_every=10, eval_episodes=10**12)
    assert table.num_timesteps == 0
    with pytest.raises(sf.InputError, match="resamples = 1000000000000: they would take"):
        sf.compare({"a": GOOD, "b": GOOD}, resamples=10**12)
    with pytest.raises(sf.InputError, match="episodes = 1000000000000: they would take"):
        sf.suite.run(table, episodes=10**12)


def test_a_small_file_that_unpacks_to_gigabytes(tmp_path, capsys, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr(tables, "MOST_CELLS", 1_000_000)
    path = tmp_path / "bomb.parquet"
    polars.DataFrame({"a": polars.repeat(1.0, 2_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 50_000
    read = []
    monkeypatch.setattr(polars, "read_parquet", lambda *a, **k: read.append(a))
    for command in ("compare", "report"):
        told = one_line(capsys, [command, str(path)])
        assert "has 2,000,000 rows of 1 columns: more than 1,000,000 cells are not read" in told
    assert not read


@pytest.mark.parametrize(
    ("task", "knobs"),
    [
        ("insurance", {"periods": 10**9}), ("two-suppliers", {"periods": 10**9}),
        ("maintenance", {"periods": 10**9}), ("portfolio", {"weights": 10**9 + 1}),
        ("many-equals", {"noisy": 10**8}), ("many-equals", {"noisy": 10**4, "length": 10**4}),
    ],
)  # fmt: skip
def test_a_task_without_an_end_is_refused_before_it_is_made(task, knobs):
    with pytest.raises(sf.InputError, match="at most 1,000,000 pairs of them"):
        sf.mdp.finite_task(task, **knobs)


@pytest.mark.parametrize(
    "words",
    [
        "reproduce theory --trials 1e9", "reproduce risky-cliff --episodes 1e9",
        "suite --seeds 1e9", "suite --episodes 1e9", "demo --trials 1e9",
    ],
)  # fmt: skip
def test_an_experiment_without_an_end_is_refused_before_it_begins(words, tmp_path, capsys):
    pytest.importorskip("polars")
    told = one_line(capsys, [*words.split(), "--out", str(tmp_path / "out")])
    assert "= 1,000,000,000: at most 1,000,000" in told
    assert not (tmp_path / "out").exists()


def test_a_cell_that_holds_a_list_is_not_unpacked(tmp_path, capsys, monkeypatch):
    polars = pytest.importorskip("polars")
    path = tmp_path / "lists.parquet"
    polars.DataFrame({"a": [np.zeros(1_000_000, np.int8)], "b": [[1]]}).write_parquet(path)
    assert path.stat().st_size < 10_000
    assert "column 'a' holds Array(Int8, " in one_line(capsys, ["compare", str(path)])
    monkeypatch.setattr(tables, "MOST_TEXT", 5_000)
    polars.DataFrame({"a": ["x" * 1_000] * 9}).write_parquet(path)
    assert "more than 5,000 bytes of text are not read" in one_line(capsys, ["report", str(path)])


# --- what is shown ---------------------------------------------------------------------------

NASTY = "\x1b[31mred\u202e|[x](y)<b>*_`\ud800\r"


@pytest.mark.wide
def test_text_of_files_is_shown_and_not_obeyed(tmp_path, capsys):
    assert visible(NASTY) == r"\x1b[31mred\u202e|[x](y)<b>*_`\ud800\r"
    assert visible("Zürich, 東京 ok") == "Zürich, 東京 ok"
    assert markdown_text("a|b\n<i>*x*_y_`z` [l](u) [0.9, 1]") == (
        r"a\|b \<i>\*x\*\_y\_\`z\` [l]\(u) [0.9, 1]"
    )
    name = "\x1b[31mred[/bold]|[x](y)<b>"
    path = tmp_path / "a.csv"
    path.write_text(f"{name},b\n1,2\n3,5\n4,4\n")
    assert main(["compare", str(path), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    written = (tmp_path / "out" / "comparison.md").read_text()
    for text in (shown.out, shown.err, written):
        assert "\x1b" not in text
    assert r"\\x1b[31mred[/bold]\|[x]\(y)\<b>" in written
    told = one_line(capsys, ["compare", str(tmp_path / "no\x1b[31m.csv")])
    assert r"no\x1b[31m.csv: there is no such file" in told
    one_line(capsys, ["compare", "\ud800.csv"])


def test_claims_of_a_file_are_shown_and_not_obeyed():
    from rich.console import Console

    from surefoot.paper.claims import Claim, to_markdown, to_table

    claim = Claim("a", NASTY, "[red]x[/blue]", "y", "reproduced")
    assert "\x1b" not in to_markdown([claim])
    out = io.StringIO()
    Console(file=out, width=200).print(to_table([claim]))
    assert r"\x1b[31mred" in out.getvalue()
    assert "[red]x[/blue]" in out.getvalue()


def test_one_bad_run_does_not_take_the_page_of_a_folder_with_it(tmp_path):
    configs = [
        '{"kind": "\\ud800"}',
        '{"kind": "training", "env": "\\ud800\\u001b", "watch": ["\\udfff"]}',
        "[]", '{"kind": 3}', '{"kind": "sweep"}', '{"kind": "comparison"}',
        '{"kind": "risky-cliff", "trials": "x"}', "x", '{"kind": "training"}',
    ]  # fmt: skip
    for i, config in enumerate(configs):
        run = tmp_path / f"run{i}"
        run.mkdir()
        (run / "config.json").write_text(config)
        for name in ("summary.json", "claims.json", "comparison.json"):
            (run / name).write_text('{"evaluation_return": "\\ud800", "claims": 3, "format": 1}')
        (run / "episodes.csv").write_text("step,return\n1e400,1e308\n2,-1e308\n")
        (run / "distributions.csv").write_text("step,state,action,particle,value\n1,1e18,nan,0,1\n")
        os.mkfifo(run / "trials.csv")
    page = report(tmp_path).read_text()
    assert all(f"run{i}" in page for i in range(len(configs)))


# --- what is passed --------------------------------------------------------------------------

GOOD = np.array([1.0, 2.0, 3.0])
WRONG = {
    "text": np.array(["1", "2", "3"]),
    "bytes": np.array([b"1", b"2", b"3"]),
    "objects": np.array([1, 2, 3], object),
    "dates": np.array([1, 2, 3], "M8[D]"),
    "spans": np.array([1, 2, 3], "m8[D]"),
    "complex": np.array([1, 2, 3j]),
    "masked": np.ma.array(GOOD, mask=[False, True, False]),
    "nan": np.array([1.0, np.nan, 3.0]),
    "infinite": np.array([1.0, -np.inf, 3.0]),
    "none": np.zeros(0),
    "too wide": np.array([2**60 + 1, 2, 3]),
    "a scalar": np.float64(1.0),
    "too large to be added up": np.array([1e308, 1e308, 1e308]),
}
CALLS = {
    "ssd over": lambda x: sf.ssd_dominates(x, GOOD),
    "ssd under": lambda x: sf.ssd_dominates(GOOD, x),
    "fsd": lambda x: sf.fsd_dominates(x, GOOD),
    "violation": lambda x: sf.violation(x, GOOD),
    "almost": lambda x: sf.almost_ssd_ratio(GOOD, x),
    "matrix": lambda x: sf.dominance_matrix(np.ma.stack([x, x]) if is_masked(x) else stacked(x)),
    "set": lambda x: sf.dominant_set(np.ma.stack([x, x]) if is_masked(x) else stacked(x)),
    "quantile": lambda x: sf.quantile(x, 0.5),
    "cumulative": lambda x: sf.cumulative_quantile(x, 0.5),
    "cdf": lambda x: sf.cumulative_cdf(x, 1.0),
    "cvar": lambda x: sf.cvar(x, 0.5),
    "wasserstein": lambda x: sf.wasserstein(x, GOOD),
    "weights": lambda x: sf.ssd_dominates(GOOD, GOOD, x_weights=x),
    "compare": lambda x: sf.compare({"a": x, "b": GOOD}),
}


def is_masked(x) -> bool:
    return isinstance(x, np.ma.MaskedArray)


def stacked(x):
    return np.stack([x, x])


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_sample_is_refused_everywhere(kind):
    wrong = WRONG[kind]
    for name, call in CALLS.items():
        if kind == "too wide" and name == "compare":  # statistics of doubles, as all of them are
            continue
        with pytest.raises(sf.InputError):
            call(wrong)
    if kind not in ("nan", "infinite", "none", "too wide", "a scalar"):
        pair = np.ma.stack([wrong, wrong]) if is_masked(wrong) else stacked(wrong)
        for policy in (sf.Greedy(), sf.SSD(0.0)):
            with pytest.raises(sf.InputError):
                policy.decide(pair, 0)
        with pytest.raises(sf.InputError):
            explain(pair, sf.SSD(0.0), 0)
        for model in (lambda _: pair[None], lambda _: equal_particles(wrong, np.full(3, 1 / 3), 3)):
            with pytest.raises(sf.InputError):
                act(model, "ssd:0.1").predict(np.zeros((1, 4)))
    if kind not in ("nan", "infinite", "none", "too wide", "a scalar", "too large to be added up"):
        with pytest.raises(sf.InputError):
            stats.mean_interval(wrong)
        with pytest.raises(sf.InputError):
            process(reward_mean=wrong)


def process(**arrays) -> sf.TabularMDP:
    """Three outcomes of one action."""
    usual = {"probability": [0.5, 0.25, 0.25], "reward_mean": GOOD} | arrays
    return sf.TabularMDP(
        next_state=np.zeros((1, 1, 3), int), terminal=np.ones((1, 1, 3)),
        **{name: np.reshape(x, (1, 1, 3)) if isinstance(x, list) else x.reshape(1, 1, 3)
           for name, x in usual.items()},
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": np.ma.array([9, 9], mask=[0, 1])}, {"n": np.array(["9", "9"])},
        {"n": np.array([np.nan, 9])}, {"mask": np.ma.array([True, True], mask=[1, 0])},
        {"mask": np.array(["no", "no"])}, {"mask": np.array([0.5, 1.0])}, {"key": -1},
        {"key": 2**70}, {"key": 1.5}, {"key": None}, {"key": "0"}, {"z": [[1, 2], [3]]},
        {"z": None}, {"z": np.array([[1e308, 1e308], [0, 1]])},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_evidence_no_mask_and_no_key_is_refused(wrong):
    usual = {"z": np.array([[1.0, 2.0], [0.0, 4.0]]), "key": 0, "mask": None, "n": [9, 9]}
    assert process().num_states == 1
    with pytest.raises(sf.InputError):
        sf.SSD().decide(**{"n": np.array([9, 9])} | usual | wrong)
