"""What section 5.2 says of its figure, against what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.core.particles import wasserstein
from surefoot.core.stats import Interval, mean_interval
from surefoot.envs import ACTION_NAMES, ARROWS
from surefoot.paper.claims import Claim
from surefoot.paper.evaluation.config import PLACES
from surefoot.paper.evaluation.flows import EvaluationResults, Flows

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
        "reproduced" if fine else "partly",
        "" if fine else "it rises by rounding and truncated sweeps once the flow has arrived",
        {"share": share},
    )  # fmt: skip


def _value_error(flows: Flows) -> Claim:
    first = mean_interval(flows.value_error[:, START, :, 0].mean(-1))
    last = mean_interval(flows.value_error[:, START, :, -1].mean(-1))
    fine = last.high < 1e-2 * first.low
    return Claim(
        "value-error", SECTION, "the mean square value error at the start converges",
        "squared error of the mean before and after all steps",
        "reproduced" if fine else "not reproduced", "" if fine else "above 1 % of the start",
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
        "reproduced" if fine else "partly",
        "" if fine else "not every feature stands out from its interval",
        fallen,
    )  # fmt: skip


def _bimodal(flows: Flows, rollouts: np.ndarray) -> Claim:
    gap = mean_interval(_largest_gap(flows.z[:, START, 3]))
    truth = float(_largest_gap(rollouts[START, 3]))
    fine = gap.low > 10
    return Claim(
        "bimodal", SECTION, "two inflections of the outcome-risk diagram show the bimodality",
        f"widest gap between neighbouring particles, moving left; in the rollouts {truth:.1f}",
        "reproduced" if fine else "not reproduced", "" if fine else "no gap of 10 or more",
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
        "reproduced" if blurred == entropic else "partly" if blurred else "not reproduced",
        "" if blurred == entropic else
        "these returns are a few atoms, wider apart than the square root of the temperature, so "
        f"the entropic step has little to blur; smoothed are {', '.join(blurred) or 'none'} (in "
        "units of the cliff's penalty the same atoms lie close)",
        errors,
    )  # fmt: skip
