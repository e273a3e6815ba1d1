"""Section 5.2: the flow recovers the return distribution of a fixed policy on the cliff walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.core.particles import dispersion_space, wasserstein
from surefoot.core.stats import Interval, mean_interval
from surefoot.envs import ACTION_NAMES, ARROWS
from surefoot.paper.claims import Claim, graded, held
from surefoot.paper.experiment import Experiment
from surefoot.paper.flows import PLACES, EvaluationConfig, EvaluationResults, Flows, measure
from surefoot.plots import band, dispersion, intervals, label, legend, new_figure, style, styles
from surefoot.plots.styles import BLACK, PALETTE, Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECTION = "5.2"
FALLEN = -50.0  # a discounted return below this has met the cliff in the first few steps
START = list(PLACES).index("start")


def distance(z: np.ndarray, other: np.ndarray) -> np.ndarray:
    """W1 `[T, P, A]` in units of return: to the truth, or to the rollouts that were fitted."""
    return np.asarray(wasserstein(z.astype(float), np.asarray(other, dtype=float), 1.0))


def second_moment_error(z: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Relative error of the second moment against the truth `[T, P, A]`."""
    wanted = (truth.astype(float) ** 2).mean(-1)
    return ((z.astype(float) ** 2).mean(-1) - wanted) / wanted


def errors_of(flows: Flows, truth: np.ndarray) -> dict[str, np.ndarray]:
    """By measure, `[T, P, A]`."""
    return {
        "wasserstein_1": distance(flows.z, truth[None]),
        "wasserstein_1_to_fitted_rollouts": distance(flows.z, flows.target_z),
        "second_moment_relative": second_moment_error(flows.z, truth),
        "deviation": flows.z.std(-1) - truth.std(-1),
    }


def summary(results: EvaluationResults) -> dict[str, Any]:
    policy = "".join(ARROWS[a] for a in results.policy)
    transports = {name: _of_flows(f, results.truth) for name, f in results.flows.items()}
    return {"policy": policy, "transports": transports}


def _of_flows(flows: Flows, truth: np.ndarray) -> dict[str, Any]:
    errors = errors_of(flows, truth)
    places = {
        place: {
            action: {name: mean_interval(error[:, p, a]) for name, error in errors.items()}
            for a, action in enumerate(ACTION_NAMES)
        }
        for p, place in enumerate(PLACES)
    }
    return places | {
        "converged_share_of_steps": float(flows.converged[..., 1:].mean()),
        "final_squared_value_error": mean_interval(flows.value_error[..., -1].mean((1, 2))),
    }


# --- the claims --------------------------------------------------------------------------


def verdicts(results: EvaluationResults) -> list[Claim]:
    flows = results.flows
    paper = flows.get("sinkhorn") or next(iter(flows.values()))
    made = [_decreasing(paper), _value_error(paper), _features(paper)]
    made.append(_bimodal(paper, results.truth))
    if {"sinkhorn", "exact"} <= set(flows):
        made.append(_smoothing(flows))
    return made


def _decreasing(flows: Flows) -> Claim:
    drop = np.diff(flows.free_energy, axis=-1)
    slack = 1e-5 * np.abs(flows.free_energy[..., :1])
    share = mean_interval((drop <= slack).mean((1, 2, 3)))
    fine = share.low >= 0.99
    return Claim(
        "free-energy", SECTION, "repeated proximal steps make the free energy decrease",
        "share of steps at which the free energy did not rise",
        *held(
            fine, "it rises by rounding and truncated sweeps once the flow has arrived", "partly"
        ),
        {"share": share},
    )  # fmt: skip


def _value_error(flows: Flows) -> Claim:
    first = mean_interval(flows.value_error[:, START, :, 0].mean(-1))
    last = mean_interval(flows.value_error[:, START, :, -1].mean(-1))
    fine = last.high < 1e-2 * first.low
    return Claim(
        "value-error", SECTION, "the mean square value error at the start converges",
        "squared error of the mean before and after all steps",
        *held(fine, "above 1 % of the start"),
        {"before": first, "after": last},
    )  # fmt: skip


