"""What `surest` runs: its settings, and one function for each kind of cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.tabular import TabularConfig, train_trials
from surefoot.agents.tabular.algorithm import Transition, evidence
from surefoot.agents.tabular.compiled_loop import TrialState
from surefoot.agents.tabular.outcomes import at
from surefoot.core.particles import cvar
from surefoot.envs import CliffGrid, probes, risky_cliff
from surefoot.errors import at_least
from surefoot.paper.experiment import Columns
from surefoot.policies import policy_named
from surefoot.training.engines import check_engine

GRID = CliffGrid(4, 12)
FORK = GRID.state(2, 0)  # where the two paths part
SURE = 0  # up: towards the top row; in the probes the first action
BONUS = {"roads": 5**0.5 / 3, "one": 0.5, "ten": 0.5}
"""By how much the noisy action is better where it is: on the roads a third of a deviation."""
RULES = {
    "greedy": "greedy", "SSD, tolerance 0.0005": "ssd:0.0005",
    "SSD, 1 error": "ssd:standard_errors=1", "SSD, 2 errors": "ssd:standard_errors=2",
    "SSD, 3 errors": "ssd:standard_errors=3", "CVaR 0.25": "cvar:0.25",
}  # fmt: skip
ERRORS = (1.0, 2.0, 3.0)
"""Standard errors whose consequences are simulated."""
COUNTS = (8, 32, 128)
NOISY = (1, 4, 10)
LEADS = (0.0, 0.25, 0.5, 1.0)
SIMULATED = 4000
UNBOUNDED = (-1e9, 1e9)  # of the cliff's random rewards: they are not clipped


class SurestCell(NamedTuple):
    """One task; of a network, one seed of it."""

    task: str  # rule, same, online, roads, one, ten
    variant: str  # how the table starts, or tie or better
    size: float  # of the noise, or of the rewards
    seed: int = -1

    @property
    def name(self) -> str:
        seed = "" if self.seed < 0 else f"-{self.seed}"
        return f"{self.task}-{self.variant}-{self.size:g}{seed}"


@dataclass(frozen=True)
class SurestConfig:
    """Is the surest of equally good actions taken? Defaults only, on tasks with known answers."""

    trials: int = 100
    """Trials of a table."""
    episodes: int = 600
    """Episodes of a table."""
    noises: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)
    """Deviations of a reward along the cliff."""
    seed: int = 0
    """First seed of networks, and of all trials of tables."""
    road_seeds: int = 40
    """Networks trained on the two roads, for each question."""
    seeds: int = 20
    """Networks trained on the steps that pay a sure or a noisy reward, for each question."""
    scales: tuple[float, ...] = (1.0, 1000.0, 0.001)
    """What the rewards of these steps are multiplied by."""
    steps: int = 10_000
    """Training steps of a network."""
    engine: str = "local"
    """serial, local (worker processes of this machine) or ray (a cluster)."""
    address: str = ""
    """Of the engine ray: local, auto, host:port or ray://host:port; a local one by default."""
    workers: int = 0
    """Worker processes; 0 for one per core."""

    def __post_init__(self) -> None:
        at_least(2, trials=self.trials, seeds=self.seeds, road_seeds=self.road_seeds)
        at_least(1, episodes=self.episodes, steps=self.steps)
        check_engine(self.engine, self.address, self.workers or None)

    def cells(self) -> list[SurestCell]:
        """Everything that is run, each independent of the others."""
        tables = [SurestCell("rule", "normal", 1.0)]
        tables += [SurestCell("same", "zero", noise) for noise in self.noises]
        tables += [
            SurestCell("online", start, n) for start in ("zero", "normal") for n in self.noises
        ]
        questions = ("tie", "better")
        roads = range(self.seed, self.seed + self.road_seeds)
        seeds = range(self.seed, self.seed + self.seeds)
        networks = [SurestCell("roads", q, 1.0, seed) for q in questions for seed in roads]
        networks += [
            SurestCell(task, question, scale, seed)
            for task in ("one", "ten")
            for question in questions
            for scale in self.scales
            for seed in seeds
        ]
        return tables + networks


def compute_cell(job: tuple[SurestConfig, SurestCell]) -> dict[str, Columns]:
    config, cell = job
    kinds = {"rule": _rule, "same": _table, "online": _table}
    return {cell.name: kinds.get(cell.task, _network)(config, cell)}


# --- the rule itself ---------------------------------------------------------------------


