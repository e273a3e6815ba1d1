"""Exact laws of returns: by hand, by walking every path, and beside the float arithmetic."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core.dominance import fsd_dominates, ssd_dominates, violation
from surefoot.core.particles import cvar
from surefoot.envs import ReturnLaw, TabularMDP, evaluate_policy, exact_process
from surefoot.errors import InputError
from surefoot.paper.improvement import random_case

F = Fraction


def law(atoms: dict[int, int], unit: int = 1) -> ReturnLaw:
    """From whole weights of whole values."""
    values = tuple(sorted(atoms))
    weights = tuple(atoms[z] for z in values)
    return ReturnLaw(values, weights, unit, sum(weights))


laws = st.dictionaries(st.integers(-6, 6), st.integers(1, 5), min_size=1, max_size=5).map(law)


def two_steps(**changes):
    """State 0: action 0 ends with 1 or goes on to state 1, evenly; action 1 goes on for sure and
    pays 1. State 1 ends with 0 or 4, evenly. A third outcome, which cannot happen, leads back."""
    fields = {
        "next_state": [[[0, 1, 0], [1, 1, 0]], [[0, 0, 0]] * 2],
        "probability": [[[0.5, 0.5, 0], [1.0, 0, 0]], [[0.5, 0.5, 0]] * 2],
        "reward_mean": [[[1, 0, 9], [1, 9, 9]], [[0, 4, 9]] * 2],
        "terminal": [[[True, False, False], [False] * 3], [[True, True, False]] * 2],
        "mask": [[True, True], [True, False]],
    }
    return TabularMDP(**{name: np.array(value) for name, value in (fields | changes).items()})


def test_two_steps_by_hand():
    # State 1 at gamma = 1/2 is worth 0 or 2 a step before. After action 0: 1 with 1/2, else 0 or 2
    # with 1/4 each. After action 1: 1 or 3 evenly. Taken 1 : 3, the state has 0 with 1/16,
    # 1 with 2/16 + 6/16, 2 with 1/16, 3 with 6/16.
    process = exact_process(two_steps(), F(1, 2))
    returns = process.returns([[0.25, 0.75], [1, 0]])
    assert process.steps == 2
    assert returns.pairs[0][0].atoms == {0: F(1, 4), 1: F(1, 2), 2: F(1, 4)}
    assert returns.pairs[0][1].atoms == {1: F(1, 2), 3: F(1, 2)}
    assert list(returns.pairs[1]) == [0]  # the other action is masked
    state = returns.states[0]
    assert state.atoms == {0: F(1, 16), 1: F(8, 16), 2: F(1, 16), 3: F(6, 16)}
    assert state.mean == F(8 + 2 + 18, 16)
    assert state.cvar(F(1, 8)) == F(1, 2)  # 0 and 1, a sixteenth each
    assert state.cvar(1) == state.mean


def test_gamma_zero_sees_one_step_only():
    returns = exact_process(two_steps(), 0).returns([0, 0])
    assert returns.states[0].atoms == {0: F(1, 2), 1: F(1, 2)}


def every_path(mdp, policy, gamma, state, left=20):
    """Probability of each return, by walking through all episodes with fractions."""
    assert left, "an episode that does not end"
    made: Counter[Fraction] = Counter()
    for a in range(mdp.num_actions):
        for m in range(mdp.num_outcomes):
            p = F(policy[state, a]) * F(float(mdp.probability[state, a, m]))
            if not p:
                continue
            after = (
                {F(0): F(1)}
                if mdp.terminal[state, a, m]
                else every_path(mdp, policy, gamma, int(mdp.next_state[state, a, m]), left - 1)
            )
            for z, q in after.items():
                made[F(float(mdp.reward_mean[state, a, m])) + gamma * z] += p * q
    return made


@pytest.mark.parametrize("seed", range(40))
def test_random_processes_against_every_path_and_float_moments(seed):
    case = random_case(np.random.default_rng([5, seed]))
    process, policy = case.process, case.policy
    returns = process.returns(policy)
    values = evaluate_policy(process.mdp, policy, float(process.gamma))
    for s, state in enumerate(returns.states):
        assert state.atoms == every_path(process.mdp, policy, process.gamma, s)
        variance = sum(p * (z - state.mean) ** 2 for z, p in state.atoms.items())
        assert float(state.mean) == pytest.approx(values.v_mean[s], abs=1e-12)
        assert float(variance) == pytest.approx(values.v_variance[s], abs=1e-12)
        for a, pair in returns.pairs[s].items():
            assert float(pair.mean) == pytest.approx(values.q_mean[s, a], abs=1e-12)
        assert list(returns.pairs[s]) == np.flatnonzero(process.mdp.feasible[s]).tolist()


def test_what_has_no_exact_law_is_refused():
    with pytest.raises(InputError, match="state 0 can be met twice"):
        exact_process(two_steps(terminal=np.zeros((2, 2, 3))), 1.0)
    with pytest.raises(InputError, match="reward_std"):
        exact_process(two_steps(reward_std=np.ones((2, 2, 3))), 1.0)
    tenths = np.full((2, 2, 3), [0.1, 0.2, 0.7])
    with pytest.raises(InputError, match=r"probability\[0, 0\] adds up to one only after"):
        exact_process(two_steps(probability=tenths, terminal=np.ones((2, 2, 3))), 1.0)
    with pytest.raises(InputError, match=r"policy\[0\] adds up"):
        exact_process(two_steps(), 1.0).returns([[0.1, 0.9], [1, 0]])
    with pytest.raises(InputError, match="infeasible"):
        exact_process(two_steps(), 1.0).returns([0, 1])
    with pytest.raises(InputError, match="gamma"):
        exact_process(two_steps(), 1.5)
    one = law({0: 1})
    for wrong in (0, 1.5):
        with pytest.raises(InputError, match="level"):
            one.cvar(wrong)
    with pytest.raises(InputError, match="units"):
        one.dominates(law({0: 1}, unit=2))
    with pytest.raises(InputError, match="order"):
        one.dominates(one, 3)


def test_dominance_by_hand():
    sure, coin, better = law({1: 1}), law({0: 1, 2: 1}), law({0: 1, 3: 1})
    assert sure.dominates(coin)
    assert not coin.dominates(sure)
    assert not sure.dominates(better)  # a larger mean
    assert not better.dominates(sure)  # a worse tail
    assert better.dominates(coin, order=1)
    assert not sure.dominates(coin, order=1)
    # E(1 - coin)^+ = 1/2, and nothing is short of 1 for sure; E(3 - X)^+ is 2 and 3/2.
    assert (coin.violation(sure), sure.violation(better), sure.violation(coin)) == (
        F(1, 2),
    ) * 2 + (0,)


@settings(deadline=None)
@given(laws, laws)
def test_laws_are_compared_as_particles_are(x, y):
    """Repeated as often as they weigh, over a common number, the values are equal particles."""
    a, b = (
        np.repeat(np.array(one.values, float), np.array(one.weights) * other.total)
        for one, other in ((x, y), (y, x))
    )
    assert x.dominates(y) == bool(ssd_dominates(a, b))
    assert x.dominates(y, order=1) == bool(fsd_dominates(a, b))
    # There the shortfall of F^-2, here that of its conjugate E(t - X)^+: the same number.
    assert float(x.violation(y)) == pytest.approx(float(violation(a, b)), abs=1e-12)
    for level in (F(1, 4), F(1, 2), F(1)):
        assert float(x.cvar(level)) == pytest.approx(float(cvar(a, float(level))), abs=1e-12)


@settings(deadline=None)
@given(laws, laws, laws)
def test_dominance_is_an_order(x, y, z):
    assert x.dominates(x)
    assert not (x.dominates(y) and y.dominates(z)) or x.dominates(z)
    if x.dominates(y) and y.dominates(x):
        assert x.atoms == y.atoms
