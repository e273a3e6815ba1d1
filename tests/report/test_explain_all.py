"""Many explanations at once are those made one by one; the drawing shows what they say."""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefoot.agents.explain import explain, explain_all
from surefoot.core.dominance import ssd_dominates
from surefoot.plots.decision import draw_decision, focus
from surefoot.policies import SSD, DecidedBy

NAMES = ("sure", "risky", "poor")


SURE = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
POLICY = SSD(tolerance=0.01)


def keys(count):
    return jax.random.split(jax.random.key(1), count)


def explained(z, policy=POLICY, **options):
    """One explanation; always of two rows of one shape, so that one program serves all tests."""
    return explain_all(np.stack([z, z]), policy, keys(2), names=NAMES, **options)[0]


@pytest.mark.slow  # alone, `explain` runs operation by operation, and each is compiled
@settings(deadline=None, max_examples=20)
@given(hnp.arrays(np.float64, (2, 3, 3), elements=st.floats(-10, 10, width=16)))
def test_all_at_once_is_one_by_one(z):
    together = explain_all(z, POLICY, keys(2), names=NAMES)
    for one, values, key in zip(together, z, keys(2), strict=True):
        alone = explain(values, POLICY, key, names=NAMES)
        assert str(one) == str(alone)
        np.testing.assert_array_equal(one.tied, alone.tied)
        np.testing.assert_allclose(one.violations, alone.violations)
        np.testing.assert_array_equal(one.cumulative_quantile, alone.cumulative_quantile)


def test_by_hand():
    # Equal means 2; partial sums of the sorted thirds: sure 2/3, 4/3, 2; risky 1/3, 3/3, 2.
    answer = explained(SURE)
    assert answer.action == 0
    assert answer.decided_by is DecidedBy.DOMINANCE
    assert answer.margin == pytest.approx(1 / 3, rel=1e-5)
    assert answer.words == (
        "action sure: its return dominates every other action's in the second order",
        "best mean, up to the tolerance: sure, risky",
        "it leads by up to 0.3333 on the curve of lower-tail sums (F^-2)",
    )
    assert answer.relations == (
        "second-order dominance: sure over risky, sure over poor, risky over poor"
    )
    assert answer.policy.startswith("ssd:tolerance=0.01")
    # The independent word of the dominance module.
    assert bool(ssd_dominates(SURE[0], SURE[1])) is bool(answer.dominates[0, 1])


# --- by evidence ---------------------------------------------------------------------------


def by_evidence(z, n):
    return explained(np.asarray(z), SSD(), n=np.array([n, n]))


def test_what_is_known_by_hand():
    # Means 2 and 2.25. The risky one's squares about its mean are 1.5625, 0.0625, 2.25: a third of
    # their sum is 1.2917, and from 20 observations sqrt(1.2917 / 19) = 0.2607. Its F^-2 about the
    # mean is -1.25 / 3, -1.5 / 3.
    answer = by_evidence([[2.0] * 3, [1.0, 2.0, 3.75], [0.0] * 3], [20, 20, 20])
    assert answer.words == (
        "action sure: of the actions that are worth the same, it is the surest",
        "surer than risky by up to 0.5 on the curve of lower-tail sums about the mean",
        "sure and risky are worth the same as far as the data tell: gap 0.25, standard error 0.26; "
        "a gap of this size would show with 9.8 times the data",  # (3 * 0.2607 / 0.25)^2
        "poor is worth less than risky: gap 2.25, standard error 0.26",
    )
    assert answer.tolerance is None
    assert answer.policy == "ssd"
    # 1, 2, 3.03: a third of the squares is 0.6869, the error 0.1901, (3 * 0.1901 / 0.01)^2 = 3254.
    # 1, 2, 3.001: the error 0.187, the gap 0.00033, 2.8 million.
    for best, often in ((3.03, "3,300"), (3.001, "more than a million")):
        close = by_evidence([[2.0] * 3, [1.0, 2.0, best], [0.0] * 3], [20, 20, 20])
        assert close.words[2].endswith(f"would show with {often} times the data")
    # Read aloud with the table of numbers below.
    assert str(answer).startswith(answer.words[0])


