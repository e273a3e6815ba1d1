"""What a network knows of its means: resamples, ensembles, units of reward; bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tiny import NETWORK

import surefoot as sf
from surefoot.agents.neural import NeuralAgent, NeuralConfig
from surefoot.agents.neural.acting import act, next_turn
from surefoot.agents.neural.compiled_loop import CompiledNetwork
from surefoot.agents.neural.ensemble import members, resample, surest_of_tied
from surefoot.agents.neural.loop import acting, fresh_state
from surefoot.agents.neural.replay import Sample
from surefoot.agents.neural.spaces import Spec, spec_of
from surefoot.agents.neural.step import Networks, average_share, compiled, init_carry
from surefoot.agents.neural.update import batch_loss, targets, update
from surefoot.agents.scale import Scale, begun, initial_scale, observe, power_of_two, renewed, shown
from surefoot.envs.classic import CartPole
from surefoot.policies import SSD
from surefoot.runs.checkpoints import Checkpoints

GREEDY = {"behaviour": "greedy", "target": "greedy", "evaluation": "greedy"}


# --- resamples -------------------------------------------------------------------------------


def test_a_resample_is_poisson_independent_and_fixed():
    weight = np.asarray(jax.jit(resample, static_argnums=1)(jnp.arange(40_000), 20))
    assert weight.shape == (40_000, 20)
    # The mean of 800,000 Poisson(1) is 1 +- 0.0011, their variance 1 +- 0.002.
    assert weight.mean() == pytest.approx(1.0, abs=0.006)
    assert weight.var() == pytest.approx(1.0, abs=0.01)
    seen = np.bincount(weight.astype(int).ravel(), minlength=9)[:9]
    expected = stats.poisson(1).pmf(np.arange(9))
    merged = [np.append(x[:6], x[6:].sum()) for x in (seen, expected / expected.sum() * seen.sum())]
    assert stats.chisquare(*merged).pvalue > 1e-4
    # Between members, and between a transition and the next few: 0 +- 0.005 (1 / sqrt(40,000)).
    between = np.corrcoef(weight, rowvar=False)
    assert np.abs(between - np.eye(20)).max() < 0.025
    for lag in (1, 2, 3, 7):
        rows = [np.corrcoef(weight[:-lag, m], weight[lag:, m])[0, 1] for m in range(20)]
        assert np.abs(rows).max() < 0.025
    # A transition has its weights wherever it is drawn.
    np.testing.assert_array_equal(resample(jnp.asarray([17, 3, 17]), 20), weight[[17, 3, 17]])


# --- ensembles -------------------------------------------------------------------------------


def test_members_are_the_particles_moved_to_their_means():
    z = jnp.asarray([[[0.0, 2.0], [5.0, 5.0]]])  # about 1 and 5
    means = jnp.asarray([[[10.0, 1.0], [14.0, 3.0]]])
    expected = [[[[9.0, 11.0], [1.0, 1.0]], [[13.0, 15.0], [3.0, 3.0]]]]
    np.testing.assert_array_equal(members(z, means), expected)


def test_one_member_after_another_gathers_the_data():
    # Hidden layers that say nothing; member e says 1 of action 0 and e of action 1, in a bias.
    config = NeuralConfig(hidden=(8,), particles=4, ensemble=5, explore=0.0, learning_starts=0)
    wide = init_carry(config, SPEC, jax.random.key(0)).params
    bias = np.r_[np.zeros(8), np.stack([np.full(5, 0.5), np.arange(5.0)], axis=1).ravel()]
    params = (jnp.zeros_like(wide[0]), jnp.zeros_like(wide[1]).at[-1].set(bias))
    key, obs = jax.random.key_data(jax.random.key(7)), jnp.ones(3)

    @partial(jax.jit, static_argnums=0)
    def taken(config, steps, turns, bits):
        return jax.vmap(lambda s, t: act(config, SPEC, params, obs, bits, s, t, key))(steps, turns)

    steps, bits = jnp.arange(20_000), jnp.arange(4, dtype=jnp.uint32)
    actions = np.asarray(taken(config, steps, steps // 100 * 100, bits)).reshape(200, 100)
    assert (actions == actions[:, :1]).all()  # the same member for a whole turn
    # Four of five members prefer action 1: 160 of 200 +- 5.7.
    assert 137 < actions[:, 0].sum() < 183
    # All of them together, on average 2 against 0.5, would take action 1 always.
    z = NeuralConfig(hidden=(8,), particles=4, ensemble=5, explore=0.0, member_steps=0)
    assert np.asarray(taken(z, steps[200:1200], steps[200:1200], bits)).std() == 0


def test_another_member_takes_over_between_episodes_and_within_very_long_ones():
    config, start = NeuralConfig(member_steps=10), jnp.int32(7)
    following = partial(next_turn, config, start)
    assert int(following(jnp.bool_(True), 16)) == 7  # nine steps: the member goes on
    assert int(following(jnp.bool_(False), 50)) == 7  # the episode goes on
    assert int(following(jnp.bool_(True), 17)) == 17
    assert int(following(jnp.bool_(False), 106)) == 7
    assert int(following(jnp.bool_(False), 107)) == 107  # a hundred steps
    # Two lanes make two steps at a time: of each lane ten are twenty of the run.
    lanes, over = NeuralConfig(member_steps=10, n_envs=2), jnp.asarray([False, True])
    assert next_turn(lanes, jnp.zeros(2, jnp.int32), over, 18).tolist() == [0, 0]
    assert next_turn(lanes, jnp.zeros(2, jnp.int32), over, 20).tolist() == [0, 20]
    assert next_turn(lanes, jnp.zeros(2, jnp.int32), over, 200).tolist() == [200, 200]


def test_a_run_changes_its_member_where_an_episode_ends():
    turns, ends = [], []

    def note(agent, episode):
        turns.append(int(agent.state.carry.turn))
        ends.append(episode.step)

    NeuralAgent("CartPole-v1", seed=0, **NETWORK).learn(300, callback=note)
    changes = sorted(set(turns) - {0})
    assert len(changes) > 1
    assert set(changes) < set(ends)
    assert np.diff([0, *changes]).min() >= 100


SURE, NOISY = [1.0] * 4, [-1.0, 0.5, 1.5, 3.0]


def test_targets_take_the_surest_of_what_is_tied():
    # Row 0: gaps 0.2, 0, 0.1 of mean 0.1, deviation 0.1: within 4.53 of them (2 normal deviations
    # at two degrees of freedom). Row 1: gaps 4, 4.01, 4.02, deviation 0.01: not within.
    z = jnp.asarray([[SURE, NOISY], [SURE, NOISY]])
    means = jnp.asarray([[[1, 1.2], [1, 1.0], [1, 1.1]], [[1, 5.0], [1, 5.01], [1, 5.02]]])
    action, dominance = jax.jit(partial(surest_of_tied, SSD()))(z, means, jax.random.key(0))
    assert action.tolist() == [0, 1]
    assert dominance.tolist() == [True, False]  # the mean alone is enough in row 1


def test_of_what_is_tied_the_means_play_no_part():
    # The noisy one's mean is ahead by 0.3, 0.4 and 0.5, four deviations: more than two at two
    # degrees of freedom allow only from 4.53 deviations on. By three, up to 19.2, it is tied, too.
    z = jnp.asarray([[SURE, NOISY]] * 2)
    means = jnp.asarray([[[1, 1.3], [1, 1.5], [1, 1.4]], [[1, 1.4], [1, 1.6], [1, 1.5]]])
    for policy, taken in ((SSD(), [0, 1]), (SSD(standard_errors=1.0), [1, 1])):
        action, _ = jax.jit(partial(surest_of_tied, policy))(z, means, jax.random.key(0))
        assert action.tolist() == taken


def test_a_target_asks_surety_to_make_up_for_a_gap_too():
    # The worse of two draws of the noisy one is below its mean by 13 / 16: by half of the sum of
    # its six differences, 1.5 + 2.5 + 4 + 1 + 2.5 + 1.5, times 2 / 16. Gaps of 0.8 and of 0.83,
    # each of deviation 1: two errors say nothing about either.
    z = jnp.asarray([[SURE, NOISY]] * 2)
    ahead = np.array([[-1.0], [0.0], [1.0]])
    means = jnp.asarray([np.hstack([np.ones((3, 1)), 1 + gap + ahead]) for gap in (0.8, 0.83)])
    action, _ = jax.jit(partial(surest_of_tied, SSD()))(z, means, jax.random.key(0))
    assert action.tolist() == [0, 1]


SPEC = Spec(3, "float32", 2)


def one_batch(size=8):
    rng = np.random.default_rng(0)
    obs = jnp.asarray(rng.normal(size=(2, size, 3)), jnp.float32)
    action, reward = jnp.arange(size) % 2, jnp.asarray(rng.normal(size=size), jnp.float32)
    return Sample(obs[0], action, reward, jnp.full(size, 0.9), obs[1], jnp.arange(size))


@pytest.mark.parametrize("norm", [None, 0.01])
def test_the_ensemble_leaves_the_layers_of_the_particles_alone(norm):
    # The same particles with twenty members beside them and without: the hidden layers take the
    # same steps, and so do the particles' part of the last one.
    # Clipped to a norm, too: the ensemble's slopes are no part of it.
    base = NeuralConfig(hidden=(8,), particles=4, ensemble=20, max_grad_norm=norm, **GREEDY)
    alone = replace(base, ensemble=0)
    whole = init_carry(base, SPEC, jax.random.key(0))
    width, batch, key = SPEC.num_actions * base.particles, one_batch(), jax.random.key(1)

    def part(params):
        return (*params[:-1], params[-1][:, :width])

    @partial(jax.jit, static_argnums=0)
    def learned(config, params):
        carry = init_carry(config, SPEC, key)._replace(params=params)
        state, target = carry.opt_state, params
        for _ in range(3):
            params, state, _ = update(config, SPEC, params, state, target, batch, key)
        return params

    both = part(learned(base, whole.params)), learned(alone, part(whole.params))
    for a, b in zip(*both, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert not np.allclose(both[0][0], whole.params[0])


def test_each_member_regresses_on_its_own_resample():
    # The slope of the means in the last layer's biases by hand: weight * (mean - aim), averaged
    # over the batch, for the action taken.
    config = NeuralConfig(hidden=(8,), particles=4, ensemble=3, **GREEDY)
    carry, batch, key = init_carry(config, SPEC, jax.random.key(0)), one_batch(), jax.random.key(1)

    @jax.jit
    def slopes(params):
        aims = targets(config, SPEC, params, params, batch, key)
        value = jax.grad(lambda p: batch_loss(config, SPEC, p, batch, aims)[0])(params)
        return value[-1][-1], aims.means

    bias, aim_means = slopes(carry.params)
    hidden, last = (np.asarray(p) for p in carry.params)
    x = np.maximum(np.c_[np.asarray(batch.obs_tm1), np.ones(8)] @ hidden, 0)
    says = (np.c_[x, np.ones(8)] @ last)[:, 8:].reshape(8, 3, 2)
    aim = np.asarray(batch.reward_t)[:, None] + 0.9 * np.asarray(aim_means)
    taken = np.asarray(batch.action_tm1)
    off = says[np.arange(8), :, taken] - aim
    each = np.asarray(resample(batch.number, 3)) * off / 8
    expected = np.stack([each[taken == a].sum(axis=0) for a in (0, 1)], axis=1).reshape(-1)
    np.testing.assert_allclose(bias[8:], expected, rtol=1e-4, atol=1e-6)


# --- units -----------------------------------------------------------------------------------


def test_units_by_hand():
    # 100 lies between 64 and 128, nearer to 128 in ratio: sqrt(64 * 128) = 90.5.
    squares = jnp.asarray([0.0, 1.0, 8100.0, 8200.0, 1e-6, 2.0**-40, jnp.inf, jnp.nan])
    assert power_of_two(squares).tolist() == [0, 1, 64, 128, 2.0**-10, 2.0**-20, 0, 0]
    scale = initial_scale(None)
    assert shown(scale) == 1.0  # nothing seen yet
    assert begun(observe(scale, jnp.float32(0.0))).unit == 0.0
    for reward in (3.0, 5.0):
        scale = observe(scale, jnp.float32(reward))
    assert (int(scale.number), float(scale.square)) == (2, 17.0)
    assert begun(scale).unit == 4.0
    assert initial_scale(0.3).unit == np.float32(0.3)


def test_a_unit_is_renewed_where_rewards_are_four_times_as_large_or_small():
    for unit, wanted, ratio in ((8, 8, 1), (4, 4, 1), (16, 16, 1), (2, 8, 0.25), (32, 8, 4)):
        old = Scale(jnp.asarray(9), jnp.float32(64.0), jnp.float32(unit))
        new, factor = renewed(old)
        assert (float(new.unit), float(factor)) == (wanted, ratio)
    for square in (0.0, jnp.inf):  # nothing is known of their size: the unit stays
        none = Scale(jnp.asarray(9), jnp.float32(square), jnp.float32(2.0))
        assert (float(renewed(none)[0].unit), float(renewed(none)[1])) == (2.0, 1.0)


def test_another_unit_says_exactly_the_same():
    config, spec = NeuralConfig(**NETWORK), spec_of(gym.make("CartPole-v1"))
    calls, carry = compiled(config, spec), init_carry(config, spec, jax.random.key(0))
    obs = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    scale = Scale(jnp.asarray(9, jnp.int32), jnp.float32(1e4), jnp.float32(1.0))
    before = calls.estimates(carry.params, scale, obs)
    networks, params, other = calls.sync(Networks(carry.params, carry.params), carry.params, scale)
    assert float(other.unit) == 128.0
    assert not np.array_equal(params[-1], carry.params[-1])
    for known in (params, networks.target, networks.average):
        np.testing.assert_array_equal(calls.estimates(known, other, obs), before)


class Noisy(gym.Env):
    """One step; action 0 pays `scale`, action 1 as much on average. Four numbers are shown."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, scale=1.0):
        self.scale = scale

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 4).astype(np.float32), {}

    def step(self, action):
        reward = 1.0 + (self.np_random.standard_normal() if action else 0.0)
        return np.zeros(4, np.float32), float(self.scale * np.float32(reward)), True, False, {}


