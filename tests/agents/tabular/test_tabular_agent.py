"""The public agent: compiled and stepped environments, predictions, explanations, files."""

import gymnasium
import numpy as np
import pytest
from tiny import TABLE

import surefoot.envs  # noqa: F401  (registers the environments)
from surefoot.agents.tabular import TabularAgent
from surefoot.agents.tabular.compiled_loop import advance
from surefoot.agents.tabular.config import PAPER
from surefoot.envs import CliffGrid, risky_cliff
from surefoot.errors import InputError, RunError
from surefoot.policies import SSD, DecidedBy

FORK = CliffGrid(4, 12).state(2, 0)


@pytest.mark.slow
def test_the_paper_s_agent_takes_the_sure_path():
    rule = {"behaviour": SSD(5e-4), "evaluation": SSD(5e-4)}
    agent = TabularAgent("surefoot/RiskyCliff-v0", initial_std=1.0, seed=1, **PAPER | rule)
    agent.learn(6_000)
    action = agent.predict(FORK)
    assert isinstance(action, int)
    assert agent.action_names[action] == "up"
    found = agent.explain(FORK)
    assert found.decided_by is DecidedBy.DOMINANCE
    assert found.tied[:2].all()
    assert found.dominates[0, 1]
    assert not found.dominates[1, 0]
    assert "dominates every other action" in str(found)
    assert "best mean, up to the tolerance: up, right" in str(found)


def test_learning_in_two_calls_goes_on():
    one = TabularAgent(risky_cliff(), seed=2, **TABLE).learn(1_000)
    compiled = advance._cache_size()
    two = TabularAgent(risky_cliff(), seed=2, **TABLE).learn(400).learn(600)
    assert advance._cache_size() == compiled  # another number of steps is no other program
    np.testing.assert_array_equal(one.table.z, two.table.z)
    assert one.num_timesteps == two.num_timesteps == 1_000
    np.testing.assert_array_equal(one.episode_returns, two.episode_returns)


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "agent.safetensors"
    trained = TabularAgent("surefoot/RiskyCliff-v0", initial_std=1.0, **TABLE).learn(200)
    trained.save(path)
    again = TabularAgent.load(path, "surefoot/RiskyCliff-v0")
    np.testing.assert_array_equal(
        again.return_distribution(FORK), trained.return_distribution(FORK)
    )
    assert again.config == trained.config
    assert again.num_timesteps == trained.num_timesteps
    with pytest.raises(InputError, match="does not fit"):
        TabularAgent.load(path, "FrozenLake-v1")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="not a surefoot agent"):
        TabularAgent.load(path, "surefoot/RiskyCliff-v0")


@pytest.mark.parametrize(
    "name",
    [
        "FrozenLake-v1",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("CliffWalking-v1", "Taxi-v4")),
    ],
)
def test_any_discrete_environment_can_be_trained_on(name):
    agent = TabularAgent(name, seed=0, **TABLE).learn(300)
    assert agent.num_timesteps == 300
    z = agent.return_distribution(0)
    assert z.shape[1] == 4
    assert np.isfinite(z).all()
    assert int(np.asarray(agent.table.visits).sum()) == 300


@pytest.mark.wide
def test_blackjack_takes_its_own_observations():
    agent = TabularAgent("Blackjack-v1", seed=0, **TABLE).learn(300)
    hand = (14, 10, 0)
    state = (14 * 11 + 10) * 2 + 0  # of 32 x 11 x 2, the last part fastest
    np.testing.assert_array_equal(agent.return_distribution(hand), agent.table.z[state])
    assert agent.predict(hand) == agent.predict([hand])[0] == agent.explain(hand).action
    with pytest.raises(InputError, match="not in"):
        agent.predict((99, 10, 0))


class CountsFromOne(gymnasium.Env):
    """States 7 and 8; actions (1, 5) and (1, 6): a tuple whose second part counts from 5."""

    observation_space = gymnasium.spaces.Discrete(2, start=7)
    action_space = gymnasium.spaces.Tuple(
        [gymnasium.spaces.Discrete(1, start=1), gymnasium.spaces.Discrete(2, start=5)]
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 7, {}

    def step(self, action):
        return 8, float(action[1]), True, False, {}


@pytest.mark.wide
def test_the_action_is_in_the_environment_s_own_words():
    agent = TabularAgent(CountsFromOne(), explore=0.5, seed=0, **TABLE).learn(100)
    assert agent.predict(7) == (1, 6)  # reward 6 against 5
    assert CountsFromOne.action_space.contains(agent.predict(7))
    np.testing.assert_array_equal(agent.return_distribution(8), 0)  # where nothing was learned
    assert agent.return_distribution(7).max() > 5


@pytest.mark.slow
def test_frozen_lake_is_learned():
    agent = TabularAgent(
        gymnasium.make("FrozenLake-v1", is_slippery=False), loss="q-learning", gamma=0.95,
        behaviour="greedy", evaluation="greedy", explore=0.3, learning_rate=0.5, seed=3,
        target="greedy",
    )  # fmt: skip
    agent.learn(8_000)
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    obs, _ = env.reset(seed=0)
    total = 0.0
    for _ in range(20):
        obs, reward, terminated, truncated, _ = env.step(agent.predict(obs))
        total += float(reward)
        if terminated or truncated:
            break
    assert total == 1.0


def test_mistakes_are_told():
    with pytest.raises(InputError, match="option of TabularAgent 'los'"):
        TabularAgent("FrozenLake-v1", los="wgf")
    with pytest.raises(InputError, match="NoSuchEnv"):
        TabularAgent("NoSuchEnv-v0")
    with pytest.raises(InputError, match=r"supported|Discrete"):
        TabularAgent("CartPole-v1")
    agent = TabularAgent(risky_cliff(), **TABLE)
    with pytest.raises(InputError, match=r"states are 0\.\.47"):
        agent.predict(48)
    with pytest.raises(InputError, match="total_timesteps = -1"):
        agent.learn(-1)


class NotANumber(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float("nan"), False, False, {}


def test_a_bad_environment_is_named():
    with pytest.raises(
        RunError,
        match="NotANumber, seed 0, step 1: state 0, the environment returned the reward nan",
    ):
        TabularAgent(NotANumber(), **TABLE).learn(5)


def test_callback_can_stop():
    seen = []
    agent = TabularAgent(risky_cliff(), seed=0, **TABLE)
    agent.learn(5_000, callback=lambda a, episode: seen.append(episode) or len(seen) < 2)
    assert agent.num_timesteps < 5_000
    assert [e.total for e in seen] == agent.episode_returns.tolist()
    assert [e.step for e in seen] == np.cumsum([e.length for e in seen]).tolist()


class Doubled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2 * reward


def test_a_time_limit_and_a_wrapper_count_where_the_process_is_compiled():
    short = gymnasium.make("surefoot/CliffWalk-v0", max_episode_steps=7)
    agent = TabularAgent(short, **TABLE).learn(100)
    assert agent.episodes[:, 1].max() == 7
    plain = gymnasium.make("surefoot/CliffWalk-v0", max_episode_steps=7)
    doubled = TabularAgent(Doubled(plain), **TABLE).learn(40)
    assert doubled.mdp is None  # it is stepped
    assert doubled.episode_returns.min() <= -14
    assert (doubled.episode_returns % 2 == 0).all()
    assert len(doubled.action_names) == 4
