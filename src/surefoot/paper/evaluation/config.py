"""What the evaluation experiment runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from surefoot.envs import CliffGrid
from surefoot.errors import InputError, unknown
from surefoot.transport import TRANSPORTS

GRID = CliffGrid(4, 12)
METHODS = (*TRANSPORTS, "sinkhorn-scaled")
UNIT = 100.0  # the cliff's penalty, in which sinkhorn-scaled counts returns
PLACES = {"start": GRID.start, "neighbour": GRID.state(2, 0)}


class FlowCell(NamedTuple):
    """All flows of one transport."""

    transport: str

    @property
    def name(self) -> str:
        return f"curves-{self.transport}"

    @property
    def unit(self) -> float:
        return UNIT if self.transport.endswith("-scaled") else 1.0


@dataclass(frozen=True)
class EvaluationConfig:
    """Section 5.2: Monte-Carlo targets from the learned policy, fitted by JKO steps."""

    trials: int = 10
    """Independent sets of rollouts and flows."""
    episodes: int = 10_000
    """Episodes of Q-learning that the evaluated policy comes from."""
    seed: int = 0
    """Seed of everything."""
    rollouts: int = 200
    """Rollouts per state and action, each a target particle."""
    horizon: int = 200
    """Steps of a rollout."""
    truth_rollouts: int = 20_000
    """Rollouts that stand for the truth when errors are measured."""
    steps: int = 100
    """JKO steps, each anchored at the one before."""
    step_size: float = 1.0
    """h, the time step of the proximal operator."""
    temperatures: tuple[float, ...] = (1.0, 0.5, 0.25)
    """Annealing of the entropic transports."""
    transports: tuple[str, ...] = METHODS
    """sinkhorn, divergence, exact; sinkhorn-scaled: with rewards in units of the cliff's 100."""
    gamma: float = 0.9
    """Discount."""
    learning_rate: float = 0.5
    """Of Q-learning."""
    explore: float = 0.1
    """Of Q-learning."""
    fall: float = 0.05
    """Chance to fall from a cell next to the cliff."""

    def __post_init__(self) -> None:
        for name in self.transports:
            if name not in METHODS:
                raise unknown("transport", name, METHODS)
        for name in ("episodes", "rollouts", "horizon", "truth_rollouts", "steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: there must be at least one")
        if self.trials < 2:
            raise InputError(f"trials = {self.trials}: an interval needs at least two")
