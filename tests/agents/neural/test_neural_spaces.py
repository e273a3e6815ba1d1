"""Other people's spaces: nested ones, pictures, several actions at once, layers of one's own."""

from __future__ import annotations

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy.signal import correlate
from tiny import NETWORK

import surefoot as sf
from surefoot.agents.neural.network import _convolve, convolutions, normalised, observed
from surefoot.agents.neural.spaces import MOST_ACTIONS, Spec, spec_of
from surefoot.errors import InputError, RunError

pytestmark = pytest.mark.wide

BYTE = {"low": 0, "high": 255, "dtype": np.uint8}


class Shown(gym.Env):
    """Five steps in any spaces; the reward is the sum of the action's parts."""

    def __init__(self, seen, done=None):
        self.observation_space, self.action_space = seen, done or spaces.Discrete(2)

    def show(self):
        return self.observation_space.sample()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.clock = 0
        return self.show(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.clock += 1
        reward = float(np.sum([np.sum(part) for part in np.atleast_1d(action)]))
        return self.show(), reward, self.clock == 5, False, {}


NESTED = spaces.Dict({
    "at": spaces.Tuple((spaces.Box(-1, 1, (1, 1), np.float32), spaces.Discrete(2))),
    "lamp": spaces.MultiBinary(1),
})  # fmt: skip


def test_nested_observations_are_flattened_by_gymnasium():
    # One number, two of the one-hot Discrete, one of the MultiBinary: CartPole's four, its program.
    env = Shown(NESTED)
    agent = sf.NeuralAgent(env, eval_env=Shown(NESTED), **NETWORK).learn(40)
    assert agent.spec == Spec(4, "float32", 2)
    obs = {"at": (np.float32([[0.5]]), 1), "lamp": np.int8([1])}
    np.testing.assert_array_equal(agent.spec.check(obs), [0.5, 0, 1, 1])
    z = agent.return_distribution(obs)
    assert z.shape == (2, 4)
    # A batch as a list, or as vector environments have it.
    together = {"at": (np.float32([[[0.5]]] * 3), np.array([1] * 3)), "lamp": np.int8([[1]] * 3)}
    for batch in ([obs] * 3, together):
        np.testing.assert_allclose(agent.return_distribution(batch), [z] * 3, rtol=1e-5, atol=1e-7)
    assert agent.evaluate(2).shape == (2,)
    with pytest.raises(InputError, match="obs does not fit Dict"):
        agent.predict({"lamp": np.int8([1])})


def test_one_of_several_observations():
    # Which one, and its value in as much room as the largest takes: 1 + 2 numbers.
    space = spaces.OneOf((spaces.Discrete(2), spaces.Box(-1, 1, (2,), np.float32)))
    spec = spec_of(Shown(space))
    assert spec.check((1, np.float32([0.5, -1]))).tolist() == [1, 0.5, -1]
    assert spec.check([(1, np.float32([0.5, -1]))] * 2).shape == (2, 3)


@pytest.mark.parametrize(
    ("space", "size", "stored"),
    [
        (spaces.MultiDiscrete([3, 2]), 5, "uint8"),
        (spaces.MultiBinary((2, 3)), 6, "uint8"),
        (spaces.Box(-1, 1, (5, 5), np.float64), 25, "float32"),
        (spaces.Box(**BYTE, shape=(2, 3, 4)), 24, "uint8"),  # too small for a picture
        (spaces.Box(-9, 9, (2, 2), np.int64), 4, "int32"),
    ],
)
def test_what_is_flattened_and_how_it_is_stored(space, size, stored):
    spec = spec_of(Shown(space))
    assert (spec.obs_shape, spec.obs_dtype) == ((size,), stored)
    space.seed(0)
    one, other = space.sample(), space.sample()
    np.testing.assert_allclose(spec.check(one), spaces.utils.flatten(space, one), rtol=1e-6)
    both = np.stack([spec.check(one), spec.check(other)])
    np.testing.assert_array_equal(spec.check(np.stack([one, other])), both)


@pytest.mark.parametrize(
    ("shape", "first", "seen"),
    [
        ((10, 10, 4), False, (10, 10, 4)),
        ((7, 7, 20), False, (7, 7, 20)),  # more channels than pixels
        ((10, 10, 10), False, (10, 10, 10)),
        ((4, 84, 84), True, (84, 84, 4)),
        ((3, 210, 160), True, (210, 160, 3)),
        ((210, 160, 3), False, (210, 160, 3)),
    ],
)
def test_the_channels_of_a_picture(shape, first, seen):
    spec = spec_of(Shown(spaces.Box(**BYTE, shape=shape)))
    assert (spec.picture, spec.channels_first, spec.input_shape) == (shape, first, seen)
    assert (spec.obs_dtype, spec.brightest) == ("uint8", 255.0)
    picture = np.random.default_rng(0).integers(256, size=(2, *shape), dtype=np.uint8)
    wanted = (np.moveaxis(picture, 1, -1) if first else picture) / 255
    np.testing.assert_allclose(spec.features(jnp.asarray(picture)), wanted, rtol=1e-6)


def test_planes_of_truth_values_are_a_picture_of_bytes():
    spec = spec_of(Shown(spaces.Box(0.0, 1.0, (10, 10, 4), bool)))
    assert (spec.obs_dtype, spec.brightest, spec.picture) == ("uint8", 1.0, (10, 10, 4))


def test_convolutions_are_chosen_by_size():
    for side, first in ((84, (8, 4, 32)), (24, (3, 2, 32)), (10, (3, 1, 16))):
        assert convolutions(spec_of(Shown(spaces.Box(**BYTE, shape=(side, side, 3)))))[0] == first
    assert convolutions(Spec(4, "float32", 2)) == ()


def test_a_convolution_is_scipys():
    rng = np.random.default_rng(2)
    x, weights, bias = (
        rng.normal(size=(2, 9, 7, 3)),
        rng.normal(size=(3, 3, 3, 5)),
        rng.normal(size=5),
    )
    layer = np.concatenate([weights.reshape(27, 5), bias[None]]).astype(np.float32)
    made = _convolve(jnp.asarray(layer), jnp.asarray(x, jnp.float32), 3, 2)
    for b in range(2):
        for f in range(5):
            whole = correlate(x[b], weights[..., f], mode="valid")[..., 0] + bias[f]
            np.testing.assert_allclose(made[b, ..., f], np.maximum(whole[::2, ::2], 0), atol=1e-4)


class Dots(gym.Env):
    """A bright column at the left or at the right; the action that names its side is worth 1."""

    observation_space, action_space = spaces.Box(**BYTE, shape=(6, 6, 1)), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side = int(self.np_random.integers(2))
        return self.picture(self.side), {}

    @staticmethod
    def picture(side):
        made = np.zeros((6, 6, 1), np.uint8)
        made[:, 5 * side] = 200
        return made

    def step(self, action):
        return self.picture(self.side), float(action == self.side), True, False, {}


def test_pictures_are_learned_from_and_kept_as_bytes():
    quick = {"explore": 0.5, "replay_size": 300, "learning_rate": 0.01, "averaging": 0}
    agent = sf.NeuralAgent(Dots(), eval_env=Dots(), **quick, **NETWORK).learn(500)
    replay = agent.state.carry.replay
    assert (replay.obs.dtype, replay.obs.shape) == (np.uint8, (300, 2, 6, 6, 1))
    assert replay.obs.nbytes == 2 * 300 * 36  # both ends of a transition, a byte a pixel
    assert [agent.predict(Dots.picture(side)) for side in (0, 1)] == [0, 1]
    z = agent.return_distribution(np.stack([Dots.picture(0), Dots.picture(1)])).mean(axis=-1)
    np.testing.assert_allclose(z, [[1, 0], [0, 1]], atol=0.35)


def test_a_picture_that_changes_its_shape_is_one_line():
    class Grows(Dots):
        def step(self, action):
            return np.zeros((7, 6, 1), np.uint8), 0.0, False, False, {}

    with pytest.raises(
        RunError, match=r"step 1: obs has shape \(7, 6, 1\): it must be \(6, 6, 1\)"
    ):
        sf.NeuralAgent(Grows(), **NETWORK).learn(5)


# --- actions -------------------------------------------------------------------------------


def test_several_choices_are_their_product():
    many = spaces.MultiDiscrete([2, 3], start=[0, 5])
    agent = sf.NeuralAgent(Shown(spaces.Box(-1, 1, (4,)), many), **NETWORK)
    agent.learn(30)  # the environment checks every action
    assert agent.spec.num_actions == 6
    own = [agent.own_actions(a).tolist() for a in range(6)]
    assert own == [[0, 5], [0, 6], [0, 7], [1, 5], [1, 6], [1, 7]]
    assert agent.action_space.contains(agent.predict(np.zeros(4)))
    assert agent.predict(np.zeros((3, 4))).shape == (3, 2)


# --- normalisation ---------------------------------------------------------------------------


def test_moments_are_numpys():
    rows = np.random.default_rng(3).normal(3, 5, (57, 4)).astype(np.float32)
    moments = jnp.zeros((3, 4))
    for part in (rows[:1], rows[1:20], rows[20:]):
        moments = observed(moments, jnp.asarray(part))
    number, mean, variance = np.asarray(moments)
    assert (number == 57).all()
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, rows.var(axis=0), rtol=1e-5)
    made = np.asarray(normalised(moments, jnp.asarray(rows)))
    np.testing.assert_allclose(made.std(axis=0), 1, rtol=1e-4)


