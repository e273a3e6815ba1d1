"""sb3-contrib's QR-DQN, trained here for a moment."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: `make torch` installs it")
sb3_contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: the sb3 extra")

from surefoot.agents.adapters import SB3Adapter, act  # noqa: E402
from surefoot.errors import InputError  # noqa: E402
from surefoot.policies import Greedy  # noqa: E402

pytestmark = pytest.mark.torch
PAPER = "ssd:0.001"  # one model has no evidence for SSD()


@pytest.fixture(scope="module")
def model() -> Any:
    torch.set_num_threads(1)
    trained = sb3_contrib.QRDQN(
        "MlpPolicy", "CartPole-v1", seed=0, learning_starts=100, buffer_size=2000, train_freq=4,
        policy_kwargs={"n_quantiles": 25, "net_arch": [32]}, device="cpu",
    )  # fmt: skip
    return trained.learn(600)


@pytest.fixture(scope="module")
def batch() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.2, (256, 4)).astype(np.float32)


def test_particles_are_the_sorted_quantiles(model: Any, batch: np.ndarray) -> None:
    with torch.no_grad():
        raw = model.policy.quantile_net(torch.as_tensor(batch)).numpy()  # [B, N, A]
    assert (np.diff(raw, axis=1) < 0).mean() > 0.1  # neighbours do cross
    z = act(model, PAPER).return_distribution(batch)
    assert z.shape == (256, 2, 25)
    assert (np.diff(z, axis=-1) >= 0).all()
    np.testing.assert_array_equal(z, np.sort(raw.transpose(0, 2, 1), axis=-1))
    single = act(model, PAPER).return_distribution(batch[3])
    np.testing.assert_allclose(single, z[3], rtol=1e-5)


def test_greedy_on_it_is_the_model_itself(model: Any, batch: np.ndarray) -> None:
    ours, _ = act(model, Greedy(tolerance=0.0)).predict(batch, deterministic=True)
    theirs, _ = model.predict(batch, deterministic=True)
    z = act(model, PAPER).return_distribution(batch).mean(axis=-1)
    clear = np.abs(z[:, 0] - z[:, 1]) > 1e-5  # a difference in the last bit may go either way
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(ours[clear], theirs[clear])


def test_evaluate_policy_runs_on_it(model: Any) -> None:
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    actor = act(model, PAPER)
    env = DummyVecEnv([lambda: Monitor(gym.make("CartPole-v1"))] * 2)
    env.seed(0)
    rewards, lengths = evaluate_policy(actor, env, n_eval_episodes=4, return_episode_rewards=True)
    assert rewards == lengths
    assert len(rewards) == 4
    env.seed(0)
    again, _ = evaluate_policy(
        act(model, PAPER), env, n_eval_episodes=4, return_episode_rewards=True
    )
    assert again == rewards
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, _ = evaluate_policy(actor, Monitor(gym.make("CartPole-v1")), n_eval_episodes=1)
    assert mean > 0


def test_one_environment_step_by_step(model: Any) -> None:
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    actor = act(model, "ssd:tolerance=0.01,undecided=least_violation")
    for _ in range(5):
        action, _ = actor.predict(obs)
        assert env.action_space.contains(action)
        obs, *_ = env.step(action)


def test_the_model_is_left_as_it_was(model: Any, batch: np.ndarray) -> None:
    for training in (True, False):
        model.policy.set_training_mode(training)
        act(model, PAPER).predict(batch)
        assert model.policy.training is training


def test_policy_of_a_model_and_other_models(model: Any, batch: np.ndarray) -> None:
    from stable_baselines3 import DQN

    np.testing.assert_array_equal(
        act(model.policy, PAPER).return_distribution(batch), SB3Adapter(model)(batch)
    )
    with pytest.raises(InputError, match="DQN has no return distribution"):
        act(DQN("MlpPolicy", "CartPole-v1", device="cpu"))


def test_images_with_channels_last_and_dicts() -> None:
    """SB3 moves the channels of images to the front by itself: single frames are still found."""
    image = gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)
    both = gym.spaces.Dict({"image": image, "v": gym.spaces.Box(-1, 1, (2,))})

    class Blank(gym.Env):
        observation_space, action_space = both, gym.spaces.Discrete(3)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return both.sample(), {}

        def step(self, action: Any) -> Any:
            return both.sample(), 0.0, True, False, {}

    both.seed(0)
    model = sb3_contrib.QRDQN(
        "MultiInputPolicy", Blank(), buffer_size=10, policy_kwargs={"n_quantiles": 5}, device="cpu"
    )
    actor = act(model, PAPER)
    obs = both.sample()
    assert actor.predict(obs)[0].shape == ()
    stacked = {key: np.stack([value, value]) for key, value in obs.items()}
    z = actor.return_distribution(stacked)
    assert z.shape == (2, 3, 5)
    np.testing.assert_allclose(actor.return_distribution(obs), z[0], rtol=1e-4, atol=1e-6)


def test_one_model_asks_for_a_tolerance_or_for_more_models(model: Any, batch: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"QRDQN is one model: .*act\(model, 'ssd:0.1'\)"):
        act(model)
    other = sb3_contrib.QRDQN(
        "MlpPolicy", "CartPole-v1", seed=1, buffer_size=10, device="cpu",
        policy_kwargs={"n_quantiles": 25, "net_arch": [32]},
    )  # fmt: skip
    both = act([model, other])
    each = [SB3Adapter(one)(batch) for one in (model, other)]
    np.testing.assert_allclose(both.return_distribution(batch), np.mean(each, axis=0), rtol=1e-6)
    decided = both.decide(batch)
    # Two estimates of the gap, g and h: their deviation is |g - h| / sqrt(2).
    gap = np.stack([z[:, 1].mean(-1) - z[:, 0].mean(-1) for z in each])
    spread = np.abs(gap[0] - gap[1]) / 2**0.5
    np.testing.assert_allclose(decided.error.max(axis=-1), spread, rtol=1e-3, atol=1e-5)
