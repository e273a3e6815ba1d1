"""The Gymnasium side: the checker, the same arrays as JAX, termination apart from truncation."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

import surefoot
from surefoot.envs import (
    TabularEnv,
    TabularMDP,
    cliff_walk,
    greedy_path,
    risky_cliff,
    step,
    value_iteration,
)
from surefoot.errors import InputError

NAMES = ("surefoot/CliffWalk-v0", "surefoot/RiskyCliff-v0")


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_checker_finds_nothing(name, render_mode):
    check_env(gym.make(name, render_mode=render_mode).unwrapped)  # warnings are errors here


def test_arguments_pass_through_make_to_the_same_arrays():
    env = gym.make("surefoot/RiskyCliff-v0", rows=5, columns=9, sigma=0.3, cliff_reward=-50)
    mdp = risky_cliff(5, 9, sigma=0.3, cliff_reward=-50)
    for x, y in zip(jax.tree.leaves(env.unwrapped.mdp), jax.tree.leaves(mdp), strict=True):
        np.testing.assert_array_equal(x, y)
    env = gym.make("surefoot/CliffWalk-v0", fall=0.2, step_reward=-2)
    for x, y in zip(
        jax.tree.leaves(env.unwrapped.mdp),
        jax.tree.leaves(cliff_walk(fall=0.2, step_reward=-2)),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(InputError, match=r"unknown argument 'sigmas'.*'sigma'"):
        gym.make("surefoot/RiskyCliff-v0", sigmas=1)


def test_registering_again_is_harmless():
    before = gym.registry["surefoot/CliffWalk-v0"]
    surefoot._register()
    assert gym.registry["surefoot/CliffWalk-v0"] is before


def test_both_worlds_agree_in_distribution():
    mdp, count = cliff_walk(fall=0.3), 3_000
    env = TabularEnv(mdp)
    env.reset(seed=0)
    fell = 0
    for _ in range(count):
        env.reset(options={"state": 28})
        fell += env.step(1)[1] == -100
    keys = jax.random.split(jax.random.key(0), count)
    at = jnp.full(count, 28), jnp.ones(count, int)
    reward = jax.vmap(step, in_axes=(None, 0, 0, 0))(mdp, *at, keys)[1]
    for falls in (fell, int((reward == -100).sum())):
        assert stats.binomtest(int(falls), count, 0.3).pvalue > 1e-3


def test_both_worlds_draw_the_same_noise():
    mdp, count = risky_cliff(sigma=2.0, reward_clip=(-4.0, 3.0)), 3_000
    env = TabularEnv(mdp)
    env.reset(seed=0)
    ours = []
    for _ in range(count):
        env.reset(options={"state": 28})
        ours.append(env.step(1)[1])
    keys = jax.random.split(jax.random.key(0), count)
    at = jnp.full(count, 28), jnp.ones(count, int)
    theirs = np.asarray(jax.vmap(step, in_axes=(None, 0, 0, 0))(mdp, *at, keys)[1])
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
    assert (min(ours), max(ours)) == (theirs.min(), theirs.max()) == (-4, 3)


def test_the_seed_decides():
    def episode(seed):
        env = gym.make("surefoot/CliffWalk-v0", fall=0.5)
        env.reset(seed=seed)
        return [env.step(a)[:2] for a in (0, 1, 1, 1, 1, 1, 1, 1)]

    assert episode(1) == episode(1)
    assert episode(1) != episode(2)


def test_reaching_the_goal_terminates():
    mdp = risky_cliff()
    env = gym.make("surefoot/RiskyCliff-v0")
    path = greedy_path(mdp, value_iteration(mdp, 1.0).q.argmax(axis=1))
    obs, _ = env.reset(seed=0)
    total, seen = 0.0, [obs]
    for action in path.actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        total += reward
        seen.append(obs)
    assert tuple(seen) == path.states
    assert terminated
    assert not truncated
    assert total == pytest.approx(-13, abs=1e-12)


def test_running_out_of_time_truncates():
    env = gym.make("surefoot/RiskyCliff-v0")
    env.reset(seed=0)
    for count in range(1, 501):
        _, _, terminated, truncated, _ = env.step(3)  # against the wall
        assert not terminated
        assert truncated == (count == 500)


def test_renderings():
    env = gym.make("surefoot/RiskyCliff-v0", rows=3, columns=5, render_mode="ansi")
    env.reset(seed=0)
    env.step(0)
    assert env.render() == "· · · · ·\n@ ~ ~ ~ ·\nS # # # G"
    env = gym.make("surefoot/CliffWalk-v0", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.shape == (193, 577, 3)
    env.step(0)
    assert not np.array_equal(first, env.render())


def test_start_distribution_mask_and_mistakes():
    mdp = TabularMDP(
        next_state=np.zeros((3, 2, 1), int),
        probability=np.ones((3, 2, 1)),
        reward_mean=np.zeros((3, 2, 1)),
        start=[0.5, 0.0, 0.5],
        mask=[[True, False], [True, True], [False, True]],
    )
    env = TabularEnv(mdp, render_mode="ansi")
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    starts = [env.reset(seed=i)[0] for i in range(200)]
    assert set(starts) == {0, 2}
    assert stats.binomtest(starts.count(0), 200, 0.5).pvalue > 1e-3
    np.testing.assert_array_equal(env.reset(options={"state": 2})[1]["action_mask"], [0, 1])
    assert env.render() == "state 2 of 3"
    with pytest.raises(InputError, match=r"action 2: actions are 0\.\.1"):
        env.step(2)
    with pytest.raises(InputError, match="state 9"):
        env.reset(options={"state": 9})
    with pytest.raises(InputError, match="unknown render mode 'human'"):
        TabularEnv(mdp, render_mode="human")
    with pytest.raises(InputError, match="needs a grid"):
        TabularEnv(mdp, render_mode="rgb_array").render()
