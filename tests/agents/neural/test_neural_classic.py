"""The compiled environments are Gymnasium's."""

from __future__ import annotations

import gymnasium as gym
import jax
import numpy as np
import pytest
from tiny import NETWORK

import surefoot as sf
from surefoot.envs.classic import ENVIRONMENTS, EnvState, pure_env_named, pure_env_of
from surefoot.errors import InputError


@pytest.mark.parametrize("env_id", list(ENVIRONMENTS))
def test_whole_random_episodes_agree_with_gymnasium(env_id):
    theirs, ours = gym.make(env_id), pure_env_named(env_id)
    step, rng = jax.jit(ours.step), np.random.default_rng(0)
    lengths = []
    for episode in range(25):
        obs, _ = theirs.reset(seed=episode)
        state = EnvState(np.asarray(obs, np.float32), np.int32(0))
        push, over = int(rng.integers(ours.num_actions)), False
        while not over:
            if rng.random() < 0.2:  # runs of one action reach walls and speed limits
                push = int(rng.integers(ours.num_actions))
            obs, reward, terminated, truncated, _ = theirs.step(push)
            state, seen, own_reward, own_terminated, own_truncated = step(state, push)
            np.testing.assert_allclose(seen, obs, rtol=1e-4, atol=1e-5)
            assert float(own_reward) == reward
            assert (bool(own_terminated), bool(own_truncated)) == (terminated, truncated)
            over = terminated or truncated
        lengths.append(int(state.steps))
    assert len(set(lengths)) > 1 or env_id == "MountainCar-v0"


def test_mountain_car_arrives_when_pushed_along():
    # Always pushing in the direction of motion solves it: termination, not truncation.
    env = pure_env_named("MountainCar-v0")
    step, state, terminated = jax.jit(env.step), env.reset(jax.random.key(0)), False
    while not terminated and int(state.steps) < 200:
        push = 2 if float(state.x[1]) >= 0 else 0
        state, _, _, terminated, truncated = step(state, push)
    assert terminated
    assert not truncated
    assert float(state.x[0]) >= 0.5


def test_cart_pole_can_be_truncated():
    env = pure_env_named("CartPole-v1")
    state = EnvState(np.zeros(4, np.float32), np.int32(499))
    *_, terminated, truncated = env.step(state, 1)
    assert (bool(terminated), bool(truncated)) == (False, True)


@pytest.mark.parametrize("env_id", list(ENVIRONMENTS))
def test_starts_lie_in_gymnasiums_range(env_id):
    starts = np.asarray(
        jax.vmap(ENVIRONMENTS[env_id].draw_start)(jax.random.split(jax.random.key(0), 500))
    )
    low, high = {"CartPole-v1": (-0.05, 0.05), "MountainCar-v0": (-0.6, -0.4)}[env_id]
    assert low <= starts[:, 0].min() < low + 0.01
    assert high - 0.01 < starts[:, 0].max() <= high


def test_unknown_environment_is_named():
    with pytest.raises(InputError, match="CartPole-v1"):
        pure_env_named("CartPole-v2")


class Doubled(gym.RewardWrapper):
    def reward(self, reward):
        return 2 * reward


def test_a_time_limit_is_the_compiled_environment_s_too():
    limited = sf.NeuralAgent(
        gym.make("MountainCar-v0", max_episode_steps=30), compiled=True, **NETWORK
    )
    assert limited.evaluate(2).tolist() == [-30, -30]
    nested = gym.wrappers.TimeLimit(gym.make("MountainCar-v0"), 20)
    assert pure_env_of(gym.wrappers.TimeLimit(nested, 60)).time_limit == 20
    assert pure_env_of(gym.make("CartPole-v1")).time_limit == 500
    assert pure_env_of(gym.make("CartPole-v1", max_episode_steps=-1)).time_limit == 2**31 - 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Doubled(gym.make("CartPole-v1")), "the wrapper Doubled would not be called"),
        (lambda: gym.make("MountainCar-v0", goal_velocity=0.1), "knows no goal_velocity = 0.1"),
        (
            lambda: gym.make("surefoot/NoisyCartPole-v0", max_episode_steps=9),
            "max_episode_steps = 9: a compiled .* ends its episodes itself, after 500 steps",
        ),
        (lambda: gym.make_vec("CartPole-v1", 2), "a VectorEnv is stepped from outside"),
    ],
)
def test_what_a_compiled_environment_would_leave_out_is_refused(make, text):
    with pytest.raises(InputError, match=text):
        sf.NeuralAgent(make(), compiled=True, **NETWORK)
