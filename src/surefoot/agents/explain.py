"""A decision in words and numbers: what each action offers, who decided and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from gymnasium.spaces import Discrete

from surefoot.core.array import as_float, namespace, refuse_masked
from surefoot.core.markup import html_lines, html_table
from surefoot.core.particles import cumulative_quantile, cvar, mean, std
from surefoot.envs.discrete import space_size
from surefoot.policies import (
    POLICIES,
    DecidedBy,
    Decision,
    Policy,
    decide_rows,
    policy_text,
    precision,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-5  # of a lead in float32
CURVE = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)  # levels of the CVaR curve in the text
WORDS = {
    DecidedBy.SCORE: "its score is the best",
    DecidedBy.DOMINANCE: "its return dominates every other action's in the second order",
    DecidedBy.TIE_BREAK: "several actions are equal up to the tolerance; one of them was drawn",
    DecidedBy.FALLBACK: "no action dominates all others; the fallback chose",
    DecidedBy.EXPLORATION: "it was drawn at random to explore",
}
ALONE = "the mean alone decided: every action that is worth the same is as sure"
EVIDENCE_WORDS = WORDS | {
    DecidedBy.SCORE: "its mean is the best, and no other action makes up for that",
    DecidedBy.DOMINANCE: "of the actions that are worth the same, it is the surest",
    DecidedBy.TIE_BREAK: "several actions are worth the same and equally sure; one was drawn",
    DecidedBy.FALLBACK: "of the actions that are worth the same none is the surest at every level; "
    "the fallback chose",
}

# What actions are called, where the environment itself only numbers them.
ACTIONS = {
    "CartPole": ("push left", "push right"),
    "MountainCar": ("push left", "coast", "push right"),
    "Acrobot": ("torque -1", "no torque", "torque +1"),
    "LunarLander": ("coast", "left engine", "main engine", "right engine"),
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Blackjack": ("stick", "hit"),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
}


def known_action_names(env_name: str, space: Any) -> tuple[str, ...]:
    """What an environment's actions are known as, else their numbers."""
    names, size = ACTIONS.get(env_name.split("-")[0], ()), space_size(space, "action_space")
    start = int(space.start) if isinstance(space, Discrete) else 0
    return names if len(names) == size else tuple(str(start + a) for a in range(size))


def observation_text(obs: Any, most: int = 8) -> str:
    """An observation of any kind in a few words: its first numbers, by name where they have one."""
    if isinstance(obs, dict):
        return "; ".join(f"{name} {observation_text(part, most)}" for name, part in obs.items())
    if isinstance(obs, tuple) and any(np.ndim(part) for part in obs):
        return "; ".join(observation_text(part, most) for part in obs)
    try:
        values = [f"{value:.4g}" for value in np.asarray(obs, dtype=float).ravel()[:most]]
    except (TypeError, ValueError):  # a text, or a tuple with a dict in it
        return " ".join(str(obs).split())[:80]
    return ", ".join(values) + (" ..." if np.size(obs) > most else "")


def mean_alone(decided: Any) -> np.ndarray:
    """Whether the mean alone explains a `Decision`, a batch of them, or an `Explanation`.

    Everybody that is worth the same is as sure as the action: about their means the curves `F^-2`
    agree. Dominance sees the mean too, so it may have said so all the same: of particles that have
    collapsed to one value nothing else is left.
    """
    at = np.asarray(decided.action)[..., None]
    lead = np.take_along_axis(np.asarray(decided.violations), at[..., None], axis=-1)[..., 0]
    gap = np.asarray(decided.gap)
    ahead = gap - np.take_along_axis(gap, at, axis=-1)  # what of the lead is that of the mean
    apart = np.maximum(lead - ahead, np.asarray(decided.surer)) > ROUNDING * lead
    others = np.asarray(decided.tied) & (np.arange(gap.shape[-1]) != at)
    return ~(others & apart).any(axis=-1)


