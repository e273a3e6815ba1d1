"""The agent as its users meet it."""

from __future__ import annotations

import sys

import gymnasium as gym
import jax
import numpy as np
import pytest
from probes_by_hand import OneStep
from tiny import NETWORK as TINY

from surefoot.agents.neural import NeuralAgent
from surefoot.agents.neural.compiled_loop import CompiledNetwork, compiled_step
from surefoot.agents.neural.loop import to_device
from surefoot.envs import probes
from surefoot.errors import InputError, RunError
from surefoot.policies import SSD, CVaR, DecidedBy
from surefoot.runs.logs import RunLog, TensorBoard, Watch, WeightsAndBiases


def same(a, b):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("compiled", [False, True])
def test_two_calls_of_learn_equal_one_long_one_bit_for_bit(compiled):
    once, twice = (NeuralAgent("CartPole-v1", compiled=compiled, **TINY) for _ in range(2))
    once.learn(200)
    twice.learn(77).learn(123)
    assert same(once.state, twice.state)
    assert once.num_timesteps == 200
    other = NeuralAgent("CartPole-v1", compiled=compiled, seed=1, **TINY).learn(200)
    assert not same(once.params, other.params)


def test_state_is_a_copy_that_training_does_not_touch():
    agent = NeuralAgent("CartPole-v1", **TINY).learn(50)
    saved = agent.state
    before = [np.array(leaf) for leaf in jax.tree.leaves(saved)]
    agent.learn(50)
    assert same(before, jax.tree.leaves(saved))
    assert not same(agent.state.carry.params, saved.carry.params)


