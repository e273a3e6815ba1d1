"""What a task of the risk suite is: a finite process in which it is known which action is right.

Every task asks one of three questions. `tie`: two actions are worth the same, and one is surer:
take that one. `price`: the risky one is better by `PRICE` deviations of what it puts at stake: take
it, for safety at that price is too dear (CVaR buys it). `trap`: one action is dominated: leave it.

A task is a `TabularMDP` and what is known of it. The answer is exact: `envs.surest` finds the
actions of the best mean and, among them, of the least variance; that these dominate the others is
tested with exact return distributions (`envs.exact`) or, for Gaussian rewards, in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from surefoot.envs.dynamic import Surest, evaluate_policy, expected_visits, surest
from surefoot.envs.finite import TabularMDP
from surefoot.errors import InputError

QUESTIONS = ("tie", "price", "trap")
PRICE = 0.75
"""How much better the risky action is where it is, in deviations of what it puts at stake: less
than a CVaR of a level up to 0.45 asks for a Gaussian risk (0.88 deviations and more)."""
TRAP = 1.5
"""How far the dominated action lies below, in the same unit."""


class Moments(NamedTuple):
    """Of the return from the start."""

    mean: float
    deviation: float


@dataclass(frozen=True, eq=False)
class RiskTask:
    """A finite process with a question, and the two policies it is about."""

    name: str
    question: str
    mdp: TabularMDP
    sure: np.ndarray  # [S] actions of the policy that avoids the risk
    risky: np.ndarray  # [S] of the one that takes it
    asked: np.ndarray  # [S] bool: where the question is put
    actions: tuple[str, ...]
    cells: tuple[int, int]
    """Rows and columns the states are drawn in."""
    levels: tuple[str, ...] = ()
    """What the rows stand for; the columns are periods."""

    @property
    def title(self) -> str:
        return f"{self.name}, {self.question}"

    def place(self, state: int) -> str:
        """A state in words."""
        level, period = divmod(state, self.cells[1])
        said = f"period {period + 1} of {self.cells[1]}"
        return f"{said}, {self.levels[level]}" if self.levels else said

    @cached_property
    def answer(self) -> Surest:
        return surest(self.mdp)

    @cached_property
    def weights(self) -> np.ndarray:
        """[S]: share of the decisions that are asked for in each state, acting rightly."""
        visits = np.where(self.asked, expected_visits(self.mdp, self.answer.policy), 0.0)
        return visits / visits.sum()

    @cached_property
    def references(self) -> dict[str, Moments]:
        """Exact moments of the sure, the risky and the right policy."""
        policies = {"sure": self.sure, "risky": self.risky, "right": self.answer.policy}
        return {name: self.moments(policy) for name, policy in policies.items()}

    @property
    def unit(self) -> float:
        """The deviation of the risky policy's return, in which losses are counted."""
        return self.references["risky"].deviation

    def moments(self, policy: Any) -> Moments:
        """Of a policy that ends with certainty."""
        exact = evaluate_policy(self.mdp, policy, 1.0, only_reachable=True)
        start = self.mdp.start_distribution
        mean = float(start @ np.nan_to_num(exact.v_mean))
        between = (np.nan_to_num(exact.v_mean) - mean) ** 2
        variance = float(start @ (np.nan_to_num(exact.v_variance) + between))
        return Moments(mean, math.sqrt(max(variance, 0.0)))

    def share_right(self, policy: np.ndarray) -> float:
        """Share of the decisions asked for that are right; `policy` is [S] or [S, A]."""
        p = np.asarray(policy)
        chosen = np.eye(self.mdp.num_actions)[p] if p.ndim == 1 else p
        return float(self.weights @ np.sum(chosen * self.answer.actions, axis=1))


def positive(name: str, value: float) -> None:
    if not isinstance(value, Real) or not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} = {value}: it must be a positive number")
