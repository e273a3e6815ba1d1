"""The policy, its Monte-Carlo returns, and the particles that flow to them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular import TabularConfig, train_trials
from surefoot.envs import CliffGrid, cliff_walk, monte_carlo_returns
from surefoot.policies import Greedy
from surefoot.transport import TRANSPORTS, jko_flow

if TYPE_CHECKING:
    from surefoot.paper.evaluation import Config

GRID = CliffGrid(4, 12)
METHODS = (*TRANSPORTS, "sinkhorn-scaled")
UNIT = 100.0  # the cliff's penalty, in which sinkhorn-scaled counts returns
PLACES = {"start": GRID.start, "neighbour": GRID.state(2, 0)}


class Flows(NamedTuple):
    """Axes: trial T, place P, action A, then step or particle."""

    z: np.ndarray  # [T, P, A, N] particles after the last step
    target_z: np.ndarray  # [T, P, A, N] the rollouts they were fitted to
    truth: np.ndarray  # [P, A, M] many more rollouts
    loss: np.ndarray  # [T, P, A, K] the proximal loss of each step
    free_energy: np.ndarray  # [T, P, A, K + 1]
    value_error: np.ndarray  # [T, P, A, K + 1] squared error of the mean against the target
    converged: np.ndarray  # [T, P, A, K] did the solver of the step converge

    # Losses and energies of sinkhorn-scaled are in squares of its own unit.


def learn_policy(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Greedy actions `[S]` after Q-learning, and the return of each episode."""
    agent = TabularConfig(
        loss="q-learning",
        gamma=config.gamma,
        learning_rate=config.learning_rate,
        behaviour=Greedy(tolerance=0.0),
        explore=config.explore,
        horizon=10_000,
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


def returns(config: Config, policy: np.ndarray, rollouts: int, key: jax.Array) -> np.ndarray:
    """Ascending `[P, A, rollouts]` from each place after each first action."""
    states = np.asarray(list(PLACES.values()))[:, None]
    drawn = monte_carlo_returns(
        cliff_walk(fall=config.fall),
        policy,
        states,
        np.arange(4)[None, :],
        rollouts=rollouts,
        horizon=config.horizon,
        gamma=config.gamma,
        key=key,
    )
    return np.sort(np.asarray(drawn), axis=-1)


def fit_flows(config: Config, policy: np.ndarray, transport: str) -> Flows:
    """The same rollouts and the same starting particles for every transport."""
    key_truth, key_target, key_start = jax.random.split(jax.random.key(config.seed + 1), 3)
    truth = returns(config, policy, config.truth_rollouts, key_truth)
    keys = jax.random.split(key_target, config.trials)
    target_z = np.stack([returns(config, policy, config.rollouts, key) for key in keys])
    start = jnp.sort(jax.random.normal(key_start, target_z.shape), axis=-1)
    unit = UNIT if transport.endswith("-scaled") else 1.0
    flow = jax.jit(
        partial(
            jko_flow,
            steps=config.steps,
            step_size=config.step_size,
            transport=transport.removesuffix("-scaled"),
            temperatures=config.temperatures,
        )
    )
    parts = [
        [flow(z, t) for z, t in zip(zs, ts, strict=True)]
        for zs, ts in zip(
            start.reshape(config.trials, -1, config.rollouts),
            jnp.asarray(target_z / unit).reshape(config.trials, -1, config.rollouts),
            strict=True,
        )
    ]
    lead = target_z.shape[:-1]
    found = jax.tree.map(lambda *x: np.stack(x), *[f for row in parts for f in row])
    error = (unit * found.path.mean(-1) - target_z.mean(-1).reshape(-1, 1)) ** 2
    return Flows(
        z=unit * found.path[:, -1].reshape(*lead, -1),
        target_z=target_z,
        truth=truth,
        loss=found.loss.reshape(*lead, -1),
        free_energy=(found.potential + found.entropic).reshape(*lead, -1),
        value_error=error.reshape(*lead, -1),
        converged=found.converged.reshape(*lead, -1),
    )
