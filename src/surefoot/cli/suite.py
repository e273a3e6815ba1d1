"""`surefoot suite`: tasks whose right action is known, and who takes it."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from surefoot.cli.options import parse
from surefoot.cli.reproduce import finish, options_of
from surefoot.suite import NO_ANSWER, QUICK_NOTE, TABLES

ABOUT = "Tasks whose right action is known: who takes it, and at what price?"
NUMBERS = {
    "tie": "tie: share of right decisions",
    "price": "price: deviations of return given up",
    "trap": "trap: share of right decisions",
    "": "no right action known: deviations of return given up",
}
"""The tables of a way of learning, one for each question, and what their numbers are."""


def main(words: list[str]) -> int:
    from surefoot.runs.directory import RunDir
    from surefoot.suite.experiment import EXPERIMENT

    options: Any = parse(options_of("suite", EXPERIMENT.config), words, "surefoot suite", ABOUT)
    claims = EXPERIMENT.run(options.config, options.out, existing=options.existing)
    console = Console()
    rows = RunDir(options.out).read_summary()["rows"]
    for title, ways in TABLES.values():
        for heading, table in overview(rows, title, ways):
            console.print(f"\n{heading}\n", table)
    code = finish(claims, "what has to come out", options.out)
    if options.config.quick:
        console.print(QUICK_NOTE)
    return code


def overview(
    rows: list[dict[str, Any]], title: str, ways: tuple[str, ...]
) -> list[tuple[str, Table]]:
    """For each question a heading, which a narrow table must not squeeze, and players by tasks,
    narrow enough for 80 columns: a sign, and the share of right decisions or what is given up."""
    mine = [row for row in rows if row["way"] in ways and row["scale"] == 1]
    tables = []
    for question, numbers in NUMBERS.items():
        asked = [row for row in mine if _question(row) == question]
        tasks = list(dict.fromkeys(row["task"] for row in asked))
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
        table.add_column("who plays", no_wrap=True)
        for task in tasks:
            table.add_column(task.replace("-", "-\n"), justify="right")
        for player in dict.fromkeys(row["player"] for row in asked):
            own = {row["task"]: row for row in asked if row["player"] == player}
            table.add_row(player, *(_cell(own.get(task)) for task in tasks))
        tables += [(f"{title}\n{numbers}", table)] if tasks else []
    return tables


def _question(row: dict[str, Any]) -> str:
    return "" if row["task"] in NO_ANSWER else str(row["question"])


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or row["given_up"] is None:
        return "-"
    if row["solved"] is None:  # no action is right
        return f"{row['given_up']['mean']:.2f}"
    number = row["given_up" if row["question"] == "price" else "right"]["mean"]
    return f"{'✓' if row['solved'] else '✗'} {round(number, 2) + 0.0:.2f}"  # no -0.00
