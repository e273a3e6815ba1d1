"""`NeuralAgent`: train on a Gymnasium environment, act, look at return distributions.

agent = NeuralAgent("CartPole-v1", loss="wgf", behaviour=SSD(), seed=0)
agent.learn(50_000, progress=True)
action = agent.predict(obs)
z = agent.return_distribution(obs)   # ascending particles [A, N]
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from surefoot.agents.explain import Explanation, explain
from surefoot.agents.neural import files
from surefoot.agents.neural import state as states
from surefoot.agents.neural.config import NeuralConfig, configured
from surefoot.agents.neural.evaluation import evaluate_compiled, evaluate_gymnasium, separate_env
from surefoot.agents.neural.lesson import Callback, Lesson, give
from surefoot.agents.neural.spaces import Spec, spec_of
from surefoot.agents.neural.step import compiled as compiled_calls
from surefoot.envs.classic import ENVIRONMENTS, PureEnv, pure_env_named
from surefoot.envs.faults import FaultPolicy, Stage, env_name, fault_policy
from surefoot.errors import InputError
from surefoot.policies import Decision
from surefoot.runs.checkpoints import Checkpoints, Snapshot
from surefoot.runs.logs import RunLog, Watch
from surefoot.runs.session import Session


class NeuralAgent:
    """Learns return distributions with a network and acts on them by any policy."""

    def __init__(
        self,
        env: str | gym.Env[Any, Any],
        *,
        seed: int = 0,
        compiled: bool = False,
        config: NeuralConfig | None = None,
        eval_env: gym.Env[Any, Any] | None = None,
        **options: Any,
    ) -> None:
        """`env` is a Gymnasium environment or its id; `options` are fields of `NeuralConfig`.

        `compiled=True` runs the environment inside the compiled loop (CartPole-v1 and
        MountainCar-v0). `eval_env` serves `evaluate`; one more is made of `env` if not given.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise InputError(f"seed = {seed!r}: it must be a whole number from 0 to 2^32 - 1")
        self.config = configured(config, options)
        self.seed = seed
        remake = partial(_made, env) if isinstance(env, str) else None
        self._stage = Stage(_made(env), seed, remake)
        self.spec: Spec = spec_of(self.env)
        self.pure: PureEnv | None = _pure_of(self.env) if compiled else None
        self._eval_env = eval_env
        self._calls = compiled_calls(self.config, self.spec)
        self._state = states.fresh_state(self.config, self.spec, seed)
        self._tie_key, self._decisions = jax.random.key(seed), 0
        self._earlier = 0  # steps before the agent was saved and loaded
        self._book: RunLog | None = None  # while learning
        self._logged: dict[str, int] | None = None  # how long the logs were at the checkpoint
        self.faults: list[str] = []  # what the run went on after

    # --- learning ------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int,
        *,
        progress: bool = False,
        callback: Callback | None = None,
        log: str | Path | RunLog | None = None,
        eval_every: int | None = None,
        eval_episodes: int = 10,
        watch: Watch | None = None,
        checkpoints: Checkpoints | None = None,
        on_fault: str | FaultPolicy = "stop",
    ) -> NeuralAgent:
        """Train for `total_timesteps` more environment steps; two calls equal one long one.

        `log` is a directory for CSV files (or a `RunLog` with more hooks): episodes,
        evaluations every `eval_every` steps, and the return distributions of `watch`.
        `checkpoints` keeps the whole run on disk, on Ctrl-C and SIGTERM too; `on_fault` says
        what to do about an environment that raises, hangs or gives no number.
        """
        if isinstance(total_timesteps, bool) or not isinstance(total_timesteps, int):
            raise InputError(f"total_timesteps = {total_timesteps!r}: it must be a whole number")
        if total_timesteps < 0:
            raise InputError(f"total_timesteps = {total_timesteps}: it must not be negative")
        if eval_every is not None and eval_every < 1:
            raise InputError(f"eval_every = {eval_every}: it must be at least 1")
        lesson = Lesson(
            steps=total_timesteps,
            session=Session(self, checkpoints),
            faults=fault_policy(on_fault),
            progress=progress,
            callback=callback,
            book=log if isinstance(log, RunLog) or log is None else RunLog(log),
            eval_every=eval_every,
            eval_episodes=eval_episodes,
            watch=watch,
        )
        try:
            give(self, lesson)
        finally:
            if lesson.book is not None and lesson.book is not log:
                lesson.book.close()
        return self

    # --- acting --------------------------------------------------------------------------

    def predict(self, obs: Any, *, deterministic: bool = True) -> Any:
        """The evaluation policy's action: an int, or an array for a batch of observations.

        `deterministic` breaks ties between equal actions the same way each time.
        """
        rows, single = self._rows(obs)
        decided = self._calls.decide(self._state.carry.params, rows, self._key(deterministic))
        actions = np.asarray(decided.action) + self.spec.action_start
        return int(actions[0]) if single else actions

    def decide(self, obs: Any, *, deterministic: bool = True) -> Decision:
        """The evaluation policy's decision with its reasons; batched if `obs` is."""
        rows, single = self._rows(obs)
        decided = self._calls.decide(self._state.carry.params, rows, self._key(deterministic))
        return jax.tree.map(lambda leaf: leaf[0], decided) if single else decided

    def explain(self, obs: Any) -> Explanation:
        """Who decides at one observation, and by how much; `print` it."""
        rows, single = self._rows(obs)
        if not single:
            raise InputError("explain takes one observation; decide takes a batch too")
        z = np.array(self._calls.particles(self._state.carry.params, rows))[0]
        names = tuple(str(a + self.spec.action_start) for a in range(self.spec.num_actions))
        return explain(z, self.config.evaluation, self._tie_key, names=names)

    def return_distribution(self, obs: Any) -> np.ndarray:
        """Ascending, equally likely returns `[A, N]`, or `[B, A, N]` for a batch."""
        rows, single = self._rows(obs)
        z = np.array(self._calls.particles(self._state.carry.params, rows))
        return z[0] if single else z

    def _key(self, deterministic: bool) -> jax.Array:
        if deterministic:
            return self._tie_key
        self._decisions += 1
        return jax.random.fold_in(self._tie_key, self._decisions)

    def _rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        """A batch of observations, and whether it was a single one."""
        array = self.spec.check(obs)
        single = array.ndim == len(self.spec.obs_shape)
        return (array[None] if single else array), single

    def evaluate(self, episodes: int = 10, *, seed: int | None = None) -> np.ndarray:
        """Undiscounted returns of whole episodes under the evaluation policy.

        A separate environment and key: training is not disturbed, and equal seeds give equal
        episodes.
        """
        if episodes < 1:
            raise InputError(f"episodes = {episodes}: there must be at least one")
        seed = self.seed + 10_000 if seed is None else seed
        params, policy = self._state.carry.params, self.config.evaluation
        if self.pure is not None:
            return evaluate_compiled(
                self.config, self.spec, self.pure, params, policy, episodes, seed
            )
        if self._eval_env is None:
            self._eval_env = separate_env(self.env)
        return evaluate_gymnasium(self, self._eval_env, episodes, seed)

    # --- state ---------------------------------------------------------------------------

    @property
    def env(self) -> gym.Env[Any, Any]:
        """The training environment."""
        return self._stage.env

    @property
    def env_id(self) -> str:
        return env_name(self.env)

    @property
    def num_timesteps(self) -> int:
        """Environment steps of training so far, those before `save` and `load` included."""
        return self._earlier + int(self._state.carry.steps)

    @property
    def params(self) -> Any:
        """The network's parameters, as copies."""
        return jax.tree.map(lambda leaf: np.array(leaf, copy=True), self._state.carry.params)

    @property
    def state(self) -> states.RunState:
        """All the run is made of as NumPy arrays (copies), but for a Gymnasium environment."""
        return states.to_host(self._state)

    @classmethod
    def from_state(
        cls,
        env: str | gym.Env[Any, Any],
        state: states.RunState,
        *,
        config: NeuralConfig,
        seed: int,
        compiled: bool = False,
        env_restored: bool = False,
        eval_env: gym.Env[Any, Any] | None = None,
    ) -> NeuralAgent:
        """The agent that `state` was taken from.

        A compiled environment goes on where it was. A Gymnasium environment begins a new
        episode, unless the caller has restored its state and says so by `env_restored`.
        """
        agent = cls(env, seed=seed, compiled=compiled, config=config, eval_env=eval_env)
        agent._state = states.to_device(state, agent._state)
        if not compiled and not env_restored:
            agent._state = states.cut(agent._state)
        return agent

    # --- files ---------------------------------------------------------------------------

    @property
    def at_boundary(self) -> bool:
        """Whether the run can be taken up again from where it is."""
        if self.pure is not None or not self._stage.reseeds:
            return True
        return not self._state.begun or int(self._state.episode.length) == 0

    def snapshot(self, *, cut: bool = False) -> Snapshot:
        """Everything the run is made of, in memory of its own; `Checkpoints` writes it."""
        return files.snapshot(self, cut)

    def save(self, path: str | Path) -> None:
        """What the agent has learned and its settings; a run goes on from a checkpoint."""
        files.save(self, path)

    @classmethod
    def load(
        cls, path: str | Path, env: str | gym.Env[Any, Any] | None = None, **options: Any
    ) -> NeuralAgent:
        """The agent as it was saved. Learning goes on from its network with an empty replay.

        `env` is needed where it had no registered name; `options` replace settings.
        """
        return files.load(cls, path, env, options)

    @classmethod
    def resume(
        cls, place: str | Path, env: str | gym.Env[Any, Any] | None = None, **options: Any
    ) -> NeuralAgent:
        """The run of a checkpoint, or of a directory's newest one, exactly where it was.

        `resume(...).learn(n)` equals, bit for bit, `n` more steps of the run that was cut off.
        """
        return files.resume(cls, place, env, options)


def _made(env: str | gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    if isinstance(env, gym.Env):
        return env
    if not isinstance(env, str):
        raise InputError(f"env is a {type(env).__name__}: give a Gymnasium environment or its id")
    try:
        return gym.make(env)
    except gym.error.Error as error:
        raise InputError(f"environment {env!r}: {' '.join(str(error).split())}") from None


def _pure_of(env: gym.Env[Any, Any]) -> PureEnv:
    if env.spec is None:
        raise InputError(f"compiled: only {', '.join(ENVIRONMENTS)} exist as compiled functions")
    return pure_env_named(env.spec.id)
