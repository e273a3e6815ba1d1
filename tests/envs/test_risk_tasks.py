"""The finite tasks of the risk suite: answers by hand, by exact return distributions, by scale."""

import math
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot.envs import (
    FINITE_TASKS,
    QUESTIONS,
    CliffGrid,
    evaluate_policy,
    exact_process,
    expected_visits,
    finite_task,
    greedy_path,
    risky_cliff,
    surest,
    value_iteration,
)
from surefoot.errors import InputError

COINS = ("insurance", "two-suppliers", "maintenance", "many-equals")
IDS = ("Insurance", "TwoSuppliers", "Maintenance", "ManyEquals", "Portfolio")
EVERY = [(name, question) for name in FINITE_TASKS for question in QUESTIONS]


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_checker_finds_nothing(name, render_mode):
    check_env(gym.make(f"surefoot/{name}-v0", render_mode=render_mode).unwrapped)


def test_pictures_show_where_the_agent_is():
    env = gym.make("surefoot/TwoSuppliers-v0", render_mode="ansi", question="price")
    env.reset(seed=0)
    assert env.render() == "period 1 of 4, nothing in stock\n@ · · ·\n· · · ·\n· · · ·"
    env = gym.make("surefoot/Insurance-v0", render_mode="rgb_array", periods=3)
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (49, 3 * 48 + 1, 3)
    env.step(1)
    # The agent moved one cell to the right.
    np.testing.assert_array_equal(first[:, 1:48], env.render()[:, 49:96])


@pytest.mark.parametrize(
    ("name", "question", "sure", "risky"),
    [
        # (C + 1) steps of -1; 10 noisy cells of deviation 1; the bonus is 3/4 of sqrt(10).
        ("risky-cliff", "tie", (-13, 0), (-13, math.sqrt(10))),
        ("risky-cliff", "price", (-13, 0), (-13 + 0.75 * math.sqrt(10), math.sqrt(10))),
        # Four periods: loss 4 with chance 1/4, deviation 4 sqrt(3) / 4 each.
        ("insurance", "tie", (-4, 0), (-4, 2 * math.sqrt(3))),
        ("insurance", "price", (-4 - 3 * math.sqrt(3), 0), (-4, 2 * math.sqrt(3))),
        ("insurance", "trap", (-2, 0), (-4, 2 * math.sqrt(3))),
        ("many-equals", "tie", (0, 0), (0, 2)),
        ("many-equals", "price", (0, 0), (3, 2)),
        ("many-equals", "trap", (-6, 0), (0, 2)),
        # Half of each: variance (1 + rho) / 2 = 1 / 4. Price: 3/4 better than the mix.
        ("portfolio", "tie", (1, 0.5), (1, 1)),
        ("portfolio", "price", (1.75, 0.5), (2.5, 1)),
        ("portfolio", "trap", (1, 1), (-0.5, 2)),
    ],
)
def test_moments_by_hand(name, question, sure, risky):
    found = finite_task(name, question).references
    assert found["sure"] == pytest.approx(sure)
    assert found["risky"] == pytest.approx(risky)


def test_suppliers_by_hand():
    # Last period, empty shop: order for 2, keep the unit (0.5) if nobody comes: -2.25. Ordering
    # nothing loses 6 with chance 1/2. Full shop: nothing is ordered, 0.5 is paid with chance 1/2.
    task = finite_task("two-suppliers")
    q = value_iteration(task.mdp, 1.0).q
    np.testing.assert_allclose(q[3], [-3, -2.25, -2.25])
    assert q[7, 0] == pytest.approx(-0.25)
    # One period before: -2, then on with one unit (and 0.5 for it) or none, by the coin.
    assert q[2, 1] == pytest.approx(-2 + 0.5 * (-0.5 - 0.25) + 0.5 * -2.25)


def test_maintenance_by_hand():
    # Last period: a repair is worth chance * 8. One before, as new: it breaks with 1/8 and the new
    # machine is worth -1 then, or wears and is worth -2: -(8 + 1) / 8 - 2 * 7 / 8 = -2.875; after a
    # repair -1 is to come, so the repair costs 1.875.
    mdp = finite_task("maintenance", periods=2).mdp
    assert mdp.reward_mean[[1, 3, 5], 0, 0].tolist() == [-1, -2, -4]
    assert mdp.reward_mean[0, 0, 0] == -1.875


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", COINS)
def test_what_is_right_dominates_by_exact_distributions(name, question):
    task = finite_task(name, question)
    answer = task.answer
    exact = exact_process(task.mdp, 1).returns(answer.policy)
    for state in np.flatnonzero(task.weights > 0):
        laws = exact.pairs[state]
        best = max(law.mean for law in laws.values())
        for action, law in laws.items():
            right = answer.actions[state, action]
            good = law.mean == best if question != "price" else abs(law.mean - best) < 1e-9
            assert not right or good
            if right and question == "tie":  # over every other action of the best mean
                rivals = [a for a in laws if laws[a].mean == best]
                assert all(law.dominates(laws[a]) for a in rivals)
                assert len(rivals) > 1
    right, wrong = (task.risky, task.sure) if question == "price" else (None, None)
    if question == "price":  # better, and neither dominates: safety has a price
        laws = [exact_process(task.mdp, 1).returns(p).states for p in (right, wrong)]
        start = int(task.mdp.start)
        assert laws[0][start].mean > laws[1][start].mean
        assert not laws[0][start].dominates(laws[1][start])
        last = [law[task.cells[1] - 1] for law in laws]  # in the last period any CVaR refuses it
        level = Fraction(1, 4) if name in ("insurance", "maintenance") else Fraction(9, 20)
        if name != "maintenance":  # there an eighth is at stake
            assert last[0].cvar(level) < last[1].cvar(level)
        assert last[0].cvar(Fraction(1, 20)) < last[1].cvar(Fraction(1, 20))


