"""What the evaluation experiment (section 5.2) measures: a policy, its Monte-Carlo returns, and the
particles that flow to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular import TabularConfig, train_trials
from surefoot.agents.tabular.config import PAPER
from surefoot.envs import ACTION_NAMES, CliffGrid, cliff_walk, simulate_returns
from surefoot.errors import at_least, unknown
from surefoot.paper.experiment import Columns, Tables, measure_cells
from surefoot.policies import Greedy
from surefoot.transport import TRANSPORTS, jko_flow

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
        at_least(2, trials=self.trials)  # an interval needs two
        at_least(1, episodes=self.episodes, rollouts=self.rollouts, horizon=self.horizon)
        at_least(1, truth_rollouts=self.truth_rollouts, steps=self.steps)


class Flows(NamedTuple):
    """Axes: trial T, place P, action A, then step or particle.

    Losses and energies of sinkhorn-scaled are in squares of its own unit.
    """

    z: np.ndarray  # [T, P, A, N] particles after the last step
    target_z: np.ndarray  # [T, P, A, N] the rollouts they were fitted to
    loss: np.ndarray  # [T, P, A, K + 1] the proximal loss of each step; NaN before the first
    free_energy: np.ndarray  # [T, P, A, K + 1]
    value_error: np.ndarray  # [T, P, A, K + 1] squared error of the mean against the target
    converged: np.ndarray  # [T, P, A, K + 1] did the solver of the step converge


@dataclass(frozen=True)
class EvaluationResults:
    config: EvaluationConfig
    policy: np.ndarray
    """The evaluated action of each state."""
    truth: np.ndarray
    """`[P, A, M]`: many more rollouts, ascending."""
    flows: Mapping[str, Flows]

    @classmethod
    def read(cls, config: EvaluationConfig, tables: Tables) -> EvaluationResults:
        lead = len(PLACES), len(ACTION_NAMES)
        flows = {}
        for transport in config.transports:
            curves = tables[FlowCell(transport).name]
            particles = tables[f"particles-{transport}"]
            names = ("loss", "free_energy", "squared_value_error", "converged")
            flows[transport] = Flows(
                *(particles[n].reshape(-1, *lead, config.rollouts) for n in ("z", "target_z")),
                *(curves[n].reshape(-1, *lead, config.steps + 1) for n in names),
            )
        truth = tables["truth"]["return"].reshape(*lead, -1)
        return cls(config, tables["policy"]["action"], truth, flows)


def measure(config: EvaluationConfig, tables: Tables) -> None:
    if not all(name in tables for name in ("q-learning", "policy", "truth")):
        policy, curve = learn_policy(config)
        tables.write("q-learning", {"episode": np.arange(curve.size), "return": curve})
        tables.write("policy", {"state": np.arange(policy.size), "action": policy})
        truth = returns(config, policy, config.truth_rollouts, _keys(config)[0])
        tables.write("truth", {"return": truth.reshape(-1)})
    cells = [FlowCell(transport) for transport in config.transports]
    measure_cells(config, tables, cells, compute_cell, "policy evaluation")


@lru_cache(maxsize=2)
def learn_policy(config: EvaluationConfig) -> tuple[np.ndarray, np.ndarray]:
    """Greedy actions `[S]` after Q-learning, and the return of each episode."""
    agent = TabularConfig(
        loss="q-learning",
        gamma=config.gamma,
        learning_rate=config.learning_rate,
        behaviour=Greedy(tolerance=0.0),
        explore=config.explore,
        horizon=10_000,
        **PAPER,
    )
    runs = train_trials(
        agent,
        cliff_walk(fall=config.fall),
        episodes=config.episodes,
        trials=1,
        seed=config.seed,
        chunk=5_000,
        description="Q-learning",
    )
    return np.asarray(runs.table.z[0, :, :, 0]).argmax(-1), np.asarray(runs.episodes[0, :, 0])


def _keys(config: EvaluationConfig) -> Any:
    """Of the truth, of the targets and of the starting particles."""
    return jax.random.split(jax.random.key(config.seed + 1), 3)


def returns(
    config: EvaluationConfig, policy: np.ndarray, rollouts: int, key: jax.Array
) -> np.ndarray:
    """Ascending `[P, A, rollouts]` from each place after each first action."""
    drawn = simulate_returns(
        cliff_walk(fall=config.fall),
        policy,
        np.asarray(list(PLACES.values()))[:, None],
        np.arange(len(ACTION_NAMES))[None, :],
        rollouts=rollouts,
        horizon=config.horizon,
        gamma=config.gamma,
        key=key,
    )
    return np.sort(np.asarray(drawn.returns), axis=-1)


def compute_cell(job: tuple[EvaluationConfig, FlowCell]) -> dict[str, Columns]:
    """Curves per step and final particles, one row per trial, place, action and index.

    The same rollouts and the same starting particles for every transport.
    """
    config, cell = job
    policy, _ = learn_policy(config)
    _, key_target, key_start = _keys(config)
    keys = jax.random.split(key_target, config.trials)
    target_z = np.stack([returns(config, policy, config.rollouts, key) for key in keys])
    start = jnp.sort(jax.random.normal(key_start, target_z.shape), axis=-1)
    flow = jax.jit(
        partial(
            jko_flow,
            steps=config.steps,
            step_size=config.step_size,
            transport=cell.transport.removesuffix("-scaled"),
            temperatures=config.temperatures,
        )
    )
    starts = start.reshape(-1, config.rollouts)
    targets = jnp.asarray(target_z / cell.unit).reshape(-1, config.rollouts)
    parts = [flow(z, t) for z, t in zip(starts, targets, strict=True)]
    done: Any = jax.tree.map(lambda *x: np.stack(x), *parts)
    error = (cell.unit * done.path.mean(-1) - target_z.mean(-1).reshape(-1, 1)) ** 2
    begin = np.ones((len(parts), 1))
    return {
        f"particles-{cell.transport}": _columns(
            (*target_z.shape[:3], config.rollouts),
            "particle",
            {"z": cell.unit * done.path[:, -1], "target_z": target_z},
        ),
        cell.name: _columns(
            (*target_z.shape[:3], config.steps + 1),
            "step",
            {
                "loss": np.concatenate([np.nan * begin, done.loss], axis=1),
                "free_energy": done.potential + done.entropic,
                "squared_value_error": error,
                "converged": np.concatenate([begin > 0, done.converged], axis=1),
            },
        ),
    }


def _columns(
    shape: tuple[int, ...], last: str, values: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    trial, place, action, index = np.indices(shape).reshape(4, -1)
    names = np.asarray(list(PLACES))
    where = {"trial": trial, "place": names[place], "action": action, last: index}
    return where | {name: np.asarray(value).reshape(-1) for name, value in values.items()}
