"""The headline experiment in small: every file is there, sums are right, verdicts follow data."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot.agents.tabular import COUNTS, Transition
from surefoot.envs import CliffGrid
from surefoot.errors import InputError, RunError
from surefoot.paper import risky_cliff
from surefoot.paper.claims import read_claims
from surefoot.paper.risky_cliff import Cell, Config, Results, cells
from surefoot.paper.risky_cliff.cells import columns, grid_of, measure_of
from surefoot.paper.risky_cliff.results import first_steady_episode
from surefoot.runs.directory import RunDir

SMALL = Config(
    trials=2, episodes=12, losses=("wgf-mixture",), policies=("greedy", "ssd"), checks=(),
    tolerances=(), last=5, memory=8, engine="serial",
)  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("risky") / "run"
    risky_cliff.run(SMALL, out)
    return out


def test_everything_is_left_behind(small):
    run = RunDir.open(small)
    assert run.complete
    assert set(run.figures) >= {"steps", "return", "falls", "top-row", "ties", "who-decided"}
    summary = json.loads((small / "summary.json").read_text())
    cell = summary["losses"]["wgf-mixture"]["ssd"]
    for name in ("top_row_share", "falls", "steps", "return"):
        assert cell[name]["low"] <= cell[name]["mean"] <= cell[name]["high"]
        assert cell[name]["n"] == 2
    assert abs(sum(cell["decided_by"].values()) - 1) < 1e-6
    assert json.loads((small / "provenance.json").read_text())["seeds"] == [0]
    assert {c.id for c in read_claims(run)} >= {"top-wgf-mixture", "falls-wgf-mixture"}


def test_summary_agrees_with_the_table(small):
    run = RunDir.open(small)
    frame = run.read_table("wgf-mixture.ssd")
    assert frame.height == 2 * 12
    mean = frame["falls"].to_numpy().reshape(2, 12).sum(1).mean()
    assert run.read_summary()["losses"]["wgf-mixture"]["ssd"]["falls"]["mean"] == pytest.approx(
        mean
    )


def test_a_second_call_computes_nothing_and_a_changed_one_refuses(small):
    before = (small / "wgf-mixture.ssd.parquet").stat().st_mtime_ns
    risky_cliff.run(SMALL, small, existing="resume")
    assert (small / "wgf-mixture.ssd.parquet").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="episodes"):
        risky_cliff.run(replace(SMALL, episodes=13), small, existing="resume")


def test_a_missing_cell_is_made_again_with_the_same_bytes(small):
    path = small / "wgf-mixture.greedy.parquet"
    before = path.read_bytes()
    path.unlink()
    risky_cliff.run(SMALL, small, existing="resume")
    assert path.read_bytes() == before


def test_a_reward_that_is_no_number_stops_the_run_and_keeps_what_was_computed(
    tmp_path, monkeypatch
):
    real = cells.mdp_of

    def poisoned(config):
        mdp = real(config)
        rewards = mdp.reward_mean.copy()
        rewards[35, 2, 0] = np.nan  # stepping down into the goal
        object.__setattr__(mdp, "reward_mean", rewards)
        return mdp

    out = tmp_path / "run"
    monkeypatch.setattr(cells, "mdp_of", poisoned)
    with pytest.raises(RunError, match=r"greedy: trial \d, step \d+, state 35: .* is in"):
        risky_cliff.run(SMALL, out)
    kept = RunDir.open(out).read_table("stopped.wgf-mixture.greedy")
    assert np.isfinite(kept["return"].to_numpy()).all()
    assert kept["steps"].to_numpy().sum() > 0


def test_an_episode_over_the_top_entered_half_of_that_row():
    grid = CliffGrid(4, 12)
    counts = np.zeros((1, 2, len(COUNTS) + 2))
    counts[0, :, -1] = 5, 6
    flat = columns(counts, grid)
    np.testing.assert_array_equal(flat["over_top"], [0, 1])
    np.testing.assert_array_equal(flat["episode"], [0, 1])


def test_falls_and_top_cells_are_counted_where_they_happen():
    grid = grid_of(Config())
    measure = measure_of(grid)

    def at(reward: float, state: int) -> list[float]:
        return np.asarray(measure(Transition(0, 0, np.float32(reward), 1.0, state, 0))).tolist()

    assert at(-100.0, grid.start) == [1.0, 0.0]
    assert at(-1.0, grid.start) == [0.0, 0.0]
    assert at(-2 / 3, grid.state(0, 4)) == [0.0, 1.0]


def test_first_steady_episode():
    share = np.concatenate([np.zeros(50), np.ones(60)])
    # A window of 25 holds at least 90 % ones from 23 ones on: it may begin 2 before the step.
    assert first_steady_episode(share) == 48
    assert first_steady_episode(np.zeros(60)) is None


def test_cells_and_settings():
    config = Config()
    names = [c.name for c in config.cells()]
    assert len(names) == len(set(names)) == 15 + 9 + 14
    assert config.agent(Cell("qr", "cvar:0.25", 5e-4)).loss == "qr"
    assert config.agent(Cell("zero-start", "ssd", 5e-4)).initial_std == 0.0
    with pytest.raises(InputError, match="unknown loss 'wgf'"):
        Config(losses=("wgf",))
    with pytest.raises(InputError, match="unknown policy 'ssdd'"):
        Config(policies=("ssdd",))
    with pytest.raises(InputError, match="trials = 1"):
        Config(trials=1)


@pytest.mark.slow
def test_ssd_takes_the_sure_path_more_often_and_falls_less(tmp_path):
    config = Config(
        trials=20, losses=("wgf-mixture",), policies=("ssd", "cvar:0.25"), checks=(), tolerances=()
    )
    risky_cliff.run(config, tmp_path / "run")
    results = Results(config, RunDir.open(tmp_path / "run"))
    share = {
        p: results.interval(results.cell("wgf-mixture", p), "over_top") for p in config.policies
    }
    falls = {p: results.interval(results.cell("wgf-mixture", p), "falls") for p in config.policies}
    assert share["ssd"].mean > 0.93
    assert share["ssd"].low > share["cvar:0.25"].high
    assert falls["ssd"].high < falls["cvar:0.25"].low
