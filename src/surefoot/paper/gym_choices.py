"""How the settings that section 5.3 leaves open were chosen: a brief ablation, one at a time.

Around the chosen point, each of target period, h and gradient clipping (WGF's squared residual
has no bound on its gradient, QR's Huber loss has) is varied alone, and the copies of the target
network are put beside its averaging (Polyak, at every step). Training length is read off
the same runs: the score after a half and after the whole of them. MountainCar is left out by
default: at the chosen point no trial of the experiment learned it, so it has nothing to compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.agents.neural.config import PAPER, NeuralConfig
from surefoot.core.stats import mean_interval
from surefoot.errors import InputError, at_least
from surefoot.paper.claims import Claim
from surefoot.paper.control import LOSSES, TASKS, Curves, check_tasks, train_missing
from surefoot.paper.experiment import Experiment, Tables
from surefoot.plots import label, legend, new_figure, style
from surefoot.training.train import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVALUATIONS = 20


class GymSetting(NamedTuple):
    """A point of the ablation."""

    loss: str
    target_period: int
    step_size: float
    max_grad_norm: float | None
    target_mix: float = 1.0

    @property
    def label(self) -> str:
        mixed = self.target_mix < 1
        text = f"average {self.target_mix:g}" if mixed else f"period {self.target_period}"
        if self.loss == "wgf":
            text += f", h {self.step_size:g}"
        norm = self.max_grad_norm
        return text + (", no clip" if norm is None else f", clip {norm:g}")


@dataclass(frozen=True)
class GymChoicesConfig:
    """Target period, h, gradient clipping and training length of the control experiment."""

    tasks: tuple[str, ...] = ("cart-pole", "lunar-lander")
    """Any of mountain-car, cart-pole, lunar-lander."""
    steps: tuple[int, ...] = (30_000, 30_000)
    """Environment steps of training, one number per task."""
    trials: int = 3
    """Trials of each point."""
    seed: int = 100
    """Of the first trial: others than those the experiment itself uses."""
    target_periods: tuple[int, ...] = (100, 500, 2000)
    """Environment steps between copies of the target network; the first is the chosen one."""
    averages: tuple[float, ...] = (0.01,)
    """Shares of the online network that the target network takes at every step instead."""
    step_sizes: tuple[float, ...] = (1.0, 0.1, 10.0)
    """JKO time steps of WGF; the first is the chosen one."""
    max_grad_norms: tuple[float, ...] = (1.0, 10.0)
    """Bounds on the norm of the gradient, beside none; the first is the chosen one."""
    workers: int = 0
    """Worker processes; 0 takes one per core."""

    def __post_init__(self) -> None:
        check_tasks(self.tasks, self.steps)
        at_least(2, trials=self.trials)
        at_least(EVALUATIONS, steps=min(self.steps))
        if not (self.target_periods and self.step_sizes and self.max_grad_norms):
            raise InputError("target_periods, step_sizes, max_grad_norms: at least one of each")

    def settings(self) -> list[GymSetting]:
        chosen = GymSetting(
            "wgf", self.target_periods[0], self.step_sizes[0], self.max_grad_norms[0]
        )
        points = []
        for loss in LOSSES:
            own = chosen._replace(loss=loss)
            points += [own._replace(target_period=period) for period in self.target_periods]
            points += [own._replace(target_period=1, target_mix=mix) for mix in self.averages]
            if loss == "wgf":  # the others have no h
                points += [own._replace(step_size=h) for h in self.step_sizes[1:]]
                points += [own._replace(max_grad_norm=norm) for norm in self.max_grad_norms[1:]]
            points.append(own._replace(max_grad_norm=None))
        return points


def measure(config: GymChoicesConfig, tables: Tables) -> None:
    for task in config.tasks:
        train_missing(_trainings(config, task), tables, config.workers, task)


def _trainings(config: GymChoicesConfig, task: str) -> dict[str, Training]:
    """Of every point and seed, by the names of their tables."""
    steps = dict(zip(config.tasks, config.steps, strict=True))[task]
    return {
        f"{task}.{i}-{seed}": TASKS[task].training(
            NeuralConfig(particles=2, **PAPER | setting._asdict()), steps, EVALUATIONS, seed
        )
        for i, setting in enumerate(config.settings())
        for seed in seeds_of(config)
    }


def seeds_of(config: GymChoicesConfig) -> list[int]:
    return list(range(config.seed, config.seed + config.trials))


Scores = Mapping[str, Mapping[GymSetting, np.ndarray]]
"""By task and setting, `[trials, 2]`: mean return over the last fifth of the first half of the
run, and of the full run."""


def read(config: GymChoicesConfig, tables: Tables) -> Scores:
    scores: dict[str, dict[GymSetting, np.ndarray]] = {}
    half, tenth = EVALUATIONS // 2, EVALUATIONS // 10
    for task in config.tasks:
        names, scores[task] = list(_trainings(config, task)), {}
        for i, setting in enumerate(config.settings()):
            curves = Curves.read(tables, names[i * config.trials : (i + 1) * config.trials])
            early = curves.returns[:, half - tenth : half].mean(axis=1)
            scores[task][setting] = np.stack([early, curves.scores], axis=1)
    return scores


def summary(scores: Scores) -> dict[str, Any]:
    return {
        task: [
            setting._asdict() | {"half": values[:, 0].tolist(), "whole": values[:, 1].tolist()}
            for setting, values in own.items()
        ]
        for task, own in scores.items()
    }


def verdicts(scores: Scores) -> list[Claim]:
    return [_claim(task, own) for task, own in scores.items()]


def _claim(task: str, scores: Mapping[GymSetting, np.ndarray]) -> Claim:
    best = {
        loss: max(
            (s for s in scores if s.loss == loss), key=lambda s: float(scores[s][:, 1].mean())
        )
        for loss in LOSSES
    }
    return Claim(
        id=f"gym-choices/{task}",
        section="5.3",
        paper="Target period, step size h and training length are not given.",
        measured=f"Final return; best of qr: {best['qr'].label}; of wgf: {best['wgf'].label}.",
        verdict="not testable",
        reason="a choice of ours, not the paper's",
        intervals={
            f"{setting.loss}, {setting.label}": mean_interval(values[:, 1])
            for setting, values in scores.items()
        },
    )


def figures(scores: Scores) -> dict[str, Figure]:
    """A row per point; open marks after half of the steps, full ones at the end."""
    settings = list(next(iter(scores.values())))
    figure, axes = new_figure(
        1, len(scores), size=(1.6 + 3.6 * len(scores), 1.6 + 0.34 * len(settings)), sharey=True,
        title="Return over the last fifth of the whole run (full) and of its half (open)",
    )  # fmt: skip
    for ax, (task, own) in zip(np.ravel(axes), scores.items(), strict=True):
        named = set()
        for row, (setting, values) in enumerate(own.items()):
            look, at = style(setting.loss), np.full(len(values), row)
            ax.plot(values[:, 0], at, look.marker, color=look.color, fillstyle="none", alpha=0.7)
            name = None if setting.loss in named else setting.loss.upper()
            ax.plot(values[:, 1], at, look.marker, color=look.color, label=name)
            named.add(setting.loss)
        TASKS[task].mark(ax)
        label(ax, TASKS[task].env_id, "return (dotted: solved)")
    first = np.ravel(axes)[0]
    first.set_yticks(range(len(settings)), [f"{s.loss}, {s.label}" for s in settings])
    first.invert_yaxis()
    legend(first)
    return {"choices": figure}


EXPERIMENT = Experiment(
    "gym-choices", GymChoicesConfig, measure, read, summary, verdicts, figures, seeds_of
)
run = EXPERIMENT.run