@dataclass(frozen=True)
class Explanation:
    """Why an action was taken; `str()` is meant to be read."""

    action: int
    decided_by: DecidedBy
    tied: np.ndarray  # [A] worth the same as the best mean
    margin: float  # lead of F^-2 over the best of the others, where it is largest
    violations: np.ndarray  # [A, A] shortfall of F^-2 of a below b
    dominates: np.ndarray  # [A, A] second order, with the policy's tolerance
    z: np.ndarray  # [A, N]
    mean: np.ndarray  # [A]
    std: np.ndarray  # [A]
    cvar: np.ndarray  # [A, len(CURVE)]
    cumulative_quantile: np.ndarray  # [A, N] F^-2 at the breakpoints
    gap: np.ndarray  # [A] how far the mean lies below the best
    error: np.ndarray  # [A] standard error of that gap, infinite where nothing is known of it
    surer: np.ndarray  # [A] how far its centred F^-2 rises above that of the action taken
    names: tuple[str, ...]  # of the actions
    tolerance: float | None = 0.0  # what the policy takes for equal; None: it asks the evidence
    standard_errors: float = 0.0  # within which two means are worth the same, if it does
    policy: str = ""  # who was asked

    @property
    def by_mean_alone(self) -> bool:
        """Whether what dominance decided follows from the mean, which it sees too."""
        return self.decided_by is DecidedBy.DOMINANCE and bool(mean_alone(self))

    @property
    def words(self) -> tuple[str, ...]:
        """The decision in sentences: who decided, between which actions, by how much."""
        if self.tolerance is None:
            return (*self._decision_by_evidence(), *self._what_is_known())
        said = [f"action {self.names[self.action]}: {WORDS[self.decided_by]}"]
        ties = [self.names[a] for a in np.flatnonzero(self.tied)]
        if len(ties) > 1:
            said.append(f"best mean, up to the tolerance: {', '.join(ties)}")
        if self.by_mean_alone:
            said.append(ALONE)
        elif self.decided_by is DecidedBy.DOMINANCE and len(ties) > 1:
            said.append(
                f"it leads by up to {self.margin:.4g} on the curve of lower-tail sums (F^-2)"
            )
        return tuple(said)

    def _decision_by_evidence(self) -> list[str]:
        unknown = not np.isfinite(self.error[self.tied]).all()
        why = EVIDENCE_WORDS[self.decided_by]
        if self.decided_by is DecidedBy.FALLBACK and unknown:
            why = "its mean is the best, but too little is known of it to compare"
        others = [int(a) for a in np.flatnonzero(self.tied) if a != self.action]
        if self.decided_by is not DecidedBy.DOMINANCE:
            return [f"action {self.names[self.action]}: {why}"]
        if self.by_mean_alone:
            return [f"action {self.names[self.action]}: {ALONE}"]
        lead = [f"{self.names[a]} by up to {-self._lowest(int(a)):.4g}" for a in others]
        by = f"surer than {', '.join(lead)} on the curve of lower-tail sums about the mean"
        return [f"action {self.names[self.action]}: {why}", by]

    def _lowest(self, a: int) -> float:
        """How far the centred curve of `a` falls below the chosen action's, at most (negative)."""
        centred = self.z - self.z.mean(axis=-1, keepdims=True)
        curve = centred.cumsum(axis=-1) / self.z.shape[-1]
        return float((curve[a] - curve[self.action]).min())

    def _what_is_known(self) -> list[str]:
        """The gap of each other action to the best mean, and what more data would do."""
        said, best = [], int(np.flatnonzero(self.gap == 0)[0]) if (self.gap == 0).any() else 0
        for a, name in enumerate(self.names):
            gap, error = float(self.gap[a]), float(self.error[a])
            if a == best:
                continue
            if not np.isfinite(error):
                said.append(
                    f"{name} cannot be compared with {self.names[best]}: too few observations"
                )
            elif self.tied[a]:
                more = "more data may tell them apart"
                if gap > 0:
                    times = max((self.standard_errors * error / gap) ** 2, 1)
                    often = f"{times:.2g}" if times < 100 else f"{float(f'{times:.2g}'):,.0f}"
                    often = often if times < 1e6 else "more than a million"
                    more = f"a gap of this size would show with {often} times the data"
                said.append(
                    f"{name} and {self.names[best]} are worth the same as far as the data tell: "
                    f"gap {gap:.3g}, standard error {error:.2g}; {more}"
                )
            elif gap <= self.standard_errors * error:
                said.append(
                    f"{name} may be worth less than {self.names[best]}, and no surety makes up for "
                    f"it: gap {gap:.3g}, standard error {error:.2g}"
                )
            else:
                said.append(
                    f"{name} is worth less than {self.names[best]}: gap {gap:.3g}, standard error "
                    f"{error:.2g}"
                )
        return said

    @property
    def relations(self) -> str:
        """Who dominates whom, all pairs."""
        over = [
            f"{self.names[a]} over {self.names[b]}"
            for a, b in zip(*np.nonzero(self.dominates), strict=True)
            if a != b
        ]
        return f"second-order dominance: {', '.join(over) or 'none'}"

    def __str__(self) -> str:
        width = max(8, *map(len, self.names))
        head, *rows = self._rows()
        lines = [f"  {head[0]:>{width}} " + " ".join(f"{text:>11}" for text in head[1:])]
        for a, (name, *numbers) in enumerate(rows):
            mark = "->" if a == self.action else "  "
            lines.append(f"{mark}{name:>{width}} " + " ".join(f"{text:>11}" for text in numbers))
        return "\n".join([*self.words, *lines, self.relations])

    def _rows(self) -> list[tuple[str, ...]]:
        """What each action offers, below the names of the columns."""
        rows = [("action", "mean", "deviation", *(f"CVaR {level:g}" for level in CURVE))]
        for a, name in enumerate(self.names):
            numbers = (self.mean[a], self.std[a], *self.cvar[a])
            rows.append((name, *(f"{value:.5g}" for value in numbers)))
        return rows

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        head, *rows = self._rows()
        table = html_table(head, rows, strong=self.action)
        return f"<div>{html_lines(self.words)}{table}<p>{escape(self.relations)}</p></div>"

    def figure(self, title: str = "") -> Figure:
        """A matplotlib figure: distributions, `F^-2` and dispersion space of the actions."""
        from surefoot.plots import draw_decision

        return draw_decision(self, title)


