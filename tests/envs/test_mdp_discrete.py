"""Environments of others: their spaces as integers, or their tables read as arrays."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.envs import (
    decode,
    encode,
    greedy_path,
    risky_cliff,
    tabular_from_gym,
    value_iteration,
)
from surefoot.envs.discrete import space_size
from surefoot.errors import InputError

NESTED = spaces.Dict(
    {
        "pair": spaces.Tuple((spaces.Discrete(3, start=-1), spaces.MultiDiscrete([2, 4]))),
        "flags": spaces.MultiBinary(2),
        "grid": spaces.MultiDiscrete([[2, 3], [1, 2]], start=[[5, 0], [0, -2]]),
    }
)
SPACES = [spaces.Discrete(5, start=7), spaces.MultiDiscrete([3, 2, 4]), NESTED]


class Probe(gym.Env):
    """Shows the action it was given, in awkward spaces."""

    observation_space = spaces.Tuple((spaces.Discrete(3, start=10), spaces.Discrete(2)))
    action_space = spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return (10, 0), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return (10 + int(action[1]), int(action[0])), 1.0, False, False, {}


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_numbers_and_elements_are_one_to_one(space):
    size = space_size(space)
    elements = [decode(space, i) for i in range(size)]
    assert all(space.contains(x) for x in elements)
    assert [encode(space, x) for x in elements] == list(range(size))


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=30, deadline=None)
def test_every_sample_has_a_number(seed):
    NESTED.seed(seed)
    sample = NESTED.sample()
    index = encode(NESTED, sample)
    assert 0 <= index < space_size(NESTED)
    back = decode(NESTED, index)
    np.testing.assert_array_equal(back["grid"], sample["grid"])
    assert back["pair"][0] == sample["pair"][0]


def test_numbers_by_hand():
    # (2, 1, 3) of sizes (3, 2, 4): (2 * 2 + 1) * 4 + 3 = 23; Discrete(5, start=7): 9 -> 2.
    assert encode(spaces.MultiDiscrete([3, 2, 4]), np.array([2, 1, 3])) == 23
    assert encode(spaces.Discrete(5, start=7), 9) == 2
    # Blackjack: (player 18, dealer 10, no ace) in 32 x 11 x 2: (18 * 11 + 10) * 2 = 416.
    assert encode(gym.make("Blackjack-v1").observation_space, (18, 10, 0)) == 416


def test_actions_reach_the_environment_in_its_own_form():
    env = Probe()
    assert space_size(env.observation_space) == space_size(env.action_space) == 6
    assert encode(env.observation_space, env.reset(seed=0)[0]) == 0
    for action in range(6):
        first, second = divmod(action, 3)
        obs = env.step(decode(env.action_space, action))[0]
        assert encode(env.observation_space, obs) == second * 2 + first


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("FrozenLake-v1", (16, 4)),
        ("Taxi-v4", (500, 6)),
        ("CliffWalking-v1", (48, 4)),
        ("Blackjack-v1", (704, 2)),
        ("surefoot/RiskyCliff-v0", (48, 4)),
    ],
)
def test_environments_with_discrete_spaces_run(name, sizes):
    env = gym.make(name)
    states, actions = env.observation_space, env.action_space
    assert (space_size(states), space_size(actions)) == sizes
    rng = np.random.default_rng(0)
    for episode in range(3):
        obs, _ = env.reset(seed=episode)
        for _ in range(50):
            assert 0 <= encode(states, obs) < sizes[0]
            obs, reward, *ends, _ = env.step(decode(actions, int(rng.integers(sizes[1]))))
            assert np.isfinite(reward)
            if any(ends):
                break


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_tables_are_read_outcome_by_outcome(name):
    env = gym.make(name).unwrapped
    mdp = tabular_from_gym(env)
    np.testing.assert_allclose(mdp.start_distribution, env.initial_state_distrib, atol=1e-15)
    for s in range(mdp.num_states):
        for a in range(mdp.num_actions):
            theirs = {}
            for p, to, reward, ends in env.P[s][a]:
                outcome = (int(to), float(reward), bool(ends))
                theirs[outcome] = theirs.get(outcome, 0) + p
            ours = {
                (int(to), float(r), bool(ends)): p
                for to, r, ends, p in zip(
                    mdp.next_state[s, a],
                    mdp.reward_mean[s, a],
                    mdp.terminal[s, a],
                    mdp.probability[s, a],
                    strict=True,
                )
                if p > 0
            }
            assert ours == pytest.approx(theirs)


def test_known_optimal_values():
    # CliffWalking: 13 moves. FrozenLake 4x4, slippery, undiscounted: 14/17 is the known optimum.
    cliff = tabular_from_gym("CliffWalking-v1")
    result = value_iteration(cliff, 1.0)
    assert result.v[36] == -13
    assert greedy_path(cliff, result.q.argmax(axis=1)).states[-1] == 47
    lake = value_iteration(tabular_from_gym("FrozenLake-v1"), 1.0, tolerance=1e-14)
    assert lake.v[0] == pytest.approx(14 / 17, abs=1e-9)
    assert value_iteration(tabular_from_gym("Taxi-v4"), 0.99).converged
    for wrong, words in ((3, "env is a int: pass a Gymnasium"), ("Nowhere-v0", "'Nowhere-v0'")):
        with pytest.raises(InputError, match=words):
            tabular_from_gym(wrong)


def test_duplicate_outcomes_are_merged():
    # The slippery lake's corner: left and up both stay, so two outcomes of three remain.
    mdp = tabular_from_gym("FrozenLake-v1")
    np.testing.assert_allclose(np.sort(mdp.probability[0, 0]), [0, 1 / 3, 2 / 3])


def test_surefoots_own_environments_give_their_arrays():
    mdp = tabular_from_gym(gym.make("surefoot/RiskyCliff-v0", sigma=0.5))
    np.testing.assert_array_equal(mdp.reward_std, risky_cliff(sigma=0.5).reward_std)


def test_what_cannot_be_numbered_is_named():
    with pytest.raises(InputError, match=r"observation_space is Box.*supported are Discrete"):
        space_size(gym.make("CartPole-v1").observation_space, "observation_space")
    with pytest.raises(InputError, match=r"at most 2147483647"):
        space_size(spaces.MultiDiscrete([10] * 12))
    with pytest.raises(InputError, match="no transition table P"):
        tabular_from_gym("Blackjack-v1")
    with pytest.raises(InputError, match="3 is not in Discrete"):
        encode(spaces.Discrete(3), 3)