@pytest.mark.parametrize("name", COINS)
def test_the_trap_is_dominated(name):
    task = finite_task(name, "trap")
    process, start = exact_process(task.mdp, 1), int(task.mdp.start)
    sure, risky = (process.returns(p).states[start] for p in (task.sure, task.risky))
    right, wrong = (sure, risky) if task.share_right(task.sure) == 1 else (risky, sure)
    assert right.dominates(wrong)
    assert not wrong.dominates(right)
    if name in ("maintenance", "many-equals"):  # the sure one is worse whatever happens
        assert wrong == sure
        assert right.dominates(wrong, order=1)


@pytest.mark.parametrize(("name", "question"), EVERY)
def test_the_right_policy_is_the_one_the_question_says(name, question):
    task = finite_task(name, question)
    dominated_sure = question == "trap" and name in ("maintenance", "many-equals")
    right, wrong = (task.sure, task.risky)
    if question == "price" or dominated_sure:
        right, wrong = wrong, right
    assert task.share_right(right) == pytest.approx(1)
    assert task.share_right(wrong) == 0
    assert task.weights.sum() == pytest.approx(1)
    assert task.references["right"] == pytest.approx(task.moments(right))


@pytest.mark.parametrize("scale", [0.001, 1000])
@pytest.mark.parametrize(("name", "question"), EVERY)
def test_the_answer_has_no_unit(name, question, scale):
    one, other = finite_task(name, question), finite_task(name, question, scale=scale)
    asked = one.weights > 0
    np.testing.assert_array_equal(one.answer.actions[asked], other.answer.actions[asked])
    np.testing.assert_allclose(other.mdp.reward_mean, scale * one.mdp.reward_mean, rtol=1e-12)
    for name, moments in one.references.items():
        want = scale * np.array(moments)
        np.testing.assert_allclose(other.references[name], want, rtol=1e-9, atol=1e-9 * scale)


def test_surest_agrees_with_all_policies_tried():
    # Every policy of the smallest suppliers' task: none has a better mean, nor the same mean with
    # less variance.
    task = finite_task("two-suppliers", periods=2)
    found, free = surest(task.mdp), 3  # the states that can be met: stock 0 and 1, then 0, 1
    best = evaluate_policy(task.mdp, found.policy, 1.0)
    for number in range(free**4):
        policy = found.policy.copy()
        policy[[0, 1, 3, 5]] = [number // free**i % free for i in range(4)]
        tried = evaluate_policy(task.mdp, policy, 1.0)
        worse = tried.v_mean[0] < best.v_mean[0] - 1e-9
        assert worse or tried.v_variance[0] >= best.v_variance[0] - 1e-9


def test_expected_visits_by_hand():
    # Running on from condition 1: broken with 1/4 (as new), else worn.
    task = finite_task("maintenance")
    visits = expected_visits(task.mdp, task.risky).reshape(3, 4)
    np.testing.assert_allclose(visits[:, 0], [0, 1, 0])
    np.testing.assert_allclose(visits[:, 1], [0.25, 0, 0.75])
    np.testing.assert_allclose(visits.sum(axis=0), 1)


@pytest.mark.parametrize(("rows", "columns"), [(8, 12), (5, 5), (100, 100)])
def test_a_high_cliff_ties_too(rows, columns):
    grid = CliffGrid(rows, columns)
    mdp = risky_cliff(rows, columns)
    values = value_iteration(mdp, 1.0, 1e-11)
    assert values.v[grid.start] == pytest.approx(-(columns + 1))
    fork = values.q[grid.state(rows - 2, 0)]
    np.testing.assert_allclose(fork[:2], -columns, rtol=1e-9)
    assert (fork[2:] < -columns - 0.1).all()
    task = finite_task("risky-cliff", rows=rows, columns=columns)
    for policy, length in ((task.sure, columns + 2 * rows - 3), (task.risky, columns + 1)):
        path = greedy_path(mdp, policy)
        assert path.terminated
        assert len(path.actions) == length
        assert path.mean_return == pytest.approx(-(columns + 1))


@pytest.mark.parametrize(
    ("name", "knobs", "said"),
    [
        ("insurances", {}, "unknown task 'insurances'"),
        ("insurance", {"question": "ties"}, "unknown question 'ties'"),
        ("insurance", {"premium": 1}, "unknown knob of insurance 'premium'"),
        ("insurance", {"chance": 1.5}, "chance = 1.5: a chance lies between 0 and 1"),
        ("insurance", {"periods": 0}, "periods = 0"),
        ("insurance", {"scale": 0}, "scale = 0: it must be a positive number"),
        ("many-equals", {"noisy": 0}, "noisy = 0"),
        ("many-equals", {"price": -1}, "price = -1: it must be a positive number"),
        ("two-suppliers", {"lost": 4}, "ordering never pays"),
        ("maintenance", {"chances": (0.5, 2)}, "chances = 2"),
        ("maintenance", {"chances": 0.5}, "chances = 0.5: one for each condition"),
        ("insurance", {"price": "dear"}, "price = dear"),
        ("portfolio", {"weights": 4}, "an odd number"),
        ("portfolio", {"correlation": 1}, "correlation = 1"),
        ("risky-cliff", {"sigma": math.nan}, "sigma = nan"),
    ],
)
def test_mistakes_are_one_line(name, knobs, said):
    with pytest.raises(InputError, match=said) as error:
        finite_task(name, **knobs)
    assert "\n" not in str(error.value)
