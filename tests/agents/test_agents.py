"""What both agents share: one meaning of predict, losses, callbacks, masks, files."""

from __future__ import annotations

import inspect
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
from tiny import NETWORK, TABLE

import surefoot as sf
from surefoot.agents.tabular import train_trials
from surefoot.core.names import NAMED_LOSSES
from surefoot.envs import TabularMDP, risky_cliff
from surefoot.errors import InputError
from surefoot.policies import SSD, DecidedBy, Greedy
from surefoot.runs.files import atomic_write
from surefoot.runs.format import encode, read_agent

OLD = Path(__file__).parent / "files-0.1.0"
SEEN = (3, np.float32([0.1, 0.0, -0.1, 0.2]))  # an observation of each


def agents():
    """A table and a network, each where other tests have it: they share their programs."""
    return sf.TabularAgent("FrozenLake-v1", **TABLE), sf.NeuralAgent("CartPole-v1", **NETWORK)


@pytest.mark.wide
def test_predict_explores_as_in_training_when_it_is_not_deterministic():
    # 0.1.0's network redrew its ties instead, and took one action here every time.
    for agent, obs in zip(agents(), SEEN, strict=True):
        agent.learn(60)
        sure = [agent.predict(obs) for _ in range(5)]
        assert len(set(sure)) == 1
        decided = agent.decide(np.stack([obs] * 400), deterministic=False)
        strayed = np.asarray(decided.decided_by) == DecidedBy.EXPLORATION
        assert strayed.mean() == pytest.approx(0.1, abs=0.075)  # five deviations
        assert set(decided.action[strayed].tolist()) == set(range(agent.action_space.n))


@pytest.mark.wide
def test_looking_does_not_disturb_a_run():
    for looked, left, obs in zip(agents(), agents(), SEEN, strict=True):
        looked.learn(40)
        looked.predict(obs, deterministic=False)
        looked.evaluate(1)
        looked.explain(obs)
        looked.learn(40)
        left.learn(80)
        np.testing.assert_array_equal(
            looked.return_distribution(obs), left.return_distribution(obs)
        )


@pytest.mark.parametrize("loss", NAMED_LOSSES)
def test_a_loss_has_one_meaning(loss):
    table, network = sf.TabularConfig(loss=loss), sf.NeuralConfig(loss=loss)
    assert table.proximal == network.proximal == NAMED_LOSSES[loss]


def test_the_two_agents_have_one_interface():
    # 0.1.0: callback(agent) for tables, no eval_every and watch there.
    for name in ("learn", "predict", "decide", "explain", "evaluate", "save"):
        own = [inspect.signature(getattr(kind, name)) for kind in (sf.TabularAgent, sf.NeuralAgent)]
        assert own[0] == own[1]


def test_callbacks_get_every_episode_once(tmp_path):
    for i, (agent, obs) in enumerate(zip(agents(), SEEN, strict=True)):
        seen = []
        agent.learn(
            120, lambda a, episode, s=seen: s.append((a.num_timesteps, episode)),
            log=tmp_path / str(i), eval_every=60, eval_episodes=1,
            watch=sf.Watch(np.stack([obs, obs]), 60),
        )  # fmt: skip
        assert [at for at, e in seen] == [e.step for _, e in seen]  # as soon as it has ended
        assert [e.episode for _, e in seen] == list(range(len(seen)))
        assert [e.step for _, e in seen] == np.cumsum([e.length for _, e in seen]).tolist()
        logs = {p.stem: p.read_text().splitlines() for p in (tmp_path / str(i)).glob("*.csv")}
        assert len(logs["episodes"]) == 1 + len(seen)
        assert len(logs["evaluations"]) == 1 + 2
        numbers = 2 * 2 * agent.action_space.n * 4  # times, states, actions, particles
        assert len(logs["distributions"]) == 1 + numbers


# --- masks -------------------------------------------------------------------------------


def one_legal() -> TabularMDP:
    """One state, three actions, of which the last is the only legal one and the worst."""
    return TabularMDP(
        next_state=np.zeros((1, 3, 1), int), probability=np.ones((1, 3, 1)),
        reward_mean=np.array([[[2.0], [1.0], [0.0]]]), terminal=np.ones((1, 3, 1), bool),
        mask=np.array([[False, False, True]]),
    )  # fmt: skip


@pytest.mark.wide
def test_a_table_honours_the_masks_of_its_process():
    agent = sf.TabularAgent(one_legal(), explore=1.0, **TABLE).learn(50)
    assert np.asarray(agent.table.visits).tolist() == [[0, 0, 50]]
    assert agent.predict(0) == agent.explain(0).action == 2
    assert agent.predict(np.zeros(20, int), deterministic=False).tolist() == [2] * 20
    assert agent.evaluate(3).tolist() == [0.0] * 3


# --- files -------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_file_of_parameters_that_are_no_numbers_is_no_agent(which, bad, tmp_path):
    agent = agents()[which]
    agent.save(tmp_path / "agent")
    arrays, about = read_agent(tmp_path / "agent")
    name = "table.z" if which == 0 else "agent.params.1"
    arrays[name] = np.full_like(arrays[name], bad)
    kept = {k: v for k, v in about.items() if k not in ("kind", "contents", "checksum")}
    atomic_write(tmp_path / "agent", encode(agent.kind, arrays, kept))
    with pytest.raises(InputError, match=f"{name} holds values that are NaN or infinite"):
        sf.load(tmp_path / "agent")


