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
