"""Entropic optimal transport on the line: Sinkhorn's algorithm in the log domain (Algorithm 3).

    W_beta(x, y) = min_P <P, C> + temperature * KL(P | a b^T),    C_ij = (x_i - y_j)^2

Functions are pure. Particles lie along the first axis; further axes are a batch, which XLA
vectorises where it leaves the small axes of a `jax.vmap` scalar. Each sweep updates `g`, then
`f`, so the rows of the plan sum to `a` exactly and the plan's row softmax is at hand: its mean
is the barycentric projection of `x` onto `y`, and with it the gradient costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core.array import check_tolerance
from surefoot.core.names import ANNEALING
from surefoot.errors import InputError, count_at_least, real, shown, unknown
from surefoot.transport.inputs import equally_many, particles, positive, shares

STARTS = ("zeros", "sorted")


class Sinkhorn(NamedTuple):
    """The result of a solve, and how well it converged."""

    cost: jax.Array  # <f, a> + <g, b>, line 12
    f: jax.Array  # [N] potential of x
    g: jax.Array  # [M] potential of y
    projection: jax.Array  # [N] where the plan sends each x on average
    marginal_error: jax.Array  # sum_j |sum_i P_ij - b_j|; the other marginal is exact
    sweeps: jax.Array
    converged: jax.Array  # marginal_error <= tolerance; never claimed for bounded sweeps


def sinkhorn(
    x: jax.Array,
    y: jax.Array,
    *,
    temperatures: tuple[float, ...] = ANNEALING,
    x_weights: jax.Array | None = None,
    y_weights: jax.Array | None = None,
    start: str = "zeros",
    tolerance: float | None = None,
    max_sweeps: int = 1000,
) -> Sinkhorn:
    """One sweep per temperature; with `tolerance`, go on at the last one until marginals fit.

    `start="zeros"` is the paper's line 4. `start="sorted"` begins with the potential of the
    unregularised problem, a cumulative sum for equally many ascending particles: from there a
    sweep or two do what hundreds do from zero when the particles spread wider than the square
    root of the temperature.

    The cost differentiates by the envelope theorem: the potentials are optimal, so only the
    cost matrix varies. Every other output is differentiated as the program it is.
    """
    options = SinkhornOptions(temperatures, start, tolerance, max_sweeps).checked()
    x, y = particles(x=x, y=y)
    a, b = shares(x_weights, x, "x_weights"), shares(y_weights, y, "y_weights")
    return _solve(options, x, y, a, b)._replace(cost=_cost(options, x, y, a, b))


class SinkhornOptions(NamedTuple):
    """How a solve is run; hashable, so that it can be a static argument."""

    temperatures: tuple[float, ...] = ANNEALING
    start: str = "zeros"
    tolerance: float | None = None
    max_sweeps: int = 1000

    def checked(self) -> SinkhornOptions:
        """The same with a tuple of temperatures, or an error that names what is wrong."""
        given = self.temperatures
        temperatures = tuple(given) if isinstance(given, Iterable) else (given,)
        if not temperatures or not all(0 < real(t) < math.inf for t in temperatures):
            raise InputError(
                f"temperatures = {shown(given)}: there must be at least one, all positive"
            )
        if self.start not in STARTS:
            raise unknown("start", self.start, STARTS)
        if self.tolerance is not None:
            check_tolerance(self.tolerance)
        count_at_least(1, max_sweeps=self.max_sweeps)
        return self._replace(temperatures=temperatures)


PAPER = SinkhornOptions()  # Algorithm 3 as the paper has it


def entropic_cost(x: jax.Array, y: jax.Array, options: SinkhornOptions = PAPER) -> jax.Array:
    """`W_beta(x, y)` of equally likely particles, with its envelope gradient."""
    x, y = particles(x=x, y=y)
    return _cost(options.checked(), x, y, None, None)


def divergence(x: jax.Array, y: jax.Array, options: SinkhornOptions = PAPER) -> jax.Array:
    """Debiased: `W(x, y) - W(x, x) / 2 - W(y, y) / 2`, zero where `x` equals `y`."""
    own = entropic_cost(x, x, options) + entropic_cost(y, y, options)
    return entropic_cost(x, y, options) - own / 2


def self_cost(x: jax.Array, temperature: float = ANNEALING[-1], max_sweeps: int = 500) -> jax.Array:
    """`W_beta(x, x)` solved to the end, however few sweeps a `cost` may take.

    The two potentials of a problem with itself are one; averaging it with its update converges
    within some dozen sweeps where alternating updates take hundreds.
    """
    flat = jnp.full_like(x, -jnp.log(float(x.shape[0])))
    enough = 8 * temperature * float(jnp.finfo(x.dtype).eps)

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, move, sweeps = state
        return jnp.any(move > enough) & (sweeps < max_sweeps)

    def again(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        f, _, sweeps = state
        change = (soft_minimum(f, x, flat, x, temperature)[0] - f) / 2
        return f + change, jnp.max(jnp.abs(change)), sweeps + 1

    begin = (jnp.zeros_like(x), jnp.asarray(jnp.inf, x.dtype), jnp.asarray(0))
    return 2 * jnp.mean(jax.lax.while_loop(unfinished, again, begin)[0], axis=0)


def exact_cost(x: jax.Array, y: jax.Array) -> jax.Array:
    """`W_2^2` of equally many, equally likely particles that both ascend."""
    x, y = particles(x=x, y=y)
    equally_many(x=x, y=y)
    return jnp.mean((x - y) ** 2, axis=0)


def plan(solved: Sinkhorn, x: jax.Array, y: jax.Array, temperature: float) -> jax.Array:
    """The coupling `[N, M]` behind a solve of equally likely particles."""
    x, y = particles(x=x, y=y)
    temperature = positive(temperature, "temperature")
    exponent = (
        solved.f[:, None] + solved.g[None, :] - (x[:, None] - y[None, :]) ** 2
    ) / temperature
    return jnp.exp(exponent) / (x.shape[0] * y.shape[0])


def soft_minimum(
    potential: jax.Array, source: jax.Array, log_weight: jax.Array, at: jax.Array, temperature: Any
) -> tuple[jax.Array, jax.Array]:
    """Lines 8 and 9: `-T log sum_i w_i exp((f_i - C_ij) / T)` at each `at[j]`, and its argument.

    The second output is the softmax mean of `source`. The sum runs over the first axis: XLA
    vectorises that, and leaves a sum over the last axis scalar.
    """
    rate = 1.0 / temperature
    height = potential * rate + log_weight
    scores = height[:, None] - (source[:, None] - at[None, :]) ** 2 * rate
    top = jax.lax.stop_gradient(jnp.max(scores, axis=0))
    share = jnp.exp(scores - top[None, :])
    total = jnp.sum(share, axis=0)
    return -temperature * (top + jnp.log(total)), jnp.sum(share * source[:, None], axis=0) / total


def sweep(
    f: jax.Array,
    x: jax.Array,
    y: jax.Array,
    log_a: jax.Array,
    log_b: jax.Array,
    temperature: Any,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Lines 8 and 9 of Algorithm 3; the third output projects `x` onto `y`."""
    g, _ = soft_minimum(f, x, log_a, y, temperature)
    f, projection = soft_minimum(g, y, log_b, x, temperature)
    return f, g, projection


