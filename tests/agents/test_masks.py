"""Illegal actions: never taken, by nobody, and never bootstrapped from."""

from functools import partial

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from tiny import NETWORK, TABLE

import surefoot as sf
from surefoot.agents.neural.acting import any_legal, heads
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.replay import Sample, legal, pack
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import init_carry
from surefoot.agents.neural.update import targets
from surefoot.envs.masks import Masks, joint_mask
from surefoot.errors import InputError, RunError
from surefoot.training.evaluation import evaluate


class Strict(gym.Env):
    """Ten steps; at each one action of two is legal, and the other raises. The only ever legal
    choice, at the fifth step, is worth 1 or 0."""

    observation_space, action_space = Box(-1, 1, (4,), np.float32), Discrete(2, start=3)

    def __init__(self, discrete=False, by_method=False):
        self.discrete, self.by_method = discrete, by_method
        if discrete:
            self.observation_space = Discrete(11)
        if by_method:
            self.action_masks = self.mask

    def mask(self):
        if self.clock == 10:
            return np.zeros(2, np.int8)  # at the end nothing is legal
        return np.array([[1, 0], [0, 1], [1, 1]][2 if self.clock == 5 else self.clock % 2], np.int8)

    def seen(self):
        info = {} if self.by_method else {"action_mask": self.mask()}
        if self.discrete:
            return self.clock, info
        return np.full(4, self.clock / 10, np.float32), info

    def reset(self, *, seed=None, options=None):
        self.clock = 0
        return self.seen()

    def step(self, action):
        if not self.mask()[action - 3]:
            raise RuntimeError(f"action {action} is illegal at {self.clock}")
        reward = float(self.clock == 5 and action == 4)
        self.clock += 1
        return self.seen()[0], reward, self.clock == 10, False, self.seen()[1]


class Wrapped(gym.Wrapper):
    """Methods of the environment are asked through wrappers."""


@pytest.mark.parametrize("by_method", [False, True])
def test_a_network_never_takes_an_illegal_action(by_method):
    env = Wrapped(Strict(by_method=by_method))
    agent = sf.NeuralAgent(env, eval_env=Strict(by_method=by_method), **NETWORK)
    agent.learn(200)  # behaviour, exploration, and random actions before learning starts
    assert agent.num_timesteps == 200
    assert set(agent.evaluate(5).tolist()) <= {0.0, 1.0}
    # The mask of the next observation, in one byte a transition.
    masks = np.asarray(agent.state.carry.replay.masks)
    assert masks.shape == (agent.config.replay_size, 1)
    assert masks.dtype == np.uint8
    assert masks[:10, 0].tolist() == [2, 1, 2, 1, 3, 1, 2, 1, 2, 3]  # 3 at the end: no matter


def test_a_run_with_masks_goes_on_bit_for_bit(tmp_path):
    alone = sf.NeuralAgent(Strict(), **NETWORK).learn(120)
    first = sf.NeuralAgent(Strict(), **NETWORK)
    first.learn(60, checkpoints=sf.Checkpoints(tmp_path, 30))
    again = sf.NeuralAgent.resume(tmp_path, Strict()).learn(60)
    jax.tree.map(np.testing.assert_array_equal, again.state, alone.state)


def test_without_masks_nothing_is_stored():
    agent = sf.NeuralAgent("CartPole-v1", **NETWORK).learn(5)
    assert agent.state.carry.replay.masks == ()


@pytest.mark.wide
def test_a_stepped_table_never_takes_an_illegal_action(tmp_path):
    env = Strict(discrete=True)
    agent = sf.TabularAgent(env, eval_env=Strict(discrete=True), explore=0.5, **TABLE).learn(300)
    visits = np.asarray(agent.table.visits)
    wanted = np.array([Strict.mask(_at(t)) for t in range(10)], bool)
    assert not visits[:10][~wanted].any()
    assert (visits[:10][wanted] > 0).all()
    assert agent.evaluate(2).tolist() == [1.0, 1.0]
    assert [agent.predict(t) for t in range(10)] == [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]
    assert np.asarray(agent.table.target_action)[:10].tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    agent.save(tmp_path / "agent")
    loaded = sf.TabularAgent.load(tmp_path / "agent", env)
    assert [loaded.predict(t) for t in range(10)] == [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]


