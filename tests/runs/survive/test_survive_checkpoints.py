"""Checkpoints: what is in them, how they are kept, and that a resumed run is the same run."""

from __future__ import annotations

import os
import threading

import gymnasium as gym
import jax
import numpy as np
import pytest
import survive_child
from safetensors.numpy import load_file
from survive_child import EVERY, SMALL, STEPS, TINY, digest

import surefoot as sf
from surefoot.agents.loading import load, resume
from surefoot.envs import risky_cliff
from surefoot.errors import InputError
from surefoot.policies import SSD, Greedy
from surefoot.runs import format as saving
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.files import atomic_write
from surefoot.runs.logs import Watch

pytestmark = pytest.mark.wide


class Patient(Checkpoints):
    """Waits for the disk: the same checkpoints are taken however slow it is."""

    def offer(self, take):
        self.settle()
        return super().offer(take)


@pytest.mark.parametrize("name", survive_child.kinds())
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(name, tmp_path):
    make = survive_child.kinds()[name]
    whole = make().learn(STEPS, log=tmp_path / "whole")
    keeper = Patient(tmp_path / "checkpoints", every=EVERY, keep=9)
    make().learn(STEPS - EVERY, log=tmp_path / "parts", checkpoints=keeper)
    # A slow disk takes fewer of them: the one in the middle of those there are.
    for path in (keeper.paths[0], keeper.paths[len(keeper.paths) // 2], keeper.latest()):
        again = resume(path)
        assert again.num_timesteps <= STEPS - EVERY
        again.learn(STEPS - again.num_timesteps, log=tmp_path / "parts")
        assert digest(again) == digest(whole)
        logs = [(tmp_path / part / "episodes.csv").read_bytes() for part in ("whole", "parts")]
        assert logs[0] == logs[1]  # each row once


def test_a_disk_that_is_too_slow_for_checkpoints_changes_no_bit(tmp_path, monkeypatch):
    # Only the first one is written. The run ends within an episode, three periods later.
    make = survive_child.kinds()["tabular-stepped"]
    monkeypatch.setattr(Checkpoints, "offer", lambda self, take: False)
    make().learn(230, checkpoints=Checkpoints(tmp_path, every=EVERY))
    again = resume(tmp_path)
    assert digest(again.learn(STEPS - again.num_timesteps)) == digest(make().learn(STEPS))


def test_evaluations_and_watched_states_are_logged_once(tmp_path):
    polars = pytest.importorskip("polars")
    keeper = Patient(tmp_path / "checkpoints", every=60, keep=9)
    options = {"eval_every": 40, "eval_episodes": 2, "watch": Watch(np.zeros(4), 30)}
    make = survive_child.kinds()["neural-gymnasium"]
    whole = make().learn(200, log=tmp_path / "whole", **options)
    make().learn(170, log=tmp_path / "parts", checkpoints=keeper, **options)
    again = resume(keeper.paths[-2])
    again.learn(200 - again.num_timesteps, log=tmp_path / "parts", **options)
    assert digest(again) == digest(whole)
    for table in ("episodes", "evaluations", "distributions"):
        csv = [(tmp_path / part / f"{table}.csv").read_bytes() for part in ("whole", "parts")]
        assert csv[0] == csv[1]
        frame = polars.read_parquet(tmp_path / "parts" / f"{table}.parquet")
        assert frame.equals(polars.read_csv(tmp_path / "whole" / f"{table}.csv"))


def test_logs_that_are_too_short_are_another_runs(tmp_path):
    keeper = Checkpoints(tmp_path / "checkpoints", every=50)
    survive_child.kinds()["neural-gymnasium"]().learn(200, log=tmp_path, checkpoints=keeper)
    (tmp_path / "episodes.csv").write_text("step\n")
    with pytest.raises(InputError, match=r"episodes\.csv is not what it was at the checkpoint"):
        resume(tmp_path).learn(10, log=tmp_path)


def test_the_last_ones_are_kept_and_damaged_ones_passed_over(tmp_path):
    keeper = Patient(tmp_path, every=50, keep=2)
    agent = survive_child.kinds()["tabular-stepped"]().learn(240, checkpoints=keeper)
    assert len(keeper.paths) == 2
    # Taxi's episodes are cut after 40 steps here: an episode begins at step 240.
    assert keeper.latest() == keeper.paths[-1] == tmp_path / "step-000000000240.safetensors"
    data = keeper.paths[-1].read_bytes()
    keeper.paths[-1].write_bytes(data[:-3])
    with pytest.warns(UserWarning, match=r"passed over: .*step-000000000240.*damaged"):
        assert keeper.latest() == keeper.paths[0]
    with pytest.warns(UserWarning, match="passed over"):
        again = resume(tmp_path)
    with pytest.warns(UserWarning, match="passed over"):
        again.learn(240 - again.num_timesteps, checkpoints=keeper)
    assert digest(again) == digest(agent)
    assert keeper.latest().read_bytes() == data  # equal runs make equal files
    with pytest.raises(InputError, match="holds no checkpoint"):
        resume(tmp_path.parent)


def test_another_run_does_not_mix_with_what_is_there(tmp_path):
    make = survive_child.kinds()["tabular-compiled"]
    make().learn(70, checkpoints=Checkpoints(tmp_path, every=70))
    with pytest.raises(InputError, match="a checkpoint of step 70, later than this run's 0"):
        make().learn(70, checkpoints=Checkpoints(tmp_path, every=70))
    for wrong in ({"every": 0}, {"keep": 0}, {"every": 1.5}):
        with pytest.raises(InputError, match="it must be a whole number"):
            Checkpoints(tmp_path, **wrong)
    with pytest.raises(InputError, match="pass Checkpoints"):
        make().learn(10, checkpoints=str(tmp_path))


def test_training_does_not_wait_for_the_disk(tmp_path, monkeypatch):
    agent = survive_child.kinds()["tabular-compiled"]().learn(70)
    keeper = Checkpoints(tmp_path, every=1)
    gate, real = threading.Event(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (gate.wait(10), real(fd)))
    keeper.open(0)
    assert keeper.offer(agent.snapshot)
    assert not keeper.offer(agent.snapshot)  # one at a time: the next one waits for its turn
    gate.set()
    keeper.close()
    assert keeper.latest() == tmp_path / "step-000000000070.safetensors"


# --- environments ------------------------------------------------------------------------


class Walker(gym.Env):
    """Its state is in a place no one else looks into."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.inside = iter(())  # nothing that could be written down
        self.place, self.clock = 0.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.clock = float(self.np_random.uniform(-0.1, 0.1)), 0
        return np.full(4, self.place, np.float32), {}

    def step(self, action):
        self.place += 0.1 * (2 * action - 1) + float(self.np_random.normal(0, 0.02))
        self.clock += 1
        place = np.full(4, np.clip(self.place, -1, 1), np.float32)
        return place, -abs(self.place), abs(self.place) > 0.9, self.clock == 25, {}


class Endless(Walker):
    def step(self, action):
        obs, reward, *_ = super().step(action)
        self.place *= 0.9
        return obs, reward, False, False, {}


class Growing(Walker):
    """Carries something from one episode to the next, and says so."""

    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        obs, info = super().reset(seed=seed)
        return obs / (1 + self.episodes), info

    def get_state(self):
        return {"episodes": self.episodes, "more": [1.5, (np.arange(2), np.float32("inf"))]}

    def set_state(self, state):
        assert state["more"][1][1] == np.inf
        self.episodes = state["episodes"]


def same(a, b) -> bool:
    pairs = zip(jax.tree.leaves(a.state), jax.tree.leaves(b.state), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


def wrapped():
    wrappers = gym.wrappers
    env = wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
    return wrappers.NormalizeReward(wrappers.NormalizeObservation(env))


@pytest.mark.parametrize(
    "kind", ["growing", "wrapped", pytest.param("box2d", marks=pytest.mark.slow)]
)
def test_a_run_goes_on_between_episodes_bit_for_bit(kind, tmp_path):
    if kind == "box2d":
        pytest.importorskip("Box2D")
    make = {
        "growing": Growing, "wrapped": wrapped,
        "box2d": lambda: gym.make("LunarLander-v3", max_episode_steps=50),
    }[kind]  # fmt: skip
    whole = sf.NeuralAgent(make(), **TINY).learn(400)
    keeper = Patient(tmp_path, every=60, keep=9)
    sf.NeuralAgent(make(), **TINY).learn(390, checkpoints=keeper)
    assert len(keeper.paths) >= 3
    for path in (keeper.paths[1], keeper.paths[-1]):
        again = sf.NeuralAgent.resume(path, make())
        assert again.at_boundary
        assert same(again.learn(400 - again.num_timesteps), whole)
    if kind == "growing":
        with pytest.raises(InputError, match="does not say how to make its environment: pass env="):
            resume(tmp_path)
        with pytest.raises(InputError, match=r"holds the memory of Growing; .* none keep one"):
            sf.NeuralAgent.resume(tmp_path, Walker())


class Forgetful(Growing):
    """Carries something and does not say so."""

    get_state = None


def test_episodes_that_differ_from_equal_seeds_are_told(tmp_path):
    sf.NeuralAgent(Forgetful(), **TINY).learn(60, checkpoints=Checkpoints(tmp_path, every=20))
    with pytest.warns(UserWarning, match="does not start equal episodes from equal seeds"):
        sf.NeuralAgent.resume(tmp_path, Forgetful())


def test_an_episode_that_does_not_end_is_cut_by_the_last_checkpoint(tmp_path):
    keeper = Checkpoints(tmp_path, every=20, keep=9)
    agent = sf.NeuralAgent(Endless(), **TINY)
    agent.learn(40, checkpoints=keeper)  # the start is at hand: nothing is lost but time
    assert [p.name for p in keeper.paths] == ["step-000000000000.safetensors"]
    with pytest.warns(UserWarning, match="no checkpoint for .* steps: they are taken between"):
        agent.learn(260, checkpoints=keeper)
    again = sf.NeuralAgent.resume(tmp_path, Endless())
    assert (again.num_timesteps, int(again.state.episode.number)) == (300, 1)
    assert np.flatnonzero(again.state.carry.replay.outcome[:300, 2]).tolist() == [299]
    assert again.learn(10).num_timesteps == 310


def test_a_run_in_a_process_of_ones_own(tmp_path):
    whole = sf.TabularAgent(risky_cliff(), **SMALL).learn(210)
    keeper = Checkpoints(tmp_path, every=70)
    sf.TabularAgent(risky_cliff(), **SMALL).learn(140, checkpoints=keeper)
    again = sf.TabularAgent.resume(tmp_path, risky_cliff())
    assert digest(again.learn(70)) == digest(whole)
    with pytest.raises(InputError, match="another process"):
        sf.TabularAgent.resume(tmp_path, risky_cliff(sigma=0.5))
    with pytest.raises(InputError, match="pass env="):
        resume(tmp_path)


# --- saved agents ------------------------------------------------------------------------


def test_a_saved_network_acts_the_same_and_learns_on(tmp_path):
    agent = sf.NeuralAgent("CartPole-v1", evaluation=SSD(tolerance=0.01), seed=2, **TINY).learn(80)
    path = tmp_path / "agent.safetensors"
    agent.save(path)
    again = load(path)
    obs = np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_array_equal(again.predict(obs), agent.predict(obs))
    np.testing.assert_array_equal(again.return_distribution(obs), agent.return_distribution(obs))
    assert (again.config, again.seed, again.num_timesteps) == (agent.config, 2, 80)
    assert str(again.explain(obs[0])) == str(agent.explain(obs[0]))
    assert again.learn(60).num_timesteps == 140
    keeper = Checkpoints(tmp_path / "checkpoints", every=50)
    assert load(path).learn(60, checkpoints=keeper).num_timesteps == 140
    assert 80 < resume(tmp_path).num_timesteps <= 140  # where the last episode began
    with pytest.raises(InputError, match="holds a 'neural' agent"):
        sf.TabularAgent.load(path)
    with pytest.raises(InputError, match="does not fit the settings and the environment"):
        sf.NeuralAgent.load(path, "MountainCar-v0")
    with pytest.raises(InputError, match="holds a 'agent', not a checkpoint"):
        resume(path)


class Mine(Greedy):
    """A policy without a name."""


def test_a_policy_without_a_name_has_to_be_given_again(tmp_path):
    agent = sf.NeuralAgent("CartPole-v1", evaluation=Mine(), **TINY).learn(30)
    agent.save(tmp_path / "agent")
    with pytest.raises(InputError, match=r"evaluation was Mine\(.*name one by evaluation="):
        load(tmp_path / "agent")
    assert load(tmp_path / "agent", evaluation=Mine()).config == agent.config
    with pytest.raises(InputError, match="option 'sed'"):
        load(tmp_path / "agent", sed=3)


def test_the_files_are_safetensors_that_others_can_read(tmp_path):
    arrays = {
        "b.wide": np.arange(6.0).reshape(2, 3).T, "a": np.float32(2.5), "none": np.zeros((0, 4)),
        "flags": np.array([True, False]), "words": np.arange(3, dtype=np.uint32),
        "half": np.ones(5, np.float16), "small": np.array([-3], np.int8),
    }  # fmt: skip
    atomic_write(tmp_path / "x", saving.encode("neural", arrays, {"note": "\u00fc"}))
    for found in (load_file(tmp_path / "x"), saving.read_agent(tmp_path / "x")[0]):
        assert found.keys() == arrays.keys()
        for name, value in arrays.items():
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)
