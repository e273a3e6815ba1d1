"""The policy by second-order stochastic dominance: among actions worth the same, the surest.

`SSD()` asks two questions. Worth the same? Statistical: an action is tied with the best mean if
the gap between them lies within three standard errors, and its surety makes up for it. Which is
surer? Among the tied, the order of the centred curves `F^-2(tau) - tau * mean`: for equal means
exactly second-order dominance.
`SSD(tolerance)` is the paper's rule (section 3), which asks both at once within one tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from surefoot.core.evidence import student
from surefoot.core.particles import centred, cumulative_quantile, worse_of_two
from surefoot.core.shortfall import violations
from surefoot.errors import InputError, real, shown, unknown
from surefoot.policies.base import DecidedBy, Policy, View, count, draw, largest, near_best

UNDECIDED = ("greedy", "least_violation", "lexicographic")


@dataclass(frozen=True)
class SSD(Policy):
    """Take the surest of the actions that are worth the same.

    Without a tolerance, the default, the policy needs evidence beside the particles: `n`
    observations behind each action, or an ensemble `z[E, A, N]`. An action is tied with the best
    mean if its own lies within `standard_errors` of it, and if its surety makes up for the gap: the
    worse of two draws of its return is as good, on average, as that of the best mean's. A gap may
    be real, and a long task pays it at every step. Of the tied, the one is taken whose centred
    curve lies nowhere below the others'. An action without evidence is comparable with none. No
    unit of the returns comes in: rewards a thousand times larger change no decision.

    One that is dominated outright is never tied: the worse of two draws is worse then, too.

    With a `tolerance`, in the units of the returns, it is the paper's rule: the dominant set is
    `A_s^(2)` with `tolerance` on the scale of `F^-2`. Where it holds one action, dominance
    decided; where several, they are equal up to the tolerance and one is drawn.

    Where curves cross, no action is the surest for every risk-averse judge, and `undecided` says
    what to do:

    - `"greedy"`: the best mean, ties drawn (the paper, and the default);
    - `"least_violation"`: the action that falls least below the others' curves;
    - `"lexicographic"`: best mean, then the better lower tail, from the worst outcome upwards.

    A mean is given up only within what cannot be told from zero; for a trade of mean against risk
    see `CVaR`.
    """

    tolerance: float | None = field(default=None, kw_only=False)  # type: ignore[assignment]
    standard_errors: float = field(default=3.0, kw_only=True)
    undecided: str = field(default="greedy", kw_only=True)

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            super().__post_init__()
        if not 0 < real(self.standard_errors) < math.inf:
            raise InputError(
                f"standard_errors = {shown(self.standard_errors)}: it must be positive"
            )
        if self.undecided not in UNDECIDED:
            raise unknown("undecided", self.undecided, UNDECIDED)

    @property
    def needs_evidence(self) -> bool:
        return self.tolerance is None

    def tied(self, view: View) -> jax.Array:
        if self.tolerance is not None:
            return super().tied(view)
        assert view.evidence is not None
        error, freedom = view.evidence
        best = view.mask & view.sound & (view.mean_lag == 0)
        within = view.mean_lag <= student(self.standard_errors, freedom) * error
        within = within & jnp.isfinite(error) & (view.mean_lag <= saved(view.z, best))
        return self.usable(view) & (within | (view.mean_lag == 0))

    def choose(self, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        if self.tolerance is None:
            return self._surest(view)
        dominant = self.usable(view) & (view.lag <= self.tolerance)  # eq. 6, for all others at once
        number = count(dominant)
        fallback = self._fallback(view, self.tied(view), view.lag, self.tolerance)
        return jnp.where(number > 0, dominant, fallback), _who(number)

    def _surest(self, view: View) -> tuple[jax.Array, jax.Array]:
        assert view.evidence is not None
        tied = self.tied(view)
        known = tied & jnp.isfinite(view.evidence.error)
        unknown = tied & ~known  # of the best mean, and comparable with nothing: it stays in
        lag = _centred_lag(view.z, known)
        best = known & (lag == 0)
        number = count(best)
        candidates = jnp.where(number > 0, best, self._fallback(view, known, lag, 0.0)) | unknown
        who = jnp.where(count(unknown) > 0, DecidedBy.FALLBACK, _who(number))
        return candidates, jnp.where((count(tied) == 1) & known.any(), DecidedBy.SCORE, who)

    def surest(self, z: jax.Array, tied: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of the actions `tied[A]`, taken to be worth the same, the one with the surest of the
        ascending particles `z[A, N]`; where curves cross, the one that falls least below. And
        whether dominance decided: of several, one alone is surer than all others."""
        lag = _centred_lag(z, tied)
        dominance = (count(tied) > 1) & (count(tied & (lag == 0)) == 1)
        return draw(near_best(-lag, tied, 0.0), key), dominance

    def _fallback(self, view: View, tied: jax.Array, lag: jax.Array, tolerance: float) -> jax.Array:
        if self.undecided == "greedy":
            return tied & (view.mean_lag == 0) if self.tolerance is None else tied
        if self.undecided == "least_violation":
            among = tied if self.tolerance is None else self.usable(view)
            return near_best(-lag, among, tolerance)

        def narrow(left: jax.Array, level: jax.Array) -> tuple[jax.Array, None]:
            return near_best(level, left, tolerance), None

        curve = cumulative_quantile(view.z, assume_sorted=True)
        return jax.lax.scan(narrow, tied, curve.T)[0]


def saved(z: jax.Array, best: jax.Array) -> jax.Array:
    """By how much the worse of two draws about the mean is better than that of the `best` `[A]`."""
    worse = worse_of_two(centred(z), assume_sorted=True)
    return worse - largest(jnp.where(best, worse, -jnp.inf))


def _centred_lag(z: jax.Array, among: jax.Array) -> jax.Array:
    """How far the centred curve `[A]` lies below that of any of the actions `among`, at most."""
    if z.shape[1] == 1:
        return jnp.zeros(len(z))
    short = violations(jnp, centred(z)[:, :-1])  # they end at zero but for rounding
    return jnp.max(jnp.where(among[None, :] & (short > 0), short, 0.0), axis=-1)


def _who(number: jax.Array) -> jax.Array:
    """Who decided, if that many actions dominate the others."""
    several = jnp.where(number > 1, DecidedBy.TIE_BREAK, DecidedBy.FALLBACK)
    return jnp.where(number == 1, DecidedBy.DOMINANCE, several)
