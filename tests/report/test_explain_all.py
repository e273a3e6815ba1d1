"""Many explanations at once are those made one by one; the drawing shows what they say."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefoot.agents.explain import explain, explain_all
from surefoot.core.dominance import ssd_dominates
from surefoot.plots.decision import draw_decision, focus
from surefoot.policies import SSD, DecidedBy, Greedy

NAMES = ("sure", "risky", "poor")


def keys(count):
    return jax.random.split(jax.random.key(1), count)


@settings(deadline=None, max_examples=6)
@given(hnp.arrays(np.float64, (2, 3, 5), elements=st.floats(-10, 10, width=16)))
def test_all_at_once_is_one_by_one(z):
    policy = SSD(tolerance=0.01)
    together = explain_all(z, policy, keys(2), names=NAMES)
    for one, values, key in zip(together, z, keys(2), strict=True):
        alone = explain(values, policy, key, names=NAMES)
        assert str(one) == str(alone)
        np.testing.assert_array_equal(one.tied, alone.tied)
        np.testing.assert_allclose(one.violations, alone.violations)
        np.testing.assert_array_equal(one.cumulative_quantile, alone.cumulative_quantile)


def test_by_hand():
    # Equal means 2; partial sums of the sorted thirds: sure 2/3, 4/3, 2; risky 1/3, 3/3, 2.
    z = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    (told,) = explain_all(z[None], SSD(tolerance=0.01), keys(1), names=NAMES)
    assert told.action == 0
    assert told.decided_by is DecidedBy.DOMINANCE
    assert told.margin == pytest.approx(1 / 3, rel=1e-5)
    assert told.words == (
        "action sure: its return dominates every other action's in the second order",
        "best mean, up to the tolerance: sure, risky",
        "it leads by up to 0.3333 on the curve of lower-tail sums (F^-2)",
    )
    assert told.relations == (
        "second-order dominance: sure over risky, sure over poor, risky over poor"
    )
    assert told.policy.startswith("ssd:tolerance=0.01")
    # The independent word of the dominance module.
    assert bool(ssd_dominates(z[0], z[1])) is bool(told.dominates[0, 1])


def test_an_infeasible_action_is_not_taken():
    z = np.array([[[5.0, 5.0], [1.0, 1.0]]])
    masks = np.array([[False, True]])
    (told,) = explain_all(z, Greedy(), keys(1), masks=masks)
    assert told.action == 1
    assert told.names == ("0", "1")


def test_the_drawing_looks_at_the_tied_actions():
    z = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    told = explain(z, SSD(tolerance=0.01), jax.random.key(0), names=NAMES)
    assert focus(told) == [0, 1]
    figure = draw_decision(told, "a title with $ in it")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["sure (chosen)", "risky"]
    cdf, curves, _ = figure.axes
    np.testing.assert_allclose(cdf.lines[1].get_ydata(), [0, 1 / 3, 2 / 3, 1, 1])
    np.testing.assert_allclose(curves.lines[0].get_ydata()[1:], [2 / 3, 4 / 3, 2])
    assert "drawn: sure, risky" in figure.get_suptitle()


def test_close_curves_are_drawn_as_differences():
    z = np.array([[-12.0, -12.0], [-12.001, -11.999]])
    told = explain(z, SSD(tolerance=1e-4), jax.random.key(0))
    curves = draw_decision(told).axes[1]
    assert "minus the chosen" in curves.get_ylabel()
    # F^-2 of the risky one minus that of the sure one: -0.0005 at one half, 0 at one.
    np.testing.assert_allclose(curves.lines[1].get_ydata(), [0, -0.0005, 0], atol=1e-9)


def test_one_action_and_no_spread_can_be_drawn():
    told = explain(np.zeros((1, 4)), Greedy(), jax.random.key(0))
    assert draw_decision(told).axes
