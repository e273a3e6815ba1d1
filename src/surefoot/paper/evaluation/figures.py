"""The figure of section 5.2, in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surefoot.core.particles import dispersion_space
from surefoot.core.stats import mean_interval
from surefoot.envs import ACTION_NAMES
from surefoot.paper.evaluation.config import PLACES
from surefoot.paper.evaluation.flows import EvaluationResults
from surefoot.paper.evaluation.verdicts import errors_of
from surefoot.plots import band, dispersion, intervals, label, legend, new_figure, style, styles
from surefoot.plots.styles import BLACK, PALETTE, Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(results: EvaluationResults) -> dict[str, Figure]:
    drawn = {"convergence": _convergence(results), "errors": _errors(results)}
    for index, place in enumerate(PLACES):
        drawn[f"distributions-{place}"] = _distributions(results, index, place)
        drawn[f"outcome-risk-{place}"] = _outcome_risk(results, index, place)
    return drawn


def _distributions(results: EvaluationResults, place: int, name: str) -> Figure:
    flows = results.flows
    figure, axes = new_figure(len(flows), 4, size=(13, 2.6 * len(flows)), sharex="col")
    for row, (transport, each) in zip(axes, flows.items(), strict=True):
        for a, ax in enumerate(row):
            z, target = each.z[0, place, a], each.target_z[0, place, a]
            bins = np.linspace(min(z.min(), target.min()) - 1, max(z.max(), target.max()) + 1, 60)
            count, _ = np.histogram(z, bins)
            ax.stairs(count, bins, fill=True, color=style(transport).color, alpha=0.55,
                      label="particles")  # fmt: skip
            count, _ = np.histogram(target, bins)
            ax.stairs(count, bins, color=BLACK, lw=1.3, label="rollouts")
            ax.set_title(f"{ACTION_NAMES[a]}, {transport}", fontsize=10)
            ax.set_yscale("symlog", linthresh=10)
        label(row[0], y="particles per bin")
    for ax in axes[-1]:
        label(ax, x="discounted return")
    legend(axes[0, 0], loc="upper left")
    figure.suptitle(f"estimated and target return distributions at the {name}, first trial")
    return figure


def _convergence(results: EvaluationResults) -> Figure:
    figure, axes = new_figure(1, 3, size=(13, 3.8))
    names = ("proximal loss", "free energy", "squared value error")
    for transport, each in results.flows.items():
        if transport.endswith("-scaled"):
            continue  # its losses are in another unit
        shown_curves = each.loss, each.free_energy, each.value_error
        for ax, curves in zip(axes[0], shown_curves, strict=True):
            first = 1 if curves is each.loss else 0  # a loss belongs to a step
            shown = mean_interval(curves.mean((1, 2))[:, first:])
            x, low = np.arange(first, curves.shape[-1]), np.maximum(shown.low, 1e-12)
            band(ax, x, shown.mean, low, shown.high, transport)
    for ax, name in zip(axes[0], names, strict=True):
        label(ax, x="JKO step", y=f"{name} (return²)")
        ax.set_yscale("symlog", linthresh=1e-3)
    legend(axes[0, 2])
    trials = results.config.trials
    figure.suptitle(f"mean over places and actions, {trials} trials, 95 % interval")
    return figure


def _outcome_risk(results: EvaluationResults, place: int, name: str) -> Figure:
    figure, axes = new_figure(1, 4, size=(14, 3.8))
    transport = "sinkhorn" if "sinkhorn" in results.flows else next(iter(results.flows))
    for a, ax in enumerate(axes[0]):
        z, truth = results.flows[transport].z[0, place, a], results.truth[place, a]
        alpha = np.linspace(np.quantile(truth, 0.002) - 15, truth.max() + 15, 200)
        dispersion(ax, z, alpha, "F⁽²⁾, particles", Style(PALETTE[a], "", "-"))
        frontier = dispersion_space(truth.astype(float), alpha).frontier
        count = f"F⁽²⁾, {results.config.truth_rollouts:,} rollouts"
        ax.plot(alpha, frontier, color=BLACK, ls=":", lw=1.5, label=count)
        ax.set_title(f"{ACTION_NAMES[a]}: deviation {float(z.std()):.1f}", fontsize=10)
        label(ax, x=r"outcome $\alpha$ (return)")
    label(axes[0, 0], y=r"$F^{(2)}(\alpha)$")
    legend(axes[0, 0], loc="upper left")
    figure.suptitle(f"outcome-risk diagrams at the {name}, {transport}: shaded dispersion space")
    return figure


def _errors(results: EvaluationResults) -> Figure:
    figure, axes = new_figure(1, 3, size=(15, 3.8))
    where = [(p, a) for p in range(len(PLACES)) for a in range(len(ACTION_NAMES))]
    ticks = [f"{place[:5]}\n{action}" for place in PLACES for action in ACTION_NAMES]
    errors = {name: errors_of(each, results.truth) for name, each in results.flows.items()}
    for ax, (measure, text, scale) in zip(
        axes[0],
        (
            ("wasserstein_1", f"W₁ to {results.config.truth_rollouts:,} rollouts (return)", 1.0),
            ("second_moment_relative", "second moment, relative error (%)", 100.0),
            ("wasserstein_1_to_fitted_rollouts", "W₁ to the fitted rollouts (return)", 1.0),
        ),
        strict=True,
    ):
        groups = {
            name: [mean_interval(scale * own[measure][:, p, a]) for p, a in where]
            for name, own in errors.items()
        }
        intervals(ax, groups, ticks, looks=styles(groups))
        ax.tick_params(axis="x", labelsize=8)
        label(ax, y=text)
    axes[0, 1].axhline(0, color="#777777", lw=0.8)
    legend(axes[0, 0])
    return figure
