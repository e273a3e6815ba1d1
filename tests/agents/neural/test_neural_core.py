"""The parts of the neural agent: replay, optimiser, losses, network, spaces, configuration."""

from __future__ import annotations

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.agents.neural.acting import explore_rate
from surefoot.agents.neural.config import PAPER, NeuralConfig
from surefoot.agents.neural.losses import (
    Bootstrap,
    Categorical,
    _ascending,
    equal_particles,
    loss_of,
)
from surefoot.agents.neural.network import init_mlp, mlp
from surefoot.agents.neural.optimizer import adam, optimizer
from surefoot.agents.neural.replay import empty_replay, insert, sample, scaled
from surefoot.agents.neural.spaces import Spec, spec_of
from surefoot.agents.neural.step import Seen, compiled, init_carry
from surefoot.core.losses import quantile_huber_loss
from surefoot.errors import InputError

# --- replay ----------------------------------------------------------------------------------

LINE = Spec(1, "float32", 2)


def filled(rows, capacity):
    """Row k: observation k -> k + 1, action k % 2, reward 10^k, and how it ended."""
    replay = empty_replay(capacity, LINE)
    for k, (terminated, truncated) in enumerate(rows):
        ends = [jnp.asarray(float(flag)) for flag in (terminated, truncated)]
        obs = [jnp.full((1,), float(k + j)) for j in (0, 1)]
        replay = insert(
            replay, jnp.asarray(k), obs[0], jnp.asarray(k % 2), jnp.asarray(10.0**k), *ends, obs[1]
        )
    return replay


def drawn(replay, count, n_step, gamma=0.5, size=200):
    bits = jax.random.bits(jax.random.key(0), (size,), jnp.uint32)
    return jax.tree.map(np.asarray, sample(replay, jnp.asarray(count), bits, n_step, gamma))


def test_n_step_returns_stop_where_the_episode_or_the_data_ends():
    # Rows 0 1 2 | 3 4, the first episode terminated at row 2, the second goes on. n = 3:
    #   from 0: 1 + 0.5*10 + 0.25*100 = 31, terminated: discount 0
    #   from 1: 10 + 0.5*100 = 60, discount 0;     from 2: 100, discount 0
    #   from 3: 1000 + 0.5*10^4 = 6000, row 4 is the newest: discount 0.25, obs_t = 5
    #   from 4: 10^4, discount 0.5, obs_t = 5
    flags = [(0, 0), (0, 0), (1, 0), (0, 0), (0, 0)]
    batch = drawn(filled(flags, capacity=8), 5, n_step=3)
    want = {0: (31, 0.0), 1: (60, 0.0), 2: (100, 0.0), 3: (6000, 0.25), 4: (1e4, 0.5)}
    seen = set()
    for start, action, reward, discount, end, number in zip(*batch[:6], strict=True):
        k = int(start[0])
        assert number == k  # as it was inserted
        seen.add(k)
        assert (reward, discount) == pytest.approx(want[k])
        assert action == k % 2
        assert discount == 0 or end[0] == 5
    assert seen == {0, 1, 2, 3, 4}


def test_truncation_keeps_the_discount_and_the_own_last_observation():
    batch = drawn(filled([(0, 1), (0, 0)], capacity=4), 2, n_step=2)
    first = batch.obs_tm1[:, 0] == 0
    assert np.all(batch.discount_t[first] == 0.5)  # bootstraps
    assert np.all(batch.reward_t[first] == 1)  # and never from the next episode
    assert np.all(batch.obs_t[first] == 1)


def test_the_ring_forgets_the_oldest():
    batch = drawn(filled([(0, 0)] * 7, capacity=4), 7, n_step=1)
    assert set(batch.obs_tm1[:, 0].astype(int)) == {3, 4, 5, 6}
    np.testing.assert_array_equal(batch.number, batch.obs_tm1[:, 0])  # not where it lies


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
@settings(max_examples=50, deadline=None)
def test_scaled_is_exact(bits, limit):
    # Oracle: Python's integers.
    found = scaled(jnp.asarray([bits], jnp.uint32), jnp.asarray(limit, jnp.int32))
    assert int(found[0]) == bits * limit >> 32


