"""`SSD()`: worth the same as far as the data tell, and which is surer. All by hand.

Three actions of four particles throughout, so that one program for each policy serves all tests.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefoot.core.dominance import ssd_dominates, violation
from surefoot.core.evidence import Known
from surefoot.errors import InputError
from surefoot.policies import SSD, DecidedBy, Explore, policy_named, policy_text
from surefoot.policies.base import Decision

pytestmark = pytest.mark.usefixtures("no_rank_promotion")

SURE, RISKY, POOR = [1.0] * 4, [0.0, 0.0, 2.0, 2.4], [-99.0] * 4
N = [20, 20, 20]


grid = st.integers(-256, 256).map(lambda k: k / 32)
estimates = hnp.arrays(np.float64, (3, 4), elements=grid)
counts = hnp.arrays(np.int64, 3, elements=st.sampled_from([0, 1, 2, 3, 8, 30, 500]))


def decide(z: object, n: object = N, mask: object = None, policy: SSD = SSD()) -> Decision:  # noqa: B008
    mask = np.ones(3, bool) if mask is None else np.asarray(mask)
    return jax.device_get(policy.decide(np.asarray(z, float), 0, mask, n=np.asarray(n)))


def test_worth_the_same_and_surer() -> None:
    # Means 1 and 1.1. The squares about 1.1 are 1.21, 1.21, 0.81, 1.69: variance 1.23; from 20
    # observations the standard error is sqrt(1.23 / 19) = 0.2544, and 0.1 lies well within.
    decision = decide([SURE, RISKY, POOR])
    assert decision.action == 0
    assert decision.decided_by == DecidedBy.DOMINANCE
    assert decision.tied.tolist() == [True, True, False]
    assert decision.candidates.tolist() == [True, False, False]
    np.testing.assert_allclose(decision.gap, [0.1, 0, 100.1])
    np.testing.assert_allclose(decision.error[[0, 2]], (1.23 / 19) ** 0.5)
    # F^-2 about the mean of the risky one: -1.1 / 4, -2.2 / 4, -1.3 / 4. It comes nearest at 1/4.
    np.testing.assert_allclose(decision.surer, [0, -0.275, 0], atol=1e-12)
    assert decision.margin == pytest.approx(0.5)  # F^-2(1/2) = 0.5 against 0
    # The same from an ensemble: gaps 0.3, 0.1, -0.1 of mean 0.1 and deviation 0.2.
    shift = np.zeros((3, 3, 1))
    shift[:, 1, 0] = [0.2, 0.0, -0.2]
    members = jax.device_get(SSD().decide(np.array([SURE, RISKY, POOR]) + shift, 0))
    assert members.action == 0
    np.testing.assert_allclose(members.gap, [0.1, 0, 100.1])
    np.testing.assert_allclose(members.error, [0.2, 0, 0.2], atol=1e-12)


def test_errors_that_are_known_themselves() -> None:
    # Errors 0.03 and 0.04 of two means make 0.05 of their gap, whatever the particles say. At 19
    # degrees of freedom each, Welch's are 19 (9 + 16)^2 / (81 + 256) = 35.2: 3.25 errors, 0.163.
    known = Known(np.array(N), np.array([0.03, 0.04, 1.0]))

    def asked(lead: float) -> Decision:
        z = np.array([SURE, np.add(RISKY, lead - 0.1), POOR])
        return jax.device_get(SSD().decide(z, 0, np.ones(3, bool), n=known))

    decision = asked(0.15)
    np.testing.assert_allclose(decision.error[0], 0.05)
    assert decision.action == 0
    assert decision.decided_by == DecidedBy.DOMINANCE
    assert asked(0.17).action == 1
    with pytest.raises(InputError, match="error has shape"):
        SSD().decide(np.array([SURE, RISKY, POOR]), 0, n=Known(np.array(N), np.ones(2)))


def test_worth_more() -> None:
    # At 19 degrees of freedom 3 normal deviations are 3.45 standard errors, 0.878. But the gap must
    # not be larger than what the sure action saves, either: the worse of two draws of the risky one
    # is lower than its mean by half of (2 + 2.4 + 2 + 2.4 + 0 + 0.4) / 8, by 0.575.
    for gap, action in ((0.5, 0), (0.57, 0), (0.58, 1), (0.85, 1), (0.9, 1)):
        decision = decide([SURE, np.add(RISKY, gap - 0.1), POOR])
        assert decision.action == action
        assert decision.decided_by == (DecidedBy.DOMINANCE, DecidedBy.SCORE)[action]
        assert decision.tied.tolist() == [action == 0, True, False]
    # From 200 observations on 3.06 standard errors are 0.241: beyond them the gap is real.
    for gap, action in ((0.23, 0), (0.25, 1)):
        assert decide([SURE, np.add(RISKY, gap - 0.1), POOR], [200] * 3).action == action
    # Two deviations are 2.18 standard errors of 0.2544, 0.555.
    two = SSD(standard_errors=2.0)
    for gap, action in ((0.54, 0), (0.56, 1)):
        assert decide([SURE, np.add(RISKY, gap - 0.1), POOR], policy=two).action == action


def test_surety_that_saves_little_pays_for_little() -> None:
    # Both are noisy, the second a quarter more. Of -3, -1, 1, 3 the worse of two draws is lower
    # than the mean by half of 2 (2 + 4 + 6 + 2 + 4 + 2) / 16, by 1.25; of the second by 1.5625. The
    # first saves 0.3125, far less than the three errors of 0.36 that could be chance.
    tighter, wider = np.array([-3.0, -1.0, 1.0, 3.0]), 1.25 * np.array([-3.0, -1.0, 1.0, 3.0])
    for gap, action in ((0.31, 0), (0.32, 1)):
        decision = decide([tighter, wider + gap, POOR], [100] * 3)
        np.testing.assert_allclose(decision.error[0], ((5 + 7.8125) / 99) ** 0.5)
        assert decision.action == action
    # The same of an ensemble, whose gaps have a deviation of 0.2944.
    shift = np.zeros((4, 3, 1))
    shift[:, 1, 0] = [-0.3, 0.3, -0.2, 0.2]
    for gap, action in ((0.31, 0), (0.32, 1)):
        members = np.array([tighter, wider + gap, POOR]) + shift
        assert int(SSD().decide(members, 0).action) == action
    # It has nothing to make up for where the mean is the better one.
    assert decide([tighter, wider - 0.01, POOR], [100] * 3).action == 0


def test_outright_dominance_comes_first() -> None:
    # F^-2 of the first 0.25, 0.5, 1, 2 is nowhere below the second's 0.225, 0.475, 0.725, 0.975,
    # which is surer about its mean: -0.019 against -0.25 at 1/4. Two observations tell nothing of
    # the gap of 1.025; but all that the second saves is 10 / 16 less 0.3 / 16.
    z = [[1.0, 1.0, 2.0, 4.0], [0.9, 1.0, 1.0, 1.0], POOR]
    decision = decide(z, [2, 2, 2])
    assert decision.action == 0
    assert decision.decided_by == DecidedBy.SCORE
    assert decision.gap[1] < decision.error[1] * 19.2
    assert decision.surer[1] > 0.2


@given(estimates, counts)
@settings(max_examples=100, deadline=None)
def test_what_is_dominated_outright_is_never_tied(z: np.ndarray, n: np.ndarray) -> None:
    z[1] = np.sort(z[0]) - np.abs(np.sort(z[1])) / 8 - 1 / 64
    decision = decide(z, np.maximum(n, 2))
    assert ssd_dominates(z[0], z[1])
    if decision.gap[0] == 0:
        assert not decision.tied[1]


@pytest.mark.parametrize("few", [0, 1])
def test_without_evidence_nothing_is_compared(few: int) -> None:
    # The sure action, untried: it does not dominate, and the risky one is taken for its mean.
    decision = decide([SURE, RISKY, POOR], [few, 20, 20])
    assert decision.action == 1
    assert decision.decided_by == DecidedBy.SCORE
    assert decision.tied.tolist() == [False, True, False]
    assert np.isinf(decision.error[0])
    # The best mean, untried: nothing is better, and nothing is said of it.
    decision = decide([SURE, RISKY, POOR], [20, few, 20])
    assert decision.action == 1
    assert decision.decided_by == DecidedBy.FALLBACK
    # An untried third changes nothing between the two.
    assert decide([SURE, RISKY, POOR], [20, 20, few]).action == 0
    # Untried, and by chance of the same mean: it stays in, and the others are compared as ever.
    for z, n, taken in (
        ([SURE, [0.0, 0.0, 2.0, 2.0], SURE], [20, 20, few], [True, False, True]),
        ([[0.0, 0.0, 2.0, 2.0], SURE, SURE], [few, 20, 20], [True, True, True]),
    ):
        equal = decide(z, n)
        assert equal.candidates.tolist() == taken
        assert equal.decided_by == DecidedBy.FALLBACK
    # Nothing tried at all: one of the best means.
    nothing = decide([[0.0] * 4] * 3, [0] * 3)
    assert nothing.candidates.all()
    assert nothing.decided_by == DecidedBy.FALLBACK


# Pairs whose curves about the mean cross, with the actions that each rule takes. First: curves
# -0.75, -0.5, -0.25 (mean 0) and -0.525, -1.05, -0.575 (mean 0.1): short by 0.225 and by 0.55.
# Second: -0.755, -0.505, -0.255 (mean 0.02) and -0.35, -0.6, -0.475 (mean 0): by 0.405 and by 0.22.
# The one of the lower mean saves 1.075 - 0.75 and 0.7575 - 0.7125: more than it costs.
CROSSED = (
    [[-3.0, 1.0, 1.0, 1.0], [-2.0, -2.0, 2.0, 2.4], POOR],
    [[-3.0, 1.02, 1.02, 1.04], [-1.4, -1.0, 0.5, 1.9], POOR],
)


@pytest.mark.parametrize(
    ("rule", "actions"),
    [(None, (1, 0)), ("least_violation", (0, 1)), ("greedy", (1, 0)), ("lexicographic", (1, 1))],
)
def test_where_curves_cross(rule: str | None, actions: tuple[int, int]) -> None:
    policy = SSD() if rule is None else SSD(undecided=rule)
    for z, action in zip(CROSSED, actions, strict=True):
        decision = decide(z, policy=policy)
        assert decision.action == action
        assert decision.decided_by == DecidedBy.FALLBACK
        assert decision.tied.tolist() == [True, True, False]
        # Among the tied only, whatever the rule.
        assert not decision.candidates[2]


def test_equally_sure_actions_are_drawn_by_lot() -> None:
    decision = decide([SURE, SURE, RISKY])
    assert decision.decided_by == DecidedBy.TIE_BREAK
    assert decision.candidates.tolist() == [True, True, False]


def test_masks_and_holes() -> None:
    z = np.array([SURE, RISKY, [9.0] * 4])
    assert decide(z).action == 2
    masked = decide(z, mask=[True, True, False])
    assert masked.action == 0
    assert masked.tied.tolist() == [True, True, False]
    assert decide(z, mask=[False, True, False]).action == 1
    for bad in (np.nan, np.inf, -np.inf):
        z[2] = [bad, 1.0, 2.0, 3.0]
        holes = decide(z)
        assert holes.action == 0
        assert holes.decided_by == DecidedBy.DOMINANCE
        assert holes.tied.tolist() == [True, True, False]
        assert not holes.candidates[2]


def test_evidence_that_is_missing_or_does_not_fit() -> None:
    z = np.array([SURE, RISKY, POOR])
    for policy in (SSD(), Explore(policy=SSD())):
        with pytest.raises(InputError, match=r"SSD\(\) cannot tell from one .* SSD\(tolerance\)"):
            policy.decide(z, 0)
    with pytest.raises(InputError, match="cannot tell from one"):
        SSD().decide(z[None], 0)  # an ensemble of one
    with pytest.raises(InputError, match="one kind of evidence, not both"):
        SSD().decide(np.stack([z, z]), 0, n=N)
    with pytest.raises(InputError, match="counts must be finite and not negative"):
        SSD().decide(z, 0, n=[1, -1, 1])
    with pytest.raises(InputError, match=r"n has shape \(2,\)"):
        SSD().decide(z, 0, n=[1, 1])
    with pytest.raises(InputError, match="n holds object: real numbers are needed"):
        SSD().decide(z, 0, n=[2**70, 1, 1])
    with pytest.raises(InputError, match="policy = 2: it must be a policy"):
        Explore(2)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="standard_errors = 0"):
        SSD(standard_errors=0.0)


NUMBERS = ("margin", "violations", "gap", "error", "surer")


def same_in_another_unit(a: Decision, b: Decision, power: int) -> None:
    for name, x, y in zip(Decision._fields, a, b, strict=True):
        factor = 2.0**power if name in NUMBERS else 1
        np.testing.assert_array_equal(np.asarray(x) * np.asarray(x).dtype.type(factor), y, name)


@given(estimates, counts, st.integers(-60, 60), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=60, deadline=None)
def test_no_unit_comes_in(z: np.ndarray, n: np.ndarray, power: int, dtype: type) -> None:
    z, key, mask = z.astype(dtype), jax.random.key(0), np.ones(3, bool)
    one, other = (
        jax.device_get(SSD().decide(x, key, mask, n=n)) for x in (z, z * dtype(2.0**power))
    )
    same_in_another_unit(one, other, power)
    # Never more below the best mean than the evidence allows.
    tied = one.gap <= 235 * one.error  # Student's factor at one degree of freedom
    assert bool((one.gap == 0)[one.action] or tied[one.action])


@given(hnp.arrays(np.float64, (4, 3, 4), elements=grid), st.integers(-60, 60))
@settings(max_examples=30, deadline=None)
def test_no_unit_comes_in_by_an_ensemble(z: np.ndarray, power: int) -> None:
    one, other = (jax.device_get(SSD().decide(x, 0)) for x in (z, z * 2.0**power))
    same_in_another_unit(one, other, power)


@given(estimates, counts, st.sampled_from([1.0, 1e-30, 1e30]))
@settings(max_examples=40, deadline=None)
def test_a_third_action_plays_no_part_in_a_pair(z: np.ndarray, n: np.ndarray, width: float) -> None:
    z[2] = -100.0
    n[2] = 5
    other = z.copy()
    other[2] = [-(2e3) - width, -2e3, -2e3, -2e3]
    first, second = decide(z, n), decide(other, n)
    for name in ("tied", "gap", "error"):
        a, b = (getattr(d, name)[:2] for d in (first, second))
        np.testing.assert_array_equal(a, b, name)


@cache
def batches() -> tuple[np.ndarray, Decision]:
    """One program for all: ensembles of six members in a batch."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(33, 1, 3, 5)) + 0.1 * rng.normal(size=(33, 6, 3, 1))
    z = np.sort(z, axis=-1).astype("float32")
    return z, many(z)


