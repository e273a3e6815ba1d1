"""Scores of the suite: by hand, against every policy there is, and what a stranger may do wrong."""

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from tiny import TABLE

import surefoot as sf
from surefoot.envs import FINITE_TASKS, finite_task
from surefoot.envs.noisy import NoisyCartPole, TwoRoads
from surefoot.errors import InputError
from surefoot.suite.players import chooser
from surefoot.suite.scores import Score, play, score, score_episodes, static_cvar, word
from surefoot.suite.strangers import environment

pytestmark = pytest.mark.wide


def test_scores_of_the_reference_policies():
    for name, question in itertools.product(FINITE_TASKS, ("tie", "price", "trap")):
        task = finite_task(name, question)
        sure, risky = score(task, task.sure), score(task, task.risky)
        assert sure.spread == pytest.approx(0, abs=1e-9)
        assert risky.spread == pytest.approx(1)
        assert min(sure.given_up, risky.given_up) == pytest.approx(0, abs=1e-9)
        assert sure.solved(question) != risky.solved(question)


def test_a_score_by_hand():
    # Cover in two of four periods: half of the decisions; the loading of 0.75 * 4 sqrt(3) / 4 is
    # paid twice, and a deviation of the risky return is 2 * 4 sqrt(3) / 4; its variance is halved.
    task = finite_task("insurance", "price")
    own = score(task, np.array([0, 1, 0, 1]))
    assert own == pytest.approx((0.5, 0.75, math.sqrt(0.5)))


def test_a_policy_that_walks_in_circles_is_scored_by_its_episodes():
    task = finite_task("risky-cliff")
    own = score(task, np.zeros(task.mdp.num_states, int))  # up for ever: 500 steps
    assert own.given_up > 50
    assert own.right == 1  # at the fork it goes up


def test_static_cvar_by_hand():
    # One period. Cover costs 1 + 0.75 sqrt(3) = 2.299; without it CVaR is -4 at 0.25, and
    # -4 * 0.25 / 0.45 = -2.222 at 0.45.
    task = finite_task("insurance", "price", periods=1)
    assert static_cvar(task, 0.25) == pytest.approx((0, 0.75, 0), abs=1e-8)
    assert static_cvar(task, 0.45) == pytest.approx((1, 0, 1), abs=1e-8)


@pytest.mark.parametrize("level", [0.05, 0.25, 0.45, 0.8])
@pytest.mark.parametrize("question", ["tie", "price", "trap"])
def test_static_cvar_against_every_plan_there_is(question, level):
    task = finite_task("insurance", question, periods=2)
    premium = -float(task.mdp.reward_mean[0, 0, 0])
    kinds = {0: [(1.0, -premium)], 1: [(0.75, 0.0), (0.25, -4.0)]}
    best = (-math.inf, -math.inf)
    for first in (0, 1):
        for then in itertools.product((0, 1), repeat=len(kinds[first])):
            law = [
                (p * q, r + s)
                for (p, r), action in zip(kinds[first], then, strict=True)
                for q, s in kinds[action]
            ]
            left, tail = level, 0.0
            for p, value in sorted(law, key=lambda atom: atom[1]):
                taken = min(left, p)
                tail, left = tail + taken * value, left - taken
            mean = sum(p * value for p, value in law)
            best = max(best, (round(tail / level, 9), round(mean, 9)))
    own = static_cvar(task, level)
    mean = task.references["right"].mean - own.given_up * task.unit
    assert mean == pytest.approx(best[1], abs=1e-6)


@pytest.mark.parametrize("name", ["insurance", "two-suppliers", "maintenance", "many-equals"])
def test_static_cvar_of_everything_is_the_best_mean(name):
    assert static_cvar(finite_task(name, "price"), 1.0).given_up == pytest.approx(0, abs=1e-6)


def test_static_cvar_needs_discrete_rewards():
    assert static_cvar(finite_task("portfolio"), 0.25) is None


def test_words():
    rng = np.random.default_rng(0)
    noisy = rng.normal(0, 1, 500)
    assert word(noisy, noisy) == "same"
    assert word(np.full(500, 1.0), noisy) == "established"
    assert word(noisy, np.full(500, 1.0)) == "contradicted"


