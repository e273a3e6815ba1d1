"""The tasks for networks: closed forms, the same step compiled and in Gymnasium, mistakes."""

import math

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

from surefoot.envs.drawing import draw_plane
from surefoot.envs.noisy import (
    MeanReversion,
    NoisyCartPole,
    PureGymEnv,
    TwoRoads,
    best_trading,
)
from surefoot.errors import InputError

NAMES = ("TwoRoads", "NoisyCartPole", "MeanReversion")
EPISODES = 4_000
ROADS = {"straight": [0] * 11, "around": [1, 1, 1] + [0] * 11}


def returns(env, actions=None, rule=None, episodes=EPISODES):
    """Of a list of actions, or of ten by a rule, by the compiled step."""
    steps = jnp.asarray(actions if rule is None else [0] * 10)

    def one(key):
        def step(carry, action):
            state, total, on = carry
            chosen = action if rule is None else rule(*state.x)
            state, _, reward, terminated, _ = env.step(state, chosen)
            return (state, total + reward * on, on & ~terminated), None

        return jax.lax.scan(step, (env.reset(key), 0.0, True), steps)[0][1]

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), episodes)))


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_checker_finds_nothing(name, render_mode):
    check_env(gym.make(f"surefoot/{name}-v0", render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("question", ["tie", "price", "trap"])
def test_both_roads_by_hand(question):
    # Around: 13 steps of 0.1, from half of the starts one more: -1.3 or -1.4. Straight: 6 of its
    # steps cost 0.15 and have a deviation of 0.4 each.
    env = TwoRoads(question=question)
    lead = {"tie": 0, "price": 0.75, "trap": -1.5}[question] * 0.4 * math.sqrt(6)
    straight, around = (returns(env, actions) for actions in ROADS.values())
    assert set(np.round(around, 4)) == {np.float32(-1.3), np.float32(-1.4)}
    error = straight.std() / math.sqrt(EPISODES)
    assert abs(straight.mean() - (-1.35 + lead)) < 4 * error
    assert straight.std() == pytest.approx(math.hypot(0.4 * math.sqrt(6), 0.05), rel=0.05)
    assert env.best_mean == pytest.approx(max(-1.35, -1.35 + lead))


def test_cartpole_pays_noise_left_of_its_region_only():
    env = NoisyCartPole()
    draws = jax.random.split(jax.random.key(1), EPISODES)
    pays = jax.jit(jax.vmap(lambda x, key: env.moved(x, 0, env.draw(key))[1], (None, 0)))
    left = np.asarray(pays(np.array([-0.2, 0, 0, 0], np.float32), draws))
    assert stats.kstest(left - 1, stats.uniform(-6, 12).cdf).pvalue > 1e-3
    assert set(np.asarray(pays(np.zeros(4, np.float32), draws))) == {1.0}
    # Better by 3/4 of the deviation of 500 such steps, of which 472 can be had.
    better = NoisyCartPole(question="price")
    assert better.best_mean - 500 == pytest.approx(472 / 500 * 0.75 * math.sqrt(500 * 12))


def test_a_trade_by_hand():
    # Buy 2 at price 1 and sell 2 at the second trade, hold nothing: -2 - 0.02, then 2 S - 0.02.
    env = MeanReversion()
    state, step = env.reset(jax.random.key(3)), jax.jit(env.step)
    state, x, reward, over, _ = step(state, 20)
    assert float(reward) == pytest.approx(-2.02)
    assert x[1] == pytest.approx(2)
    price = float(x[0])
    state, x, reward, over, _ = step(state, 0)
    assert float(reward) == pytest.approx(2 * price - 0.02, rel=1e-5)
    for _ in range(8):
        assert not over
        state, x, reward, over, _ = step(state, 10)
        assert float(reward) == pytest.approx(0, abs=1e-5)
    assert over


def test_the_price_is_an_ornstein_uhlenbeck_process():
    # After time 1: mean 1, variance sigma^2 (1 - exp(-4)) / 4. A holding of 2 bought at once and
    # kept is worth -2 - 0.02 + 2 S - 0.5 * 4.
    env = MeanReversion()
    got = returns(env, [20] + [10] * 9)
    price = (got + 2.02 + 2) / 2
    spread = math.sqrt((1 - math.exp(-4)) / 4)
    assert stats.kstest((price - 1) / spread, "norm").pvalue > 1e-3


@pytest.mark.wide
def test_the_best_trading_mean():
    # With one price only (sigma small) nothing can be won: any trade costs.
    assert best_trading(MeanReversion(sigma=1e-4), 41).mean == pytest.approx(0, abs=1e-3)
    coarse, fine = (best_trading(MeanReversion(), points) for points in (161, 321))
    assert coarse.mean == pytest.approx(fine.mean, rel=3e-3)
    scaled = best_trading(MeanReversion(scale=10.0), 161)
    assert scaled.mean == pytest.approx(10 * coarse.mean)
    # Its own actions earn that mean; smaller trades earn less.
    table, prices = jnp.asarray(fine.actions), jnp.asarray(fine.prices)

    def rule(price, held, time):
        at = jnp.argmin(jnp.abs(prices - price))
        return table[jnp.round(10 * time).astype(int), at, jnp.round(5 * held).astype(int) + 100]

    def timid(*seen):
        return (rule(*seen) - 10) // 2 + 10

    best, less = (returns(MeanReversion(), rule=each) for each in (rule, timid))
    error = best.std() / math.sqrt(EPISODES)
    assert abs(best.mean() - fine.mean) < 4 * error
    assert less.mean() < fine.mean - 4 * error


def test_gymnasium_plays_the_same_game():
    env = gym.make("surefoot/TwoRoads-v0", question="price", scale=10.0)
    got = []
    for seed in range(200):
        env.reset(seed=seed)
        total = 0.0
        for action in ROADS["straight"]:
            _, reward, terminated, truncated, _ = env.step(action)
            total += reward
            assert not truncated
            if terminated:
                break
        assert terminated
        got.append(total)
    want = returns(env.unwrapped.pure, ROADS["straight"])
    assert stats.ks_2samp(got, want).pvalue > 1e-3


def test_the_pole_leans():
    # 0.2 radians to the right: its tip, 120 pixels away, is 120 sin(0.2) = 24 pixels off.
    env = NoisyCartPole()
    upright, leaning = (draw_plane(*env.picture(np.array([0, 0, a, 0]))[1:]) for a in (0.0, 0.2))
    changed = np.argwhere((upright != leaning).any(axis=2))
    top, right = changed[:, 0].min(), changed[:, 1].max()
    assert 240 + 20 < right < 240 + 30
    assert top == pytest.approx(0.7 * 240 - 120, abs=3)


def test_time_runs_out():
    env = gym.make("surefoot/TwoRoads-v0")
    env.reset(seed=0)
    for count in range(1, 61):
        _, _, terminated, truncated, _ = env.step(2)
        assert not terminated
        assert truncated == (count == 60)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PureGymEnv("three-roads"), "unknown task 'three-roads'"),
        (lambda: PureGymEnv("two-roads", question="ties"), "unknown question 'ties'"),
        (lambda: PureGymEnv("mean-reversion", question="trap"), "unknown question 'trap'"),
        (lambda: PureGymEnv("two-roads", sigma=-1.0), "sigma = -1.0"),
        (lambda: PureGymEnv("two-roads", width=1), "unknown knob of two-roads 'width'"),
        (lambda: PureGymEnv("noisy-cartpole", sigma=1), "unknown knob of noisy-cartpole 'sigma'"),
        (lambda: PureGymEnv("two-roads", scale=0), "scale = 0"),
        (lambda: PureGymEnv("mean-reversion", sigma=math.nan), "sigma = nan"),
        (lambda: PureGymEnv("noisy-cartpole", scale="1"), "scale = 1: it must be a positive"),
    ],
)
def test_mistakes_are_one_line(make, said):
    with pytest.raises(InputError, match=said) as error:
        make()
    assert "\n" not in str(error.value)
