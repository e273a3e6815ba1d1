"""A decision in words and numbers: what each action offers, who decided and by how much."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from gymnasium.spaces import Discrete

from surefoot.core.array import as_float, namespace
from surefoot.core.particles import cumulative_quantile, cvar, mean, std
from surefoot.envs.discrete import space_size
from surefoot.policies import POLICIES, DecidedBy, Decision, Policy, policy_text, precision

CURVE = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)  # levels of the CVaR curve in the text
WORDS = {
    DecidedBy.SCORE: "its score is the best",
    DecidedBy.DOMINANCE: "its return dominates every other action's in the second order",
    DecidedBy.TIE_BREAK: "several actions are equal up to the tolerance; one of them was drawn",
    DecidedBy.FALLBACK: "no action dominates all others; the fallback chose",
    DecidedBy.EXPLORATION: "it was drawn at random to explore",
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


@dataclass(frozen=True)
class Explanation:
    """Why an action was taken; `str()` is meant to be read."""

    action: int
    decided_by: DecidedBy
    tied: np.ndarray  # [A] mean within the tolerance of the best
    margin: float  # lead of F^-2 over the best of the others, where it is largest
    violations: np.ndarray  # [A, A] shortfall of F^-2 of a below b
    dominates: np.ndarray  # [A, A] second order, with the policy's tolerance
    z: np.ndarray  # [A, N]
    mean: np.ndarray  # [A]
    std: np.ndarray  # [A]
    cvar: np.ndarray  # [A, len(CURVE)]
    cumulative_quantile: np.ndarray  # [A, N] F^-2 at the breakpoints
    names: tuple[str, ...]  # of the actions
    tolerance: float = 0.0  # what the policy takes for equal, in units of the return
    policy: str = ""  # who was asked

    @property
    def words(self) -> tuple[str, ...]:
        """The decision in sentences: who decided, between which actions, by how much."""
        said = [f"action {self.names[self.action]}: {WORDS[self.decided_by]}"]
        ties = [self.names[a] for a in np.flatnonzero(self.tied)]
        if len(ties) > 1:
            said.append(f"best mean, up to the tolerance: {', '.join(ties)}")
        if self.decided_by is DecidedBy.DOMINANCE and len(ties) > 1:
            said.append(
                f"it leads by up to {self.margin:.4g} on the curve of lower-tail sums (F^-2)"
            )
        return tuple(said)

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
        rows = [
            f"{'':2}{'action':>{width}} {'mean':>11} {'deviation':>11} "
            + " ".join(f"{f'CVaR {level:g}':>11}" for level in CURVE)
        ]
        for a, name in enumerate(self.names):
            mark = "->" if a == self.action else "  "
            numbers = (self.mean[a], self.std[a], *self.cvar[a])
            rows.append(f"{mark}{name:>{width}} " + " ".join(f"{v:>11.5g}" for v in numbers))
        return "\n".join([*self.words, *rows, self.relations])


def explain(
    z: Any,
    policy: Policy,
    key: jax.Array,
    *,
    mask: Any = None,
    names: tuple[str, ...] | None = None,
) -> Explanation:
    """Decide on particles `z[A, N]` and say why."""
    z = np.sort(_particles(z), axis=-1)
    decision = policy.decide(z, key, mask, assume_sorted=True)
    decided = jax.tree.map(lambda leaf: np.asarray(leaf)[None], decision)
    return _tell(z[None], policy, decided, names)[0]


def explain_all(
    z: Any,
    policy: Policy,
    keys: jax.Array,
    *,
    masks: Any = None,
    names: tuple[str, ...] | None = None,
) -> list[Explanation]:
    """`explain` for every row of `z[B, A, N]` with its own key, decided in one compiled call."""
    z = np.sort(_particles(z), axis=-1)
    masks = np.ones(z.shape[:2], bool) if masks is None else np.asarray(masks, bool)
    with precision(z):  # float64 stays float64
        decided = jax.device_get(_decide_all(policy, z, keys, masks))
    return _tell(z, policy, decided, names)


def _particles(z: Any) -> np.ndarray:
    """As NumPy floats in their own precision, so that the words are about what was decided."""
    return np.asarray(as_float(namespace(z=np.asarray(z)), np.asarray(z)))


@functools.partial(jax.jit, static_argnums=0)
def _decide_all(policy: Policy, z: jax.Array, keys: jax.Array, masks: jax.Array) -> Decision:
    return jax.vmap(functools.partial(policy.decide, assume_sorted=True))(z, keys, masks)


def _tell(
    z: np.ndarray, policy: Policy, decided: Decision, names: tuple[str, ...] | None
) -> list[Explanation]:
    """Explanations of `z[B, A, N]`; all numbers are computed for all rows at once."""
    each: dict[str, Any] = {
        "tied": decided.tied,
        "violations": decided.violations,
        "dominates": decided.violations <= policy.tolerance,  # the rule of `core.dominance`
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
            policy=_name_of(policy),
        )
        for b in range(len(z))
    ]


def _name_of(policy: Policy) -> str:
    """As the command line writes it, or the class for a policy of somebody's own."""
    return policy_text(policy) if type(policy) in POLICIES.values() else type(policy).__name__
