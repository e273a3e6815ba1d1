"""surefoot's own agents with SB3's `predict`."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from tiny import NETWORK, TABLE

import surefoot as sf
from surefoot.errors import InputError

pytestmark = pytest.mark.wide


class Shifted(gym.Env):
    """One step; actions are 3, 4, 5 and 4 is best."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,))
    action_space = gym.spaces.Discrete(3, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), float(action == 4), True, False, {}


@pytest.fixture(scope="module")
def neural() -> sf.NeuralAgent:
    agent = sf.NeuralAgent(Shifted(), **NETWORK, learning_rate=0.02, explore=1.0, seed=3)
    return agent.learn(400)


@pytest.fixture(scope="module")
def tabular() -> sf.TabularAgent:
    return sf.TabularAgent("FrozenLake-v1", seed=0, **TABLE).learn(300)


def test_neural_actions_are_the_agent_s_own(neural):
    obs = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)
    actor = sf.adapters.act(neural)
    actions, state = actor.predict(obs, deterministic=True)
    assert state is None
    np.testing.assert_array_equal(actions, neural.predict(obs))
    assert (actions == 4).all()
    single, _ = actor.predict(obs[0])
    assert single == 4
    assert single.shape == ()
    np.testing.assert_array_equal(actor.return_distribution(obs), neural.return_distribution(obs))
    assert actor.policy == neural.config.evaluation


def test_tabular_actions_are_the_agent_s_own(tabular):
    actor = sf.adapters.act(tabular, "greedy:tolerance=0")
    states = np.arange(16)
    z = actor.return_distribution(states)
    assert z.shape == (16, 4, 4)
    for s in states:
        np.testing.assert_array_equal(z[s], tabular.return_distribution(int(s)))
    actions, _ = actor.predict(states, deterministic=True)
    best = z.mean(-1)
    np.testing.assert_allclose(best[states, actions], best.max(-1), rtol=1e-6)


def test_states_of_several_parts():
    agent = sf.TabularAgent("Blackjack-v1", seed=0, initial_std=1.0, **TABLE)
    actor = sf.adapters.act(agent)
    hand = (14, 10, 0)
    assert actor.predict(hand, deterministic=True)[0] == actor.decide(hand).action
    both = actor.return_distribution([(14, 10, 0), (20, 4, 1)])
    np.testing.assert_array_equal(both[1], agent.return_distribution((20, 4, 1)))


def test_compiled_agents_and_mistakes():
    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", seed=0, initial_std=1.0, **TABLE)
    actor = sf.adapters.act(agent)
    assert actor.observation_space.n == 48
    np.testing.assert_array_equal(actor.return_distribution(36), agent.return_distribution(36))
    with pytest.raises(InputError, match=r"states are 0\.\.47"):
        actor.predict(99)


def test_evaluate_policy_runs_on_them(neural):
    pytest.importorskip("stable_baselines3", reason="sb3 is missing: `make peers` installs it")
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    rewards, lengths = evaluate_policy(
        sf.adapters.act(neural), Monitor(Shifted()), n_eval_episodes=3, return_episode_rewards=True
    )
    assert rewards == [1.0, 1.0, 1.0]
    assert lengths == [1, 1, 1]
