"""Independent trials on any engine, with one progress display."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.neural.config import NeuralConfig
from surefoot.runs.logs import Finished
from surefoot.runs.progress import Mode, progress
from surefoot.training.engines import Board, run_jobs
from surefoot.training.engines.board import Place, counter


@dataclass(frozen=True)
class Trial:
    """One run from scratch."""

    env_id: str
    config: NeuralConfig
    seed: int
    steps: int
    eval_every: int
    eval_episodes: int = 10
    compiled: bool = False


@dataclass(frozen=True)
class TrialResult:
    trial: Trial
    steps: np.ndarray  # [E] environment steps at each evaluation
    returns: np.ndarray  # [E, episodes] of the evaluation policy
    episode_steps: np.ndarray  # when the training episodes ended
    episode_returns: np.ndarray
    cpu_seconds: float  # of the process while it trained, evaluation included

    def score(self, share: float = 0.2) -> float:
        """Mean return over the last `share` of the evaluations."""
        last = max(1, round(share * len(self.steps)))
        return float(self.returns[-last:].mean())


def run_trial(trial: Trial, counter: np.ndarray | None = None) -> TrialResult:
    """Train and evaluate in turn; `counter[0]` follows the steps done."""
    start = time.process_time()
    agent = NeuralAgent(trial.env_id, seed=trial.seed, compiled=trial.compiled, config=trial.config)
    finished: list[Finished] = []

    def note(_: NeuralAgent, episode: Finished) -> None:
        finished.append(episode)
        if counter is not None:
            counter[0] = episode.step

    steps, returns = [], []
    for until in range(trial.eval_every, trial.steps + 1, trial.eval_every):
        agent.learn(until - agent.num_timesteps, callback=note)
        steps.append(until)
        returns.append(agent.evaluate(trial.eval_episodes))
        if counter is not None:
            counter[0] = until
    return TrialResult(
        trial,
        np.asarray(steps),
        np.asarray(returns),
        np.asarray([e.step for e in finished]),
        np.asarray([e.total for e in finished]),
        time.process_time() - start,
    )


def run_trials(
    trials: Sequence[Trial],
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    description: str = "trials",
    mode: Mode = "auto",
) -> Iterator[tuple[int, TrialResult]]:
    """Yield `(index, result)` as trials finish; the bar counts the steps of all of them."""
    steps = [trial.steps for trial in trials]
    names = [f"{t.env_id}, {t.config.loss}, seed {t.seed}" for t in trials]
    with (
        progress(sum(steps), description, "steps", mode=mode) as bar,
        Board(steps, bar, here=engine != "ray") as board,
    ):
        jobs = [(trial, board.place(index)) for index, trial in enumerate(trials)]
        for index, result in run_jobs(
            _job, jobs, engine=engine, workers=workers, address=address, names=names
        ):
            board.finished(index)
            bar.note(f"{names[index]} done")
            yield index, result


def _job(job: tuple[Trial, Place]) -> TrialResult:
    trial, place = job
    return run_trial(trial, counter(place))
