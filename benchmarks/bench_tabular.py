"""CPU time of one environment step of Algorithm 1 on the risky cliff, learning included.

The peer is the same algorithm written with torch and GeomLoss, one trial at a time; ours trains 50
trials in one compiled batch. The default table decides by evidence and keeps counts of all
successors for it: its step stands beside that of the same table with a tolerance instead. The
further rows show how the cost of a step of one trial grows with particles, pooled transitions and
trials.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.harness import ROOT, Row, race

STEPS = 200


def run(quick: bool) -> list[Row]:
    from surefoot.agents.tabular.config import PAPER, TabularConfig
    from surefoot.policies import SSD

    rounds = 3 if quick else 7
    base = TabularConfig(targets="sample", behaviour=SSD(tolerance=5e-4), initial_std=1.0, **PAPER)
    name, peer = _researcher(20 if quick else 60)
    goal: dict[str, Any] = {"wanted": "at least 200 times", "goal": 200.0} if peer else {}
    rows = [
        Row(text, _step(config, 50, rounds), name, peer, **goal)
        for text, config in (
            ("sample targets, sinkhorn (the same algorithm)", replace(base, transport="sinkhorn")),
            ("sample targets, exact", base),
            ("mixture targets, K = 32, exact", replace(base, targets="mixture", memory=32)),
        )
    ]
    rows.append(_evidence(rounds))
    if quick:
        return rows
    mixture = replace(base, targets="mixture", memory=32)
    curves: dict[str, list[tuple[int, float]]] = {"particles N": [], "pooled K": [], "trials": []}
    for n in (16, 64, 256):
        curves["particles N"].append((n, _step(replace(mixture, particles=n), 50, 3)))
    for k in (1, 8, 32, 128):
        curves["pooled K"].append((k, _step(replace(mixture, memory=k), 50, 3)))
    for trials in (1, 10, 50, 200):
        curves["trials"].append((trials, _step(mixture, trials, 3)))
    _draw(curves)
    for label, points in curves.items():
        rows += [Row(f"mixture targets, {label} = {x}", seconds) for x, seconds in points]
    return rows


def _step(config: Any, trials: int, rounds: int) -> float:
    """CPU seconds a step of one trial: median over compiled calls of `STEPS` steps."""
    return race({"step": _steps(config, trials)}, rounds, 1)["step"] / (STEPS * trials)


def _steps(config: Any, trials: int) -> Callable[[], Any]:
    """A call that goes on by `STEPS` steps of all trials."""
    from surefoot.agents.tabular.compiled_loop import advance, start_runs, trial_keys
    from surefoot.envs import risky_cliff

    mdp = risky_cliff().to_jax()
    runs = start_runs(config, mdp, 10_000, trial_keys(0, range(trials)))

    def go_on() -> Any:
        nonlocal runs
        runs = advance(config, mdp, None, STEPS, runs)
        return runs

    return go_on


def _evidence(rounds: int) -> Row:
    from surefoot.agents.tabular.config import TabularConfig

    plain = dict.fromkeys(("behaviour", "target", "evaluation"), "ssd:0.001")
    sides = {"default": TabularConfig(), "plain": TabularConfig(**plain)}
    spent = race({name: _steps(config, 50) for name, config in sides.items()}, rounds, 1)
    one = {name: seconds / (STEPS * 50) for name, seconds in spent.items()}
    peer = "ours with a tolerance instead"
    return Row("the default table, by evidence", one["default"], peer, one["plain"])


def _researcher(steps: int) -> tuple[str, float | None]:
    try:
        from benchmarks.researcher import ResearcherAgent
    except ImportError as error:
        return f"torch and GeomLoss ({error.name} not installed)", None
    import gymnasium
    import numpy as np
    import torch

    import surefoot.envs  # noqa: F401  (registers the environment)

    torch.set_num_threads(1)
    env = gymnasium.make("surefoot/RiskyCliff-v0")
    agent = ResearcherAgent(48, 4)
    rng = np.random.default_rng(0)
    state, _ = env.reset(seed=0)
    spent = []
    for _ in range(steps):
        begin = time.process_time()
        action = agent.act(int(state), rng)
        obs, reward, terminated, truncated, _ = env.step(action)
        agent.update(int(state), action, float(reward), int(obs), terminated)
        state = env.reset()[0] if terminated or truncated else obs
        spent.append(time.process_time() - begin)
    return "torch and GeomLoss", sorted(spent)[len(spent) // 2]


def _draw(curves: dict[str, list[tuple[int, float]]]) -> None:
    from surefoot.plots import new_figure, render

    figure, axes = new_figure(1, 3, size=(12, 3.6), sharey=True)
    for ax, (label, points) in zip(axes[0], curves.items(), strict=True):
        ax.plot([x for x, _ in points], [1e6 * s for _, s in points], marker="o", color="#0072B2")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xlabel(label)
    axes[0, 0].set_ylabel("CPU time a step of one trial (µs)")
    figure.suptitle("Algorithm 1 with mixture targets; else 16 particles, K = 32, 50 trials")
    folder = ROOT / "docs" / "assets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tabular-cost.png").write_bytes(render(figure)[0])
