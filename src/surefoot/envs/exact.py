"""Return distributions of finite processes without any rounding: all numbers are integers.

Floats are fractions with a power of two below the line, so an MDP of quarters and whole rewards
has an exact distribution of its return wherever every episode ends after finitely many steps,
whatever is done. Values are counted in one unit small enough for all of them, and so are
probabilities: no verdict on such distributions can be made or hidden by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from surefoot.envs.dynamic import check_gamma, policy_probabilities
from surefoot.envs.finite import TabularMDP, check_process
from surefoot.errors import InputError, real, shown


class ReturnLaw(NamedTuple):
    """The return is `values[i] / unit` with probability `weights[i] / total`.

    Two laws of one process (same unit) are the same tuple exactly where they are the same law.
    """

    values: tuple[int, ...]  # ascending
    weights: tuple[int, ...]  # positive, without a common divisor
    unit: int
    total: int

    @property
    def atoms(self) -> dict[Fraction, Fraction]:
        """Probability of each value."""
        pairs = zip(self.values, self.weights, strict=True)
        return {Fraction(z, self.unit): Fraction(w, self.total) for z, w in pairs}

    @property
    def mean(self) -> Fraction:
        added = sum(z * w for z, w in zip(self.values, self.weights, strict=True))
        return Fraction(added, self.total * self.unit)

    def cvar(self, level: float | Fraction) -> Fraction:
        """Mean of the worst share `level`, which lies in (0, 1]."""
        share = level if isinstance(level, Fraction) else real(level)
        if not 0 < share <= 1:
            raise InputError(f"level = {shown(level)}: it must lie in (0, 1]")
        up, down = share.as_integer_ratio()
        left, added = up * self.total, 0
        for z, w in zip(self.values, self.weights, strict=True):
            taken = min(left, down * w)
            added, left = added + taken * z, left - taken
        return Fraction(added, up * self.total * self.unit)

    def dominates(self, other: ReturnLaw, order: int = 2) -> bool:
        """Second order: `E(t - X)^+ <= E(t - Y)^+` at every t, where X is this law (eq. 1); first
        order: the same of `P(X <= t)`."""
        if order not in (1, 2):
            raise InputError(f"order is {order}: it must be 1 or 2")
        return all(each[order - 1] <= 0 for each in self._excess(other))

    def violation(self, other: ReturnLaw) -> Fraction:
        """The largest `E(t - X)^+ - E(t - Y)^+`, which is also the largest shortfall of `F^-2`."""
        worst = max(0, *(shortfall for _, shortfall in self._excess(other)))
        return Fraction(worst, self.total * other.total * self.unit)

    def _excess(self, other: ReturnLaw) -> Iterator[tuple[int, int]]:
        """This law's `P(X <= t)` and `E(t - X)^+` less the other's, in whole numbers.

        They jump and bend only at values, so those are all the t to look at; right of them the
        second stays the difference of the means.
        """
        if self.unit != other.unit:
            raise InputError("the laws count in different units: compare those of one process")
        jumps = {z: w * other.total for z, w in zip(self.values, self.weights, strict=True)}
        for z, w in zip(other.values, other.weights, strict=True):
            jumps[z] = jumps.get(z, 0) - w * self.total
        below = shortfall = last = 0
        for t in sorted(jumps):
            shortfall += below * (t - last)
            below, last = below + jumps[t], t
            yield below, shortfall


class ExactReturns(NamedTuple):
    """The law of the return from each state, and by feasible action there."""

    states: tuple[ReturnLaw, ...]
    pairs: tuple[dict[int, ReturnLaw], ...]


class ExactOutcome(NamedTuple):
    """What an action can lead to, in integers."""

    weight: int  # probability times `chances` of the process
    reward: int  # times `reward_unit` of the process
    next_state: int | None  # None: the episode ends


_Law = dict[int, int]  # weight of each value, while it is being computed


@dataclass(frozen=True)
class ExactProcess:
    """A finite process in integers; `exact_process` reads it from a `TabularMDP`."""

    mdp: TabularMDP
    gamma: Fraction
    outcomes: tuple[dict[int, list[ExactOutcome]], ...]
    """Of each state, by feasible action."""
    chances: int
    reward_unit: int
    order: tuple[int, ...]
    """Of the states: whatever can follow a state comes before it."""
    steps: int
    """Of the longest episode."""

    def returns(self, policy: Any) -> ExactReturns:
        """The law of the discounted return of `policy` ([S, A] or [S]), state by state."""
        acting, tosses = _integers(policy_probabilities(self.mdp, policy))
        _check_sums("policy", acting, tosses)
        up, down = self.gamma.as_integer_ratio()
        # From a state whose longest episode has k steps a return is a multiple of 1 / down^(k - 1),
        # in units of the rewards, and its probability one of 1 / (chances * tosses)^k. So counted,
        # every division in `_mixture` comes out even.
        scale = down ** (self.steps - 1)
        total = (self.chances * tosses) ** self.steps
        states: dict[int | None, _Law] = {None: {0: total}}
        pairs: dict[int, dict[int, _Law]] = {}
        for s in self.order:
            pairs[s] = {
                a: _mixture(
                    [(o.weight, o.reward * scale, states[o.next_state]) for o in outcomes],
                    self.chances, up, down,
                )
                for a, outcomes in self.outcomes[s].items()
            }  # fmt: skip
            states[s] = _mixture([(acting[s, a], 0, law) for a, law in pairs[s].items()], tosses)
        unit = self.reward_unit * scale
        return ExactReturns(
            tuple(_law(states[s], unit) for s in sorted(self.order)),
            tuple({a: _law(law, unit) for a, law in pairs[s].items()} for s in sorted(self.order)),
        )


def exact_process(mdp: TabularMDP, gamma: float | Fraction) -> ExactProcess:
    """The process in integers, for exact laws of its returns.

    Rewards must be certain once the outcome is known, probabilities must add up to one exactly
    (quarters do, thirds do not), and no state may be met twice in an episode, whatever is done.
    """
    check_process(mdp)
    check_gamma(gamma)
    if np.any(np.asarray(mdp.reward_std) > 0):
        raise InputError("reward_std is not zero: a normal reward has no finite distribution")
    chance, chances = _integers(mdp.probability)
    reward, reward_unit = _integers(mdp.reward_mean)
    _check_sums("probability", chance, chances)
    outcomes = tuple(
        {
            a: [
                ExactOutcome(
                    chance[s, a, m], reward[s, a, m],
                    None if mdp.terminal[s, a, m] else int(mdp.next_state[s, a, m]),
                )
                for m in range(mdp.num_outcomes)
                if chance[s, a, m]  # what cannot happen leads nowhere
            ]
            for a in range(mdp.num_actions)
            if mdp.feasible[s, a]
        }
        for s in range(mdp.num_states)
    )  # fmt: skip
    after = [
        {o.next_state for each in actions.values() for o in each if o.next_state is not None}
        for actions in outcomes
    ]
    order, steps = _order(after)
    return ExactProcess(mdp, Fraction(gamma), outcomes, chances, reward_unit, order, steps)


def _order(after: list[set[int]]) -> tuple[tuple[int, ...], int]:
    """The states with the last ones first, and the steps of the longest episode."""
    try:
        order = tuple(TopologicalSorter(dict(enumerate(after))).static_order())
    except CycleError as error:
        raise InputError(
            f"state {error.args[1][0]} can be met twice in an episode: its return has no finite "
            "distribution"
        ) from None
    longest: dict[int, int] = {}
    for s in order:
        longest[s] = 1 + max((longest[then] for then in after[s]), default=0)
    return order, max(longest.values())


def _mixture(
    parts: Iterable[tuple[int, int, _Law]], chances: int, up: int = 1, down: int = 1
) -> _Law:
    """`shift + (up / down) Z` of each part's law, with probability `weight / chances`."""
    mixed: _Law = {}
    for weight, shift, law in parts:
        if weight:
            for z, w in law.items():
                value = shift + up * z // down
                mixed[value] = mixed.get(value, 0) + weight * w // chances
    return mixed


def _law(law: _Law, unit: int) -> ReturnLaw:
    values = tuple(sorted(law))
    common = math.gcd(*law.values())
    weights = tuple(law[z] // common for z in values)
    return ReturnLaw(values, weights, unit, sum(weights))


def _integers(x: Any) -> tuple[np.ndarray, int]:
    """`x` times the least number that makes all of it whole, and that number."""
    x = np.asarray(x)
    ratios = [v.as_integer_ratio() for v in x.ravel().tolist()]
    common = math.lcm(*(below for _, below in ratios))
    made = np.empty(x.size, object)  # Python's integers: as large as they need to be
    made[:] = [above * (common // below) for above, below in ratios]
    return made.reshape(x.shape), common


def _check_sums(name: str, weights: np.ndarray, chances: int) -> None:
    wrong = np.argwhere(weights.sum(axis=-1) != chances)
    if wrong.size:
        raise InputError(
            f"{name}[{', '.join(map(str, wrong[0]))}] adds up to one only after rounding: an exact "
            "return needs probabilities such as quarters, which floats hold exactly"
        )
