"""`surefoot bench [PART]`: how fast surefoot is on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from surefoot.cli.options import parse
from surefoot.errors import InputError

if TYPE_CHECKING:
    from surefoot.benching import Speed

TEXT = (
    "How fast surefoot is here: policies, Algorithm 1, networks (sb3-contrib beside if installed)."
)


@dataclass(frozen=True)
class Options:
    part: Annotated[
        Literal["all", "policies", "tabular", "neural"],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="PART"),
    ] = "all"
    """all, policies (decisions), tabular (steps of Algorithm 1) or neural (steps on CartPole)."""
    rounds: int = 5
    """Turns that each contestant gets; the median counts."""
    out: Path | None = None
    """JSON file for the numbers, with processor and versions."""


def main(words: list[str]) -> int:
    options = parse(Options, words, "surefoot bench", TEXT)
    if options.rounds < 1:
        raise InputError(f"rounds = {options.rounds}: there must be at least one")
    if options.out is not None and options.out.is_dir():
        raise InputError(f"{options.out} is a directory: --out names a JSON file")
    from surefoot.benching import PARTS, about_here, measure
    from surefoot.runs.files import atomic_write, json_bytes
    from surefoot.runs.progress import progress

    chosen = list(PARTS) if options.part == "all" else [options.part]
    rows: list[Speed] = []
    with progress(len(chosen), "bench", "parts") as bar:
        for part in chosen:

            def told(text: str, part: str = part) -> None:
                bar.note(f"{part}, {text}")

            rows += measure(part, options.rounds, told)
            bar.advance()
    here = about_here()
    _print(rows, here)
    if options.out is not None:
        found = [{**row._asdict(), "per_second": row.per_second} for row in rows]
        atomic_write(options.out, json_bytes({**here, "rounds": options.rounds, "rows": found}))
        print(f"numbers are in {options.out}")
    return 0


def _print(rows: list[Speed], here: dict[str, object]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="CPU time on one thread, medians of interleaved rounds")
    for column in ("case", "µs each", "per second"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for row in rows:
        rate = f"{row.per_second:,.0f} {row.unit}"
        each = 1e6 * row.seconds
        table.add_row(row.case, f"{each:,.0f}" if each >= 100 else f"{each:.3g}", rate)
    console = Console()
    console.print(table)
    speeds = {row.case: row.seconds for row in rows}
    peer = speeds.get("CartPole-v1, sb3-contrib QR-DQN")
    if peer is not None:
        for name in ("CartPole-v1, qr", "CartPole-v1, qr, compiled"):
            ratio = peer / speeds[name]
            console.print(f"{name}: a step takes 1/{ratio:.1f} of sb3-contrib's", highlight=False)
    console.print(f"{here['processor']}, {here['cores']} cores", highlight=False)
