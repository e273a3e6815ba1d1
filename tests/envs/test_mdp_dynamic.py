"""Exact values against hand calculation, second moments, quadrature and simulation."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from surefoot.envs import (
    TabularMDP,
    cliff_walk,
    evaluate_policy,
    exact_process,
    optimal_actions,
    policy_probabilities,
    reward_moments,
    risky_cliff,
    simulate_returns,
    surest,
    value_iteration,
)
from surefoot.errors import InputError


def random_mdp(seed, noise=True):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, size=3))
    return TabularMDP(
        next_state=rng.integers(0, shape[0], shape),
        probability=rng.dirichlet(np.full(shape[2], 0.5), shape[:2]),
        reward_mean=rng.normal(0, 3, shape),
        reward_std=rng.exponential(1, shape) * rng.integers(0, 2, shape) * noise,
        terminal=rng.random(shape) < 0.2,
        reward_clip=(-4.0, 5.0),
    )


def random_policy(mdp, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(mdp.num_actions), mdp.num_states)


def chain(stay):
    """State 0 pays 1 and stays with probability `stay`, else moves to 1; 1 pays 2 and ends."""
    return TabularMDP(
        next_state=[[[0, 1]], [[1, 1]]],
        probability=[[[stay, 1 - stay]], [[1.0, 0.0]]],
        reward_mean=[[[1.0, 1.0]], [[2.0, 2.0]]],
        terminal=[[[False, False]], [[True, True]]],
    )


def test_two_state_chain_by_hand():
    # The number of steps in state 0 is geometric with mean 1/(1-p) and variance p/(1-p)^2; the
    # return is that number plus 2. With p = 3/4: mean 4 + 2 = 6, variance 0.75 * 16 = 12.
    result = evaluate_policy(chain(0.75), np.ones((2, 1)), 1.0)
    np.testing.assert_allclose(result.v_mean, [6, 2], rtol=1e-13)
    np.testing.assert_allclose(result.v_variance, [12, 0], rtol=1e-13, atol=1e-28)
    np.testing.assert_allclose(result.q_variance[:, 0], result.v_variance, rtol=1e-13, atol=1e-28)


def test_a_coin_between_two_actions_by_hand():
    # One step. Action 0 pays 0 or 4 evenly (mean 2, variance 4), action 1 pays N(6, 3^2). Taken
    # evenly: mean 4, variance (4 + 9)/2 + (2 - 6)^2 / 4 = 10.5.
    mdp = TabularMDP(
        next_state=np.zeros((1, 2, 2), int),
        probability=[[[0.5, 0.5], [1.0, 0.0]]],
        reward_mean=[[[0.0, 4.0], [6.0, 0.0]]],
        reward_std=[[[0.0, 0.0], [3.0, 0.0]]],
        terminal=np.ones((1, 2, 2), bool),
    )
    result = evaluate_policy(mdp, [[0.5, 0.5]], 0.9)
    np.testing.assert_allclose(result.q_mean, [[2, 6]])
    np.testing.assert_allclose(result.q_variance, [[4, 9]])
    np.testing.assert_allclose((result.v_mean[0], result.v_variance[0]), (4, 10.5))


@pytest.mark.parametrize("clip", [(-1.0, 0.5), (0.2, np.inf), (-np.inf, -3.0), (-10.0, 10.0)])
@pytest.mark.parametrize("std", [0.3, 2.0])
def test_clipped_gaussian_moments_against_quadrature(clip, std):
    mdp = TabularMDP([[[0]]], [[[1.0]]], [[[-0.4]]], reward_std=[[[std]]], reward_clip=clip)
    density = stats.norm(-0.4, std)
    low, high = max(clip[0], -0.4 - 12 * std), min(clip[1], -0.4 + 12 * std)

    def moment(function):
        inner = 0.0
        if low < high:
            inner, _ = integrate.quad(lambda x: function(x) * density.pdf(x), low, high)
        below = function(clip[0]) * density.cdf(clip[0]) if np.isfinite(clip[0]) else 0.0
        above = function(clip[1]) * density.sf(clip[1]) if np.isfinite(clip[1]) else 0.0
        return inner + below + above

    mean, variance = (x.item() for x in reward_moments(mdp))
    assert mean == pytest.approx(moment(lambda x: x), abs=1e-7)
    assert variance == pytest.approx(moment(lambda x: (x - mean) ** 2), abs=1e-7)


def test_certain_rewards_have_no_variance_and_no_clip():
    mdp = TabularMDP([[[0]]], [[[1.0]]], [[[-100.0]]], reward_clip=(-10, 10))
    assert reward_moments(mdp) == (-100, 0)


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.95))
@settings(max_examples=60, deadline=None)
def test_value_iteration_is_a_fixed_point_and_its_policy_earns_it(seed, gamma):
    mdp = random_mdp(seed)
    result = value_iteration(mdp, gamma)
    assert result.converged
    mean, _ = reward_moments(mdp)
    onward = np.where(mdp.terminal, 0.0, result.v[mdp.next_state])
    q = (mdp.probability * (mean + gamma * onward)).sum(axis=-1)
    np.testing.assert_allclose(result.q, q, atol=1e-9)
    np.testing.assert_allclose(result.v, q.max(axis=1), atol=1e-9)
    earned = evaluate_policy(mdp, result.q.argmax(axis=1), gamma)
    np.testing.assert_allclose(earned.v_mean, result.v, atol=1e-8)
    other = evaluate_policy(mdp, random_policy(mdp, seed), gamma)
    assert (other.v_mean <= result.v + 1e-8).all()


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9))
@settings(max_examples=60, deadline=None)
def test_variance_is_never_negative_and_equals_second_moment_minus_squared_mean(seed, gamma):
    mdp, policy = random_mdp(seed), random_policy(random_mdp(seed), seed + 1)
    result = evaluate_policy(mdp, policy, gamma)
    assert (result.v_variance >= 0).all()
    assert (result.q_variance >= 0).all()
    # Oracle: E[G^2] = E[R^2] + 2 gamma E[R] E[G'] + gamma^2 E[G'^2], iterated to its fixed point.
    mean, variance = reward_moments(mdp)
    v, second = np.zeros(mdp.num_states), np.zeros(mdp.num_states)
    go = np.where(mdp.terminal, 0.0, mdp.probability)
    for _ in range(400):
        q = (mdp.probability * mean + gamma * go * v[mdp.next_state]).sum(axis=-1)
        square = mdp.probability * (variance + mean**2)
        square = square + 2 * gamma * go * mean * v[mdp.next_state]
        square = (square + gamma**2 * go * second[mdp.next_state]).sum(axis=-1)
        v, second = (policy * q).sum(axis=1), (policy * square).sum(axis=1)
    scale = 1 + abs(second).max()
    np.testing.assert_allclose(result.v_mean, v, atol=1e-8 * scale)
    np.testing.assert_allclose(result.v_variance, second - v**2, atol=1e-8 * scale)
    np.testing.assert_allclose(result.q_variance, square - q**2, atol=1e-8 * scale)


def test_exact_values_agree_with_simulation_on_the_slippery_cliff():
    mdp = cliff_walk()
    policy = value_iteration(mdp, 0.9).q.argmax(axis=1)
    exact = evaluate_policy(mdp, policy, 0.9)
    states, count = np.array([36, 24, 30]), 4_000
    result = simulate_returns(
        mdp,
        policy,
        states[:, None],
        np.arange(4),
        rollouts=count,
        horizon=400,
        gamma=0.9,
        key=jax.random.key(0),
    )
    assert result.returns.shape == (3, 4, count)
    assert bool(result.terminated.all())
    returns = np.asarray(result.returns, float)
    mean, variance = exact.q_mean[states], exact.q_variance[states]
    error = np.sqrt(variance / count) + 1e-4
    assert (abs(returns.mean(axis=-1) - mean) < 4.5 * error).all()
    fourth = ((returns - returns.mean(axis=-1, keepdims=True)) ** 4).mean(axis=-1)
    error = np.sqrt(np.maximum(fourth - variance**2, 0) / count) + 1e-4
    assert (abs(returns.var(axis=-1) - variance) < 4.5 * error).all()


def test_simulation_of_a_stochastic_policy_without_a_first_action():
    mdp = risky_cliff(sigma=0.5)
    tied = optimal_actions(value_iteration(mdp, 1.0).q)
    policy = tied / tied.sum(axis=1, keepdims=True)
    exact = evaluate_policy(mdp, policy, 1.0)
    # Even chances of the two paths: mean -13, variance half of 10 * 0.25.
    assert exact.v_variance[36] == pytest.approx(1.25, rel=1e-9)
    args = {"rollouts": 4_000, "horizon": 50, "gamma": 1.0}
    returns = simulate_returns(mdp, policy, 36, **args, key=jax.random.key(1)).returns
    assert returns.shape == (4_000,)
    assert abs(float(returns.mean()) + 13) < 4 * np.sqrt(1.25 / 4_000)
    assert abs(float(returns.var()) - 1.25) < 0.15
    again = simulate_returns(mdp, policy, 36, **args, key=jax.random.key(1)).returns
    np.testing.assert_array_equal(returns, again)
    other = simulate_returns(mdp, policy, 36, **args, key=jax.random.key(2)).returns
    assert not np.array_equal(returns, other)


def test_the_horizon_cuts_and_says_so():
    # State 0 for ever at reward 1: horizon 7 and gamma 1/2 give 2 (1 - 2^-7).
    mdp = TabularMDP([[[0]]], [[[1.0]]], [[[1.0]]])
    result = simulate_returns(mdp, [0], 0, rollouts=3, horizon=7, gamma=0.5, key=jax.random.key(0))
    np.testing.assert_allclose(result.returns, 2 * (1 - 2**-7), rtol=1e-6)
    assert not result.terminated.any()
    assert (result.steps == 7).all()


def test_improper_policies_at_gamma_one_are_named_and_can_be_left_out():
    mdp = risky_cliff()
    best = value_iteration(mdp, 1.0).q.argmax(axis=1)
    best[14] = 2  # a cell nobody meets sends down,
    best[26] = 0  # the one below sends up again, and 25 leads there
    with pytest.raises(InputError, match=r"never end from state 14 \(3 such states\)"):
        evaluate_policy(mdp, best, 1.0)
    result = evaluate_policy(mdp, best, 1.0, only_reachable=True)
    assert result.v_mean[36] == pytest.approx(-13)
    assert np.isnan(result.v_mean[[14, 25, 26]]).all()
    assert np.isnan(result.q_variance[14]).all()
    assert np.isfinite(evaluate_policy(mdp, best, 0.9).v_mean).all()
    with pytest.raises(InputError, match="never end from state 0"):
        evaluate_policy(mdp, np.zeros(48, int), 1.0, only_reachable=True)


def test_infeasible_actions_are_neither_taken_nor_allowed():
    mdp = TabularMDP(
        next_state=np.zeros((1, 2, 1), int),
        probability=np.ones((1, 2, 1)),
        reward_mean=[[[1.0], [5.0]]],
        terminal=np.ones((1, 2, 1), bool),
        mask=[[True, False]],
    )
    result = value_iteration(mdp, 1.0)
    assert result.v[0] == 1
    assert result.q[0, 1] == -np.inf
    with pytest.raises(InputError, match=r"policy\[s=0, a=1\] uses an infeasible action"):
        evaluate_policy(mdp, [1], 1.0)
    assert np.isnan(evaluate_policy(mdp, [0], 1.0).q_mean[0, 1])


def test_divergence_is_reported_not_hidden():
    mdp = TabularMDP([[[0]]], [[[1.0]]], [[[1.0]]])
    result = value_iteration(mdp, 1.0, max_iterations=50)
    assert not result.converged
    assert result.iterations == 50
    assert result.residual == 1


@pytest.mark.parametrize("gamma", [0.9, 1.0])
@pytest.mark.parametrize("stay", [0.0, 0.5])
def test_the_surest_policy_ends_where_a_circle_is_worth_as_much(gamma, stay):
    # Action 0 walks between the two states and pays nothing (state 0 may also stay where it is).
    # Action 1 ends: in state 0 it pays 1 or -1, in state 1 nothing. All is worth 0, so the surest
    # way from state 0 that ends leads over state 1.
    mdp = TabularMDP(
        next_state=[[[0, 1], [0, 0]], [[0, 0], [0, 0]]],
        probability=[[[stay, 1 - stay], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]],
        reward_mean=[[[0.0, 0.0], [1.0, -1.0]], [[0.0, 0.0], [0.0, 0.0]]],
        terminal=[[[False, False], [True, True]], [[False, False], [True, True]]],
    )
    found = surest(mdp, gamma)
    assert found.policy.tolist() == [0, 1]
    assert found.actions.tolist() == [[True, False], [True, True]]
    assert evaluate_policy(mdp, found.policy, 1.0).v_variance.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros((2, 2)), "policy has shape"),
        ([0, 3], r"policy\[s=1\] is action 3"),
        ("left", "policy must hold numbers"),
        (None, "policy must hold numbers"),
        ([[1.0], [1.0, 0.0]], "policy must hold numbers"),
        ([[1.0], [0.5]], r"policy\[s=1\] is"),
        ([[1.0], [np.nan]], r"policy\[s=1\] is"),
    ],
)
def test_bad_policies_are_named(policy, message):
    with pytest.raises(InputError, match=message):
        policy_probabilities(chain(0.5), policy)


def test_bad_arguments_are_named():
    mdp, key = chain(0.5), jax.random.key(0)
    with pytest.raises(InputError, match=r"gamma is 1\.5"):
        value_iteration(mdp, 1.5)
    with pytest.raises(InputError, match="gamma is 'a'"):
        value_iteration(mdp, "a")
    for call in (value_iteration, surest, exact_process, evaluate_policy, policy_probabilities):
        with pytest.raises(InputError, match="mdp is a int"):
            call(3, *([[0, 0], 0.5] if call is evaluate_policy else [0.5]))
    for gamma in ("a", None, 2, np.nan):
        with pytest.raises(InputError, match="gamma is"):
            exact_process(mdp, gamma)
    for q in ("a", None, []):
        with pytest.raises(InputError, match="q is"):
            optimal_actions(q)
    with pytest.raises(InputError, match="key = 0"):
        simulate_returns(mdp, [0, 0], 0, rollouts=1, horizon=1, gamma=1.0, key=0)
    with pytest.raises(InputError, match="tolerance = -1"):
        value_iteration(mdp, 0.5, tolerance=-1)
    with pytest.raises(InputError, match="max_iterations = 0"):
        value_iteration(mdp, 0.5, max_iterations=0)
    with pytest.raises(InputError, match="tolerance = 'a'"):
        surest(mdp, 0.5, tolerance="a")
    with pytest.raises(InputError, match="state is"):
        simulate_returns(mdp, [0, 0], 2, rollouts=1, horizon=1, gamma=1.0, key=key)
    with pytest.raises(InputError, match="action is"):
        simulate_returns(mdp, [0, 0], 0, -1, rollouts=1, horizon=1, gamma=1.0, key=key)
    with pytest.raises(InputError, match="rollouts = 0"):
        simulate_returns(mdp, [0, 0], 0, rollouts=0, horizon=1, gamma=1.0, key=key)
