"""CPU time of a training step beside sb3-contrib's QR-DQN, rejax's DQN, and our own.

Networks and replay are the paper's unless a row says otherwise. All but rejax run in this process
on one thread each, in turn, block by block, so that whatever else the machine does hits all; what
is counted is CPU time, so waiting does not. The ratio is that of the medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Row

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
    rows += [*_particles(blocks), *_minatar(blocks), *_rejax(blocks)]
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
    middle = _race(learners | ({} if peer is None else {"sb3": peer}), blocks)
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
        goal = 6.0 if "compiled" in name else 5.0
        rows.append(Row(case, middle[name], _peer(SB3, other), other, f"{goal:g} times", goal))
    return rows


def _race(
    learners: Mapping[str, Callable[[int], Any]],
    blocks: int,
    steps: int = 3 * BLOCK,
    **others: Callable[[], float],
) -> dict[str, float]:
    """Median CPU seconds of a step: in each round a turn for everyone, sb3's a third as long;
    `others` measure themselves."""
    turns = {
        name: partial(_cpu, learn, steps // 3 if name == "sb3" else steps)
        for name, learn in learners.items()
    } | others
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(blocks):
        for name, turn in turns.items():
            times[name].append(turn())
    return {name: statistics.median(own) for name, own in times.items()}


def _peer(name: str, seconds: float | None) -> str:
    return name if seconds is not None else f"{name} (not installed)"


def _particles(blocks: int) -> list[Row]:
    """WGF beside QR where there are more particles than the paper's two."""
    rows = []
    for hidden in ((64, 64), (256, 256)):
        for particles in (32, 200):
            size = {"particles": particles, "hidden": hidden}
            learners = {loss: _ours("CartPole-v1", loss, True, **size) for loss in ("qr", "wgf")}
            middle = _race(learners, blocks, BLOCK)
            case = f"CartPole-v1, wgf compiled, {particles} particles, {hidden[0]} x {hidden[1]}"
            wanted = "at most 1.25 times the cost of qr"
            rows.append(Row(case, middle["wgf"], "our qr compiled", middle["qr"], wanted, 0.8))
    return rows


def _minatar(blocks: int) -> list[Row]:
    """Pictures of 10 x 10 x 4 through one convolution, two layers of 256 and 25 particles."""
    try:
        import minatar  # noqa: F401
    except ImportError:
        return [Row("MinAtar Breakout, qr", None, "minatar (not installed)")]
    from benchmarks.tasks import torch_convolution
    from surefoot.envs.making import made_env

    def make() -> Any:
        return made_env("benchmarks.tasks:MinAtar/Breakout-v1", ("benchmarks.tasks:Fresh",))

    learners = {"qr": _ours(make, "qr", particles=25)}
    peer = _sb3(make, n_quantiles=25, features_extractor_class=torch_convolution)
    middle = _race(learners | ({} if peer is None else {"sb3": peer}), blocks)
    other, case = middle.get("sb3"), "MinAtar Breakout, qr: one step of training"
    return [Row(case, middle["qr"], _peer(SB3, other), other, "2 times", 2.0)]


def _rejax(blocks: int) -> list[Row]:
    """Our DQN and QR, compiled, beside rejax's DQN: two layers of 64, the same batch and replay.
    QR has the paper's two particles; with 32 it has 1,024 pairs a transition, for scale."""
    python = ROOT / ".rejax" / "bin" / "python"
    losses = {"DQN": ("mse", 1), "qr": ("qr", 2), "qr with 32 particles": ("qr", 32)}
    learners = {
        name: _ours("CartPole-v1", loss, True, hidden=(64, 64), particles=particles)
        for name, (loss, particles) in losses.items()
    }
    with ExitStack() as stack:
        sides = {"rejax": stack.enter_context(_side(python))} if python.exists() else {}
        middle = _race(learners, blocks, **sides)
    other = middle.get("rejax")
    rows = []
    for name, (_, particles) in losses.items():
        case = f"CartPole-v1, {name} compiled, 64 x 64: one step of training"
        goal = ("2.5 times", 2.5) if particles <= 2 else ("", None)
        rows.append(Row(case, middle[name], _peer("rejax DQN", other), other, *goal))
    return rows


@contextmanager
def _side(python: Path) -> Iterator[Callable[[], float]]:
    """What asks the process of `rejax_side` for one turn."""
    command = [str(python), str(ROOT / "benchmarks" / "rejax_side.py")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as side:
        assert side.stdin is not None
        assert side.stdout is not None
        ask, answer = side.stdin, side.stdout

        def turn() -> float:
            ask.write("\n")
            ask.flush()
            return float(answer.readline())

        yield turn


LANES = 16
SB3 = "sb3-contrib QR-DQN"


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


def _ours(env: Any, loss: str | None, compiled: bool = False, **size: Any) -> Callable[[int], Any]:
    return _agent(env, loss, compiled, **size).learn


def _agent(env: Any, loss: str | None, compiled: bool = False, **size: Any) -> Any:
    """The paper's agent with a loss, or without one the default agent, of the paper's size unless
    another is given."""
    from surefoot.agents.neural import NeuralAgent
    from surefoot.agents.neural.config import PAPER

    options = {"particles": 2} | size | ({} if loss is None else PAPER | {"loss": loss})
    agent = NeuralAgent(env, compiled=compiled, seed=0, **options)
    return agent.learn(600)  # compiles, passes learning_starts and a change of the target


def _sb3(env: Any, **layers: Any) -> Callable[[int], Any] | None:
    """`env` is an id, or makes one; `layers` are arguments of the policy, or make them."""
    try:
        import gymnasium as gym
        import torch
        from sb3_contrib import QRDQN
    except ImportError:
        return None
    torch.set_num_threads(1)
    layers = {name: part() if callable(part) else part for name, part in layers.items()}
    model = QRDQN(
        "MlpPolicy", env() if callable(env) else gym.make(env),
        learning_rate=1e-3, buffer_size=10_000, batch_size=32,
        learning_starts=100, gamma=0.99, train_freq=1, gradient_steps=1, seed=0, device="cpu",
        target_update_interval=500, exploration_initial_eps=0.1, exploration_final_eps=0.1,
        policy_kwargs={"n_quantiles": 2, "net_arch": [256, 256]} | layers,
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
