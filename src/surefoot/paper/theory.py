"""Does a policy get better when all states are improved at once? By dominance it does; by CVaR not
always.

The theorem and its proof are on the page about theory (docs/theory.md). Here it is put to random
finite processes whose returns are known exactly, from a random policy and from one of the best
mean. A single case in which dominance decides and a return gets worse would refute it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.core.stats import Interval, mean_interval, share_interval
from surefoot.envs.exact import ExactReturns
from surefoot.errors import InputError
from surefoot.paper.claims import Claim
from surefoot.paper.experiment import Columns, Experiment, Tables
from surefoot.paper.improvement import (
    Case,
    Counterexample,
    Statistic,
    above_policy,
    best,
    dominant,
    dominant_or_mean,
    improve,
    mean,
    random_case,
    settle,
    smallest_counterexample,
)
from surefoot.paper.theory_figures import draw_counterexample
from surefoot.runs.progress import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("random", "best mean")
"""What is improved: a random policy, or one that already has the best mean in every state."""
DRAWN_LEVEL = 0.25
"""Of the counterexample that is drawn."""
CHUNK = 100


@dataclass(frozen=True)
class TheoryConfig:
    """Policy improvement on random finite processes with exact return distributions."""

    trials: int = 10_000
    """Random processes."""
    seed: int = 1
    """Decides processes and policies."""
    levels: tuple[float, ...] = (0.05, 0.25, 0.45)
    """Levels of the CVaR rules that stand beside dominance."""
    states: int = 5
    """At most so many states; at least 2."""
    actions: int = 3
    """At most so many actions; at least 2."""
    outcomes: int = 3
    """At most so many outcomes of an action."""

    def __post_init__(self) -> None:
        if min(self.trials, self.states, self.actions) < 2 or self.outcomes < 1:
            raise InputError("trials, states and actions: at least 2; outcomes: at least 1")
        if not self.levels or not all(0 < level < 1 for level in self.levels):
            raise InputError("levels: at least one, each between 0 and 1")


def cvar(level: float) -> Statistic:
    exact = Fraction(str(level))  # 0.05 is meant as a twentieth
    return lambda law: law.cvar(exact)


# --- the checks --------------------------------------------------------------------------


def measure(config: TheoryConfig, tables: Tables) -> None:
    if "results" not in tables:
        tables.write("results", check(config))


def check(config: TheoryConfig) -> dict[str, list[Any]]:
    """A row for each process and each of its two policies."""
    rows = []
    with progress(config.trials, "random processes", unit="processes") as task:
        for trial in range(config.trials):
            rng = np.random.default_rng([config.seed, trial])
            case = random_case(rng, config.states, config.actions, config.outcomes)
            for policy in POLICIES:
                if policy == "best mean":
                    case = settle(case, best(mean))
                rows.append({"trial": trial, "policy": policy} | _row(case, config.levels))
            if (trial + 1) % CHUNK == 0:
                task.advance(CHUNK)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _row(case: Case, levels: tuple[float, ...]) -> dict[str, Any]:
    mdp, old, start = case.process.mdp, case.returns, case.start
    row = {"states": mdp.num_states, "actions": mdp.num_actions, "outcomes": mdp.num_outcomes}
    row |= _decided(old)
    for name, rule in (("dominant", dominant), ("above", above_policy)):
        step = improve(case, rule, old)
        row |= {f"{name}_changed": step.changed, f"{name}_broken": step.broken}
        row[f"{name}_better"] = step.new.states[start] != old.states[start]
    step = improve(case, dominant_or_mean, old)
    row |= {"fallback_changed": step.changed, "fallback_broken": step.broken}
    row["fallback_mean_worse"] = step.worse_somewhere(mean)
    for level in levels:
        step = improve(case, best(cvar(level)), old)
        row[f"cvar_{level}_changed"] = step.changed
        row[f"cvar_{level}_worse"] = step.worse(start, cvar(level))
        row[f"cvar_{level}_worse_somewhere"] = step.worse_somewhere(cvar(level))
    return row


def _decided(returns: ExactReturns) -> dict[str, int]:
    """In how many states there is a choice, and in how many dominance makes it."""
    choices = [state for state, laws in enumerate(returns.pairs) if len(set(laws.values())) > 1]
    decided = [(state, dominant(returns, state)) for state in choices]
    first = [
        all(returns.pairs[state][a].dominates(law, 1) for law in returns.pairs[state].values())
        for state, actions in decided
        for a in sorted(actions)[:1]
    ]
    return {"choices": len(choices), "decided": len(first), "first_order": sum(first)}


def read(_: TheoryConfig, tables: Tables) -> Columns:
    return tables["results"]


def levels_of(table: Columns) -> list[float]:
    parts = [name.split("_") for name in table]
    return [float(each[1]) for each in parts if each[0] == "cvar" and each[-1] == "changed"]


def only(table: Columns, policy: str) -> Columns:
    chosen = np.asarray(table["policy"]) == policy
    return {name: np.asarray(column)[chosen] for name, column in table.items()}


def summary(table: Columns) -> dict[str, Any]:
    return {
        "processes": len(np.unique(table["trial"])),
        "policies": {policy: _summary(only(table, policy)) for policy in POLICIES},
        "smallest": _smallest(table),
        "drawn": _numbers(counterexample()),
    }


def _summary(rows: Columns) -> dict[str, Any]:
    """Shares of processes with exact intervals; `decided` and `first_order` are shares of the
    states with a choice, with an interval over processes."""
    some = rows["choices"] > 0
    decided, first = (
        mean_interval(rows[name][some] / rows["choices"][some]).as_dict()
        for name in ("decided", "first_order")
    )
    made: dict[str, Any] = {"decided": decided, "first_order": first}
    for name in ("dominant", "above"):
        made[name] = _shares(rows, name, "changed", "better", "broken")
    made["fallback"] = _shares(rows, "fallback", "changed", "broken", "mean_worse")
    for level in levels_of(rows):
        name = f"cvar_{level}"
        made[name] = _shares(rows, name, "changed", "worse", "worse_somewhere")
        changed = rows[f"{name}_changed"]
        if changed.any():
            made[name]["worse_where_changed"] = share_interval(
                rows[f"{name}_worse"][changed]
            ).as_dict()
    return made


def _shares(rows: Columns, rule: str, *names: str) -> dict[str, Any]:
    return {name: share_interval(rows[f"{rule}_{name}"]).as_dict() for name in names}


def _smallest(table: Columns) -> dict[str, Any]:
    """For each level the fewest states, then actions, then outcomes, of a random process in which
    CVaR at the start got worse."""
    made = {}
    for level in levels_of(table):
        worse = table[f"cvar_{level}_worse"]
        sizes = np.stack([table[name][worse] for name in ("states", "actions", "outcomes")], axis=1)
        made[str(level)] = min(sizes.tolist(), default=None)
    return made


# --- the counterexample ------------------------------------------------------------------


def counterexample() -> Counterexample:
    return smallest_counterexample(cvar(DRAWN_LEVEL))


def _numbers(example: Counterexample) -> dict[str, Any]:
    """All that the figure says, as numbers."""
    score = cvar(DRAWN_LEVEL)
    made: dict[str, Any] = {"level": DRAWN_LEVEL, "process": example.fork._asdict()}
    for when, action, returns in (
        ("old", example.old_action, example.step.old),
        ("new", example.new_action, example.step.new),
    ):
        made[when] = {
            "action": action,
            "cvar_in_state_1": float(score(returns.states[1])),
            "cvar_at_the_start": float(score(returns.states[0])),
            "mean_at_the_start": float(returns.states[0].mean),
        }
    return made


def figures(_: object = None) -> dict[str, Figure]:
    return {"counterexample": draw_counterexample(counterexample(), cvar(DRAWN_LEVEL), DRAWN_LEVEL)}


# --- the verdicts ------------------------------------------------------------------------


def claims_of(table: Columns) -> list[Claim]:
    return [_dominance(table), _fallback(table), *(_cvar(table, x) for x in levels_of(table))]


def _dominance(table: Columns) -> Claim:
    broken = np.asarray(table["dominant_broken"]) | np.asarray(table["above_broken"])
    processes = broken.reshape(-1, len(POLICIES)).any(axis=1)  # these are independent
    changed = int(np.sum(table["dominant_changed"])), int(np.sum(table["above_changed"]))
    made = {policy: _summary(only(table, policy)) for policy in POLICIES}
    return Claim(
        "theory/dominance", "3 (not claimed there)",
        "A policy that takes the dominant action wherever there is one, and else does as before, "
        "has a return that dominates the old one in every state",
        f"{int(broken.sum())} counterexamples on {len(broken)} policies, {changed[0]} of them "
        f"changed ({changed[1]} where an action need only dominate the policy's own return)",
        "not reproduced" if broken.any() else "reproduced",
        "A theorem: one counterexample would refute it",
        {"processes with a counterexample": share_interval(processes)}
        | {f"states where dominance decides, {policy} policy": Interval.from_dict(own["decided"])
           for policy, own in made.items()},
    )  # fmt: skip


def _fallback(table: Columns) -> Claim:
    worse = np.asarray(table["fallback_mean_worse"])
    return Claim(
        "theory/fallback", "3 (not claimed there)",
        "With the larger mean where dominance does not decide, no state's mean gets worse",
        f"{int(worse.sum())} counterexamples on {len(worse)} policies. That the new return "
        "dominates the old one in every state is not promised; how often it does not",
        "not reproduced" if worse.any() else "reproduced",
        "A theorem: one counterexample would refute it",
        {f"{policy} policy":
         share_interval(only(table, policy)["fallback_broken"]) for policy in POLICIES},
    )  # fmt: skip


def _cvar(table: Columns, level: float) -> Claim:
    name = f"cvar_{level}"
    worse = np.asarray(table[f"{name}_worse"])
    shares = {}
    for policy in POLICIES:
        rows = only(table, policy)
        shares[f"{policy} policy"] = share_interval(rows[f"{name}_worse"])
        if (changed := rows[f"{name}_changed"]).any():
            shares[f"{policy} policy, of those changed"] = share_interval(
                rows[f"{name}_worse"][changed]
            )
    return Claim(
        f"theory/cvar-{level}", "3 (not claimed there)",
        f"To take the action of the best CVaR {level} in every state can make the CVaR at the "
        "start worse",
        f"It did with {int(worse.sum())} of {len(worse)} policies; shares",
        "reproduced" if worse.any() else "not reproduced",
        "CVaR at one level is not preserved by mixtures: the start sees other parts of a state's "
        "return than the level at which the state decides",
        shares,
    )  # fmt: skip


EXPERIMENT = Experiment("theory", TheoryConfig, measure, read, summary, claims_of, figures)
run = EXPERIMENT.run
