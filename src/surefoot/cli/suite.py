"""`surefoot suite`: tasks whose right action is known, and who takes it."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from surefoot.cli.options import parse
from surefoot.cli.reproduce import options_of
from surefoot.paper.claims import tally, to_table
from surefoot.suite import TABLES

ABOUT = "Tasks whose right action is known: who takes it, and at what price?"


def main(words: list[str]) -> int:
    from surefoot.runs.directory import RunDir
    from surefoot.suite.experiment import EXPERIMENT

    options: Any = parse(options_of("suite", EXPERIMENT.config), words, "surefoot suite", ABOUT)
    claims = EXPERIMENT.run(options.config, options.out, existing=options.existing)
    console = Console()
    rows = RunDir(options.out).read_summary()["rows"]
    for title, ways in TABLES.values():
        table = overview(rows, title, ways)
        if table.row_count:
            console.print(table)
    console.print(to_table(claims, title="what has to come out"))
    console.print(f"{tally(claims)}\nresults, figures and summary.json are in {options.out}")
    return 0


def overview(rows: list[dict[str, Any]], title: str, ways: tuple[str, ...]) -> Table:
    """Players by tasks: a sign, and the share of right decisions or what is given up."""
    mine = [row for row in rows if row["way"] in ways and row["scale"] == 1]
    table = Table(title=title, caption="tie and trap: share right; price: deviations given up")
    table.add_column("task")
    players = list(dict.fromkeys(row["player"] for row in mine))
    for player in players:
        table.add_column(player, justify="right")
    for task in dict.fromkeys((row["task"], row["question"]) for row in mine):
        own = {row["player"]: row for row in mine if (row["task"], row["question"]) == task}
        table.add_row(", ".join(task), *(_cell(own.get(player)) for player in players))
    return table


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or row["given_up"] is None:
        return "-"
    if row["solved"] is None:  # no action is right
        return f"{row['given_up']['mean']:.2f}"
    number = row["given_up" if row["question"] == "price" else "right"]["mean"]
    return f"{'✓' if row['solved'] else '✗'} {number:.2f}"
