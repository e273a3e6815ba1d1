"""Policies improved in all states at once, by what the returns of the old policy say.

A rule names the actions of a state it would have taken. Processes are small and random, and their
return distributions exact (`envs.exact`), so that "better" and "worse" need no tolerance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from surefoot.envs.exact import ExactProcess, ExactReturns, ReturnLaw, exact_process
from surefoot.envs.finite import TabularMDP

GAMMAS = (1.0, 0.75, 0.5)
QUARTERS = 4
REWARDS = 2  # whole numbers up to this size: equal means are common, and so is a choice of risks

Statistic = Callable[[ReturnLaw], Fraction]
Rule = Callable[[ExactReturns, int], set[int]]
"""The actions that a rule would have taken in a state; none: it does not decide there."""


class Case(NamedTuple):
    """A process and a policy to be improved there."""

    process: ExactProcess
    policy: np.ndarray  # [S, A]

    @property
    def returns(self) -> ExactReturns:
        return self.process.returns(self.policy)

    @property
    def start(self) -> int:
        return int(self.process.mdp.start)


# --- rules -------------------------------------------------------------------------------


def mean(law: ReturnLaw) -> Fraction:
    return law.mean


def best(score: Statistic) -> Rule:
    """The actions of the best score."""

    def rule(returns: ExactReturns, state: int) -> set[int]:
        scores = {a: score(law) for a, law in returns.pairs[state].items()}
        top = max(scores.values())
        return {a for a, value in scores.items() if value == top}

    return rule


def dominant(returns: ExactReturns, state: int) -> set[int]:
    """The actions that dominate every other one of the state."""
    laws = returns.pairs[state]
    return {a for a, x in laws.items() if all(x.dominates(y) for y in laws.values())}


def above_policy(returns: ExactReturns, state: int) -> set[int]:
    """The actions that strictly dominate what the policy has: all that the theorem asks for."""
    own = returns.states[state]
    return {a for a, x in returns.pairs[state].items() if x != own and x.dominates(own)}


def dominant_or_mean(returns: ExactReturns, state: int) -> set[int]:
    """Dominance, and where it does not decide the larger mean: the paper's fallback."""
    return dominant(returns, state) or best(mean)(returns, state)


# --- improvement -------------------------------------------------------------------------


class Improvement(NamedTuple):
    """A policy before and after all states were improved by a rule."""

    old: ExactReturns
    new: ExactReturns
    policy: np.ndarray  # the new one
    changed: bool

    @property
    def broken(self) -> bool:
        """Whether a return of the new policy fails to dominate that of the old one, in any state
        or after any action."""
        states = zip(self.new.states, self.old.states, strict=True)
        pairs = (
            (law, old[a])
            for new, old in zip(self.new.pairs, self.old.pairs, strict=True)
            for a, law in new.items()
        )
        return not all(x.dominates(y) for x, y in itertools.chain(states, pairs))

    def worse(self, state: int, score: Statistic) -> bool:
        return self.changed and score(self.new.states[state]) < score(self.old.states[state])

    def worse_somewhere(self, score: Statistic) -> bool:
        return any(self.worse(state, score) for state in range(len(self.new.states)))


def improve(case: Case, rule: Rule, old: ExactReturns | None = None) -> Improvement:
    """Where the rule decides, its first action, unless the policy takes only such already;
    elsewhere the old policy. `old` are the policy's returns, if they are known."""
    old = case.returns if old is None else old
    policy = case.policy.copy()
    for state, row in enumerate(case.policy):
        actions = rule(old, state)
        if actions and not set(np.flatnonzero(row).tolist()) <= actions:
            policy[state] = np.eye(len(row))[min(actions)]
    changed = not np.array_equal(policy, case.policy)
    new = case.process.returns(policy) if changed else old
    return Improvement(old, new, policy, changed)


def settle(case: Case, rule: Rule) -> Case:
    """The policy at which the rule changes nothing more. Where episodes end it is reached: the
    last states settle first."""
    while (step := improve(case, rule)).changed:
        case = case._replace(policy=step.policy)
    return case


# --- processes ---------------------------------------------------------------------------


