"""Checkpoints: what is in them, how they are kept, and that a resumed run is the same run."""

from __future__ import annotations

import os
import threading
import time
import warnings

import gymnasium as gym
import jax
import numpy as np
import pytest
import survive_child
from safetensors.numpy import load_file
from survive_child import EVERY, SMALL, STEPS, TINY, digest

import surefoot as sf
from surefoot.agents.loading import load, resume
from surefoot.envs import probes, risky_cliff
from surefoot.errors import InputError
from surefoot.policies import SSD, Greedy
from surefoot.runs import format as saving
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.logs import Watch


@pytest.mark.parametrize("name", survive_child.kinds())
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(name, tmp_path):
    make = survive_child.kinds()[name]
    whole = make().learn(STEPS, log=tmp_path / "whole")
    keeper = Checkpoints(tmp_path / "checkpoints", every=EVERY, keep=9)
    make().learn(STEPS - EVERY, log=tmp_path / "parts", checkpoints=keeper)
    for path in (keeper.paths[0], keeper.paths[2], keeper.latest()):
        again = resume(path)
        again.learn(STEPS - again.num_timesteps, log=tmp_path / "parts")
        assert digest(again) == digest(whole)
        logs = [(tmp_path / part / "episodes.csv").read_bytes() for part in ("whole", "parts")]
        assert logs[0] == logs[1]  # each row once


def test_evaluations_and_watched_states_are_logged_once(tmp_path):
    polars = pytest.importorskip("polars")
    keeper = Checkpoints(tmp_path / "checkpoints", every=60, keep=9)
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
    with pytest.raises(InputError, match=r"episodes\.csv is shorter than at the checkpoint"):
        resume(tmp_path).learn(10, log=tmp_path)


def test_the_last_ones_are_kept_and_damaged_ones_passed_over(tmp_path):
    keeper = Checkpoints(tmp_path, every=50, keep=2)
    agent = survive_child.kinds()["tabular-stepped"]().learn(250, checkpoints=keeper)
    assert len(keeper.paths) == 2
    assert keeper.latest() == keeper.paths[-1] == tmp_path / "step-000000000250.safetensors"
    data = keeper.paths[-1].read_bytes()
    keeper.paths[-1].write_bytes(data[:-3])
    with pytest.warns(UserWarning, match=r"passed over: .*step-000000000250.*damaged"):
        assert keeper.latest() == keeper.paths[0]
    with pytest.warns(UserWarning, match="passed over"):
        again = resume(tmp_path)
    with pytest.warns(UserWarning, match="passed over"):
        again.learn(250 - again.num_timesteps, checkpoints=keeper)
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
    with pytest.raises(InputError, match="give Checkpoints"):
        make().learn(10, checkpoints=str(tmp_path))


def test_training_does_not_wait_for_the_disk(tmp_path, monkeypatch):
    agent = survive_child.kinds()["tabular-compiled"]().learn(70)
    keeper = Checkpoints(tmp_path, every=1)
    gate, real = threading.Event(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (gate.wait(10), real(fd)))
    keeper.open(0)
    began = time.perf_counter()
    assert keeper.offer(agent.snapshot)
    assert not keeper.offer(agent.snapshot)  # one at a time: the next one waits for its turn
    assert time.perf_counter() - began < 5
    gate.set()
    keeper.close()
    assert keeper.latest() == tmp_path / "step-000000000070.safetensors"


@pytest.mark.slow
def test_a_checkpoint_of_ten_thousand_transitions_costs_milliseconds(tmp_path):
    agent = sf.NeuralAgent("CartPole-v1", loss="qr").learn(150)  # replay_size is 10,000
    keeper = Checkpoints(tmp_path)
    taken = min(_seconds(agent.snapshot) for _ in range(5))
    written = min(_seconds(lambda: keeper.save(agent)) for _ in range(3))
    assert taken < 0.05, taken  # about 1 ms; the machine may be busy
    assert written < 1.0, written
    assert 1.5e6 < keeper.latest().stat().st_size < 4e6


def _seconds(call) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# --- environments ------------------------------------------------------------------------


