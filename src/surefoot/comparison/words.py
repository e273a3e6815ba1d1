"""A comparison in words: for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.comparison.result import Comparison, Verdict

ORDER_TITLES = {
    2: "Second order (what everyone who is averse to risk prefers)",
    1: "First order (what everyone who likes more better than less prefers)",
}
HEADER = ("", "n", "mean", "deviation", "worst", "CVaR 5%", "CVaR 25%", "median", "best")


def text(c: Comparison) -> str:
    """For a terminal: a table, then one line per pair, then the sets."""
    parts = [_title(c), "", *_align([HEADER, *_rows(c)])]
    for order in (2, 1):
        parts += ["", ORDER_TITLES[order]]
        parts += [f"  {line}" for lines in _findings(c, order) for line in lines]
        parts += [f"  {label}: {names}" for label, names in _sets(c, order)]
    parts += [f"\nNote: {note}." for note in c.notes]
    return "\n".join(parts)


def markdown(c: Comparison) -> str:
    """The same with Markdown tables, and every ordered pair's numbers."""
    names = {summary.name: _escape(summary.name) for summary in c.summaries}
    rows = [(names[row[0]], *row[1:]) for row in _rows(c)]
    parts = [f"# {_title(c)}", "", *_table([("column", *HEADER[1:]), *rows])]
    for order in (2, 1):
        header = ["a", "b", "in the sample", "a over b", "p of dominance", "p of non-dominance"]
        header += ["violation", "almost-SSD ratio"] if order == 2 else []
        body = [_cells(v, names) for v in c.verdicts if v.order == order]
        parts += ["", f"## {ORDER_TITLES[order]}", "", *_table([header, *body]), ""]
        parts += [f"- {label}: {_escape(members)}" for label, members in _sets(c, order)]
    parts += ["", _explanation(c)]
    parts += [f"\n> {_escape(note)}." for note in c.notes]
    return "\n".join(parts) + "\n"


def _title(c: Comparison) -> str:
    of = f" of {c.source}" if c.source else ""
    paired = ", paired rows" if c.paired else ""
    return (
        f"{len(c.names)} columns{of}: tolerance {c.tolerance:g}, {c.resamples:,} resamples, "
        f"seed {c.seed}, level {c.level:g}{paired}"
    )


def _rows(c: Comparison) -> list[tuple[str, ...]]:
    rows = []
    for s in c.summaries:
        values = (s.mean, s.deviation, s.worst, s.cvar(0.05), s.cvar(0.25), s.median, s.best)
        rows.append((s.name, f"{s.n:,}", *(f"{value:.4g}" for value in values)))
    return rows


def _findings(c: Comparison, order: int) -> list[tuple[str, ...]]:
    """Three lines per pair, from the side of the one that dominates."""
    lines: list[tuple[str, ...]] = []
    for v in c.verdicts:
        first = c.names.index(v.a) < c.names.index(v.b)
        shown = v.relation == "dominates" or (first and v.relation != "dominated")
        if v.order == order and shown:
            both = (f"  {_word(w)}" for w in (v, c.verdict(v.b, v.a, order)))
            lines.append((_relation(v, c.tolerance), *both))
    return lines


def _relation(v: Verdict, tolerance: float) -> str:
    within = f" within the tolerance {tolerance:g}" if tolerance else ""
    if v.relation == "dominates":
        return f"{v.a} dominates {v.b} in the sample{within}"
    if v.relation == "equal":
        return f"{v.a} and {v.b} are equal in the sample{within}"
    ratio = f" (almost-SSD ratio of {v.a} {v.almost_ratio:.3g})" if v.order == 2 else ""
    return f"{v.a} and {v.b}: neither dominates in the sample{ratio}"


def _word(v: Verdict) -> str:
    return (
        f"{v.a} over {v.b}: {v.word} (p of dominance {v.dominance_p:.3g}, "
        f"of non-dominance {v.nondominance_p:.3g})"
    )


def _sets(c: Comparison, order: int) -> list[tuple[str, str]]:
    def listed(names: Sequence[str]) -> str:
        return ", ".join(names) if names else "none"

    established = c.dominant(order, established=True)
    return [
        ("dominant in the sample, over every other", listed(c.dominant(order))),
        ("... established", listed(established)),
        ("efficient in the sample, dominated by no other", listed(c.efficient(order))),
    ]


def _cells(v: Verdict, names: dict[str, str]) -> list[str]:
    shown = {"dominates": "a dominates b", "dominated": "b dominates a"}
    cells = [
        names[v.a],
        names[v.b],
        shown.get(v.relation, v.relation),
        v.word,
        f"{v.dominance_p:.4g}",
        f"{v.nondominance_p:.4g}",
    ]
    if v.violation is not None and v.almost_ratio is not None:
        cells += [f"{v.violation:.4g}", f"{v.almost_ratio:.4g}"]
    return cells


def _explanation(c: Comparison) -> str:
    return (
        f"P-values are those of {c.resamples:,} resamples (seed {c.seed}) after Holm's correction "
        f"over all ordered pairs. At level {c.level:g}, a over b is *contradicted* where the "
        'hypothesis "a dominates b" is rejected (Barrett and Donald, 2003), *established* where '
        '"a does not dominate b" is rejected (Davidson and Duclos, 2013), on the range '
        f'of values that the test says, *not contradicted* where "b dominates a" is rejected and '
        '"a dominates b" is not, even without the correction. Otherwise one *cannot tell*.'
    )


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def _escape(cell: str) -> str:
    return " ".join(cell.replace("\\", "\\\\").replace("|", "\\|").split())