def _at(clock):
    env = Strict()
    env.clock = clock
    return env


def test_a_table_that_goes_on_knows_the_masks(tmp_path):
    alone = sf.TabularAgent(Strict(discrete=True), explore=0.5, **TABLE).learn(120)
    first = sf.TabularAgent(Strict(discrete=True), explore=0.5, **TABLE)
    first.learn(60, checkpoints=sf.Checkpoints(tmp_path, 30))
    again = sf.TabularAgent.resume(tmp_path, Strict(discrete=True)).learn(60)
    jax.tree.map(np.testing.assert_array_equal, again.table, alone.table)


def test_taxi_masks_are_honoured():
    agent = sf.TabularAgent("Taxi-v4", seed=1, **TABLE).learn(400)
    visits, taxi = np.asarray(agent.table.visits), agent.env.unwrapped
    legal_there = np.array([taxi.action_mask(state) for state in range(500)], bool)
    assert visits.sum() == 400
    assert not visits[~legal_there].any()
    met = visits.any(axis=1)
    assert not legal_there[met].all()


def test_the_target_bootstraps_from_legal_actions_alone():
    # Rows differ in their mask only; the wanted action is the best mean among the legal ones.
    spec = Spec(obs_size=4, obs_dtype="float32", num_actions=3)
    config = NeuralConfig(
        hidden=(8,), particles=4, target="greedy", evaluation="greedy", ensemble=0
    )
    carry = init_carry(config, spec, jax.random.key(0))
    masks = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1]], bool)
    obs = np.tile(np.float32([0.3, -0.2, 0.8, 0.1]), (5, 1))
    zero = np.zeros(5, np.float32)
    batch = Sample(obs, zero.astype(np.int32), zero, zero, obs, zero.astype(np.int32),
                   np.stack([pack(mask) for mask in masks]))  # fmt: skip
    made = jax.jit(partial(targets, config, spec))(
        carry.params, carry.params, batch, jax.random.key(1)
    )
    rows = np.asarray(jax.jit(partial(heads, config, spec))(carry.params, obs).outputs)
    best = np.where(masks, rows.mean(axis=-1), -np.inf).argmax(axis=1)
    assert len(set(best.tolist())) > 1
    np.testing.assert_allclose(made.outputs, rows[np.arange(5), best], rtol=1e-6)
    # The same with the ensemble: the means that are averaged are those of legal actions.
    both = NeuralConfig(hidden=(8,), particles=4, ensemble=6)
    carry = init_carry(both, spec, jax.random.key(0))
    made = jax.jit(partial(targets, both, spec))(
        carry.params, carry.params, batch, jax.random.key(1)
    )
    rows = jax.jit(partial(heads, both, spec))(carry.params, obs)
    np.testing.assert_allclose(made.means[4], np.asarray(rows.means)[4, :, 2], rtol=1e-5)
    np.testing.assert_allclose(made.outputs[4], np.asarray(rows.outputs)[4, 2], rtol=1e-5)


def test_exploration_draws_every_legal_action_alike():
    mask = np.array([0, 1, 0, 1, 1, 0], bool)
    words = np.random.default_rng(0).integers(2**32, size=3000, dtype=np.uint32)
    spec = Spec(obs_size=1, obs_dtype="float32", num_actions=6)
    drawn = np.asarray(jax.jit(jax.vmap(lambda w: any_legal(spec, w, mask)))(words))
    counts = np.bincount(drawn, minlength=6)
    assert counts[~mask].sum() == 0
    assert (abs(counts[mask] - 1000) < 4 * (3000 * 2 / 9) ** 0.5).all()  # 4 standard deviations


