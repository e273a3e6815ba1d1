"""Random inputs through the public names, against integers, fractions or the definition itself.

Small whole numbers at several scales: ties, equal sums and crossings are common, and where doubles
are exact the answer has to be, too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from math import lcm
from types import ModuleType

import jax
import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

import surefoot as sf
from surefoot.agents.adapters import equal_particles
from surefoot.core import bootstrap

pytestmark = pytest.mark.slow

# Where each public name is put to random inputs; what has no inputs of its own is left out.
FUZZED = {
    "pairs": "ssd_dominates fsd_dominates violation almost_ssd_ratio dominance_matrix dominant_set "
    "quantile cumulative_quantile cumulative_cdf cvar dispersion_space wasserstein",
    "decisions": "SSD Greedy CVaR MeanVariance Wang CPW Explore",
    "steps": "sinkhorn proximal_step proximal_loss jko_flow",
    "samples": "compare compare_file",
    "processes": "TabularMDP",
    "files, kills and disks, beside this file": "TabularAgent NeuralAgent TabularConfig "
    "NeuralConfig Training train resume load evaluate Checkpoints Watch FaultPolicy",
}
DATA = "Comparison Decision DecidedBy Explanation Policy"
ERRORS = "InputError Interrupted RunError SurefootError"


def test_every_public_name_is_put_to_random_inputs():
    named = {name for names in FUZZED.values() for name in names.split()}
    named |= set(f"{DATA} {ERRORS}".split())
    own = {n for n in sf.__all__ if n[0] != "_" and not isinstance(getattr(sf, n), ModuleType)}
    assert named == own


ROWS = 4_000
SHAPES = ((7, 7), (4, 6), (1, 12))
SCALES = (1.0, 0.1, 2.0**-1000, 2.0**900, 3e-5)
SPREADS = (1, 3, 50)  # few values: ties and equal sums are common


def exact(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both samples as whole numbers on a common grid, ascending, and the gaps of their sums."""
    size = lcm(x.shape[-1], y.shape[-1])
    a, b = (np.repeat(np.sort(z), size // z.shape[-1], axis=-1) for z in (x, y))
    return a, b, np.cumsum(b - a, axis=-1)


@pytest.mark.parametrize("spread", SPREADS)
def test_180_000_samples_against_whole_numbers(spread):
    """60,000 pairs for each spread; each through every function. The oracle adds integers."""
    rng = np.random.default_rng(spread)
    for (n, m), scale in ((s, c) for s in SHAPES for c in SCALES):
        whole_x = rng.integers(-spread, spread + 1, (ROWS, n))
        whole_y = rng.integers(-spread, spread + 1, (ROWS, m))
        x, y = whole_x * scale, whole_y * scale
        a, b, gaps = exact(whole_x, whole_y)
        size = a.shape[-1]
        second = gaps.max(axis=-1) <= 0
        power = scale == 2.0 ** np.round(np.log2(scale))  # then all sums are exact
        if power:
            np.testing.assert_array_equal(sf.ssd_dominates(x, y), second)
            np.testing.assert_array_equal(sf.fsd_dominates(x, y), (a >= b).all(axis=-1))
            np.testing.assert_array_equal(sf.violation(x, y) == 0, second)
            ratio = sf.almost_ssd_ratio(x, y)
            np.testing.assert_array_equal(ratio == 0, second)
            np.testing.assert_allclose(ratio, sf.almost_ssd_ratio(1.0 * whole_x, 1.0 * whole_y))
        close = {"rtol": 1e-12, "atol": 1e-12 * scale * spread}
        short = np.maximum(gaps.max(axis=-1), 0) / size * scale
        np.testing.assert_allclose(sf.violation(x, y), short, **close)
        distance = np.abs(a - b).mean(axis=-1) * scale
        np.testing.assert_allclose(sf.wasserstein(x, y, 1), distance, **close)
        k = int(rng.integers(1, n + 1))
        lowest = np.sort(whole_x)[:, :k].sum(axis=-1)
        np.testing.assert_allclose(sf.cvar(x, k / n), lowest / k * scale, **close)
        np.testing.assert_allclose(sf.cumulative_quantile(x, k / n), lowest / n * scale, **close)
        middle = np.sort(whole_x)[:, k - 1] * scale
        np.testing.assert_array_equal(sf.quantile(x, (k - 0.5) / n), middle)
        at = int(rng.integers(-spread, spread + 1))
        below = np.maximum(at - whole_x, 0).sum(axis=-1) / n * scale
        np.testing.assert_allclose(sf.cumulative_cdf(x, at * scale), below, **close)
        space = sf.dispersion_space(x, np.array(at * scale))
        np.testing.assert_allclose(space.frontier, below, **close)
        ahead = (at - whole_x.mean(axis=-1)) * scale
        np.testing.assert_allclose(space.right_asymptote, ahead, **close)
        eighths = [rng.multinomial(8, [1 / k] * k, ROWS) for k in (n, m)]
        often = [  # a particle as often as its weight says
            np.repeat(whole.ravel(), weights.ravel()).reshape(ROWS, 8)
            for whole, weights in zip((whole_x, whole_y), eighths, strict=True)
        ]
        gaps = exact(*often)[2].max(axis=-1)
        weighted = {"x_weights": eighths[0] / 8, "y_weights": eighths[1] / 8}
        short = np.maximum(gaps, 0) / 8 * scale
        np.testing.assert_allclose(sf.violation(x, y, **weighted), short, **close)
        if power:
            over = sf.ssd_dominates(x, y, **weighted)
            np.testing.assert_array_equal(over, gaps <= 0)
        if n == m and power:
            both = np.stack([x, y], axis=1)
            reverse = exact(whole_y, whole_x)[2].max(axis=-1) <= 0
            matrix = sf.dominance_matrix(both)
            np.testing.assert_array_equal(matrix[:, 0, 1], second)
            np.testing.assert_array_equal(matrix[:, 1, 0], reverse)
            np.testing.assert_array_equal(sf.dominant_set(both), np.stack([second, reverse], -1))


def test_20_000_decisions_against_fractions():
    """At a scale where doubles round: the oracle has fractions. SSD is exact, a mean is rounded."""
    import jax

    rng = np.random.default_rng(5)
    z = rng.integers(-4, 5, (20_000, 3, 4)) * 0.1
    keys = jax.random.split(jax.random.key(0), len(z))
    with jax.enable_x64(True):
        means = jax.jit(jax.vmap(sf.Greedy().decide))(z, keys).action
        sure = jax.jit(jax.vmap(sf.SSD(0.0).decide))(z, keys).action
        tail = jax.jit(jax.vmap(sf.CVaR(0.5).decide))(z, keys).action
        calm = jax.jit(jax.vmap(sf.MeanVariance(0.5).decide))(z, keys).action
    tables_of = {value: Fraction(float(value)) for value in np.unique(z)}
    chosen = np.stack([means, sure, tail, calm], axis=-1)
    for row, (greedy, ssd, cvar, markowitz) in zip(z, chosen, strict=True):
        curves = []
        for action in row:
            total, sums = Fraction(0), []
            for value in np.sort(action):
                total += tables_of[value]
                sums.append(total)
            curves.append(sums)
        assert max(c[-1] for c in curves) - curves[greedy][-1] < 1e-15
        assert max(c[1] for c in curves) - curves[cvar][1] < 1e-15  # the worst two of four
        moments = [(c[-1] / 4, sum(tables_of[v] ** 2 for v in a) / 4)
                   for c, a in zip(curves, row, strict=True)]  # fmt: skip
        scores = [mean - (square - mean**2) / 2 for mean, square in moments]
        assert max(scores) - scores[markowitz] < 1e-15
        over = [all(all(p >= q for p, q in zip(c, d, strict=True)) for d in curves) for c in curves]
        assert over[ssd] or not any(over)


# --- decisions with masks and evidence -------------------------------------------------------


def curve(row: np.ndarray, about: Fraction = Fraction(0)) -> list[Fraction]:
    """Sums of the worst values, exact; about a mean if there is one."""
    total, sums = Fraction(0), []
    for value in sorted(row.tolist()):
        total += Fraction(value) - about
        sums.append(total)
    return sums


def nowhere_below(x: list[Fraction], y: list[Fraction]) -> bool:
    return all(a >= b for a, b in zip(x, y, strict=True))


QUANTILE = scipy_stats.t.ppf(scipy_stats.norm.cdf(3), np.arange(129))


def surest(z: np.ndarray, mask: np.ndarray, n: np.ndarray) -> set[int] | None:
    """What `SSD()` may take, as docs/concepts.md words it; None where rounding decides."""
    means = [Fraction(int(row.sum()), len(row)) for row in z]
    allowed = [a for a in range(len(z)) if mask[a]]
    top = max(means[a] for a in allowed)
    best = max((a for a in allowed if means[a] == top), key=lambda a: (n[a] > 1, -a))
    # What the worse of two draws loses against the mean.
    loses = [mean - Fraction(int(np.minimum.outer(row, row).sum()), len(row) ** 2)
             for row, mean in zip(z, means, strict=True)]  # fmt: skip
    least = min(loses[a] for a in allowed if means[a] == top)
    known, unknown = [], []
    for a in allowed:
        gap = top - means[a]
        if n[a] > 1 and n[best] > 1:
            parts = [(z[b].var() / (n[b] - 1), n[b] - 1) for b in (a, best)]
            error = math.sqrt(sum(v for v, _ in parts))
            wear = sum(v * v / freedom for v, freedom in parts)
            freedom = error**4 / wear if wear else 128
            # A whole number of degrees, or a gap at the very limit: rounding decides.
            sure = [gap <= error * QUANTILE[min(max(int(freedom + e), 1), 128)] + e
                    for e in (-1e-9, 1e-9)]  # fmt: skip
            if gap and sure[0] != sure[1]:
                return None
            if gap == 0 or (sure[0] and gap <= least - loses[a]):
                known.append(a)
        elif gap == 0:
            unknown.append(a)
    curves = {a: curve(z[a], means[a]) for a in known}
    best_of = {a for a in known if all(nowhere_below(curves[a], c) for c in curves.values())}
    if best_of:
        return best_of | set(unknown)
    return {a for a in known if means[a] == top} | set(unknown)


def test_20_000_decisions_with_evidence():
    rng = np.random.default_rng(6)
    z = rng.integers(-3, 4, (20_000, 3, 4)).astype(float)
    n = rng.choice([0, 1, 2, 3, 10, 40], (len(z), 3))
    masks = rng.random((len(z), 3)) < 0.8
    masks[~masks.any(axis=1), 0] = True
    keys = jax.random.split(jax.random.key(1), len(z))
    with jax.enable_x64(True):
        decide = jax.jit(jax.vmap(lambda z, k, m, n: sf.SSD().decide(z, k, m, n=n)))
        taken = np.asarray(decide(z, keys, masks, n).action)
    passed_over = 0
    for row, mask, seen, action in zip(z, masks, n, taken, strict=True):
        right = surest(row, mask, seen)
        passed_over += right is None
        assert right is None or action in right, (row, mask, seen)
    assert passed_over < 200


def inverse_weighting(eta: float, tau: float) -> float:
    def level(t: float) -> float:
        return t**eta / (t**eta + (1 - t) ** eta) ** (1 / eta)

    return float(optimize.brentq(lambda t: level(t) - tau, 0, 1, xtol=1e-15))


def test_20_000_decisions_by_weights_and_by_chance():
    rng = np.random.default_rng(7)
    z = rng.integers(-4, 5, (20_000, 3, 4)) * 0.1
    masks = rng.random((len(z), 3)) < 0.7
    masks[~masks.any(axis=1), 1] = True
    keys = jax.random.split(jax.random.key(2), len(z))
    normal = scipy_stats.norm
    shares = {
        sf.Wang(-0.75): [normal.cdf(normal.ppf(i / 4) + 0.75) for i in range(5)],
        sf.Wang(0.5): [normal.cdf(normal.ppf(i / 4) - 0.5) for i in range(5)],
        sf.CPW(0.71): [0, *(inverse_weighting(0.71, i / 4) for i in (1, 2, 3)), 1],
        sf.CVaR(0.3): [min(i / 4 / 0.3, 1) for i in range(5)],
    }
    rows = np.arange(len(z))
    with jax.enable_x64(True):
        for policy, share in shares.items():
            score = np.where(masks, np.sort(z) @ np.diff(share), -np.inf)
            taken = jax.jit(jax.vmap(policy.decide))(z, keys, masks)
            action = np.asarray(taken.action)
            assert (score[rows, action] >= score.max(axis=1) - 1e-12).all()
            assert masks[rows, action].all()
        strays = jax.jit(jax.vmap(sf.Explore(sf.Greedy(), 0.25).decide))(z, keys, masks)
    assert masks[rows, np.asarray(strays.action)].all()
    share = float(np.mean(np.asarray(strays.decided_by) == sf.DecidedBy.EXPLORATION))
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / len(z))


# --- steps -----------------------------------------------------------------------------------


def test_40_000_steps_against_closed_forms():
    """Exact transport goes h / (1 + h) of the way, in sorted order; entropic transport between two
    and two particles has a closed form."""
    rng = np.random.default_rng(8)
    x, y = (rng.integers(-50, 51, (20_000, 6)).astype(float) for _ in range(2))
    first, last = np.sort(x), np.sort(y)
    with jax.enable_x64(True):
        step = jax.jit(jax.vmap(lambda a, b: sf.proximal_step(a, b, 1.0, "exact").z))(x, y)
        np.testing.assert_array_equal(step, (first + last) / 2)
        three = jax.jit(jax.vmap(lambda a, b: sf.proximal_step(a, b, 3.0, "exact").z))(x, y)
        np.testing.assert_array_equal(three, (first + 3 * last) / 4)
        path = jax.jit(jax.vmap(lambda a, b: sf.jko_flow(a, b, 3, 1.0, "exact").path))(x, y)
        ways = np.array([1.0, 0.5, 0.25, 0.125])[None, :, None]
        np.testing.assert_array_equal(path, last[:, None] + ways * (first - last)[:, None])
        loss = jax.jit(jax.vmap(lambda z, a, b: sf.proximal_loss(z, a, b, 1.0, "exact")))
        far = ((first - last) ** 2).mean(axis=1)
        np.testing.assert_allclose(loss(last, first, last), far)  # W(z, z0) alone
        np.testing.assert_allclose(loss(first, first, last), far)  # 2 h F(z), F = far / 2
        x, y = np.sort(rng.normal(size=(2, 20_000, 2)), axis=-1)
        plan = jax.jit(
            jax.vmap(lambda a, b: sf.sinkhorn(a, b, temperatures=(2.0,), tolerance=1e-10))
        )(x, y)
    # Two by two: a plan with p on the diagonal, p / (1/2 - p) = exp(-(C00 + C11 - C01 - C10) / 2T).
    cost = (x[:, :, None] - y[:, None, :]) ** 2
    crossed = cost[:, 0, 0] + cost[:, 1, 1] - cost[:, 0, 1] - cost[:, 1, 0]
    p = 0.5 / (1 + np.exp(crossed / (2 * 2.0)))
    there = (2 * p)[:, None] * y + (1 - 2 * p)[:, None] * y[:, ::-1]
    solved = np.asarray(plan.converged)
    assert solved.mean() > 0.99
    np.testing.assert_allclose(np.asarray(plan.projection)[solved], there[solved], atol=1e-6)


# --- samples and processes -------------------------------------------------------------------


def test_1_000_comparisons_against_whole_numbers(tmp_path):
    """Relations of the samples, and a file that is read back as it was."""
    rng = np.random.default_rng(9)
    for i in range(1_000):
        whole = rng.integers(-3, 4, (2, int(rng.integers(3, 9))))
        columns = {"a": whole[0] * 0.25, "b": whole[1] * 0.25}
        if i % 10:
            result = sf.compare(columns, resamples=99, prices=False, dependence="none")
        else:
            path = tmp_path / "r.csv"
            rows = zip(*columns.values(), strict=True)
            path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
            result = sf.compare_file(path, resamples=99, prices=False, dependence="none")
        for name, column in columns.items():
            np.testing.assert_array_equal(result.returns[name], column)
        a, b, gaps = exact(*whole[:, None])
        over = {1: (bool((a >= b).all()), bool((b >= a).all())),
                2: (bool(gaps.max() <= 0), bool(gaps.min() >= 0))}  # fmt: skip
        words = {(True, True): "equal", (True, False): "dominates", (False, True): "dominated",
                 (False, False): "neither"}  # fmt: skip
        for order, pair in over.items():
            assert result.verdict("a", "b", order).relation == words[pair]
        mean = Fraction(int(whole[0].sum()), 4 * whole.shape[1])
        assert abs(Fraction(result.summary("a").mean) - mean) < 1e-15


def test_4_000_shares_against_counts():
    rng = np.random.default_rng(10)
    for _ in range(2_000):
        x, y = (rng.integers(-2, 3, int(rng.integers(2, 7))) for _ in range(2))
        wins = sum((a > b) + Fraction(int(a == b), 2) for a in x for b in y)
        better = bootstrap.improvement([(x, y)], resamples=100)
        assert abs(Fraction(better.mean) - Fraction(wins) / (len(x) * len(y))) < 1e-15
        profile = bootstrap.performance_profile(x, [-1.0, 0.0, 1.0])
        assert profile.mean.tolist() == pytest.approx([np.mean(x > c) for c in (-1, 0, 1)])
        assert (profile.low >= 0).all()
        assert (profile.high <= 1).all()


def test_2_000_projections_against_fractions():
    """Atoms in eighths become four particles: each the mean of its quarter."""
    rng = np.random.default_rng(11)
    for _ in range(2_000):
        atoms = rng.integers(-5, 6, 5)
        eighths = rng.multinomial(8, [0.2] * 5)
        all_of = np.sort(np.repeat(atoms, eighths)).reshape(4, 2)
        np.testing.assert_allclose(equal_particles(atoms, eighths / 8, 4), all_of.mean(axis=1))


def test_500_processes_against_fractions():
    """Values of random processes without circles, from the last state to the first."""
    rng = np.random.default_rng(12)
    for _ in range(500):
        states, actions = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        chance = rng.multinomial(4, [0.4, 0.3, 0.3], (states, actions))
        reward = rng.integers(-4, 5, (states, actions, 3))
        after = np.minimum(
            np.arange(states)[:, None, None] + rng.integers(1, 3, reward.shape), states
        )
        mdp = sf.TabularMDP(
            next_state=np.minimum(after, states - 1), probability=chance / 4,
            reward_mean=reward.astype(float), terminal=after == states,
        )  # fmt: skip
        gamma, value = Fraction(3, 4), [Fraction(0)] * (states + 1)
        for s in reversed(range(states)):
            worth = [sum(Fraction(int(p), 4) * (int(r) + gamma * value[t])
                         for p, r, t in zip(chance[s, a], reward[s, a], after[s, a], strict=True))
                     for a in range(actions)]  # fmt: skip
            value[s] = max(worth)
        found = sf.mdp.value_iteration(mdp, 0.75)
        assert found.converged
        np.testing.assert_allclose(found.v, [float(v) for v in value[:-1]], atol=1e-12)
