"""The finite tasks of the risk suite; the three questions are those of `envs.risk`.

| task | the sure action | the risky action | trap |
|---|---|---|---|
| `risky-cliff` | over the top row | along the cliff, Gaussian rewards | along the cliff, worse |
| `insurance` | buy cover | carry the risk of a loss | no cover, though it costs less than fair |
| `two-suppliers` | the reliable one | delivers or has to be replaced, by a coin | and costs more |
| `maintenance` | repair now | run on, and perhaps break | repair, dearer than a breakdown |
| `many-equals` | one certain reward | m noisy ones | the certain one, below the worst noisy one |
| `portfolio` | a mix of two assets | all in one of them | the asset that is worse and riskier |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from surefoot.envs.cliffs import ACTION_NAMES, CliffGrid, risky_cliff
from surefoot.envs.finite import TabularMDP
from surefoot.envs.risk import PRICE, QUESTIONS, TRAP, RiskTask, positive
from surefoot.errors import InputError, at_least, unknown

MOST_PAIRS = 1_000_000  # of states and actions
LayerOutcome = tuple[float, float, int] | tuple[float, float, int, float]
"""Probability, reward, next level, and the deviation of the reward if it is Gaussian."""


def _layered(
    periods: int,
    levels: int,
    actions: int,
    outcomes: Callable[[int, int, int], Sequence[LayerOutcome]],
    scale: float,
    start: int = 0,
) -> TabularMDP:
    """A process of so many periods; state = level * periods + period."""
    positive("scale", scale)
    _bounded(periods, levels, actions)
    table = {
        (level * periods + t, a): outcomes(t, level, a)
        for level in range(levels)
        for t in range(periods)
        for a in range(actions)
    }
    shape = (levels * periods, actions, max(map(len, table.values())))
    chance, mean, std = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    then, over = np.zeros(shape, int), np.ones(shape, bool)
    for (s, a), listed in table.items():
        t = s % periods
        for m, (p, reward, level, *deviation) in enumerate(listed):
            at = (s, a, m)
            chance[at], mean[at] = p, scale * reward
            std[at] = scale * deviation[0] if deviation else 0.0
            if t + 1 < periods:
                then[at], over[at] = level * periods + t + 1, False
    return TabularMDP(then, chance, mean, std, over, start=start * periods)


def _bounded(periods: int, levels: int, actions: int) -> None:
    """Refuse, before anything is made, what no table could learn."""
    if periods * levels * actions > MOST_PAIRS:
        raise InputError(
            f"{periods * levels:,} states x {actions:,} actions: at most {MOST_PAIRS:,} "
            "pairs of them"
        )


def _everywhere(mdp: TabularMDP, action: int) -> np.ndarray:
    return np.full(mdp.num_states, action)


def _lead(question: str, price: float, trap: float = -TRAP) -> float:
    """By how many deviations the risky action is better."""
    if question not in QUESTIONS:
        raise unknown("question", question, QUESTIONS)
    positive("price", price)
    return {"tie": 0.0, "price": float(price), "trap": trap}[question]


def risky_cliff_task(
    question: str = "tie",
    *,
    rows: int = 4,
    columns: int = 12,
    sigma: float = 1.0,
    price: float = PRICE,
    scale: float = 1.0,
) -> RiskTask:
    """Section 5.4's cliff: where the paths part, up (sure) or right (along the cliff).

    The return along the cliff is Gaussian with deviation sqrt(columns - 2) sigma; the bonus is
    counted in it.
    """
    lead = _lead(question, price)
    positive("sigma", sigma)
    positive("scale", scale)
    grid = CliffGrid(rows, columns)
    mdp = risky_cliff(
        rows,
        columns,
        sigma * scale,
        step_reward=-scale,
        cliff_reward=-100 * scale,
        reward_clip=(-np.inf, np.inf),
        bonus=lead * math.sqrt(grid.columns - 2) * sigma * scale,
    )
    last = np.arange(grid.num_states) % grid.columns == grid.columns - 1
    risky = np.where(last, 2, 1)
    risky[grid.start] = 0
    sure = risky.copy()
    sure[np.arange(0, grid.start, grid.columns)[1:]] = 0  # up the first column
    fork = np.arange(grid.num_states) == grid.state(grid.rows - 2, 0)
    cells = grid.rows, grid.columns
    return RiskTask("risky-cliff", question, mdp, sure, risky, fork, ACTION_NAMES, cells)


def insurance(
    question: str = "tie",
    *,
    periods: int = 4,
    chance: float = 0.25,
    loss: float = 4.0,
    price: float = PRICE,
    scale: float = 1.0,
) -> RiskTask:
    """In each period a loss may come. Cover is sold for its fair price `chance * loss`, for more
    (by `price` deviations of a period's loss), or for half of it (trap)."""
    at_least(1, periods=periods)
    _chance("chance", chance)
    positive("loss", loss)
    deviation = loss * math.sqrt(chance * (1 - chance))
    half = -chance * loss / (2 * deviation)  # under price: half of what is fair
    premium = chance * loss + _lead(question, price, half) * deviation

    def outcomes(_t: int, _level: int, a: int) -> Sequence[LayerOutcome]:
        if a == 0:
            return [(1.0, -premium, 0)]
        return [(1 - chance, 0.0, 0), (chance, -loss, 0)]

    mdp = _layered(periods, 1, 2, outcomes, scale)
    names = ("buy cover", "carry the risk")
    return _constant("insurance", question, mdp, names, (1, periods))


def many_equals(
    question: str = "tie",
    *,
    noisy: int = 4,
    length: int = 4,
    sigma: float = 1.0,
    price: float = PRICE,
    scale: float = 1.0,
) -> RiskTask:
    """In each step a certain reward of 0, or one of `noisy` coins that pay plus or minus `sigma`:
    the best of many estimates is too good to be true. In the trap the certain reward is less than
    the worst a coin pays."""
    at_least(1, noisy=noisy, length=length)
    positive("sigma", sigma)
    lead = _lead(question, price, trap=0.0) * sigma
    certain = -TRAP * sigma if question == "trap" else 0.0

    def outcomes(_t: int, _level: int, a: int) -> Sequence[LayerOutcome]:
        return [(1.0, certain, 0)] if a == 0 else [(0.5, lead - sigma, 0), (0.5, lead + sigma, 0)]

    mdp = _layered(length, 1, 1 + noisy, outcomes, scale)
    names = ("certain", *(f"coin {i + 1}" for i in range(noisy)))
    return _constant("many-equals", question, mdp, names, (1, length))


def two_suppliers(
    question: str = "tie",
    *,
    periods: int = 4,
    cost: float = 2.0,
    risk: float = 1.0,
    lost: float = 6.0,
    holding: float = 0.5,
    price: float = PRICE,
    scale: float = 1.0,
) -> RiskTask:
    """A shop with room for two units; in each period a customer comes or not, by a coin.

    Before that one unit may be ordered: from the reliable supplier for `cost`, or from one that is
    cheaper by `risk` if it delivers and dearer by `risk`, bought elsewhere at the last moment, if
    it does not, by a coin. A customer who leaves empty-handed costs `lost`, a unit kept `holding`.
    """
    at_least(1, periods=periods)
    for name, value in (("cost", cost), ("risk", risk), ("lost", lost), ("holding", holding)):
        positive(name, value)
    if lost / 2 <= cost + holding / 2:
        raise InputError(f"lost = {lost}: above {2 * cost + holding:g}, or ordering never pays")
    lead = _lead(question, price) * risk

    def outcomes(_t: int, stock: int, a: int) -> Sequence[LayerOutcome]:
        there = min(stock + (a > 0), 2)
        paid = {0: [0.0], 1: [cost], 2: [cost - lead - risk, cost - lead + risk]}[a]
        listed: list[LayerOutcome] = []
        for spent in paid:
            for bought in (0, 1):
                left = max(there - bought, 0)
                missed = lost if bought > there else 0.0
                listed.append((0.5 / len(paid), -spent - missed - holding * left, left))
        return listed

    mdp = _layered(periods, 3, 3, outcomes, scale)
    empty = np.arange(mdp.num_states) < periods
    names = ("order nothing", "reliable", "unreliable")
    sure, risky = np.where(empty, 1, 0), np.where(empty, 2, 0)
    stocks = ("nothing in stock", "one unit in stock", "two units in stock")
    return RiskTask("two-suppliers", question, mdp, sure, risky, empty, names, (3, periods), stocks)


def maintenance(
    question: str = "tie",
    *,
    periods: int = 4,
    chances: tuple[float, ...] = (0.125, 0.25, 0.5),
    breakdown: float = 8.0,
    price: float = PRICE,
    scale: float = 1.0,
) -> RiskTask:
    """A machine in one of three conditions: repair it now, or run on and perhaps break down.

    It breaks with the chance of its condition, which costs `breakdown` and brings a new one; if it
    does not break it wears. A repair makes it as new. What a repair costs is solved backwards from
    the last period, so that in every condition both are worth the same, or that running on is
    better by `price` deviations of what it puts at stake; in the trap it costs `TRAP` breakdowns.
    """
    at_least(1, periods=periods)
    positive("breakdown", breakdown)
    if not isinstance(chances, Sequence | np.ndarray):
        raise InputError(f"chances = {chances}: one for each condition, such as (0.125, 0.25, 0.5)")
    for number in chances:
        _chance("chances", number)
    lead, levels = _lead(question, price, trap=0.0), len(chances)
    at_least(2, conditions=levels)
    _bounded(periods, levels, 2)
    repair = np.zeros((periods, levels))
    then = np.zeros(levels)  # what running on is worth, from the next period on
    for t in reversed(range(periods)):
        p, worn = np.array(chances), then[np.minimum(np.arange(levels) + 1, levels - 1)]
        stake = np.sqrt(p * (1 - p)) * abs(worn - then[0] + breakdown)
        now = p * (then[0] - breakdown) + (1 - p) * worn
        repair[t] = then[0] - now + lead * stake
        then = now
    if question == "trap":
        repair[:] = TRAP * breakdown

    def outcomes(t: int, condition: int, a: int) -> Sequence[LayerOutcome]:
        if a == 0:
            return [(1.0, -repair[t, condition], 0)]
        p = chances[condition]
        return [(p, -breakdown, 0), (1 - p, 0.0, min(condition + 1, levels - 1))]

    mdp = _layered(periods, levels, 2, outcomes, scale, start=1)
    wear = tuple(f"worn {level} of {levels - 1}" for level in range(levels))
    return _constant("maintenance", question, mdp, ("repair", "run on"), (levels, periods), wear)


def portfolio(
    question: str = "tie",
    *,
    weights: int = 3,
    deviation: float = 1.0,
    correlation: float = -0.5,
    price: float = PRICE,
    scale: float = 1.0,
) -> RiskTask:
    """One period, two assets, both worth 1 with the same deviation: the share of the first is
    0, ..., 1 in `weights` steps, the return Gaussian.

    The mix by halves dominates: its variance is (1 + correlation) / 2 of an asset's, the least of
    all. Price: the first asset is better, by twice as much as it is better than the mix, which is
    `price` deviations. Trap: the first asset is worse by `TRAP` deviations, varies twice as much
    and moves with the second, so that every share of it is dominated.
    """
    at_least(3, weights=weights)
    if weights % 2 == 0:
        raise InputError(f"weights = {weights}: an odd number, so that the mix by halves is one")
    positive("deviation", deviation)
    if not -1 < correlation < 1:
        raise InputError(f"correlation = {correlation}: it must lie between -1 and 1")
    lead = 2 * _lead(question, price, trap=-TRAP / 2) * deviation
    first, together = (2.0, 1.0) if question == "trap" else (1.0, correlation)

    def outcomes(_t: int, _level: int, a: int) -> Sequence[LayerOutcome]:
        w = a / (weights - 1)
        own, other = w * first, 1 - w
        variance = own**2 + other**2 + 2 * together * own * other
        return [(1.0, 1.0 + w * lead, 0, deviation * math.sqrt(variance))]

    mdp = _layered(1, 1, weights, outcomes, scale)
    names = tuple(f"{a / (weights - 1):.0%} of the first" for a in range(weights))
    half = 0 if question == "trap" else weights // 2
    sure, risky = _everywhere(mdp, half), _everywhere(mdp, weights - 1)
    return RiskTask("portfolio", question, mdp, sure, risky, np.ones(1, bool), names, (1, 1))


def _constant(
    name: str,
    question: str,
    mdp: TabularMDP,
    actions: tuple[str, ...],
    cells: tuple[int, int],
    levels: tuple[str, ...] = (),
) -> RiskTask:
    """A task in which the same question is put in every state: action 0 is sure, 1 is risky."""
    everywhere = np.ones(mdp.num_states, bool)
    sure, risky = _everywhere(mdp, 0), _everywhere(mdp, 1)
    return RiskTask(name, question, mdp, sure, risky, everywhere, actions, cells, levels)


def _chance(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0 < value < 1:
        raise InputError(f"{name} = {value}: a chance lies between 0 and 1")


FINITE_TASKS: dict[str, Callable[..., RiskTask]] = {
    "risky-cliff": risky_cliff_task,
    "insurance": insurance,
    "two-suppliers": two_suppliers,
    "maintenance": maintenance,
    "many-equals": many_equals,
    "portfolio": portfolio,
}


def finite_task(name: str, question: str = "tie", **knobs: Any) -> RiskTask:
    """A finite task of the suite by its name; the knobs are those of the function it is made by."""
    if name not in FINITE_TASKS:
        raise unknown("task", name, FINITE_TASKS)
    build = FINITE_TASKS[name]
    known = build.__kwdefaults__ or {}
    for knob in knobs:
        if knob not in known:
            raise unknown(f"knob of {name}", knob, ("question", *known))
    return build(question, **knobs)
