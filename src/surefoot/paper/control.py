"""The control tasks of section 5.3, and how both of its modules train on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from surefoot.agents.neural import NeuralConfig
from surefoot.core.bootstrap import interquartile_mean
from surefoot.errors import InputError, unknown
from surefoot.paper.experiment import Tables
from surefoot.plots.styles import GREY, Style
from surefoot.training.train import Training
from surefoot.training.trials import run_trials

LOSSES = ("qr", "wgf")


class GymTask(NamedTuple):
    """An environment, and the returns that count as nothing learned and as solved."""

    env_id: str
    poor: float
    solved: float
    compiled: bool

    def training(
        self, config: NeuralConfig, steps: int, evaluations: int, seed: int, compiled: bool = True
    ) -> Training:
        """Evaluated at even distances, the last time at its end."""
        every = steps // evaluations
        inside = compiled and self.compiled
        return Training(self.env_id, config, every * evaluations, seed, inside, eval_every=every)

    def mark(self, ax: Any, *, across: bool = False) -> None:
        """A dotted line at the return that counts as solved."""
        line = ax.axhline if across else ax.axvline
        line(self.solved, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)))


TASKS = {
    "mountain-car": GymTask("MountainCar-v0", -200.0, -110.0, True),
    "cart-pole": GymTask("CartPole-v1", 22.0, 475.0, True),
    "lunar-lander": GymTask("LunarLander-v3", -180.0, 200.0, False),
}


def check_tasks(tasks: tuple[str, ...], steps: tuple[int, ...]) -> None:
    """Known tasks, with a training length for each."""
    for task in tasks:
        if task not in TASKS:
            raise unknown("task", task, TASKS)
    if not tasks or len(steps) != len(tasks):
        raise InputError(f"steps = {steps}: there must be one number for each of {tasks}")


def train_missing(
    trainings: Mapping[str, Training], tables: Tables, workers: int, description: str
) -> None:
    """One row per evaluation, in the table of the training's name, as soon as it is done."""
    missing = {name: own for name, own in trainings.items() if name not in tables}
    names = list(missing)
    for k, result in run_trials(
        list(missing.values()), workers=workers or None, description=description
    ):
        size = len(result.steps)
        columns = {
            "loss": [result.training.config.loss] * size,
            "seed": [result.training.seed] * size,
            "step": [int(step) for step in result.steps],
            "return": [float(returns.mean()) for returns in result.returns],
        }
        tables.write(names[k], columns)


class Curves(NamedTuple):
    """The evaluations of several trials."""

    steps: np.ndarray  # [E]
    returns: np.ndarray  # [trials, E]

    @classmethod
    def read(cls, tables: Tables, names: Iterable[str]) -> Curves:
        each = [tables[name] for name in names]
        return cls(each[0]["step"], np.stack([own["return"] for own in each]))

    @property
    def scores(self) -> np.ndarray:
        """Mean return over the last fifth of the evaluations, one per trial."""
        return self.returns[:, -max(1, self.returns.shape[1] // 5) :].mean(axis=1)

    def draw(self, ax: Any, look: Style, name: str) -> None:
        """All trials thin, their interquartile mean thick."""
        for each in self.returns:
            ax.plot(self.steps, each, color=look.color, alpha=0.3, linewidth=0.8)
        middle = [interquartile_mean(column) for column in self.returns.T]
        ax.plot(
            self.steps, middle, color=look.color, linestyle=look.linestyle, linewidth=2.4,
            marker=look.marker, markevery=4, label=name,
        )  # fmt: skip