def _rule(config: SurestConfig, _: SurestCell) -> Columns:
    """Both errors of the rule: a sure action worth 0, and noisy ones N(lead, 1) known from n draws.

    How often a noisy one is taken, and what the choice costs on average.
    """
    rows = []
    for n in COUNTS:
        for noisy in NOISY:
            rng = np.random.default_rng([config.seed, n, noisy])
            draws = np.sort(rng.standard_normal((SIMULATED, noisy, n)).astype(np.float32), axis=-1)
            for errors in ERRORS:
                decide = _decide_draws(errors)
                for lead in LEADS:
                    taken = np.asarray(decide(draws + np.float32(lead))) > 0
                    lost = np.where(taken, 0.0, lead).mean()
                    rows.append((errors, n, noisy, lead, taken.mean(), lost))
    names = ("errors", "n", "noisy", "lead", "noisy_taken", "mean_lost")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _decide_draws(errors: float) -> Any:
    policy = policy_named(f"ssd:standard_errors={errors}")

    def one(draws: jax.Array, key: jax.Array) -> jax.Array:
        z = jnp.concatenate([jnp.zeros_like(draws[:1]), draws])
        n = jnp.full(len(z), draws.shape[-1])
        return policy.decide(z, key, n=n, assume_sorted=True).action

    key = jax.random.key(0)
    return jax.jit(lambda draws: jax.vmap(lambda d: one(d, key))(draws))


# --- tables ------------------------------------------------------------------------------


def _table(config: SurestConfig, cell: SurestCell) -> Columns:
    """For each trial: falls, and what every rule decides where the paths part."""
    agent = TabularConfig(initial_std=1.0 if cell.variant == "normal" else 0.0)
    if cell.task == "same":  # the same data for every rule
        agent = replace(agent, behaviour="greedy", explore=0.5)
    runs = train_trials(
        agent,
        risky_cliff(GRID.rows, GRID.columns, sigma=cell.size, reward_clip=UNBOUNDED),
        episodes=config.episodes,
        trials=config.trials,
        seed=config.seed,
        measure=_fell,
        extra=1,
        quiet=True,
    )
    falls = np.asarray(runs.episodes)[:, :, -1]
    return {
        "trial": np.arange(config.trials),
        "falls": falls[:, :400].sum(axis=1),  # as many episodes as the paper has
        **{name: _decisions(agent, runs, text) == SURE for name, text in RULES.items()},
    }


def _fell(step: Transition) -> jax.Array:
    return (step.reward_t < -50).astype(jnp.float32)[None]


def _decisions(agent: TabularConfig, runs: TrialState, policy: str) -> np.ndarray:
    decide = partial(policy_named(policy).decide, assume_sorted=True)
    z, seen = runs.table.z[:, FORK], at(evidence(agent, runs.table), (slice(None), FORK))
    keys = jax.random.split(jax.random.key(1), len(z))
    chosen = jax.jit(jax.vmap(lambda z, key, n: decide(z, key, n=n).action))(z, keys, seen)
    return np.asarray(chosen)


# --- networks ----------------------------------------------------------------------------


def _network(config: SurestConfig, cell: SurestCell) -> Columns:
    """At each observation: whether the default agent takes the sure action, and what it knows."""
    bonus = BONUS[cell.task] if cell.variant == "better" else 0.0
    if cell.task == "roads":
        env: Any = probes.RoadFork(bonus=bonus)
        seen = np.eye(env.obs_size)[:1]
    else:
        steps = {"one": 1, "ten": 10}[cell.task]
        env = probes.SureOrNoisy(steps=steps, bonus=bonus, scale=cell.size)
        rng = np.random.default_rng(1)
        seen = rng.uniform(-1, 1, (200, 2)) if steps == 1 else np.arange(10)[:, None] / 10
    agent = NeuralAgent(probes.PureProbe(env), seed=cell.seed, compiled=True).learn(config.steps)
    decided = agent.decide(seen.astype(np.float32))
    z = agent.return_distribution(seen.astype(np.float32))
    gap = z[:, 1].mean(axis=-1) - z[:, 0].mean(axis=-1)
    tail = cvar(z, 0.25, assume_sorted=True)
    return {
        "sure": np.asarray(decided.action) == SURE,
        "greedy": gap <= 0,  # of the same network
        "cvar": tail[:, 0] >= tail[:, 1],
        "gap": gap / cell.size,
        "error": np.asarray(decided.error).max(axis=-1) / cell.size,
        "sure_deviation": z[:, 0].std(axis=-1) / cell.size,
        "noisy_deviation": z[:, 1].std(axis=-1) / cell.size,
    }