def _features(flows: Flows) -> Claim:
    fallen = {
        ACTION_NAMES[a]: mean_interval((flows.z[:, START, a] < FALLEN).mean(-1)) for a in range(4)
    }
    means = flows.z[:, START].mean((0, -1))
    best = ACTION_NAMES[int(means.argmax())]
    right, others = fallen["right"], (fallen["left"], fallen["down"])
    fine = right.mean > 0.95 and best == "up" and all(o.low > fallen["up"].high for o in others)
    return Claim(
        "features", SECTION,
        "near certainty of falling when moving right, an added chance left or down, up best",
        f"share of particles below {FALLEN:g} at the start; largest mean: {best}",
        *held(fine, "not every feature stands out from its interval", "partly"),
        fallen,
    )  # fmt: skip


def _bimodal(flows: Flows, rollouts: np.ndarray) -> Claim:
    gap = mean_interval(_largest_gap(flows.z[:, START, 3]))
    truth = float(_largest_gap(rollouts[START, 3]))
    fine = gap.low > 10
    return Claim(
        "bimodal", SECTION, "two inflections of the outcome-risk diagram show the bimodality",
        f"widest gap between neighbouring particles, moving left; in the rollouts {truth:.1f}",
        *held(fine, "no gap of 10 or more"),
        {"gap": gap},
    )  # fmt: skip


def _largest_gap(z: np.ndarray) -> np.ndarray:
    """The widest gap inside the bulk: the outermost percent on each side does not count."""
    edge = max(1, z.shape[-1] // 100)
    return np.diff(z[..., edge:-edge], axis=-1).max(-1)


def _smoothing(flows: Mapping[str, Flows]) -> Claim:
    errors: dict[str, Interval] = {
        f"W1 {name}": mean_interval(distance(each.z, each.target_z).mean((1, 2)))
        for name, each in flows.items()
    }
    entropic = [n for n in ("sinkhorn", "sinkhorn-scaled") if n in flows]
    blurred = [n for n in entropic if errors[f"W1 {n}"].low > errors["W1 exact"].high + 0.01]
    moments = ", ".join(
        f"{name} {100 * (each.z.var(-1).sum() / each.target_z.var(-1).sum() - 1):+.3f} %"
        for name, each in flows.items()
    )
    return Claim(
        "smoothed", SECTION, "the estimates are of the smoothed target distribution",
        f"distance to the fitted rollouts by transport; their variance is off by {moments}",
        graded([name in blurred for name in entropic]),
        "" if blurred == entropic else
        "these returns are a few atoms, wider apart than the square root of the temperature, so "
        f"the entropic step has little to blur; smoothed are {', '.join(blurred) or 'none'} (in "
        "units of the cliff's penalty the same atoms lie close)",
        errors,
    )  # fmt: skip


# --- the figures -------------------------------------------------------------------------


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
    for ax, (kind, text, scale) in zip(
        axes[0],
        (
            ("wasserstein_1", f"W₁ to {results.config.truth_rollouts:,} rollouts (return)", 1.0),
            ("second_moment_relative", "second moment, relative error (%)", 100.0),
            ("wasserstein_1_to_fitted_rollouts", "W₁ to the fitted rollouts (return)", 1.0),
        ),
        strict=True,
    ):
        groups = {
            name: [mean_interval(scale * own[kind][:, p, a]) for p, a in where]
            for name, own in errors.items()
        }
        intervals(ax, groups, ticks, looks=styles(groups))
        ax.tick_params(axis="x", labelsize=8)
        label(ax, y=text)
    axes[0, 1].axhline(0, color="#777777", lw=0.8)
    legend(axes[0, 0])
    return figure


EXPERIMENT = Experiment(
    "evaluation", EvaluationConfig, measure, EvaluationResults.read, summary, verdicts, figures
)
run = EXPERIMENT.run