def test_files_of_the_first_version(tmp_path):
    table = sf.load(OLD / "tabular.safetensors")
    assert (table.num_timesteps, table.config.loss, table.config.transport) == (
        60,
        "wgf-exact",
        None,
    )
    # What 0.1.0 left as action 0 where it had not been is chosen anew.
    unseen = ~np.asarray(table.table.visits).any(axis=-1)
    assert len(set(np.asarray(table.table.target_action)[unseen].tolist())) == 4
    network = sf.load(OLD / "neural.safetensors")
    wanted = [[0.08913163, 0.46689671], [-0.21935296, 0.54040271]]  # as 0.1.0 gave them
    np.testing.assert_allclose(network.return_distribution(np.zeros(4)), wanted, rtol=1e-5)
    assert network.num_timesteps == 120
    with pytest.raises(
        InputError, match=r"checkpoint of surefoot 0\.1\.0, whose runs this version"
    ):
        sf.resume(OLD / "step-000000000120.safetensors")


# --- what it is for ----------------------------------------------------------------------


@pytest.mark.slow  # tests/paper has a quick one, of whole runs with each policy
def test_on_the_risky_cliff_ssd_takes_the_sure_path_and_greedy_less_often():
    # The paths over the top and along the cliff are worth the same; only the latter is random.
    # One table serves both policies: at the fork (row 2, column 0) up is the sure action 0.
    config = sf.TabularConfig(behaviour=SSD(tolerance=5e-4), initial_std=1.0)
    runs = train_trials(config, risky_cliff(), episodes=150, trials=8, seed=0, quiet=True)
    fork = np.asarray(runs.table.z)[:, 24]
    keys = jax.random.split(jax.random.key(0), (50, len(fork)))
    ssd, greedy = (
        float(np.mean(np.asarray(jax.jit(jax.vmap(jax.vmap(policy), (None, 0)))(fork, keys)) == 0))
        for policy in (SSD(tolerance=5e-4), Greedy(tolerance=5e-4))
    )
    assert ssd > 0.9
    assert greedy < ssd - 0.2


def test_env_is_checked():
    with pytest.raises(InputError, match="env is a int: pass a Gymnasium environment or its id"):
        sf.TabularAgent(3)


class Seeds(gym.Env):
    """One step an episode, whose return is the seed it began with."""

    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.begun = seed
        return 0, {}

    def step(self, action):
        return 1, float(self.begun), True, False, {}


def test_no_two_agents_are_evaluated_in_the_same_episodes():
    """Else the means of a sweep over seeds would be less scattered than they are uncertain."""
    met = [
        sf.TabularAgent(Seeds(), eval_env=Seeds(), seed=s, **TABLE).evaluate(20) for s in range(5)
    ]
    assert len(np.unique(met)) == 100
    learned = []
    agent = sf.TabularAgent(Seeds(), eval_env=Seeds(), seed=3, **TABLE)
    agent.learn(50, callback=lambda _, episode: learned.append(episode.total))
    assert not set(learned) & set(np.ravel(met))
    assert agent.evaluate(3, seed=7).tolist() == [7, 8, 9]  # the caller's own


class Tripled(gym.RewardWrapper):
    """Does not say what it was made with, so that no other one can be made of it."""

    def reward(self, reward):
        return 3 * reward


@pytest.mark.parametrize("compiled", [False, True])
def test_an_evaluation_environment_is_kept_and_taken_again(compiled, tmp_path):
    agent = sf.NeuralAgent("CartPole-v1", compiled=compiled, eval_env=brief, **NETWORK)
    assert agent.evaluate(2).tolist() == [3, 3]
    agent.save(tmp_path / "agent.safetensors")
    agent.learn(0, checkpoints=sf.Checkpoints(tmp_path))
    for again in (
        sf.load(tmp_path / "agent.safetensors", eval_env=brief),
        sf.resume(tmp_path, eval_env=brief()),
    ):
        assert again.evaluate(2).tolist() == [3, 3]
    table = sf.TabularAgent("surefoot/CliffWalk-v0", eval_env="surefoot/CliffWalk-v0", **TABLE)
    table.save(tmp_path / "table.safetensors")
    again = sf.load(tmp_path / "table.safetensors", eval_env="surefoot/RiskyCliff-v0")
    assert again.evaluate(1).shape == (1,)


def brief():
    return gym.make("CartPole-v1", max_episode_steps=3)


@pytest.mark.parametrize(
    ("eval_env", "text"),
    [
        (3, "eval_env is a int: pass a Gymnasium environment"),
        ("MountainCar-v0", "eval_env: its observation_space is Box"),
        ("Acrobot-v1", "eval_env: its observation_space is Box"),
        ("NoSuchEnv-v0", "NoSuchEnv"),
    ],
)
def test_an_evaluation_environment_of_another_kind_is_refused(eval_env, text):
    with pytest.raises(InputError, match=text):
        sf.NeuralAgent("CartPole-v1", eval_env=eval_env, **NETWORK)


def test_an_environment_of_which_there_is_one_only_asks_for_another():
    agent = sf.NeuralAgent(Tripled(gym.make("CartPole-v1")), **NETWORK)
    with pytest.raises(InputError, match=r"another CartPoleEnv cannot be made .* or eval_env"):
        agent.evaluate(1)
