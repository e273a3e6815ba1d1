"""Which losses learn more than the mean of a random return (notes A1 and A4), measured.

Two probes with known answers, five seeds: two Gaussian arms, N(0, 0.5) and N(1, 2), and a fork
(a fair coin between two certain returns). The measure is the particles' standard deviation as
a share of the true one: 1 is right, 0 has seen no noise at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.neural.config import PAPER, NeuralConfig
from surefoot.core.stats import mean_interval
from surefoot.envs import probes
from surefoot.paper.claims import Claim
from surefoot.plots import label, legend_below, new_figure, styles
from surefoot.plots.styles import GREY
from surefoot.runs.progress import progress
from surefoot.training.engines import run_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = NeuralConfig(
    loss="qr", hidden=(64,), particles=16, learning_rate=1e-3, target_period=50, gamma=0.5,
    learning_starts=32, explore=1.0, **PAPER | {"replay_size": 2000},
)  # fmt: skip
PARTS = {"arms": "reward noise (arms)", "fork": "noise behind a fork"}
CONTENDERS: dict[str, dict[str, Any]] = {
    "wgf": {"loss": "wgf"},
    "wgf-debiased": {"loss": "wgf-debiased"},
    "wgf-exact": {"loss": "wgf-exact"},
    "proximal-qr": {"loss": "proximal-qr", "step_size": 3.0},
    "qr": {"loss": "qr"},
    "qr, kappa 0": {"loss": "qr", "kappa": 0.0},
    "c51": {"loss": "c51", "value_range": (-8.0, 8.0), "particles": 33},
    "mse": {"loss": "mse"},
}


class ProbedAgent(NamedTuple):
    """One trained agent: learned over true deviation, and the error of the mean."""

    name: str
    seed: int
    arms: float  # mean of the two arms' ratios
    fork: float
    mean_error: float  # largest absolute error of a mean, over both probes


def midpoint_std(n: int) -> float:
    """Deviation of a standard normal's n quantile midpoints: the most n particles can show."""
    z = [NormalDist().inv_cdf((2 * i + 1) / (2 * n)) for i in range(n)]
    return float(np.std(z))


def measure(name: str, seed: int, steps: int = 6000) -> ProbedAgent:
    options = CONTENDERS[name]
    arms = _trained(probes.NoisyArms((0.0, 1.0), (0.5, 2.0)), seed, steps, options)
    fork = _trained(probes.CoinFork(), seed, steps, options)
    z, y = arms.return_distribution([1.0]), fork.return_distribution(0)
    # The fork is worth 0.5 * (0 or 2) with equal chance, deviation 0.5 and mean 0.5 for any action.
    shares = z.std(axis=-1) / np.array([0.5, 2.0]) / midpoint_std(max(z.shape[-1], 2))
    errors = np.abs(np.concatenate([z.mean(axis=-1) - [0.0, 1.0], y.mean(axis=-1) - 0.5]))
    return ProbedAgent(
        name, seed, float(shares.mean()), float(y.std(axis=-1).mean() / 0.5), float(errors.max())
    )


def measure_moments(seeds: int, workers: int) -> dict[str, list[Any]]:
    """A row for each contender and seed."""
    jobs = [(name, seed) for name in CONTENDERS for seed in range(seeds)]
    rows: list[Any] = [None] * len(jobs)
    with progress(len(jobs), "second moments", "agents") as bar:
        for index, row in run_jobs(_job, jobs, engine="local", workers=workers or None):
            rows[index] = row
            bar.advance()
    return {name: [getattr(row, name) for row in rows] for name in ProbedAgent._fields}


def _job(job: tuple[str, int]) -> ProbedAgent:
    return measure(*job)


def _trained(env: gym.Env[Any, Any], seed: int, steps: int, options: dict[str, Any]) -> NeuralAgent:
    return NeuralAgent(env, seed=seed, config=SMALL, **options).learn(steps)


LearnedMoments = Mapping[str, Mapping[str, np.ndarray]]
"""By contender and part, one value per seed."""


def read_moments(table: Mapping[str, np.ndarray]) -> LearnedMoments:
    return {
        name: {part: table[part][table["name"] == name] for part in (*PARTS, "mean_error")}
        for name in CONTENDERS
    }


def moments_claim(moments: LearnedMoments) -> Claim:
    """Not a claim of the paper: what its loss cannot learn, and the remedy."""
    means = {name: [own[part].mean() for part in PARTS] for name, own in moments.items()}
    learned = [name for name, shares in means.items() if min(shares) > 0.7]
    blind = [name for name, shares in means.items() if max(shares) < 0.3]
    return Claim(
        id="gym/second-moment",
        section="5.3",
        paper="Two accurate moments are what the dominance policy needs (section 5.1).",
        measured=f"Learned dispersion: {', '.join(learned)}. Blind to it: {', '.join(blind)}.",
        verdict="not testable",
        reason="not claimed for networks; measured as learned over true standard deviation",
        intervals={
            f"{name}: fork": mean_interval(own["fork"])
            for name, own in moments.items()
            if len(own["fork"]) > 1
        },
    )


def draw_moments(moments: LearnedMoments) -> Figure:
    figure, ax = new_figure(size=(7.5, 1.4 + 0.45 * len(moments)))
    looks, names = styles(PARTS.values()), list(moments)
    for i, (part, text) in enumerate(PARTS.items()):
        values = [moments[name][part].mean() for name in names]
        ax.barh(np.arange(len(names)) + (i - 0.5) * 0.38, values, 0.36, color=looks[text].color,
                label=text)  # fmt: skip
    ax.axvline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)))
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    label(ax, x="learned over true standard deviation (dotted: right)")
    legend_below(figure, ax)
    return figure
