"""How fast surefoot is here: what `surefoot bench` measures, in well under a minute.

Contestants of a part take turns, so that whatever else the machine does hits all of them; what is
counted is CPU time of this process, and of each contestant the median over the rounds.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from surefoot.errors import unknown

BATCH, ACTIONS, PARTICLES = 64, 4, 32
TRIALS = 50
VERSIONS = ("surefoot", "jax", "numpy", "gymnasium", "stable-baselines3", "sb3-contrib", "torch")


class Speed(NamedTuple):
    """Median CPU seconds of one decision, or of one step of training."""

    part: str
    case: str
    seconds: float
    unit: str

    @property
    def per_second(self) -> float:
        return 1 / self.seconds


class Contestant(NamedTuple):
    call: Callable[[], Any]
    number: int  # decisions or steps in one call


def measure(
    part: str, rounds: int = 5, told: Callable[[str], None] = lambda _: None
) -> list[Speed]:
    """The speeds of one of `PARTS`; `told` hears what is being prepared or measured."""
    if part not in PARTS:
        raise unknown("part", part, PARTS)
    _one_thread()
    unit, prepare = PARTS[part]
    contestants: dict[str, Contestant] = {}
    for case, make in prepare().items():
        told(f"{case}: prepare")
        made = make()
        if made is not None:
            contestants[case] = made
    spent: dict[str, list[float]] = {case: [] for case in contestants}
    for turn in range(rounds):
        told(f"round {turn + 1} of {rounds}")
        for case, (call, number) in contestants.items():
            begin = time.process_time()
            call()
            spent[case].append((time.process_time() - begin) / number)
    return [Speed(part, case, statistics.median(s), unit) for case, s in spent.items()]


def _one_thread() -> None:
    """XLA and BLAS read these when they start; dispatch in this thread costs no hand-over."""
    if "jax" not in sys.modules:
        for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)


# --- policies ----------------------------------------------------------------------------------


def _policies() -> dict[str, Callable[[], Contestant | None]]:
    shape = f"{BATCH} x {ACTIONS} actions x {PARTICLES} particles"
    names = {"ssd": f"SSD, {shape}", "greedy": f"greedy, {shape}", "cvar:0.25": f"CVaR, {shape}"}
    return {text: _decisions(name) for name, text in names.items()}


def _decisions(name: str) -> Callable[[], Contestant]:
    def make() -> Contestant:
        import jax
        import numpy as np

        from surefoot.policies import policy_named

        policy, key = policy_named(name), jax.random.key(0)
        z = np.random.default_rng(0).normal(size=(BATCH, ACTIONS, PARTICLES)).astype(np.float32)
        rows = jax.device_put(z)
        decide = jax.jit(jax.vmap(lambda z: policy(z, key)))

        def call() -> None:
            for _ in range(50):
                jax.block_until_ready(decide(rows))

        call()
        return Contestant(call, 50 * BATCH)

    return make


# --- Algorithm 1 -------------------------------------------------------------------------------


def _tabular() -> dict[str, Callable[[], Contestant | None]]:
    return {
        "risky cliff, one agent": lambda: _trials(1, 2_000),
        f"risky cliff, {TRIALS} trials in one program": lambda: _trials(TRIALS, 200),
    }


def _trials(trials: int, steps: int) -> Contestant:
    import jax

    from surefoot.agents.tabular import TabularConfig
    from surefoot.agents.tabular.loop import advance, start_runs, trial_keys
    from surefoot.envs import risky_cliff
    from surefoot.policies import SSD

    config, mdp = TabularConfig(behaviour=SSD(tolerance=5e-4)), risky_cliff().to_jax()
    runs = [start_runs(config, mdp, 20_000, trial_keys(0, range(trials)))]

    def call() -> None:
        runs[0] = jax.block_until_ready(advance(config, mdp, None, steps, runs[0]))

    call()
    return Contestant(call, steps * trials)


# --- networks ----------------------------------------------------------------------------------


def _neural() -> dict[str, Callable[[], Contestant | None]]:
    return {
        "CartPole-v1, wgf": lambda: _agent("wgf", compiled=False),
        "CartPole-v1, qr": lambda: _agent("qr", compiled=False),
        "CartPole-v1, qr, compiled": lambda: _agent("qr", compiled=True),
        "CartPole-v1, sb3-contrib QR-DQN": _sb3,
    }


def _agent(loss: str, compiled: bool) -> Contestant:
    from surefoot.agents.neural import NeuralAgent

    agent = NeuralAgent("CartPole-v1", loss=loss, particles=2, compiled=compiled, seed=0)
    agent.learn(250)  # compiles, and passes learning_starts and a change of the target network
    steps = 500 if compiled else 250
    return Contestant(lambda: agent.learn(steps), steps)


def _sb3() -> Contestant | None:
    """The same network, batch, replay and update rhythm as ours."""
    try:
        import torch
        from sb3_contrib import QRDQN
    except ImportError:
        return None
    torch.set_num_threads(1)
    model = QRDQN(
        "MlpPolicy", "CartPole-v1", learning_rate=1e-3, buffer_size=10_000, batch_size=32,
        learning_starts=100, gamma=0.99, train_freq=1, gradient_steps=1, seed=0, device="cpu",
        target_update_interval=500, exploration_initial_eps=0.1, exploration_final_eps=0.1,
        policy_kwargs={"n_quantiles": 2, "net_arch": [256, 256]},
    )  # fmt: skip
    model.learn(150)
    return Contestant(lambda: model.learn(60, reset_num_timesteps=False), 60)


PARTS: dict[str, tuple[str, Callable[[], dict[str, Callable[[], Contestant | None]]]]] = {
    "policies": ("decisions", _policies),
    "tabular": ("steps", _tabular),
    "neural": ("steps", _neural),
}


def about_here() -> dict[str, Any]:
    """Processor and versions, which a speed means nothing without."""
    versions = {}
    for package in VERSIONS:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    info, processor = Path("/proc/cpuinfo"), ""
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return {"processor": processor or "unknown", "cores": os.cpu_count(), "versions": versions}
