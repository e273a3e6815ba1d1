"""Not of the paper: with nothing set, is the surest of equally good actions taken?

Three tasks whose answer is known. The risky cliff at four sizes of noise, where the sure path and
the one along the cliff are worth the same: tables, decided by several rules on the same data, and
by the default agent that learns online. Two roads of five steps, a sure one and a noisy one. A sure
or a noisy reward at every step, one step or ten, at three scales of reward. On the last two a
default network has to take the noisy action, too, where that one is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.core.stats import Interval, mean_interval, mean_share_interval, share_interval
from surefoot.paper.claims import Claim, held
from surefoot.paper.experiment import Experiment, by_cells
from surefoot.paper.surest_cells import RULES, SurestCell, SurestConfig, compute_cell
from surefoot.plots import intervals, label, legend, legend_below, new_figure, style, styles
from surefoot.plots.styles import GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARTS = (("same", "zero"), ("online", "zero"), ("online", "normal"))
"""How the tables of the cliff learned, and what their particles were before."""
NETWORKS = ("roads", "one", "ten")
NAMES = {"roads": "two roads", "one": "one step", "ten": "ten steps"}
QUESTIONS = {"tie": "worth the same", "better": "the noisy action is worth more"}
DEFAULT = "SSD, 3 errors"
SHOWN = {
    "ssd": (DEFAULT, "sure"),
    "greedy": ("greedy", "greedy"),
    "cvar:0.25": ("CVaR 0.25", "cvar"),
}
"""Rules side by side: what each is called in the tables of the cliff, and in a network's."""


class SurestResults(NamedTuple):
    config: SurestConfig
    tables: Mapping[str, Mapping[str, np.ndarray]]

    def rule(self, task: str, start: str, noise: float, rule: str) -> Interval:
        """Share of trials in which the rule takes the sure path."""
        return share_interval(self.tables[SurestCell(task, start, noise).name][rule])

    def falls(self, start: str, noise: float) -> Interval:
        return mean_interval(self.tables[SurestCell("online", start, noise).name]["falls"])

    def scales(self, task: str) -> tuple[float, ...]:
        return (1.0,) if task == "roads" else self.config.scales

    def shares(self, task: str, question: str, scale: float, rule: str = "sure") -> np.ndarray:
        """For each seed: the share of observations at which the rule takes the sure action."""
        config = self.config
        number = config.road_seeds if task == "roads" else config.seeds
        seeds = range(config.seed, config.seed + number)
        cells = [SurestCell(task, question, scale, seed).name for seed in seeds]
        return np.array([self.tables[name][rule].mean() for name in cells])

    def right(self, task: str, question: str, scale: float) -> Interval:
        """Share of seeds that are right at 95 % of the observations at least."""
        share = self.shares(task, question, scale)
        return share_interval((share if question == "tie" else 1 - share) >= 0.95)


def read(config: SurestConfig, tables: Any) -> SurestResults:
    return SurestResults(config, {cell.name: tables[cell.name] for cell in config.cells()})


def summary(results: SurestResults) -> dict[str, Any]:
    noises = results.config.noises
    decided = [
        {"task": task, "start": start, "noise": noise, "rule": rule}
        | {"sure": results.rule(task, start, noise, rule)}
        for task, start in STARTS
        for noise in noises
        for rule in RULES
    ]
    falls = [
        {"start": start, "noise": noise, "falls": results.falls(start, noise)}
        for start in ("zero", "normal")
        for noise in noises
    ]
    networks = [
        {"task": task, "question": question, "scale": scale}
        | {"right": results.right(task, question, scale)}
        | {
            f"sure by {rule}": float(results.shares(task, question, scale, column).mean())
            for rule, (_, column) in SHOWN.items()
        }
        for task in NETWORKS
        for question in QUESTIONS
        for scale in results.scales(task)
    ]
    simulated = results.tables[SurestCell("rule", "normal", 1.0).name]
    rule = [dict(zip(simulated, row, strict=True)) for row in zip(*simulated.values(), strict=True)]
    return {"rule": rule, "cliff": decided, "falls": falls, "networks": networks}


# --- claims ------------------------------------------------------------------------------


def judge(results: SurestResults) -> list[Claim]:
    steps = [_steps_claim(results, question) for question in QUESTIONS]
    return [
        _rule_claim(results),
        _cliff_claim(results),
        _falls_claim(results),
        _roads_claim(results),
        *steps,
    ]


def _claim(name: str, statement: str, wanted: str, measured: str, holds: bool) -> Claim:
    where, missed = "3 (not claimed there)", f"wanted: {wanted}"
    return Claim(f"surest/{name}", where, statement, measured, *held(holds, missed))