def test_a_compiled_stretch_is_its_steps_one_by_one():
    agent = NeuralAgent("CartPole-v1", compiled=True, **TINY).learn(60)  # the target is renewed
    state = to_device(agent.state)
    inner = CompiledNetwork(agent.config, agent.spec, agent.pure, state).enter()
    one = jax.jit(
        lambda inner, key: compiled_step(agent.config, agent.spec, agent.pure, True, key, inner)
    )
    said, ended = [], []
    for _ in range(29):  # until the target is renewed again
        inner, row = one(inner, state.key)
        said += [np.asarray(row)[2:-1]] if row[1] else []
    agent.learn(29, lambda _, episode: ended.append(episode))
    assert ended
    np.testing.assert_allclose([e[4:] for e in ended], said, rtol=1e-4, atol=1e-5)
    for a, b in zip(agent.params, inner.carry.params, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(agent.state.env.x, inner.env.x, rtol=1e-4)


def test_predict_looks_and_explains():
    agent = NeuralAgent("CartPole-v1", evaluation=SSD(), **TINY).learn(60)
    obs = np.zeros(4)
    z = agent.return_distribution(obs)
    assert np.all(np.diff(z) >= 0)
    np.testing.assert_allclose(agent.return_distribution(np.zeros((3, 4))), [z] * 3, rtol=1e-4)
    members, counts = agent.estimates(obs)
    assert counts is None
    assert members.shape == (20, 2, 4)
    np.testing.assert_allclose(members.mean(axis=0), z, rtol=1e-5)
    decided = SSD().decide(members, agent.seed)  # the policy itself, on the same returns
    assert agent.predict(obs) == agent.explain(obs).action == int(decided.action)
    assert agent.explain(obs).decided_by == DecidedBy(int(decided.decided_by))
    assert agent.predict(np.zeros((5, 4))).tolist() == [int(decided.action)] * 5
    for bad in (np.zeros(3), [np.nan] * 4, "x", np.zeros((2, 3, 4))):
        with pytest.raises(InputError, match="obs"):
            agent.predict(bad)


def test_evaluation_is_separate_and_repeatable():
    for compiled in (False, True):
        agent = NeuralAgent("CartPole-v1", compiled=compiled, **TINY).learn(60)
        before = agent.state
        first, again = agent.evaluate(3, seed=5), agent.evaluate(3, seed=5)
        np.testing.assert_array_equal(first, again)
        assert first.min() >= 1
        assert same(before, agent.state)
    with pytest.raises(InputError, match="eval_env"):
        NeuralAgent(OneStep(), **TINY).evaluate(1)


@pytest.mark.slow
def test_behaviour_policy_gathers_the_data():
    # Arms N(0, 0.5) and N(0.2, 2): greedy prefers the second, CVaR the first.
    env = probes.NoisyArms((0.0, 0.2), (0.1, 3.0))
    options = TINY | {"particles": 8, "hidden": (16,), "learning_rate": 1e-2, "explore": 0.2}
    agent = NeuralAgent(env, behaviour=CVaR(0.25), evaluation=CVaR(0.25), **options).learn(1500)
    taken = agent.state.carry.replay.outcome[1000:1500, 0]
    assert agent.predict([1.0]) == 0
    assert taken.mean() < 0.3


def test_logs_callbacks_and_watched_states(tmp_path):
    polars = pytest.importorskip("polars")
    scalars = []

    class Hook:
        def scalar(self, name, value, step):
            scalars.append((name, value, step))

        def close(self):
            scalars.append("closed")

    episodes = []
    agent = NeuralAgent("CartPole-v1", **TINY)
    watch = Watch(np.zeros((2, 4)), every=50)
    with RunLog(tmp_path, [Hook()]) as log:
        agent.learn(
            150, log=log, eval_every=75, eval_episodes=2, watch=watch,
            callback=lambda agent, episode: episodes.append(episode),
        )  # fmt: skip
    rows = polars.read_csv(tmp_path / "episodes.csv")
    assert rows["return"].to_list() == [e.total for e in episodes]
    assert rows["step"].to_list() == [e.step for e in episodes]
    assert sum(e.length for e in episodes) <= 150
    assert polars.read_parquet(tmp_path / "evaluations.parquet")["step"].to_list() == [
        75,
        75,
        150,
        150,
    ]
    distributions = polars.read_parquet(tmp_path / "distributions.parquet")
    assert distributions.height == 3 * 2 * 2 * 4
    last = distributions.filter(polars.col("step") == 150)["value"].to_numpy().reshape(2, 2, 4)
    np.testing.assert_allclose(last, agent.return_distribution(watch.obs), rtol=1e-6)
    assert scalars[-1] == "closed"
    told = {s[0] for s in scalars[:-1]}
    assert told >= {"episode/return", "evaluation/return", "train/steps_per_second"}
    assert told >= {f"train/{name}" for name in NeuralAgent.episode_columns[4:]}
    said = [(value, step) for name, value, step in scalars[:-1] if name == "train/grad_norm"]
    assert said == [(e.grad_norm, e.step) for e in episodes if np.isfinite(e.grad_norm)]
    assert len(said) == (~rows["grad_norm"].is_nan()).sum() < len(rows)  # numbers all the same


def test_a_callback_stops_learning():
    agent = NeuralAgent("CartPole-v1", **TINY)
    agent.learn(5000, callback=lambda agent, episode: episode.episode < 2)
    assert agent.state.episode.number == 3


class Broken(OneStep):
    def __init__(self, reward, obs):
        super().__init__()
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
        self.answer = np.full(4, obs, np.float32), reward

    def start(self):
        return np.ones(4, np.float32)

    def step(self, action):
        return *self.answer, True, False, {}


@pytest.mark.parametrize(
    ("env", "text"),
    [
        (Broken(np.nan, 1.0), "Broken, seed 0, step 1: the environment returned the reward nan"),
        (Broken(1.0, np.inf), "Broken, seed 0, step 1: .* observation that is NaN or infinite"),
    ],
)
def test_numbers_that_are_none_stop_the_run_with_their_place(env, text):
    with pytest.raises(RunError, match=text):
        NeuralAgent(env, **TINY).learn(200)


def test_mistakes_are_one_line():
    for call in (
        lambda: NeuralAgent("NoSuchEnv-v0"),
        lambda: NeuralAgent(3),
        lambda: NeuralAgent("CartPole-v1", sed=3),
        lambda: NeuralAgent("CartPole-v1", seed=-1),
        lambda: NeuralAgent("Acrobot-v1", compiled=True),
        lambda: NeuralAgent("Pendulum-v1"),
        lambda: NeuralAgent(gym.make("CartPole-v1"), **TINY).learn(1.5),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert "\n" not in str(error.value)


def test_hooks_that_are_not_installed_say_what_to_install(tmp_path, monkeypatch):
    for module in ("wandb", "tensorboardX", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)  # what Python does with a missing module
    with pytest.raises(InputError, match=r"pip install 'surefoot\[wandb\]'"):
        WeightsAndBiases("project", tmp_path)
    with pytest.raises(InputError, match="tensorboard"):
        TensorBoard(tmp_path)