@jax.jit
def many(z: jax.Array) -> Decision:
    return jax.vmap(lambda z: SSD().decide(z, jax.random.key(0), assume_sorted=True))(z)


@pytest.mark.optimised
def test_the_same_bits_alone_and_in_a_batch() -> None:
    z, together = batches()
    assert len(set(np.asarray(together.decided_by).tolist())) > 2  # all kinds of decisions
    alone = many(z[7:8])
    for name, a, b in zip(Decision._fields, together, alone, strict=True):
        np.testing.assert_array_equal(a[7], b[0], name)


def test_both_precisions_decide_alike() -> None:
    z, narrow = batches()
    with jax.enable_x64(True):
        wide = many(jnp.asarray(z, jnp.float64))
    assert wide.gap.dtype == np.float64
    np.testing.assert_array_equal(narrow.action, wide.action)
    np.testing.assert_array_equal(narrow.tied, wide.tied)
    np.testing.assert_allclose(narrow.error, wide.error, rtol=1e-4, atol=1e-6)


@pytest.mark.slow  # operation by operation, and each is compiled
def test_the_same_compiled_and_not() -> None:
    z, together = batches()
    with jax.disable_jit():
        alone = SSD().decide(jnp.asarray(z[3]), jax.random.key(0), assume_sorted=True)
    for name, a, b in zip(Decision._fields, together, alone, strict=True):
        np.testing.assert_allclose(np.asarray(a[3], float), b, rtol=1e-5, atol=1e-6, err_msg=name)