def _rule_claim(results: SurestResults) -> Claim:
    """The guarantee: a riskier action is taken as often as chance puts it 3 errors ahead."""
    table = results.tables[SurestCell("rule", "normal", 1.0).name]
    tie = (table["lead"] == 0) & (table["errors"] == 3)
    share = table["noisy_taken"] / table["noisy"]
    many, few = (float(share[tie & chosen].max()) for chosen in (table["n"] > 8, table["n"] <= 8))
    return _claim(
        "rule",
        "A noisy action that is worth the same as a sure one is taken in at most 3 of 1,000 "
        "decisions, if it is known from 32 draws or more.",
        "at most 0.003 for each noisy action, known from 32 or 128 draws",
        f"most {many:.4f} for each noisy action; known from only 8 draws {few:.4f}: with so few, "
        "chance often puts it further ahead than the extra safety is worth",
        many <= 0.003,
    )


def _cliff_claim(results: SurestResults) -> Claim:
    shares = {
        (task, start, noise): results.rule(task, start, noise, DEFAULT).mean
        for task, start in STARTS
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
    tie, better = (results.shares("roads", q, 1.0).mean() for q in QUESTIONS)
    return _claim(
        "roads",
        "Of two roads worth the same a default network takes the sure one; where the noisy one is "
        "better by a third of its deviation, that one.",
        "sure on at least 0.95 of the seeds, and on at most 0.05",
        f"sure on {tie:.3f}, and on {better:.3f}",
        bool(tie >= 0.95 and better <= 0.05),
    )


def _steps_claim(results: SurestResults, question: str) -> Claim:
    text = {
        "tie": "Of a sure and a noisy reward worth the same a default network takes the sure one",
        "better": "A noisy reward that is better by half a deviation is taken",
    }[question]
    shares = {
        (task, scale): results.right(task, question, scale).mean
        for task in ("one", "ten")
        for scale in results.config.scales
    }
    least = min(shares, key=lambda key: shares[key])
    return _claim(
        f"steps-{question}",
        f"{text}, at any scale of reward.",
        "at 0.95 of the observations on at least 19 seeds of 20",
        f"least {shares[least]:.3f} of the seeds ({NAMES[least[0]]}, scale {least[1]:g})",
        shares[least] >= 0.95,
    )


# --- figures -----------------------------------------------------------------------------


def draw(results: SurestResults) -> dict[str, Figure]:
    return {"promise": _draw_promise(results), "rules": _draw_rules(results)}


def _draw_promise(results: SurestResults) -> Figure:
    """Which action three rules take on the same estimates, where it is worth the same and not."""
    cliff = [(f"cliff, noise {noise:g}", noise) for noise in results.config.noises]
    networks = [(t, s) for t in NETWORKS for s in results.scales(t)]
    rows = [name for name, _ in cliff]
    rows += [NAMES[t] + ("" if t == "roads" else f", rewards times {s:g}") for t, s in networks]
    figure, axes = new_figure(1, 2, size=(9.4, 4.6), sharey=True)
    for ax, (question, title) in zip(axes[0], QUESTIONS.items(), strict=True):
        groups: dict[str, list[Interval | None]] = {}
        for rule, (in_table, in_network) in SHOWN.items():
            known: list[Interval | None] = [None] * len(cliff)
            if question == "tie":
                known = [results.rule("same", "zero", noise, in_table) for _, noise in cliff]
            shares = [results.shares(t, question, s, in_network) for t, s in networks]
            # On a road a seed says yes or no, on steps it has a share of observations.
            groups[rule] = known + [
                (share_interval if task == "roads" else mean_share_interval)(share)
                for (task, _), share in zip(networks, shares, strict=True)
            ]
        looks = {rule: style(rule) for rule in groups}
        called = {"ssd": "default", "greedy": "greedy", "cvar:0.25": "CVaR 0.25"}
        intervals(ax, groups, rows, looks=looks, labels=called, across=True)
        ax.set_xlim(-0.04, 1.04)
        label(ax, title, "share that takes the sure action\n(bars: 95 % interval)")
        if question != "tie":
            nothing = "not asked: on the cliff both paths\nare always worth the same"
            ax.text(0.5, (len(cliff) - 1) / 2, nothing, ha="center", va="center", color=GREY)
    legend_below(figure, axes[0, 0])
    return figure


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
            noises * 1.16 ** (number - (len(RULES) - 1) / 2), middle, ends, label=rule, capsize=2,
            color=look.color, marker=look.marker, linestyle=look.linestyle,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(top=1.02)
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
