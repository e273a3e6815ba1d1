"""What a way of acting is worth in a task whose right answer is known.

Finite tasks are scored exactly, by dynamic programming; only the samples that dominance is tested
on are simulated. Tasks for networks are scored by episodes. Losses are counted in deviations of the
risky way's return, so that no unit of reward comes in.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.comparison import compare
from surefoot.core.particles import cvar
from surefoot.envs import simulate_returns
from surefoot.envs.noisy import MeanReversion, NoisyCartPole, NoisyEnv, TwoRoads, best_trading
from surefoot.envs.risk import Moments, RiskTask
from surefoot.errors import InputError
from surefoot.suite.players import Choose

HORIZON = 500
EPISODES = 500  # simulated for a test of dominance
RESAMPLES = 199
RIGHT = 0.95
"""Share of right decisions from which on a tie is solved and a trap avoided."""
GIVEN_UP = 0.02
"""Deviations that may be given up where the risky action is better."""


class Score(NamedTuple):
    """Of one way of acting in one task."""

    right: float  # share of the decisions asked for that are right
    given_up: float  # best mean less its own, in deviations of the risky return
    spread: float  # its deviation: 0 as the sure policy's, 1 as the risky one's

    def solved(self, question: str) -> bool:
        return solved(question, self.right, self.given_up)

    def answered(self, question: str) -> bool | None:
        """The same; None where no action is the right one."""
        return None if math.isnan(self.right) else self.solved(question)


def solved(question: str, right: float, given_up: float) -> bool:
    """Whether the question is answered: by what is given up where safety has a price, else by the
    share of right decisions."""
    return given_up <= GIVEN_UP if question == "price" else right >= RIGHT


def score(task: RiskTask, policy: np.ndarray, samples: np.ndarray | None = None) -> Score:
    """Exact; `samples` of its return stand in for a policy that may walk in circles."""
    try:
        own = task.moments(policy)
    except InputError:
        if samples is None:
            samples = simulated(task, policy, 0)
        own = Moments(float(samples.mean()), float(samples.std()))
    return _score(task, own, task.share_right(policy))


def _score(task: RiskTask, own: Moments, right: float) -> Score:
    known = task.references
    wider = known["risky"].deviation - known["sure"].deviation
    return Score(
        right,
        (known["right"].mean - own.mean) / task.unit,
        (own.deviation - known["sure"].deviation) / wider,
    )


def simulated(
    task: RiskTask, policy: np.ndarray, seed: int, episodes: int = EPISODES
) -> np.ndarray:
    """Returns of episodes from the start."""
    start = int(np.argmax(task.mdp.start_distribution))
    rollouts = simulate_returns(
        task.mdp, policy, start,
        rollouts=episodes, horizon=HORIZON, gamma=1.0, key=jax.random.key(seed),
    )  # fmt: skip
    return np.asarray(rollouts.returns, np.float64)


def word(own: np.ndarray, other: np.ndarray, seed: int = 0) -> str:
    """What two samples of returns say of "own dominates other", second order."""
    if np.array_equal(own, other):
        return "same"
    made = compare(
        {"own": own, "other": other}, paired=False, dependence="none", resamples=RESAMPLES,
        seed=seed, prices=False,
    )  # fmt: skip
    return next(v.word for v in made.verdicts if (v.a, v.order) == ("own", 2))


# --- static CVaR ---------------------------------------------------------------------------

_Place = tuple[int, float]  # a state, and what was collected before it


def static_cvar(task: RiskTask, level: float) -> Score | None:
    """The policy with the best CVaR of the whole return, which may look at what was collected.

    CVaR is the largest `b - E(b - G)^+ / level` over b, and for each b the expected shortfall is
    least by dynamic programming over states and sums collected. Exact, and of a planner that knows
    the process; None where rewards are continuous. Where several actions are equally good for it,
    the one with the better mean is taken.
    """
    mdp = task.mdp
    if mdp.noisy:
        return None
    unit = 1e-9 * float(np.abs(mdp.reward_mean).max())
    outcomes = {
        (s, a): [
            (float(p), float(r), None if over else int(then))
            for p, r, then, over in zip(
                mdp.probability[s, a], mdp.reward_mean[s, a], mdp.next_state[s, a],
                mdp.terminal[s, a], strict=True,
            )
            if p > 0
        ]
        for s in range(mdp.num_states)
        for a in range(mdp.num_actions)
    }  # fmt: skip
    order, ends = _reached(outcomes, int(mdp.start), mdp.num_actions, unit)
    plans = [_least_shortfall(outcomes, order, b, mdp.num_actions, unit) for b in ends]
    start = (int(mdp.start), 0.0)
    worth = [b - plan[start][0] / level for b, plan in zip(ends, plans, strict=True)]
    best = max(worth)
    tied = [plan for value, plan in zip(worth, plans, strict=True) if value >= best - unit]
    plan = max(tied, key=lambda plan: plan[start][1])
    return _played(task, outcomes, order, plan, unit)


def _after(place: _Place, reward: float, then: int | None, unit: float) -> Any:
    total = round((place[1] + reward) / unit) * unit
    return total if then is None else (then, total)


def _reached(
    outcomes: dict[Any, Any], start: int, actions: int, unit: float
) -> tuple[list[_Place], list[float]]:
    """Places in the order they can be met, and what an episode can come to."""
    met: dict[_Place, None] = {(start, 0.0): None}
    ends: set[float] = set()
    queue = list(met)
    for place in queue:  # grows while it is read
        for a in range(actions):
            for _, reward, then in outcomes[place[0], a]:
                after = _after(place, reward, then, unit)
                if then is None:
                    ends.add(after)
                elif after not in met:
                    met[after] = None
                    queue.append(after)
    return queue, sorted(ends)


def _least_shortfall(
    outcomes: dict[Any, Any], order: list[_Place], b: float, actions: int, unit: float
) -> dict[_Place, tuple[float, float, int]]:
    """Of each place the least E(b - G)^+, the best mean that goes with it, and the action."""
    plan: dict[_Place, tuple[float, float, int]] = {}
    for place in reversed(order):
        best: tuple[float, float, int] | None = None
        for a in range(actions):
            short = mean = 0.0
            for p, reward, then in outcomes[place[0], a]:
                after = _after(place, reward, then, unit)
                lost, worth = (max(b - after, 0.0), after) if then is None else plan[after][:2]
                short, mean = short + p * lost, mean + p * worth
            less = best is None or short < best[0] - unit
            if less or (best is not None and short < best[0] + unit and mean > best[1] + unit):
                best = short, mean, a
        assert best is not None
        plan[place] = best
    return plan


def _played(
    task: RiskTask, outcomes: dict[Any, Any], order: list[_Place], plan: Any, unit: float
) -> Score:
    """The exact score of a plan that depends on what was collected."""
    chance = dict.fromkeys(order, 0.0)
    chance[order[0]] = 1.0
    ends: dict[float, float] = {}
    asked = right = 0.0
    for place in order:
        met, a = chance[place], plan[place][2]
        if task.asked[place[0]]:
            asked, right = asked + met, right + met * task.answer.actions[place[0], a]
        for p, reward, then in outcomes[place[0], a]:
            after = _after(place, reward, then, unit)
            into: dict[Any, float] = ends if then is None else chance
            into[after] = into.get(after, 0.0) + met * p
    values, weights = np.array(list(ends)), np.array(list(ends.values()))
    mean = float(weights @ values)
    own = Moments(mean, math.sqrt(float(weights @ (values - mean) ** 2)))
    return _score(task, own, right / asked)


# --- tasks for networks ----------------------------------------------------------------------


class Episodes(NamedTuple):
    returns: np.ndarray  # [E]
    exposure: np.ndarray  # [E] share of the steps that were at risk
    expected: Any = 0.0  # [E] the same steps without the noise of their rewards
    steps: Any = 0.0  # [E]
    ended: Any = False  # [E] by termination, not by the time limit

    def tails(self) -> dict[str, float]:
        return {f"cvar {level}": float(cvar(self.returns, level)) for level in (0.05, 0.25, 0.45)}


def play(env: NoisyEnv, choose: Choose, episodes: int, seed: int) -> Episodes:
    """Episodes side by side: the environment compiled, the choice from outside."""
    reset, step = _stepping(env)
    state = reset(jax.random.split(jax.random.key(seed), episodes))
    total, expected, risk, steps = np.zeros((4, episodes))
    going, ended = np.ones(episodes, bool), np.zeros(episodes, bool)
    while going.any():
        x = np.asarray(state.x)
        actions = jnp.asarray(np.asarray(choose(x)).astype(np.int32))
        risk += going & np.asarray(env.at_risk(x))
        steps += going
        state, reward, mean, terminated, truncated = step(state, actions)
        total += np.where(going, np.asarray(reward, np.float64), 0.0)
        expected += np.where(going, np.asarray(mean, np.float64), 0.0)
        ended |= going & np.asarray(terminated)
        going &= ~np.asarray(terminated | truncated)
    return Episodes(total, risk / steps, expected, steps, ended)


@lru_cache(maxsize=16)
def _stepping(env: NoisyEnv) -> tuple[Any, Any]:
    def step(state: Any, action: Any) -> tuple[Any, ...]:
        after, _, reward, *ends = env.step(state, action)
        return after, reward, env.scale * env.move(state.x, action)[1], *ends

    return jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(step))


def score_episodes(env: NoisyEnv, played: Episodes) -> Score:
    """On the roads an episode is right or wrong, and wrong if it does not arrive; with the pole
    every step is, and one that is not made is wrong. What is given up there is counted without the
    noise of the rewards, which moves nothing else. Trading has no right action; what it gives up is
    known up to the error of a mean of so many episodes."""
    if isinstance(env, MeanReversion):
        lost = best_trading(env).mean - float(played.returns.mean())
        return Score(math.nan, lost / float(played.returns.std()), math.nan)
    assert isinstance(env, TwoRoads | NoisyCartPole)
    roads = isinstance(env, TwoRoads)
    risky = np.asarray(played.exposure > 0 if roads else played.exposure, float)
    done = np.asarray(played.ended, float) if roads else played.steps / env.time_limit
    right = done * (risky if env.question == "price" else 1 - risky)
    unit = env.scale * env.deviation
    return Score(
        float(np.mean(right)),
        (env.best_mean - float(played.expected.mean())) / unit,
        float(played.returns.std()) / unit,
    )
