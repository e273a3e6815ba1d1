"""States to click on: what the library says of every one of them, as JSON.

Everything shown comes from `surefoot.agents.explain`; the page only draws it. Sentences repeat, so
they are stored once and pointed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np

from surefoot.agents.explain import CURVE, Explanation, explain_all
from surefoot.core.particles import cumulative_cdf
from surefoot.envs.cliffs import ACTION_NAMES, ARROWS, CliffGrid
from surefoot.policies import Policy, policy_named
from surefoot.report.charts import SYMBOLS, dash_of, looks_of, numbers, rgba

WHO = ("score", "dominance", "tie-break", "fallback", "exploration")  # in the order of DecidedBy
DIGITS = 8  # of a particle: what single precision holds


@dataclass(frozen=True)
class Learned:
    """Particles of every state, `[S, A, N]`, and who may be asked to decide on them."""

    z: np.ndarray
    policies: Mapping[str, Policy]  # the first is shown at first
    states: Sequence[int] | None = None  # those that hold particles; all by default
    masks: np.ndarray | None = None  # [S, A] feasible actions
    seed: int = 0


@dataclass(frozen=True)
class Place:
    """A state on the page."""

    label: str
    mark: str = ""  # start, goal, cliff or noisy
    text: str = ""  # of the button before a decision is known


def explore(
    learned: Mapping[str, Learned],
    places: Sequence[Place],
    *,
    actions: Sequence[str],
    columns: int = 0,
    start: int = 0,
    choice: str = "what was learned",
    unit: str = "return",
) -> dict[str, Any]:
    """The JSON of an explorer. `columns` lays the states out as a grid, 0 as a row that wraps."""
    sentences: dict[str, int] = {}
    arrows = dict(zip(ACTION_NAMES, ARROWS, strict=True))
    return {
        "actions": [str(a) for a in actions],
        "styles": _styles(actions),
        "arrows": [arrows.get(str(a), str(a)) for a in actions],
        "places": [{"label": p.label, "mark": p.mark, "text": p.text} for p in places],
        "columns": columns,
        "start": start,
        "choice": choice,
        "unit": unit,
        "levels": list(CURVE),
        "who": list(WHO),
        "learned": {name: _one(each, actions, sentences) for name, each in learned.items()},
        "sentences": list(sentences),
    }


def _styles(actions: Sequence[str]) -> list[dict[str, str]]:
    looks = looks_of([f"action {a}" for a in actions])  # apart from what methods are called
    return [
        {
            "color": look.color,
            "dash": dash_of(look),
            "symbol": SYMBOLS[look.marker],
            "fill": rgba(look.color, 0.22),
        }
        for look in looks.values()
    ]


def grid_places(grid: CliffGrid, noisy: np.ndarray) -> list[Place]:
    """The cells of a cliff; nobody acts on the cliff or the goal."""
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
    return [s for s in range(grid.num_states) if not grid.is_cliff(s) and s != grid.goal]


def _one(learned: Learned, actions: Sequence[str], sentences: dict[str, int]) -> dict[str, Any]:
    states = list(range(len(learned.z)) if learned.states is None else learned.states)
    z = np.asarray(learned.z)[states]
    masks = None if learned.masks is None else np.asarray(learned.masks)[states]
    # As an agent breaks its ties: a key of the seed and the state.
    root = jax.random.key(learned.seed)
    keys = jax.vmap(lambda state: jax.random.fold_in(root, state))(np.asarray(states))
    names = tuple(str(a) for a in actions)
    told = {
        name: explain_all(z, policy, keys, masks=masks, names=names)
        for name, policy in learned.policies.items()
    }
    first = next(iter(told.values()))
    return {
        "states": {str(s): _numbers(e) for s, e in zip(states, first, strict=True)},
        "decisions": {
            name: {
                str(s): _decision(e, sentences) for s, e in zip(states, explanations, strict=True)
            }
            for name, explanations in told.items()
        },
    }


def _numbers(e: Explanation) -> dict[str, Any]:
    """What does not hang on the policy: particles, curves, table."""
    return {
        "z": [_digits(row) for row in e.z],
        "curve": [_digits(row) for row in e.cumulative_quantile],
        "frontier": [_digits(row) for row in _frontier(e.z)],
        "mean": _digits(e.mean),
        "std": numbers(e.std),
        "cvar": [_digits(row) for row in e.cvar],
    }


def _frontier(z: np.ndarray) -> np.ndarray:
    """`F^(2)` of each action at its own particles `[A, N]`, where alone it bends."""
    return np.stack([np.asarray(cumulative_cdf(row, row)) for row in z])


def _decision(e: Explanation, sentences: dict[str, int]) -> list[Any]:
    """Action, who decided, tied actions, sentences."""
    said = [sentences.setdefault(s, len(sentences)) for s in (*e.words, e.relations)]
    return [e.action, int(e.decided_by), [int(a) for a in np.flatnonzero(e.tied)], said]


def _digits(values: np.ndarray) -> list[float]:
    return [float(f"{v:.{DIGITS}g}") for v in np.asarray(values, dtype=float).tolist()]


def deciders(
    own: str | Policy | None, tolerance: float, *others: str | Policy
) -> dict[str, Policy]:
    """Policies to choose from, the run's own first, each under a name a reader knows."""
    found: dict[str, Policy] = {}
    for policy in [p for p in (own, *others) if p is not None]:
        made = policy_named(policy)
        if isinstance(policy, str) and "tolerance" not in policy:
            made = _with_tolerance(made, tolerance)
        found.setdefault(spoken(made), made)
    return found


def _with_tolerance(policy: Policy, tolerance: float) -> Policy:
    return replace(policy, tolerance=tolerance)


def spoken(policy: Policy) -> str:
    """`SSD, tolerance 0.0005`."""
    kind = {"SSD": "SSD", "Greedy": "greedy", "CVaR": "CVaR"}.get(
        type(policy).__name__, type(policy).__name__
    )
    own = [
        str(getattr(policy, f.name))
        for f in fields(policy)
        if f.name not in ("tolerance", "undecided")
    ]
    return f"{' '.join([kind, *own])}, tolerance {policy.tolerance:g}"
