"""The quantile Huber loss and the sorting network, which nothing else tests by itself."""

from __future__ import annotations

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core_compiled import compiled
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from surefoot.core.losses import quantile_huber_loss, quantile_huber_slope
from surefoot.core.sorting import merge_sorted_rows, network_sort

pytestmark = pytest.mark.usefixtures("no_rank_promotion")


loss = compiled(quantile_huber_loss, "kappa")


def test_quantile_huber_by_hand() -> None:
    # z = (0, 2), tau = (1/4, 3/4), targets 1 and 4, kappa = 1. Errors t - z: for z = 0: 1 and 4,
    # weights 1/4, Huber 1/2 and 7/2: mean 1/4 * 4 / 2 = 0.5. For z = 2: -1 and 2, weights 1/4 and
    # 3/4, Huber 1/2 and 3/2: mean (1/8 + 9/8) / 2 = 0.625.
    z, t = np.array([0.0, 2.0]), np.array([1.0, 4.0])
    assert loss(z, t, 1.0) == pytest.approx(1.125)
    # Pure quantile loss: z = 0: 1/4 * (1 + 4) / 2; z = 2: (1/4 * 1 + 3/4 * 2) / 2.
    assert loss(z, t, 0.0) == pytest.approx(0.625 + 0.875)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 1.0])
def test_slope_is_the_gradient(kappa: float, x64: None) -> None:
    rng = np.random.default_rng(0)
    z, t = rng.normal(size=6), rng.normal(size=4)
    by_z, by_target = compiled(jax.grad(quantile_huber_loss, argnums=(0, 1)), "kappa")(
        z, t, kappa=kappa
    )
    slope = compiled(quantile_huber_slope, "kappa")(z, t, kappa)
    assert slope == pytest.approx(by_z, abs=1e-12)
    # No gradient reaches the target.
    assert by_target.tolist() == [0.0] * 4


def test_quantile_loss_is_minimised_by_the_quantiles() -> None:
    target = np.random.default_rng(1).normal(size=400)
    best = np.quantile(target, [0.125, 0.375, 0.625, 0.875])
    lowest = loss(best, target, 0.0)
    for push in np.random.default_rng(2).normal(size=(20, 4)):
        assert loss(best + 0.3 * push, target, 0.0) > lowest


@given(st.data(), st.sampled_from([1, 2, 3, 7, 16, 33]))
@settings(max_examples=40, deadline=None)
def test_network_sorts(data: st.DataObject, n: int) -> None:
    values = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)  # XLA flushes those to zero
    x = data.draw(hnp.arrays(np.float32, (3, n), elements=values))
    assert np.array_equal(network_sort(jnp.asarray(x)), np.sort(x, axis=-1))


@pytest.mark.parametrize(("k", "n"), [(1, 4), (4, 8), (3, 5), (2, 3)])
def test_rows_merge(k: int, n: int) -> None:
    rows = np.sort(np.random.default_rng(3).normal(size=(2, k, n)).astype("float32"), axis=-1)
    expected = np.sort(rows.reshape(2, -1), axis=-1)
    assert np.array_equal(merge_sorted_rows(jnp.asarray(rows)), expected)


def test_sort_differentiates_as_a_permutation(x64: None) -> None:
    weights = np.array([1.0, 10.0, 100.0])
    slope = compiled(jax.grad(lambda x: jnp.sum(network_sort(x) * weights)))(np.array([3.0, 1, 2]))
    assert slope.tolist() == [100.0, 1.0, 10.0]
