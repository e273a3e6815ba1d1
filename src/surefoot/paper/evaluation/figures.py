"""The figure of section 5.2, in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.core.particles import dispersion_space
from surefoot.core.stats import mean_interval
from surefoot.envs import ACTION_NAMES
from surefoot.paper.evaluation.flows import PLACES, Flows
from surefoot.paper.evaluation.verdicts import blur, second_moment_error, wasserstein_error
from surefoot.plots import PALETTE, band, legend, new_figure, save_figure, style
from surefoot.plots.styles import ORANGE, Style
from surefoot.runs.directory import RunDir

if TYPE_CHECKING:
    from surefoot.paper.evaluation import Config


def draw_figures(config: Config, flows: dict[str, Flows], run: RunDir) -> None:
    for index, place in enumerate(PLACES):
        _distributions(flows, run, index, place)
        _outcome_risk(flows, run, index, place)
    _convergence(config, flows, run)
    _errors(flows, run)


def look_of(method: str) -> Style:
    return Style(ORANGE, "D", ":") if method.endswith("-scaled") else style(method)


def _distributions(flows: dict[str, Flows], run: RunDir, place: int, name: str) -> None:
    figure, axes = new_figure(len(flows), 4, size=(13, 2.6 * len(flows)), sharex="col")
    for row, (transport, found) in zip(axes, flows.items(), strict=True):
        for a, ax in enumerate(row):
            z, target = found.z[0, place, a], found.target_z[0, place, a]
            bins = np.linspace(min(z.min(), target.min()) - 1, max(z.max(), target.max()) + 1, 60)
            ax.hist(z, bins, color=look_of(transport).color, alpha=0.55, label="particles")
            ax.hist(target, bins, histtype="step", color="black", lw=1.3, label="rollouts")
            ax.set_title(f"{ACTION_NAMES[a]}, {transport}", fontsize=10)
            ax.set_yscale("symlog", linthresh=10)
        row[0].set_ylabel("particles per bin")
    for ax in axes[-1]:
        ax.set_xlabel("discounted return")
    legend(axes[0, 0], loc="upper left")
    figure.suptitle(f"estimated and target return distributions at the {name}, first trial")
    save_figure(figure, run, f"distributions-{name}")


def _convergence(config: Config, flows: dict[str, Flows], run: RunDir) -> None:
    figure, axes = new_figure(1, 3, size=(13, 3.8))
    steps = np.arange(1, config.steps + 1)
    for transport, found in flows.items():
        if transport.endswith("-scaled"):
            continue  # its losses are in another unit
        for ax, values, x in (
            (axes[0, 0], found.loss.mean((1, 2)), steps),
            (axes[0, 1], found.free_energy.mean((1, 2)), np.arange(config.steps + 1)),
            (axes[0, 2], found.value_error.mean((1, 2)), np.arange(config.steps + 1)),
        ):
            shown = mean_interval(values)
            look = look_of(transport)
            low = np.maximum(shown.low, 1e-12)
            band(ax, x, shown.mean, low, shown.high, transport, look=look)
    for ax, label in (
        (axes[0, 0], "proximal loss (return²)"),
        (axes[0, 1], "free energy (return²)"),
        (axes[0, 2], "squared value error (return²)"),
    ):
        ax.set_xlabel("JKO step")
        ax.set_ylabel(label)
        ax.set_yscale("symlog", linthresh=1e-3)
    legend(axes[0, 2])
    figure.suptitle(f"mean over places and actions, {config.trials} trials, 95 % interval")
    save_figure(figure, run, "convergence")


def _outcome_risk(flows: dict[str, Flows], run: RunDir, place: int, name: str) -> None:
    figure, axes = new_figure(1, 4, size=(14, 3.8))
    transport = "sinkhorn" if "sinkhorn" in flows else next(iter(flows))
    found = flows[transport]
    for a, ax in enumerate(axes[0]):
        low, high = np.quantile(found.truth[place, a], 0.002) - 15, found.truth[place, a].max() + 15
        alpha = np.linspace(low, high, 400)
        space = dispersion_space(found.z[0, place, a].astype(float), alpha)
        _shade(ax, space, PALETTE[a])
        truth = dispersion_space(found.truth[place, a].astype(float), alpha)
        ax.plot(alpha, truth.frontier, color="black", ls=":", lw=1.5, label="F⁽²⁾, 20,000 rollouts")
        deviation = float(found.z[0, place, a].std())
        ax.set_title(f"{ACTION_NAMES[a]}: deviation {deviation:.1f}", fontsize=10)
        ax.set_xlabel(r"outcome $\alpha$ (return)")
    axes[0, 0].set_ylabel(r"$F^{(2)}(\alpha)$")
    legend(axes[0, 0], loc="upper left")
    figure.suptitle(f"outcome-risk diagrams at the {name}, {transport}: shaded dispersion space")
    save_figure(figure, run, f"outcome-risk-{name}")


def _shade(ax: Any, space: Any, color: str) -> None:
    floor = np.maximum(space.left_asymptote, space.right_asymptote)
    ax.fill_between(space.alpha, floor, space.frontier, color=color, alpha=0.3)
    ax.plot(space.alpha, space.frontier, color=color, lw=2, label="F⁽²⁾, particles")
    ax.plot(space.alpha, floor, color="#777777", ls="--", lw=1, label="asymptotes")


def _errors(flows: dict[str, Flows], run: RunDir) -> None:
    figure, axes = new_figure(1, 3, size=(15, 3.8))
    for ax, measure, label, scale in (
        (axes[0, 2], blur, "W₁ to the fitted rollouts (return)", 1.0),
        (axes[0, 0], wasserstein_error, "W₁ to 20,000 rollouts (return)", 1.0),
        (axes[0, 1], second_moment_error, "second moment, relative error (%)", 100.0),
    ):
        places = [(p, a) for p in range(len(PLACES)) for a in range(4)]
        for offset, (transport, found) in zip(
            (-0.27, -0.09, 0.09, 0.27), flows.items(), strict=False
        ):
            errors = [mean_interval(scale * measure(found)[:, p, a]) for p, a in places]
            mean = np.asarray([e.mean for e in errors])
            half = np.asarray([e.half_width for e in errors])
            look = look_of(transport)
            ax.errorbar(
                np.arange(8) + offset, mean, yerr=half, fmt=look.marker, color=look.color,
                capsize=2, label=transport, ms=5,
            )  # fmt: skip
        ax.set_xticks(
            range(8), [f"{n[:5]}\n{ACTION_NAMES[a]}" for n in PLACES for a in range(4)], fontsize=8
        )
        ax.set_ylabel(label)
    axes[0, 1].axhline(0, color="#777777", lw=0.8)
    legend(axes[0, 0])
    save_figure(figure, run, "errors")
