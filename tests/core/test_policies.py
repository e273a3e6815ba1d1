"""Policies: who decides and why, masks, ties, exploration, risk measures against integrals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from surefoot.core import dominance
from surefoot.core import particles as sp
from surefoot.core.shortfall import FEW
from surefoot.errors import InputError
from surefoot.policies import (
    CPW,
    POLICIES,
    SSD,
    CVaR,
    DecidedBy,
    Explore,
    Greedy,
    MeanVariance,
    Wang,
    policy_named,
    policy_text,
)
from surefoot.policies.base import Decision, Policy, draw

pytestmark = pytest.mark.usefixtures("no_rank_promotion")
KEY = jax.random.key(0)
SURE, RISKY = [1.0, 1.0], [0.0, 2.0]
PAPER = SSD(1e-3)  # the paper's rule; `SSD()`, which asks for evidence: test_two_questions.py


def actions(policy: Policy, z: object, mask: object = None, draws: int = 400) -> np.ndarray:
    """How often each action is taken."""
    z = np.asarray(z, np.float32)
    mask = np.ones(len(z), bool) if mask is None else np.asarray(mask)
    taken = acting(policy)(z, jax.random.split(KEY, draws), mask)
    return np.bincount(taken, minlength=len(z)) / draws


@cache
def acting(policy: Policy) -> Callable[..., jax.Array]:
    def act(z: jax.Array, key: jax.Array, mask: jax.Array) -> jax.Array:
        return policy(z, key, mask, n=jnp.full(len(z), 8))

    return jax.jit(jax.vmap(act, in_axes=(None, 0, None)))


def test_dominance_decides_by_hand() -> None:
    decision = PAPER.decide(jnp.asarray([RISKY, SURE, [-1.0, 0.5]]), KEY)
    assert int(decision.action) == 1
    assert int(decision.decided_by) == DecidedBy.DOMINANCE
    assert decision.candidates.tolist() == [False, True, False]
    assert decision.tied.tolist() == [True, True, False]  # means 1, 1, -0.25
    assert bool(decision.multiple_solutions)
    # Curves (0, 1), (0.5, 1), (-0.5, -0.25): it leads the others by 0.5 at tau = 1/2.
    assert decision.margin == pytest.approx(0.5)
    expected = [[0, 0.5, 0], [0, 0, 0], [1.25, 1.25, 0]]
    assert decision.violations == pytest.approx(np.asarray(expected))


def test_equal_actions_are_drawn_by_lot() -> None:
    decision = PAPER.decide(jnp.asarray([SURE, RISKY, SURE]), KEY)
    assert int(decision.decided_by) == DecidedBy.TIE_BREAK
    assert decision.candidates.tolist() == [True, False, True]
    share = actions(PAPER, [SURE, RISKY, SURE])
    assert share[1] == 0
    assert share[0] == pytest.approx(0.5, abs=0.08)


# No action dominates: the first has the best mean (5.5/3) with the worst tail, the second the
# best tail; the third lies between. Curves: (-1, -0.5, 5.5/3), (1/3, 2/3, 1), (0, 0.3, 1.5).
CROSSED = [[-3.0, 1.5, 7.0], [1.0, 1.0, 1.0], [0.0, 0.9, 3.6]]


def test_undecided_greedy_is_the_paper() -> None:
    decision = PAPER.decide(jnp.asarray(CROSSED), KEY)
    assert int(decision.decided_by) == DecidedBy.FALLBACK
    assert int(decision.action) == 0
    # Several greedy actions: uniform among them.
    equal = [[-3.0, 1.5, 7.0], [-2.0, -0.5, 8.0], [0.0, 0.0, 0.0]]
    share = actions(PAPER, equal)
    assert share[2] == 0
    assert share[0] == pytest.approx(0.5, abs=0.08)


def test_undecided_least_violation() -> None:
    # Worst shortfalls: 4/3 at tau = 1/3; 2.5/3 at the mean; 1.1/3 at tau = 2/3.
    decision = SSD(1e-3, undecided="least_violation").decide(jnp.asarray(CROSSED), KEY)
    assert int(decision.action) == 2
    assert int(decision.decided_by) == DecidedBy.FALLBACK
    assert decision.violations.max(axis=1) == pytest.approx(
        np.array([4 / 3, 2.5 / 3, 1.1 / 3]), abs=1e-6
    )


def test_undecided_lexicographic() -> None:
    # Equal means 1; lower tails (-1, -0.5, 0.1): the last leads at 1/3 but not at 2/3.
    z = [[-3.0, 1.5, 4.5], [-1.5, -1.5, 6.0], [0.3, -3.0, 5.7]]
    z = np.sort(z, axis=-1)
    assert not dominance.dominant_set(z).any()
    # From the worst outcome upwards: -3, -1.5, -3: the second.
    decision = SSD(1e-3, undecided="lexicographic").decide(jnp.asarray(z), KEY)
    assert int(decision.action) == 1
    assert int(decision.decided_by) == DecidedBy.FALLBACK
    # A better mean comes before any tail.
    assert int(SSD(1e-3, undecided="lexicographic")(jnp.asarray(CROSSED), KEY)) == 0


def test_tolerance_makes_ties_and_is_documented_in_return_units() -> None:
    z = jnp.asarray([[0.999, 1.001], [0.0, 2.0008]])  # means 1.0 and 1.0004
    assert int(SSD(tolerance=0.0)(z, KEY)) == 1  # undecided, greedy: the larger mean
    decision = SSD(tolerance=1e-3).decide(z, KEY)
    assert int(decision.action) == 0
    assert int(decision.decided_by) == DecidedBy.DOMINANCE
    assert bool(decision.multiple_solutions)
    assert actions(Greedy(tolerance=1e-3), z)[0] == pytest.approx(0.5, abs=0.08)
    assert actions(Greedy(tolerance=1e-5), z)[0] == 0.0
    # A tolerance above the dispersion hides it.
    assert int(SSD(tolerance=1.0).decide(z, KEY).decided_by) == DecidedBy.TIE_BREAK


def test_masks_take_actions_away() -> None:
    z = [SURE, RISKY, [5.0, 5.0]]
    masked = [True, True, False]
    decision = PAPER.decide(jnp.asarray(z), KEY, jnp.asarray(masked))
    assert int(decision.action) == 0
    assert int(decision.decided_by) == DecidedBy.DOMINANCE
    assert decision.tied.tolist() == [True, True, False]
    assert decision.margin == pytest.approx(0.5)
    for policy in (*[k() for k in POLICIES.values()], Explore(explore=1.0)):
        assert actions(policy, z, masked)[2] == 0
    for name in ("least_violation", "lexicographic"):
        crossed = [*CROSSED, [9.0, 9.0, 9.0]]
        assert actions(SSD(1e-3, undecided=name), crossed, [True] * 3 + [False])[3] == 0
    only = PAPER.decide(jnp.asarray(z), KEY, jnp.asarray([False, True, False]))
    assert int(only.action) == 1
    assert only.margin == 0.0


def test_low_returns_are_not_mistaken_for_infeasible() -> None:
    z = jnp.asarray([[-1e30, -1e30], [5.0, 5.0], [-1e29, -1e29]])
    assert int(Greedy()(z, KEY, jnp.asarray([True, False, True]))) == 2
    assert int(PAPER(z, KEY, jnp.asarray([True, False, True]))) == 2


EXPLORING = {explore: Explore(policy=PAPER, explore=explore) for explore in (0.0, 0.3, 1.0)}


@cache
def explored() -> dict[float, Decision]:
    """Three thousand decisions of each, in one program."""
    z = jnp.asarray([SURE, RISKY, [-5.0, -5.0]])
    decide = jax.vmap(lambda k: {e: policy.decide(z, k) for e, policy in EXPLORING.items()})
    return jax.device_get(jax.jit(decide)(jax.random.split(KEY, 3000)))


@pytest.mark.parametrize("explore", EXPLORING)
def test_exploration_frequency(explore: float) -> None:
    policy, decisions = EXPLORING[explore], explored()[explore]
    strayed = np.asarray(decisions.decided_by) == DecidedBy.EXPLORATION
    assert strayed.mean() == pytest.approx(explore, abs=0.03)
    taken = np.asarray(decisions.action)
    assert (taken[~strayed] == 0).all()
    for action in range(3):
        assert (taken == action).mean() == pytest.approx(
            explore / 3 + (1 - explore) * (action == 0), abs=0.03
        )
    # The reasons stay those of the policy inside.
    assert bool(decisions.multiple_solutions.all())
    assert np.asarray(decisions.margin) == pytest.approx(0.5)
    assert policy.tolerance == 1e-3


@pytest.mark.parametrize("keys", ["split", "seeds", "raw"])
@pytest.mark.parametrize("wide", [False, True])
def test_draws_are_uniform(keys: str, wide: bool) -> None:
    width = FEW + 8 if wide else 5
    chosen = [0, 2, 3, *range(FEW, width)]
    candidates = jnp.zeros(width, bool).at[jnp.asarray(chosen)].set(True)
    many = 6000
    made = {
        "split": lambda: jax.random.split(KEY, many),
        "seeds": lambda: jax.vmap(jax.random.key)(jnp.arange(many)),
        "raw": lambda: jax.random.split(jax.random.PRNGKey(1), many),
    }[keys]()
    counts = np.bincount(jax.jit(jax.vmap(lambda k: draw(candidates, k)))(made), minlength=width)
    assert set(np.flatnonzero(counts)) == set(chosen)
    assert stats.chisquare(counts[chosen]).pvalue > 1e-3


returns = hnp.arrays(np.float64, (3, 5), elements=st.integers(-40, 40).map(lambda k: k / 8))


@given(returns)
@settings(max_examples=60, deadline=None)
def test_ssd_takes_the_dominant_set(z: np.ndarray) -> None:
    decision = _decide(jnp.asarray(z, "float32"))
    dominant = dominance.dominant_set(z, tolerance=1e-3)
    number = int(dominant.sum())
    if number:
        assert np.array_equal(decision.candidates, dominant)
        assert dominant[int(decision.action)]
        assert int(decision.decided_by) == (
            DecidedBy.DOMINANCE if number == 1 else DecidedBy.TIE_BREAK
        )
    else:
        assert int(decision.decided_by) == DecidedBy.FALLBACK
        mean = z.mean(axis=-1)
        assert np.array_equal(decision.candidates, mean >= mean.max() - 1e-3 - 1e-6)
    # SSD never gives up expected return.
    assert z[int(decision.action)].mean() >= z.mean(axis=-1).max() - 1e-3 - 1e-6


_decide = jax.jit(lambda z: PAPER.decide(z, KEY))


@given(returns, st.permutations(range(5)))
@settings(max_examples=30, deadline=None)
def test_particle_order_does_not_matter(z: np.ndarray, order: list[int]) -> None:
    same = _decide(jnp.asarray(z, "float32"))
    mixed = _decide(jnp.asarray(z[:, order], "float32"))
    assert int(same.action) == int(mixed.action)
    assert np.array_equal(same.candidates, mixed.candidates)


@cache
def alone_and_together(names: tuple[str, ...]) -> list[dict[str, Decision]]:
    """Decisions in 50 states one by one and in one batch, by policies that share one program.

    What explores is the same around all of them: SSD has it here.
    """
    z = np.random.default_rng(1).normal(size=(50, 4, 51)).astype("float32")
    z, keys = np.sort(z, axis=-1), jax.random.split(KEY, 50)
    policies = {name: POLICIES[name]() for name in names}
    if "ssd" in policies:
        policies["ssd"] = Explore(policy=policies["ssd"], explore=0.1)

    def decide(z: jax.Array, key: jax.Array) -> dict[str, Decision]:
        n = jnp.arange(4) + 8  # evidence for SSD()
        return {k: p.decide(z, key, n=n, assume_sorted=True) for k, p in policies.items()}

    decide_all = jax.jit(jax.vmap(decide))
    alone = [jax.device_get(decide_all(z[i : i + 1], keys[i : i + 1])) for i in range(50)]
    return [jax.tree.map(lambda *x: np.concatenate(x), *alone), jax.device_get(decide_all(z, keys))]


@pytest.mark.optimised
@pytest.mark.parametrize("name", POLICIES)
def test_a_state_alone_gives_the_bits_it_gives_in_a_batch(name: str) -> None:
    # SSD compiled by itself; the risk measures, which differ in their score alone, together.
    names = ("ssd",) if name == "ssd" else tuple(n for n in POLICIES if n != "ssd")
    alone, together = (decisions[name] for decisions in alone_and_together(names))
    for field, a, b in zip(Decision._fields, alone, together, strict=True):
        assert np.array_equal(a, b), field


def test_many_actions() -> None:
    best = np.random.default_rng(2).normal(size=(FEW + 9, 6)).astype("float32")
    best[FEW + 3] = 10.0
    policies = (PAPER, Greedy(), CVaR())
    assert jax.jit(lambda z: [p(z, KEY) for p in policies])(best) == [FEW + 3] * 3


@pytest.mark.parametrize("eta", [-0.75, 0.4])
def test_wang_against_numerical_integration(eta: float) -> None:
    # Dabney et al. (2018): the mean of F^-1(beta(tau)) over uniform tau, beta = Phi(Phi^-1 + eta).
    z = np.array([-2.0, 0.5, 1.0, 4.0])
    level = lambda t: stats.norm.cdf(stats.norm.ppf(t) + eta)  # noqa: E731
    expected, _ = integrate.quad(
        lambda t: z[min(int(level(t) * 4), 3)], 0, 1, limit=2000, points=None, epsabs=1e-5
    )
    assert Wang(eta=eta).score(jnp.asarray(z)[None]) == pytest.approx(expected, abs=2e-3)
    assert Wang(eta=0.0).score(jnp.asarray(z)[None]) == pytest.approx(z.mean(), abs=1e-6)


@pytest.mark.parametrize("eta", [0.5, 0.71, 1.0])
def test_cpw_against_numerical_integration(eta: float) -> None:
    z = np.array([-2.0, 0.5, 1.0, 4.0])
    tau = (np.arange(400_000) + 0.5) / 400_000
    level = tau**eta / (tau**eta + (1 - tau) ** eta) ** (1 / eta)
    expected = z[np.minimum((level * 4).astype(int), 3)].mean()
    assert CPW(eta=eta).score(jnp.asarray(z)[None]) == pytest.approx(expected, abs=1e-3)


def test_risk_measures_by_hand() -> None:
    z = jnp.asarray([[-1.0, 0.0, 2.0, 3.0]])
    assert CVaR(alpha=0.6).score(z) == pytest.approx(-0.05 / 0.6)
    assert CVaR(alpha=1.0).score(z) == pytest.approx(1.0)
    # Mean 1, variance 2.5.
    assert MeanVariance(weight=0.4).score(z) == pytest.approx(0.0, abs=1e-6)
    assert Wang().weights(8).sum() == pytest.approx(1.0)
    # An averse Wang puts more weight on lower particles, a seeking one on higher.
    assert (np.diff(Wang(eta=-0.5).weights(6)) < 0).all()
    assert (np.diff(Wang(eta=0.5).weights(6)) > 0).all()


@given(returns, st.floats(0.05, 1.0))
@settings(max_examples=30, deadline=None)
def test_cvar_policy_scores_are_cvar(z: np.ndarray, alpha: float) -> None:
    score = CVaR(alpha=alpha).score(jnp.sort(jnp.asarray(z, "float32")))
    assert score == pytest.approx(sp.cvar(z, alpha), abs=1e-4)


def test_risk_aversion_changes_the_choice() -> None:
    # Mean 1.5 with a disaster at -6, against a sure 1.
    z = np.float32([[-6.0, 4.0, 4.0, 4.0], [1.0, 1.0, 1.0, 1.0]])
    averse = (CVaR(alpha=0.25), Wang(eta=-0.75), MeanVariance(weight=1.0))
    decide = jax.jit(lambda z: [p.decide(z, KEY)[:2] for p in (Greedy(), PAPER, *averse)])
    (greedy, _), (ssd, _), *others = jax.device_get(decide(z))
    assert greedy == 0
    assert ssd == 0  # no dominance; SSD never gives up the mean
    assert others == [(1, DecidedBy.SCORE)] * 3


@pytest.mark.parametrize("name", POLICIES)
def test_names_round_trip(name: str) -> None:
    policy = replace(POLICIES[name](), tolerance=3e-4)
    assert policy_named(policy_text(policy)) == policy
    assert policy_named(name) == POLICIES[name]()
    assert hash(policy) == hash(policy_named(policy_text(policy)))


def test_names_with_values() -> None:
    assert policy_named("cvar:0.1") == CVaR(alpha=0.1)
    assert policy_named("ssd:1e-4") == SSD(tolerance=1e-4)
    assert policy_named("ssd:undecided=least_violation,tolerance=0.01") == SSD(
        undecided="least_violation", tolerance=0.01
    )
    assert policy_named("wang:-0.5") == Wang(eta=-0.5)
    assert policy_named(SSD()) == SSD()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: SSD(undecided="greedily"), ["undecided", "'greedy'?"]),
        (lambda: SSD(tolerance=-1.0), ["tolerance = -1.0"]),
        (lambda: CVaR(alpha=0.0), ["alpha = 0.0", "(0, 1]"]),
        (lambda: CVaR(alpha="x"), ["alpha = 'x'", "(0, 1]"]),  # type: ignore[arg-type]
        (lambda: Wang(eta="x"), ["eta = 'x'"]),  # type: ignore[arg-type]
        (lambda: CPW(eta=None), ["eta = None"]),  # type: ignore[arg-type]
        (lambda: MeanVariance(weight="x"), ["weight = 'x'"]),  # type: ignore[arg-type]
        (lambda: SSD(standard_errors=None), ["standard_errors = None"]),  # type: ignore[arg-type]
        (lambda: Explore(explore="x"), ["explore = 'x'"]),  # type: ignore[arg-type]
        (lambda: policy_named(3), ["policy = 3", "its name"]),  # type: ignore[arg-type]
        (lambda: PAPER(jnp.ones((2, 2)), True), ["key = True", "whole number"]),
        (lambda: PAPER(jnp.ones((2, 2)), KEY, [2, 0]), ["mask = [2, 0]", "true or false"]),
        (lambda: PAPER(jnp.ones((2, 2)), KEY, [1.0, 0.0]), ["mask holds float64"]),
        (lambda: PAPER(jnp.ones((2, 2)), KEY, ["a", "b"]), ["mask holds <U1"]),
        (lambda: PAPER(jnp.ones((2, 2)), KEY, [[1, 0], [1]]), ["mask has rows of unequal lengths"]),
        (lambda: PAPER(jnp.ones((2, 2)), KEY, [True]), ["mask has shape (1,)", "2 actions"]),
        (lambda: CPW(eta=0.1), ["eta = 0.1", "[0.3, 1]"]),
        (lambda: MeanVariance(weight=float("nan")), ["weight = nan"]),
        (lambda: Explore(explore=1.5), ["explore = 1.5", "probability"]),
        (lambda: PAPER(jnp.ones(3), KEY), ["(3,)", "[A, N]", "vmap"]),
        (lambda: PAPER(jnp.ones((3, 0)), KEY), ["(3, 0)"]),
        (lambda: PAPER(jnp.ones((3, 2)), KEY, [1, 1]), ["mask", "(2,)", "3 actions"]),
        (lambda: PAPER(jnp.ones((2, 2)), KEY, [0, 0]), ["no feasible action"]),
        (lambda: policy_named("sdd"), ["policy 'sdd'", "'ssd'?"]),
        (lambda: policy_named("cvar:x"), ["alpha", "'x'", "not a number"]),
        (lambda: policy_named("cvar:beta=1"), ["option of policy cvar", "'beta'"]),
        (lambda: policy_text(Explore()), ["has no name", "ssd"]),
    ],
)
def test_mistakes_are_named(call: object, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    for word in words:
        assert word in str(caught.value)
