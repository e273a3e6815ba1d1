"""Not of the paper: with nothing set, is the surest of equally good actions taken?

Three tasks whose answer is known. The risky cliff at four sizes of noise, where the sure path and
the one along the cliff are worth the same: tables, decided by several rules on the same data, and
by the default agent that learns online. Two roads of five steps, a sure one and a noisy one. A sure
or a noisy reward at every step, one step or ten, at three scales of reward. On the last two a
default network has to take the noisy action, too, where that one is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.tabular import TabularConfig, train_trials
from surefoot.agents.tabular.algorithm import Transition
from surefoot.agents.tabular.loop import TrialState
from surefoot.core.stats import Interval, mean_interval, share_interval
from surefoot.envs import CliffGrid, probes, risky_cliff
from surefoot.errors import at_least
from surefoot.paper.claims import Claim, Verdict
from surefoot.paper.experiment import Columns, Experiment, by_cells
from surefoot.plots import label, legend, new_figure, styles
from surefoot.policies import policy_named
from surefoot.training.engines import check_engine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


# --- tables ------------------------------------------------------------------------------


def compute_cell(job: tuple[SurestConfig, SurestCell]) -> dict[str, Columns]:
    config, cell = job
    kinds = {"rule": _rule, "same": _table, "online": _table}
    return {cell.name: kinds.get(cell.task, _network)(config, cell)}


# --- the rule itself -----------------------------------------------------------------------


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
    z, seen = runs.table.z[:, FORK], jnp.minimum(runs.table.visits[:, FORK], agent.memory)
    keys = jax.random.split(jax.random.key(1), len(z))
    chosen = jax.jit(jax.vmap(lambda z, key, n: decide(z, key, n=n).action))(z, keys, seen)
    return np.asarray(chosen)


# --- networks ----------------------------------------------------------------------------


def _network(config: SurestConfig, cell: SurestCell) -> Columns:
    """At each observation: whether the default agent takes the sure action, and what it knows."""
    bonus = BONUS[cell.task] if cell.variant == "better" else 0.0
    if cell.task == "roads":
        env: Any = probes.TwoRoads(bonus)
        seen = np.eye(env.LENGTH + 1)[:1]
    else:
        steps = {"one": 1, "ten": 10}[cell.task]
        env = probes.SureOrNoisy(steps, bonus, cell.size)
        rng = np.random.default_rng(1)
        seen = rng.uniform(-1, 1, (200, 2)) if steps == 1 else np.arange(10)[:, None] / 10
    agent = NeuralAgent(env, seed=cell.seed).learn(config.steps)
    decided = agent.decide(seen.astype(np.float32))
    z = agent.return_distribution(seen.astype(np.float32))
    return {
        "sure": np.asarray(decided.action) == SURE,
        "gap": (z[:, 1].mean(axis=-1) - z[:, 0].mean(axis=-1)) / cell.size,
        "error": np.asarray(decided.error).max(axis=-1) / cell.size,
        "sure_deviation": z[:, 0].std(axis=-1) / cell.size,
        "noisy_deviation": z[:, 1].std(axis=-1) / cell.size,
    }


# --- results -----------------------------------------------------------------------------


class SurestResults(NamedTuple):
    config: SurestConfig
    tables: Mapping[str, Mapping[str, np.ndarray]]

    def rule(self, task: str, start: str, noise: float, rule: str) -> Interval:
        """Share of trials in which the rule takes the sure path."""
        sure = self.tables[SurestCell(task, start, noise).name][rule]
        return share_interval(sure)

    def falls(self, start: str, noise: float) -> Interval:
        return mean_interval(self.tables[SurestCell("online", start, noise).name]["falls"])

    def seeds_of(self, task: str) -> range:
        number = self.config.road_seeds if task == "roads" else self.config.seeds
        return range(self.config.seed, self.config.seed + number)

    def shares(self, task: str, question: str, scale: float) -> np.ndarray:
        """For each seed: the share of observations at which the sure action is taken."""
        cells = [SurestCell(task, question, scale, seed) for seed in self.seeds_of(task)]
        return np.array([self.tables[cell.name]["sure"].mean() for cell in cells])

    def right(self, task: str, question: str, scale: float) -> Interval:
        """Share of seeds that are right at 95 % of the observations at least."""
        share = self.shares(task, question, scale)
        share = share if question == "tie" else 1 - share
        return share_interval(share >= 0.95)


def read(config: SurestConfig, tables: Any) -> SurestResults:
    return SurestResults(config, {cell.name: tables[cell.name] for cell in config.cells()})


def summary(results: SurestResults) -> dict[str, Any]:
    config = results.config
    decided = [
        {"task": task, "start": start, "noise": noise, "rule": rule}
        | {"sure": results.rule(task, start, noise, rule)}
        for task, starts in (("same", ("zero",)), ("online", ("zero", "normal")))
        for start in starts
        for noise in config.noises
        for rule in RULES
    ]
    falls = [
        {"start": start, "noise": noise, "falls": results.falls(start, noise)}
        for start in ("zero", "normal")
        for noise in config.noises
    ]
    networks = [
        {"task": task, "question": question, "scale": scale}
        | {"right": results.right(task, question, scale)}
        for task in ("roads", "one", "ten")
        for question in ("tie", "better")
        for scale in ((1.0,) if task == "roads" else config.scales)
    ]
    simulated = results.tables[SurestCell("rule", "normal", 1.0).name]
    rule = [dict(zip(simulated, row, strict=True)) for row in zip(*simulated.values(), strict=True)]
    return {"rule": rule, "cliff": decided, "falls": falls, "networks": networks}


def judge(results: SurestResults) -> list[Claim]:
    return [
        _rule_claim(results),
        _cliff_claim(results),
        _falls_claim(results),
        _roads_claim(results),
        *_step_claims(results),
    ]


def _claim(name: str, statement: str, wanted: str, measured: str, holds: bool) -> Claim:
    verdict: Verdict = "reproduced" if holds else "not reproduced"
    return Claim(
        f"surest/{name}",
        "3 (not claimed there)",
        statement,
        measured,
        verdict,
        f"Wanted: {wanted}.",
    )


def _rule_claim(results: SurestResults) -> Claim:
    """The guarantee: a riskier action is taken as often as chance puts it 3 errors ahead."""
    table = results.tables[SurestCell("rule", "normal", 1.0).name]
    tie = (table["lead"] == 0) & (table["errors"] == 3)
    share = table["noisy_taken"] / table["noisy"]
    many, few = (float(share[tie & chosen].max()) for chosen in (table["n"] > 8, table["n"] <= 8))
    return _claim(
        "rule",
        "A noisy action that is worth the same as a sure one is taken as seldom as three standard "
        "errors say, once in 741 for each such action.",
        "at most 0.003 for each noisy action, known from 32 or 128 draws",
        f"most {many:.4f}; from 8 draws {few:.4f}, which may all lie above the sure one",
        many <= 0.003,
    )


def _cliff_claim(results: SurestResults) -> Claim:
    shares = {
        (task, start, noise): results.rule(task, start, noise, "SSD, 3 errors").mean
        for task, start in (("same", "zero"), ("online", "zero"), ("online", "normal"))
        for noise in results.config.noises
    }
    least = min(shares, key=lambda key: shares[key])
    return _claim(
        "cliff",
        "On the risky cliff the default rule takes the sure path at any size of noise, on the same "
        "data and online, from particles at zero and at random.",
        "at least 0.98 of the trials everywhere",
        f"least {shares[least]:.3f} ({least[0]}, start {least[1]}, noise {least[2]:g})",
        shares[least] >= 0.98,
    )


def _falls_claim(results: SurestResults) -> Claim:
    falls = {(s, n): results.falls(s, n) for s in ("zero", "normal") for n in results.config.noises}
    most = max(falls, key=lambda key: falls[key].mean)
    return _claim(
        "falls",
        "The default agent falls no more often than SSD at the best tolerance did in 0.1.0.",
        "at most 49.7 falls in 400 episodes, at any noise",
        f"most {falls[most]} (start {most[0]}, noise {most[1]:g})",
        falls[most].mean <= 49.7,
    )


def _roads_claim(results: SurestResults) -> Claim:
    tie, better = (results.shares("roads", q, 1.0).mean() for q in ("tie", "better"))
    return _claim(
        "roads",
        "Of two roads worth the same a default network takes the sure one; where the noisy one is "
        "better by a third of its deviation, that one.",
        "sure on at least 0.95 of the seeds, and on at most 0.05",
        f"sure on {tie:.3f}, and on {better:.3f}",
        bool(tie >= 0.95 and better <= 0.05),
    )


def _step_claims(results: SurestResults) -> list[Claim]:
    claims = []
    for question, text in (
        ("tie", "Of a sure and a noisy reward worth the same a default network takes the sure one"),
        ("better", "A noisy reward that is better by half a deviation is taken"),
    ):
        shares = {
            (task, scale): results.right(task, question, scale).mean
            for task in ("one", "ten")
            for scale in results.config.scales
        }
        least = min(shares, key=lambda key: shares[key])
        claims.append(
            _claim(
                f"steps-{question}",
                f"{text}, at any scale of reward.",
                "at 0.95 of the observations on at least 19 seeds of 20",
                f"least {shares[least]:.3f} of the seeds ({least[0]} steps, scale {least[1]:g})",
                shares[least] >= 0.95,
            )
        )
    return claims


def draw(results: SurestResults) -> dict[str, Figure]:
    return {"rules": _draw_rules(results)}


def _draw_rules(results: SurestResults) -> Figure:
    """What each rule decides on the same data, at each size of the noise."""
    figure, axes = new_figure(size=(6.4, 3.6))
    noises, looks = np.array(results.config.noises), styles(RULES)
    for number, rule in enumerate(RULES):
        shares = [results.rule("same", "zero", noise, rule) for noise in noises]
        middle = [s.mean for s in shares]
        ends = [[s.mean - s.low for s in shares], [s.high - s.mean for s in shares]]
        look = looks[rule]
        axes.errorbar(
            noises * 1.06 ** (number - len(RULES) / 2), middle, ends, label=rule, capsize=2,
            color=look.color, marker=look.marker, linestyle=look.linestyle,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.05)
    label(axes, x="deviation of a reward along the cliff", y="share of trials, sure path taken")
    legend(axes, outside=True)
    return figure


EXPERIMENT = Experiment(
    kind="surest",
    config=SurestConfig,
    measure=by_cells(compute_cell, "surest"),
    read=read,
    summarise=summary,
    judge=judge,
    draw=draw,
    seeds=lambda config: list(range(config.seed, config.seed + config.road_seeds)),
)
run = EXPERIMENT.run
