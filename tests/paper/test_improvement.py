"""The improvement theorem, its lemmas, and what happens outside of its assumptions.

docs/theory.md has the proofs; the numbers of the tests' names are those of its steps.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.envs import ReturnLaw, TabularMDP, evaluate_policy, exact_process
from surefoot.errors import InputError
from surefoot.paper import improvement as im

F = Fraction
MANY = 300


def law(atoms):
    """From a dictionary of weights."""
    values = tuple(sorted(atoms))
    weights = tuple(atoms[z] for z in values)
    return ReturnLaw(values, weights, 1, sum(weights))


def mixed(parts):
    """From pairs (weight, law), which need not add up to anything."""
    total = int(np.prod([x.total for _, x in parts]))
    atoms: dict[int, int] = {}
    for weight, x in parts:
        for z, w in zip(x.values, x.weights, strict=True):
            atoms[z] = atoms.get(z, 0) + weight * w * (total // x.total)
    return law(atoms)


def moved(x, scale, noise):
    """`scale * X + R` with an independent R of the law `noise`."""
    parts = [
        (w, law({scale * z + r: v for z, v in zip(x.values, x.weights, strict=True)}))
        for r, w in zip(noise.values, noise.weights, strict=True)
        if scale
    ]
    return mixed(parts) if scale else noise


laws = st.dictionaries(st.integers(-4, 4), st.integers(1, 4), min_size=1, max_size=4).map(law)


@st.composite
def ordered(draw):
    """x dominates y: y takes from x by a loss and by spreads that keep the mean."""
    x, atoms = draw(laws), {}
    for z, w in zip(x.values, x.weights, strict=True):
        by, loss = draw(st.integers(0, 3)), draw(st.integers(0, 1))
        for value in (z - by - loss, z + by - loss):
            atoms[value] = atoms.get(value, 0) + w
    return x, law(atoms)


@settings(deadline=None)
@given(ordered(), ordered(), st.integers(1, 3), st.integers(1, 3))
def test_1_mixtures_keep_dominance(one, two, p, q):
    (x, y), (v, w) = one, two
    assert x.dominates(y)
    assert mixed([(p, x), (q, v)]).dominates(mixed([(p, y), (q, w)]))


@settings(deadline=None)
@given(ordered(), laws, st.integers(0, 3))
def test_2_and_3_rewards_and_scaling_keep_dominance(pair, noise, scale):
    x, y = pair
    assert moved(x, scale, noise).dominates(moved(y, scale, noise))


def test_3_a_negative_scale_does_not():
    # -1 for sure against 0 or 1 with one half each: the coin is better; turned round it is worse.
    coin, nothing = law({0: 1, 1: 1}), law({0: 1})
    assert coin.dominates(nothing)
    assert not law({0: 1, -1: 1}).dominates(nothing)


def test_2_a_reward_that_depends_on_the_return_does_not():
    # X = 0 for sure dominates Y = +-1. With the reward R = -Y, which is not independent of Y,
    # X + R = -+1 and Y + R = 0 for sure.
    sure, coin = law({0: 1}), law({-1: 1, 1: 1})
    assert sure.dominates(coin)
    assert not coin.dominates(sure)


def test_4_limits_keep_dominance_only_with_their_means():
    # Y_n is -n with probability 1/n and else 0, X_n = -1 for sure: X_n dominates Y_n for every n,
    # all means are -1. Y_n goes to 0 in distribution, and -1 does not dominate 0.
    for n in (1, 2, 10, 1000):
        y = law({-n: 1, 0: n - 1}) if n > 1 else law({-1: 1})
        assert y.mean == -1
        assert law({-1: 1}).dominates(y)
    assert not law({-1: 1}).dominates(law({0: 1}))


@pytest.mark.parametrize("rule", [im.dominant, im.above_policy])
def test_5_no_counterexample_where_dominance_decides(rule):
    changed = 0
    for seed in range(MANY):
        case = im.random_case(np.random.default_rng([11, seed]))
        step = im.improve(case, rule)
        changed += step.changed
        assert not step.broken, f"seed {seed}: the theorem is broken"
        assert not any(step.worse_somewhere(lambda x, t=t: x.cvar(t)) for t in (F(1, 4), F(1)))
    assert changed > MANY / 2


def test_5_other_rules_do_have_counterexamples():
    """The check can fail: of these rules neither keeps the order."""
    worst = im.best(lambda x: -x.mean)
    cases = [im.random_case(np.random.default_rng([12, seed])) for seed in range(60)]
    for rule in (worst, im.best(im.mean), im.dominant_or_mean):
        assert any(im.improve(case, rule).broken for case in cases)
    assert not any(im.improve(c, im.dominant_or_mean).worse_somewhere(im.mean) for c in cases)
    assert any(im.improve(c, worst).worse_somewhere(im.mean) for c in cases)


def test_6_a_tolerance_adds_up_over_the_steps():
    """Any new policy at all: what it falls short by in one step bounds what it does in the end."""
    positive = 0
    for seed in range(MANY):
        rng = np.random.default_rng([14, seed])
        case = im.random_case(rng)
        old = case.returns
        rows = [rng.choice(sorted(laws)) for laws in old.pairs]
        policy = np.eye(case.policy.shape[1])[rows]
        step = max(old.pairs[s][a].violation(old.states[s]) for s, a in enumerate(rows))
        new = case.process.returns(policy)
        worst = max(x.violation(y) for x, y in zip(new.states, old.states, strict=True))
        gamma = case.process.gamma
        assert worst <= step * sum(gamma**k for k in range(case.process.steps))
        positive += worst > 0
    assert positive > MANY / 2


def test_7_repeated_improvement_comes_to_an_end():
    for seed in range(60):
        case = im.random_case(np.random.default_rng([13, seed]))
        last = im.settle(case, im.above_policy)
        for new, old in zip(last.returns.states, case.returns.states, strict=True):
            assert new.dominates(old)
        assert not im.improve(last, im.above_policy).changed


def test_8_without_discount_the_new_policy_must_end():
    # One state: stop with 1, or stay for nothing. Under "stop" both actions are worth 1, so that
    # "stay" dominates (weakly) and may be taken; its own return never comes: 0, if anything.
    mdp = TabularMDP(
        next_state=[[[0], [0]]], probability=[[[1.0], [1.0]]], reward_mean=[[[1.0], [0.0]]],
        terminal=[[[True], [False]]],
    )  # fmt: skip
    under_stop = evaluate_policy(mdp, [0], 1.0)
    assert under_stop.q_mean.tolist() == [[1.0, 1.0]]
    assert under_stop.q_variance.tolist() == [[0.0, 0.0]]
    with pytest.raises(InputError, match="may never end"):
        evaluate_policy(mdp, [1], 1.0)
    assert evaluate_policy(mdp, [1], 0.75).v_mean.tolist() == [0.0]
    assert evaluate_policy(mdp, [0], 0.75).q_mean.tolist() == [[1.0, 0.75]]  # no longer dominant
    with pytest.raises(InputError, match="met twice"):
        exact_process(mdp, 1.0)


def test_means_of_quantile_bins_keep_dominance_and_quantiles_do_not():
    """As `transport.project` does, and as quantile regression with one particle would."""
    rng = np.random.default_rng(15)
    for _ in range(200):
        y = np.sort(rng.integers(-9, 9, 12))
        x = np.sort(y + np.sort(rng.integers(-3, 6, 12))[::-1])  # raised at the bottom
        if (np.cumsum(x) >= np.cumsum(y)).all():
            bins = (z.reshape(3, 4).sum(axis=1) for z in (x, y))
            assert np.subtract(*map(np.cumsum, bins)).min() >= 0
    # 1 for sure over -10 or 2: the medians, 1 and 2, say the opposite.
    sure, risky = law({1: 5}), law({-10: 2, 2: 3})
    assert sure.dominates(risky)
    assert np.median([1] * 5) < np.median([-10] * 2 + [2] * 3)


def test_where_dominance_does_not_decide_the_policy_stays():
    # Of 1 for sure and of 0 or 4 neither dominates: what the policy does there is kept.
    fork = im.Fork(go_on=0.5, exit=0, sure=1, luck=0.5, good=4, bad=0)
    for row in ([1.0, 0.0], [0.25, 0.75]):
        case = fork.case(0)._replace(policy=np.array([[1.0, 0.0], row]))
        assert im.dominant(case.returns, 1) == set()
        assert not im.improve(case, im.dominant).changed
        assert im.improve(case, im.dominant_or_mean).policy[1].tolist() == [0, 1]


def test_a_dominant_action_replaces_a_mixed_policy():
    # 2 for sure over 0 or 4: equal means, so the second order alone decides.
    case = im.Fork(0.5, 0, sure=2, luck=0.5, good=4, bad=0).case(1)
    case = case._replace(policy=np.array([[1.0, 0.0], [0.5, 0.5]]))
    step = im.improve(case, im.dominant)
    assert step.policy.tolist() == [[1, 0], [1, 0]]
    assert step.old.states[1].atoms == {0: F(1, 4), 2: F(1, 2), 4: F(1, 4)}
    assert step.new.states[0].atoms == {0: F(1, 2), 2: F(1, 2)}
    assert not step.broken


def test_the_counterexample_to_cvar_by_hand():
    # State 1: -1 for sure, or -2 with 1/4 and 0 with 3/4. Its worst quarter is -1 or -2: CVaR 1/4
    # takes the sure one. Seen from the start state 1 comes with 1/4 only. Before: -2 with 1/16, so
    # the worst quarter is -2 * 1/16 / (1/4) = -1/2. After: -1 with 1/4, so it is -1.
    example = im.smallest_counterexample(lambda x: x.cvar(F(1, 4)))
    assert example.fork == im.Fork(go_on=0.25, exit=0, sure=-1, luck=0.75, good=0, bad=-2)
    assert (example.old_action, example.new_action) == (1, 0)
    old, new = example.step.old.states, example.step.new.states
    assert old[1].atoms == {-2: F(1, 4), 0: F(3, 4)}
    assert new[1].atoms == {-1: F(1)}
    assert old[0].atoms == {-2: F(1, 16), 0: F(15, 16)}
    assert new[0].atoms == {-1: F(1, 4), 0: F(3, 4)}
    assert [x.cvar(F(1, 4)) for x in (*old, *new)] == [F(-1, 2), -2, -1, -1]
    assert [x.mean for x in (*old, *new)] == [F(-1, 8), F(-1, 2), F(-1, 4), -1]
    case = example.fork.case(example.old_action)
    assert im.dominant(example.step.old, 1) == set()  # dominance keeps its hands off
    assert not im.improve(case, im.dominant).changed


def test_no_smaller_rewards_make_a_counterexample():
    """Independent of the process: only the worst quarter of a three-point law, in floats."""

    def worst_quarter(atoms):
        left, added = 0.25, 0.0
        for z, p in sorted(atoms):
            added, left = added + min(p, left) * z, left - min(p, left)
        return added / 0.25

    def counter(f):
        coin = [(f.good, f.luck), (f.bad, 1 - f.luck)]
        sure, risky = worst_quarter([(f.sure, 1.0)]), worst_quarter(coin)
        ways = {
            a: worst_quarter([(f.exit, 1 - f.go_on), *((z, p * f.go_on) for z, p in law)])
            for a, law in ((0, [(f.sure, 1.0)]), (1, coin))
        }
        return (sure > risky and ways[0] < ways[1]) or (sure < risky and ways[0] > ways[1])

    size = [abs(f.exit) + abs(f.sure) + abs(f.good) + abs(f.bad) for f in im.forks(2) if counter(f)]
    assert min(size) == 3


def test_a_score_without_counterexample_is_told():
    with pytest.raises(LookupError):
        im.smallest_counterexample(im.mean, largest=1)
