"""Section 5.2 in small."""

import numpy as np
import pytest

from surefoot.envs import cliff_walk, evaluate_policy
from surefoot.errors import InputError
from surefoot.paper import evaluation
from surefoot.paper.evaluation import Config
from surefoot.paper.evaluation.flows import GRID, learn_policy, returns
from surefoot.paper.evaluation.verdicts import blur, second_moment_error, wasserstein_error
from surefoot.runs.directory import RunDir

SMALL = Config(trials=2, episodes=800, rollouts=40, truth_rollouts=400, steps=20)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("evaluation") / "run"
    claims = evaluation.run(SMALL, out)
    return out, claims


@pytest.mark.slow
def test_everything_is_left_behind(small):
    out, claims = small
    run = RunDir.open(out)
    assert run.complete
    assert {"convergence", "errors", "distributions-start", "outcome-risk-start"} <= set(
        run.figures
    )
    assert {c.id for c in claims} == {
        "free-energy", "value-error", "features", "bimodal", "smoothed",
    }  # fmt: skip
    for transport in SMALL.transports:
        assert run.has_table(f"curves-{transport}")
    assert tuple(evaluation.run(SMALL, out, existing="resume")) == tuple(claims)


@pytest.mark.slow
def test_the_flow_arrives_and_close_atoms_blur(small):
    out, _ = small
    run = RunDir.open(out)
    errors = {}
    for transport in SMALL.transports:
        frame = run.read_table(f"particles-{transport}")
        z, target = frame["z"].to_numpy(), frame["target_z"].to_numpy()
        errors[transport] = np.abs(np.sort(z.reshape(-1, 40)) - np.sort(target.reshape(-1, 40)))
    # 20 exact steps halve the distance 20 times: 100 / 2^20 is below 1e-3.
    assert errors["exact"].max() < 1e-3
    # The returns are a few atoms far apart: a converged entropic step has nothing to blur.
    assert errors["sinkhorn"].mean() < 0.05
    assert errors["divergence"].mean() < 0.05
    # In units of the penalty the same atoms lie close, and the entropic step blurs them.
    assert errors["sinkhorn-scaled"].mean() > 1.0


@pytest.mark.slow
def test_monte_carlo_agrees_with_dynamic_programming():
    policy, _ = learn_policy(SMALL)
    exact = evaluate_policy(cliff_walk(), policy, 0.9, only_reachable=True)
    import jax

    drawn = returns(Config(horizon=300), policy, 4000, jax.random.key(5))
    q = exact.q_mean[GRID.start]
    error = drawn[0].std(-1) / np.sqrt(4000)
    assert (np.abs(drawn[0].mean(-1) - q) < 5 * error + 1e-3).all()


def test_errors_by_hand():
    # Particles 1 too high everywhere: W1 = 1 to truth and target; second moment of (1, 3)
    # against (0, 2): 5 against 2.
    flows = evaluation.Flows(
        z=np.array([[[[1.0, 3.0]]]]), target_z=np.array([[[[0.0, 2.0]]]]),
        truth=np.array([[[0.0, 2.0]]]), loss=np.zeros(1), free_energy=np.zeros(1),
        value_error=np.zeros(1), converged=np.ones(1),
    )  # fmt: skip
    np.testing.assert_allclose(wasserstein_error(flows), 1.0)
    np.testing.assert_allclose(blur(flows), 1.0)
    np.testing.assert_allclose(second_moment_error(flows), 1.5)


def test_wrong_settings():
    with pytest.raises(InputError, match="unknown transport 'sink'"):
        Config(transports=("sink",))
    with pytest.raises(InputError, match="steps = 0"):
        Config(steps=0)
