"""What `surefoot suite` runs: its settings, and one function for each way of learning.

Two tables. `same`: one learned table of each task and seed (gathered greedily, exploration 0.5), on
which every rule decides: what differs is the rule. `online`: every agent gathers its own data by
its own rule: what differs is the agent. `static` is CVaR of the whole return, planned exactly on
states augmented by what was collected. `network` and `sb3` are the tasks for networks
(`suite.networks`). A cell is one task and question; a finished cell is never computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from surefoot.agents.tabular import TabularConfig, train_trials
from surefoot.agents.tabular.algorithm import evidence
from surefoot.agents.tabular.compiled_loop import TrialState
from surefoot.envs import FINITE_TASKS, QUESTIONS, RiskTask, expected_visits, finite_task
from surefoot.envs.noisy import NETWORK_TASKS
from surefoot.errors import InputError, at_least, unknown
from surefoot.paper.experiment import Columns
from surefoot.policies import policy_named
from surefoot.suite.networks import (
    DEMANDS,
    NETWORK_PLAYERS,
    RULES,
    SB3_PLAYERS,
    train_network,
    train_sb3,
)
from surefoot.suite.scores import Score, score, simulated, static_cvar, word
from surefoot.training.engines import check_engine

LEVELS = (0.05, 0.25, 0.45)
TABULAR = (*RULES, *(f"static cvar:{level}" for level in LEVELS))
PLAYERS = (*TABULAR, *NETWORK_PLAYERS, *SB3_PLAYERS)
ALL = (*FINITE_TASKS, *NETWORK_TASKS)
SCALED = "two-roads"
"""The task for networks that is asked at every scale, on half of the seeds: the cheapest one."""
QUICK: dict[str, Any] = {
    "seeds": 4, "network_seeds": 1, "sb3_seeds": 1, "episodes": 150, "steps": 1500,
    "scales": (1.0,),
}  # fmt: skip


class SuiteCell(NamedTuple):
    """One task and question, by one way of learning; of networks one seed of it."""

    way: str  # same, online, static, network, sb3
    task: str
    question: str
    scale: float = 1.0
    seed: int = -1

    @property
    def name(self) -> str:
        scale = "" if self.scale == 1 else f"-x{self.scale:g}"
        seed = "" if self.seed < 0 else f"-{self.seed}"
        times = DEMANDS[self.task].times if self.task in DEMANDS else 1.0
        longer = "" if times == 1 else f"-{times:g}-times"  # what was trained for less is no result
        return f"{self.way}-{self.task}-{self.question}{scale}{longer}{seed}"


@dataclass(frozen=True)
class SuiteConfig:
    """Tasks whose right action is known: who takes it?"""

    tasks: tuple[str, ...] = ()
    """Tasks to run, by default the finite ones; `all` for those, too, that need networks and take
    hours."""
    agents: tuple[str, ...] = PLAYERS
    """Who plays; greedy always does, for others are compared with it."""
    tables: tuple[str, ...] = ("same", "online")
    """same: rules on the same data; online: agents on their own."""
    seeds: int = 20
    """Seeds of a table."""
    network_seeds: int = 10
    """Seeds of a network."""
    sb3_seeds: int = 3
    """Models of sb3-contrib."""
    episodes: int = 4000
    """Episodes of a table."""
    steps: int = 15_000
    """Training steps of a network; CartPole takes eight times as many, trading twice."""
    scales: tuple[float, ...] = (1.0, 1000.0, 0.001)
    """What rewards are multiplied by, where rules decide on the same data and for the networks of
    two-roads; 1 comes first."""
    seed: int = 0
    """First seed."""
    quick: bool = False
    """All tasks with few seeds and short runs: to see it work, not to judge."""
    engine: str = "local"
    """serial, local (worker processes of this machine) or ray (a cluster)."""
    address: str = ""
    """Of the engine ray: local, auto, host:port or ray://host:port; a local one by default."""
    workers: int = 0
    """Worker processes; 0 for one per core."""

    def __post_init__(self) -> None:
        usual = ALL if self.quick else tuple(FINITE_TASKS)
        tasks = ALL if self.tasks == ("all",) else self.tasks or usual
        object.__setattr__(self, "tasks", tasks)
        for name in self.tasks:
            if name not in ALL:
                raise unknown("task", name, (*ALL, "all"))
        for name in self.agents:
            if name not in PLAYERS:
                raise unknown("agent", name, PLAYERS)
        for name in self.tables:
            if name not in ("same", "online"):
                raise unknown("table", name, ("same", "online"))
        if self.quick:
            for name, value in QUICK.items():
                object.__setattr__(self, name, value)
        if self.scales[:1] != (1.0,) or not all(0 < scale < math.inf for scale in self.scales):
            raise InputError(f"scales = {self.scales}: 1 first, then other positive numbers")
        at_least(2, seeds=self.seeds)
        at_least(1, network_seeds=self.network_seeds, sb3_seeds=self.sb3_seeds)
        at_least(1, episodes=self.episodes, steps=self.steps)
        check_engine(self.engine, self.address, self.workers or None)

    @property
    def most_seeds(self) -> int:
        """Of any of the tasks."""
        return max(self.seeds if t in FINITE_TASKS else self.network_seeds for t in self.tasks)

    def plays(self, name: str) -> bool:
        return name in self.agents

    def cells(self) -> list[SuiteCell]:
        """Everything that is run, each independent of the others."""
        finite = [(t, q) for t in self.tasks if t in FINITE_TASKS for q in QUESTIONS]
        cells: list[SuiteCell] = []
        if "same" in self.tables:
            cells += [SuiteCell("same", *both, scale) for both in finite for scale in self.scales]
        if "online" in self.tables:
            cells += [SuiteCell("online", *both) for both in finite]
        if any(name.startswith("static") for name in self.agents):
            cells += [SuiteCell("static", *both) for both in finite]
        seeds = range(self.seed, self.seed + self.network_seeds)
        networks = [
            (t, q) for t in self.tasks if t in NETWORK_TASKS for q in NETWORK_TASKS[t].questions
        ]
        if any(map(self.plays, NETWORK_PLAYERS)):
            cells += [SuiteCell("network", *both, 1.0, seed) for both in networks for seed in seeds]
            scaled = [(*both, s) for both in networks if both[0] == SCALED for s in self.scales[1:]]
            few = seeds[: max(2, len(seeds) // 2)]
            cells += [SuiteCell("network", *each, seed) for each in scaled for seed in few]
        if any(map(self.plays, SB3_PLAYERS)):
            cells += [SuiteCell("sb3", *both) for both in networks]
        return cells


# --- cells -----------------------------------------------------------------------------------


def compute_cell(job: tuple[SuiteConfig, SuiteCell]) -> dict[str, Columns]:
    config, cell = job
    if cell.way == "network":
        return {cell.name: train_network(cell, config.steps, config.agents)}
    if cell.way == "sb3":
        seeds = range(config.seed, config.seed + config.sb3_seeds)
        return {cell.name: train_sb3(cell, config.steps, seeds)}
    task = finite_task(cell.task, cell.question, scale=cell.scale)
    kinds = {"same": _same, "online": _online, "static": _static}
    return {cell.name: kinds[cell.way](config, cell, task)}


def _static(config: SuiteConfig, _: SuiteCell, task: RiskTask) -> Columns:
    """Exact, so there is one row for each level; none where rewards are continuous."""
    rows = []
    for level in LEVELS:
        name = f"static cvar:{level}"
        own = static_cvar(task, level) if config.plays(name) else None
        if own is not None:
            rows.append((name, 0, own, "not tested"))
    return _columns(rows)


def _same(config: SuiteConfig, cell: SuiteCell, task: RiskTask) -> Columns:
    """Every rule on the same tables."""
    gather = TabularConfig(behaviour="greedy", explore=0.5)
    runs = _train(config, gather, task)
    acts = {rule: _decide(gather, runs, rule) for rule in RULES if _wanted(config, rule)}
    return _judged(config, task, acts, tested=cell.scale == 1)


def _online(config: SuiteConfig, _: SuiteCell, task: RiskTask) -> Columns:
    """Every agent on its own data: its rule gathers, bootstraps and decides."""
    acts = {}
    for rule in RULES:
        if _wanted(config, rule):
            agent = TabularConfig(behaviour=rule, target=rule, evaluation=rule)
            acts[rule] = _decide(agent, _train(config, agent, task), rule)
    return _judged(config, task, acts)


def _wanted(config: SuiteConfig, rule: str) -> bool:
    return rule == "greedy" or config.plays(rule)


def _train(config: SuiteConfig, agent: TabularConfig, task: RiskTask) -> TrialState:
    numbers = range(config.seed, config.seed + config.seeds)
    return train_trials(
        agent, task.mdp, episodes=config.episodes, trials=numbers, seed=14, quiet=True
    )


def _decide(agent: TabularConfig, runs: TrialState, rule: str) -> np.ndarray:
    """[trials, S]: what the rule does in every state of every learned table."""
    trials, states, actions, particles = runs.table.z.shape
    z = runs.table.z.reshape(-1, actions, particles)
    seen = jax.tree.map(lambda x: x.reshape(-1, actions), evidence(agent, runs.table))
    keys = jax.random.split(jax.random.key(1), len(z))
    return np.asarray(_deciding(rule)(z, keys, seen)).reshape(trials, states)


@lru_cache(maxsize=32)
def _deciding(rule: str) -> Any:
    decide = partial(policy_named(rule).decide, assume_sorted=True)
    return jax.jit(jax.vmap(lambda z, key, n: decide(z, key, n=n).action))


def _judged(
    config: SuiteConfig, task: RiskTask, acts: Mapping[str, np.ndarray], tested: bool = True
) -> Columns:
    """The score of every policy, and the test of its episodes against those of greedy's."""
    rows = []
    for i in range(config.seeds):
        seed = config.seed + i
        greedy = acts["greedy"][i]
        if not tested:  # the unit of reward is no part of the test
            scores = [(name, seed, score(task, acts[name][i]), "not tested") for name in acts]
            rows += scores
            continue
        sample = simulated(task, greedy, 2 * seed)
        for name, policies in acts.items():
            if _alike(task, policies[i], greedy):
                rows.append((name, seed, score(task, policies[i], sample), "same"))
                continue
            own = simulated(task, policies[i], 2 * seed + 1)
            rows.append((name, seed, score(task, policies[i], own), word(own, sample, seed)))
    return _columns(rows)


def _alike(task: RiskTask, one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two policies act alike wherever they come."""
    try:
        met = expected_visits(task.mdp, other) > 0
    except InputError:  # it may walk in circles
        return bool((one == other).all())
    return bool((one[met] == other[met]).all())


def _columns(rows: list[tuple[str, int, Score, str]]) -> Columns:
    return {
        "player": [player for player, *_ in rows],
        "seed": [seed for _, seed, *_ in rows],
        "right": [float(own.right) for *_, own, _ in rows],
        "given_up": [float(own.given_up) for *_, own, _ in rows],
        "spread": [float(own.spread) for *_, own, _ in rows],
        "word": [said for *_, said in rows],
    }
