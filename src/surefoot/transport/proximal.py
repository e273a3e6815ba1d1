"""The JKO proximal step on particles (Algorithm 2 and line 10 of Algorithm 1).

    Prox(z0) = argmin_z  W(z, z0) + 2 h F(z)

Loss = potential x transport. What the literature names are points of one small table:

| name | potential | transport | step |
|---|---|---|---|
| WGF, the paper | bellman | sinkhorn | implicit |
| WGF debiased | bellman | divergence | implicit |
| WGF exact | bellman | exact | implicit, closed form |
| quantile regression | energy | exact | explicit: `z0 - h slope(z0)` |
| proximal quantile regression | energy | exact | implicit, closed form |

Particles are ascending `[N]`; functions are unbatched, the caller applies `jax.vmap`. The exact
and the entropic step keep the order, so a sorted table stays sorted without ever being sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.core.array import as_jax, check_tolerance, pairwise_sum
from surefoot.core.names import ANNEALING, SOLVERS
from surefoot.core.sorting import merge_sorted_rows, network_sort
from surefoot.errors import InputError, count_at_least, unknown
from surefoot.transport.couplings import Exact, Transport, transport_named
from surefoot.transport.inputs import one_row, particles, positive
from surefoot.transport.potentials import Potential, potential_named
from surefoot.transport.sinkhorn import SinkhornOptions


class ProximalStep(NamedTuple):
    """The new particles, and how well the step was solved."""

    z: jax.Array  # [N]
    residual: jax.Array  # largest last move of a particle, as a share of the range spanned
    iterations: jax.Array
    converged: jax.Array  # residual <= tolerance


def proximal_loss(
    z: jax.Array,
    anchor_z: jax.Array,
    target_z: jax.Array,
    step_size: float = 1.0,
    transport: str | Transport = "sinkhorn",
    potential: str | Potential = "bellman",
    *,
    temperatures: tuple[float, ...] = ANNEALING,
    sinkhorn_tolerance: float | None = None,
    start: str = "sorted",
) -> jax.Array:
    """Algorithm 2: `L = W(z, z0) + 2 h F_T(z)` for particles that ascend along the first axis.

    Further axes are a batch: `[N, B]` gives `[B]`, faster than `jax.vmap` over `[B, N]`.
    """
    options = SinkhornOptions(temperatures, start, sinkhorn_tolerance)
    transport, potential = resolve(transport, potential, options)
    z, anchor_z, target_z = particles(z=z, anchor_z=anchor_z, target_z=target_z)
    check_tolerance(step_size, "step_size")
    return transport.cost(z, anchor_z) + 2 * step_size * potential.value(z, target_z)


def proximal_step(
    anchor_z: jax.Array,
    target_z: jax.Array,
    step_size: float = 1.0,
    transport: str | Transport = "sinkhorn",
    potential: str | Potential = "bellman",
    solver: str = "fixed_point",
    *,
    temperatures: tuple[float, ...] = ANNEALING,
    sinkhorn_tolerance: float | None = None,
    start: str = "sorted",
    max_iterations: int | None = None,
    tolerance: float | None = None,
    gradient_step: float | None = None,
    assume_sorted: bool = False,
) -> ProximalStep:
    """One JKO step from `anchor_z` towards `target_z`.

    `solver="fixed_point"` iterates `z <- implicit(pulled(z))`, with one Sinkhorn sweep at the
    last temperature per iteration and potentials that follow the particles: it ends at the
    minimiser of the fully converged entropic loss (at most 100 iterations, tolerance 1e-3).

    `solver="gradient"` is the paper's: up to 50 steps on the loss of Algorithm 2 with its
    annealed sweeps, early stop at tolerance 1e-8. Steps are taken in the Wasserstein geometry
    with size `gradient_step`, `0.5 / (1 + h)` by default: the loss curves like `2 (1 + h)`, so
    the paper's 0.5 oscillates for ever at `h = 1`.

    Both stop once no particle moves by more than `tolerance` times the range that anchor and
    target span together.
    """
    step_size = positive(step_size, "step_size")
    transport, potential = resolve(
        transport, potential, SinkhornOptions(temperatures, start, sinkhorn_tolerance)
    )
    if solver not in SOLVERS:
        raise unknown("solver", solver, SOLVERS)
    iterations, enough = (100, 1e-3) if solver == "fixed_point" else (50, 1e-8)
    if max_iterations is not None:
        count_at_least(1, max_iterations=max_iterations)
        iterations = max_iterations
    if tolerance is not None:
        check_tolerance(tolerance)
        enough = tolerance
    anchor_z, target_z = one_row(anchor_z=anchor_z, target_z=target_z)
    if not assume_sorted:
        anchor_z, target_z = network_sort(anchor_z), network_sort(target_z)
    given = anchor_z, target_z, step_size, transport, potential
    if solver == "fixed_point":
        return _fixed_point(*given, iterations, enough)
    rate = 0.5 / (1 + step_size)
    rate = rate if gradient_step is None else positive(gradient_step, "gradient_step")
    return _gradient(*given, rate, iterations, enough)


def _fixed_point(
    anchor_z: jax.Array,
    target_z: jax.Array,
    step_size: float,
    transport: Transport,
    potential: Potential,
    max_iterations: int,
    tolerance: float,
) -> ProximalStep:
    first = potential.implicit(anchor_z, target_z, step_size)  # the exact step, where it starts
    if isinstance(transport, Exact):
        zero = jnp.zeros((), anchor_z.dtype)
        return ProximalStep(first, zero, jnp.asarray(1), jnp.asarray(True))

    def update(z: jax.Array, duals: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple]:
        duals, pulled = transport.pull(duals, z, anchor_z)
        moved = potential.implicit(pulled, target_z, step_size)
        return moved, transport.follow(duals, 2 * (z - pulled), moved - z)

    span = _span(anchor_z, target_z)
    return _iterate(
        update, first, transport.start(first, anchor_z), span, max_iterations, tolerance
    )


def _gradient(
    anchor_z: jax.Array,
    target_z: jax.Array,
    step_size: float,
    transport: Transport,
    potential: Potential,
    rate: float,
    max_iterations: int,
    tolerance: float,
) -> ProximalStep:
    slope = jax.grad(transport.cost)

    def update(z: jax.Array, duals: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple]:
        # N dL/dz_i; the loss of Algorithm 2 is a mean, its flow is not.
        down = z.shape[0] * slope(z, anchor_z) + 2 * step_size * potential.slope(z, target_z)
        return z - rate * down, duals

    return _iterate(update, anchor_z, (), _span(anchor_z, target_z), max_iterations, tolerance)


def _iterate(
    update: Callable[[jax.Array, tuple], tuple[jax.Array, tuple]],
    z: jax.Array,
    duals: tuple[jax.Array, ...],
    span: jax.Array,
    max_iterations: int,
    tolerance: float,
) -> ProximalStep:
    """Repeat until no particle moves by more than the tolerance, or the iterations are up."""

    def unfinished(state: tuple) -> jax.Array:
        _, _, residual, iterations = state
        return (residual > tolerance) & (iterations < max_iterations)

    def again(state: tuple) -> tuple:
        z, duals, _, iterations = state
        moved, duals = update(z, duals)
        return moved, duals, jnp.max(jnp.abs(moved - z)) / span, iterations + 1

    begin = (z, duals, jnp.asarray(jnp.inf, z.dtype), jnp.asarray(0))
    z, _, residual, iterations = jax.lax.while_loop(unfinished, again, begin)
    return ProximalStep(z, residual, iterations, residual <= tolerance)


def _span(anchor_z: jax.Array, target_z: jax.Array) -> jax.Array:
    """The range of two ascending sets of particles; never zero."""
    low, high = jnp.minimum(anchor_z[0], target_z[0]), jnp.maximum(anchor_z[-1], target_z[-1])
    return jnp.maximum(high - low, jnp.finfo(anchor_z.dtype).tiny)


def project(values: jax.Array, particles: int, *, sorted_rows: bool = False) -> jax.Array:
    """The W2 projection of a sample onto N equally likely particles: means of quantile bins.

    `values` is `[M]`, or `[K, N]` with ascending rows and `sorted_rows=True` (cheaper); M must
    be a multiple of `particles`.
    """
    count_at_least(1, particles=particles)
    values = as_jax(values, "values")
    if sorted_rows and values.ndim != 2:
        raise InputError(f"values has shape {values.shape}: sorted_rows needs rows [K, N]")
    if not values.size or values.size % particles:
        raise InputError(f"{values.size} values do not fill {particles} equal quantile bins")
    ordered = merge_sorted_rows(values) if sorted_rows else network_sort(values.reshape(-1))
    bins = ordered.reshape(particles, -1)
    return pairwise_sum(bins) / bins.shape[-1]


def resolve(
    transport: str | Transport, potential: str | Potential, options: SinkhornOptions
) -> tuple[Transport, Potential]:
    """Names become the objects they stand for."""
    options = options.checked()
    if not isinstance(transport, Transport):
        transport = transport_named(transport, options)
    return transport, potential if isinstance(potential, Potential) else potential_named(potential)


# --- repeated steps -----------------------------------------------------------------------


class Flow(NamedTuple):
    """The path of the particles and the free energy on it; index 0 is the start."""

    path: jax.Array  # [K + 1, N]
    potential: jax.Array  # [K + 1] F(z_k)
    entropic: jax.Array  # [K + 1] W(z_k, z_k) / (4 h), zero without entropy
    loss: jax.Array  # [K] the proximal loss that step k ended at
    converged: jax.Array  # [K]

    @property
    def free_energy(self) -> jax.Array:
        """`E_k = F(z_k) + W(z_k, z_k) / (4 h)`, which no step of the flow increases.

        The step is optimal: `W(z1, z0) + 2 h F(z1) <= W(z0, z0) + 2 h F(z0)`. The divergence
        `W(z1, z0) - W(z1, z1) / 2 - W(z0, z0) / 2` is not negative. Together:
        `2 h F(z1) + W(z1, z1) / 2 <= 2 h F(z0) + W(z0, z0) / 2`.

        The proof speaks of the solved entropic problem, so `W(z, z)` is always solved to the end
        here, and of an optimal step: one that stops at `tolerance` may rise by about as much.
        `solver="gradient"` on a few annealed sweeps descends another function than this one.
        """
        return self.potential + self.entropic


def jko_flow(
    start_z: jax.Array,
    target_z: jax.Array,
    steps: int,
    step_size: float = 1.0,
    transport: str | Transport = "sinkhorn",
    potential: str | Potential = "bellman",
    solver: str = "fixed_point",
    *,
    temperatures: tuple[float, ...] = ANNEALING,
    sinkhorn_tolerance: float | None = None,
    **solver_options: Any,
) -> Flow:
    """`steps` proximal steps towards a fixed target, each anchored at the one before."""
    count_at_least(0, steps=steps)
    step_size = positive(step_size, "step_size")
    options = SinkhornOptions(temperatures, "sorted", sinkhorn_tolerance)
    transport, potential = resolve(transport, potential, options)
    start_z, target_z = one_row(start_z=start_z, target_z=target_z)
    start_z, target_z = network_sort(start_z), network_sort(target_z)

    def advance(z: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        step = proximal_step(
            z,
            target_z,
            step_size,
            transport,
            potential,
            solver,
            assume_sorted=True,
            **solver_options,
        )
        loss = proximal_loss(step.z, z, target_z, step_size, transport, potential)
        return step.z, (step.z, loss, step.converged)

    _, (zs, losses, converged) = jax.lax.scan(advance, start_z, None, length=steps)
    path = jnp.concatenate([start_z[None], zs])
    energy = jax.vmap(lambda z: potential.value(z, target_z))(path)
    entropic = jax.vmap(transport.self_cost)(path) / (4 * step_size)
    return Flow(path, energy, entropic, losses, converged)
