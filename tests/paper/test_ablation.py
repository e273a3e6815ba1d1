"""The ablation: which cells settle, that the others are marked, and what is claimed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from surefoot.errors import InputError
from surefoot.paper import ablation
from surefoot.paper.ablation import AblationCell, AblationConfig, AblationResults
from surefoot.paper.fitting import draw_trials, fit_flow, paper_mixture
from surefoot.runs.directory import RunDir

SMALL = AblationConfig(
    trials=10, temperatures=(0.25, 0.9), step_sizes=(0.01, 1.0, 10.0), particles=8
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> AblationResults:
    """The experiment itself in small: nine programs to compile."""
    out = tmp_path_factory.mktemp("ablation") / "run"
    ablation.run(SMALL, out)
    run = RunDir.open(out)
    assert run.figures == ["ablation"]
    return ablation.EXPERIMENT.results(run)


@pytest.fixture
def results() -> AblationResults:
    """Planted: shrinkage by temperature / h, and no equilibrium with the smallest step."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, (2, 10))
    columns = {}
    for cell in SMALL.cells():
        shift = -0.3 * cell.temperature / cell.step_size + rng.normal(0, 1e-3, 10)
        settled = cell.step_size >= 1.0
        columns[cell] = {
            "trial": np.arange(10),
            "error_1": noise[0],
            "error_2": noise[1] + shift,
            "shift_1": np.zeros(10),
            "shift_2": shift,
            "converged": np.full(10, settled),
            "distance_left": np.full(10, 1e-5 if settled else 0.37),
            "steps": np.full(10, 17 if settled else 100),
            "iterations": np.full(10, 300),
            "unsolved": np.zeros(10, int),
        }
    return AblationResults(SMALL, columns)


def with_column(results: AblationResults, name: str, change) -> AblationResults:
    columns = {
        cell: {**own, name: change(cell, own[name])} for cell, own in results.columns.items()
    }
    return AblationResults(results.config, columns)


@pytest.mark.slow
def test_small_steps_do_not_settle_and_are_marked(measured):
    assert len(measured.cells) == 3 * 3
    for cell, numbers in measured.cells.items():
        # 100 exact steps with h = 0.01 leave 1.01^-100 = 37 % of the way; with h = 1, 2^-100.
        assert numbers["at_equilibrium"] == (cell.step_size >= 1.0)
        assert numbers["at_equilibrium"] == (numbers["converged"] == numbers["trials"])
        assert numbers["most_iterations"] >= numbers["mean_steps"]
    assert measured.cells[AblationCell(0.0, 0.01)]["mean_steps"] == 100


def test_exactly_the_unsettled_cells_are_hatched(results):
    figure = ablation.figures(results)["ablation"]
    for ax in figure.axes[:4]:
        hatched = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_hatch()]
        assert {round(p.get_x() + 0.5) for p in hatched} == {0}
        assert len(hatched) == 3


def test_one_unsettled_trial_marks_its_cell(results):
    spoilt = with_column(
        results,
        "converged",
        lambda cell, own: own & ~((np.arange(10) == 2) & (cell == ablation.PAPERS)),
    )
    numbers = spoilt.cells[ablation.PAPERS]
    assert (numbers["at_equilibrium"], numbers["converged"]) == (False, 9)
    assert ablation.parameters_claim(spoilt).verdict == "not testable"


@pytest.mark.slow
def test_shrinkage_grows_with_temperature_and_falls_with_step_size(measured):
    shift = {tuple(cell): own["shift_2"].mean for cell, own in measured.cells.items()}
    assert shift[0.9, 1.0] < shift[0.25, 1.0] < shift[0.0, 1.0] < 0.01
    assert shift[0.9, 1.0] < shift[0.9, 10.0] < 0.01
    verdicts = {claim.id: claim.verdict for claim in ablation.verdicts(measured)}
    assert verdicts["ablation/cold-limit"] == "reproduced"
    assert verdicts["ablation/small-steps"] == "partly"


def test_planted_shrinkage_is_judged(results):
    verdicts = {claim.id: claim.verdict for claim in ablation.verdicts(results)}
    # At temperature 0.25 and h = 1 the shift is 0.075, far within a tenth of the sampling error.
    assert verdicts["ablation/parameters"] == "reproduced"
    assert verdicts["ablation/cold-limit"] == "reproduced"
    assert verdicts["ablation/small-steps"] == "partly"
    assert results.settled[AblationCell(0.9, 1.0)]["shift_2"].mean == pytest.approx(-0.27, abs=0.01)


def test_what_the_trials_cannot_tell_is_not_claimed(results):
    same = with_column(results, "shift_2", lambda _, own: np.full(len(own), 0.1))
    assert ablation.small_step_claim(same).verdict == "not testable"
    assert ablation.cold_claim(same).verdict == "partly"


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 1}, "trials = 1"),
        ({"temperatures": (0.1, 0.0)}, "temperatures = "),
        ({"step_sizes": (1.0, 1.0)}, "step_sizes = "),
        ({"particles": 1}, "particles = 1"),
    ],
)
def test_mistakes_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        AblationConfig(**wrong)
