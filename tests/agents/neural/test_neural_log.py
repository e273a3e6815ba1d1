"""What a network says of its own training, in the log."""

from __future__ import annotations

import csv
import math
from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from tiny import NETWORK

import surefoot as sf
from surefoot.agents.neural import NeuralConfig
from surefoot.agents.neural.replay import Sample
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import init_carry
from surefoot.agents.neural.update import update
from surefoot.runs.logs import Finished, RunLog

pytestmark = pytest.mark.wide

SPEC, SIZE = Spec(3, "float32", 2), 8
SURE, NOISY = [1.0] * 4, [-1.0, 0.5, 1.5, 3.0]
TIED, APART = [[1, 1.2], [1, 1.0], [1, 1.1]], [[1, 5.0], [1, 5.01], [1, 5.02]]
CONFIG = NeuralConfig(hidden=(8,), particles=4, ensemble=3, kappa=0.5, max_grad_norm=0.1)


@jax.jit
def said(params, batch):
    state = init_carry(CONFIG, SPEC, jax.random.key(0)).opt_state
    return update(CONFIG, SPEC, params, state, params, batch, jax.random.key(1), True)[2]


def one_batch(discount=0.9):
    rng = np.random.default_rng(0)
    obs = jnp.asarray(rng.normal(size=(2, SIZE, 3)), jnp.float32)
    reward = jnp.asarray(rng.normal(size=SIZE), jnp.float32)
    discount = jnp.full(SIZE, discount, jnp.float32)
    return Sample(obs[0], jnp.arange(SIZE) % 2, reward, discount, obs[1], jnp.arange(SIZE))


def constant_network(means):
    """Hidden layers that say nothing: the biases of the last one say the same of every state."""
    bias = np.r_[np.ravel([SURE, NOISY]), np.ravel(means)]
    return jnp.zeros((4, 8)), jnp.zeros((9, 14)).at[-1].set(bias)


def test_estimates_and_dominance_by_hand():
    # Half of the batch took the sure action, worth 1 exactly; half the other: -1, 0.5, 1.5 and 3
    # have the mean 1 and the variance (4 + 0.25 + 0.25 + 4) / 4 = 2.125.
    _, _, mean, spread, share = np.asarray(said(constant_network(TIED), one_batch()))
    assert mean == pytest.approx(1.0)
    assert spread == pytest.approx(math.sqrt(2.125) / 2)
    assert share == 1.0  # worth the same, and the first is surer: everywhere
    assert said(constant_network(APART), one_batch())[4] == 0.0  # the second is better
    # After a terminal state nothing is decided; where all are terminal, no share is known.
    six = np.arange(SIZE) < 6
    batch = one_batch()._replace(discount_t=jnp.where(six, 0.0, 0.9))
    assert said(constant_network(TIED), batch)[4] == 1.0
    assert np.isnan(said(constant_network(TIED), one_batch(0.0))[4])


def test_the_gradient_is_that_of_the_particles_before_it_is_clipped():
    # The loss once more from its definition (Dabney et al., 2018, eq. 10), without an ensemble.
    hidden, last = init_carry(CONFIG, SPEC, jax.random.key(3)).params
    own, batch = (hidden, last[:, :8]), one_batch(0.0)  # the targets are the rewards

    def z_of(params):
        x = jnp.c_[batch.obs_tm1, jnp.ones(SIZE)]
        x = jnp.maximum(x @ params[0], 0.0)
        outputs = (jnp.c_[x, jnp.ones(SIZE)] @ params[1]).reshape(SIZE, 2, 4)
        return outputs[jnp.arange(SIZE), batch.action_tm1]

    @jax.value_and_grad
    def loss(params):
        u = batch.reward_t[:, None] - z_of(params)
        huber = jnp.where(abs(u) <= 0.5, 0.5 * u**2, 0.5 * (abs(u) - 0.25))
        weight = abs((jnp.arange(4) + 0.5) / 4 - (u < 0)) / 0.5
        return jnp.mean(jnp.sum(weight * huber, axis=1))

    value, slope = jax.jit(loss)(own)
    norm = math.sqrt(sum(float((np.asarray(g, np.float64) ** 2).sum()) for g in slope))
    measured = np.asarray(said((hidden, last), batch))
    assert norm > 0.1  # clipping would change it
    np.testing.assert_allclose(measured[:2], [value, norm], rtol=1e-4)
    z = np.asarray(z_of(own))
    np.testing.assert_allclose(measured[2:4], [z.mean(), z.std(axis=1).mean()], rtol=1e-4)


