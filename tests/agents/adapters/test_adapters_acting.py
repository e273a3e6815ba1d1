"""Acting on particles of any callable: shapes, randomness, masks, errors; the projection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.agents.adapters import act, adapter_for, equal_particles
from surefoot.core.particles import cumulative_quantile
from surefoot.errors import InputError
from surefoot.policies import SSD, CVaR, DecidedBy, Explore, Greedy

BOX = spaces.Box(-1, 1, (2,))
PAPER = SSD(1e-3)  # a callable may bring no evidence for SSD()


def model(obs: np.ndarray) -> np.ndarray:
    """Action 0 is sure, action 1 a spread of the same mean; unsorted on purpose."""
    base = np.asarray(obs, float).reshape(len(obs), -1)[:, :1]
    sure = np.repeat(base, 4, axis=1)
    return np.stack([sure, sure + np.array([1.0, -1.0, 2.0, -2.0])], axis=1)


def test_single_and_batched_observations() -> None:
    actor = act(model, PAPER, observation_space=BOX)
    action, state = actor.predict(np.array([0.5, 0.0]))
    assert action.shape == ()
    assert action == 0
    assert state is None
    batch = np.zeros((2, 2))  # batches of two in all tests: one program for each policy
    actions, state = actor.predict(batch, state="kept", episode_start=np.ones(2, bool))
    assert actions.dtype == np.int64
    assert actions.tolist() == [0] * 2
    assert state == "kept"
    assert actor.return_distribution(batch).shape == (2, 2, 4)
    np.testing.assert_array_equal(
        actor.return_distribution(np.array([0.5, 0.0]))[1], [-1.5, -0.5, 1.5, 2.5]
    )


def test_decisions_say_who_decided() -> None:
    decision = act(model, PAPER, observation_space=BOX).decide(np.zeros(2))
    assert decision.decided_by == DecidedBy.DOMINANCE
    # F^-2 of the spread at 1/4, 1/2, 3/4, 1: -2/4, -3/4, -2/4, 0.
    np.testing.assert_allclose(decision.violations, [[0, 0], [0.75, 0]])
    assert act(model, "greedy", observation_space=BOX).decide(np.zeros(2)).tied.all()
    batch = act(model, CVaR(0.5)).decide(np.zeros((2, 2)))
    assert batch.decided_by.tolist() == [DecidedBy.SCORE] * 2


def test_deterministic_is_without_chance_and_the_seed_decides_the_rest() -> None:
    obs = np.zeros((200, 2))
    greedy = act(model, Greedy(), seed=1)  # always a tie
    first = greedy.predict(obs, deterministic=True)[0]
    assert len(set(first.tolist())) == 1  # whatever the row
    assert (greedy.predict(obs[:2], deterministic=True)[0] == first[0]).all()
    drawn = greedy.predict(obs)[0]
    assert 60 < drawn.sum() < 140
    assert (greedy.predict(obs)[0] != drawn).any()  # the next call draws anew
    assert (act(model, Greedy(), seed=1).predict(obs)[0] == drawn).all()
    assert (act(model, Greedy(), seed=2).predict(obs)[0] != drawn).any()
    exploring = act(model, Explore(policy=PAPER, explore=0.5))
    assert exploring.predict(obs)[0].sum() > 20
    assert exploring.predict(obs, deterministic=True)[0].sum() == 0


def test_masks() -> None:
    actor = act(model, PAPER, observation_space=BOX)
    assert actor.predict(np.zeros(2), action_masks=[False, True])[0] == 1
    masks = np.array([[True, True], [False, True]])
    assert actor.predict(np.zeros((2, 2)), action_masks=masks)[0].tolist() == [0, 1]
    with pytest.raises(InputError, match="no feasible"):
        actor.predict(np.zeros(2), action_masks=[False, False])
    with pytest.raises(InputError, match=r"shape \(1, 3\)"):
        actor.predict(np.zeros(2), action_masks=[True, True, True])


def turning(obs: np.ndarray) -> np.ndarray:
    """As `model` where the first number is not positive; elsewhere action 1 is the sure one."""
    z, first = model(obs), np.asarray(obs, float).reshape(len(obs), -1)[:, :1, None]
    return np.where(first > 0, z[:, ::-1], z)


def test_spaces() -> None:
    discrete = act(turning, PAPER, observation_space=spaces.Discrete(5))
    assert discrete.predict(4)[0].tolist() == 1  # one observation, one action
    assert discrete.predict(np.array([0, 4]))[0].tolist() == [0, 1]
    both = spaces.Dict({"x": BOX, "t": spaces.Discrete(3)})
    actor = act(lambda obs: turning(obs["x"]), PAPER, observation_space=both)
    assert actor.predict({"x": np.array([0.5, 0.0]), "t": 1})[0].tolist() == 1
    rows = {"x": np.array([[0.0, 0.5], [0.5, 0.0]]), "t": np.zeros(2)}
    assert actor.predict(rows)[0].tolist() == [0, 1]
    with pytest.raises(InputError, match="some of its parts"):
        actor.predict({"x": np.zeros((4, 2)), "t": 1})
    with pytest.raises(InputError, match="keys"):
        actor.predict({"x": np.zeros(2)})
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        act(model, PAPER, observation_space=BOX).predict(np.zeros(3))
    with pytest.raises(InputError, match="no shape"):
        act(model, PAPER, observation_space=spaces.Tuple([BOX])).predict((np.zeros(2),))


@pytest.mark.parametrize(
    ("z", "message"),
    [
        (np.zeros((2, 4)), r"shape \(2, 4\)"),
        (np.zeros((1, 2, 0)), r"shape \(1, 2, 0\)"),
        (np.zeros((3, 2, 4)), "for one observation"),
        (np.full((1, 2, 4), np.nan), "not finite"),
    ],
)
def test_models_that_give_something_else(z: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        act(lambda obs: z, PAPER, observation_space=BOX).predict(np.zeros(2))


def around(shift: float) -> Callable[[np.ndarray], np.ndarray]:
    """The model with another estimate of the spread's mean."""
    return lambda obs: model(obs) + np.array([[0.0], [shift]])


