"""Tables that know what they rest on: any unit of reward, any start, no evidence untried."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surefoot.agents.tabular import TabularConfig, Transition, algorithm, train_trials
from surefoot.agents.tabular.config import PAPER
from surefoot.envs import CliffGrid, TabularMDP, risky_cliff
from surefoot.policies import SSD

FORK = CliffGrid(4, 12).state(2, 0)
SMALL = {"memory": 4, "particles": 4, "horizon": 6, "explore": 0.4}


def fork(factor: float) -> TabularMDP:
    """0 -> 1 or 2, then the end: both roads pay `factor` on average, the second with noise."""
    return TabularMDP(
        next_state=np.array([[[1], [2]], [[0], [0]], [[0], [0]]]),
        probability=np.ones((3, 2, 1)),
        reward_mean=factor * np.array([[[0.0], [0.25]], [[1.0], [0.5]], [[0.75], [0.5]]]),
        reward_std=factor * np.array([[[0.0], [0.5]], [[0.0], [0.0]], [[1.0], [0.25]]]),
        terminal=np.array([[[False]] * 2, [[True]] * 2, [[True]] * 2]),
    )


# mean-variance is left out: its weight is in the units of one over return.
POLICIES = ("greedy", "cvar:0.25", "wang:-0.5", "cpw")
CASES = [
    *({"loss": loss} for loss in ("wgf-exact", "qr")),
    *(
        pytest.param({"loss": loss}, marks=pytest.mark.slow)
        for loss in ("wgf", "wgf-debiased", "proximal-qr", "q-learning", "sarsa")
    ),
    *(
        pytest.param({"behaviour": p, "target": p, "evaluation": p}, marks=pytest.mark.slow)
        for p in POLICIES
    ),
    pytest.param({"behaviour": "ssd:0", "target": "ssd:0"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("options", CASES, ids=lambda o: o.get("loss", o.get("behaviour")))
def test_rewards_of_another_size_teach_the_same_bit_for_bit(options):
    config = TabularConfig(**SMALL, **options)
    plain, *others = (
        train_trials(config, fork(2.0**power), episodes=30, trials=3, chunk=50, quiet=True)
        for power in (0, 20, -20)
    )
    assert np.asarray(plain.table.z).any()
    for runs, power in zip(others, (20, -20), strict=True):
        factor = np.float32(2.0**power)
        np.testing.assert_array_equal(runs.table.z, np.asarray(plain.table.z) * factor)
        np.testing.assert_array_equal(runs.table.visits, plain.table.visits)  # the same actions
        np.testing.assert_array_equal(runs.table.target_action, plain.table.target_action)
        np.testing.assert_array_equal(runs.action, plain.action)
        np.testing.assert_array_equal(
            np.asarray(runs.episodes)[..., 1:], np.asarray(plain.episodes)[..., 1:]
        )
        if config.scaled:
            assert np.array_equal(runs.table.scale.unit, plain.table.scale.unit * factor)


update = jax.jit(algorithm.update, static_argnums=0)


def test_what_was_not_observed_is_no_evidence():
    # Started from N(0, 1). The first visit replaces the start, and an untried pair is bootstrapped
    # from by its mean alone, so that after one visit z(0, 0) = 1 + mean z(1, a*), a constant.
    config = TabularConfig(particles=4, memory=4, initial_std=1.0)
    begin = jax.jit(algorithm.initial_table, static_argnums=(0, 1, 2))
    table = begin(config, 2, 2, jax.random.key(0))
    zero, one = jnp.int32(0), jnp.int32(1)
    step = Transition(zero, zero, jnp.float32(1), jnp.float32(1), one, zero)
    after = update(config, table, step, None, jax.random.key(1), jnp.asarray(True))
    best = np.asarray(table.z[1]).mean(axis=-1).max()
    np.testing.assert_allclose(after.z[0, 0], 1 + best, rtol=1e-5)
    # How many transitions an estimate rests on: those seen, at most K.
    visits = jnp.asarray([0, 1, 4, 9])
    assert algorithm.evidence(config, visits).tolist() == [0, 1, 4, 4]


def test_the_paper_s_settings_ask_for_no_evidence():
    assert TabularConfig().by_evidence
    assert TabularConfig(**PAPER).by_evidence  # its behaviour is the user's
    paper = TabularConfig(behaviour="ssd:0.0005", **PAPER)
    assert not paper.by_evidence
    assert not paper.scaled
    assert paper.target.tolerance == 0.0
    # Of the exact steps no unit comes out, of the others one is found.
    assert not TabularConfig().scaled
    assert TabularConfig(loss="qr").scaled
    assert not TabularConfig(loss="qr", reward_scale=2.0).scaled


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.0, 1.0])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_online_the_sure_path_is_taken_from_any_start_at_any_noise(noise, start):
    # Nothing is set. Where the paths part, `up` is the sure one; both are worth -12.
    config = TabularConfig(initial_std=start)
    mdp = risky_cliff(sigma=noise, reward_clip=(-1e9, 1e9))
    runs = train_trials(config, mdp, episodes=400, trials=30, seed=11, quiet=True)
    n = algorithm.evidence(config, runs.table.visits[:, FORK])
    decide = jax.vmap(lambda z, key, n: SSD().decide(z, key, n=n, assume_sorted=True).action)
    taken = jax.jit(decide)(runs.table.z[:, FORK], jax.random.split(jax.random.key(0), 30), n)
    assert np.mean(np.asarray(taken) == 0) >= 0.9
