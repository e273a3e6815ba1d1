"""Several environments side by side: our own, a VectorEnv in each of its modes, compiled ones."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tiny import NETWORK

import surefoot as sf
from surefoot.agents.neural.replay import TERMINATED, TRUNCATED, VOID, Replay, sample
from surefoot.agents.scale import initial_scale, observe
from surefoot.errors import InputError, RunError
from surefoot.policies import DecidedBy
from surefoot.training.train import train
from surefoot.training.trials import run_training

TWO = NETWORK | {"n_envs": 2}
draw = jax.jit(sample, static_argnames=("n_step", "gamma", "lanes", "voids"))


class Counts(gym.Env):
    """Shows the clock and pays it. An episode has three steps and is truncated, or, every second
    one, terminates after two."""

    observation_space, action_space = Box(-9, 9, (4,), np.float32), Discrete(2)
    episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock, self.episode = 0, self.episode + 1
        return self.show(), {}

    def show(self):
        return np.float32([self.clock, self.episode % 2, 0, 0])

    def step(self, action):
        self.clock += 1
        short = self.episode % 2 == 0
        return self.show(), float(self.clock), short and self.clock == 2, self.clock == 3, {}


def rows(agent):
    """(clock before, clock after, reward, ended) of all transitions, lane by lane."""
    replay, done = agent.state.carry.replay, int(agent.state.carry.steps)
    obs, outcome = np.asarray(replay.obs), np.asarray(replay.outcome)
    return [
        [(*obs[k, :, 0].astype(int), *outcome[k, 1:].astype(int)) for k in range(lane, done, 2)]
        for lane in range(2)
    ]


LONG = [(0, 1, 1, 0), (1, 2, 2, 0), (2, 3, 3, TRUNCATED)]
SHORT = [(0, 1, 1, 0), (1, 2, 2, TERMINATED)]


@pytest.mark.wide
def test_every_lane_has_its_own_transitions():
    ended = []
    agent = sf.NeuralAgent(Counts, **TWO).learn(26, lambda _, episode: ended.append(episode))
    # By hand: 3 steps, then 2, then 3, ...; the last observation is never the next reset's.
    assert rows(agent) == [[*LONG, *SHORT, *LONG, *SHORT, *LONG]] * 2
    assert [(e.step, e.episode, e.total, e.length) for e in ended[:4]] == [
        (5, 0, 6.0, 3), (6, 1, 6.0, 3), (9, 2, 3.0, 2), (10, 3, 3.0, 2),
    ]  # fmt: skip
    assert agent.num_timesteps == 26
    assert agent.learn(1).num_timesteps == 28  # all lanes step together


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_in_each_mode(mode):
    # Without copies a reset writes over the observation before it.
    env = SyncVectorEnv([Counts, Counts], copy=False, autoreset_mode=mode)
    ended = []
    agent = sf.NeuralAgent(env, eval_env=Counts(), **NETWORK)
    agent.learn(26, lambda _, episode: ended.append(episode))
    assert agent.config.n_envs == 2
    for lane in rows(agent):
        kept = [row for row in lane if row[3] < VOID]
        assert kept == [*LONG, *SHORT, *LONG, *SHORT, *LONG][: len(kept)]
        # A reset that takes a step of its own is marked, and is no transition.
        void = [i for i, row in enumerate(lane) if row[3] >= VOID]
        assert void == ([3, 6, 10, 13] if mode is AutoresetMode.NEXT_STEP else [])
    assert [(e.total, e.length) for e in ended[:4]] == [(6.0, 3), (6.0, 3), (3.0, 2), (3.0, 2)]
    # Nor is it a step of the run, and its reward is none.
    assert [e.step for e in ended[:4]] == [5, 6, 9, 10]
    assert agent.num_timesteps == 26
    assert int(agent.state.carry.scale.number) == 26
    assert agent.observation_space == Counts.observation_space
    assert agent.evaluate(2).tolist() == [6.0, 3.0]


@pytest.mark.filterwarnings("ignore:SyncVectorEnv does not start equal episodes")
def test_a_run_in_a_vector_environment_goes_on_with_its_count(tmp_path):
    def env():
        return SyncVectorEnv([Counts, Counts], autoreset_mode=AutoresetMode.NEXT_STEP)

    agent = sf.NeuralAgent(env(), **NETWORK)
    agent.learn(20, log=tmp_path, checkpoints=sf.Checkpoints(tmp_path, every=10))
    again = sf.NeuralAgent.resume(tmp_path, env())
    assert again.num_timesteps == agent.num_timesteps == 20
    assert int(again.state.carry.steps) > 20
    assert again.learn(6, log=tmp_path).num_timesteps == 26


@pytest.mark.parametrize("compiled", [False, True])
def test_the_last_round_is_made_whole(compiled, tmp_path, capsys):
    agent = sf.NeuralAgent("CartPole-v1", compiled=compiled, n_envs=8, **NETWORK)
    agent.learn(20, progress=True)
    assert agent.num_timesteps == 24
    assert "24/24 steps done" in capsys.readouterr().err
    if not compiled:
        return
    training = sf.Training("CartPole-v1", agent.config, steps=20, compiled=True, eval_every=3)
    training = replace(training, eval_episodes=2)
    assert run_training(training).steps.tolist() == [8, 16, 24]
    train(training, tmp_path / "run")
    (tmp_path / "run/complete.json").unlink()  # as a kill just before the end leaves it
    assert train(training, tmp_path / "run").num_timesteps == 24
    assert train(replace(training, steps=24), tmp_path / "run").num_timesteps == 24


def test_exploring_has_the_clock_of_training_after_load_too(tmp_path):
    settings = {"explore_start": 1.0, "explore": 0.0, "explore_steps": 40}
    agent = sf.NeuralAgent("CartPole-v1", **NETWORK, **settings).learn(60)
    obs = np.zeros((200, 4), np.float32)

    def explored(agent):
        said = agent.decide(obs, deterministic=False).decided_by
        return np.mean(said == DecidedBy.EXPLORATION)

    assert explored(agent) == 0
    agent.save(tmp_path / "agent")
    again = sf.load(tmp_path / "agent")
    assert explored(again) == 1
    assert explored(again.learn(30)) == pytest.approx(1 - 30 / 40, abs=0.12)


def test_a_vector_environment_by_its_name(tmp_path):
    env = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    agent = sf.NeuralAgent(env, **NETWORK).learn(40)
    assert agent.evaluate(1).shape == (1,)  # in one of its kind
    agent.save(tmp_path / "agent")
    assert sf.load(tmp_path / "agent").learn(10).num_timesteps - agent.num_timesteps in (10, 11)
    wrapped = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", wrappers=[gym.Wrapper])
    with pytest.raises(InputError, match="is not registered: pass eval_env for evaluation"):
        sf.NeuralAgent(wrapped, **NETWORK).evaluate(1)
    with pytest.raises(InputError, match="a VectorEnv of one environment: pass that one"):
        sf.NeuralAgent(gym.make_vec("CartPole-v1", 1, vectorization_mode="sync"))


def test_void_rows_are_never_drawn():
    # Lane 0 has a void row after each two transitions, lane 1 none.
    ended = np.zeros(24)
    ended[2:24:6], ended[4:24:6] = TRUNCATED, VOID
    outcome = np.stack([np.zeros(24), np.arange(24.0), ended], axis=1).astype(np.float32)
    replay = Replay(jnp.zeros((24, 2, 1)), jnp.asarray(outcome))
    bits = np.random.default_rng(0).integers(2**32, size=4000, dtype=np.uint32)
    drawn = draw(replay, jnp.asarray(24), bits, n_step=1, gamma=0.9, lanes=2, voids=True)
    counts = np.bincount(np.asarray(drawn.reward_t).astype(int), minlength=24)
    assert counts[ended == VOID].sum() == 0
    assert (abs(counts[ended != VOID] - 200) < 5 * 200**0.5).all()  # 20 rows, 200 each


def test_several_steps_ahead_stay_in_their_lane():
    # Rewards of lane 0: 1, 2, 4 (its end), 8; of lane 1: 100, 200, 400, 800, gamma 1/2.
    outcome = np.zeros((8, 3), np.float32)
    outcome[:, 1] = [1, 100, 2, 200, 4, 400, 8, 800]
    outcome[4, 2] = TRUNCATED
    replay = Replay(jnp.arange(16.0).reshape(8, 2, 1), jnp.asarray(outcome))
    bits = np.arange(8, dtype=np.uint32) * np.uint32(2**29) + np.uint32(7)  # ages 0 to 7
    drawn = draw(replay, jnp.asarray(8), bits, n_step=2, gamma=0.5, lanes=2)
    # From the newest to the oldest: 800; 8; 400 + 400; 4; 200 + 200; 2 + 2; 100 + 100; 1 + 1.
    assert drawn.reward_t.tolist() == [800, 8, 800, 4, 400, 4, 200, 2]
    assert drawn.obs_t[:, 0].tolist() == [15, 13, 15, 9, 11, 9, 7, 5]
    assert drawn.discount_t.tolist() == [0.5, 0.5, 0.25, 0.5, 0.25, 0.25, 0.25, 0.25]


def test_several_rewards_at_once_are_as_one_after_the_other():
    rewards = np.float32([1.5, -2, 0.25, 4])
    scale = initial_scale(None)
    for reward in rewards:
        scale = observe(scale, jnp.asarray(reward))
    together = observe(
        observe(initial_scale(None), jnp.asarray(rewards[:2])), jnp.asarray(rewards[2:])
    )
    assert int(together.number) == int(scale.number) == 4
    assert float(together.square) == pytest.approx(float(scale.square), rel=1e-6)


def test_a_run_with_lanes_goes_on_bit_for_bit(tmp_path):
    alone = sf.NeuralAgent("CartPole-v1", **TWO).learn(120)
    first = sf.NeuralAgent("CartPole-v1", **TWO)
    first.learn(70, checkpoints=sf.Checkpoints(tmp_path, 35))
    again = sf.NeuralAgent.resume(tmp_path)
    assert again.num_timesteps == 70  # within episodes, which are played again
    assert any(int(length) > 0 for length in again.state.episode.length)
    again.learn(50)
    jax.tree.map(np.testing.assert_array_equal, again.state, alone.state)


def test_the_first_lane_begins_as_a_run_alone():
    alone, two = (sf.NeuralAgent("CartPole-v1", **own).learn(2) for own in (NETWORK, TWO))
    first = [np.asarray(agent.state.carry.replay.obs)[0, 0] for agent in (alone, two)]
    np.testing.assert_array_equal(*first)


@pytest.mark.wide
def test_compiled_environments_side_by_side():
    ended = []
    agent = sf.NeuralAgent("CartPole-v1", compiled=True, **TWO)
    agent.learn(300, lambda _, episode: ended.append(episode))
    parts = sf.NeuralAgent("CartPole-v1", compiled=True, **TWO).learn(100).learn(200)
    jax.tree.map(np.testing.assert_array_equal, agent.state, parts.state)
    episode = agent.state.episode
    assert sum(e.length for e in ended) + int(episode.length.sum()) == 300
    assert (
        [e.episode for e in ended] == list(range(len(ended))) == list(range(episode.number.sum()))
    )
    assert all(e.total == e.length for e in ended)  # CartPole pays 1 a step
    # Both lanes have transitions of their own that begin where the last one ended.
    obs, ends = (
        np.asarray(agent.state.carry.replay.obs),
        np.asarray(agent.state.carry.replay.outcome),
    )
    for lane in range(2):
        own, over = obs[lane:300:2], ends[lane:300:2, 2] > 0
        joined = np.isclose(own[1:, 0], own[:-1, 1], atol=1e-6).all(axis=-1)
        np.testing.assert_array_equal(joined, ~over[:-1])


class Strict(Counts):
    """The action of the clock's parity is the only legal one."""

    def step(self, action):
        assert action == self.clock % 2
        obs, *rest, _ = super().step(action)
        return obs, *rest, self.info()

    def info(self):
        return {"action_mask": np.eye(2, dtype=np.int8)[self.clock % 2]}

    def reset(self, **options):
        return super().reset(**options)[0], self.info()


