"""What the paper says, what was measured, and whether the one is the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from surefoot.core.stats import Interval
from surefoot.errors import InputError, markdown_text, unknown, visible
from surefoot.runs.directory import RunDir
from surefoot.runs.files import atomic_write, json_bytes, plain, read_json

if TYPE_CHECKING:
    from rich.table import Table

Finding = Literal["reproduced", "partly", "not reproduced", "not testable"]
VERDICTS: tuple[str, ...] = get_args(Finding)
COLOURS = {
    "reproduced": "green",
    "partly": "yellow",
    "not reproduced": "red",
    "not testable": "dim",
}
HEADER = ("Claim", "Statement", "We measured, with 95 % interval", "Verdict", "Why")


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and what became of it."""

    id: str
    """Short and unique over all experiments, such as `risky-cliff/top-row`."""
    section: str
    """Where the paper says it, such as `5.4`."""
    paper: str
    measured: str
    """In words; the numbers stand in `intervals`."""
    verdict: Finding
    reason: str = ""
    """By what rule the verdict fell; only a claim that was reproduced needs none."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """The numbers behind `measured`, by name; an empty name is left out of the tables."""

    def __post_init__(self) -> None:
        for name in ("id", "section", "paper", "measured"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"claim {self.id!r} needs a text for {name}")
        if self.verdict not in VERDICTS:
            raise unknown(f"verdict of claim {self.id!r}:", self.verdict, VERDICTS)
        if self.verdict != "reproduced" and not self.reason.strip():
            raise InputError(f"claim {self.id!r} is {self.verdict}: it needs a reason")

    @property
    def where(self) -> str:
        """Where the paper says it, if it does."""
        return "not of the paper" if self.section == "not claimed" else f"section {self.section}"

    @property
    def evidence(self) -> list[str]:
        """`measured`, then each interval on a line of its own."""
        numbers = [
            f"{name} {interval}".strip()
            + (f" ({interval.level:.0%} interval)" if interval.level != 0.95 else "")
            for name, interval in self.intervals.items()
        ]
        return [self.measured, *numbers]

    def row(self) -> tuple[list[str], ...]:
        """The cells under `HEADER`, each a list of lines."""
        return [self.id, self.where], [self.paper], self.evidence, [self.verdict], [self.reason]

    def as_dict(self) -> dict[str, Any]:
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        # A list, since JSON objects are written with sorted keys and the order is the author's.
        content["intervals"] = [{"name": k} | v.as_dict() for k, v in self.intervals.items()]
        return plain(content, where=f"claim {self.id}")

    @classmethod
    def from_dict(cls, values: Any) -> Claim:
        known = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or not set(values) <= known:
            raise InputError(f"not a claim: {values!r}")
        try:
            intervals = {v["name"]: Interval.from_dict(v) for v in values.get("intervals", ())}
            return cls(**values | {"intervals": intervals})
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(f"not a claim: {values!r}") from error


def held(fine: bool, why_not: str, otherwise: Finding = "not reproduced") -> tuple[Finding, str]:
    """Verdict and reason of a claim that a single test decides."""
    return ("reproduced", "") if fine else (otherwise, why_not)


def graded(tests: Sequence[bool]) -> Finding:
    """The verdict of a claim with several parts: all, some or none of them hold."""
    return "reproduced" if all(tests) else "partly" if any(tests) else "not reproduced"


def checked(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims as a tuple; two with one id are a mistake."""
    claims = tuple(claims)
    twice = [name for name, count in Counter(claim.id for claim in claims).items() if count > 1]
    if twice:
        raise InputError(f"two claims have the id {twice[0]!r}")
    return claims


def tally(claims: Sequence[Claim]) -> str:
    """ "5 claims: 3 reproduced, 1 partly, 1 not testable"."""
    counts: Counter[str] = Counter(claim.verdict for claim in claims)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    plural = "claim" if len(claims) == 1 else "claims"
    return f"{len(claims)} {plural}" + (f": {parts}" if parts else "")


def to_json(claims: Iterable[Claim]) -> dict[str, Any]:
    """What `claims.json` holds; `from_json` reads it."""
    return {"format": 1, "claims": [claim.as_dict() for claim in checked(claims)]}


def from_json(content: Any, source: object = "claims") -> tuple[Claim, ...]:
    """The claims of a `claims.json`; `source` is named in errors."""
    if not isinstance(content, dict) or not isinstance(content.get("claims"), list):
        raise InputError(f"{source}: holds no list of claims")
    if content.get("format") != 1:
        raise InputError(f"{source}: has format {content.get('format')!r}, this version reads 1")
    try:
        return checked(Claim.from_dict(item) for item in content["claims"])
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def write_claims(run: RunDir, claims: Iterable[Claim]) -> None:
    """Store the table of claims as claims.json and claims.md."""
    claims = tuple(claims)
    atomic_write(run.file("claims.md"), to_markdown(claims).encode())
    atomic_write(run.file("claims.json"), json_bytes(to_json(claims)))


def read_claims(run: RunDir) -> tuple[Claim, ...]:
    """The claims that `write_claims` stored."""
    path = run.file("claims.json")
    return from_json(read_json(path), path)


def to_markdown(claims: Iterable[Claim]) -> str:
    """The claims as a Markdown table under one line that counts the verdicts."""
    claims = checked(claims)
    lines = [f"{tally(claims)}.", "", _markdown_row(HEADER), "|" + "---|" * len(HEADER)]
    for claim in claims:
        cells = ["<br>".join(map(markdown_text, cell)) for cell in claim.row()]
        cells[3] = f"**{cells[3]}**"
        lines.append(_markdown_row(cells))
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def to_table(claims: Iterable[Claim], title: str | None = None) -> Table:
    """The claims as a rich table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    claims = checked(claims)
    table = Table(title=title, caption=tally(claims), show_lines=True, caption_justify="left")
    for name, ratio in zip(HEADER, (3, 4, 5, 2, 4), strict=True):
        table.add_column(name, ratio=ratio, overflow="fold")
    for claim in claims:
        # Text and not str: an interval's brackets must not be read as markup.
        cells = [Text(visible("\n".join(cell))) for cell in claim.row()]
        cells[3].stylize(f"bold {COLOURS[claim.verdict]}")
        table.add_row(*cells)
    return table
