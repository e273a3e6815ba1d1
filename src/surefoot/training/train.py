"""A training run with its directory: what `surefoot train` does, as a library call.

    RUN/config.json, provenance.json, summary.json, complete.json
    RUN/checkpoints/            the last few, while it lasts and after
    RUN/episodes.csv            step, episode, return, length, ...
    RUN/evaluations.csv         step, episode, return: the evaluation policy, without exploration
    RUN/distributions.csv       step, state, action, particle, value: the watched observations
    RUN/evidence.csv            step, state, action, member, mean, n, error: how well they are known
    RUN/speed.csv               step, steps_per_second: of the training alone
    RUN/agent.safetensors       at the end; `surefoot.load` reads it

A run that was cut off, by Ctrl-C, SIGTERM or a crash, goes on when it is started again, and ends
as if nothing had happened.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from surefoot.agents.base import Agent
from surefoot.agents.loading import load, resume
from surefoot.agents.neural import NeuralAgent, NeuralConfig
from surefoot.agents.tabular import TabularAgent, TabularConfig
from surefoot.core.stats import mean_interval
from surefoot.envs.making import made_env
from surefoot.errors import InputError, at_least, check_episodes
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.files import plain
from surefoot.runs.format import settings
from surefoot.runs.logs import Hook, RunLog, Watch
from surefoot.runs.session import resumable, stopping
from surefoot.runs.tables import read_csv

AgentKind = Literal["neural", "tabular"]
AGAIN = "the same command"
LAST = 100  # episodes at the end whose returns the summary averages


@dataclass(frozen=True)
class Training:
    """What a run is made from; its directory's config.json."""

    env: str
    """Gymnasium id, also `module:Id`."""
    config: NeuralConfig | TabularConfig = field(default_factory=NeuralConfig)
    steps: int = 50_000
    seed: int = 0
    compiled: bool = False
    env_options: Mapping[str, Any] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()
    """Wrappers around it, each as `module:Name`, the first innermost."""
    eval_every: int | None = None
    eval_episodes: int = 10
    watch: tuple[Any, ...] = ()
    """Observations; "start" stands for the one the environment begins with."""
    watch_every: int = 1_000
    checkpoint_every: int = 5_000

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, watch_every=self.watch_every)
        at_least(1, checkpoint_every=self.checkpoint_every)
        at_least(0, seed=self.seed)
        check_episodes(0, eval_episodes=self.eval_episodes)
        if self.eval_every is not None:
            at_least(1, eval_every=self.eval_every)
        if self.compiled and self.agent == "tabular":
            raise InputError(
                "compiled: a tabular agent is always compiled where that is possible; leave it out"
            )

    @property
    def agent(self) -> AgentKind:
        return "tabular" if isinstance(self.config, TabularConfig) else "neural"

    @property
    def title(self) -> str:
        return f"{self.env}, {self.config.loss}, seed {self.seed}"

    def as_dict(self) -> dict[str, Any]:
        """Flat, as the options of the command line are."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del own["config"]
        if not self.wrapper:  # what was trained without has the same key as ever
            del own["wrapper"]
        return {"agent": self.agent, **own, **settings(self.config)}

    @property
    def key(self) -> str:
        """The same for the same training on every machine and in every year."""
        text = json.dumps(plain(self.as_dict()), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def evaluation_steps(self) -> list[int]:
        """Every `eval_every` steps, and the end."""
        every = self.eval_every or self.steps
        return [*range(every, self.steps, every), self.steps]

    def make_env(self) -> Any:
        return made_env(self.env, self.wrapper, self.env_options)

    def env_argument(self) -> Any:
        """The environment's name, or how to make one with its options and wrappers."""
        if self.wrapper or self.env_options:
            return partial(made_env, self.env, self.wrapper, self.env_options)
        return self.env

    def make_agent(self) -> NeuralAgent | TabularAgent:
        env = self.env_argument()
        if isinstance(self.config, TabularConfig):
            return TabularAgent(env, self.config, seed=self.seed)
        return NeuralAgent(env, config=self.config, seed=self.seed, compiled=self.compiled)


