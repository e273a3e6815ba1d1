"""Sweeps run, go on, grow, fail in part, and lose their driver or a worker."""

import csv
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from sweep_cases import CLIFF, cliff, results

from surefoot.agents.tabular import TabularConfig
from surefoot.comparison import read_returns
from surefoot.core.bootstrap import bootstrap_interval
from surefoot.errors import InputError
from surefoot.report.sources import page_of
from surefoot.training.sweep import Sweep, run_sweep
from surefoot.training.sweep.summary import compare_cells, improvements, paired_cells, too_many
from surefoot.training.train import Training

pytestmark = pytest.mark.wide


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """Six trials, run in this process: what every engine must give."""
    out = tmp_path_factory.mktemp("serial") / "sweep"
    return out, run_sweep(cliff(), out, engine="serial", mode="silent")


def test_table_files_and_intervals_agree_with_the_results(serial):
    out, result = serial
    assert result.run == 6
    assert not result.failures
    records = [json.loads(data) for data in results(out).values()]
    assert len(records) == 6
    row = result.rows[1]
    assert (row["env.sigma"], row["seeds"], row["failed"]) == (0.5, 3, 0)
    own = [r for r in records if r["training"]["env_options"] == {"sigma": 0.5}]
    interval = bootstrap_interval([np.mean(r["returns"]) for r in own])
    assert [row[k] for k in ("mean", "low", "high")] == pytest.approx(
        [interval.mean, interval.low, interval.high]
    )
    # Nine episodes pooled: the worst quarter is the two worst and a quarter of the third.
    worst = sorted(np.concatenate([r["returns"] for r in own]))
    assert row["cvar_0.25"] == pytest.approx((worst[0] + worst[1] + worst[2] / 4) / 2.25)
    table = list(csv.DictReader((out / "summary.csv").open()))
    assert float(table[1]["mean"]) == row["mean"]
    assert json.loads((out / "summary.json").read_text())["cells"] == result.rows
    assert len(list(csv.DictReader((out / "trials.csv").open()))) == 6
    assert (out / "complete.json").exists()


def test_cells_are_compared_pair_by_pair_of_seeds(serial):
    out, result = serial
    (c,) = result.comparisons.values()
    assert c.names == ("env.sigma=0.001", "env.sigma=0.5")
    assert c.paired
    assert [s.n for s in c.summaries] == [3, 3]
    assert [s.mean for s in c.summaries] == pytest.approx([row["mean"] for row in result.rows])
    stored = json.loads((out / "comparison.json").read_text())
    words = [v["word"] for v in stored["verdicts"]]
    assert words == [v.word for v in c.verdicts]
    # the table can be compared again by hand, its seeds are not taken for returns
    table = read_returns(out / "returns.csv")
    assert list(table) == list(c.names)
    np.testing.assert_array_equal(table["env.sigma=0.5"], c.returns["env.sigma=0.5"])


