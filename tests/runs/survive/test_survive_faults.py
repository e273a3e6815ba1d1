"""Environments that raise, hang or give no number: stop or retry, everything before kept."""

from __future__ import annotations

import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from survive_child import SMALL, TINY

import surefoot as sf
from surefoot.agents.loading import resume
from surefoot.agents.neural.config import PAPER
from surefoot.envs.faults import FaultPolicy
from surefoot.errors import InputError, RunError
from surefoot.runs.checkpoints import Checkpoints

pytestmark = pytest.mark.wide

BAD = 47  # the step of the run at which the environment fails
STEPS = {"made": 0}


class Failing(gym.Env):
    """Fails once, at step `BAD` of the process, in one of several ways."""

    def __init__(self, how="raise", discrete=False, always=False):
        self.how, self.always, self.place = how, always, 0.0
        STEPS["made"] += 1
        self.action_space = gym.spaces.Discrete(2)
        self.observation_space = (
            gym.spaces.Discrete(5) if discrete else gym.spaces.Box(-9, 9, (4,), np.float32)
        )
        self.discrete = discrete

    def _seen(self):
        if self.discrete:
            return round(abs(self.place) * 10) % 5
        return np.full(4, self.place, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = float(self.np_random.uniform(-0.1, 0.1)), 10
        return self._seen(), {}

    def step(self, action):
        STEPS["done"] = STEPS.get("done", 0) + 1
        self.left -= 1
        self.place += 0.1 * (2 * action - 1)
        obs, reward = self._seen(), -abs(self.place)
        if STEPS["done"] == BAD or (self.always and STEPS["done"] > BAD):
            if self.how == "raise":
                raise ValueError("the simulator\nis gone")
            if self.how == "hang":
                time.sleep(60)
            if self.how == "obs":
                obs = 7 if self.discrete else np.full(4, np.nan, np.float32)
            if self.how == "reward":
                reward = np.inf
        return obs, reward, False, self.left == 0, {}


gym.register("surefoot-test/Failing-v0", Failing, disable_env_checker=True)


@pytest.fixture(autouse=True)
def counted():
    STEPS.clear()
    STEPS["made"] = 0


WORDS = {
    "raise": "the environment raised ValueError: the simulator is gone",
    "hang": "the environment raised Hang: it took more than 0.2 s",
    "reward": "the environment returned the reward inf",
}


def agent_for(kind: str, how: str, **options):
    if kind == "neural":
        env = gym.make("surefoot-test/Failing-v0", how=how, **options)
        return sf.NeuralAgent(env, seed=6, **TINY)
    env = gym.make("surefoot-test/Failing-v0", how=how, discrete=True, **options)
    return sf.TabularAgent(env, **(SMALL | {"seed": 6}))


@pytest.mark.parametrize("kind", ["neural", "tabular"])
@pytest.mark.parametrize("how", ["raise", "hang", "obs", "reward"])
def test_the_run_stops_with_everything_before_kept(kind, how, tmp_path):
    agent = agent_for(kind, how)
    keeper = Checkpoints(tmp_path / "checkpoints", every=30)
    policy = FaultPolicy(step_timeout=0.2 if how == "hang" else None)
    place = f"surefoot-test/Failing-v0, seed 6, step {BAD}: "
    with pytest.raises(RunError, match=place) as caught:
        agent.learn(100, log=tmp_path, checkpoints=keeper, on_fault=policy)
    assert caught.value.partial is agent
    assert WORDS.get(how, "") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert agent.num_timesteps == BAD - 1
    rows = (tmp_path / "episodes.csv").read_text().splitlines()[1:]
    assert [int(r.split(",")[0]) for r in rows] == [10, 20, 30, 40, 46]  # the last one cut short
    again = resume(tmp_path)
    assert again.num_timesteps == BAD - 1
    again.learn(14, log=tmp_path)  # the environment has recovered
    rows = (tmp_path / "episodes.csv").read_text().splitlines()[1:]
    assert [int(r.split(",")[0]) for r in rows] == [10, 20, 30, 40, 46, 56]


@pytest.mark.parametrize("kind", ["neural", "tabular"])
@pytest.mark.parametrize("how", ["raise", "obs"])
def test_the_run_goes_on_after_a_retry(kind, how):
    agent = agent_for(kind, how)
    with pytest.warns(UserWarning, match=f"step {BAD}: .*; retries left: 9"):
        agent.learn(100, on_fault="retry")
    assert agent.num_timesteps == 100
    assert len(agent.faults) == 1
    if kind == "neural":
        assert np.isfinite(agent.return_distribution(np.zeros(4))).all()
        ended = agent.state.carry.replay.outcome[:100, 2]
        assert np.flatnonzero(ended).tolist() == [9, 19, 29, 39, 45, 55, 65, 75, 85, 95]
        assert np.isfinite(agent.state.carry.replay.obs).all()
    else:
        assert agent.episodes[:6, 1].tolist() == [10, 10, 10, 10, 6, 10]
        assert int(np.asarray(agent.table.visits).sum()) == 100


def test_retries_run_out_and_an_environment_with_a_name_is_made_anew():
    agent = sf.NeuralAgent("surefoot-test/Failing-v0", **TINY)
    agent.env.unwrapped.always = True
    made = STEPS["made"]
    with pytest.warns(UserWarning, match="retries left: 1"):
        agent.learn(100, on_fault=FaultPolicy(retries=2))
    assert STEPS["made"] == made + 1  # the new one is sound
    STEPS["done"] = 0
    stuck = agent_for("neural", "raise", always=True)
    with (
        pytest.warns(UserWarning, match=r"retries left: [01]"),
        pytest.raises(RunError, match=f"step {BAD}: "),
    ):
        stuck.learn(100, on_fault=FaultPolicy(retries=2))
    assert len(stuck.faults) == 2


def test_a_loss_that_is_no_number_stops_and_the_last_checkpoint_is_sound(tmp_path):
    class Huge(Failing):
        def step(self, action):
            obs, _, *rest = super().step(action)
            return obs, 1e30 if STEPS["done"] > 60 else 0.0, *rest

    agent = sf.NeuralAgent(Huge("none"), **(TINY | PAPER | {"loss": "mse"}))
    with pytest.raises(RunError, match=r"Huge, seed 0, step \d+: the loss is") as caught:
        agent.learn(200, checkpoints=Checkpoints(tmp_path, every=30), on_fault="retry")
    assert caught.value.partial is agent
    again = sf.NeuralAgent.resume(tmp_path, Huge("none"))
    assert again.num_timesteps in (30, 60)  # the newest that was written before the loss ran off
    assert np.isfinite(again.return_distribution(np.zeros(4))).all()


def test_policies_are_checked():
    agent = agent_for("tabular", "none")
    for wrong in ("ignore", 3):
        with pytest.raises(InputError, match="on_fault"):
            agent.learn(5, on_fault=wrong)
    for options in ({"retries": -1}, {"step_timeout": 0}, {"step_timeout": float("nan")}):
        with pytest.raises(InputError, match="it must be"):
            FaultPolicy(**options)


def test_a_timeout_needs_the_main_thread():
    found = []

    def run():
        try:
            agent_for("tabular", "none").learn(5, on_fault=FaultPolicy(step_timeout=1.0))
        except InputError as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["step_timeout needs POSIX signals and the main thread"]


def test_callbacks_see_the_agent_as_it_is():
    seen = []

    def look(agent, episode):
        seen.append((agent.num_timesteps, episode.step, agent.predict(np.zeros(4))))

    agent_for("neural", "none").learn(45, callback=look)
    assert [a == b for a, b, _ in seen] == [True] * 4
