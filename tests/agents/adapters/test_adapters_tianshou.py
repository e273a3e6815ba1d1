"""tianshou's QR-DQN, IQN, FQF and C51, each trained here for a moment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: `make torch` installs it")
pytest.importorskip("tianshou", reason="tianshou is missing: `make torch peers` installs it")

from tianshou.algorithm import C51, DQN, FQF, IQN, QRDQN  # noqa: E402
from tianshou.algorithm.modelfree.c51 import C51Policy  # noqa: E402
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy  # noqa: E402
from tianshou.algorithm.modelfree.fqf import FQFPolicy  # noqa: E402
from tianshou.algorithm.modelfree.iqn import IQNPolicy  # noqa: E402
from tianshou.algorithm.modelfree.qrdqn import QRDQNPolicy  # noqa: E402
from tianshou.algorithm.optim import AdamOptimizerFactory, RMSpropOptimizerFactory  # noqa: E402
from tianshou.data import Batch, Collector, VectorReplayBuffer  # noqa: E402
from tianshou.env import DummyVectorEnv  # noqa: E402
from tianshou.utils.net.common import Net  # noqa: E402
from tianshou.utils.net.discrete import (  # noqa: E402
    FractionProposalNetwork,
    FullQuantileFunction,
    ImplicitQuantileNetwork,
)
from tianshou.utils.torch_utils import policy_within_training_step  # noqa: E402

from surefoot.agents.adapters import act  # noqa: E402
from surefoot.errors import InputError  # noqa: E402
from surefoot.policies import Greedy  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

KINDS = ("qrdqn", "iqn", "fqf", "c51")
HIDDEN = [32]
PAPER = "ssd:0.001"  # one model has no evidence for SSD()


def algorithm(kind: str) -> Any:
    env = gym.make("CartPole-v1")
    spaces = {"action_space": env.action_space, "observation_space": env.observation_space}
    more = {"optim": AdamOptimizerFactory(lr=1e-3), "target_update_freq": 20}

    def net(**options: Any) -> Net:
        return Net(state_shape=4, hidden_sizes=HIDDEN, **options)

    if kind == "qrdqn":
        policy = QRDQNPolicy(model=net(action_shape=2, num_atoms=20), **spaces)
        return QRDQN(policy=policy, num_quantiles=20, **more)
    if kind == "iqn":
        iqn = ImplicitQuantileNetwork(preprocess_net=net(), action_shape=2, num_cosines=16)
        return IQN(policy=IQNPolicy(model=iqn, sample_size=512, **spaces), **more)
    if kind == "fqf":
        fqf = FullQuantileFunction(preprocess_net=net(), action_shape=2, num_cosines=16)
        fractions = FractionProposalNetwork(8, HIDDEN[-1])
        policy = FQFPolicy(model=fqf, fraction_model=fractions, **spaces)
        return FQF(
            policy=policy, num_fractions=8,
            fraction_optim=RMSpropOptimizerFactory(lr=1e-4), **more,
        )  # fmt: skip
    categorical = net(action_shape=2, num_atoms=21, softmax=True)
    policy = C51Policy(model=categorical, num_atoms=21, v_min=0.0, v_max=20.0, **spaces)
    return C51(policy=policy, **more)


def trained(kind: str) -> Any:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    found = algorithm(kind)
    envs = DummyVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    envs.seed(0)
    buffer = VectorReplayBuffer(1000, 2)
    collector = Collector(found, envs, buffer)
    collector.reset()
    collector.collect(n_step=300, random=True)
    with policy_within_training_step(found.policy):
        for _ in range(30):
            found.update(buffer=buffer, sample_size=32)
    return found


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {kind: trained(kind) for kind in KINDS}


@pytest.fixture(scope="module")
def batch() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.3, (64, 4)).astype(np.float32)


def own_answer(model: Any, obs: np.ndarray) -> Any:
    model.policy.eval()
    with torch.no_grad():
        return model.policy(Batch(obs=obs, info={}))


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_on_it_is_the_model_itself(
    models: dict[str, Any], batch: np.ndarray, kind: str
) -> None:
    model = models[kind]
    actor = act(model, Greedy(tolerance=0.0), particles=64)
    z = actor.return_distribution(batch)
    assert z.shape == (64, 2, 20 if kind == "qrdqn" else 64)
    assert (np.diff(z, axis=-1) >= 0).all()
    means = z.mean(axis=-1)
    # IQN draws 512 levels at random, so only clear differences are the same on both sides.
    clear = np.abs(means[:, 0] - means[:, 1]) > (0.05 if kind == "iqn" else 1e-4)
    assert clear.mean() > 0.3
    ours, _ = actor.predict(batch, deterministic=True)
    np.testing.assert_array_equal(ours[clear], own_answer(model, batch).act[clear])


@pytest.mark.parametrize("kind", KINDS)
def test_single_observations_and_the_library_s_mode(
    models: dict[str, Any], batch: np.ndarray, kind: str
) -> None:
    actor = act(models[kind].policy, PAPER, particles=64)
    action, _ = actor.predict(batch[0])
    assert action.shape == ()
    z = actor.return_distribution(batch)
    np.testing.assert_allclose(actor.return_distribution(batch[5]), z[5], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(actor.return_distribution(batch), z)  # no chance in it
    for training in (True, False):
        models[kind].policy.train(training)
        actor.predict(batch)
        assert models[kind].policy.training is training


def test_qrdqn_gives_its_quantiles_sorted(models: dict[str, Any], batch: np.ndarray) -> None:
    raw = own_answer(models["qrdqn"], batch).logits.numpy()  # [B, A, N]
    z = act(models["qrdqn"], PAPER).return_distribution(batch)
    np.testing.assert_array_equal(z, np.sort(raw, axis=-1))


def test_c51_keeps_mean_and_total_spread(models: dict[str, Any], batch: np.ndarray) -> None:
    probabilities = own_answer(models["c51"], batch).logits.numpy().astype(float)
    atoms = np.linspace(0, 20, 21)
    mean = probabilities @ atoms
    z = act(models["c51"], PAPER, particles=500).return_distribution(batch)
    np.testing.assert_allclose(z.mean(axis=-1), mean, rtol=1e-4)
    variance = probabilities @ atoms**2 - mean**2
    np.testing.assert_allclose(z.var(axis=-1), variance, rtol=0.02)


def test_iqn_is_the_library_at_the_midpoints(
    models: dict[str, Any], batch: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own network, with its random levels replaced by the midpoints."""
    policy = models["iqn"].policy
    midpoints = (torch.arange(policy.sample_size) + 0.5) / policy.sample_size
    monkeypatch.setattr(torch, "rand", lambda rows, n, **options: midpoints.expand(rows, n))
    own = own_answer(models["iqn"], batch).logits.numpy()  # [B, A, 512]
    z = act(policy, PAPER, particles=policy.sample_size).return_distribution(batch)
    np.testing.assert_allclose(z, np.sort(own, axis=-1), rtol=1e-5, atol=1e-6)


def test_fqf_keeps_the_mean_of_its_fractions(models: dict[str, Any], batch: np.ndarray) -> None:
    own = own_answer(models["fqf"], batch)
    width = np.diff(own.fractions.taus.numpy(), axis=-1)[:, None]
    z = act(models["fqf"], PAPER, particles=50).return_distribution(batch)
    np.testing.assert_allclose(
        z.mean(axis=-1), (own.logits.numpy() * width).sum(axis=-1), rtol=1e-4, atol=1e-5
    )


def test_a_model_without_distribution() -> None:
    env = gym.make("CartPole-v1")
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=4, action_shape=2, hidden_sizes=HIDDEN), action_space=env.action_space
    )
    with pytest.raises(InputError, match="no return distribution"):
        act(DQN(policy=policy, optim=AdamOptimizerFactory()))


def test_evaluate_policy_runs_on_it(models: dict[str, Any]) -> None:
    pytest.importorskip("stable_baselines3", reason="SB3 is missing: the sb3 extra")
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    for kind in KINDS:
        env = Monitor(gym.make("CartPole-v1"))
        mean, _ = evaluate_policy(act(models[kind], PAPER), env, n_eval_episodes=2)
        assert mean >= 1
