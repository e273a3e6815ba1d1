"""The tasks that need networks: our default agent and its rivals on one network, and QR-DQN."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.agents.adapters import act
from surefoot.agents.neural import NeuralAgent
from surefoot.envs.noisy import PureGymEnv
from surefoot.suite.players import chooser
from surefoot.suite.scores import Episodes, play, score_episodes, word

OURS = "network: "
RULES = ("ssd", "greedy", "cvar:0.05", "cvar:0.25", "cvar:0.45", "mean-variance")
NETWORK_PLAYERS = tuple(OURS + rule for rule in RULES)
SB3_PLAYERS = ("qr-dqn as it is", "qr-dqn by ssd")
ZOO: dict[str, Any] = {
    "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000,
    "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
    "exploration_fraction": 0.16, "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256], "n_quantiles": 10},
}  # fmt: skip
"""QR-DQN's settings for CartPole in rl-baselines3-zoo. Those of sb3-contrib itself are made for
runs of millions of steps, and learn nothing in ours."""


class Demand(NamedTuple):
    """What a task, not an agent, asks for. On seeds that do not judge, the pole was balanced after
    30,000 or 60,000 steps on some seeds, after 120,000 on nearly all."""

    times: float = 1.0  # as many training steps as the settings say
    gamma: float = 1.0  # below 1 where episodes do not end by themselves
    episodes: int = 200  # played to score


DEMANDS = {
    "two-roads": Demand(),
    "noisy-cartpole": Demand(times=8, gamma=0.99, episodes=100),
    "mean-reversion": Demand(times=2, episodes=2000),  # of which the mean return has to be known
}


def train_network(cell: Any, steps: int, players: Sequence[str]) -> dict[str, Any]:
    """One default network, and every rule on it."""
    env, took = PureGymEnv(cell.task, question=cell.question, scale=cell.scale), time.process_time()
    demand = DEMANDS[cell.task]
    agent = NeuralAgent(env, seed=cell.seed, compiled=True, gamma=demand.gamma)
    agent.learn(round(steps * demand.times))
    cpu = time.process_time() - took
    played = {}
    for name in NETWORK_PLAYERS:
        if name in players or name == "network: greedy":
            choose = chooser(act(agent, name.removeprefix(OURS)), env.pure.num_actions)
            played[name] = [(cell.seed, play(env.pure, choose, demand.episodes, cell.seed))]
    return _table(env, played, played["network: greedy"][0][1], cpu)


def train_sb3(cell: Any, steps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """sb3-contrib's QR-DQN, each model as it is, and all of them as one ensemble by SSD."""
    env, took = PureGymEnv(cell.task, question=cell.question, scale=cell.scale), time.process_time()
    try:
        import torch
        from sb3_contrib import QRDQN
    except ImportError:
        nothing = Episodes(np.full(2, np.nan), np.full(2, np.nan))
        lines = {name: [(0, nothing)] for name in SB3_PLAYERS}
        return _table(env, lines, nothing, 0.0, "not run: sb3-contrib is not installed")
    demand = DEMANDS[cell.task]
    options = ZOO | {"gamma": demand.gamma, "device": "cpu"}
    torch.set_num_threads(1)  # several wait for each other longer than they work
    models = [
        QRDQN("MlpPolicy", env, seed=seed, **options).learn(round(steps * demand.times))
        for seed in seeds
    ]
    cpu = (time.process_time() - took) / len(models)
    number = env.pure.num_actions
    alone = [
        (seed, play(env.pure, chooser(model, number), demand.episodes, seed))
        for seed, model in zip(seeds, models, strict=True)
    ]
    played = {SB3_PLAYERS[0]: alone}
    if len(models) > 1:
        ensemble = play(env.pure, chooser(act(models), number), demand.episodes, seeds[0])
        played[SB3_PLAYERS[1]] = [(seeds[0], ensemble)]
    return _table(env, played, alone[0][1], cpu, f"{len(models)} models")


def _table(
    env: PureGymEnv,
    played: Mapping[str, Sequence[tuple[int, Episodes]]],
    greedy: Episodes,
    cpu: float,
    note: str = "",
) -> dict[str, Any]:
    rows: dict[str, list[Any]] = {}
    for name, each in played.items():
        for seed, episodes in each:
            known = np.isfinite(episodes.returns).all()
            own = score_episodes(env.pure, episodes) if known else (np.nan,) * 3
            line = {
                "player": name, "seed": seed,
                "right": own[0], "given_up": own[1], "spread": own[2],
                "word": word(episodes.returns, greedy.returns, seed) if known else "not run",
                "mean": float(episodes.returns.mean()),
                "exposure": float(episodes.exposure.mean()),
                **episodes.tails(), "cpu_seconds": cpu, "note": note,
            }  # fmt: skip
            for column, value in line.items():
                rows.setdefault(column, []).append(value)
    return rows
