"""Exploration around any policy."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from surefoot.core.array import is_traced
from surefoot.errors import InputError, real, shown
from surefoot.policies.base import DecidedBy, Decision, Policy, View, count, draw
from surefoot.policies.risk import Greedy


@dataclass(frozen=True)
class Explore(Policy):
    """With probability `explore` any feasible action, else what `policy` decides.

    The reasons (ties, margin, violations) stay those of `policy`, so that they can be counted
    whether or not an exploratory step came in between.
    """

    policy: Policy = field(default_factory=Greedy)
    explore: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InputError(f"policy = {self.policy!r}: it must be a policy, such as SSD()")
        if not is_traced(self.explore) and not 0 <= real(self.explore) <= 1:
            raise InputError(f"explore = {shown(self.explore)}: it is a probability")
        object.__setattr__(self, "tolerance", self.policy.tolerance)

    @property
    def needs_evidence(self) -> bool:
        return self.policy.needs_evidence

    def choose(self, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.policy.choose(view, key)

    def settle(self, view: View, key: jax.Array) -> Decision:
        key_policy, key_coin, key_action = jax.random.split(key, 3)
        inner = self.policy.settle(view, key_policy)
        usable = self.policy.usable(view)
        anything = jnp.where(count(usable) == 0, view.mask, usable)
        strays = jax.random.uniform(key_coin, dtype=jnp.float32) < self.explore
        return inner._replace(
            action=jnp.where(strays, draw(anything, key_action), inner.action),
            decided_by=jnp.where(strays, DecidedBy.EXPLORATION, inner.decided_by),
            candidates=jnp.where(strays, anything, inner.candidates),
        )
