"""The tables of the suite as pictures: right or wrong by colour and by symbol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.plots import label, new_figure
from surefoot.suite import TABLES, heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Answer = tuple[str, str, bool | None]
NUMBERS = "tie, trap: share of right decisions\nprice: deviations of return given up"
GOOD, BAD, NONE = "#cfe8cf", "#f3c9c0", "#eeeeee"


def draw(results: Any) -> dict[str, Figure]:
    return {f"table-{way}": _table(results, *TABLES[way]) for way in TABLES if results.of(way)}


def _table(results: Any, title: str, ways: tuple[str, ...]) -> Figure:
    rows = [row for way in ways for row in results.of(way)]
    tasks = list(dict.fromkeys(row.title for row in rows if row.scale == 1))
    scaled = [row for row in rows if row.scale != 1]
    players = list(dict.fromkeys(row.player for row in rows))
    cells = {(row.player, row.title): row for row in rows}
    if scaled:  # of the other scales: one column that says how many tasks are answered
        tasks.append("other scales")
    shown = {(p, task): _cell(cells, scaled, p, task) for p in players for task in tasks}
    made = draw_answers(players, tasks, shown, f"{title}\n{NUMBERS}")
    names = {row.title: heading(row.task, row.question) for row in rows if row.scale == 1}
    made.axes[0].set_xticklabels([names.get(task, task) for task in tasks])
    return made


def draw_answers(
    players: Sequence[str],
    tasks: Sequence[str],
    cells: Mapping[tuple[str, str], Answer],
    title: str,
) -> Figure:
    """One row for each player, one column for each task: a sign, a number, and whether it is
    right (None: there is no right one)."""
    figure, axes = new_figure(size=(3.2 + 0.62 * len(tasks), 1.9 + 0.34 * len(players)))
    colors = np.zeros((len(players), len(tasks)))
    for y, player in enumerate(players):
        for x, task in enumerate(tasks):
            sign, number, good = cells[player, task]
            colors[y, x] = {None: 0, True: 1, False: 2}[good]
            axes.text(x, y - 0.14, sign, ha="center", va="center", fontsize=9, weight="bold")
            axes.text(x, y + 0.24, number, ha="center", va="center", fontsize=5.5)
    from matplotlib.colors import ListedColormap

    axes.imshow(colors, cmap=ListedColormap([NONE, GOOD, BAD]), vmin=0, vmax=2, aspect="auto")
    axes.set_xticks(range(len(tasks)), tasks, rotation=50, ha="right", fontsize=7)
    axes.set_yticks(range(len(players)), players, fontsize=7)
    axes.set_xticks(np.arange(len(tasks) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(players) + 1) - 0.5, minor=True)
    axes.grid(False)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    label(axes, title=title)
    return figure


def _cell(cells: dict[Any, Any], scaled: list[Any], player: str, task: str) -> Answer:
    if task == "other scales":
        mine = [row for row in scaled if row.player == player]
        done = sum(bool(row.solved) for row in mine)
        return ("", "", None) if not mine else answer(done == len(mine), f"{done}/{len(mine)}")
    row = cells.get((player, task))
    if row is None or row.solved is None:
        return "-", "" if row is None or row.given_up is None else "no right one", None
    shown = row.given_up.mean if row.question == "price" else row.right.mean
    return answer(row.solved, f"{abs(shown) if abs(shown) < 0.005 else shown:.2f}")


def answer(good: bool, number: str) -> Answer:
    return "✓" if good else "✗", number, good
