"""The figures of section 5.4: curves per episode, falls, ties, who decided, the path taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.core.stats import mean_interval
from surefoot.envs import CliffGrid, noisy_states
from surefoot.paper.risky_cliff.results import CliffResults
from surefoot.plots import band, intervals, label, legend, legend_below, new_figure, shares, style
from surefoot.plots.styles import GREY, styles
from surefoot.plots.training import moving_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW = 10  # episodes a curve is averaged over, so that it can be read
CURVES = {  # the figure's name: its column and the label of its axis
    "top-row": ("over_top", "share of episodes over the top row"),
    "falls": ("falls", "cliff falls so far"),
    "return": ("return", "return per episode"),
    "steps": ("steps", "steps per episode"),
    "ties": ("ties", "steps with several best actions, per episode"),
}
FINALS = {
    "over_top": "share of the last episodes over the top row",
    "falls": "cliff falls per trial",
    "return": "return per episode",
    "steps": "steps per episode",
}


def figures(results: CliffResults) -> dict[str, Figure]:
    drawn = {name: _curves(results, *CURVES[name]) for name in CURVES}
    drawn |= {"final": _final(results), "who-decided": _who_decided(results)}
    drawn |= {"paths": _paths(results), "headline": _headline(results)}
    if results.config.tolerances:
        drawn["tolerance"] = _sweep(results)
    return drawn


def label_of(policy: str) -> str:
    """How a policy is called in legends."""
    return {"greedy": "ε-greedy", "ssd": "SSD"}.get(policy, policy.replace("cvar:", "CVaR "))


def _panels(results: CliffResults, height: float) -> tuple[Figure, Any]:
    """A panel for each loss."""
    losses = results.config.losses
    figure, axes = new_figure(1, len(losses), size=(4.6 * len(losses), height), sharey=True)
    return figure, np.ravel(axes)


def _curves(results: CliffResults, column: str, text: str) -> Figure:
    config, adding = results.config, column == "falls"
    figure, axes = _panels(results, 4.0)
    for ax, loss in zip(axes, config.losses, strict=True):
        late = []
        for policy in config.policies:
            values = results[results.cell(loss, policy)][column]
            values = np.cumsum(values, axis=1) if adding else moving_mean(values, WINDOW)
            shown = mean_interval(values)
            x = np.arange(values.shape[1]) + (1 if adding else (WINDOW + 1) / 2)
            band(ax, x, shown.mean, shown.low, shown.high, label_of(policy), look=style(policy))
            late.append(values[:, 20:])
        # The first wild episodes stay outside, so that the rest can be seen.
        if column == "steps" and late[0].size:
            ax.set_ylim(10, max(30.0, float(np.percentile(late, 99))))
        if column == "return" and late[0].size:
            ax.set_ylim(min(-60.0, float(np.percentile(late, 1))), 0)
        label(ax, loss, "episode")
    label(axes[0], y=text)
    legend(axes[-1])
    trials = f"mean of {config.trials} trials with 95 % interval"
    figure.suptitle(trials if adding else f"{trials}, averaged over {WINDOW} episodes", fontsize=10)
    return figure


def _final(results: CliffResults) -> Figure:
    """Every loss and policy that was run, the checks included."""
    cells = [cell for cell in results.config.cells() if not cell.sweep]
    losses = list(dict.fromkeys(cell.loss for cell in cells))
    figure, axes = new_figure(1, 4, size=(16, 1.4 + 0.6 * len(losses)), sharey=True)
    for ax, (name, text) in zip(axes[0], FINALS.items(), strict=True):
        _finals(ax, results, name, losses)
        label(ax, x=text)
    legend_below(figure, axes[0, 0])
    return figure


def _finals(ax: Any, results: CliffResults, name: str, losses: list[str]) -> None:
    run = [cell for cell in results.config.cells() if not cell.sweep]
    policies = list(dict.fromkeys(cell.policy for cell in run))
    groups = {
        policy: [
            results.interval(cell, name) if (cell := results.cell(loss, policy)) in run else None
            for loss in losses
        ]
        for policy in policies
    }
    intervals(ax, groups, losses, looks=styles(policies), across=True,
              labels={p: label_of(p) for p in policies})  # fmt: skip


def _who_decided(results: CliffResults) -> Figure:
    figure, axes = _panels(results, 3.8)
    for ax, loss in zip(axes, results.config.losses, strict=True):
        policies = results.config.policies
        shares(ax, {label_of(p): results.decided(results.cell(loss, p)) for p in policies})
        label(ax, loss)
    legend_below(figure, axes[0])
    return figure


# --- paths -------------------------------------------------------------------------------


def _paths(results: CliffResults) -> Figure:
    config, grid = results.config, results.config.grid
    figure, axes = new_figure(len(config.policies), 1, size=(7.4, 2.35 * len(config.policies)))
    for ax, policy in zip(np.ravel(axes), config.policies, strict=True):
        cell = results.cell(config.losses[0], policy)
        _map(ax, grid, noisy_states(config.mdp), results.visited(cell))
        for whose, look in (
            ("greedy", {"color": GREY, "ls": "--", "lw": 1.4, "label": "greedy target"}),
            ("own", {"color": "black", "lw": 2.2, "marker": ".", "ms": 7, "label": "behaviour"}),
        ):
            cells = np.asarray([grid.cell(int(s)) for s in results.path(cell, whose)])
            ax.plot(cells[:, 1], cells[:, 0], **look)
        ax.set_title(f"{label_of(policy)}, {cell.loss}: % of trials through each cell", fontsize=9)
    legend_below(figure, np.ravel(axes)[0])
    return figure


def _map(ax: Any, grid: CliffGrid, noisy: np.ndarray, visited: np.ndarray) -> None:
    """The grid as a picture: shade by share of trials, cliff dark, noisy cells dotted."""
    from matplotlib.patches import Rectangle

    ax.set_xlim(-0.5, grid.columns - 0.5)
    ax.set_ylim(grid.rows - 0.5, -0.5)
    ax.set_aspect("equal")
    for state in range(grid.num_states):
        row, column = grid.cell(state)
        shade = (0.34, 0.71, 0.91, 0.75 * float(visited[state]))
        face = "#444444" if grid.is_cliff(state) else shade
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=face,
                               edgecolor="#BBBBBB", linewidth=0.6))  # fmt: skip
        if visited[state] > 0 and not grid.is_cliff(state):
            ax.text(  # in a corner, where no path goes
                column - 0.27,
                row - 0.32,
                f"{100 * visited[state]:.0f}",
                ha="center",
                va="center",
                fontsize=7,
            )
    dots = np.array([(dx, dy) for dx in (-0.3, 0, 0.3) for dy in (-0.05, 0.15, 0.35)])
    risky = [grid.cell(int(s))[::-1] for s in np.flatnonzero(noisy) if not grid.is_cliff(int(s))]
    at = (np.array(risky).reshape(-1, 1, 2) + dots).reshape(-1, 2)
    ax.plot(at[:, 0], at[:, 1], ".", color="#999999", markersize=2)
    for text, state in (("S", grid.start), ("G", grid.goal)):
        row, column = grid.cell(state)
        ax.text(column, row + 0.3, text, ha="center", va="center", weight="bold")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)


def _headline(results: CliffResults) -> Figure:
    """The effect in one picture, with the loss that has it: which path, how often, how dear."""
    config, loss = results.config, results.config.losses[0]
    figure, axes = new_figure(2, 2, size=(9.2, 4.9), height_ratios=[1, 1.15])
    others: Iterable[str] = (p for p in config.policies if p != "ssd")
    shown = ("ssd" if "ssd" in config.policies else config.policies[0], *others)
    for ax, policy in zip(axes[0], (shown[0], shown[-1]), strict=True):
        _map(ax, config.grid, noisy_states(config.mdp), results.visited(results.cell(loss, policy)))
        ax.set_title(f"{label_of(policy)}: % of trials through each cell")
    names = {
        "over_top": f"share of the last {config.last} episodes\nover the sure top row",
        "falls": f"falls off the cliff\nin {config.episodes} episodes",
    }
    for ax, (name, text) in zip(axes[1], names.items(), strict=True):
        for row, policy in enumerate(shown):
            value, look = results.interval(results.cell(loss, policy), name), style(policy)
            error = [[value.mean - value.low], [value.high - value.mean]]
            ax.errorbar(value.mean, row, xerr=error, color=look.color, marker=look.marker,
                        capsize=4, markersize=7)  # fmt: skip
        ax.set_yticks(range(len(shown)), [label_of(p) for p in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.set_xlim(left=0)
        label(ax, x=text)
    return figure


def _sweep(results: CliffResults) -> Figure:
    config = results.config
    figure, axes = new_figure(1, 3, size=(13.5, 4.0))
    for policy in ("ssd", "greedy"):
        cells = [c for c in config.cells() if c.sweep and c.policy == policy]
        tolerance, look = [c.tolerance for c in cells], style(policy)
        for ax, name in ((axes[0, 0], "over_top"), (axes[0, 1], "falls")):
            data = [results.interval(c, name) for c in cells]
            ax.errorbar(
                tolerance, [d.mean for d in data], yerr=[d.half_width for d in data],
                color=look.color, marker=look.marker, ls=look.linestyle, capsize=3,
                label=label_of(policy),
            )  # fmt: skip
        if policy == "ssd":
            ties = [results.ties_by_dominance(c) for c in cells]
            axes[0, 2].plot(tolerance, ties, color=look.color, marker="o")
    for ax, text in zip(
        axes[0],
        (
            "share of episodes over the top row",
            "cliff falls per trial",
            "share of ties that dominance decides (SSD)",
        ),
        strict=True,
    ):
        ax.set_xscale("log")
        label(ax, x="tie tolerance (units of return)", y=text)
        ax.axvline(config.true_fork_std, color=GREY, ls=":", lw=1.2)
    axes[0, 2].set_ylim(-0.03, 1.03)
    axes[0, 0].plot([], [], color=GREY, ls=":", label="deviation of the risky path")
    legend(axes[0, 0], loc="lower left")
    trials = f"mean of {config.sweep_trials} trials with 95 % interval, wgf-mixture"
    figure.suptitle(trials, fontsize=10)
    return figure
