"""The counterexample to step-by-step CVaR, as a picture with its numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from surefoot.envs.exact import ReturnLaw
from surefoot.paper.improvement import Counterexample, Statistic
from surefoot.plots import curve, label, legend, new_figure
from surefoot.plots.styles import BLACK, BLUE, GREY, VERMILION, Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = tuple[float, float]

LOOKS = {"old": Style(BLUE, "o", "-"), "new": Style(VERMILION, "s", "--")}
ACTIONS = ("sure", "coin")
START, STATE, COIN = (0.0, 0.5), (1.0, -0.3), (2.05, -0.92)


def draw_counterexample(example: Counterexample, score: Statistic, level: float) -> Figure:
    """The process, and `F^-2` of both policies in state 1 and from the start. At the level, `F^-2`
    divided by it is the CVaR."""
    figure, axes = new_figure(
        1, 3, size=(12.6, 4.5), width_ratios=(1.35, 1, 1),
        title=f"A better CVaR in state 1 makes a worse one at the start (worst {level:.0%})",
    )  # fmt: skip
    _draw_process(axes[0, 0], example)
    old, new = example.step.old.states, example.step.new.states
    for ax, state, where in ((axes[0, 1], 1, "In state 1"), (axes[0, 2], 0, "From the start")):
        laws = (("old", example.old_action, old[state]), ("new", example.new_action, new[state]))
        for when, action, law in laws:
            text = f"{when} ({ACTIONS[action]}): CVaR {_plain(score(law))}, mean {_plain(law.mean)}"
            curve(ax, *_cumulative(law), when, LOOKS[when], markevery=1, label=text)
        ax.axvline(level, color=GREY, ymin=0.24, linewidth=1.0, linestyle=(0, (1, 2)))
        better = score(new[state]) > score(old[state])
        label(ax, f"{where} the new CVaR is {'better' if better else 'worse'}",
              r"quantile level $\tau$", r"$F^{-2}(\tau)$")  # fmt: skip
        legend(ax, loc="lower left")
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.3 * (high - low), high)  # room for the legend
    return figure


def _cumulative(law: ReturnLaw) -> tuple[list[float], list[float]]:
    """`F^-2` at its bends."""
    levels, sums = [Fraction(0)], [Fraction(0)]
    for z, p in law.atoms.items():
        levels.append(levels[-1] + p)
        sums.append(sums[-1] + p * z)
    return [float(x) for x in levels], [float(x) for x in sums]


def _plain(x: float | Fraction) -> str:
    return f"{float(x):g}".replace("-", "\N{MINUS SIGN}")


def _draw_process(ax: Any, example: Counterexample) -> None:
    """The start to the left, state 1 in the middle, where episodes end to the right."""
    fork = example.fork
    ax.set(xlim=(-0.35, 3.7), ylim=(-1.5, 1.5), title="The process and both policies")
    ax.axis("off")
    _arrow(ax, START, STATE, BLACK, "-", _plain(fork.go_on))
    _end(ax, START, 1.2, fork.exit, BLACK, "-", _plain(1 - fork.go_on))
    sure, coin = (_look(example, action) for action in (0, 1))
    _end(ax, STATE, 0.3, fork.sure, *sure)
    _arrow(ax, STATE, COIN, *coin)
    _end(ax, COIN, -0.55, fork.good, *coin[:2], _plain(fork.luck))
    _end(ax, COIN, -1.3, fork.bad, *coin[:2], _plain(1 - fork.luck))
    box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": BLACK}
    for name, at in (("start", START), ("state 1", STATE)):
        ax.text(*at, name, ha="center", va="center", zorder=5, bbox=box)


def _look(example: Counterexample, action: int) -> tuple[str, Any, str]:
    """Colour and line of an action of state 1, and its name with that of its policy."""
    when = "old" if action == example.old_action else "new"
    return LOOKS[when].color, LOOKS[when].linestyle, f"{ACTIONS[action]} ({when})"


def _end(ax: Any, begin: Point, y: float, reward: float, color: str, line: Any, text: str) -> None:
    _arrow(ax, begin, (2.85, y), color, line, text)
    ax.text(2.9, y, f"return {_plain(reward)}", va="center", color=color)


def _arrow(ax: Any, begin: Point, end: Point, color: str, line: Any, text: str) -> None:
    arrow = {"arrowstyle": "->", "color": color, "linestyle": line, "linewidth": 1.6}
    ax.annotate("", end, begin, arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0})
    box = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
    ax.text(*middle, text, ha="center", va="center", color=color, zorder=4, bbox=box)