class Drawn(Strict):
    """Episodes whose length their seed draws."""

    def show(self):
        return np.float32([self.clock, 0, 0, 0])

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        self.length = int(self.np_random.integers(3, 9))
        return obs, info

    def step(self, action):
        assert action == self.clock % 2
        self.clock += 1
        return self.show(), float(self.clock), self.clock == self.length, False, self.info()


@pytest.mark.wide
def test_a_run_with_lanes_and_masks_goes_on_bit_for_bit(tmp_path):
    alone = sf.NeuralAgent(Drawn, **TWO).learn(120)
    sf.NeuralAgent(Drawn, **TWO).learn(70, checkpoints=sf.Checkpoints(tmp_path, 35))
    again = sf.NeuralAgent.resume(tmp_path, Drawn)
    assert any(int(length) > 0 for length in again.state.episode.length)
    jax.tree.map(np.testing.assert_array_equal, again.learn(50).state, alone.state)


def test_lanes_honour_masks():
    agent = sf.NeuralAgent(Strict, **TWO).learn(60)  # an illegal action raises
    masks = np.asarray(agent.state.carry.replay.masks)[:10:2, 0]
    assert masks.tolist() == [2, 1, 2, 2, 1]  # after the first, second and third step, and again


class Asked(Strict):
    """The same by a method."""

    def info(self):
        return {}

    def action_masks(self):
        return np.arange(2) == self.clock % 2


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", [Strict, Asked])
def test_a_vector_environment_honours_masks(kind, mode):
    env = SyncVectorEnv([kind, kind], autoreset_mode=mode)
    agent = sf.NeuralAgent(env, **NETWORK)
    if kind is Asked and mode is AutoresetMode.SAME_STEP:
        with pytest.raises(
            RunError, match=r"action_masks\(\) of a VectorEnv that resets in the same"
        ):
            agent.learn(10)
        return
    agent.learn(60)  # an illegal action raises
    replay = agent.state.carry.replay
    masks, ended = (np.asarray(part)[:60:2] for part in (replay.masks[:, 0], replay.outcome[:, 2]))
    kept = masks[ended < VOID]
    # By hand, as above: three steps, then two. A termination after two steps leaves the mask of
    # the clock's parity, 1, as it was shown.
    assert kept[:10].tolist() == [2, 1, 2, 2, 1, 2, 1, 2, 2, 1]