def test_several_models_are_an_ensemble() -> None:
    # Gaps of the spread above the sure action 0.4, 0.1, 0.1: mean 0.2, deviation sqrt(0.03). Within
    # 3 normal deviations (at 2 degrees of freedom many more) of zero: worth the same, so the sure
    # one. Gaps of 0.2, 0.21, 0.22 with a deviation of 0.01 are told apart at two degrees, at which
    # 3 normal deviations are 19.2: 0.21 > 0.192.
    unsure = act([around(s) for s in (0.4, 0.1, 0.1)], observation_space=BOX)
    decision = unsure.decide(np.zeros(2))
    assert decision.action == 0
    assert decision.decided_by == DecidedBy.DOMINANCE
    np.testing.assert_allclose(decision.gap, [0.2, 0.0], atol=1e-12)
    np.testing.assert_allclose(decision.error, [0.03**0.5, 0.0], atol=1e-12)
    sure = act([around(s) for s in (0.2, 0.21, 0.22)], observation_space=BOX)
    assert sure.decide(np.zeros(2)).action == 1
    assert sure.decide(np.zeros(2)).decided_by == DecidedBy.SCORE
    assert unsure.predict(np.zeros((2, 2)))[0].tolist() == [0, 0]
    np.testing.assert_allclose(
        unsure.return_distribution(np.zeros(2))[1], [-1.8, -0.8, 1.2, 2.2], atol=1e-12
    )
    # A callable may return an ensemble itself, or particles and the observations behind them.
    stacked = act(lambda obs: np.stack([around(s)(obs) for s in (0.4, 0.1, 0.1)], axis=1))
    assert stacked.predict(np.zeros((2, 2)))[0].tolist() == [0, 0]
    counted = act(lambda obs: (around(0.2)(obs), np.full((len(obs), 2), 9)))
    assert counted.predict(np.zeros((2, 2)))[0].tolist() == [0, 0]


def test_one_estimate_is_no_evidence() -> None:
    with pytest.raises(InputError, match="ensemble needs at least two"):
        act([model])
    with pytest.raises(InputError, match="cannot tell from one estimate"):
        act(model, observation_space=BOX).predict(np.zeros(2))
    wide = act([model, lambda obs: model(obs)[..., :3]], observation_space=BOX)
    with pytest.raises(InputError, match=r"disagree .*\(1, 2, 3\), \(1, 2, 4\)"):
        wide.predict(np.zeros(2))


def test_what_is_no_model() -> None:
    with pytest.raises(InputError, match="model is a int"):
        act(3)
    with pytest.raises(InputError, match="unknown policy 'sdd'"):
        act(model, "sdd")
    assert adapter_for(model) is model


def test_equal_particles_by_hand() -> None:
    # 0 with probability 1/8, 1 with 3/8, 3 with 1/2, in two halves: the lower half has
    # (1/8 * 0 + 3/8 * 1) / (1/2) = 3/4, the upper one is 3.
    found = equal_particles([0.0, 1.0, 3.0], [1 / 8, 3 / 8, 1 / 2], 2)
    np.testing.assert_allclose(found, [0.75, 3.0])
    np.testing.assert_allclose(equal_particles([5.0, 5.0], [0.3, 0.7], 3), [5, 5, 5])
    batch = equal_particles([0.0, 1.0], [[[1.0, 0.0], [0.5, 0.5]]], 2)
    np.testing.assert_allclose(batch, [[[0, 0], [0, 1]]])


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.integers(0, 9)), min_size=1, max_size=8).filter(
        lambda atoms: sum(w for _, w in atoms) > 0
    ),
    st.integers(1, 12),
)
@settings(deadline=None)
def test_equal_particles_keep_the_mean_and_the_curve(atoms: list, n: int) -> None:
    values = np.array([v for v, _ in atoms])
    weights = np.array([w for _, w in atoms]) / sum(w for _, w in atoms)
    found = equal_particles(values, weights, n)
    assert (np.diff(found) >= 0).all()
    assert found.mean() == pytest.approx(values @ weights, abs=1e-9)
    levels = np.arange(1, n + 1) / n
    expected = cumulative_quantile(values, levels, weights=weights)
    np.testing.assert_allclose(cumulative_quantile(found), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("values", "probabilities", "n"),
    [([0.0, 1.0], [0.5, 0.4], 2), ([0.0, 1.0], [1.5, -0.5], 2), ([0.0], [1.0], 0),
     ([0.0, 1.0], [0.2, 0.3, 0.5], 2)],
)  # fmt: skip
def test_wrong_distributions(values: list, probabilities: list, n: int) -> None:
    with pytest.raises(InputError):
        equal_particles(values, probabilities, n)