LOSSES = [
    {"loss": "qr"},
    *(
        pytest.param({"loss": loss, **GREEDY}, marks=pytest.mark.slow)
        for loss in ("proximal-qr", "wgf", "wgf-debiased", "wgf-exact", "mse")
    ),
]


@pytest.mark.parametrize("options", LOSSES, ids=lambda o: o["loss"])
def test_rewards_of_another_size_teach_the_same_bit_for_bit(options):
    runs = {
        power: NeuralAgent(Noisy(2.0**power), **(NETWORK | options)).learn(130)
        for power in (-10, 0, 10)
    }
    plain, obs = runs[0], np.eye(4, dtype=np.float32)[:1]
    assert float(plain.state.carry.scale.unit) > 0
    for power, agent in runs.items():
        state, want = agent.state, plain.state
        for a, b in zip(
            jax.tree.leaves((state.carry.params, state.carry.opt_state, state.networks)),
            jax.tree.leaves((want.carry.params, want.carry.opt_state, want.networks)),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(
            state.carry.replay.outcome[:, 0], want.carry.replay.outcome[:, 0]
        )  # the actions
        factor = np.float32(2.0**power)
        assert state.carry.scale.unit == want.carry.scale.unit * factor
        np.testing.assert_array_equal(agent.estimates(obs)[0], plain.estimates(obs)[0] * factor)
        np.testing.assert_array_equal(agent.predict(obs), plain.predict(obs))


@dataclass(frozen=True)
class Louder(CartPole):
    factor: float = 1.0

    def move(self, x, action):
        x, reward, terminated = super().move(x, action)
        return x, self.factor * (reward + x[0]), terminated


@pytest.mark.slow
def test_compiled_too():
    config, spec, learned = NeuralConfig(**NETWORK), spec_of(gym.make("CartPole-v1")), []
    for factor in (1.0, 1024.0, 1 / 1024):
        network = CompiledNetwork(config, spec, Louder(factor=factor), fresh_state(config, spec, 0))
        network.advance(130)
        learned.append(jax.device_get(network.state))
    plain, large, small = learned
    for other, factor in ((large, 1024.0), (small, 1 / 1024)):
        for a, b in zip(
            jax.tree.leaves((plain.carry.params, plain.networks, plain.obs)),
            jax.tree.leaves((other.carry.params, other.networks, other.obs)),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
        assert other.carry.scale.unit == plain.carry.scale.unit * np.float32(factor)


def test_checkpoints_hold_the_ensemble_and_the_unit(tmp_path):
    whole = NeuralAgent(Noisy(1000.0), **NETWORK).learn(130)
    NeuralAgent(Noisy(1000.0), **NETWORK).learn(70, checkpoints=Checkpoints(tmp_path, every=70))
    again = sf.resume(tmp_path, Noisy(1000.0))
    assert again.num_timesteps == 70
    again.learn(60)
    for a, b in zip(jax.tree.leaves(again.state), jax.tree.leaves(whole.state), strict=True):
        np.testing.assert_array_equal(a, b)
    assert float(again.state.carry.scale.unit) >= 512
    # A saved agent decides as it did.
    whole.save(tmp_path / "agent.safetensors")
    loaded = sf.load(tmp_path / "agent.safetensors", Noisy(1000.0))
    obs = np.zeros(4, np.float32)
    np.testing.assert_array_equal(loaded.estimates(obs)[0], whole.estimates(obs)[0])


# --- averaging -------------------------------------------------------------------------------


def test_what_parameters_count_in_their_average():
    # Learning starts at 20; the first average is taken at 100. Then all count alike, until the
    # latest 300 steps count most.
    config = NeuralConfig(**(NETWORK | {"averaging": 300}))
    shares = {done: average_share(config, done) for done in (20, 50, 100, 150, 200, 300, 400, 900)}
    third = pytest.approx(1 / 3)
    assert shares == {20: 0, 50: 0, 100: 1, 150: 0, 200: 0.5, 300: third, 400: third, 900: third}


def test_the_trained_parameters_decide_until_there_is_an_average():
    agent = NeuralAgent(Noisy(), **NETWORK)
    averaged = {}
    for done in (10, 50, 99, 110):
        agent.learn(done - agent.num_timesteps)
        state = agent.state
        (params, _), average = acting(agent.config, state), state.networks.average
        same = [np.array_equal(params[-1], known[-1]) for known in (state.carry.params, average)]
        averaged[done] = same
    # Nothing learned yet: both are as initialised. Then the trained ones, then the average.
    assert averaged == {10: [True, True], 50: [True, False], 99: [True, False], 110: [False, True]}


# --- warnings --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["wgf", "wgf-debiased", "wgf-exact", "mse"])
def test_a_loss_that_is_blind_to_dispersion_is_named(loss):
    with pytest.warns(UserWarning, match=f"loss '{loss}' cannot learn how dispersed .*'qr'"):
        NeuralAgent(Noisy(), **(NETWORK | {"loss": loss}))


@pytest.mark.parametrize("options", [{"loss": "qr"}, {"loss": "wgf", **GREEDY}])
def test_others_are_not(options, recwarn):
    NeuralAgent(Noisy(), **(NETWORK | options))
    assert not recwarn.list


def test_a_table_s_blind_losses_are_named():
    small = {"memory": 4, "particles": 4}
    for options in ({"loss": "q-learning"}, {"loss": "sarsa"}, {"targets": "sample"}):
        with pytest.warns(UserWarning, match="cannot learn how dispersed .*targets 'mixture'"):
            sf.TabularAgent("FrozenLake-v1", **small, **options)
    assert not sf.TabularConfig(loss="qr", targets="sample").blind
    assert not sf.TabularConfig().blind
