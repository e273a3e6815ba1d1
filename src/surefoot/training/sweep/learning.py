"""Training and evaluating the agent of one trial; what a worker does."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.tabular import TabularAgent
from surefoot.envs import decode, encode
from surefoot.envs.making import made_env
from surefoot.errors import Interrupted
from surefoot.policies import Policy, policy_named
from surefoot.training.engines.board import Place, counter
from surefoot.training.sweep.trial import SweepTrial

SHARE = 0.2  # of the training episodes, at the end, that `training_return` is the mean of
EVALUATION_SEEDS = 10_000  # apart from those of training, as `NeuralAgent.evaluate` has it
Outcome = dict[str, Any]


def run_job(job: tuple[SweepTrial, Place]) -> Outcome:
    """The result, or why there is none: one trial's failure is not the sweep's."""
    trial, place = job
    try:
        return {"result": run_trial(trial, counter(place))}
    except Interrupted:  # asked to stop: no failure of the trial
        raise
    except Exception as error:  # the environment is anybody's code
        text = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {text}" if text else type(error).__name__}


def run_trial(trial: SweepTrial, steps_done: np.ndarray) -> Outcome:
    """`steps_done[0]` follows the steps; the result holds nothing that another run would not."""
    learn = _learn_neural if trial.agent == "neural" else _learn_tabular
    bounds = [trial.steps * (i + 1) // trial.evaluations for i in range(trial.evaluations)]
    curve: list[tuple[int, float]] = []
    returns = np.zeros(0)

    def evaluated(step: int, found: np.ndarray) -> None:
        nonlocal returns
        returns = found
        curve.append((step, float(found.mean())))

    episodes = np.asarray(learn(trial, bounds, evaluated, steps_done), np.float64)
    last = episodes[-max(1, round(SHARE * len(episodes))) :]
    return {
        "returns": returns.tolist(),
        "curve": curve,
        "training_episodes": len(episodes),
        "training_return": float(last.mean()) if len(last) else None,
    }


Evaluated = Callable[[int, np.ndarray], None]


def _learn_neural(
    trial: SweepTrial, bounds: list[int], evaluated: Evaluated, steps_done: np.ndarray
) -> list[float]:
    agent = NeuralAgent(
        made_env(trial.env, **dict(trial.env_options)),
        seed=trial.seed,
        compiled=trial.compiled,
        config=trial.config,
    )
    totals: list[float] = []

    def note(_: NeuralAgent, episode: Any) -> None:
        totals.append(float(episode.total))
        steps_done[0] = episode.step

    for bound in bounds:
        agent.learn(bound - agent.num_timesteps, callback=note)
        steps_done[0] = bound
        evaluated(bound, agent.evaluate(trial.eval_episodes))
    return totals


def _learn_tabular(
    trial: SweepTrial, bounds: list[int], evaluated: Evaluated, steps_done: np.ndarray
) -> list[float]:
    agent = TabularAgent(
        made_env(trial.env, **dict(trial.env_options)), trial.config, seed=trial.seed
    )

    def note(agent: TabularAgent, _: Any) -> None:
        steps_done[0] = agent.num_timesteps

    for bound in bounds:
        agent.learn(bound - agent.num_timesteps, callback=note)
        evaluated(bound, play(agent, trial))
    return [float(total) for total in agent.episode_returns]


def play(agent: TabularAgent, trial: SweepTrial) -> np.ndarray:
    """Undiscounted returns of the evaluation policy, at most `horizon` steps each."""
    env = made_env(trial.env, **dict(trial.env_options))
    actions = all_actions(agent)
    totals = np.zeros(trial.eval_episodes)
    for episode in range(trial.eval_episodes):
        obs, _ = env.reset(seed=trial.seed + EVALUATION_SEEDS + episode)
        for _ in range(trial.config.horizon):
            action = decode(env.action_space, actions[encode(env.observation_space, obs)])
            obs, reward, terminated, truncated, _ = env.step(action)
            totals[episode] += float(reward)
            if terminated or truncated:
                break
    return totals


def all_actions(agent: TabularAgent) -> np.ndarray:
    """The number of what `agent.predict` says, for all states in one compiled call."""
    z = agent.table.z
    mask = np.ones(z.shape[:2], bool) if agent.mdp is None else agent.mdp.mask
    mask = np.ones(z.shape[:2], bool) if mask is None else np.asarray(mask)
    policy = policy_named(agent.config.evaluation)
    return np.asarray(_decide(policy)(z, mask, jax.random.key(agent.seed)))


@lru_cache(maxsize=32)
def _decide(policy: Policy) -> Any:
    def decide(z: jax.Array, mask: jax.Array, key: jax.Array) -> jax.Array:
        states = jnp.arange(z.shape[0])
        keys = jax.vmap(lambda state: jax.random.fold_in(key, state))(states)
        return jax.vmap(lambda z, key, m: policy(z, key, m, assume_sorted=True))(z, keys, mask)

    return jax.jit(decide)
