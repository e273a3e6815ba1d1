"""Section 5.2 in small."""

import jax
import numpy as np
import pytest

from surefoot.envs import cliff_walk, evaluate_policy
from surefoot.errors import InputError
from surefoot.paper import evaluation
from surefoot.paper.evaluation import EXPERIMENT, distance, second_moment_error
from surefoot.paper.flows import GRID, EvaluationConfig, learn_policy, returns
from surefoot.runs.directory import RunDir

SMALL = EvaluationConfig(
    trials=2, episodes=800, rollouts=40, truth_rollouts=400, steps=20,
    transports=("sinkhorn", "exact", "sinkhorn-scaled"),
)  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("evaluation") / "run"
    claims = evaluation.run(SMALL, out)
    return RunDir.open(out), claims


@pytest.mark.slow
def test_everything_is_left_behind(small):
    run, claims = small
    assert run.complete
    assert set(run.figures) == {
        "convergence", "errors", "distributions-start", "distributions-neighbour",
        "outcome-risk-start", "outcome-risk-neighbour",
    }  # fmt: skip
    assert {c.id for c in claims} == {
        "free-energy", "value-error", "features", "bimodal", "smoothed",
    }  # fmt: skip
    assert len(run.read_summary()["policy"]) == GRID.num_states


@pytest.mark.slow
def test_the_flow_arrives_and_close_atoms_blur(small):
    flows = EXPERIMENT.results(small[0]).flows
    apart = {name: np.abs(np.sort(each.z) - each.target_z) for name, each in flows.items()}
    # 20 exact steps halve the distance 20 times: 100 / 2^20 is below 1e-3.
    assert apart["exact"].max() < 1e-3
    # The returns are a few atoms far apart: a converged entropic step has nothing to blur.
    assert apart["sinkhorn"].mean() < 0.05
    # In units of the penalty the same atoms lie close, and the entropic step blurs them.
    assert apart["sinkhorn-scaled"].mean() > 1.0
    assert np.isnan(flows["exact"].loss[..., 0]).all()
    assert np.isfinite(flows["exact"].loss[..., 1:]).all()


@pytest.mark.slow
def test_monte_carlo_agrees_with_dynamic_programming():
    policy, _ = learn_policy(SMALL)
    exact = evaluate_policy(cliff_walk(), policy, 0.9, only_reachable=True)
    drawn = returns(EvaluationConfig(horizon=300), policy, 4000, jax.random.key(5))
    q = exact.q_mean[GRID.start]
    error = drawn[0].std(-1) / np.sqrt(4000)
    assert (np.abs(drawn[0].mean(-1) - q) < 5 * error + 1e-3).all()


def test_errors_by_hand():
    # Particles 1 too high everywhere: W1 = 1 to the target; second moment of (1, 3) against
    # (0, 2): 5 against 2.
    z, target = np.array([[[[1.0, 3.0]]]]), np.array([[[[0.0, 2.0]]]])
    np.testing.assert_allclose(distance(z, target), 1.0)
    np.testing.assert_allclose(second_moment_error(z, target[0]), 1.5)


def test_wrong_settings():
    with pytest.raises(InputError, match="unknown transport 'sink'"):
        EvaluationConfig(transports=("sink",))
    with pytest.raises(InputError, match="steps = 0"):
        EvaluationConfig(steps=0)
