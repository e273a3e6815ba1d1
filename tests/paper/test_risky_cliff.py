"""The headline experiment in small: the effect is there, sums are right, verdicts follow data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot.agents.tabular import COUNTS, Transition, train_trials
from surefoot.envs import CliffGrid
from surefoot.errors import InputError, RunError
from surefoot.paper import risky_cliff
from surefoot.paper.captions import CAPTIONS
from surefoot.paper.claims import read_claims
from surefoot.paper.risky_cliff import EXPERIMENT, CliffCell, CliffResults, RiskyCliffConfig
from surefoot.paper.risky_cliff.cells import OWN, episode_columns, measure_of
from surefoot.paper.risky_cliff.results import first_steady_episode
from surefoot.runs.directory import RunDir

SMALL = RiskyCliffConfig(
    trials=20, episodes=300, losses=("wgf-mixture",), policies=("greedy", "ssd"), checks=(),
    tolerances=(), engine="serial",
)  # fmt: skip

WITHOUT_FIGURES = replace(EXPERIMENT, draw=lambda _: {})  # to draw them takes seconds


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("risky") / "run"
    WITHOUT_FIGURES.run(SMALL, out)
    return out


@pytest.fixture(scope="module")
def results(small) -> CliffResults:
    return EXPERIMENT.results(RunDir.open(small))


@pytest.mark.optimised
def test_ssd_takes_the_sure_path_and_greedy_at_the_same_tolerance_less_often(results):
    cells = {p: results.cell("wgf-mixture", p) for p in SMALL.policies}
    share = {p: results.interval(cell, "over_top") for p, cell in cells.items()}
    falls = {p: results.interval(cell, "falls") for p, cell in cells.items()}
    assert share["ssd"].mean > 0.95
    assert share["ssd"].low > share["greedy"].high
    assert falls["ssd"].mean < falls["greedy"].mean


@pytest.mark.optimised
def test_everything_is_left_behind(small, results):
    run = RunDir.open(small)
    assert run.complete
    drawn = risky_cliff.figures(results)
    assert set(drawn) == set(CAPTIONS["risky-cliff"]) - {"tolerance"}
    for ax in drawn["paths"].axes:
        assert "% of trials" in ax.get_title()
        numbers = [text for text in ax.texts if text.get_text().isdigit()]
        assert numbers
        for x, y in (number.get_position() for number in numbers):
            assert min(abs(x - round(x)), abs(y - round(y))) > 0.2  # paths go through the middle
    assert EXPERIMENT.config_of(run) == replace(SMALL, engine="local")
    assert run.read_provenance()["seeds"] == [0]
    cell = run.read_summary()["losses"]["wgf-mixture"]["ssd"]
    assert cell["falls"]["n"] == 20
    assert sum(cell["decided_by"].values()) == pytest.approx(1)
    assert {c.id for c in read_claims(RunDir.open(small))} == {
        "top-wgf-mixture", "share-wgf-mixture", "falls-wgf-mixture", "greedy-bottom",
    }  # fmt: skip
    # By hand from the table: falls added up over the 300 episodes of each of 20 trials.
    frame = run.read_table("wgf-mixture.ssd")
    by_hand = frame["falls"].to_numpy().reshape(20, 300).sum(1).mean()
    assert cell["falls"]["mean"] == pytest.approx(by_hand)


@pytest.mark.optimised
def test_the_behaviour_walks_over_the_top_from_start_to_goal(results):
    grid, cell = SMALL.grid, results.cell("wgf-mixture", "ssd")
    path = results.path(cell)
    assert (path[0], path[-1]) == (grid.start, grid.goal)
    assert sum(grid.is_top_row(int(s)) for s in path) == grid.columns
    assert results.visited(cell)[grid.start] == 1.0
    learned = results.fork_std(cell)
    # In truth 0 and sigma sqrt(10) = 0.0032: up is learned to be the sure one.
    assert learned["up"] < learned["right"]
    assert SMALL.true_fork_std == pytest.approx(0.0031623, rel=1e-4)


@pytest.mark.optimised
def test_a_trial_alone_gives_the_bits_it_gives_among_twenty(small, results):
    alone = train_trials(
        SMALL.agent(results.cell("wgf-mixture", "ssd")), SMALL.mdp, episodes=SMALL.episodes,
        trials=range(1), seed=SMALL.seed, measure=measure_of(SMALL.grid), extra=len(OWN),
        quiet=True,
    )  # fmt: skip
    run = RunDir.open(small)
    particles = run.read_table("particles.wgf-mixture.ssd")["z"].to_numpy()
    np.testing.assert_array_equal(np.asarray(alone.table.z[0]).reshape(-1), particles)
    together = run.read_table("wgf-mixture.ssd")
    for name, column in episode_columns(np.asarray(alone.episodes), SMALL.grid).items():
        np.testing.assert_array_equal(column, together[name].to_numpy()[: SMALL.episodes])


@pytest.mark.optimised
def test_a_cell_that_is_missing_is_made_again_with_the_same_bytes(small):
    path = small / "wgf-mixture.greedy.parquet"
    kept = (small / "wgf-mixture.ssd.parquet").stat().st_mtime_ns
    before, claims = path.read_bytes(), read_claims(RunDir.open(small))
    path.unlink()
    (small / "complete.json").unlink()
    assert tuple(WITHOUT_FIGURES.run(SMALL, small, existing="resume")) == claims
    assert path.read_bytes() == before
    assert (small / "wgf-mixture.ssd.parquet").stat().st_mtime_ns == kept
    with pytest.raises(InputError, match="episodes"):
        risky_cliff.run(replace(SMALL, episodes=13), small, existing="resume")


@pytest.mark.optimised  # with the headline's program
def test_a_reward_that_is_no_number_stops_the_run_and_keeps_what_was_computed(
    tmp_path, monkeypatch
):
    mdp = SMALL.mdp
    rewards = mdp.reward_mean.copy()
    rewards[35, 2, 0] = np.nan  # stepping down into the goal
    object.__setattr__(mdp, "reward_mean", rewards)
    monkeypatch.setattr(RiskyCliffConfig, "mdp", mdp)
    with pytest.raises(RunError, match=r"greedy: trial \d, step \d+, state 35: .* is in"):
        risky_cliff.run(SMALL, tmp_path / "run")
    kept = RunDir.open(tmp_path / "run").read_table("stopped.wgf-mixture.greedy")
    assert np.isfinite(kept["return"].to_numpy()).all()
    assert kept["steps"].to_numpy().sum() > 0


def test_an_episode_over_the_top_entered_half_of_that_row():
    counts = np.zeros((1, 2, len(COUNTS) + 2))
    counts[0, :, -1] = 5, 6
    flat = episode_columns(counts, CliffGrid(4, 12))
    np.testing.assert_array_equal(flat["over_top"], [0, 1])
    np.testing.assert_array_equal(flat["episode"], [0, 1])


def test_falls_and_top_cells_are_counted_where_they_happen():
    grid = SMALL.grid
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


def test_every_cell_has_a_table_of_its_own_and_its_loss_reaches_the_agent():
    config = RiskyCliffConfig()
    names = [c.name for c in config.cells()]
    assert len(names) == len(set(names))
    assert {"qr.ssd", "zero-start.greedy", "sweep-ssd-0.0005"} <= set(names)
    assert config.agent(CliffCell("qr", "cvar:0.25", 5e-4)).loss == "qr"
    assert config.agent(CliffCell("zero-start", "ssd", 5e-4)).initial_std == 0.0
    sinkhorn, exact = (
        config.agent(CliffCell(loss, "ssd", 5e-4)) for loss in ("wgf-sinkhorn", "wgf-sample")
    )
    assert sinkhorn != exact
    assert sinkhorn.targets == exact.targets == "sample"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"losses": ("wgf",)}, "unknown loss 'wgf'"),
        ({"policies": ("ssdd",)}, "unknown policy 'ssdd'"),
        ({"trials": 1}, "trials = 1"),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(InputError, match=message):
        RiskyCliffConfig(**wrong)


@pytest.mark.slow
def test_ssd_falls_less_often_than_cvar(tmp_path):
    config = RiskyCliffConfig(
        trials=20, losses=("wgf-mixture",), policies=("ssd", "cvar:0.25"), checks=(), tolerances=()
    )
    risky_cliff.run(config, tmp_path / "run")
    results = EXPERIMENT.results(RunDir.open(tmp_path / "run"))
    cells = {p: results.cell("wgf-mixture", p) for p in config.policies}
    share = {p: results.interval(cell, "over_top") for p, cell in cells.items()}
    falls = {p: results.interval(cell, "falls") for p, cell in cells.items()}
    assert share["ssd"].mean > 0.93
    assert share["ssd"].low > share["cvar:0.25"].high
    assert falls["ssd"].high < falls["cvar:0.25"].low
