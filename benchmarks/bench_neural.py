"""CPU time of a training step at the paper's settings, beside sb3-contrib's QR-DQN.

Both run in this process on one thread each, in turn, block by block, so that whatever else the
machine does hits both; what is counted is CPU time, so waiting does not. The ratio is that of
the medians.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Row

os.environ.setdefault("NPROC", "1")  # before JAX starts: XLA's own threads

ENVS = ("CartPole-v1", "MountainCar-v0", "LunarLander-v3")
BLOCK = 200  # steps of sb3 in one turn; ours takes three times as many


def run(quick: bool) -> list[Row]:
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)  # as our workers do
    blocks = 6 if quick else 20
    rows = []
    for env_id in ENVS[:1] if quick else ENVS:
        rows += _one_env(env_id, blocks)
    return [*rows, *_lanes(blocks), _memory(), _checkpoint()]


def _one_env(env_id: str, blocks: int) -> list[Row]:
    from surefoot.envs.classic import ENVIRONMENTS

    learners = {"qr": _ours(env_id, "qr"), "wgf": _ours(env_id, "wgf")}
    if env_id in ENVIRONMENTS:
        learners["qr compiled"] = _ours(env_id, "qr", compiled=True)
        learners["wgf compiled"] = _ours(env_id, "wgf", compiled=True)
        learners["default compiled"] = _ours(env_id, None, compiled=True)
    learners["default"] = _ours(env_id, None)
    peer = _sb3(env_id)
    times: dict[str, list[float]] = {name: [] for name in (*learners, "sb3")}
    for _ in range(blocks):
        for name, learn in learners.items():
            times[name].append(_cpu(learn, 3 * BLOCK))
        if peer is not None:
            times["sb3"].append(_cpu(peer, BLOCK))
    middle = {name: statistics.median(t) for name, t in times.items() if t}
    other = middle.get("sb3")
    rows = []
    for name in learners:
        case = f"{env_id}, {name}: one step of training"
        kind, _, rest = name.partition(" ")
        most = {"wgf": 1.25, "default": 2.0}.get(kind)  # beside our own qr
        if most is not None:
            base = f"qr {rest}".strip()
            wanted = f"at most {most:g} times the cost of qr"
            rows.append(Row(case, middle[name], f"our {base}", middle[base], wanted, 1 / most))
            continue
        goal = 6.0 if "compiled" in name else 4.5
        peer_name = "sb3-contrib QR-DQN" + (" (not installed)" if other is None else "")
        rows.append(Row(case, middle[name], peer_name, other, f"{goal:g} times", goal))
    return rows


LANES = 16


def _lanes(blocks: int) -> list[Row]:
    """A step of 16 environments side by side with one update for all, beside one environment."""
    from surefoot.agents.neural import NeuralAgent

    rows = []
    for compiled in (False, True):
        agents = {
            n: NeuralAgent("CartPole-v1", n_envs=n, update_every=n, compiled=compiled).learn(40 * n)
            for n in (1, LANES)
        }
        for n, agent in agents.items():
            agent.learn(max(200, 20 * n))  # compiles, passes learning_starts
        times: dict[int, list[float]] = {n: [] for n in agents}
        for _ in range(blocks):
            for n, agent in agents.items():
                times[n].append(_cpu(agent.learn, BLOCK * 2 if n == 1 else BLOCK * n // 2))
        one, many = (statistics.median(times[n]) for n in (1, LANES))
        case = f"CartPole-v1, {'compiled, ' if compiled else ''}a step of one of {LANES} lanes"
        rows.append(Row(case, many, "our n_envs=1", one, "8 times the throughput", 8.0))
    return rows


def _cpu(learn: Callable[[int], Any], steps: int) -> float:
    start = time.process_time()
    learn(steps)
    return (time.process_time() - start) / steps


def _ours(env_id: str, loss: str | None, compiled: bool = False) -> Callable[[int], Any]:
    return _agent(env_id, loss, compiled).learn


def _agent(env_id: str, loss: str | None, compiled: bool = False) -> Any:
    """The paper's agent with a loss, or without one the default agent, of the paper's size."""
    from surefoot.agents.neural import NeuralAgent
    from surefoot.agents.neural.config import PAPER

    options = {} if loss is None else PAPER | {"loss": loss}
    agent = NeuralAgent(env_id, particles=2, compiled=compiled, seed=0, **options)
    return agent.learn(600)  # compiles, passes learning_starts and a change of the target


def _sb3(env_id: str) -> Callable[[int], Any] | None:
    try:
        import gymnasium as gym
        import torch
        from sb3_contrib import QRDQN
    except ImportError:
        return None
    torch.set_num_threads(1)
    model = QRDQN(
        "MlpPolicy", gym.make(env_id), learning_rate=1e-3, buffer_size=10_000, batch_size=32,
        learning_starts=100, gamma=0.99, train_freq=1, gradient_steps=1, seed=0, device="cpu",
        target_update_interval=500, exploration_initial_eps=0.1, exploration_final_eps=0.1,
        policy_kwargs={"n_quantiles": 2, "net_arch": [256, 256]},
    )  # fmt: skip
    model.learn(200)
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def _memory() -> Row:
    """Bytes of 10^6 transitions of 8 numbers, as a share of their raw size; seconds a step."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from surefoot.agents.neural import NeuralConfig
    from surefoot.agents.neural.spaces import Spec
    from surefoot.agents.neural.step import Seen, compiled, init_carry

    spec = Spec(8, "float32", 4)
    config = NeuralConfig(particles=2, replay_size=1_000_000)
    carry = init_carry(config, spec, jax.random.key(0))
    raw = 1_000_000 * 4 * (8 + 8 + 1 + 1 + 1)
    share = sum(leaf.nbytes for leaf in jax.tree.leaves(carry.replay)) / raw
    target, key = jax.tree.map(jnp.copy, carry.params), jnp.zeros(2, jnp.uint32)
    seen = Seen(np.zeros((3, 8), np.float32), np.zeros(4, np.float32))
    step = compiled(config, spec).step
    spent = []
    for _ in range(300):
        start = time.process_time()
        carry, record = step(carry, target, key, seen)
        record.tolist()
        spent.append(time.process_time() - start)
    return Row(
        "one step with a replay of 10^6 transitions of 8 numbers", statistics.median(spent),
        wanted="at most 1.3 times their raw size", note=f"{share:.2f} times their raw size",
    )  # fmt: skip


def _checkpoint() -> Row:
    """What keeping a run costs: a replay of 10,000 transitions and the network, synced to disk."""
    import tempfile

    from surefoot.runs.checkpoints import Checkpoints

    agent = _agent("CartPole-v1", "qr")
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(folder)
        spent = [_cpu(lambda _: checkpoints.save(agent), 1) for _ in range(20)]
        size = checkpoints.latest().stat().st_size
    return Row(
        "one checkpoint of a replay of 10,000 transitions", statistics.median(spent),
        wanted="milliseconds", note=f"{size / 1e6:.1f} MB",
    )  # fmt: skip