def test_a_million_transitions_take_their_raw_size_and_no_copy_per_step():
    spec = Spec(8, "float32", 4)
    config = NeuralConfig(loss="qr", particles=2, hidden=(8,), replay_size=1_000_000)
    carry = init_carry(config, spec, jax.random.key(0))
    raw = 1_000_000 * (2 * 8 * 4 + 4 + 4 + 4)  # both observations, action, reward, ending
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(carry.replay)) <= 1.3 * raw
    call, key = compiled(config, spec).step, jnp.zeros(2, jnp.uint32)
    seen = Seen(np.zeros((3, 8), np.float32), np.zeros(4, np.float32))
    target = jax.tree.map(jnp.copy, carry.params)
    memory = call.lower(carry, target, key, seen).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 0.01 * raw  # room for no copy
    places = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(carry.replay)]
    carry, _ = call(carry, target, key, seen)
    assert [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(carry.replay)] == places


# --- optimiser and network -------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, 0.5])
def test_adam_is_optax_adam(norm):
    rate = optax.linear_schedule(1e-2, 1e-3, 15)
    params = (jnp.asarray([[1.0, -2.0], [0.5, 3.0]]), jnp.asarray([0.1]))
    ours, theirs = adam(rate, 1e-3, norm), optax.adam(rate, eps=1e-3)
    if norm:
        theirs = optax.chain(optax.clip_by_global_norm(norm), theirs)
    states, both = [ours.init(params), theirs.init(params)], [params, params]
    steps = [jax.jit(method.update) for method in (ours, theirs)]
    for k in range(20):
        for i, step in enumerate(steps):
            grads = jax.tree.map(lambda p, k=k: np.sin(3 * p + k), both[i])
            changes, states[i] = step(grads, states[i], both[i])
            both[i] = jax.tree.map(lambda p, c: np.asarray(p) + np.asarray(c), both[i], changes)
    for a, b in zip(*both, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_adam_first_step_by_hand():
    # m = 0.1 g, v = 0.001 g^2, bias-corrected m^ = g and v^ = g^2: the step is -lr g / (|g| + eps).
    # A gradient of norm 5 clipped to 1 is a fifth of it: (0.6, 0.8).
    for norm, g in ((None, np.array([3.0, 4.0])), (1.0, np.array([0.6, 0.8]))):
        config = NeuralConfig(**PAPER, learning_rate=0.1, adam_eps=1.0, max_grad_norm=norm)
        method = optimizer(config)
        params = (jnp.zeros(2),)
        changes, _ = method.update((jnp.asarray([3.0, 4.0]),), method.init(params), params)
        np.testing.assert_allclose(changes[0], -0.1 * g / (g + 1), rtol=1e-4)


def test_learning_rate_falls_to_nothing_and_then_nothing_moves():
    # From 0.1 to 0 over 4 updates; a constant gradient makes each step -rate g / (|g| + eps).
    # 16 environment steps with two updates every eight of them are those 4 updates.
    config = NeuralConfig(
        learning_rate=0.1, learning_rate_end=0.0, learning_rate_steps=16, updates=2, update_every=8,
        adam_eps=1.0,
    )  # fmt: skip
    method = optimizer(config)
    state, moved = method.init((jnp.zeros(1),)), []
    for _ in range(6):
        changes, state = method.update((jnp.asarray([3.0]),), state)
        moved.append(float(changes[0][0]))
    wanted = [-0.075, -0.05625, -0.0375, -0.01875, 0, 0]
    np.testing.assert_allclose(moved, wanted, rtol=1e-4, atol=1e-7)


def test_network_by_hand():
    # relu([1, 2, 1] @ [[1, -1], [1, -1], [0.5, 0]]) = relu([3.5, -3]) = [3.5, 0]; 2*3.5 + 1 = 8
    # shapes the layer before it, 3*3.5 - 0.5 = 10 does not: its slope stops at the features.
    params = (
        jnp.asarray([[1.0, -1.0], [1.0, -1.0], [0.5, 0.0]]),
        jnp.asarray([[2.0, 3.0], [5.0, 1.0], [1.0, -0.5]]),
    )
    x = jnp.asarray([[1.0, 2.0]])
    shaping, others = mlp(params, x, 1)
    assert (shaping.item(), others.item()) == (8.0, 10.0)
    slope = jax.grad(lambda params, i: mlp(params, x, 1)[i].sum())
    hidden, last = slope(params, 1)
    assert not hidden.any()
    np.testing.assert_array_equal(last, [[0.0, 3.5], [0.0, 0.0], [0.0, 1.0]])
    # d(2 relu(u)) / du = 2 for the one unit above zero, times the inputs 1, 2, 1.
    np.testing.assert_array_equal(slope(params, 0)[0], [[2.0, 0.0], [4.0, 0.0], [2.0, 0.0]])


def test_initialisation_is_uniform_and_has_biases():
    layer = init_mlp(jax.random.key(0), (400, 300, 2))[0]
    assert layer.shape == (401, 300)
    # Uniform within 1 / sqrt(400) = 0.05: variance 0.05^2 / 3.
    assert float(layer.var()) == pytest.approx(0.0025 / 3, rel=0.03)
    assert float(jnp.abs(layer).max()) <= 0.05
    assert float(layer[-1].std()) > 0.02  # the biases, too


# --- losses ----------------------------------------------------------------------------------


def test_categorical_target_by_hand():
    # Atoms 0, 1, 2; the target is certain of 1; r = 0.5, discount 0.5: 1 moves to 1.0, exactly
    # the middle atom. Uniform logits: cross-entropy log 3. With r = 0.25 it moves to 0.75 and is
    # shared 1/4 : 3/4 between atoms 0 and 1; logits (0, log 2, 0): p = 1/4, 1/2, 1/4.
    loss = Categorical(0.0, 2.0, 3)
    sure = jnp.asarray([-50.0, 50.0, -50.0])
    half, quarter = jnp.asarray(0.5), jnp.asarray(0.25)
    flat = loss.value(jnp.zeros(3), Bootstrap(jnp.zeros(3), half, half, sure))
    assert float(flat) == pytest.approx(np.log(3), rel=1e-5)
    logits = jnp.log(jnp.asarray([1.0, 2.0, 1.0]))
    found = loss.value(logits, Bootstrap(jnp.zeros(3), quarter, half, sure))
    assert float(found) == pytest.approx(0.25 * np.log(4) + 0.75 * np.log(2), rel=1e-5)


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
@settings(max_examples=30, deadline=None)
def test_equal_particles_keep_the_mean_and_ascend(weights):
    atoms = jnp.asarray([-1.0, 0.0, 2.0, 5.0])
    p = jnp.asarray(weights) / sum(weights)
    z = np.asarray(equal_particles(atoms, p))
    assert z.mean() == pytest.approx(float(p @ atoms), abs=1e-4)
    assert np.all(np.diff(z) >= -1e-5)


def value(config, z, anchor, target):
    outputs, *aim = (jnp.asarray(x, jnp.float32) for x in (z, anchor, 0.0, 1.0, target))
    return loss_of(config).value(outputs, Bootstrap(*aim))


def test_exact_wgf_by_hand():
    # z = (0, 2) given crossed as (2, 0), anchor (0, 0), target (1, 3), h = 2:
    # W = (0 + 4) / 2 = 2, F = (1 + 1) / 2 / 2 = 0.5, L = 2 + 2 * 2 * 0.5 = 4.
    config = NeuralConfig(loss="wgf-exact", particles=2, step_size=2.0)
    assert float(value(config, [2, 0], [0, 0], [3, 1])) == pytest.approx(4.0)


def test_each_crossed_particle_has_the_slope_of_its_rank():
    # The mean over ranks of (z - z0)^2 + 2 (t - z)^2: slope (2 / N) (3 z - z0 - 2 t).
    config = NeuralConfig(loss="wgf-exact", particles=3, step_size=2.0)
    z, anchor, target = jnp.asarray([5.0, 1.0, 1.0]), [0, 0, 3], [2, 8, 4]
    ranked = np.asarray([1.0, 1.0, 5.0]) * 3 - [0, 0, 3] - 2 * np.asarray([2, 4, 8])
    slope = jax.jit(jax.grad(lambda z: value(config, z, anchor, target)))(z)
    # Of the two equal ones the first has the lower rank.
    assert slope == pytest.approx(ranked[[2, 0, 1]] * 2 / 3)


def test_particles_are_sorted_to_the_bit():
    # The product with the identity behind the sort adds zeros and rounds nothing.
    rows = np.random.default_rng(5).normal(size=(3, 6, 33)) * np.logspace(-30, 30, 33)
    rows = rows.astype(np.float32)
    np.testing.assert_array_equal(jax.jit(_ascending)(*rows), np.sort(rows, axis=-1))


def test_quantile_and_squared_losses_against_their_definitions():
    z, target = jnp.asarray([0.5, -1.0]), jnp.asarray([2.0, 0.0])
    qr = value(NeuralConfig(loss="qr", particles=2, kappa=1.0), z, [0, 0], target)
    assert float(qr) == pytest.approx(float(quantile_huber_loss(z, target, 1.0)))
    assert float(value(NeuralConfig(loss="mse"), [1.0], [0.0], [3.0])) == 4.0


# --- spaces and configuration ----------------------------------------------------------------


class Spaces(gym.Env):
    def __init__(self, seen, done):
        self.observation_space, self.action_space = seen, done


def test_observations_are_stored_as_given():
    kinds = {np.float64: "float32", np.float32: "float32", np.uint8: "uint8", np.int64: "int32"}
    for dtype, stored in kinds.items():
        box = spaces.Box(0, 100, (3,), dtype)
        assert spec_of(Spaces(box, spaces.Discrete(2, start=3))) == Spec(3, stored, 2, 3)
    states = spaces.Discrete(5, start=2)
    spec = spec_of(Spaces(states, spaces.Discrete(2)))
    np.testing.assert_array_equal(spec.features(jnp.asarray([3])), np.eye(5)[[1]])
    for bad in (1, 7, [[2, 3]], "x"):
        with pytest.raises(InputError):
            spec.check(bad)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loss": "qrr"}, "Did you mean 'qr'"),
        ({"loss": "c51"}, "value_range"),
        ({"loss": "qr", "transport": "exact"}, "loss 'qr' has no transport"),
        ({"gamma": 1.5}, "gamma = 1.5"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"hidden": (0,)}, "hidden = 0"),
        ({"explore": -0.1}, "explore"),
        ({"step_size": 0}, "step_size"),
        ({"behaviour": "sdd"}, "unknown policy"),
        ({"ensemble": 1}, "ensemble = 1: target 'ssd' asks how well the means are known"),
        ({"ensemble": -1, "target": "greedy", "evaluation": "greedy"}, "ensemble = -1"),
        ({"reward_scale": 0.0}, "reward_scale = 0.0"),
    ],
)
def test_configuration_mistakes(options, text):
    with pytest.raises(InputError, match=text):
        NeuralConfig(**options)


def test_linear_exploration():
    config = NeuralConfig(explore=0.1, explore_start=0.9, explore_steps=100, learning_starts=10)
    rates = [float(explore_rate(config, jnp.asarray(k))) for k in (0, 9, 10, 50, 100, 1000)]
    assert rates == pytest.approx([1.0, 1.0, 0.82, 0.5, 0.1, 0.1])
