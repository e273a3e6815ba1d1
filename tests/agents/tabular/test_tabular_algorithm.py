"""Algorithm 1 on a table: values by hand, an independent oracle, order, and who learns what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surefoot.agents.tabular import TabularConfig, Transition, algorithm, train_trials
from surefoot.agents.tabular.algorithm import fit
from surefoot.agents.tabular.config import PAPER
from surefoot.envs import TabularMDP, evaluate_policy, risky_cliff, value_iteration
from surefoot.errors import InputError
from surefoot.policies import SSD, Greedy

initial_table = jax.jit(algorithm.initial_table, static_argnums=(0, 1, 2))
update = jax.jit(algorithm.update, static_argnums=0)


def chain(std: float = 0.0) -> TabularMDP:
    """0 -> 1 -> end; the second step pays 1 (or 0.5 by the other action), the first nothing."""
    next_state = [[[1], [1]], [[0], [0]]]
    reward = [[[0.0], [0.0]], [[1.0], [0.5]]]
    terminal = [[[False], [False]], [[True], [True]]]
    return TabularMDP(
        next_state=np.asarray(next_state),
        probability=np.ones((2, 2, 1)),
        reward_mean=np.asarray(reward),
        reward_std=np.asarray([[[0.0], [0.0]], [[std], [0.0]]]),
        terminal=np.asarray(terminal),
    )


def step(config, table, s, a, r, discount, s1, key=0):
    seen = Transition(
        jnp.int32(s), jnp.int32(a), jnp.float32(r), jnp.float32(discount), jnp.int32(s1),
        jnp.int32(0),
    )  # fmt: skip
    return update(config, table, seen, None, jax.random.key(key), jnp.asarray(True))


LETTER = PAPER | {"behaviour": "ssd:0.001"}  # Algorithm 1's, where no policy asks for evidence
PAIR = TabularConfig(targets="sample", particles=2, gamma=0.5, **LETTER)


def test_one_update_by_hand():
    # N = 2, h = 1, gamma = 0.5. z(1, 0) = (2, 4) and z(1, 1) = (0, 1): greedy a* = 0.
    # Tz = 1 + 0.5 (2, 4) = (2, 3); exact step from z0 = (0, 0): (0 + 1 * Tz) / 2 = (1, 1.5).
    table = initial_table(PAIR, 2, 2, jax.random.key(0))
    z = table.z.at[1].set(jnp.asarray([[2.0, 4.0], [0.0, 1.0]]))
    table = table._replace(z=z, target_action=jnp.asarray([0, 0]))
    table = step(PAIR, table, 0, 1, 1.0, 0.5, 1)
    np.testing.assert_allclose(table.z[0, 1], [1.0, 1.5], rtol=1e-6)
    np.testing.assert_allclose(table.z[0, 0], 0.0)
    assert int(table.visits[0, 1]) == 1


def test_target_action_follows_the_table():
    table = initial_table(PAIR, 2, 2, jax.random.key(0))
    table = step(PAIR, table, 0, 1, 5.0, 0.0, 1)
    assert int(table.target_action[0]) == 1
    for _ in range(3):
        table = step(PAIR, table, 0, 1, -50.0, 0.0, 1)
    assert int(table.target_action[0]) == 0


def test_mixture_by_numpy_oracle():
    # Three remembered rewards with K = 4, terminal: the pool repeats the first one.
    config = TabularConfig(targets="mixture", memory=4, particles=2, step_size=3.0, **LETTER)
    table = initial_table(config, 1, 1, jax.random.key(0))
    for r in (1.0, 5.0, 3.0):
        before = np.asarray(table.z[0, 0])
        table = step(config, table, 0, 0, r, 0.0, 0)
    pool = np.sort(np.repeat([1.0, 5.0, 3.0, 1.0], 2))
    target = pool.reshape(2, 4).mean(1)
    np.testing.assert_allclose(table.z[0, 0], (before + 3 * target) / 4, rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "wgf-exact", "targets": "sample"},
        {"loss": "wgf-exact", "targets": "mixture"},
        {"loss": "wgf"},
        {"loss": "proximal-qr"},
        {"loss": "qr", "learning_rate": 1.0},
    ],
)
def test_particles_stay_sorted(options):
    config = TabularConfig(particles=8, memory=4, initial_std=1.0, **options)
    rng = np.random.default_rng(0)
    z = jnp.sort(jnp.asarray(rng.normal(size=8), jnp.float32))
    move = jax.jit(lambda z, rows, n: fit(config, z, rows, n))
    for n in range(50):
        rows = np.sort(rng.normal(size=(config.pooled, 8)) * 3, axis=-1).astype(np.float32)
        z = move(z, jnp.asarray(rows), jnp.int32(n + 1))
        assert bool(jnp.all(jnp.diff(z) >= 0))


@pytest.mark.wide
def test_q_learning_finds_the_optimal_values():
    mdp = chain()
    config = TabularConfig(
        loss="q-learning", gamma=0.9, explore=1.0, behaviour=Greedy(), learning_rate=0.5
    )
    runs = train_trials(config, mdp, episodes=200, trials=2, quiet=True)
    exact = value_iteration(mdp, 0.9).q
    np.testing.assert_allclose(runs.table.z[..., 0], np.stack([exact] * 2), atol=1e-4)


@pytest.mark.wide
def test_sarsa_learns_the_value_of_what_it_does():
    # Behaving uniformly, the second step is worth 0.75 on average, the first 0.9 * 0.75.
    mdp = chain()
    config = TabularConfig(
        loss="sarsa", gamma=0.9, explore=1.0, learning_rate=1.0, decay=0.8, behaviour=Greedy()
    )
    runs = train_trials(config, mdp, episodes=4000, trials=2, quiet=True)
    uniform = evaluate_policy(mdp, np.full((2, 2), 0.5), 0.9)
    np.testing.assert_allclose(
        runs.table.z[:, 0, :, 0], np.stack([uniform.q_mean[0]] * 2), atol=0.05
    )


@pytest.mark.slow
def test_mixture_targets_see_reward_noise_and_sample_targets_do_not():
    # Note A1: with one transition per target all particles move together.
    mdp = chain(std=1.0)
    deviation = {}
    for targets in ("sample", "mixture"):
        config = TabularConfig(targets=targets, memory=64, particles=16, explore=1.0, initial_std=1)
        runs = train_trials(config, mdp, episodes=1500, trials=4, quiet=True)
        deviation[targets] = np.asarray(runs.table.z[:, 1, 0].std(-1)).mean()
    assert deviation["sample"] < 1e-3
    assert 0.8 < deviation["mixture"] < 1.1


def test_wrong_settings_say_what_exists():
    with pytest.raises(InputError, match=r"unknown loss 'wfg'.*Did you mean 'wgf'"):
        TabularConfig(loss="wfg")
    with pytest.raises(InputError, match="unknown policy 'sdd'"):
        TabularConfig(behaviour="sdd")
    with pytest.raises(InputError, match=r"gamma = 1.5"):
        TabularConfig(gamma=1.5)
    with pytest.raises(InputError, match="particles = 0"):
        TabularConfig(particles=0)
    with pytest.raises(InputError, match=r"learning_rate = 2.0 above kappa"):
        TabularConfig(loss="qr", learning_rate=2.0)


@pytest.mark.slow
def test_ssd_prefers_the_sure_path_on_the_cliff():
    config = TabularConfig(behaviour=SSD(tolerance=5e-4), initial_std=1.0)
    runs = train_trials(config, risky_cliff(), episodes=250, trials=6, quiet=True)
    fork = 24  # row 2, column 0
    z = np.asarray(runs.table.z)[:, fork]
    np.testing.assert_allclose(z[:, :2].mean(-1), -12.0, atol=0.02)  # up and right tie
    assert (z[:, 0].std(-1) < 2e-4).all()  # up: nothing random ahead
    assert (z[:, 1].std(-1) > 5e-4).all()  # right: ten noisy rewards ahead


def masked_pair() -> TabularMDP:
    """0 -> 1 -> end; in state 1 only action 1 is feasible, in state 0 both are. Steps pay 1."""
    return TabularMDP(
        next_state=np.array([[[1], [1]], [[0], [0]]]),
        probability=np.ones((2, 2, 1)),
        reward_mean=np.ones((2, 2, 1)),
        terminal=np.array([[[False]] * 2, [[True]] * 2]),
        mask=np.array([[True, True], [False, True]]),
    )


@pytest.mark.wide
def test_truncation_bootstraps_from_the_right_action_where_the_agent_has_never_been():
    # Episodes of one step, cut off: state 1 is never acted in, so its row stays as it was drawn.
    # Line 7 bootstraps from the only feasible action there, and z(0, :) tends to 1 + z(1, 1) / 2.
    config = TabularConfig(
        targets="sample", initial_std=1.0, horizon=1, explore=1.0, gamma=0.5, particles=2, **LETTER
    )
    runs = train_trials(config, masked_pair(), episodes=60, trials=4, quiet=True)
    z = np.asarray(runs.table.z)
    assert np.asarray(runs.table.target_action)[:, 1].tolist() == [1] * 4
    wanted = 1 + 0.5 * np.repeat(z[:, 1, 1:], 2, axis=1)
    np.testing.assert_allclose(z[:, 0], wanted, atol=1e-3)


@pytest.mark.wide
def test_the_target_action_starts_as_the_best_one_of_every_state():
    config = TabularConfig(initial_std=1.0, particles=4)
    table = initial_table(config, 50, 3, jax.random.key(3))
    np.testing.assert_array_equal(table.target_action, np.asarray(table.z).mean(-1).argmax(-1))
    equal = initial_table(TabularConfig(particles=4), 300, 3, jax.random.key(3))
    assert np.bincount(equal.target_action, minlength=3).min() > 60  # ties are drawn, not action 0