def train(
    training: Training,
    out: str | os.PathLike[str],
    *,
    existing: Existing = "resume",
    hooks: Callable[[Path], Sequence[Hook]] = lambda _: (),
    on_fault: str = "stop",
    show: bool = False,
) -> NeuralAgent | TabularAgent:
    """Train in the directory `out`; returns the trained agent.

    `existing="resume"` takes up a run that is there, if it has the same configuration (or fewer
    steps); "overwrite" begins anew, "error" refuses. `hooks` makes, for
    the run's directory, what else follows returns and losses, such as `TensorBoard`.
    """
    agent = training.make_agent()  # first: a mistake must not leave a directory behind
    watched = watched_observations(agent, training)
    with stopping(), resumable(out):
        run = RunDir.create(
            out, training.as_dict(), kind="training", seeds=training.seed, existing=existing,
            growing=("steps",),
        )  # fmt: skip
        saved = run.file("agent.safetensors")  # now: better an error here than after hours of work
        if run.complete:
            return load(saved, training.env_argument())
        keeper = Checkpoints(run.file("checkpoints"), training.checkpoint_every, hint=AGAIN)
        with RunLog(run.path, hooks(run.path)) as book:
            if keeper.latest() is not None:
                agent = resume(run.path, training.env_argument())
            else:  # whatever was logged is of no checkpoint
                book.begin(0, {}, agent.episode_columns)
            left = training.steps - agent.num_timesteps
            together = getattr(training.config, "n_envs", 1)  # the last round may go beyond
            if left <= -together:
                raise InputError(
                    f"{out} has done {agent.num_timesteps} steps, its config.json asks for "
                    f"{training.steps}: overwrite it, or choose another directory"
                )
            agent.learn(  # with nothing left too: the logs are cut back to the checkpoint
                max(0, left),
                log=book,
                eval_every=training.eval_every if training.eval_episodes > 0 else None,
                eval_episodes=training.eval_episodes,
                watch=Watch(_stacked(watched), training.watch_every) if watched else None,
                checkpoints=keeper,
                on_fault=on_fault,
                progress=show,
            )
        agent.save(saved)
        return _finish(run, training, agent)


def _finish(run: RunDir, training: Training, agent: Any) -> Any:
    log = run.file("episodes.csv")
    returns = read_csv(log)["return"] if log.exists() else np.zeros(0)
    summary: dict[str, Any] = {
        "kind": "training",
        "env": training.env,
        "agent": training.agent,
        "loss": training.config.loss,
        "steps": agent.num_timesteps,
        "episodes": len(returns),
        "faults": list(agent.faults),
    }
    last = returns[-LAST:]
    summary["last_episodes"] = len(last)
    summary["training_return"] = mean_interval(last).as_dict() if len(last) > 1 else None
    if training.eval_episodes > 1:
        final = agent.evaluate(training.eval_episodes)
        summary["evaluation_return"] = mean_interval(final).as_dict()
        summary["evaluation_returns"] = final.tolist()
    run.write_summary(summary)
    run.mark_complete()
    return agent


def watched_observations(agent: Agent, training: Training) -> list[Any]:
    """What is watched, checked against the environment's observation space."""
    space, out = agent.observation_space, []
    for watched in training.watch:
        obs = agent.first_observation(training.seed) if watched == "start" else watched
        if watched != "start" and not _fits(space, obs):
            raise InputError(f"watch: {watched!r} does not fit {space}")
        if not isinstance(obs, int | tuple | dict):
            obs = np.asarray(obs, space.dtype)
        out.append(obs)
    return out


def _fits(space: Any, obs: Any) -> bool:
    """Numbers of a box may lie beyond its bounds; a state is one of those there are."""
    if isinstance(space, gym.spaces.Box):
        return np.shape(obs) == space.shape and bool(np.isfinite(np.asarray(obs, float)).all())
    return bool(space.contains(obs))


def _stacked(watched: list[Any]) -> Any:
    """A batch of observations; those of several parts stay a list."""
    return watched if isinstance(watched[0], tuple | dict) else np.stack(watched)