@pytest.mark.slow
def test_dominance_is_not_established_where_means_are_equal():
    # Insurance, tie: -4 for certain against four losses of 4 with chance 1/4, 500 episodes each. A
    # test of level 0.05 establishes a dominance at equal means in 0.05 of the cases at most (here
    # within three errors), and nearly always where the mean is better by 0.2 deviations.
    rng = np.random.default_rng(500)
    share = {
        lead: np.mean([
            word(np.full(500, lead * math.sqrt(12) - 4), -4.0 * rng.binomial(4, 0.25, 500), i)
            == "established"
            for i in range(100)
        ])
        for lead in (0.0, 0.2)
    }  # fmt: skip
    assert share[0.0] <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 100)
    assert share[0.2] >= 0.95


@pytest.mark.parametrize(("question", "right"), [("tie", 1.0), ("price", 0.0), ("trap", 1.0)])
def test_the_calm_road(question, right):
    env = TwoRoads(question=question)

    def around(x):
        return np.where((x[:, 1] < 0.25) & (x[:, 0] < 0.2), 1, 0)

    own = score_episodes(env, play(env, around, 300, 0))
    assert own.right == right
    lost = 0.75 if question == "price" else 0.0
    assert own.given_up == pytest.approx(lost, abs=0.02)
    assert own.spread < 0.06  # half of the starts have one step more
    lost = score_episodes(env, play(env, lambda x: np.full(len(x), 2), 20, 0))
    assert lost.right == 0  # it never arrives


def test_what_is_given_up_has_no_noise_in_it():
    # 200 noisy returns know their mean up to 0.07 deviations; without the noise of the rewards only
    # the start is left, which decides on one step of 0.1 (0.05 / 0.98 / sqrt(200) = 0.004).
    env = TwoRoads(question="price")
    played = [play(env, lambda x: np.zeros(len(x), int), 200, seed) for seed in range(3)]
    assert np.std([own.returns.mean() for own in played]) > 0.02
    assert all(abs(score_episodes(env, own).given_up) < 0.015 for own in played)


@pytest.mark.slow
def test_how_long_a_pole_can_stand_in_the_noise():
    # The reference of `NoisyCartPole.best_mean`: push left while this sum is negative.
    env = NoisyCartPole(question="price")
    gains = np.array([0.2999, 2.5934, 3.0788, 2.2375])

    def lean(x):
        return ((x - [-2.1044, 0, 0, 0]) @ gains > 0).astype(int)

    own = play(env, lean, 4000, 7)
    stood = own.exposure * own.steps
    assert abs(stood.mean() - 472) < 4 * stood.std() / math.sqrt(4000)
    assert abs(score_episodes(env, own).given_up) < 0.02


# --- a player of one's own -----------------------------------------------------------------------


def careful(obs):
    """Buys cover in every period."""
    return np.zeros(len(obs), int)


def test_a_function_is_scored():
    scores = sf.suite.run(careful, tasks=("insurance",))
    assert [question for _, question, _ in scores.rows] == ["tie", "price", "trap"]
    assert [own.right for *_, own in scores.rows] == [1, 0, 1]
    assert not scores.solved
    text = str(scores)
    assert "insurance       price     ✗      0.00     1.500    0.00" in text
    assert text.count("✓") == 2


def test_particles_an_ensemble_and_counts():
    def particles(obs):  # the second is worth the same and varies
        return np.zeros((len(obs), 2, 4)) + np.array([[0.0] * 4, [-1, -1, 1, 1]])

    ties = {"tasks": ("insurance",), "questions": ("tie",)}
    assert sf.suite.run(particles, policy="ssd:0.1", **ties).solved
    assert sf.suite.run(lambda obs: (particles(obs), np.full((len(obs), 2), 30)), **ties).solved

    def ensemble(obs):
        noise = np.random.default_rng(0).normal(0, 0.1, (len(obs), 5, 2, 1))
        return particles(obs)[:, None] + noise

    assert sf.suite.run(ensemble, **ties).solved
    with pytest.raises(InputError, match="cannot tell from one estimate"):
        sf.suite.run(particles, **ties)


def test_an_agent_is_trained_and_scored():
    def train(env, seed):
        return sf.TabularAgent(env, seed=seed, **TABLE).learn(600)

    scores = sf.suite.run(train=train, tasks=("insurance",), questions=("trap",))
    assert scores.rows[0][2].right > 0.9


