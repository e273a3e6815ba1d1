"""Batches of trials: the same bits alone and together, faults by name, freezing, keys."""

from functools import partial

import jax
import numpy as np
import pytest

from surefoot.agents.tabular import COUNTS, TabularConfig, train_trials
from surefoot.agents.tabular.compiled_loop import advance, start_runs, trial_keys
from surefoot.envs import TabularMDP, risky_cliff
from surefoot.errors import InputError, RunError
from surefoot.policies import SSD, CVaR

CONFIGS = {
    "mixture": TabularConfig(memory=8, behaviour=SSD(tolerance=5e-4), initial_std=1.0),
    "qr": TabularConfig(loss="qr", behaviour=CVaR(0.25), initial_std=1.0),
    "sinkhorn": TabularConfig(loss="wgf", targets="sample", initial_std=1.0),
    "on-policy": TabularConfig(targets="sample", target="behaviour", initial_std=1.0),
}


@pytest.mark.optimised  # as users compile: there every operation is rounded alike
@pytest.mark.parametrize("name", CONFIGS)
def test_a_trial_alone_gives_the_bits_it_gives_in_the_batch(name):
    train = partial(train_trials, CONFIGS[name], risky_cliff(), episodes=8, seed=3, quiet=True)
    together = train(trials=5)
    alone = train(trials=range(3, 4))
    for whole, single in zip(
        jax.tree.leaves(together.table), jax.tree.leaves(alone.table), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(whole)[3], np.asarray(single)[0])
    np.testing.assert_array_equal(together.episodes[3], alone.episodes[0])


@pytest.mark.slow
def test_trials_differ_and_seeds_matter():
    train = partial(train_trials, CONFIGS["mixture"], risky_cliff(), episodes=3, quiet=True)
    runs = train(trials=2, seed=0)
    assert not np.array_equal(runs.table.z[0], runs.table.z[1])
    assert not np.array_equal(runs.table.z, train(trials=2, seed=1).table.z)
    np.testing.assert_array_equal(runs.table.z, train(trials=2, seed=0).table.z)


@pytest.mark.optimised
def test_chunk_length_does_not_matter():
    train = partial(train_trials, CONFIGS["mixture"], risky_cliff(), episodes=4, trials=2)
    for a, b in zip(
        jax.tree.leaves(train(chunk=500, quiet=True).table),
        jax.tree.leaves(train(chunk=123, quiet=True).table),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_counts_add_up():
    runs = train_trials(CONFIGS["mixture"], risky_cliff(), episodes=20, trials=3, quiet=True)
    counts = {name: np.asarray(runs.episodes)[..., i] for i, name in enumerate(COUNTS)}
    who = sum(value for name, value in counts.items() if name.startswith("by_"))
    np.testing.assert_array_equal(who, counts["steps"])
    assert (counts["ties_by_dominance"] <= counts["ties"]).all()
    assert (counts["steps"] <= 500).all()
    assert ((counts["terminated"] == 1) | (counts["steps"] == 500)).all()
    share = counts["by_exploration"].sum() / counts["steps"].sum()
    assert 0.07 < share < 0.13


@pytest.mark.slow
def test_finished_trials_stand_still():
    config, mdp = CONFIGS["mixture"], risky_cliff().to_jax()
    runs = start_runs(config, mdp, 2, trial_keys(0, range(2)))
    while int(runs.episode.min()) < 2:
        runs = advance(config, mdp, None, 200, runs)
    before = jax.tree.map(np.asarray, runs._replace(key=None))
    after = advance(config, mdp, None, 50, runs)
    for a, b in zip(
        jax.tree.leaves(before), jax.tree.leaves(after._replace(key=None)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_reward_that_is_not_finite_stops_the_run_by_name():
    mdp = risky_cliff().to_jax()
    # Entering the goal from above pays no number: only a state on the way is to be named.
    broken = mdp.reward_mean.at[35, 2, 0].set(np.nan)
    poisoned = TabularMDP.__new__(TabularMDP)
    for name, value in {**mdp.__dict__, "reward_mean": broken}.items():
        object.__setattr__(poisoned, name, value)
    with pytest.raises(RunError, match=r"trial \d+, step \d+, state 35: .* not finite") as caught:
        train_trials(CONFIGS["mixture"], poisoned, episodes=50, trials=3, quiet=True)
    kept = caught.value.partial
    assert np.isfinite(np.asarray(kept.episodes)).all()
    assert int(kept.fault.max()) >= 0


def test_nothing_to_do_is_an_error():
    with pytest.raises(InputError, match="episodes = 0"):
        train_trials(CONFIGS["mixture"], risky_cliff(), episodes=0, trials=1)
    with pytest.raises(InputError, match="trials"):
        train_trials(CONFIGS["mixture"], risky_cliff(), episodes=1, trials=0)
