"""The sentence under each figure of the experiments. Without JAX: a page of stored figures is
made without it."""

from __future__ import annotations

_SMOOTHED = "Mean of all trials with 95 % interval, averaged over 10 episodes."
CAPTIONS: dict[str, dict[str, str]] = {
    "figures": {
        "dispersion-space": "Figure 1: the space between the cumulative CDF of a return and its "
        "asymptotes. Its area is half the variance.",
        "dominance": "Figure 2: three pairs of returns, and what the library says of them. Above "
        "the distributions, shaded where they speak for one of the two; below what it compares.",
    },
    "regression": {
        "errors": "Absolute error of the first two moments, over all trials. White bar: middle "
        "half; line across: median; marker: mean.",
        "differences": "Above: RMSE with 95 % interval beside the sampling error (dashed), which "
        "no method can beat. Below: paired difference to QR in % of it; grey: the equivalence "
        "margin.",
    },
    "ablation": {
        "ablation": "Above: error against the distribution. Below: what the transport itself "
        "adds, the distance from the moment of the sample that was fitted. ± is half the 95 % "
        "interval. Hatched: some trial was not at equilibrium, so its number says where the flow "
        "was stopped."
    },
    "evaluation": {
        "distributions": "Particles and the rollouts they were fitted to, first trial.",
        "outcome-risk": "Shaded: the dispersion space of the first trial's particles, whose area "
        "is half the variance. Dotted: F⁽²⁾ of the truth.",
        "convergence": "Mean over places and actions with 95 % interval over trials. "
        "sinkhorn-scaled counts in another unit and is left out.",
        "errors": "Mean over trials with 95 % interval, by place and action.",
    },
    "gym": {
        "returns": "All trials thin, their interquartile mean thick. Dotted: solved.",
        "scores": "Mean return over the last fifth of training, one mark per trial. Dotted: "
        "solved.",
        "second-moments": "Learned over true standard deviation: 1 is right, 0 is blind to the "
        "noise.",
    },
    "gym-choices": {
        "choices": "Return of each trial over the last fifth of the run (full) and of its first "
        "half (open). Dotted: solved."
    },
    "never-worse": {
        "returns": "The default agent (ssd) and the same agent that is greedy: all trials thin, "
        "their interquartile mean thick. Dotted: solved.",
    },
    "surest": {
        "promise": "Which action three rules take on the same estimates, with nothing set: tables "
        "on the risky cliff, networks on two roads and on one and ten steps. Left the sure action "
        "is worth the same as the noisy one, right it is worth less; the two paths of the cliff "
        "are always worth the same, so there is nothing to show right. Bars: 95 % intervals over "
        "trials or seeds, exact where each says yes or no (cliff, roads), Student's where each has "
        "a share (steps).",
        "rules": "The same tables, decided by each rule: share of trials that take the sure path "
        "where it parts from the one along the cliff, which is worth the same. 95 % intervals.",
    },
    "suite": dict.fromkeys(
        ("table-same", "table-online", "table-network"),
        "Who answers which question: ✓ right, ✗ wrong. On ties and traps the number is the "
        "share of right decisions (1 is best), on prices the deviations of return given up (0 is "
        "best); means over seeds. "
        "A dash: not played, or no action is right.",
    ),
    "theory": {
        "counterexample": "The smallest process in which taking the better CVaR in a state makes "
        "that of the start worse. Left: probabilities and returns. Right: cumulative quantiles of "
        "the old and the new policy; at the dotted level, divided by it, they are the CVaR.",
    },
    "risky-cliff": {
        "headline": "Two paths are worth the same: along the cliff with random rewards (dotted "
        "cells), or over the top row with certain ones. Above: the share of trials (%) whose "
        "learned behaviour passes each cell. Below: means over trials with 95 % intervals.",
        "final": "What each policy came to with each loss: mean over trials with 95 % interval, "
        "over the last episodes; falls over all.",
        "top-row": f"How often an episode leads over the sure top row. {_SMOOTHED}",
        "falls": "Falls from the cliff, added up. Mean of all trials with 95 % interval.",
        "return": f"Return per episode; the first wild ones are cut off. {_SMOOTHED}",
        "steps": f"Steps per episode; the first wild ones are cut off. {_SMOOTHED}",
        "ties": f"How often several actions had the best mean up to the tolerance. {_SMOOTHED}",
        "who-decided": "Who chose the action, over all steps of all trials, exploration included.",
        "paths": "Lines: paths of the first trial without exploration. Numbers: % of trials whose "
        "behaviour passes. Dotted: entering pays a random reward. S start, G goal.",
        "tolerance": "What the tie tolerance does. Mean with 95 % interval, wgf-mixture. Dotted: "
        "deviation of the return along the cliff. The tolerance must lie below it, and above the "
        "jitter of the estimates.",
    },
}


def caption(kind: str, figure: str) -> str:
    """The sentence under a figure of an experiment; empty where none is known."""
    own = CAPTIONS.get(kind, {})
    # A figure that is drawn for each reading or place is known by the name before it.
    return own.get(figure) or own.get(figure.rpartition("-")[0], "")
