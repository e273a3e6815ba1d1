"""Exact dynamic programming in float64: the ground truth of the tabular experiments.

Random rewards enter with the exact mean and variance of the clipped Gaussian they are drawn from.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from surefoot.core.array import check_tolerance
from surefoot.envs.finite import SUM_TOLERANCE, TabularMDP, check_process
from surefoot.errors import InputError, count_at_least, real, shown


class ValueIteration(NamedTuple):
    """Optimal values. `q` is -inf for infeasible actions."""

    q: np.ndarray  # [S, A]
    v: np.ndarray  # [S]
    converged: bool
    iterations: int
    residual: float  # largest change of `v` in the last sweep


class PolicyEvaluation(NamedTuple):
    """Mean and variance of the return, per state and per pair."""

    v_mean: np.ndarray  # [S]
    v_variance: np.ndarray  # [S]
    q_mean: np.ndarray  # [S, A]
    q_variance: np.ndarray  # [S, A]


class _Model(NamedTuple):
    """[S, A, M] in float64; `continues` is the probability of going on to `next_state`."""

    next_state: np.ndarray
    probability: np.ndarray
    continues: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def reward_moments(mdp: TabularMDP) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and variance [S, A, M] of each outcome's reward, clipping included.

    For Y = clip(X, l, h) - mu with X ~ N(mu, s^2), a = (l - mu)/s, b = (h - mu)/s:
    E[Y]   = (l - mu) Phi(a) + (h - mu)(1 - Phi(b)) + s (phi(a) - phi(b))
    E[Y^2] = (l - mu)^2 Phi(a) + (h - mu)^2 (1 - Phi(b))
             + s^2 (Phi(b) - Phi(a) + a phi(a) - b phi(b)).
    """
    check_process(mdp)
    mean = np.asarray(mdp.reward_mean, np.float64).copy()
    std = np.asarray(mdp.reward_std, np.float64)
    variance = np.zeros_like(mean)
    random = std > 0
    if random.any():
        mu, s = mean[random], std[random]
        # 40 deviations out there is no mass left in float64, and 0 * inf would be NaN.
        low, high = mdp.reward_clip
        low_y = np.where(np.isinf(low), -40 * s, low - mu)
        high_y = np.where(np.isinf(high), 40 * s, high - mu)
        a, b = low_y / s, high_y / s
        below, above = _normal_cdf(a), _normal_cdf(-b)
        first = low_y * below + high_y * above + s * (_normal_pdf(a) - _normal_pdf(b))
        inside = 1 - below - above + a * _normal_pdf(a) - b * _normal_pdf(b)
        second = low_y**2 * below + high_y**2 * above + s**2 * inside
        mean[random] = mu + first
        variance[random] = np.maximum(second - first**2, 0.0)
    return mean, variance


def value_iteration(
    mdp: TabularMDP, gamma: float, tolerance: float = 1e-12, max_iterations: int = 100_000
) -> ValueIteration:
    """Bellman optimality sweeps from zero until no state value moves by more than `tolerance`.

    For gamma < 1 the values are then within tolerance * gamma / (1 - gamma) of the optimum. At
    gamma = 1 the sweeps converge where every policy that never ends is worth minus infinity.
    """
    check_process(mdp)
    check_gamma(gamma)
    count_at_least(1, max_iterations=max_iterations)
    check_tolerance(tolerance)
    model, infeasible = _model(mdp), ~mdp.feasible
    expected = _expected(model)
    v, residual, iterations = np.zeros(mdp.num_states), np.inf, 0
    q = expected
    while residual > tolerance and iterations < max_iterations:
        q = expected + gamma * np.sum(model.continues * v[model.next_state], axis=-1)
        q = np.where(infeasible, -np.inf, q)
        residual = float(np.max(abs(q.max(axis=1) - v)))
        v = q.max(axis=1)
        iterations += 1
    return ValueIteration(q, v, residual <= tolerance, iterations, residual)