def test_masks_are_packed_and_unpacked():
    masks = np.random.default_rng(1).random((7, 19)) < 0.5
    packed = np.stack([pack(mask) for mask in masks])
    assert packed.shape == (7, 3)
    np.testing.assert_array_equal(legal(packed, 19), masks)
    assert legal((), 19) is None


def test_the_caller_says_what_is_legal():
    agent = sf.NeuralAgent("CartPole-v1", **NETWORK)
    for only in (0, 1):
        mask = np.arange(2) == only
        assert agent.predict(np.zeros(4), action_masks=mask) == only
        assert agent.explain(np.zeros(4), action_masks=mask).action == only
        many = agent.predict(
            np.zeros((6, 4)), deterministic=False, action_masks=np.tile(mask, (6, 1))
        )
        assert many.tolist() == [only] * 6
    with pytest.raises(InputError, match=r"action_masks of shape \(1, 3\): it must be \(1, 2\)"):
        agent.predict(np.zeros(4), action_masks=[1, 1, 1])
    with pytest.raises(InputError, match="leaves no feasible action"):
        agent.predict(np.zeros(4), action_masks=[0, 0])


def test_policies_are_compared_on_legal_actions():
    agent = sf.NeuralAgent(Strict(by_method=True), **NETWORK).learn(30)
    done = evaluate(agent, ["greedy", "ssd"], env=partial(Strict, by_method=True), episodes=3)
    # An illegal action raises, and at nine steps of ten one of the two is illegal.
    for each in done:
        assert each.lengths.tolist() == [10, 10, 10]
        assert set(each.returns.tolist()) <= {0.0, 1.0}


class Wrong(Strict):
    def __init__(self, mask, at=0, **options):
        super().__init__(**options)
        self.wrong, self.at = mask, at

    def mask(self):
        return self.wrong if self.clock == self.at else np.ones(2, np.int8)


@pytest.mark.parametrize("kind", [sf.NeuralAgent, sf.TabularAgent])
@pytest.mark.parametrize(("mask", "text"), [
    ([1, 1, 1], r"action_mask has shape \(3,\), it must be 2 times 0 or 1"),
    ([0, 0], "action_mask leaves no legal action"),
    ([0.5, 1], "action_mask holds float64"),
])  # fmt: skip
def test_a_wrong_mask_is_one_line(kind, mask, text):
    options = NETWORK if kind is sf.NeuralAgent else TABLE
    for at in (0, 3):
        env = Wrong(np.array(mask), at, discrete=kind is sf.TabularAgent)
        agent = kind(env, **options)
        with pytest.raises(RunError, match=f"Wrong, seed 0, step {max(at, 1)}: {text}") as caught:
            agent.learn(20)
        assert "\n" not in str(caught.value)
        assert agent.num_timesteps == max(at - 1, 0)


def test_a_mask_that_disappears_is_an_error():
    class Forgets(Strict):
        def seen(self):
            obs, info = super().seen()
            return obs, info if self.clock < 4 else {}

    with pytest.raises(RunError, match="step 4: info has no action_mask, which it had"):
        sf.NeuralAgent(Forgets(), **NETWORK).learn(20)

    class Late(Strict):
        def mask(self):
            return np.ones(2, np.int8)

        def seen(self):
            obs, info = super().seen()
            return obs, {} if self.clock == 0 else info

    with pytest.raises(
        RunError, match="step 1: info has an action_mask after a step, but had none"
    ):
        sf.NeuralAgent(Late(), **NETWORK).learn(20)


def test_masks_of_several_parts_are_joined():
    space = MultiDiscrete([2, 3])
    # (first legal, second and third legal): of the products 00 01 02 10 11 12 only 01 and 02.
    wanted = [False, True, True, False, False, False]
    assert joint_mask(space, (np.array([1, 0]), np.array([0, 1, 1]))).tolist() == wanted
    assert joint_mask(space, np.array([1, 0, 0, 1, 1])).tolist() == wanted
    with pytest.raises(InputError, match=r"action_mask has shape \(2,\), it must be 3"):
        joint_mask(space, np.array([1, 0, 1, 1]))
    assert Masks(gym.make("CartPole-v1")).read({}) is None
