"""Fits of moments: where they end, whether they say so, and what the comparison concludes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.errors import InputError
from surefoot.paper import regression
from surefoot.paper import regression_results as report
from surefoot.paper.claims import read_claims
from surefoot.paper.fitting import (
    SampledTrials,
    draw_trials,
    fit_flow,
    fit_quantiles,
    moments,
    paper_mixture,
    rmse,
)
from surefoot.paper.regression import Reading, RegressionConfig
from surefoot.paper.regression_results import RegressionResults
from surefoot.runs.directory import RunDir

TRIALS = draw_trials(paper_mixture(), 0, 6, 4)
SMALL = RegressionConfig(trials=6, particles=(4,), components=(5,), narrow=0.1)


def test_quantile_regression_ends_at_the_sample_quantiles():
    found = fit_quantiles(TRIALS)
    # tau_i = (2 i - 1) / 8 lies inside the i-th step of the sample's CDF: the minimiser is the
    # i-th sample itself. NumPy's own quantiles say the same.
    tau = (2 * np.arange(4) + 1) / 8
    oracle = np.quantile(TRIALS.target_z, tau, axis=1, method="inverted_cdf").T
    np.testing.assert_array_equal(oracle, TRIALS.target_z)
    np.testing.assert_allclose(found.z, oracle, atol=1e-3)
    assert found.converged.all()


def test_quantile_regression_cut_short_says_so():
    found = fit_quantiles(TRIALS, steps=20)
    assert not found.converged.any()
    span = np.ptp(TRIALS.target_z, axis=-1)
    np.testing.assert_allclose(
        found.distance_left, np.abs(found.z - TRIALS.target_z).max(-1) / span, rtol=1e-4
    )


def test_one_exact_step_goes_half_way():
    # h = 1: z = (z0 + T) / 2; it moved by half the distance, so all of that is still to go.
    found = fit_flow(TRIALS, "exact", steps=1)
    np.testing.assert_allclose(found.z, (TRIALS.start_z + TRIALS.target_z) / 2, rtol=1e-6)
    gap = np.abs(TRIALS.target_z - TRIALS.start_z).max(-1)
    np.testing.assert_allclose(found.distance_left, gap / np.ptp(TRIALS.target_z, -1), rtol=1e-5)
    assert not found.converged.any()


@pytest.mark.parametrize("transport", ["exact", "divergence"])
def test_flows_without_bias_end_at_the_sample(transport):
    found = fit_flow(TRIALS, transport)
    assert found.converged.all()
    np.testing.assert_allclose(found.z, TRIALS.target_z, atol=5e-3)


def blurred(z: np.ndarray, temperature: float) -> np.ndarray:
    """Where plain, fully converged Sinkhorn sends each particle when z is moved onto itself."""
    kernel = np.exp(-((z[:, None] - z[None, :]) ** 2) / temperature)
    scale = np.ones(len(z))
    for _ in range(20_000):
        scale = np.sqrt(scale / (kernel @ scale))  # the symmetric problem has one scaling
    plan = scale[:, None] * kernel * scale[None, :]
    np.testing.assert_allclose(plan.sum(1), 1, atol=1e-9)
    return plan @ z


@pytest.mark.parametrize("step_size", [0.5, 1.0, 10.0])
def test_the_entropic_flow_ends_where_blur_and_pull_balance(step_size):
    # Equilibrium of the JKO step: z - blurred(z) = h (T - z), by an independent Sinkhorn.
    start, target = np.linspace(-1, 1, 4)[None], np.array([[-1.0, -0.6, 0.3, 1.0]])
    trials = SampledTrials(start, target, np.zeros((1, 2)))
    found = fit_flow(
        trials, "sinkhorn", step_size=step_size, tolerance=1e-6, double=True, steps=500
    )
    assert found.converged.all()
    z = found.z[0]
    np.testing.assert_allclose(z - blurred(z, 0.25), step_size * (target[0] - z), atol=1e-4)
    assert z.var() < target.var()


def test_a_solve_that_stops_at_its_limit_is_no_convergence():
    found = fit_flow(TRIALS, "sinkhorn", max_iterations=1, tolerance=1e-9, steps=30)
    assert not found.converged.any()
    assert (found.unsolved > 0).all()


def test_moments_and_rmse_by_hand():
    # (1 + 3) / 2 = 2, (1 + 9) / 2 = 5; errors 3 and 4: sqrt((9 + 16) / 2) = 3.5355.
    np.testing.assert_allclose(moments(np.array([1.0, 3.0])), [2.0, 5.0])
    assert rmse(np.array([3.0, -4.0])).mean == pytest.approx(np.sqrt(12.5))


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20))
def test_rmse_is_no_less_than_the_bias_and_lies_in_its_interval(errors):
    found = rmse(np.array(errors))
    assert found.mean >= abs(np.mean(errors)) - 1e-9
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean <= found.high + 1e-12


# --- the comparison ----------------------------------------------------------------------

FIVE = Reading("five", 5, 1.0)
ONE = RegressionConfig(particles=(50,), components=(5,), narrow=0.0)


def planted(shift: float, trials: int = 100) -> RegressionResults:
    """QR and a method whose second moment is `shift` higher on average; margin there: 0.258."""
    rng = np.random.default_rng(0)
    truth, noise = 21.2, rng.normal(0, 2.5, trials)
    fits = {}
    for method, extra in (("QR", 0.0), ("WGF exact", shift + rng.normal(0, 0.01, trials))):
        fits[method] = {
            "estimate_1": 0.6 + 0.1 * noise,
            "estimate_2": truth + noise + extra,
            "sample_1": 0.6 + 0.1 * noise,
            "sample_2": truth + noise,
            "truth_1": np.full(trials, 0.6),
            "truth_2": np.full(trials, truth),
            "range": np.full(trials, 16.0),
            "converged": np.ones(trials, bool),
            **{name: np.zeros(trials) for name in ("distance_left", "steps", "unsolved")},
        }
    return RegressionResults(ONE, {("five", 50): fits})


@pytest.mark.parametrize(
    ("shift", "outcome", "verdict"),
    [
        (0.0, "same", "reproduced"),
        (0.001, "same", "reproduced"),  # below what the fits can resolve
        (-0.1, "differs within the margin", "partly"),
        (-0.5, "differs", "not reproduced"),
    ],
)
def test_planted_shifts_are_judged(shift, outcome, verdict):
    rows = planted(shift).comparisons
    second = next(r for r in rows if r["moment"] == 2 and r["side"] == "estimate")
    assert second["outcome"] == outcome
    assert second["low"] < shift < second["high"]
    assert second["holm_p"] >= second["p"]
    assert all(r["outcome"] == "same" for r in rows if r["moment"] == 1)
    assert report.difference_claim(rows, FIVE, "WGF exact").verdict == verdict


def test_unconverged_trials_are_left_out_and_counted():
    results = planted(0.0)
    fit = results.fits["five", 50]["WGF exact"]
    fit["converged"][3], fit["estimate_2"][3] = False, 1e6
    rows = results.comparisons
    assert {row["trials"] for row in rows} == {99}
    assert all(row["outcome"] == "same" for row in rows)
    assert "99 paired trials" in report.difference_claim(rows, FIVE, "WGF exact").measured


def test_figures_show_the_margin_and_every_method():
    drawn = report.figures(planted(-0.5))
    assert list(drawn) == ["errors-five", "differences-five"]
    below = drawn["differences-five"].axes[3]  # second moment, in % of the sampling error 2.58
    (shown,) = below.containers
    assert shown[0].get_ydata()[0] == pytest.approx(-100 * 0.5 / 2.58, rel=0.02)
    assert shown.get_label() == "WGF exact"


def test_no_evidence_of_equality_is_no_equality():
    assert report.outcome(False, False) == "undecided"
    assert report.judge(["same", "undecided"])[0] == "partly"


# --- the whole experiment ----------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("regression") / "run"
    return out, regression.run(SMALL, out)


@pytest.mark.slow
def test_a_run_leaves_everything_behind(finished):
    out, claims = finished
    store = RunDir.open(out)
    assert store.complete
    assert store.figures == [
        "differences-five", "differences-narrow", "errors-five", "errors-narrow",
    ]  # fmt: skip
    for name in ("five.4", "narrow.4"):
        table = store.read_table(name)
        assert len(table) == len(regression.METHODS) * 6
        assert table["converged"].all()
    assert list(read_claims(store)) == claims
    names = [claim.id for claim in claims]
    assert names[0] == "regression/accurate"
    assert names[-1] == "regression/narrow/sinkhorn"


@pytest.mark.slow
def test_the_entropic_step_shrinks_the_second_moment_of_a_narrow_mixture(finished):
    rows = RunDir.open(finished[0]).read_summary()["accuracy"]
    shift = {
        row["method"]: row["shift_from_sample"]["high"]
        for row in rows
        if (row["reading"], row["particles"], row["moment"]) == ("narrow", 4, 2)
    }
    assert shift["WGF sinkhorn"] < -0.02  # of 0.2
    assert abs(shift["WGF exact"]) < 1e-3
    assert abs(shift["WGF divergence"]) < 1e-3


def test_another_seed_draws_other_data():
    one, other = (draw_trials(paper_mixture(), seed, 6, 4) for seed in (0, 1))
    fitted = [moments(regression.fit("QR", trials, SMALL).z) for trials in (one, other)]
    assert not np.isclose(*fitted).any()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 2}, "trials = 2"),
        ({"particles": (1,)}, "numbers from 2 on"),
        ({"components": ()}, "at least one reading"),
        ({"margin": 0.0}, "margin must be positive"),
    ],
)
def test_mistakes_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        RegressionConfig(**wrong)