def optimal_actions(q: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
    """[S, A]: which actions are within `tolerance` of their state's best."""
    check_tolerance(tolerance)
    q = np.asarray(q)
    if q.ndim < 1 or not q.size or q.dtype.kind not in "iuf":
        raise InputError(f"q is {q.dtype} of shape {q.shape}: it must be numbers [S, A]")
    return q >= q.max(axis=-1, keepdims=True) - tolerance


def policy_probabilities(mdp: TabularMDP, policy: Any) -> np.ndarray:
    """[S, A] float64 from probabilities [S, A] or one action per state [S], checked."""
    check_process(mdp)
    try:
        p: np.ndarray = np.asarray(policy)
        if p.dtype.kind not in "biuf":
            raise TypeError(f"it is an array of {p.dtype}")
    except (TypeError, ValueError) as error:
        raise InputError(f"policy must hold numbers: {error}") from None
    size, num_actions = mdp.num_states, mdp.num_actions
    if p.shape == (size,) and np.issubdtype(p.dtype, np.integer):
        if (bad := np.flatnonzero((p < 0) | (p >= num_actions))).size:
            raise InputError(f"policy[s={bad[0]}] is action {p[bad[0]]} of {num_actions}")
        p = np.eye(num_actions)[p]
    if p.shape != (size, num_actions):
        raise InputError(
            f"policy has shape {p.shape}: it must hold probabilities "
            f"[{size}, {num_actions}] or {size} integer actions"
        )
    p = p.astype(np.float64)
    total = p.sum(axis=1)
    wrong = ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (abs(total - 1) < SUM_TOLERANCE))
    if (bad := np.flatnonzero(wrong)).size:
        row = shown(p[bad[0]].tolist())
        raise InputError(f"policy[s={bad[0]}] is {row}: probabilities must be >= 0 and sum to 1")
    if (pairs := np.argwhere((p > 0) & ~mdp.feasible)).size:
        state, action = pairs[0]
        raise InputError(f"policy[s={state}, a={action}] uses an infeasible action")
    return p / total[:, None]


def evaluate_policy(
    mdp: TabularMDP, policy: Any, gamma: float, *, only_reachable: bool = False
) -> PolicyEvaluation:
    """Exact mean and variance of the return by two linear solves.

    gamma = 1 needs a policy under which the episode ends with probability one. With
    `only_reachable` that is asked only of what can be reached from the start, and all other
    states (and pairs that may lead into them) are NaN, as infeasible actions are in `q`.
    """
    check_gamma(gamma)
    probs = policy_probabilities(mdp, policy)
    model = _model(mdp)
    flow, ends = _flow(probs, model)
    seeds = mdp.start_distribution > 0 if only_reachable else np.ones(mdp.num_states, bool)
    keep = _reachable(flow, seeds)
    if gamma == 1:
        _check_proper(flow, ends, keep)

    v_mean = _solve(flow, gamma, _average(probs, _expected(model)), keep)
    after = gamma * np.where(model.continues > 0, v_mean[model.next_state], 0.0)
    q_mean = np.sum(model.probability * (model.mean + after), axis=-1)
    # Law of total variance, outcome by outcome and then over actions: a sum of squares, where
    # the second moment minus the squared mean would cancel the digits of a small variance.
    spread = model.variance + (model.mean + after - q_mean[..., None]) ** 2
    local = np.sum(model.probability * spread, axis=-1)
    between = _average(probs, (q_mean - np.where(keep, v_mean, 0.0)[:, None]) ** 2)
    v_variance = _solve(flow, gamma**2, _average(probs, local) + between, keep)
    onward = np.where(model.continues > 0, v_variance[model.next_state], 0.0)
    q_variance = local + gamma**2 * np.sum(model.continues * onward, axis=-1)
    known = keep[:, None] & mdp.feasible
    q_mean, q_variance = (np.where(known, q, np.nan) for q in (q_mean, q_variance))
    return PolicyEvaluation(v_mean, v_variance, q_mean, q_variance)


def expected_visits(mdp: TabularMDP, policy: Any) -> np.ndarray:
    """[S]: how often each state is met in an episode of `policy`, which has to end."""
    probs, model = policy_probabilities(mdp, policy), _model(mdp)
    flow, ends = _flow(probs, model)
    keep = _reachable(flow, mdp.start_distribution > 0)
    _check_proper(flow, ends, keep)
    return np.where(keep, np.nan_to_num(_solve(flow.T, 1.0, mdp.start_distribution, keep)), 0.0)


class Surest(NamedTuple):
    """What is right where nobody may pay for safety."""

    actions: np.ndarray  # [S, A]: of the best mean, and of the least variance among these
    policy: np.ndarray  # [S] one of them
    best: np.ndarray  # [S] the best mean