# --- how it is written ---------------------------------------------------------------------


def test_text_and_python_agree() -> None:
    assert policy_named("ssd") == SSD()
    assert policy_named("ssd:0.3") == SSD(0.3) == SSD(tolerance=0.3)
    assert policy_named("ssd:standard_errors=2") == SSD(standard_errors=2.0)
    for policy in (
        SSD(), SSD(0.3), SSD(0.0), SSD(standard_errors=2.5), SSD(undecided="greedy"),
        SSD(1e-4, undecided="lexicographic"),
    ):  # fmt: skip
        assert policy_named(policy_text(policy)) == policy
        assert hash(policy_named(policy_text(policy))) == hash(policy)
    assert SSD().needs_evidence
    assert not SSD(0.0).needs_evidence
    assert Explore(policy=SSD()).needs_evidence
    with pytest.raises(InputError, match="tolerance = 'greedy': it must be a finite number"):
        SSD("greedy")  # type: ignore[arg-type]


def test_a_seed_is_a_key() -> None:
    z, mask = np.array([SURE, SURE, SURE]), np.ones(3, bool)
    taken = {int(SSD().decide(z, seed, mask, n=np.asarray(N)).action) for seed in range(20)}
    assert taken == {0, 1, 2}
    for seed in (0, np.int64(7)):
        a = SSD().decide(z, seed, mask, n=np.asarray(N)).action
        assert a == SSD().decide(z, jax.random.key(int(seed)), mask, n=np.asarray(N)).action


@pytest.mark.parametrize("offset", [0.0, 100.0, 1000.0, 10_000.0])
def test_rounding_far_from_zero_does_not_tie_what_is_dominated(offset):
    """float32: means of returns about 10,000 are rounded to 0.001, distances from the middle
    particle are exact. The better one has a better best case and is the same else."""
    for seed in range(40):
        better = np.sort(offset + np.random.default_rng(seed).normal(size=32)).astype(np.float32)
        worse = better.copy()
        worse[-1] = max(better[-1] - np.float32(0.04), better[-2])
        z = np.stack([worse, better])
        assert violation(z[1], z[0]) == 0
        if worse[-1] < better[-1]:
            decision = SSD().decide(z, 0, n=[32, 32])
            assert int(decision.action) == 1
            assert not decision.tied[0]
