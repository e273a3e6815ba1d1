"""Trainings without a directory: trained and evaluated in turn; on any engine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from surefoot.runs.progress import Bar, Mode, progress
from surefoot.training.engines import Board, run_jobs
from surefoot.training.engines.board import CounterPlace, counter
from surefoot.training.train import Training

Result = TypeVar("Result")
SHARE = 0.2  # of the training episodes, at the end, that `training_return` is the mean of


@dataclass(frozen=True)
class TrainingResult:
    training: Training
    steps: np.ndarray  # [E] environment steps at each evaluation
    returns: np.ndarray  # [E, episodes] of the evaluation policy
    episode_returns: np.ndarray  # of the training episodes

    def record(self) -> dict[str, Any]:
        """What a sweep stores: nothing that differs between two runs of the same training."""
        last = self.episode_returns[-max(1, round(SHARE * len(self.episode_returns))) :]
        means = self.returns.mean(axis=1).tolist()
        return {
            "returns": self.returns[-1].tolist(),
            "curve": list(zip(self.steps.tolist(), means, strict=True)),
            "training_episodes": len(self.episode_returns),
            "training_return": float(last.mean()) if len(last) else None,
        }


def run_training(training: Training, steps_done: np.ndarray | None = None) -> TrainingResult:
    """Train and evaluate in turn, every `eval_every` steps and at the end.

    `steps_done[0]` follows the steps.
    """
    agent: Any = training.make_agent()
    episodes: list[float] = []

    def note(agent: Any, episode: Any) -> None:
        episodes.append(episode.total)
        if steps_done is not None:
            steps_done[0] = agent.num_timesteps

    steps, returns = [], []
    for until in training.evaluation_steps():
        left = until - agent.num_timesteps
        if left <= 0:  # several environments have gone that far together
            continue
        agent.learn(left, callback=note)
        steps.append(agent.num_timesteps)
        returns.append(agent.evaluate(training.eval_episodes))
        if steps_done is not None:
            steps_done[0] = min(agent.num_timesteps, training.steps)
    return TrainingResult(training, np.array(steps), np.array(returns), np.array(episodes))


def run_trials(
    trainings: Sequence[Training],
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    description: str = "trials",
    mode: Mode = "auto",
) -> Iterator[tuple[int, TrainingResult]]:
    """Yield `(index, result)` as trainings finish; the bar counts the steps of all of them."""
    names = [training.title for training in trainings]
    where = {"engine": engine, "workers": workers, "address": address}
    total = sum(training.steps for training in trainings)
    with (
        progress(total, description, "steps", mode=mode) as bar,
        closing(run_counted(_job, trainings, bar, names, **where)) as results,
    ):
        for index, result in results:
            bar.note(f"{names[index]} done")
            yield index, result


def run_counted(
    function: Callable[[tuple[Training, CounterPlace]], Result],
    trainings: Sequence[Training],
    bar: Bar,
    names: Sequence[str],
    **where: Any,
) -> Generator[tuple[int, Result], None, None]:
    """`run_jobs` on trainings, each with the place of its counter: the bar follows their steps."""
    steps = [training.steps for training in trainings]
    with Board(steps, bar, here=where.get("engine") != "ray") as board:
        jobs = [(training, board.place(index)) for index, training in enumerate(trainings)]
        for index, result in run_jobs(function, jobs, names=names, **where):
            board.finished(index)
            yield index, result


def _job(job: tuple[Training, CounterPlace]) -> TrainingResult:
    training, place = job
    return run_training(training, counter(place))
