"""Dominance beside a sort, entropic gradients and proximal steps beside OTT-JAX, GeomLoss and POT.

OTT-JAX runs the same three annealed sweeps with its envelope (Danskin) gradient. GeomLoss runs
three temperatures with its symmetric updates, POT three sweeps at the last temperature problem by
problem and without a gradient: they are shown for scale and carry no goal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Row, race

SIZES = ((50, 16), (32, 64), (48, 200))
SPREADS = ((1.0, 1.0), (1.0, 0.0), (3.0, 0.0), (0.3, 0.3))


def run(quick: bool) -> list[Row]:
    rows = _dominance(20 if quick else 60)
    rows += _sorting(10 if quick else 30)
    for batch, n in SIZES:
        rows += _gradient(batch, n, (10 if quick else 40) if n < 100 else (3 if quick else 10))
    for spread, shift in SPREADS[:1] if quick else SPREADS:
        rows += _proximal(spread, shift, 3 if quick else 12)
    return rows


def _dominance(rounds: int) -> list[Row]:
    import jax
    import jax.numpy as jnp

    from surefoot.core.dominance import dominant_set
    from surefoot.policies import SSD

    z = np.sort(np.random.default_rng(0).normal(size=(64, 4, 51)), axis=-1)
    z = jnp.asarray(z, jnp.float32)
    keys = jax.random.split(jax.random.PRNGKey(0), 64)
    policy = SSD(1e-3)
    ssd = jax.jit(jax.vmap(lambda z, key: policy(z, key, assume_sorted=True)))
    chosen = jax.jit(lambda z: dominant_set(z, assume_sorted=True))
    sort = jax.jit(lambda z: jnp.sort(z, axis=-1))
    spent = race(
        {"ssd": lambda: ssd(z, keys), "set": lambda: chosen(z), "sort": lambda: sort(z)},
        rounds,
        repeats=10,
    )
    peer = ("jnp.sort of that batch", spent["sort"])
    return [
        Row("SSD policy, sorted batch (64, 4, 51)", spent["ssd"], *peer, "at most 1/10", 10.0),
        Row("dominant_set, sorted batch (64, 4, 51)", spent["set"], *peer),
    ]


def _sorting(rounds: int) -> list[Row]:
    import jax
    import jax.numpy as jnp

    from surefoot.core.sorting import network_sort

    ours, theirs = jax.jit(network_sort), jax.jit(lambda x: jnp.sort(x, axis=-1))

    def beside(shape: tuple[int, ...]) -> Row:
        x = jnp.asarray(np.random.default_rng(1).normal(size=shape), jnp.float32)
        spent = race({"ours": lambda: ours(x), "xla": lambda: theirs(x)}, rounds, 10)
        return Row(f"sorting network, random {shape}", spent["ours"], "jnp.sort", spent["xla"])

    return [beside(shape) for shape in ((64, 4, 51), (50, 16), (32, 256))]


def _gradient(batch: int, n: int, rounds: int) -> list[Row]:
    import jax
    import jax.numpy as jnp

    from surefoot.transport import entropic_cost

    rng = np.random.default_rng(0)
    x = jnp.asarray(np.sort(rng.normal(size=(batch, n)) * 3, axis=-1), jnp.float32)
    y = jnp.asarray(np.sort(rng.normal(size=(batch, n)) * 3 + 1, axis=-1), jnp.float32)
    ours = jax.jit(jax.vmap(jax.value_and_grad(entropic_cost)))
    calls: dict[str, Callable[[], Any]] = {"ours": lambda: ours(x, y)}
    cost = _ott_cost()
    note = ""
    if cost is not None:
        theirs = jax.jit(jax.vmap(jax.value_and_grad(cost)))
        calls["OTT-JAX"] = lambda: theirs(x, y)
        apart = max(
            float(jnp.abs(a - b).max()) for a, b in zip(ours(x, y), theirs(x, y), strict=True)
        )
        note = f"answers {apart:.0e} apart"
    spent = race(calls, rounds)
    for name, make in (("GeomLoss", _geomloss), ("POT", _pot)):
        call = make(np.array(x), np.array(y))
        if call is not None:  # for scale only: fewer rounds
            spent |= race({name: call}, max(rounds // 10, 2), repeats=1)
    rows = []
    for name, wanted, goal in (
        ("OTT-JAX", "no slower", 1.0),
        ("GeomLoss", "", None),
        ("POT", "", None),
    ):
        label = f"value and gradient of the entropic distance, {batch} x {n}"
        if name in spent:
            rows.append(Row(label, spent["ours"], name, spent[name], wanted, goal, note))
        else:
            rows.append(Row(label, spent["ours"], f"{name} (not installed)", None, wanted))
        note = ""
    return rows


def _ott_cost() -> Callable[[Any, Any], Any] | None:
    try:
        from ott.geometry import epsilon_scheduler, pointcloud
        from ott.solvers import linear
    except ImportError:
        return None

    def cost(x: Any, y: Any) -> Any:
        schedule = epsilon_scheduler.Epsilon(0.25, init=4.0, decay=0.5)
        cloud = pointcloud.PointCloud(x[:, None], y[:, None], epsilon=schedule)
        limits = {"threshold": -1.0, "min_iterations": 3, "max_iterations": 3}
        return linear.solve(cloud, **limits, inner_iterations=3, use_danskin=True).reg_ot_cost

    return cost


def _geomloss(x: np.ndarray, y: np.ndarray) -> Callable[[], Any] | None:
    try:
        import torch
        from geomloss import SamplesLoss
    except ImportError:
        return None
    torch.set_num_threads(1)
    blur = (0.25 / 2) ** 0.5  # its cost is half of ours, its temperature blur^2
    loss = SamplesLoss(
        "sinkhorn", p=2, blur=blur, scaling=0.5, diameter=2 * blur, debias=False,
        backend="tensorized",
    )  # fmt: skip
    left = torch.asarray(x)[..., None].requires_grad_()
    right = torch.asarray(y)[..., None]

    def call() -> Any:
        (slope,) = torch.autograd.grad(loss(left, right).sum(), left)
        return slope.numpy()

    return call


def _pot(x: np.ndarray, y: np.ndarray) -> Callable[[], Any] | None:
    try:
        import ot
    except ImportError:
        return None
    import warnings

    flat = np.full(x.shape[-1], 1 / x.shape[-1], x.dtype)
    costs = (x[:, :, None] - y[:, None, :]) ** 2

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that three sweeps have not converged
            return [
                ot.bregman.sinkhorn_log(flat, flat, c, 0.25, numItermax=3, stopThr=0.0)
                for c in costs
            ]

    return call


def _proximal(spread: float, shift: float, rounds: int) -> list[Row]:
    import jax
    import jax.numpy as jnp

    from surefoot.transport import proximal_step

    cost = _ott_cost()
    batch, n = 50, 16
    rng = np.random.default_rng(0)
    anchor = jnp.asarray(np.sort(rng.normal(size=(batch, n)) * spread, axis=-1), jnp.float32)
    target = jnp.asarray(np.sort(rng.normal(size=(batch, n)) * spread + shift, -1), jnp.float32)
    label = f"converged proximal step, 50 x 16, std {spread:g}, shift {shift:g}"
    if cost is None:
        return [Row(label, None, "OTT-JAX (not installed)")]

    def descend(anchor: Any, target: Any) -> Any:
        """50 gradient steps on OTT's loss, in the Wasserstein geometry, size 1 / (2 (1 + h))."""
        slope = jax.grad(lambda z: cost(z, anchor) + jnp.mean((z - target) ** 2))
        step = lambda z, _: (z - 0.25 * n * slope(z), None)  # noqa: E731
        return jax.lax.scan(step, anchor, None, length=50)[0]

    theirs = jax.jit(jax.vmap(descend))
    tolerances = (1e-2, 3e-3, 1e-3, 3e-4)
    ours = {
        tolerance: jax.jit(
            jax.vmap(
                lambda a, t, tolerance=tolerance: proximal_step(
                    a, t, tolerance=tolerance, assume_sorted=True
                )
            )
        )
        for tolerance in tolerances
    }
    exact = jax.jit(
        jax.vmap(
            lambda a, t: (
                proximal_step(a, t, tolerance=1e-7, max_iterations=3000, assume_sorted=True).z
            )
        )
    )(anchor, target)
    calls: dict[str, Callable[[], Any]] = {"ott": lambda: theirs(anchor, target)}
    calls |= {str(t): lambda f=f: f(anchor, target) for t, f in ours.items()}
    spent = race(calls, rounds)
    off = float(jnp.abs(theirs(anchor, target) - exact).mean())
    rows = []
    for tolerance, step in ours.items():
        found = step(anchor, target)
        error = float(jnp.abs(found.z - exact).mean())
        share = float(found.converged.mean())
        default = tolerance == 1e-3
        rows.append(
            Row(
                f"{label}, tolerance {tolerance:g}" + (" (default)" if default else ""),
                spent[str(tolerance)],
                "50 gradient steps on OTT-JAX",
                spent["ott"],
                "at least 10 times faster" if default else "",
                10.0 if default else None,
                f"{int(found.iterations.max())} iterations, {share:.0%} converged; mean distance "
                f"to the minimiser {error:.1e}, peer {off:.1e}",
            )
        )
    return rows