def test_verdicts_between_cells():
    rng = np.random.default_rng(0)
    seeds = range(60)
    noise = rng.normal(0, 3, 60)  # shared by all cells of a seed: only pairs can see through it

    def cell(mean, own=0.3):
        return {s: float(mean + noise[s] + rng.normal(0, own)) for s in seeds}

    def keyed(cells):
        return {(("x", name),): own for name, own in cells.items()}

    def compared(cells):
        return compare_cells(paired_cells(keyed(cells))).get("")

    c = compared({"a": cell(0.0), "b": cell(1.0)})
    assert c.verdict("x=b", "x=a").word == "established"
    assert c.verdict("x=a", "x=b").word == "contradicted"
    same = compared({"a": cell(0.0), "b": cell(0.0), "c": cell(0.0)})
    assert "established" not in {v.word for v in same.verdicts}
    few = compared({"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {0: 5.0, 2: 6.0, 7: 1.0}})
    assert [column.tolist() for column in few.returns.values()] == [[1.0, 3.0], [5.0, 6.0]]
    assert compared({"a": {0: 1.0}, "b": {0: 2.0}}) is None
    assert compared({"a": {0: 1.0, 1: 2.0}}) is None
    assert compared({"a": {0: 1.0, 1: 2.0}, "b": {0: 1.0, 1: math.nan}}) is None


def test_many_cells_are_compared_by_step_down_and_very_many_are_told_why_not():
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 3, 40)

    def cells(number, best=None):
        own = rng.normal(0, 0.3, (number, 40)) + noise
        return paired_cells(
            {
                (("x", i),): {seed: float(own[i, seed]) + 9 * (i == best) for seed in range(40)}
                for i in range(number)
            }
        )

    (many,) = compare_cells(cells(26, best=3)).values()
    assert many.correction == "romano-wolf"
    assert all(many.verdict("x=3", f"x={i}").word == "established" for i in range(26) if i != 3)
    others = {v.word for v in many.verdicts if "x=3" not in (v.a, v.b)}
    assert "established" not in others
    assert too_many(cells(100)) == ""
    assert compare_cells(cells(101)) == {}
    assert too_many(cells(101)).startswith("101 cells are not compared")


def test_the_same_again_runs_nothing_and_more_seeds_run_only_those(serial):
    out, result = serial
    before = {p.name: p.stat().st_mtime_ns for p in (out / "results").iterdir()}
    again = run_sweep(cliff(), out, engine="serial", mode="silent")
    assert (again.run, again.rows) == (0, result.rows)
    grown = run_sweep(cliff(4), out, engine="serial", mode="silent")
    assert grown.run == 2
    assert [row["seeds"] for row in grown.rows] == [4, 4]
    for name, when in before.items():
        assert (out / "results" / name).stat().st_mtime_ns == when


@pytest.mark.slow
def test_a_neural_trial_and_a_gymnasium_table(tmp_path):
    neural = {"env": "CartPole-v1", "steps": 150, "evaluations": 2, "eval_episodes": 2,
              "hidden": [8], "particles": 2, "learning_starts": 20, "compiled": True}  # fmt: skip
    first = run_sweep(Sweep(neural, {}, (0,)), tmp_path / "a", engine="serial", mode="silent")
    assert first.rows[0]["seeds"] == 1
    assert first.rows[0]["low"] is None  # one seed has no interval
    (data,) = results(tmp_path / "a").values()
    assert [step for step, _ in json.loads(data)["curve"]] == [75, 150]
    lake = {"agent": "tabular", "env": "FrozenLake-v1", "steps": 300, "loss": "q-learning",
            "env.is_slippery": False, "behaviour": "greedy", "evaluation": "greedy"}  # fmt: skip
    again = run_sweep(Sweep(lake, {}, (0, 1)), tmp_path / "b", engine="serial", mode="silent")
    assert not again.failures
    assert 0 <= again.rows[0]["mean"] <= 1


class Cursed(gymnasium.Env):
    """Raises in the middle of training, once `cursed` says so."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fault: float = 0.0) -> None:
        self.fault, self.clock = fault, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.clock += 1
        if self.clock == 40 and self.fault > 0 and not os.environ.get("BLESSED"):
            raise ZeroDivisionError("step 40")
        return 1, 1.0, True, False, {}


@pytest.fixture
def cursed():
    gymnasium.register("test/Cursed-v0", entry_point=Cursed)
    yield Sweep(
        {"agent": "tabular", "env": "test/Cursed-v0", "steps": 60, "loss": "q-learning",
         "behaviour": "greedy", "evaluation": "greedy", "eval_episodes": 2},
        {"env.fault": [0.0, 1.0]}, (0, 1),
    )  # fmt: skip
    del gymnasium.registry["test/Cursed-v0"]


@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's checker about our toy
def test_a_failing_trial_is_recorded_and_the_others_go_on(cursed, tmp_path, monkeypatch):
    found = run_sweep(cursed, tmp_path, engine="serial", mode="silent")
    assert [row["seeds"] for row in found.rows] == [2, 0]
    assert found.rows[1]["failed"] == 2
    assert set(found.failures) == {"env.fault=1.0 seed=0", "env.fault=1.0 seed=1"}
    assert "step 40" in found.failures["env.fault=1.0 seed=0"]
    assert not (tmp_path / "complete.json").exists()
    monkeypatch.setenv("BLESSED", "yes")  # whatever was wrong has been put right
    kept = run_sweep(cursed, tmp_path, engine="serial", mode="silent", keep_failed=True)
    assert (kept.run, len(kept.failures)) == (0, 2)
    again = run_sweep(cursed, tmp_path, engine="serial", mode="silent")
    assert (again.run, again.failures) == (2, {})
    assert not list((tmp_path / "failed").iterdir())


def test_an_environment_that_cannot_be_made_stops_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match="environment 'CartPole-v9'"):
        run_sweep(Sweep({"env": "CartPole-v9", "steps": 5}), tmp_path / "x", mode="silent")
    with pytest.raises(InputError, match="unknown argument 'sigam'"):
        run_sweep(Sweep({**CLIFF, "env.sigam": 1.0}), tmp_path / "x", mode="silent")
    assert not (tmp_path / "x").exists()
    with pytest.raises(InputError, match="unknown engine"):
        run_sweep(cliff(), tmp_path / "x", engine="slurm", mode="silent")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's checker about our toy
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path, monkeypatch):
    here = os.path.dirname(__file__)
    monkeypatch.setenv("PYTHONPATH", here)  # of the workers, which import the environment
    monkeypatch.syspath_prepend(here)
    sweep = Sweep(
        {"agent": "tabular", "env": "deadly:Deadly-v0", "steps": 60, "loss": "q-learning",
         "behaviour": "greedy", "evaluation": "greedy", "eval_episodes": 2,
         "env.died": str(tmp_path / "died")},
        {"learning_rate": [0.1, 0.5]}, (0, 1, 2),
    )  # fmt: skip
    found = run_sweep(sweep, tmp_path / "sweep", engine="local", workers=2, mode="silent")
    assert (tmp_path / "died").exists()  # a worker did
    assert not found.failures
    run_sweep(sweep, tmp_path / "wanted", engine="serial", mode="silent")
    assert results(tmp_path / "sweep") == results(tmp_path / "wanted")
    assert len(results(tmp_path / "sweep")) == 6


DRIVER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
sys.path.insert(0, sys.argv[1])
from sweep_cases import cliff
from surefoot.errors import Interrupted
from surefoot.training.sweep import run_sweep
try:
    run_sweep(cliff(5, steps=50_000), sys.argv[2], engine="local", workers=2, mode="silent")
except Interrupted as error:
    sys.exit(str(error))
"""


def drive(out, until: int) -> subprocess.Popen:
    """A driver and its workers, in a group of their own, with so many results on disk."""
    command = [sys.executable, "-c", DRIVER, os.path.dirname(__file__), str(out)]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 600
    while len(list(out.glob("results/*.json"))) < until and time.monotonic() < deadline:
        time.sleep(0.02)
    return driver


@pytest.mark.slow
def test_a_stopped_and_a_killed_driver_lose_nothing_that_was_done(tmp_path):
    out = tmp_path / "sweep"
    driver = drive(out, until=1)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: to the workers, too
    told = driver.communicate(timeout=600)[1].splitlines()
    assert len(told) == 1  # and no word of the workers
    assert told[0].endswith(f"what is finished is in {out}; go on with the same command")
    driver = drive(out, until=3)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stderr.close()
    done = results(out)
    assert 3 <= len([name for name in done if name.endswith(".json")]) < 10
    went_on = run_sweep(cliff(5, steps=50_000), out, engine="local", workers=2, mode="silent")
    assert went_on.run == 10 - len([name for name in done if name.endswith(".json")])
    assert not went_on.failures
    wanted = tmp_path / "wanted"
    run_sweep(cliff(5, steps=50_000), wanted, engine="serial", mode="silent")
    assert results(out) == results(wanted)


def test_a_training_is_made_again_from_the_file_of_its_result(serial):
    out, _ = serial
    name, data = sorted(results(out).items())[0]
    stored = json.loads(data)["training"]
    own = ("env", "steps", "seed", "compiled", "eval_every", "eval_episodes", "env_options")
    config = {f.name: stored[f.name] for f in dataclasses.fields(TabularConfig)}
    again = Training(config=TabularConfig(**config), **{name: stored[name] for name in own})
    assert f"{again.key}.json" == name


def test_cells_are_compared_within_their_environment_and_improvement_is_averaged():
    rng = np.random.default_rng(1)
    noise = {env: rng.normal(0, 3, 60) for env in ("A-v0", "B-v0")}
    # In A qr is better, in B wgf is, by a thousand times as much: neither wins where both are mixed
    better = {("A-v0", "qr"): 1.0, ("A-v0", "wgf"): 0.0, ("B-v0", "qr"): 0.0, ("B-v0", "wgf"): 1.0}
    cells = {
        (("env", env), ("loss", loss)): {
            seed: scale * (better[env, loss] + noise[env][seed] + rng.normal(0, 0.3))
            for seed in range(60)
        }
        for env, scale in (("A-v0", 1.0), ("B-v0", 1000.0))
        for loss in ("qr", "wgf")
    }
    compared = compare_cells(paired_cells(cells))
    assert {env: c.names for env, c in compared.items()} == dict.fromkeys(
        ("A-v0", "B-v0"), ("loss=qr", "loss=wgf")
    )
    assert compared["A-v0"].verdict("loss=qr", "loss=wgf").word == "established"
    assert compared["B-v0"].verdict("loss=wgf", "loss=qr").word == "established"
    assert "of B-v0" in str(compared["B-v0"])
    (row,) = improvements(cells)
    assert (row["a"], row["b"], row["tasks"]) == ("loss=qr", "loss=wgf", 2)
    assert row["low"] < 0.5 < row["high"]
    one = {chosen: own for chosen, own in cells.items() if dict(chosen)["env"] == "A-v0"}
    assert paired_cells(one)["A-v0"].columns.keys() == {
        "env=A-v0 loss=qr", "env=A-v0 loss=wgf"
    }  # fmt: skip


def test_a_sweep_over_environments_has_verdicts_for_each_on_disk_and_on_its_page(tmp_path):
    tasks = ["surefoot/Insurance-v0", "surefoot/Portfolio-v0"]
    base = {name: value for name, value in CLIFF.items() if name not in ("env", "behaviour")}
    grid = {"env": tasks, "behaviour": ["greedy", "cvar:0.25"]}
    out = tmp_path / "sweep"
    result = run_sweep(Sweep(base | {"steps": 200}, grid, (0, 1, 2)), out, engine="serial")
    assert list(result.comparisons) == tasks
    stored = json.loads((out / "comparison.json").read_text())["environments"]
    for number, task in enumerate(tasks, start=1):
        table = read_returns(out / f"returns-{number}.csv")
        cells = {row["behaviour"]: row["mean"] for row in result.rows if row["env"] == task}
        assert {name: column.mean() for name, column in table.items()} == pytest.approx(
            {f"behaviour={name}": mean for name, mean in cells.items()}
        )
        words = [v.word for v in result.comparisons[task].verdicts]
        assert [v["word"] for v in stored[task]["verdicts"]] == words
    parts = [part for section in page_of(out).sections for part in section.parts]
    titles = [part.title for part in parts]
    # How the words follow, and on what range, stands beside them: 6 pooled values.
    notes = [part.text for part in parts if getattr(part, "text", "").startswith("P-values are")]
    assert sum("on all but the lowest 25 % of the pooled values" in note for note in notes) == 2
    for task in tasks:
        assert sum(f"does the row dominate the column? ({task})" in title for title in titles) == 2
        assert f"Which columns are left to choose from ({task})" in titles
    # The same directory for one environment: tables of the other are not left behind.
    run_sweep(Sweep(base | {"steps": 200}, grid | {"env": tasks[:1]}, (0, 1, 2)), out,
              engine="serial")  # fmt: skip
    assert "verdicts" in json.loads((out / "comparison.json").read_text())
    assert {path.name for path in out.glob("returns*")} == {"returns.csv"}


def test_a_sweep_shows_itself_in_a_notebook(serial):
    _, result = serial
    assert "<td>3</td>" in result._repr_html_()
    figure = result.figure()
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o" and line.get_alpha()]
    assert [len(line.get_xdata()) for line in dots] == [3, 3]
    assert len(result.improvements) == 1
