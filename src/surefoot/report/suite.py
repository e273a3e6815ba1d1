"""The tables of a run of the risk suite: players by tasks, right or wrong by sign and colour."""

from __future__ import annotations

from typing import Any

from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.report.page import Badge, DataTable, Note, Part
from surefoot.report.stored import Stored
from surefoot.suite import QUICK_NOTE, TABLES, heading

LEAD = "Tasks whose right action is known: who takes it, and at what price?"
CAPTION = (
    "On ties and traps the share of right decisions, on prices the deviations of return given up; "
    "below it the 95 % interval over seeds."
)


def suite_parts(stored: Stored) -> list[Part]:
    """One table for each way of learning; the first is what the run is about."""
    if not stored.has("summary.json"):
        return []
    try:
        rows = stored.json("summary.json")["rows"]
        tables = [_table(rows, *table) for table in TABLES.values()]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"summary.json is not that of a suite ({error!r})") from None
    quick = [Note(QUICK_NOTE, "warning")] if stored.json("config.json").get("quick") else []
    return [*quick, *(table for table in tables if table.rows)]


def _table(rows: list[dict[str, Any]], title: str, ways: tuple[str, ...]) -> DataTable:
    mine = [row for row in rows if row["way"] in ways and row["scale"] == 1]
    tasks = list(dict.fromkeys(heading(row["task"], row["question"]) for row in mine))
    players = list(dict.fromkeys(row["player"] for row in mine))
    cells = {(row["player"], heading(row["task"], row["question"])): row for row in mine}
    lines = tuple(
        (player, *(_badge(cells.get((player, task))) for task in tasks)) for player in players
    )
    return DataTable(("who plays", *tasks), lines, title[:1].upper() + title[1:], CAPTION)


def _badge(row: dict[str, Any] | None) -> Badge:
    if row is None:
        return Badge("", "none")
    shown = row["given_up" if row["question"] == "price" or row["solved"] is None else "right"]
    if shown is None:
        return Badge("not run", "none", str(row.get("note", "")))
    interval = Interval.from_dict(shown)
    tone = {True: "good", False: "bad"}.get(row["solved"], "none")
    return Badge(f"{interval.mean:.2f}", tone, f"[{interval.low:.2f}, {interval.high:.2f}]")