class Thousand(gym.Env):
    """One state, one action, 1000 a step; every episode has three and is truncated."""

    observation_space, action_space = Box(-1, 1, (4,), np.float32), Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock = 0
        return np.ones(4, np.float32), {}

    def step(self, action):
        self.clock += 1
        return np.ones(4, np.float32), 1000.0, False, self.clock == 3, {}


STILL = NETWORK | {
    "learning_rate": 1e-30, "averaging": 0, "explore": 0.2, "explore_start": 1.0,
    "explore_steps": 100, "learning_starts": 6, "ensemble": 0, "target": "greedy",
    "evaluation": "greedy",
}  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_row_of_the_log_is_in_the_environments_units(lanes, tmp_path):
    agent, ended = sf.NeuralAgent(Thousand, **STILL, n_envs=lanes), []
    agent.learn(60, lambda _, episode: ended.append(episode), log=tmp_path)
    # Nothing is learned, and all transitions are one: what is logged is what the agent says.
    z = agent.return_distribution(np.ones(4, np.float32))
    assert abs(z.mean()) > 10  # of rewards of 1000, not in units of them
    with open(tmp_path / "episodes.csv") as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert list(rows[0]) == ["step", "episode", "return", *Finished._fields[3:]]
    assert len(rows) == len(ended) == 20
    for row, episode in zip(rows, ended, strict=True):
        np.testing.assert_allclose([*row.values()], episode, rtol=1e-6)
        done = -(-episode.step // lanes) * lanes  # all lanes have made the step
        rate = 1.0 - 0.8 * done / 100 if done >= 6 else 1.0
        assert row["explore"] == pytest.approx(rate, rel=1e-5)
        learned = done - lanes >= 6
        assert math.isfinite(row["grad_norm"]) == math.isfinite(row["loss"]) == learned
        if learned:
            assert row["estimate"] == pytest.approx(z.mean(), rel=1e-4)
            assert row["spread"] == pytest.approx(z.std(), rel=1e-4)
            assert row["dominance"] == 0.0  # there is nothing to choose from


def test_the_speed_has_a_file_of_its_own(tmp_path):
    told = []

    class Hook:
        def scalar(self, name, value, step):
            told.append((name, value, step))

        def close(self):
            pass

    with RunLog(tmp_path, [Hook()]) as log:
        log.begin(0, None, ("step",))
        for step in (100, 200, 300):  # 0.4 s each: the third makes a second full
            log.speed(step, 100, 0.4)
        log.speed(350, 50, 0.1)
        log.speed(370, 20, 0.1)
    # 300 steps in 1.2 s; 70 in 0.2 s, written at the end.
    lines = (tmp_path / "speed.csv").read_text().split()
    assert lines == ["step,steps_per_second", "300,250.0", "370,350.0"]
    assert told == [(f"train/{lines[0][5:]}", 250.0, 300), ("train/steps_per_second", 350.0, 370)]


@pytest.mark.parametrize("task", ["TwoRoads", "MeanReversion"])
def test_compiled_tasks_of_the_suite_side_by_side(task):
    """The network tasks run compiled with lanes, and say the same kind of thing of themselves."""
    agent, ended = partial(sf.NeuralAgent, f"surefoot/{task}-v0", compiled=True), []
    two = agent(**NETWORK, n_envs=2).learn(400, lambda _, episode: ended.append(episode))
    assert two.num_timesteps == 400
    assert sum(e.length for e in ended) + int(two.state.episode.length.sum()) == 400
    assert [e.episode for e in ended] == list(range(len(ended)))
    later = [e for e in ended if e.step > NETWORK["learning_starts"] + 2]
    assert later
    assert np.isfinite([e[4:-1] for e in later]).all()
    assert all(0 <= e.dominance <= 1 for e in later if math.isfinite(e.dominance))
    again = agent(**NETWORK, n_envs=2).learn(150).learn(250)
    jax.tree.map(np.testing.assert_array_equal, two.state, again.state)
