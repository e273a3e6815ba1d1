"""Agents on environments whose answers are known by hand."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes_by_hand import OneStep, TimeLimit, TwoArms, TwoSteps

from surefoot.agents.neural import NeuralAgent, NeuralConfig
from surefoot.agents.neural.config import PAPER
from surefoot.agents.neural.replay import Sample
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import init_carry
from surefoot.agents.neural.update import targets, update
from surefoot.envs import probes

pytestmark = pytest.mark.wide

SMALL = {
    "hidden": (16,), "particles": 4, "learning_rate": 1e-2, "target_period": 20, "gamma": 0.5,
    "replay_size": 500, "learning_starts": 10, "explore": 0.5,
}  # fmt: skip


def trained(env, steps=800, **options):
    return NeuralAgent(env, **(SMALL | {"loss": "qr"} | options)).learn(steps)


@pytest.mark.parametrize("options", [{"loss": "qr"}, {"loss": "wgf", **PAPER}], ids=("qr", "wgf"))
def test_terminated_is_not_truncated(options):
    # One reward of 1. Terminated: z = 1. Cut off by a time limit, the same observation follows:
    # z = 1 + 0.5 z, so z = 2.
    step, limit = (
        trained(env, **options).return_distribution([1.0]).mean()
        for env in (OneStep(), TimeLimit())
    )
    assert step == pytest.approx(1.0, abs=0.05)
    assert limit == pytest.approx(2.0, abs=0.1)


def test_actions_are_told_apart():
    options = PAPER | {"loss": "c51", "value_range": (-2.0, 2.0), "particles": 11}
    agent = trained(TwoArms(), **options)
    assert agent.return_distribution([1.0]).mean(axis=-1) == pytest.approx([-1, 1], abs=0.1)
    assert agent.predict([1.0]) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "mse", "n_step": 3, **PAPER},
        # Polyak averaging, double Q-learning and rare updates change nothing about the answer.
        PAPER
        | {
            "double_q": True,
            "target_mix": 0.05,
            "target_period": 1,
            "update_every": 2,
            "updates": 2,
        },
    ],
)
def test_value_travels_back_along_a_chain(options):
    # V(second) = 1, V(first) = 0 + 0.5 * 1, by one step or by three; spaces count from 5 and 1.
    agent = trained(TwoSteps(), **options)
    means = agent.return_distribution(np.array([5, 6])).mean(axis=-1)
    assert means == pytest.approx(np.array([[0.5, 0.5], [1.0, 1.0]]), abs=0.06)
    assert agent.predict(5) == 1 + int(agent.decide(5).action)  # actions count from 1


def one_batch(spec, size=8):
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(2, size, spec.obs_size)).astype(np.float32)
    return Sample(
        jnp.asarray(obs[0]), jnp.zeros(size, jnp.int32), jnp.ones(size), jnp.full(size, 0.9),
        jnp.asarray(obs[1]), jnp.arange(size),
    )  # fmt: skip


@pytest.mark.parametrize("loss", ["qr", "wgf", "mse"])
def test_target_parameters_are_used(loss):
    # Perturb the target network: targets (and the anchor) must change, and so must the update.
    # (With kappa 0 only the signs of differences count, and none of them changes here.)
    config = NeuralConfig(loss=loss, particles=4, hidden=(16,), kappa=1.0)
    spec = Spec(3, "float32", 2)
    carry = init_carry(config, spec, jax.random.key(0))
    batch, key = one_batch(spec), jax.random.key(1)
    perturbed = jax.tree.map(lambda p: p + 0.1, carry.params)

    @jax.jit
    def both(target):
        aimed = targets(config, spec, carry.params, target, batch, key)
        return aimed, update(config, spec, carry.params, carry.opt_state, target, batch, key)[0]

    (aimed, moved), (aimed_else, moved_else) = both(carry.params), both(perturbed)
    assert not np.allclose(aimed[0], aimed_else[0])
    assert np.allclose(aimed[1], aimed_else[1]) == (loss != "wgf")  # only wgf has an anchor
    assert not np.allclose(moved[0], moved_else[0], atol=1e-5)


def test_double_q_chooses_with_the_online_network():
    config = NeuralConfig(loss="qr", particles=4, hidden=(16,), double_q=True)
    spec = Spec(3, "float32", 2)
    carry = init_carry(config, spec, jax.random.key(0))
    target = init_carry(config, spec, jax.random.key(7)).params
    other = init_carry(config, spec, jax.random.key(3)).params
    batch, key = one_batch(spec, 64), jax.random.key(1)
    aim = jax.jit(partial(targets, config, spec))
    a, b = (aim(p, target, batch, key)[0] for p in (carry.params, other))
    assert not np.allclose(a, b)


def test_seeds_make_the_initial_parameters():
    first, again, other = (NeuralAgent(OneStep(), seed=s, **SMALL).params for s in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


# Second moments (note A1). Arms N(0, 0.5) and N(1, 2); 16 quantile midpoints of a normal have
# 0.95 of its deviation. The fork: state 0 is worth 0.5 * (0 or 2), so mean 0.5, deviation 0.5.
MOMENTS = SMALL | {"particles": 16, "hidden": (32,), "replay_size": 2000, "learning_rate": 3e-3}
ENERGY = {"loss": "proximal-qr", "step_size": 3.0}


def deviations(env, obs, **options):
    agent = NeuralAgent(env, **(MOMENTS | options)).learn(6000)
    return agent.return_distribution(obs).std(axis=-1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"loss": "qr", "kappa": 0.0},
        ENERGY,
        {"loss": "c51", "value_range": (-8, 8), "particles": 33},
    ],
    ids=lambda o: o["loss"],
)
def test_losses_that_learn_the_second_moment(options):
    narrow, wide = deviations(probes.NoisyArms(), [1.0], **options)
    assert narrow == pytest.approx(0.5, abs=0.25)
    assert wide == pytest.approx(1.95, abs=0.4)
    assert deviations(probes.CoinFork(), 0, **options) == pytest.approx(0.5, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["wgf", "wgf-exact", "mse"])
def test_losses_that_cannot_learn_the_second_moment(loss):
    # One sampled Dirac at a time, coupled in sorted order: all particles meet at the mean.
    assert deviations(probes.NoisyArms(), [1.0], loss=loss, **PAPER).max() < 0.35
    assert deviations(probes.CoinFork(), 0, loss=loss, **PAPER).max() < 0.15