def explain(
    z: Any,
    policy: Policy,
    key: jax.Array,
    *,
    mask: Any = None,
    n: Any = None,
    names: tuple[str, ...] | None = None,
) -> Explanation:
    """Decide on particles `z[A, N]` that rest on `n[A]` observations, or on an ensemble
    `z[E, A, N]`, and say why."""
    z = np.sort(_particles(z), axis=-1)
    decision = policy.decide(z, key, mask, n=n, assume_sorted=True)
    decided = jax.tree.map(lambda leaf: np.asarray(leaf)[None], decision)
    return _explanations(z[None], policy, decided, names)[0]


def explain_all(
    z: Any,
    policy: Policy,
    keys: jax.Array,
    *,
    masks: Any = None,
    n: Any = None,
    names: tuple[str, ...] | None = None,
) -> list[Explanation]:
    """`explain` for every row of `z[B, A, N]` (with `n[B, A]`) or of ensembles `z[B, E, A, N]`,
    each with its own key, decided in one compiled call."""
    z = np.sort(_particles(z), axis=-1)
    shape = z.shape[0], z.shape[-2]
    masks = np.ones(shape, bool) if masks is None else np.asarray(masks, bool)
    with precision(z):  # float64 stays float64
        decided = jax.device_get(decide_rows(policy, z, keys, masks, n))
    return _explanations(z, policy, decided, names)


def _particles(z: Any) -> np.ndarray:
    """As NumPy floats in their own precision, so that the words are about what was decided."""
    refuse_masked(z, "z")
    return np.asarray(as_float(namespace(z=np.asarray(z)), np.asarray(z)))


def _explanations(
    z: np.ndarray, policy: Policy, decided: Decision, names: tuple[str, ...] | None
) -> list[Explanation]:
    """Explanations of `z[B, A, N]`; all numbers are computed for all rows at once."""
    z = z.mean(axis=1) if z.ndim == 4 else z
    each: dict[str, Any] = {
        "tied": decided.tied,
        "violations": decided.violations,
        "gap": decided.gap,
        "error": decided.error,
        "surer": decided.surer,
        "dominates": decided.violations <= (policy.tolerance or 0.0),  # rule of `core.dominance`
        "z": z,
        "mean": mean(z),
        "std": std(z),
        "cvar": np.stack([cvar(z, level, assume_sorted=True) for level in CURVE], axis=-1),
        "cumulative_quantile": cumulative_quantile(z, assume_sorted=True),
    }
    return [
        Explanation(
            action=int(decided.action[b]),
            decided_by=DecidedBy(int(decided.decided_by[b])),
            margin=float(decided.margin[b]),
            **{name: np.asarray(values[b]) for name, values in each.items()},
            names=names or tuple(str(a) for a in range(z.shape[1])),
            tolerance=policy.tolerance,
            standard_errors=getattr(policy, "standard_errors", 0.0),
            policy=_name_of(policy),
        )
        for b in range(len(z))
    ]


def _name_of(policy: Policy) -> str:
    """As the command line writes it, or the class for a policy of somebody's own."""
    return policy_text(policy) if type(policy) in POLICIES.values() else type(policy).__name__