def test_a_vector_environment_whose_masks_disappear_or_appear():
    class Forgets(Strict):
        def info(self):
            return super().info() if self.clock < 2 else {}

    class Late(Strict):
        def step(self, action):
            return super().step(self.clock % 2)

        def info(self):
            return super().info() if self.clock > 0 else {}

    for kind, text in (
        (Forgets, "step 3: info has no action_mask, which it had"),
        (Late, "step 1: info has an action_mask after a step, but had none"),
    ):
        with pytest.raises(RunError, match=text):
            sf.NeuralAgent(SyncVectorEnv([kind, kind]), **NETWORK).learn(20)


def test_a_fault_in_a_lane_ends_all_episodes(tmp_path):
    class Fails(Counts):
        left = 7

        def step(self, action):
            Fails.left -= 1
            if Fails.left == 0:
                raise OSError("gone")
            return super().step(action)

    agent = sf.NeuralAgent(Fails, **TWO)
    with pytest.warns(UserWarning, match="step 7: the environment raised OSError: gone"):
        agent.learn(20, on_fault="retry")
    assert agent.num_timesteps == 20
    with pytest.raises(InputError, match="n_envs: Counts is not registered: pass a function"):
        sf.NeuralAgent(Counts(), **TWO)
    with pytest.raises(InputError, match="update_every = 3 and n_envs = 2: one must be a multiple"):
        sf.NeuralConfig(n_envs=2, update_every=3)
