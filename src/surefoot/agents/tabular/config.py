"""The hyper-parameters of a tabular agent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.core.names import NAMED_LOSSES, POTENTIAL_NAMES, SOLVERS, TRANSPORTS
from surefoot.errors import InputError, at_least, unknown

if TYPE_CHECKING:
    from surefoot.policies import Policy

LOSSES = (*NAMED_LOSSES, "qr", "q-learning", "sarsa")
TARGETS = ("sample", "mixture")
PAPER: dict[str, Any] = {"target": "greedy", "evaluation": "ssd:0.001", "reward_scale": 1.0}
"""What the paper does (Algorithm 1) where the defaults go beyond it."""


@dataclass(frozen=True)
class TabularConfig:
    """Algorithm 1 and its relatives. Policies may be given by name, such as "cvar:0.25"."""

    loss: str = "wgf-exact"
    """A proximal step: wgf (Sinkhorn, the paper), wgf-debiased, wgf-exact, proximal-qr (energy).
    Or qr (quantile Huber), q-learning or sarsa (one scalar per pair)."""
    targets: str = "mixture"
    """sample: one transition, the paper's letter. mixture: the last `memory` of the pair."""
    memory: int = 32
    """K, how many transitions of a pair a mixture target pools."""
    particles: int = 16
    """N, particles per state and action (one for q-learning and sarsa)."""
    gamma: float = 1.0
    """Discount."""
    reward_scale: float | None = None
    """Of qr, wgf, wgf-debiased and proximal-qr: the unit their settings are in. None: the size of
    the rewards seen so far, their root mean square rounded to a power of two."""
    step_size: float = 1.0
    """h, the time step of the proximal operator; for the energy potential in units of return."""
    transport: str | None = None
    """Of a proximal step: `sinkhorn`, `divergence` or `exact`; None: what the loss names."""
    potential: str | None = None
    """Of a proximal step: `bellman` or `energy`; None: what the loss names."""
    solver: str = "fixed_point"
    """Of a proximal step: fixed_point or gradient (the paper)."""
    learning_rate: float = 0.5
    """Step of qr, q-learning and sarsa."""
    decay: float = 0.0
    """The learning rate at a pair's n-th visit is `learning_rate / n^decay`."""
    kappa: float = 1.0
    """Where the quantile Huber loss turns from quadratic to linear (qr)."""
    behaviour: Policy | str = "ssd"
    """Gathers the data, with exploration around it."""
    target: Policy | str = "ssd"
    """Chooses a* in the target; "behaviour" learns on-policy from the action really taken."""
    evaluation: Policy | str = "ssd"
    """Acts when the agent is asked to, without exploration."""
    explore: float = 0.1
    """Probability of a uniformly random action while gathering data."""
    horizon: int = 500
    """Steps after which an episode is cut off (the value still bootstraps)."""
    initial_std: float = 0.0
    """Particles start at 0, or drawn from N(0, initial_std)."""

    def __post_init__(self) -> None:
        from surefoot.policies import policy_named  # here: help texts do not wait for JAX

        for name, known in (
            ("loss", LOSSES),
            ("targets", TARGETS),
            ("solver", SOLVERS),
        ):
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        for name, known in (("transport", TRANSPORTS), ("potential", POTENTIAL_NAMES)):
            wanted = getattr(self, name)
            if wanted is not None and wanted not in known:
                raise unknown(name, wanted, known)
            if wanted is not None and self.loss not in NAMED_LOSSES:
                raise InputError(f"{name} = {wanted!r}: loss {self.loss!r} has no {name}")
        for name in ("behaviour", "evaluation"):
            object.__setattr__(self, name, policy_named(getattr(self, name)))
        if self.loss == "sarsa":
            object.__setattr__(self, "target", "behaviour")
        if self.target != "behaviour":
            object.__setattr__(self, "target", policy_named(self.target))
        if self.scalar:
            object.__setattr__(self, "particles", 1)
            object.__setattr__(self, "targets", "sample")
        self._check_numbers()

    def _check_numbers(self) -> None:
        at_least(1, memory=self.memory, particles=self.particles, horizon=self.horizon)
        for name in ("memory", "particles", "horizon"):  # int32 in compiled programs
            if getattr(self, name) >= 2**31:
                raise InputError(f"{name} = {getattr(self, name)}: it must be below 2^31")
        for name in ("step_size", "learning_rate", "kappa"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value}: it must be positive")
        if self.reward_scale is not None and not 0 < self.reward_scale < math.inf:
            raise InputError(f"reward_scale = {self.reward_scale}: it must be positive")
        for name in ("gamma", "explore"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} = {getattr(self, name)}: it must lie in [0, 1]")
        if self.loss == "qr" and self.learning_rate > self.kappa:
            raise InputError(
                f"learning_rate = {self.learning_rate} above kappa = {self.kappa}: "
                "quantile steps would overtake each other"
            )
        for name in ("initial_std", "decay"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} = {getattr(self, name)}: it must not be negative")

    @property
    def proximal(self) -> tuple[str, str] | None:
        """(potential, transport) of a proximal step; None for the other losses."""
        if self.loss not in NAMED_LOSSES:
            return None
        potential, transport = NAMED_LOSSES[self.loss]
        return self.potential or potential, self.transport or transport

    @property
    def scalar(self) -> bool:
        return self.loss in ("q-learning", "sarsa")

    @property
    def blind(self) -> bool:
        """Whether the loss cannot learn dispersion from what its targets hold."""
        bellman = self.proximal is not None and self.proximal[0] == "bellman"
        return self.scalar or (bellman and self.targets == "sample")

    @property
    def seeing(self) -> str:
        """What can."""
        return "targets 'mixture' or loss 'qr'"

    @property
    def scaled(self) -> bool:
        """Whether learning depends on the size of the rewards, which has to be estimated."""
        exact = self.proximal == ("bellman", "exact") and self.solver == "fixed_point"
        return self.reward_scale is None and not (exact or self.scalar)

    @property
    def on_policy(self) -> bool:
        return self.target == "behaviour"

    @property
    def by_evidence(self) -> bool:
        """Whether a policy asks what the estimates rest on; the paper's rules do not."""
        policies = (self.behaviour, self.target, self.evaluation)
        return any(getattr(policy, "needs_evidence", False) for policy in policies)

    @property
    def pooled(self) -> int:
        """Transitions in one target."""
        return self.memory if self.targets == "mixture" else 1