def surest(mdp: TabularMDP, gamma: float = 1.0, tolerance: float = 1e-9) -> Surest:
    """The actions of the best mean whose return varies least, if they are taken from then on.

    Where one of the actions of the best mean dominates the others it is this one: of equal means
    the dominant return has the least variance. `tolerance` is relative to the rewards. Where a
    circle is worth as much as going on, the policy goes on: its episodes end.
    """
    check_tolerance(tolerance)
    check_process(mdp)
    size = float(np.abs(mdp.reward_mean).max() or 1.0)
    values = value_iteration(mdp, gamma, 1e-13 * size)
    best = optimal_actions(values.q, tolerance * size)
    policy = _ending(mdp, best)
    # From a policy that ends, steps that lessen the variance lead to no other: round a circle of
    # no variance it would have to be the same everywhere.
    while True:
        spread = np.where(best, evaluate_policy(mdp, policy, gamma).q_variance, np.inf)
        least = spread <= spread.min(axis=1, keepdims=True) + (tolerance * size) ** 2
        now = np.where(least[np.arange(len(policy)), policy], policy, least.argmax(axis=1))
        if (now == policy).all():
            return Surest(least, policy, values.v)
        policy = now


def _ending(mdp: TabularMDP, allowed: np.ndarray) -> np.ndarray:
    """[S]: one of the allowed actions each, so that the episode ends wherever they can end it."""
    model = _model(mdp)
    policy = allowed.argmax(axis=1)
    leads = (model.probability > model.continues).any(axis=-1)  # [S, A] to the end
    done = np.zeros(len(policy), bool)
    while (new := (allowed & leads).any(axis=1) & ~done).any():
        policy = np.where(new, (allowed & leads).argmax(axis=1), policy)
        done |= new
        leads = ((model.continues > 0) & done[model.next_state]).any(axis=-1)  # a step nearer
    return policy


def _flow(probs: np.ndarray, model: _Model) -> tuple[np.ndarray, np.ndarray]:
    """P(s -> s', not ended) under a policy, and P(ends in s)."""
    flow = np.zeros((len(probs), len(probs)))
    weight = probs[:, :, None] * model.continues
    sources = np.broadcast_to(np.arange(len(probs))[:, None, None], weight.shape)
    np.add.at(flow, (sources, model.next_state), weight)
    return flow, np.sum(probs[:, :, None] * (model.probability - model.continues), axis=(1, 2))


def _model(mdp: TabularMDP) -> _Model:
    p = np.asarray(mdp.probability, np.float64)
    p = p / p.sum(axis=-1, keepdims=True)
    mean, variance = reward_moments(mdp)
    continues = np.where(np.asarray(mdp.terminal), 0.0, p)
    return _Model(np.asarray(mdp.next_state), p, continues, mean, variance)


def _expected(model: _Model) -> np.ndarray:
    return np.sum(model.probability * model.mean, axis=-1)


def _average(probs: np.ndarray, values: np.ndarray) -> np.ndarray:
    # Actions that are never taken may be NaN: they can lead to states left out.
    return np.sum(probs * np.where(probs > 0, values, 0.0), axis=1)


def _solve(flow: np.ndarray, discount: float, b: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """x = b + discount * flow x on the states of `keep` (closed under `flow`), NaN elsewhere."""
    x = np.full(len(b), np.nan)
    inside = np.ix_(keep, keep)
    x[keep] = np.linalg.solve(np.eye(int(keep.sum())) - discount * flow[inside], b[keep])
    return x


def _reachable(flow: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """States reached from `seeds` along positive entries of `flow[s, s']`."""
    reached, frontier = seeds.copy(), seeds
    while frontier.any():
        frontier = (flow[frontier] > 0).any(axis=0) & ~reached
        reached |= frontier
    return reached


def _check_proper(flow: np.ndarray, ends: np.ndarray, keep: np.ndarray) -> None:
    """At gamma = 1 every kept state must end almost surely: I - flow is singular otherwise."""
    stuck = ~_reachable(flow.T, ends > 0)  # from here no end can be reached at all
    improper = _reachable(flow.T, stuck) & keep
    if improper.any():
        first = int(np.argmax(improper))
        raise InputError(
            f"policy: at gamma = 1 the episode may never end from state {first} "
            f"({int(improper.sum())} such states): take gamma < 1 or a policy that ends"
        )


def check_gamma(gamma: Any) -> None:
    if not 0 <= real(gamma) <= 1:
        raise InputError(f"gamma is {shown(gamma)}: a discount lies in [0, 1]")


def _normal_pdf(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2))
