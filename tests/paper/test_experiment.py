"""The frame of the experiments: resumed by cells, tables decoded once, committed results read."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from surefoot import plots
from surefoot.errors import InputError, RunError
from surefoot.paper import APART, EXPERIMENTS, caption, experiment_named, run_all
from surefoot.paper.claims import Claim
from surefoot.paper.experiment import Experiment, Stopped, measure_cells
from surefoot.runs.directory import KINDS, RunDir
from surefoot.runs.files import read_json

RESULTS = Path(__file__).parents[2] / "results"
needs_results = pytest.mark.skipif(not RESULTS.exists(), reason="not a checkout with its results")


class Square(NamedTuple):
    number: int

    @property
    def name(self) -> str:
        return f"square-{self.number}"


@dataclass(frozen=True)
class SquaresConfig:
    seed: int = 0
    numbers: tuple[int, ...] = (1, 2, 3)
    workers: int = 0


COMPUTED: list[int] = []


def compute(job):
    cell = job[1]
    COMPUTED.append(cell.number)
    if cell.number < 0:
        return Stopped({f"stopped.{cell.name}": {"value": [0]}}, "negative")
    return {cell.name: {"value": [cell.number**2]}, f"extra.{cell.name}": {"value": [1]}}


def read(config, tables):
    return [int(tables[f"square-{n}"]["value"][0]) for n in config.numbers]


def draw(values):
    figure, ax = plots.new_figure()
    ax.plot(values)
    return {"squares": figure}


SQUARES = Experiment(
    "figures",
    SquaresConfig,
    lambda config, tables: measure_cells(
        config, tables, [Square(n) for n in config.numbers], compute, "squares"
    ),
    read,
    lambda values: {"sum": sum(values)},
    lambda values: [Claim("squares/sum", "0", "14", f"{sum(values)}", "reproduced")],
    draw,
)


@pytest.fixture
def computed():
    COMPUTED.clear()
    return COMPUTED


def test_a_run_leaves_everything_behind_and_is_read_back(tmp_path, computed):
    claims = SQUARES.run(SquaresConfig(workers=3), tmp_path / "run")
    run = RunDir.open(tmp_path / "run")
    assert (run.complete, run.kind, run.figures) == (True, "figures", ["squares"])
    assert run.read_summary() == {"sum": 14}
    assert run.read_provenance()["seeds"] == [0]
    # Where it is computed is no part of what is computed.
    assert run.read_config() == {"kind": "figures", "seed": 0, "numbers": [1, 2, 3]}
    assert SQUARES.config_of(run) == SquaresConfig()
    assert SQUARES.results(run) == [1, 4, 9]
    assert SQUARES.run(SquaresConfig(workers=1), run.path, "resume") == claims
    assert computed == [1, 2, 3]
    with pytest.raises(InputError, match="already holds a run"):
        SQUARES.run(SquaresConfig(), run.path)


def test_only_cells_that_are_missing_or_damaged_are_made_again(tmp_path, computed):
    SQUARES.run(SquaresConfig(), tmp_path / "run")
    (tmp_path / "run" / "complete.json").unlink()
    (tmp_path / "run" / "square-1.parquet").unlink()
    damaged = tmp_path / "run" / "square-3.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    computed.clear()
    SQUARES.run(SquaresConfig(), tmp_path / "run", "resume")
    assert computed == [1, 3]
    assert SQUARES.results(RunDir.open(tmp_path / "run")) == [1, 4, 9]


def test_each_table_is_decoded_once(tmp_path, monkeypatch):
    SQUARES.run(SquaresConfig(), tmp_path / "run")
    (tmp_path / "run" / "complete.json").unlink()
    decoded = []
    real = RunDir.read_table
    monkeypatch.setattr(
        RunDir, "read_table", lambda run, name: decoded.append(name) or real(run, name)
    )
    SQUARES.run(SquaresConfig(), tmp_path / "run", "resume")
    assert sorted(decoded) == ["square-1", "square-2", "square-3"]


def test_a_cell_that_stops_keeps_what_it_had_and_those_before_it(tmp_path):
    with pytest.raises(RunError, match=r"square--1: negative; what was computed is in .*run"):
        SQUARES.run(SquaresConfig(numbers=(2, -1, 3)), tmp_path / "run")
    run = RunDir.open(tmp_path / "run")
    assert not run.complete
    assert set(run.tables) == {"square-2", "extra.square-2", "stopped.square--1"}


def test_settings_that_are_not_those_of_the_experiment_are_refused(tmp_path):
    run = RunDir.create(tmp_path / "run", {"other": 1}, kind="figures", seeds=0)
    with pytest.raises(InputError, match="not the settings of figures"):
        SQUARES.config_of(run)


@needs_results
def test_complete_runs_are_read_with_the_configuration_of_today(tmp_path, monkeypatch):
    shutil.copytree(RESULTS, tmp_path / "all", ignore=shutil.ignore_patterns("*.parquet"))
    monkeypatch.setattr(Experiment, "results", lambda *_: pytest.fail("run again"))
    claims = run_all(tmp_path / "all")
    assert read_json(tmp_path / "all" / "claims.json") == read_json(RESULTS / "claims.json")
    assert len({claim.id for claim in claims}) == len(claims) > 30


@needs_results
@pytest.mark.parametrize(
    "name", [name for name in (*EXPERIMENTS, *APART) if (RESULTS / name).is_dir()]
)
def test_every_stored_figure_has_a_caption_and_works_in_a_page(name):
    run = RunDir.open(RESULTS / name)
    assert run.kind == name == experiment_named(name).kind
    assert experiment_named(name).config_of(run)
    assert run.figures
    for figure in run.figures:
        assert caption(name, figure).endswith("."), figure


def test_what_is_not_an_experiment_is_refused():
    with pytest.raises(InputError, match="risky-cliff"):
        experiment_named("risky-clif")
    with pytest.raises(InputError, match="nothing to run"):
        run_all(Path("nowhere"), only=("none",))
    assert caption("training", "learning") == ""


def test_every_experiment_has_a_kind_that_run_directories_know():
    assert {experiment_named(name).kind for name in EXPERIMENTS | APART} <= set(KINDS)
