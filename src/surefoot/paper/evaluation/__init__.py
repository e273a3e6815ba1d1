"""Section 5.2: the flow recovers the return distribution of a fixed policy on the cliff walk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.errors import InputError, unknown
from surefoot.paper.claims import Claim, read_claims, write_claims
from surefoot.paper.evaluation.figures import draw_figures
from surefoot.paper.evaluation.flows import METHODS, PLACES, Flows, fit_flows, learn_policy
from surefoot.paper.evaluation.verdicts import summary, verdicts
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.progress import progress

__all__ = ["Config", "run"]


@dataclass(frozen=True)
class Config:
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


def run(config: Config, out: Path, existing: Existing = "error") -> list[Claim]:
    directory = RunDir.create(
        out, config, kind="evaluation", seeds=[config.seed], existing=existing
    )
    if directory.complete:
        return list(read_claims(directory))
    with progress(1 + len(config.transports), "policy evaluation", unit="parts") as task:
        policy, curve = learn_policy(config)
        directory.write_table({"episode": np.arange(curve.size), "return": curve}, "q-learning")
        task.advance()
        flows = {}
        for transport in config.transports:
            flows[transport] = fit_flows(config, policy, transport)
            write_flows(directory, transport, flows[transport])
            task.advance()
    directory.write_summary(summary(policy, flows))
    made = verdicts(flows)
    write_claims(directory, made)
    draw_figures(config, flows, directory)
    directory.mark_complete()
    return made


def write_flows(directory: RunDir, transport: str, flows: Flows) -> None:
    """Curves per step and final particles, one row per trial, place, action and index."""
    trials, places, actions, steps = flows.loss.shape
    where = np.indices((trials, places, actions, steps)).reshape(4, -1)
    names = np.asarray(list(PLACES))
    directory.write_table(
        {
            "trial": where[0],
            "place": names[where[1]],
            "action": where[2],
            "step": where[3] + 1,
            "loss": flows.loss.reshape(-1),
            "free_energy": flows.free_energy[..., 1:].reshape(-1),
            "squared_value_error": flows.value_error[..., 1:].reshape(-1),
            "converged": flows.converged.reshape(-1),
        },
        f"curves-{transport}",
    )
    where = np.indices(flows.z.shape).reshape(4, -1)
    directory.write_table(
        {
            "trial": where[0],
            "place": names[where[1]],
            "action": where[2],
            "particle": where[3],
            "z": flows.z.reshape(-1),
            "target_z": flows.target_z.reshape(-1),
        },
        f"particles-{transport}",
    )