def sorted_potential(x: jax.Array, y: jax.Array) -> jax.Array:
    """The potential `f` of the unregularised problem between ascending `x` and `y`.

    Its slope at `x_i` is `2 (x_i - y_i)`; the trapezoid rule between neighbours keeps `f` within
    the bounds that complementary slackness allows.
    """
    rise = (x[1:] - x[:-1]) * ((x[1:] - y[1:]) + (x[:-1] - y[:-1]))
    return jnp.concatenate([jnp.zeros_like(x[:1]), jnp.cumsum(rise, axis=0)])


def _solve(
    options: SinkhornOptions, x: jax.Array, y: jax.Array, a: jax.Array, b: jax.Array
) -> Sinkhorn:
    if options.start == "sorted" and x.shape != y.shape:
        raise InputError(f'start="sorted" needs equally many particles, not {x.shape}, {y.shape}')
    log_a, log_b = jnp.log(a), jnp.log(b)
    f = sorted_potential(x, y) if options.start == "sorted" else jnp.zeros_like(x)  # line 4
    for temperature in options.temperatures:  # line 6
        f, g, projection = sweep(f, x, y, log_a, log_b, temperature)
    last = options.temperatures[-1]

    def column_error(f: jax.Array, g: jax.Array) -> jax.Array:
        fitted, _ = soft_minimum(f, x, log_a, y, last)
        # A sweep would move g to `fitted`: the column sums are b * exp((g - fitted) / T).
        return jnp.sum(b * jnp.abs(jnp.expm1((g - fitted) / last)), axis=0)

    sweeps, error = jnp.asarray(len(options.temperatures)), column_error(f, g)
    converged = jnp.zeros_like(error, dtype=bool)
    if options.tolerance is not None:

        def unfinished(state: Any) -> jax.Array:
            *_, error, sweeps = state
            return jnp.any(error > options.tolerance) & (sweeps < options.max_sweeps)

        def again(state: Any) -> Any:
            f, _, _, _, sweeps = state
            f, g, projection = sweep(f, x, y, log_a, log_b, last)
            return f, g, projection, column_error(f, g), sweeps + 1

        state = (f, g, projection, error, sweeps)
        f, g, projection, error, sweeps = jax.lax.while_loop(unfinished, again, state)
        converged = error <= options.tolerance
    cost = jnp.sum(f * a, axis=0) + jnp.sum(g * b, axis=0)  # line 12
    return Sinkhorn(cost, f, g, projection, error, sweeps, converged)


