"""Tables that know what they rest on: any unit of reward, any start, no evidence untried."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from surefoot.agents.tabular import TabularConfig, Transition, algorithm, outcomes, train_trials
from surefoot.agents.tabular.config import PAPER
from surefoot.envs import CliffGrid, TabularMDP, risky_cliff
from surefoot.policies import SSD

KEY = jax.random.key(0)
FORK = CliffGrid(4, 12).state(2, 0)
SMALL = {"memory": 4, "particles": 4, "horizon": 6, "explore": 0.4}


def fork(factor: float) -> TabularMDP:
    """0 -> 1 or 2, then the end: both roads pay `factor` on average, the second with noise."""
    return TabularMDP(
        next_state=np.array([[[1], [2]], [[0], [0]], [[0], [0]]]),
        probability=np.ones((3, 2, 1)),
        reward_mean=factor * np.array([[[0.0], [0.25]], [[1.0], [0.5]], [[0.75], [0.5]]]),
        reward_std=factor * np.array([[[0.0], [0.5]], [[0.0], [0.0]], [[1.0], [0.25]]]),
        terminal=np.array([[[False]] * 2, [[True]] * 2, [[True]] * 2]),
    )


# mean-variance is left out: its weight is in the units of one over return.
POLICIES = ("greedy", "cvar:0.25", "wang:-0.5", "cpw")
CASES = [
    *({"loss": loss} for loss in ("wgf-exact", "qr")),
    *(
        pytest.param({"loss": loss}, marks=pytest.mark.slow)
        for loss in ("wgf", "wgf-debiased", "proximal-qr", "q-learning", "sarsa")
    ),
    *(
        pytest.param({"behaviour": p, "target": p, "evaluation": p}, marks=pytest.mark.slow)
        for p in POLICIES
    ),
    pytest.param({"behaviour": "ssd:0", "target": "ssd:0"}, marks=pytest.mark.slow),
]


@pytest.mark.wide
@pytest.mark.parametrize("options", CASES, ids=lambda o: o.get("loss", o.get("behaviour")))
def test_rewards_of_another_size_teach_the_same_bit_for_bit(options):
    config = TabularConfig(**SMALL, **options)
    plain, *others = (
        train_trials(config, fork(2.0**power), episodes=30, trials=3, chunk=50, quiet=True)
        for power in (0, 20, -20)
    )
    assert np.asarray(plain.table.z).any()
    for runs, power in zip(others, (20, -20), strict=True):
        factor = np.float32(2.0**power)
        np.testing.assert_array_equal(runs.table.z, np.asarray(plain.table.z) * factor)
        np.testing.assert_array_equal(runs.table.visits, plain.table.visits)  # the same actions
        np.testing.assert_array_equal(runs.table.target_action, plain.table.target_action)
        np.testing.assert_array_equal(runs.action, plain.action)
        np.testing.assert_array_equal(
            np.asarray(runs.episodes)[..., 1:], np.asarray(plain.episodes)[..., 1:]
        )
        if config.scaled:
            assert np.array_equal(runs.table.scale.unit, plain.table.scale.unit * factor)


update = jax.jit(algorithm.update, static_argnums=0)


def test_what_was_not_observed_is_no_evidence():
    # Started from N(0, 1). The first visit replaces the start, and an untried pair is bootstrapped
    # from by its mean alone, so that after one visit z(0, 0) = 1 + mean z(1, a*), a constant.
    config = TabularConfig(particles=4, memory=4, initial_std=1.0)
    begin = jax.jit(algorithm.initial_table, static_argnums=(0, 1, 2))
    table = begin(config, 2, 2, jax.random.key(0))
    zero, one = jnp.int32(0), jnp.int32(1)
    step = Transition(zero, zero, jnp.float32(1), jnp.float32(1), one, zero)
    after = update(config, table, step, None, jax.random.key(1), jnp.asarray(True))
    best = np.asarray(table.z[1]).mean(axis=-1).max()
    np.testing.assert_allclose(after.z[0, 0], 1 + best, rtol=1e-5)
    # One transition was seen of the one pair, and none of the others.
    assert algorithm.evidence(config, after).n.tolist() == [[1, 0], [0, 0]]


def test_the_paper_s_tables_rest_on_the_last_transitions():
    config = TabularConfig(particles=4, memory=4, behaviour="ssd:0.0005", **PAPER)
    table = jax.jit(algorithm.initial_table, static_argnums=(0, 1, 2))(config, 1, 4, KEY)
    table = table._replace(visits=jnp.asarray([[0, 1, 4, 9]]))
    assert algorithm.evidence(config, table).tolist() == [[0, 1, 4, 4]]


def remembered(steps, states):
    """The outcomes of one pair after transitions `[T]` of (reward, next state, discount)."""
    zero, yes = jnp.int32(0), jnp.asarray(True)

    def one(seen, step):
        reward, state, discount = step
        move = Transition(zero, zero, reward, discount, state, zero)
        return outcomes.remember_outcome(seen, move, False, yes), None

    seen = jax.lax.scan(one, outcomes.no_outcomes(states, 1), steps)[0]
    return jax.tree.map(lambda leaf: leaf[0, 0], seen)


@jax.jit
def known_of(rewards, states, discounts, worth):
    """What is known of one pair after these transitions, and what each successor is worth."""
    seen = remembered((rewards, states, discounts), len(worth))
    on = seen.state < len(worth)
    value = jnp.where(on, worth[jnp.minimum(seen.state, len(worth) - 1)], 0.0)
    return seen, *outcomes.summed_up(seen, value, jnp.zeros(len(value)))


def test_a_mean_and_its_error_by_hand():
    # Rewards 1 and 3 to a state worth 10, 5 to the end: values 11, 13, 5. Their mean is 29/3, the
    # mean square about it 104/9, and over n - 1 = 2 of them the error is sqrt(52/9).
    worth = jnp.asarray([10.0, -1.0] + [0.0] * 38)
    args = jnp.asarray([1.0, 3.0, 5.0]), jnp.asarray([0, 0, 1]), jnp.asarray([1.0, 1.0, 0.0])
    seen, mean, known = known_of(*args, worth)
    assert seen.weight.tolist()[:3] == [2, 1, 0]
    assert seen.state.tolist()[:2] == [0, len(worth)]
    np.testing.assert_allclose(mean, 29 / 3, rtol=1e-6)
    assert known.n == 3
    np.testing.assert_allclose(known.error, math.sqrt(52 / 9), rtol=1e-6)
    # Errors of what comes after are added, weighted by how often it does: 2/3 of 0.5^2.
    later = jnp.where(jnp.arange(outcomes.MOST) == 0, 0.5, 0.0)
    value = jnp.where(jnp.arange(outcomes.MOST) == 0, 10.0, 0.0)
    more = jax.jit(outcomes.summed_up)(seen, value, later)[1]
    np.testing.assert_allclose(more.error, math.sqrt(52 / 9 + 0.25 * 2 / 3), rtol=1e-6)


def test_all_transitions_count_however_many():
    # SciPy's standard error of the mean, of all values one after the other.
    rng = np.random.default_rng(0)
    worth = rng.normal(size=40).astype(np.float32)
    states = rng.integers(0, outcomes.MOST, 400)
    rewards = rng.normal(3, 2, 400).astype(np.float32)
    _, mean, known = known_of(rewards, states, np.ones(400, np.float32), worth)
    values = rewards + worth[states]
    np.testing.assert_allclose(mean, values.mean(), rtol=1e-5)
    np.testing.assert_allclose(known.error, scipy.stats.sem(values), rtol=1e-4)
    assert known.n == 400


def test_more_successors_than_there_is_room_for():
    # 40 of them, equally likely: the error says how far the mean is off, and no reward is lost.
    rng = np.random.default_rng(1)
    worth = rng.normal(size=40).astype(np.float32)
    states, ones = rng.integers(0, 40, (200, 400)), np.ones((200, 400), np.float32)
    rewards = rng.normal(3, 0.1, (200, 400)).astype(np.float32)
    each = jax.jit(jax.vmap(known_of, (0, 0, 0, None)))
    seen, mean, known = each(rewards, states, ones, worth)
    np.testing.assert_allclose(seen.weight.sum(axis=1), 400)
    np.testing.assert_allclose(
        (seen.weight * seen.reward).sum(axis=1) / 400, rewards.mean(axis=1), rtol=1e-4
    )
    off = np.asarray(mean) - (rewards.mean(axis=1) + worth.mean())
    assert 0.7 < np.sqrt(np.mean(off**2)) / np.mean(known.error) < 1.3
    assert np.max(known.n) < 100


def test_the_paper_s_settings_ask_for_no_evidence():
    assert TabularConfig().by_evidence
    assert TabularConfig(**PAPER).by_evidence  # its behaviour is the user's
    paper = TabularConfig(behaviour="ssd:0.0005", **PAPER)
    assert not paper.by_evidence
    assert not paper.scaled
    assert paper.target.tolerance == 0.0
    # Of the exact steps no unit comes out, of the others one is found.
    assert not TabularConfig().scaled
    assert TabularConfig(loss="qr").scaled
    assert not TabularConfig(loss="qr", reward_scale=2.0).scaled


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.0, 1.0])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_online_the_sure_path_is_taken_from_any_start_at_any_noise(noise, start):
    # Nothing is set. Where the paths part, `up` is the sure one; both are worth -12.
    config = TabularConfig(initial_std=start)
    mdp = risky_cliff(sigma=noise, reward_clip=(-1e9, 1e9))
    runs = train_trials(config, mdp, episodes=400, trials=30, seed=11, quiet=True)
    n = outcomes.at(algorithm.evidence(config, runs.table), (slice(None), FORK))
    decide = jax.vmap(lambda z, key, n: SSD().decide(z, key, n=n, assume_sorted=True).action)
    taken = jax.jit(decide)(runs.table.z[:, FORK], jax.random.split(jax.random.key(0), 30), n)
    assert np.mean(np.asarray(taken) == 0) >= 0.9
