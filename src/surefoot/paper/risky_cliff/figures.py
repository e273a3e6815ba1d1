"""The figures of section 5.4: curves per episode, falls, ties, who decided, the path taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.core.stats import mean_interval
from surefoot.envs import CliffGrid, noisy_states
from surefoot.paper.risky_cliff.cells import grid_of, mdp_of
from surefoot.paper.risky_cliff.config import Config
from surefoot.paper.risky_cliff.results import Results, learned_path
from surefoot.plots import band, legend, new_figure, save_figure, style
from surefoot.runs.directory import RunDir

WINDOW = 10  # episodes a curve is averaged over, so that it can be read
WHO = ("dominance", "score", "tie_break", "fallback", "exploration")


def draw_figures(results: Results, run: RunDir) -> None:
    config = results.config
    for name, column, label, adding in (
        ("steps", "steps", "steps per episode", False),
        ("return", "return", "return per episode", False),
        ("falls", "falls", "cliff falls so far", True),
        ("top-row", "over_top", "share of episodes over the top row", False),
        ("ties", "ties", "steps with several best actions, per episode", False),
    ):
        _curves(results, run, name, column, label, adding)
    _who_decided(results, run)
    _paths(results, run)
    if config.tolerances:
        _sweep(results, run)


def label_of(policy: str) -> str:
    """How a policy is called in legends."""
    return {"greedy": "ε-greedy", "ssd": "SSD"}.get(policy, policy.replace("cvar:", "CVaR "))


def _curves(
    results: Results, run: RunDir, name: str, column: str, label: str, adding: bool
) -> None:
    config = results.config
    figure, axes = new_figure(
        1, len(config.losses), size=(4.6 * len(config.losses), 4.0), sharey=True
    )
    for ax, loss in zip(np.ravel(axes), config.losses, strict=True):
        for policy in config.policies:
            values = results[results.cell(loss, policy)][column]
            values = np.cumsum(values, axis=1) if adding else _smooth(values)
            shown = mean_interval(values)
            x = np.arange(values.shape[1]) + (1 if adding else (WINDOW + 1) / 2)
            band(ax, x, shown.mean, shown.low, shown.high, label_of(policy), look=style(policy))
        ax.set_title(loss)
        ax.set_xlabel("episode")
        if column in ("steps", "return"):
            _frame(ax, results, loss, column)
    np.ravel(axes)[0].set_ylabel(label)
    legend(np.ravel(axes)[-1])
    trials = f"mean of {config.trials} trials with 95 % interval"
    figure.suptitle(trials if adding else f"{trials}, averaged over {WINDOW} episodes", fontsize=10)
    save_figure(figure, run, name)


def _smooth(values: np.ndarray) -> np.ndarray:
    """Moving average over episodes `[trials, episodes - WINDOW + 1]`."""
    total = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    width = min(WINDOW, values.shape[1])
    return (total[:, width:] - total[:, :-width]) / width


def _frame(ax: Any, results: Results, loss: str, column: str) -> None:
    """Leave the first wild episodes outside, so that the rest can be told apart."""
    late = np.concatenate(
        [_smooth(results[results.cell(loss, p)][column])[:, 20:] for p in results.config.policies]
    )
    if late.size and column == "steps":
        ax.set_ylim(10, max(30.0, float(np.percentile(late, 99))))
    elif late.size:
        ax.set_ylim(min(-60.0, float(np.percentile(late, 1))), 0)


def _who_decided(results: Results, run: RunDir) -> None:
    config = results.config
    figure, axes = new_figure(
        1, len(config.losses), size=(4.6 * len(config.losses), 3.8), sharey=True
    )
    for ax, loss in zip(np.ravel(axes), config.losses, strict=True):
        left = np.zeros(len(config.policies))
        shares = [results.decided(results.cell(loss, p)) for p in config.policies]
        for i, who in enumerate(WHO):
            part = np.asarray([100 * s[who] for s in shares])
            ax.barh(
                [label_of(p) for p in config.policies], part, left=left,
                color=("#0072B2", "#56B4E9", "#E69F00", "#CC79A7", "#BBBBBB")[i],
                hatch=("", "", "//", "xx", "..")[i], edgecolor="white", label=who.replace("_", "-"),
            )  # fmt: skip
            left += part
        ax.set_title(loss)
        ax.set_xlabel("share of steps (%)")
        ax.set_xlim(0, 100)
        ax.invert_yaxis()
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(WHO), frameon=False)
    save_figure(figure, run, "who-decided")


def _paths(results: Results, run: RunDir) -> None:
    config = results.config
    loss = config.losses[0]
    figure, axes = new_figure(len(config.policies), 1, size=(7.4, 2.35 * len(config.policies)))
    grid, noisy = grid_of(config), noisy_states(mdp_of(config))
    for ax, policy in zip(np.ravel(axes), config.policies, strict=True):
        name = results.cell(loss, policy).name
        _grid(ax, grid, noisy, run.read_table(f"path.{name}")["visited"].to_numpy())
        for whose, look in (
            ("greedy", {"color": "#777777", "ls": "--", "lw": 1.4, "label": "greedy target"}),
            ("own", {"color": "#D55E00", "lw": 2.2, "marker": ".", "ms": 7, "label": "behaviour"}),
        ):
            cells = np.asarray([grid.cell(int(s)) for s in learned_path(run, name, whose)])
            ax.plot(cells[:, 1], cells[:, 0], **look)
        ax.set_title(f"{label_of(policy)}, {loss}", fontsize=9)
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(
        "lines: paths of the first trial without exploration; numbers: % of trials whose "
        "behaviour passes", fontsize=9,
    )  # fmt: skip
    save_figure(figure, run, "paths")


def _grid(ax: Any, grid: CliffGrid, noisy: np.ndarray, visited: np.ndarray) -> None:
    """The grid as a picture: shade by share of trials, cliff dark, noisy cells dotted."""
    shade = visited.reshape(grid.rows, grid.columns)
    ax.imshow(shade, cmap="Blues", vmin=0, vmax=1.6, aspect="equal")
    for state in range(grid.num_states):
        row, column = grid.cell(state)
        if grid.is_cliff(state):
            ax.fill_between([column - 0.5, column + 0.5], row - 0.5, row + 0.5, color="#444444")
        elif noisy[state]:
            ax.fill_between(
                [column - 0.5, column + 0.5], row - 0.5, row + 0.5,
                facecolor="none", hatch="...", edgecolor="#999999", lw=0,
            )  # fmt: skip
        if visited[state] > 0 and not grid.is_cliff(state):
            ax.text(column, row - 0.28, f"{100 * visited[state]:.0f}", ha="center", fontsize=7)
    for text, state in (("S", grid.start), ("G", grid.goal)):
        row, column = grid.cell(state)
        ax.text(column, row + 0.3, text, ha="center", va="center", weight="bold")
    ax.set_xticks(range(grid.columns))
    ax.set_yticks(range(grid.rows))
    ax.set_ylabel("row")
    ax.grid(False)


def _sweep(results: Results, run: RunDir) -> None:
    config: Config = results.config
    figure, axes = new_figure(1, 3, size=(13.5, 4.0))
    for policy in ("ssd", "greedy"):
        cells = [c for c in config.cells() if c.sweep and c.policy == policy]
        tolerance = [c.tolerance for c in cells]
        look = style(policy)
        for ax, name in ((axes[0, 0], "over_top"), (axes[0, 1], "falls")):
            data = [results.interval(c, name) for c in cells]
            ax.errorbar(
                tolerance, [d.mean for d in data], yerr=[d.half_width for d in data],
                color=look.color, marker=look.marker, ls=look.linestyle, capsize=3,
                label=label_of(policy),
            )  # fmt: skip
        if policy == "ssd":
            ties = [results.summary_of(c)["share_of_ties_decided_by_dominance"] for c in cells]
            axes[0, 2].plot(tolerance, ties, color=look.color, marker="o")
    for ax, label in zip(
        axes[0],
        (
            "share of episodes over the top row",
            "cliff falls per trial",
            "share of ties that dominance decides (SSD)",
        ),
        strict=True,
    ):
        ax.set_xscale("log")
        ax.set_xlabel("tie tolerance (units of return)")
        ax.set_ylabel(label)
        ax.axvline(results.true_fork_std, color="#777777", ls=":", lw=1.2)
    axes[0, 2].set_ylim(-0.03, 1.03)
    axes[0, 0].plot([], [], color="#777777", ls=":", label="deviation of the risky path")
    legend(axes[0, 0], loc="lower left")
    trials = f"mean of {config.sweep_trials} trials with 95 % interval, wgf-mixture"
    figure.suptitle(trials, fontsize=10)
    save_figure(figure, run, "tolerance")