def random_case(
    rng: np.random.Generator, states: int = 5, actions: int = 3, outcomes: int = 3
) -> Case:
    """At most so many states, actions and outcomes, at least 2, 2 and 1.

    Every episode ends, since states follow each other in one direction (hidden by a shuffle of
    their numbers). Some actions are masked, some outcomes cannot happen, half of the policies are
    random; probabilities are quarters.
    """
    size = int(rng.integers(2, states + 1))
    shape = (size, int(rng.integers(2, actions + 1)), int(rng.integers(1, outcomes + 1)))
    place = np.arange(size)[:, None, None]
    forward = place + 1 + rng.integers(0, size, shape) % np.maximum(size - 1 - place, 1)
    terminal = (rng.random(shape) < 0.25) | (place == size - 1)
    mask = rng.random(shape[:2]) < 0.85
    mask[np.arange(size), rng.integers(0, shape[1], size)] = True
    number = rng.permutation(size)  # of the state at each place
    back = np.argsort(number)
    mdp = TabularMDP(
        next_state=number[np.minimum(forward, size - 1)][back],
        probability=_quarters(rng, np.ones(shape, bool))[back],
        reward_mean=rng.integers(-REWARDS, REWARDS + 1, shape)[back],
        terminal=terminal[back],
        start=int(number[0]),
        mask=mask[back],
    )
    policy = _quarters(rng, mask if rng.random() < 0.5 else _one_of(rng, mask))[back]
    return Case(exact_process(mdp, float(rng.choice(GAMMAS))), policy)


def _quarters(rng: np.random.Generator, allowed: np.ndarray) -> np.ndarray:
    """Random probabilities along the last axis: four draws among what is allowed."""
    likely = np.where(allowed, rng.dirichlet(np.ones(allowed.shape[-1]), allowed.shape[:-1]), 0.0)
    return rng.multinomial(QUARTERS, likely / likely.sum(axis=-1, keepdims=True)) / QUARTERS


def _one_of(rng: np.random.Generator, allowed: np.ndarray) -> np.ndarray:
    chosen = np.argmax(np.where(allowed, rng.random(allowed.shape), -1.0), axis=-1)
    return np.eye(allowed.shape[-1], dtype=bool)[chosen]


class Fork(NamedTuple):
    """The least process in which a choice made in one state can hurt in another.

    State 0 has one action: with probability `go_on` to state 1, else the end with reward `exit`.
    State 1 ends with the reward `sure` (action 0), or by a coin (action 1): `good` with
    probability `luck`, else `bad`.
    """

    go_on: float
    exit: int
    sure: int
    luck: float
    good: int
    bad: int

    def case(self, action: int) -> Case:
        """With the policy that takes `action` in state 1."""
        mdp = TabularMDP(
            next_state=np.array([[[1, 0]] * 2, [[0, 0]] * 2]),
            probability=[
                [[self.go_on, 1 - self.go_on]] * 2,
                [[1.0, 0.0], [self.luck, 1 - self.luck]],
            ],
            reward_mean=[[[0, self.exit]] * 2, [[self.sure, 0], [self.good, self.bad]]],
            terminal=[[[False, True]] * 2, [[True, True]] * 2],
            mask=[[True, False], [True, True]],
        )
        return Case(exact_process(mdp, 1.0), np.eye(2)[[0, action]])


def forks(largest: int) -> Iterator[Fork]:
    """All with quarters and whole rewards up to `largest`, those with small rewards first."""
    chances = [k / QUARTERS for k in range(1, QUARTERS)]
    rewards = range(-largest, largest + 1)
    every = itertools.product(chances, rewards, rewards, chances, rewards, rewards)
    proper = (fork for fork in itertools.starmap(Fork, every) if fork.good > fork.bad)
    yield from sorted(proper, key=lambda f: abs(f.exit) + abs(f.sure) + abs(f.good) + abs(f.bad))


class Counterexample(NamedTuple):
    """A fork whose start became worse when state 1 became better, by one and the same score."""

    fork: Fork
    old_action: int
    new_action: int
    step: Improvement


def smallest_counterexample(score: Statistic, largest: int = REWARDS) -> Counterexample:
    for fork, action in itertools.product(forks(largest), (0, 1)):
        case = fork.case(action)
        step = improve(case, best(score))
        if step.worse(case.start, score):
            return Counterexample(fork, action, int(np.argmax(step.policy[1])), step)
    raise LookupError(f"no counterexample with rewards up to {largest}")
