"""The ablation: which cells settle, that the others are marked, and what is claimed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from surefoot.errors import InputError
from surefoot.paper import ablation
from surefoot.paper.ablation import Config
from surefoot.paper.fitting import fit_flow
from surefoot.paper.mixture import draw_trials, paper_mixture
from surefoot.runs.directory import RunDir

SMALL = Config(trials=10, temperatures=(0.25, 0.9), step_sizes=(0.01, 1.0, 10.0), particles=8)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("ablation") / "run"
    return out, ablation.run(SMALL, out)


def cells(out):
    found = RunDir.open(out).read_summary()["cells"]
    return {(cell["temperature"], cell["step_size"]): cell for cell in found}


@pytest.mark.slow
def test_small_steps_do_not_settle_and_are_marked(finished):
    found = cells(finished[0])
    assert len(found) == 3 * 3
    for (_, step_size), cell in found.items():
        # 100 exact steps with h = 0.01 leave 1.01^-100 = 37 % of the way; with h = 1, 2^-100.
        assert cell["at_equilibrium"] == (step_size >= 1.0)
        assert cell["at_equilibrium"] == (cell["converged"] == cell["trials"])
    assert found[(0.0, 0.01)]["mean_steps"] == 100
    table = RunDir.open(finished[0]).read_table()
    assert (table["iterations"] >= table["steps"]).all()


def test_exactly_the_unsettled_cells_are_hatched(finished):
    table = RunDir.open(finished[0]).read_table()
    summary = [ablation.summarise(part) for part in ablation._cells(table, SMALL)]
    figure = ablation.heat_maps(summary, SMALL)
    for ax in figure.axes[:4]:
        hatched = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_hatch()]
        assert {round(p.get_x() + 0.5) for p in hatched} == {0}
        assert len(hatched) == 3


def test_one_unsettled_trial_marks_its_cell(finished):
    import polars as pl

    table = RunDir.open(finished[0]).read_table()
    one = (pl.col("trial") == 2) & (pl.col("temperature") == 0.25) & (pl.col("step_size") == 1.0)
    spoilt = table.with_columns((pl.col("converged") & ~one).alias("converged"))
    summary = [ablation.summarise(part) for part in ablation._cells(spoilt, SMALL)]
    cell = next(c for c in summary if (c["temperature"], c["step_size"]) == (0.25, 1.0))
    assert not cell["at_equilibrium"]
    assert cell["converged"] == 9
    assert ablation.chosen_claim(spoilt, summary, SMALL).verdict == "not testable"


def test_shrinkage_grows_with_temperature_and_falls_with_step_size(finished):
    found = cells(finished[0])
    shift = {key: cell["shift_2"]["mean"] for key, cell in found.items()}
    assert shift[0.9, 1.0] < shift[0.25, 1.0] < shift[0.0, 1.0] < 0.01
    assert shift[0.9, 1.0] < shift[0.9, 10.0] < 0.01
    verdicts = {claim.id: claim.verdict for claim in finished[1]}
    assert verdicts["ablation/cold-limit"] == "reproduced"
    assert verdicts["ablation/small-steps"] == "partly"


def test_what_the_trials_cannot_tell_is_not_claimed(finished):
    import polars as pl

    table = RunDir.open(finished[0]).read_table()
    same = table.with_columns(pl.lit(0.1).alias("shift_2"))
    summary = [ablation.summarise(part) for part in ablation._cells(same, SMALL)]
    assert ablation.small_step_claim(same, summary).verdict == "not testable"
    assert ablation.cold_claim(same, summary, SMALL).verdict == "partly"


def test_float32_is_enough_at_the_lowest_temperature():
    trials = draw_trials(paper_mixture(), 0, 10, 8)
    options = {"step_size": 1.0, "tolerance": 2e-4, "temperatures": (0.01,)}
    single = fit_flow(trials, "sinkhorn", **options)
    double = fit_flow(trials, "sinkhorn", double=True, **options)
    assert single.z.dtype == np.float32
    assert double.z.dtype == np.float64
    assert single.converged.all()
    np.testing.assert_allclose(single.z, double.z, atol=2e-3)


def test_double_precision_stays_inside():
    import jax.numpy as jnp

    fit_flow(draw_trials(paper_mixture(), 0, 2, 4), "exact", double=True)
    assert jnp.zeros(1).dtype == jnp.float32


def test_a_run_can_be_taken_up(finished):
    out, claims = finished
    assert ablation.run(SMALL, out, "resume") == claims
    assert RunDir.open(out).figures == ["ablation"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"trials": 1}, "trials = 1"),
        ({"temperatures": (0.1, 0.0)}, "temperatures = "),
        ({"step_sizes": (1.0, 1.0)}, "step_sizes = "),
        ({"particles": 1}, "particles must be at least 2"),
    ],
)
def test_mistakes_are_told(wrong, told):
    with pytest.raises(InputError, match=told):
        Config(**wrong)