def _few_sweeps(
    temperatures: tuple[float, ...], x: jax.Array, y: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Cost, `f`, `g` and projection of `_solve` from the sorted start with equal weights, cheaper.

    The start `f0` and its `g0_j = C_jj - f0_j` are feasible: `f0_i + g0_j <= C_ij`, with equality
    where `i = j`. So `K = exp((f0 + g0 - C) / T)` has ones on its diagonal and nothing above: a
    half sweep is a product with it, without a logarithm of a sum of exponentials. At half the
    temperature it is squared. `gain_f` and `gain_g` are what the potentials add to the start.
    """
    n, f0 = x.shape[0], sorted_potential(x, y)
    x, y, f0 = (jnp.moveaxis(particles, 0, -1) for particles in (x, y, f0))
    own, other = x[..., :, None], x[..., None, :]
    # f0_i + g0_j - C_ij in differences, which are exact where i = j.
    gap = f0[..., :, None] - f0[..., None, :] - (own - other) * (own + other - 2 * y[..., None, :])
    before, gain_f = temperatures[0], jnp.zeros_like(x)
    gap = jnp.minimum(gap, 0)  # the sum behind f0 rounds
    kernel = jax.lax.optimization_barrier(jnp.exp(gap / before))  # or XLA turns squares into exp
    for temperature in temperatures:
        if before == 2 * temperature:
            kernel = kernel * kernel
        elif before != temperature:
            kernel = jnp.exp(gap / temperature)
        before = temperature
        columns = jnp.einsum("...ij,...i->...j", kernel, jnp.exp(gain_f / temperature)) / n
        rows = jnp.einsum("...ij,...j->...i", kernel, 1 / columns) / n
        gain_f, gain_g = -temperature * jnp.log(rows), -temperature * jnp.log(columns)
    projection = jnp.einsum("...ij,...j->...i", kernel, y / columns) / (n * rows)
    exact = (x - y) ** 2
    cost = jnp.mean(exact + gain_f + gain_g, axis=-1)  # line 12: f0 + g0 is the exact transport
    solution = (f0 + gain_f, exact - f0 + gain_g, projection)
    f, g, projection = (jnp.moveaxis(particles, -1, 0) for particles in solution)
    return cost, f, g, projection


def _solved(
    options: SinkhornOptions, x: jax.Array, y: jax.Array, a: Any, b: Any
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    temperatures, n = options.temperatures, x.shape[0]
    # Each sweep moves a potential by at most T log N: exp(gain / T) must stay within float32.
    largest = sum(temperatures) / min(temperatures) * math.log(n)
    few = options.start == "sorted" and options.tolerance is None and largest < 80
    if few and a is None and b is None and x.shape == y.shape:
        return _few_sweeps(temperatures, x, y)
    solved = _solve(options, x, y, _or_equal(a, x), _or_equal(b, y))
    return solved.cost, solved.f, solved.g, solved.projection


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _cost(options: SinkhornOptions, x: jax.Array, y: jax.Array, a: Any, b: Any) -> jax.Array:
    return _solved(options, x, y, a, b)[0]


def _cost_jvp(
    options: SinkhornOptions, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    """Envelope theorem: `dW = <P, dC> + <f, da> + <g, db>`."""
    x, y, a, b = primals
    cost, f, g, projection = _solved(options, x, y, a, b)
    dx, dy, da, db = tangents
    slope, a, b = jnp.zeros_like(cost), _or_equal(a, x), _or_equal(b, y)
    if not _is_zero(dx):
        slope += jnp.sum(2 * a * (x - projection) * dx, axis=0)
    if not _is_zero(dy):
        # Not yet exact column sums: the plan's columns carry b * exp((g - fitted) / T).
        last = options.temperatures[-1]
        fitted, back = soft_minimum(f, x, jnp.log(a), y, last)
        mass = b * jnp.exp((g - fitted) / last)
        slope += jnp.sum(2 * mass * (y - back) * dy, axis=0)
    if not _is_zero(da):
        slope += jnp.sum(f * da, axis=0)
    if not _is_zero(db):
        slope += jnp.sum(g * db, axis=0)
    return cost, slope


_cost.defjvp(_cost_jvp, symbolic_zeros=True)


def _is_zero(tangent: Any) -> bool:
    return tangent is None or isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def _or_equal(weights: jax.Array | None, z: jax.Array) -> jax.Array:
    return shares(None, z, "") if weights is None else weights
