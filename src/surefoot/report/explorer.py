"""States to click on: what the library says of each of them, as the JSON the page's script draws.

Every number and every sentence comes from `surefoot.agents.explain`; the script only draws them.
Sentences repeat, so they are stored once and pointed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np

from surefoot.agents.explain import CURVE, Explanation, explain_all
from surefoot.core.evidence import Known
from surefoot.core.particles import cumulative_cdf
from surefoot.envs.cliffs import (
    ACTION_NAMES,
    ARROWS,
    CliffGrid,
    cliff_walk,
    noisy_states,
    risky_cliff,
)
from surefoot.envs.montecarlo import simulate_returns
from surefoot.errors import InputError
from surefoot.plots.styles import LINES, MARKERS, PALETTE
from surefoot.policies import DecidedBy, Policy, policy_named
from surefoot.report.page import Explorer
from surefoot.report.stored import Stored

AUTHORITIES = ("score", "dominance", "tie-break", "fallback", "exploration")  # as in DecidedBy
DIGITS = 8  # of a particle: what single precision holds
BATCH = 64  # states that are explained at a time
ROLLOUTS = 200  # of each action in each state, where the page simulates a policy
DASHES = {"-": "", "--": "7 4", "-.": "8 3 2 3", ":": "2 3"}


@dataclass(frozen=True)
class Learned:
    """Particles of every state, `[S, A, N]`, or ensembles of them `[S, E, A, N]`, and the policies
    that can be asked about them."""

    z: np.ndarray
    policies: Mapping[str, Policy]  # the first is shown at first
    states: Sequence[int] | None = None  # in which one acts; all by default
    masks: np.ndarray | None = None  # [S, A] feasible actions
    seed: int = 0
    n: np.ndarray | Known | None = None  # [S, A] what the particles rest on


@dataclass(frozen=True)
class Place:
    """A state on the page."""

    label: str
    mark: str = ""  # start, goal, cliff or noisy
    text: str = ""  # on the button, where the states are no grid


def explore(
    learned: Mapping[str, Learned],
    places: Sequence[Place],
    *,
    actions: Sequence[str],
    columns: int = 0,
    start: int = 0,
    choice: str = "",
    unit: str = "return",
) -> dict[str, Any]:
    """The JSON of an explorer. `columns` lays the states out as a grid, 0 as a row that wraps.

    `choice` is the label of the box that chooses among several entries of `learned`.
    """
    sentences: dict[str, int] = {}
    arrows = dict(zip(ACTION_NAMES, ARROWS, strict=True))
    return {
        "actions": [str(a) for a in actions],
        "styles": [_style(a) for a in range(len(actions))],
        "arrows": [arrows.get(str(a), str(a)) for a in actions],
        "places": [{"label": p.label, "mark": p.mark, "text": p.text} for p in places],
        "columns": columns,
        "start": start,
        "choice": choice,
        "unit": unit,
        "header": ["action", "mean", "deviation", *(f"CVaR {level:g}" for level in CURVE)],
        "who": list(AUTHORITIES),
        "learned": {name: _explained(each, actions, sentences) for name, each in learned.items()},
        "sentences": list(sentences),
    }


def _style(action: int) -> dict[str, str]:
    """By place and not by name, as `surefoot explain` draws them."""
    turn, line = action // len(PALETTE), LINES[(action + action // len(PALETTE)) % len(LINES)]
    dash = DASHES[line] if isinstance(line, str) else " ".join(str(2 * part) for part in line[1])
    marker = MARKERS[(action + turn) % len(MARKERS)]
    return {"color": PALETTE[action % len(PALETTE)], "dash": dash, "marker": marker}


def _explained(
    learned: Learned, actions: Sequence[str], sentences: dict[str, int]
) -> dict[str, Any]:
    candidates = range(len(learned.z)) if learned.states is None else learned.states
    states = [int(s) for s in candidates if np.isfinite(learned.z[s]).all()]
    if not states:
        raise InputError("no state holds particles that are all numbers")
    # Padded, so that tables of any size share one compiled program of each policy.
    padded = np.asarray(states + states[-1:] * (-len(states) % BATCH))
    z = np.asarray(learned.z)[padded]
    masks, n = jax.tree.map(lambda part: np.asarray(part)[padded], (learned.masks, learned.n))
    # As an agent breaks its ties: a key of the seed and the state.
    root = jax.random.key(learned.seed)
    keys = jax.vmap(lambda state: jax.random.fold_in(root, state))(padded)
    names = tuple(str(a) for a in actions)
    explanations = {
        name: explain_all(z, policy, keys, masks=masks, n=n, names=names)[: len(states)]
        for name, policy in learned.policies.items()
    }
    first = next(iter(explanations.values()))
    return {
        "states": {str(s): _numbers(e) for s, e in zip(states, first, strict=True)},
        "decisions": {
            name: {str(s): _decision(e, sentences) for s, e in zip(states, each, strict=True)}
            for name, each in explanations.items()
        },
    }


def _numbers(e: Explanation) -> dict[str, Any]:
    """What does not depend on the policy: particles, curves, table."""
    # F^(2) of each action at its own particles, where alone it bends.
    frontier = np.stack([np.asarray(cumulative_cdf(row, row)) for row in e.z])
    return {
        "z": _digits(e.z),
        "curve": _digits(e.cumulative_quantile),
        "frontier": _digits(frontier),
        "mean": _digits(e.mean),
        "std": _digits(e.std),
        "cvar": _digits(e.cvar),
    }


def _decision(e: Explanation, sentences: dict[str, int]) -> list[Any]:
    """Action, who decided (dominance only where it is more than the mean), ties, sentences."""
    who = DecidedBy.SCORE if e.by_mean_alone else e.decided_by
    said = [sentences.setdefault(s, len(sentences)) for s in (*e.words, e.relations)]
    return [e.action, int(who), [int(a) for a in np.flatnonzero(e.tied)], said]


def _digits(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return _digits(values.astype(float).tolist())
    if isinstance(values, list):
        return [_digits(value) for value in values]
    return float(f"{values:.{DIGITS}g}") if np.isfinite(values) else None


# --- who can be asked ----------------------------------------------------------------------


def policies_to_ask(own: str | Policy, *others: str, known: bool = True) -> dict[str, Policy]:
    """The run's own policy first, then others with its tolerance, each under a readable name.

    Where it is not `known` what the estimates rest on, dominance is asked of the particles alone.
    """
    first = policy_named(own)
    policies = [first, *map(policy_named, others)]
    if first.tolerance is not None:
        policies = [replace(policy, tolerance=first.tolerance) for policy in policies]
    elif not known:
        policies = [replace(p, tolerance=0.0) if p.needs_evidence else p for p in policies]
    return {readable(policy): policy for policy in policies}


def readable(policy: Policy) -> str:
    """`SSD, tolerance 0.0005`."""
    kind = {"Greedy": "greedy"}.get(type(policy).__name__, type(policy).__name__)
    common = ("tolerance", "undecided", "standard_errors")
    values = [str(getattr(policy, f.name)) for f in fields(policy) if f.name not in common]
    if policy.tolerance is None:
        return f"{kind}, by evidence"
    return f"{' '.join([kind, *values])}, tolerance {policy.tolerance:g}"


# --- cliffs --------------------------------------------------------------------------------


def cliff_places(grid: CliffGrid, noisy: np.ndarray) -> list[Place]:
    places = []
    for state in range(grid.num_states):
        row, column = grid.cell(state)
        mark = (
            "start" if state == grid.start else "goal" if state == grid.goal
            else "cliff" if grid.is_cliff(state) else "noisy" if noisy[state] else ""
        )  # fmt: skip
        places.append(Place(f"row {row}, column {column}, state {state}", mark))
    return places


def acting_states(grid: CliffGrid) -> list[int]:
    """Nobody acts on the cliff or at the goal."""
    return [s for s in range(grid.num_states) if not grid.is_cliff(s) and s != grid.goal]


def risky_cliff_explorer(stored: Stored, config: Mapping[str, Any]) -> Explorer:
    """Section 5.4: what the first trial of every loss and policy learned."""
    grid = CliffGrid(config["rows"], config["columns"])
    learned = {}
    for loss in dict.fromkeys([*config["losses"], *config["checks"]]):
        for policy in dict.fromkeys([*config["policies"], *config["check_policies"]]):
            table = f"particles.{loss}.{policy.replace(':', '-')}"
            if not stored.has(f"{table}.parquet"):
                continue
            frame = stored.table(table).sort("state", "action", "particle")
            z = frame["z"].to_numpy().reshape(grid.num_states, len(ACTION_NAMES), -1)
            own = replace(policy_named(policy), tolerance=float(config["tolerance"]))
            ask = policies_to_ask(own, "ssd", "greedy")
            name = f"{loss}, behaviour {policy.replace(':', ' ')}"
            learned[name] = Learned(z, ask, acting_states(grid), seed=config["seed"])
    if not learned:
        raise InputError("no table particles.LOSS.POLICY.parquet fits the configuration")
    first = next((name for name in learned if name.endswith("ssd")), next(iter(learned)))
    mdp = risky_cliff(rows=grid.rows, columns=grid.columns, sigma=config["sigma"])
    data = explore(
        {first: learned[first]} | learned, cliff_places(grid, noisy_states(mdp)),
        actions=ACTION_NAMES, columns=grid.columns, start=grid.state(grid.rows - 2, 0),
        choice="learned by",
    )  # fmt: skip
    caption = (
        "Click a cell, or move with the arrow keys: what the first trial learned there, and what "
        "a policy decides. Arrow: the action taken; ring: dominance decided; dots: entering pays "
        "a random reward; hatching: the cliff. Above the start (S) the two paths part."
    )
    return Explorer("The cliff, state by state", data, caption)


def cliff_walk_explorer(summary: Mapping[str, Any], config: Mapping[str, Any]) -> Explorer:
    """Section 5.2: rollouts of the policy that was evaluated, in every state."""
    grid = CliffGrid()
    policy = np.asarray([ARROWS.index(arrow) for arrow in summary["policy"]])
    states, actions = np.arange(grid.num_states)[:, None], np.arange(len(ACTION_NAMES))[None]
    rollouts = simulate_returns(
        cliff_walk(fall=float(config["fall"])), policy, states, actions, rollouts=ROLLOUTS,
        horizon=int(config["horizon"]), gamma=float(config["gamma"]),
        key=jax.random.key(int(config["seed"])),
    )  # fmt: skip
    ask = policies_to_ask("ssd:tolerance=0.001", "greedy", "cvar:0.25")
    learned = {"rollouts": Learned(np.asarray(rollouts.returns), ask, acting_states(grid))}
    data = explore(
        learned, cliff_places(grid, np.zeros(grid.num_states, bool)), actions=ACTION_NAMES,
        columns=grid.columns, start=grid.start, unit="discounted return",
    )  # fmt: skip
    caption = (
        "Click a cell, or move with the arrow keys. Each action is taken once, then the policy "
        f"that was evaluated goes on: {ROLLOUTS} rollouts, simulated for this page from the run's "
        "seed."
    )
    return Explorer("The cliff walk, state by state", data, caption)