def test_normalisation_is_part_of_the_run(tmp_path):
    options = NETWORK | {"normalise": True, "averaging": 0}
    alone = sf.NeuralAgent("CartPole-v1", **options).learn(80)
    first = sf.NeuralAgent("CartPole-v1", **options)
    first.learn(50, checkpoints=sf.Checkpoints(tmp_path, 20))
    again = sf.NeuralAgent.resume(tmp_path)
    again.learn(80 - again.num_timesteps)
    jax.tree.map(np.testing.assert_array_equal, again.params, alone.params)
    number, mean, variance = alone.params[0]
    seen = np.asarray(alone.state.carry.replay.obs)[:80, 1]
    assert (number == 80).all()
    np.testing.assert_allclose(mean, seen.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(variance, seen.var(axis=0), rtol=1e-3)


# --- layers of one's own ---------------------------------------------------------------------


def waves(parameters, x):
    return jnp.sin(x @ parameters["weights"])


def test_layers_of_ones_own(tmp_path):
    own = {"weights": np.random.default_rng(4).normal(size=(4, 6)).astype(np.float32)}
    agent = sf.NeuralAgent("CartPole-v1", network=(waves, own), averaging=0, **NETWORK).learn(60)
    body, last = agent.params
    assert not np.allclose(body["weights"], own["weights"])  # it was trained
    assert last.shape == (7, 2 * (4 + 20))
    agent.save(tmp_path / "agent")
    loaded = sf.NeuralAgent.load(tmp_path / "agent", network=(waves, own))
    obs = np.float32([0.1, 0, -0.1, 0.2])
    np.testing.assert_array_equal(loaded.return_distribution(obs), agent.return_distribution(obs))
    with pytest.raises(InputError, match=r"is missing|does not fit the settings"):
        sf.NeuralAgent.load(tmp_path / "agent")


def test_widths_are_a_network_too():
    options = {k: v for k, v in NETWORK.items() if k != "hidden"}
    assert sf.NeuralAgent("CartPole-v1", network=[8], **options).config == sf.NeuralConfig(
        **NETWORK
    )


@pytest.mark.parametrize(
    ("network", "text"),
    [
        ("wide", "network: it is the widths of the hidden layers"),
        ((lambda p, x: x @ p, np.zeros((3, 2))), r"network: its function fails on \(2, 4\)"),
        ((lambda p, x: x[0], ()), r"network: its function makes .* not \[2, features\]"),
    ],
)
def test_a_network_that_does_not_work_is_one_line(network, text):
    with pytest.raises(InputError, match=text) as caught:
        sf.NeuralAgent("CartPole-v1", network=network)
    assert "\n" not in str(caught.value)


# --- what is not supported -------------------------------------------------------------------


class Letters(spaces.Space):
    """A space that Gymnasium knows nothing of."""


@pytest.mark.parametrize(
    ("seen", "done", "text"),
    [
        (spaces.Dict({"a": spaces.Discrete(2), "word": Letters()}), None,
         "observation 'word' is a Letters, which is no number; leave it out by a wrapper"),
        (spaces.Sequence(spaces.Discrete(2)), None, "observation space Sequence"),
        (spaces.Dict({}), None, r"observation space Dict\(\): supported are"),
        (spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (1,)), "action space Box.*: supported are"),
        (spaces.Box(-1, 1, (2,)), spaces.MultiDiscrete([40, 40]),
         rf"has 1600 actions: .* of up to {MOST_ACTIONS}"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_one_line_before_training(seen, done, text):
    with pytest.raises(InputError, match=text) as caught:
        sf.NeuralAgent(Shown(seen, done))
    assert "\n" not in str(caught.value)
