"""The policy by second-order stochastic dominance (section 3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from surefoot.core.particles import cumulative_quantile
from surefoot.errors import unknown
from surefoot.policies.base import DecidedBy, Policy, View, count, near_best

UNDECIDED = ("greedy", "least_violation", "lexicographic")


@dataclass(frozen=True)
class SSD(Policy):
    """Take the action whose return dominates every other one's: as good on average, and surer.

    The dominant set is the paper's `A_s^(2)` with `tolerance` on the scale of `F^-2`. Where it
    holds one action, dominance decided; where several, they are equal up to the tolerance and
    one is drawn. Where it is empty, `undecided` says what to do:

    - `"greedy"`: draw among the actions with the best mean (the paper);
    - `"least_violation"`: the action that falls least below the others' curves;
    - `"lexicographic"`: best mean, then the better lower tail, from the worst outcome upwards.

    Dominance implies a mean at least as large, so no expected return is given up for safety; for
    that trade see `CVaR`. With `tolerance=0` equal means do not occur in floating point, and
    this is the greedy policy.
    """

    undecided: str = "greedy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.undecided not in UNDECIDED:
            raise unknown("undecided", self.undecided, UNDECIDED)

    def choose(self, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        dominant = self.usable(view) & (view.lag <= self.tolerance)  # eq. 6, for all others at once
        number = count(dominant)
        decided_by = jnp.where(
            number == 1,
            DecidedBy.DOMINANCE,
            jnp.where(number > 1, DecidedBy.TIE_BREAK, DecidedBy.FALLBACK),
        )
        return jnp.where(number > 0, dominant, self._fallback(view)), decided_by

    def _fallback(self, view: View) -> jax.Array:
        if self.undecided == "greedy":
            return self.tied(view)
        if self.undecided == "least_violation":
            return near_best(-view.lag, self.usable(view), self.tolerance)

        def narrow(left: jax.Array, level: jax.Array) -> tuple[jax.Array, None]:
            return near_best(level, left, self.tolerance), None

        curve = cumulative_quantile(view.z, assume_sorted=True)
        return jax.lax.scan(narrow, self.tied(view), curve.T)[0]
