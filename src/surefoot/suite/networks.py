"""The tasks that need networks: our default agent and its rivals on one network, and QR-DQN."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.agents.adapters import act
from surefoot.agents.neural import NeuralAgent
from surefoot.envs.noisy import PureGymEnv
from surefoot.suite.players import chooser
from surefoot.suite.scores import Episodes, play, score_episodes, word

NETWORK_PLAYERS = ("network: ssd", "network: greedy", "network: cvar:0.25")
SB3_PLAYERS = ("qr-dqn as it is", "qr-dqn by ssd")
EPISODES = 200
STEPS = {"noisy-cartpole": 3}
"""Times as many steps as the others have."""
GAMMA = {"noisy-cartpole": 0.99}
"""The discount belongs to the task: 1 where episodes end by themselves."""


def train_network(cell: Any, steps: int, players: Sequence[str]) -> dict[str, Any]:
    """One default network, and every rule on it."""
    env, took = PureGymEnv(cell.task, question=cell.question, scale=cell.scale), time.process_time()
    agent = NeuralAgent(env, seed=cell.seed, compiled=True, gamma=GAMMA.get(cell.task, 1.0))
    agent.learn(steps * STEPS.get(cell.task, 1))
    cpu = time.process_time() - took
    played = {}
    for name in NETWORK_PLAYERS:
        if name in players or name == "network: greedy":
            choose = chooser(act(agent, name.removeprefix("network: ")), env.pure.num_actions)
            played[name] = play(env.pure, choose, EPISODES, cell.seed)
    return _table(cell, env, played, played["network: greedy"], cell.seed, f"{cpu:.0f} CPU s")


def train_sb3(cell: Any, steps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """sb3-contrib's QR-DQN, each model as it is, and all of them as one ensemble by SSD."""
    env = PureGymEnv(cell.task, question=cell.question, scale=cell.scale)
    try:
        from sb3_contrib import QRDQN
    except ImportError:
        note = "not run: sb3-contrib is not installed"
        nothing = Episodes(np.full(2, np.nan), np.full(2, np.nan))
        return _table(cell, env, dict.fromkeys(SB3_PLAYERS, nothing), nothing, 0, note)
    gamma, models = GAMMA.get(cell.task, 1.0), []
    for seed in seeds:
        model = QRDQN("MlpPolicy", env, gamma=gamma, seed=seed, learning_starts=100, device="cpu")
        models.append(model.learn(steps * STEPS.get(cell.task, 1)))
    ways = {f"{SB3_PLAYERS[0]} {seed}": model for seed, model in zip(seeds, models, strict=True)}
    played = {
        name: play(env.pure, chooser(model, env.pure.num_actions), EPISODES, 0)
        for name, model in ways.items()
    }
    if len(models) > 1:
        ensemble = chooser(act(models), env.pure.num_actions)
        played[SB3_PLAYERS[1]] = play(env.pure, ensemble, EPISODES, 0)
    return _table(cell, env, played, next(iter(played.values())), 0, f"{len(models)} models")


def _table(
    cell: Any, env: PureGymEnv, played: dict[str, Episodes], greedy: Episodes, seed: int, note: str
) -> dict[str, Any]:
    rows: dict[str, list[Any]] = {}
    for name, episodes in played.items():
        known = np.isfinite(episodes.returns).all()
        own = score_episodes(env.pure, cell.task, episodes) if known else (np.nan,) * 3
        said = word(episodes.returns, greedy.returns) if known else "not run"
        tails = episodes.tails() if known else {}
        line = {
            "player": next((p for p in SB3_PLAYERS if name.startswith(p)), name),
            "seed": seed, "right": own[0], "given_up": own[1], "spread": own[2], "word": said,
            "mean": float(episodes.returns.mean()), "exposure": float(episodes.exposure.mean()),
            **{f"cvar {a}": tails.get(f"cvar {a}", np.nan) for a in (0.05, 0.25, 0.45)},
            "note": note,
        }  # fmt: skip
        for column, value in line.items():
            rows.setdefault(column, []).append(value)
    return rows