class Walker(gym.Env):
    """Speaks for itself: its state is in a place no one else looks into."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.inside = iter(())  # nothing plain
        self.place = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-0.1, 0.1))
        return np.array([self.place], np.float32), {}

    def step(self, action):
        self.place += 0.1 * (2 * action - 1) + float(self.np_random.normal(0, 0.02))
        place = np.array([np.clip(self.place, -1, 1)], np.float32)
        return place, -abs(self.place), abs(self.place) > 0.9, False, {}


class Speaking(Walker):
    def get_state(self):
        return {"place": self.place}

    def set_state(self, state):
        self.place = state["place"]


@pytest.mark.slow
def test_an_environment_can_speak_for_itself(tmp_path):
    whole = sf.NeuralAgent(Speaking(), **TINY).learn(150)
    keeper = Checkpoints(tmp_path, every=50, keep=5)
    sf.NeuralAgent(Speaking(), **TINY).learn(100, checkpoints=keeper)
    again = sf.NeuralAgent.resume(keeper.paths[1], Speaking())
    assert again.num_timesteps == 50
    assert digest(again.learn(100)) == digest(whole)
    with pytest.raises(InputError, match="does not say how to make its environment: give env="):
        resume(tmp_path)


@pytest.mark.parametrize("kind", ["own", pytest.param("box2d", marks=pytest.mark.slow)])
def test_what_cannot_be_stored_restarts_between_episodes_deterministically(kind, tmp_path):
    if kind == "box2d":
        pytest.importorskip("Box2D")
    make = Walker if kind == "own" else lambda: gym.make("LunarLander-v3")
    whole = sf.NeuralAgent(make(), **TINY).learn(400)
    keeper = Checkpoints(tmp_path, every=60, keep=9)
    with pytest.warns(UserWarning, match="cannot be stored .* between episodes"):
        sf.NeuralAgent(make(), **TINY).learn(390, checkpoints=keeper)
    between = [p for p in keeper.paths if p.name not in ("step-000000000390.safetensors",)]
    assert len(between) >= 3
    for path in (between[1], between[-1]):
        again = sf.NeuralAgent.resume(path, make())
        assert again.learn(400 - again.num_timesteps).num_timesteps == 400
        pairs = zip(jax.tree.leaves(again.state), jax.tree.leaves(whole.state), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_wrappers_are_part_of_the_environment(tmp_path):
    wrappers = gym.wrappers

    def flat():
        env = wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
        return wrappers.FlattenObservation(wrappers.NormalizeObservation(env))

    whole = sf.NeuralAgent(flat(), **TINY).learn(150)
    keeper = Checkpoints(tmp_path, every=50, keep=5)
    sf.NeuralAgent(flat(), **TINY).learn(100, checkpoints=keeper)
    again = sf.NeuralAgent.resume(keeper.paths[1], flat())
    again.learn(100)
    pairs = zip(jax.tree.leaves(again.state), jax.tree.leaves(whole.state), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    with pytest.raises(InputError, match="was taken from FlattenObservation of Normalize"):
        sf.NeuralAgent.resume(keeper.paths[1], "CartPole-v1")


def test_a_run_in_a_process_of_ones_own(tmp_path):
    whole = sf.TabularAgent(risky_cliff(), **SMALL).learn(210)
    keeper = Checkpoints(tmp_path, every=70)
    sf.TabularAgent(risky_cliff(), **SMALL).learn(140, checkpoints=keeper)
    again = sf.TabularAgent.resume(tmp_path, risky_cliff())
    assert digest(again.learn(70)) == digest(whole)
    with pytest.raises(InputError, match="another process"):
        sf.TabularAgent.resume(tmp_path, risky_cliff(sigma=0.5))
    with pytest.raises(InputError, match="give env="):
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
    assert resume(tmp_path).num_timesteps == 140
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
    with pytest.raises(InputError, match=r"evaluation was Mine\(.*give evaluation="):
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
    saving.write_agent(tmp_path / "x", "neural", arrays, {"note": "\u00fc"})
    for found in (load_file(tmp_path / "x"), saving.read_agent(tmp_path / "x")[0]):
        assert found.keys() == arrays.keys()
        for name, value in arrays.items():
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)


def test_nothing_warns_about_an_environment_that_can_be_stored(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = sf.NeuralAgent(probes.OneStep(), **TINY)
        agent.learn(40, checkpoints=Checkpoints(tmp_path, every=20))