def test_too_little_is_known():
    answer = by_evidence([[2.0] * 3, [1.0, 2.0, 3.75], [0.0] * 3], [20, 1, 20])
    assert answer.words == (
        "action risky: its mean is the best, but too little is known of it to compare",
        "sure cannot be compared with risky: too few observations",
        "poor cannot be compared with risky: too few observations",
    )
    answer = by_evidence([[2.0] * 3, [1.0, 2.0, 3.75], [0.0] * 3], [0, 20, 20])
    assert answer.words[:2] == (
        "action risky: its mean is the best, and no other action makes up for that",
        "sure cannot be compared with risky: too few observations",
    )


def test_dominance_outright_and_curves_that_cross():
    # F^-2 of the first: 1/3, 2/3, 7/3; of the second 0.3, 0.6333, 0.9667, surer about its mean. The
    # gap of 1.3667 is less than the error sqrt(3.5556 + 0.0022), but of it the second saves only
    # half of (4 + 4 - 0.1 - 0.1) * 2 / 9.
    answer = by_evidence([[1.0, 1.0, 5.0], [0.9, 1.0, 1.0], [-9999.0] * 3], [2, 2, 2])
    assert answer.words[:2] == (
        "action sure: its mean is the best, and no other action makes up for that",
        "risky may be worth less than sure, and no surety makes up for it: gap 1.37, standard "
        "error 1.9",
    )
    # About their means -3, 1, 2 and -2, -2, 4: sums -1, -2/3 and -2/3, -4/3.
    answer = by_evidence([[-3.0, 1.0, 2.0], [-2.0, -2.0, 4.0], [-99.0] * 3], [20] * 3)
    assert answer.words[0] == (
        "action sure: of the actions that are worth the same none is the surest at every level; "
        "the fallback chose"
    )


def test_an_ensemble_is_explained_by_its_mean():
    members = np.stack([SURE, SURE + np.array([[0.0], [0.2], [0.0]])])
    answer = explain_all(np.stack([members, members]), SSD(), keys(2), names=NAMES)[0]
    np.testing.assert_allclose(answer.mean, [2.0, 2.1, 0.0])
    np.testing.assert_allclose(answer.z[1], [1.1, 2.1, 3.1])
    # Gaps 0 and 0.2: 0.1 on average, deviation 0.1414.
    assert "gap 0.1, standard error 0.14" in str(answer)


def test_an_infeasible_action_is_not_taken():
    answer = explained(SURE, masks=np.array([[False, True, True]] * 2))
    assert answer.action == 1


def test_the_drawing_looks_at_the_tied_actions():
    answer = explained(SURE)
    assert focus(answer) == [0, 1]
    figure = draw_decision(answer, "a title with $ in it")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["sure (chosen)", "risky"]
    cdf, curves, _ = figure.axes
    np.testing.assert_allclose(cdf.lines[1].get_ydata(), [0, 1 / 3, 2 / 3, 1, 1])
    np.testing.assert_allclose(curves.lines[0].get_ydata()[1:], [2 / 3, 4 / 3, 2])
    assert "drawn: sure, risky" in figure.get_suptitle()


def test_close_curves_are_drawn_as_differences():
    answer = explained(np.array([[-1200.0] * 3, [-1200.3, -1200.0, -1199.7], [-1300.0] * 3]))
    curves = draw_decision(answer).axes[1]
    assert "minus the chosen" in curves.get_ylabel()
    # F^-2 of the risky one minus that of the sure one: -0.3/3 at one and at two thirds, 0 at one.
    np.testing.assert_allclose(curves.lines[1].get_ydata(), [0, -0.1, -0.1, 0], atol=1e-9)


def test_one_action_and_no_spread_can_be_drawn():
    one, pair = np.zeros(1), np.zeros((1, 1), bool)
    answer = dataclasses.replace(
        explained(SURE), names=("a",), z=np.zeros((1, 3)), mean=one, std=one, tied=one == 0,
        cumulative_quantile=np.zeros((1, 3)), violations=pair, dominates=pair,
    )  # fmt: skip
    assert draw_decision(answer).axes