def test_an_agent_decides_as_it_evaluates():
    # Worth the same; CVaR 0.05 sees the loss of 4 (or more to come), the mean alone does not.
    states = np.arange(4)
    agent = sf.TabularAgent(finite_task("insurance").mdp, evaluation="cvar:0.05", **TABLE)
    agent.learn(600)
    assert chooser(agent, 2)(states).tolist() == agent.predict(states).tolist() == [0] * 4
    asked = [agent.explain(s, policy="greedy").action for s in states]
    assert chooser(agent, 2, "greedy")(states).tolist() == asked != [0] * 4


@pytest.mark.parametrize(
    ("player", "said"),
    [
        (lambda obs: np.zeros(len(obs) + 1, int), r"actions of shape \(5,\): for 4 observations"),
        (lambda obs: np.full(len(obs), 2), r"returned action 2: the task has actions 0\.\.1"),
        (lambda obs: np.full(len(obs), np.nan), "an action that is not a number"),
        (lambda obs: np.full(len(obs), 0.5), "4 whole numbers"),
        (lambda obs: np.zeros((len(obs), 3, 8)), "particles of 3 actions: the task has 2"),
        (lambda obs: ["left"] * len(obs), "returned an action that is not a number"),
        (lambda obs: np.zeros((len(obs), 2)), r"returned shape \(4, 2\) for 4 observations"),
        (lambda _: np.zeros((3, 2, 8)), r"returned shape \(3, 2, 8\) for 4 observations"),
        (lambda obs: np.full((len(obs), 2, 8), np.nan), "not finite"),
        ("a player", "player is a str: pass an agent"),
    ],
)
def test_what_a_player_may_do_wrong(player, said):
    with pytest.raises(InputError, match=said) as error:
        sf.suite.run(player, tasks=("insurance",), policy="ssd:0.1")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tasks": ("insurances",)}, "unknown task 'insurances'"),
        ({"questions": ("ties",)}, "unknown question 'ties'"),
        ({"tasks": ("insurance",), "chance": 2.0}, "chance = 2.0"),
        ({"train": careful}, "pass a player, or train"),
        ({"episodes": 1}, "episodes = 1"),
        ({"episodes": True}, "episodes = True"),
        ({"episodes": 2.5}, "episodes = 2.5"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": "a"}, "seed = 'a'"),
        ({"tasks": "insurance"}, "tasks = 'insurance': it must be a list of names"),
        ({"tasks": 3}, "tasks = 3"),
        ({"questions": "tie"}, "questions = 'tie'"),
        ({"tasks": ()}, "nothing to score"),
        ({"tasks": ("mean-reversion",), "questions": ("price",)}, "nothing to score"),
        ({"policy": "sdd"}, "unknown policy 'sdd'"),
        ({"policy": 3}, "policy = 3"),
    ],
)
def test_what_a_caller_may_do_wrong(options, said):
    with pytest.raises(InputError, match=said):
        sf.suite.run(careful, **options)


def test_train_has_to_be_a_function_that_returns_a_player():
    for train, said in ((3, "train is a int"), (lambda env, seed: None, "train returned None")):
        with pytest.raises(InputError, match=said):
            sf.suite.run(train=train, tasks=("insurance",), questions=("tie",))


def test_environments_have_their_time_limit():
    env = environment("risky-cliff", "price")
    assert isinstance(env, gym.wrappers.TimeLimit)
    assert environment("two-roads", "trap").unwrapped.pure.question == "trap"
    assert chooser(careful, 2)(np.arange(3)).tolist() == [0, 0, 0]
    assert Score(1.0, 0.0, 0.0).solved("price")


def test_scores_are_shown_by_notebooks_and_drawn():
    made = sf.suite.run(lambda obs: np.zeros(len(obs), int), tasks=("insurance",))
    assert made._repr_html_().count("<tr>") == 4
    assert "<th>insurance</th><td>price</td><td>no</td>" in made._repr_html_()
    assert "<td>tie</td><td>yes</td><td>1.00</td>" in made._repr_html_()
    shown = [text.get_text() for text in made.figure().axes[0].texts]
    assert shown[::2] == ["✓", "✗", "✓"]
    assert str(made).splitlines()[-2].startswith("right: share of right decisions; given up")
