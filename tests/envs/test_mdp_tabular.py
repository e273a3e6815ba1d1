"""The arrays, their checks and the pure JAX step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from surefoot.envs import TabularMDP, cliff_walk, reset, risky_cliff, step
from surefoot.errors import InputError

batched = jax.jit(jax.vmap(step, in_axes=(None, 0, 0, 0)))


def lottery(**changes):
    """One state, one action; five outcomes of which two cannot happen."""
    arrays = {
        "next_state": [[[0, 0, 0, 0, 0]]],
        "probability": [[[0.5, 0.0, 0.2, 0.3, 0.0]]],
        "reward_mean": [[[0.0, 1.0, 2.0, 3.0, 4.0]]],
    }
    return TabularMDP(**(arrays | changes))


def draw(mdp, count, seed=0, state=0, action=0):
    keys = jax.random.split(jax.random.key(seed), count)
    where = jnp.full(count, state), jnp.full(count, action)
    return [np.asarray(x) for x in batched(mdp, *where, keys)]


def test_outcomes_come_with_their_probabilities_and_impossible_ones_never():
    _, reward, _ = draw(lottery(), 20_000)
    counts = np.bincount(reward.astype(int), minlength=5)
    assert counts[1] == counts[4] == 0
    expected = 20_000 * np.array([0.5, 0.2, 0.3])
    assert stats.chisquare(counts[[0, 2, 3]], expected).pvalue > 1e-3


def test_thresholds_end_at_exactly_one_where_rounded_sums_do_not():
    # Ten times 0.1 sums to 0.9999999999999999 in float64; a padded outcome follows.
    mdp = TabularMDP(
        next_state=np.zeros((1, 1, 11), int),
        probability=[[[0.1] * 10 + [0.0]]],
        reward_mean=np.zeros((1, 1, 11)),
    )
    assert np.cumsum([0.1] * 10)[-1] < 1
    np.testing.assert_array_equal(mdp.cumulative[0, 0, 9:], 1.0)


def test_random_rewards_are_gaussian_with_the_standard_deviation_given():
    mdp = TabularMDP([[[0]]], [[[1.0]]], [[[-1.0]]], reward_std=[[[0.5]]])
    _, reward, _ = draw(mdp, 4_000)
    assert stats.kstest(reward, stats.norm(-1.0, 0.5).cdf).pvalue > 1e-3


def test_only_random_rewards_are_clipped():
    mdp = TabularMDP(
        next_state=[[[0], [0]]],
        probability=[[[1.0], [1.0]]],
        reward_mean=[[[-100.0], [0.0]]],
        reward_std=[[[0.0], [50.0]]],
        reward_clip=(-10, 10),
    )
    assert (draw(mdp, 100, action=0)[1] == -100).all()
    _, reward, _ = draw(mdp, 1_000, action=1)
    assert reward.min() == -10
    assert reward.max() == 10
    # P(|N(0, 50)| > 10) = 2 Phi(-0.2) = 0.841
    assert abs(np.mean(abs(reward) == 10) - 0.841) < 0.05


@pytest.mark.optimised
@pytest.mark.parametrize("make", [cliff_walk, risky_cliff])
def test_a_trial_gives_the_same_bits_alone_and_in_any_batch(make):
    mdp, count = make().to_jax(), 64
    keys = jax.random.split(jax.random.key(3), count)
    states = jax.random.randint(jax.random.key(1), (count,), 0, 36)
    actions = jax.random.randint(jax.random.key(2), (count,), 0, 4)
    whole = batched(mdp, states, actions, keys)
    for width in (1, 7, 50):
        part = batched(mdp, states[:width], actions[:width], keys[:width])
        for x, y in zip(whole, part, strict=True):
            np.testing.assert_array_equal(x[:width], y)
    alone = jax.jit(step)
    for i in range(10):
        for x, y in zip(whole, alone(mdp, states[i], actions[i], keys[i]), strict=True):
            np.testing.assert_array_equal(x[i], y)


def test_another_key_gives_another_noise():
    mdp = risky_cliff()
    one, two = draw(mdp, 8, seed=1, state=25, action=1), draw(mdp, 8, seed=2, state=25, action=1)
    assert not np.isin(one[1], two[1]).any()


def test_step_follows_the_dtype_of_the_arrays():
    reward = step(risky_cliff().to_jax(), 24, 1, jax.random.key(0))[1]
    assert reward.dtype == jnp.float32
    assert risky_cliff().reward_mean.dtype == np.float64
    single = lottery(
        probability=np.full((1, 1, 5), 0.2, np.float32), reward_mean=np.ones((1, 1, 5), np.float32)
    )
    assert single.cumulative.dtype == single.reward_std.dtype == np.float32


def test_start_is_a_state_or_a_distribution():
    size = 4
    base = {
        "next_state": np.zeros((size, 1, 1), int),
        "probability": np.ones((size, 1, 1)),
        "reward_mean": np.zeros((size, 1, 1)),
    }
    assert int(reset(TabularMDP(**base, start=2), jax.random.key(0))) == 2
    one_hot = TabularMDP(**base, start=[0, 0, 0, 1.0])
    assert one_hot.start == 3
    assert one_hot.start_cumulative is None
    mdp = TabularMDP(**base, start=[0.25, 0, 0.75, 0])
    keys = jax.random.split(jax.random.key(0), 8_000)
    counts = np.bincount(jax.jit(jax.vmap(reset, (None, 0)))(mdp, keys), minlength=size)
    assert counts[1] == counts[3] == 0
    assert stats.chisquare(counts[[0, 2]], [2_000, 6_000]).pvalue > 1e-3
    np.testing.assert_array_equal(mdp.start_distribution, [0.25, 0, 0.75, 0])


def test_it_is_a_pytree_with_named_leaves_and_its_arrays_are_read_only():
    mdp = risky_cliff()
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(mdp)]
    assert ".reward_mean" in paths
    assert ".mask" not in paths
    same = jax.tree.map(lambda x: x, mdp)
    assert isinstance(same, TabularMDP)
    assert same.reward_clip == (-10.0, 10.0)
    with pytest.raises(ValueError, match="read-only"):
        mdp.reward_mean[0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probability": [[[0.5, 0, 0.2, 0.2, 0]]]}, r"probability\[s=0, a=0\] sums to 0.9"),
        ({"probability": [[[1.5, 0, -0.5, 0, 0]]]}, r"probability\[s=0, a=0, m=2\] is -0.5"),
        ({"probability": [[[1.0]]]}, r"probability has shape \(1, 1, 1\)"),
        ({"reward_mean": [[[0, 0, np.nan, 0, 0]]]}, r"reward_mean\[s=0, a=0, m=2\] is nan"),
        ({"reward_std": [[[0, -1.0, 0, 0, 0]]]}, r"reward_std\[s=0, a=0, m=1\] is -1.0"),
        ({"next_state": [[[0, 0, 0, 0, 7]]]}, r"next_state\[s=0, a=0, m=4\] is 7: states are 0..0"),
        ({"next_state": [[[0.0] * 5]]}, "next_state has dtype float64"),
        ({"next_state": [0]}, r"next_state has shape \(1,\)"),
        ({"terminal": [[[0, 0, 0, 0, 2]]]}, "terminal must hold true or false"),
        ({"mask": [[False]]}, r"mask\[s=0\] leaves no action"),
        ({"mask": [True]}, r"mask has shape \(1,\)"),
        ({"start": 1}, r"start is 1: it must be a state 0..0"),
        ({"start": [0.5]}, "start sums to 0.5"),
        ({"reward_clip": (1, -1)}, "low must be below high"),
        ({"reward_clip": 3}, "must be a pair"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        lottery(**changes)
