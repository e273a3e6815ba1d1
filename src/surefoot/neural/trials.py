"""Independent trials, one single-threaded worker process per core, one progress display."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from surefoot.engine import run_jobs
from surefoot.neural.agent import NeuralAgent
from surefoot.neural.config import NeuralConfig
from surefoot.neural.loop import Finished
from surefoot.progress import Mode, progress


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
    description: str = "trials",
    mode: Mode = "auto",
) -> Iterator[tuple[int, TrialResult]]:
    """Yield `(index, result)` as trials finish; the bar counts the steps of all of them."""
    with tempfile.TemporaryDirectory(prefix="surefoot-") as folder:
        board = Path(folder) / "steps"
        np.zeros(max(len(trials), 1), np.int64).tofile(board)
        jobs = [(trial, str(board), index) for index, trial in enumerate(trials)]
        total = sum(trial.steps for trial in trials)
        with progress(total, description, "steps", mode=mode) as bar, _Follower(board, bar):
            for index, result in run_jobs(_worker, jobs, engine=engine, workers=workers):
                bar.note(f"{result.trial.config.loss}, seed {result.trial.seed} done")
                yield index, result


def _worker(job: tuple[Trial, str, int]) -> TrialResult:
    trial, board, index = job
    # Every step waits for its action: handing it to another thread only costs. This has an
    # effect where JAX has not started yet, in a fresh worker.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    counter = np.memmap(board, np.int64, "r+", offset=8 * index, shape=(1,))
    return run_trial(trial, counter)


class _Follower:
    """Moves the bar by what the workers wrote on the board."""

    def __init__(self, board: Path, bar: object, every: float = 0.5) -> None:
        self._board = np.memmap(board, np.int64, "r")
        self._bar, self._every, self._shown = bar, every, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> _Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _follow(self) -> None:
        while not self._done.wait(self._every):
            self._look()

    def _look(self) -> None:
        done = int(self._board.sum())
        if done > self._shown:
            self._bar.advance(done - self._shown)  # type: ignore[attr-defined]
            self._shown = done
