"""A comparison in words: for the terminal and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from surefoot.comparison.further_words import WordTable, further_tables
from surefoot.errors import markdown_text
from surefoot.runs.files import plain

if TYPE_CHECKING:
    from surefoot.comparison.result import Comparison, Verdict

ORDER_TITLES = {
    2: "Second order (what everyone who is averse to risk prefers)",
    1: "First order (what everyone who likes more better than less prefers)",
}
HEADER = ("", "n", "mean", "deviation", "worst", "CVaR 5%", "CVaR 25%", "median", "best")


YEAR_HEADER = ("", "return", "volatility", "Sharpe", "Sortino", "max drawdown")
SIGNS = {"established": "E", "not contradicted": "n", "contradicted": "c", "cannot tell": "?"}
FEW = 5  # columns whose verdicts fit a terminal as words
SOME = 12  # ... and as letters with their p-values
MANY = 24  # columns beyond which a matrix is no longer readable
UNCORRECTED = "*"
WIDTH = 105  # of a line of words
MOST_LINES = 60  # of a table of pairs that a terminal shows


def text(c: Comparison) -> str:
    """For a terminal: tables of the columns, a matrix of verdicts for each order, the sets."""
    parts = [
        _title(c),
        *(line for note in (*c.reading, c.rows_drawn) for line in _wrapped(note, "  ")),
        "",
        *align([HEADER, *summary_rows(c)]),
    ]
    if c.has_years:
        parts += ["", "A year", *align([YEAR_HEADER, *year_rows(c)])]
    for order in (2, 1):
        parts += ["", f"{ORDER_TITLES[order]}: does the row dominate the column?"]
        parts += [f"  {line}" for line in _matrix_lines(c, order)]
        parts += [f"  {label}: {names}" for label, names in sets(c, order)]
    parts += ["", *_legend(c)]
    for table in _further(c, MOST_LINES):
        parts += ["", *_wrapped(table.title), *align([table.header, *table.rows])]
        parts += _wrapped(table.caption)
    parts += [line for note in c.notes for line in _wrapped(f"Note: {note}.")]
    return "\n".join(parts)


def _wrapped(note: str, indent: str = "") -> list[str]:
    return textwrap.wrap(note, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")


def markdown(c: Comparison) -> str:
    """The same with Markdown tables, and every ordered pair's numbers."""
    names = {summary.name: markdown_text(summary.name) for summary in c.summaries}

    def named(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return [(names[row[0]], *row[1:]) for row in rows]

    parts = [
        f"# {markdown_text(_title(c))}",
        "",
        *_table([("column", *HEADER[1:]), *named(summary_rows(c))]),
    ]
    if c.has_years:
        parts += ["", "A year:", "", *_table([("column", *YEAR_HEADER[1:]), *named(year_rows(c))])]
    for order in (2, 1):
        parts += ["", f"## {ORDER_TITLES[order]}", ""]
        if len(c.names) <= MANY:
            cells = matrix(c, order)
            rows = [(names[a], *(word or "" for word in row)) for a, row in cells.items()]
            parts += [*_table([("row over column", *names.values()), *rows]), ""]
        header = ["a", "b", "in the sample", "a over b", "p of dominance", "p of non-dominance"]
        header += ["violation", "almost-SSD ratio"] if order == 2 else []
        body = [_cells(v, names) for v in c.verdicts if v.order == order]
        parts += [*_table([header, *body]), ""]
        parts += [f"- {label}: {markdown_text(members)}" for label, members in sets(c, order)]
    parts += ["", explanation(c)]
    for table in _further(c, None):
        shown = [[markdown_text(cell) for cell in row] for row in table.rows]
        parts += ["", f"## {table.title}", "", *_table([table.header, *shown]), "", table.caption]
    parts += [f"\n> {markdown_text(note)}." for note in (*c.reading, c.rows_drawn, *c.notes)]
    return "\n".join(parts) + "\n"


def _further(c: Comparison, most: int | None) -> Iterable[WordTable]:
    return () if c.further is None else further_tables(plain(c.further), most)


def matrix(c: Comparison, order: int) -> dict[str, list[str | None]]:
    """The word of each row over each column; None on the diagonal."""
    words = {(v.a, v.b): v.word for v in c.verdicts if v.order == order}
    return {a: [words.get((a, b)) for b in c.names] for a in c.names}


def _matrix_lines(c: Comparison, order: int) -> list[str]:
    """Words or letters with their p-values, or letters alone, or how many there are of each."""
    cells = matrix(c, order)
    if len(c.names) > MANY:
        every = [word for row in cells.values() for word in row if word]
        counts = ", ".join(f"{word} {every.count(word):,}" for word in SIGNS)
        return [f"of {len(every):,} ordered pairs: {counts}"]
    few = len(c.names) <= FEW
    heads = c.names if few else [str(i + 1) for i in range(len(c.names))]
    numbers = {(v.a, v.b): p_values(v) for v in c.verdicts if v.order == order}
    rows = []
    for head, (a, row) in zip(heads, cells.items(), strict=True):
        words = (word if few or word is None else SIGNS[word] for word in row)
        rows.append((a if few else f"{head} {a}", *(word or "." for word in words)))
        if len(c.names) <= SOME:
            below = (numbers.get((a, b), "") for b in c.names)
            short = (text.replace("0.", ".").replace(" ", "") for text in below)
            rows.append(("", *(below if few else short)))
    return [line.rstrip() for line in align([("", *heads), *rows], left=True)]


def p_values(v: Verdict) -> str:
    """Of dominance and of non-dominance, corrected; a star where only the correction saves it."""
    return f"{p_text(v.dominance_p, v.level)}{star(v)} / {p_text(v.nondominance_p, v.level)}"


def p_text(p: float, level: float) -> str:
    """Three digits, and more where they would put it on the other side of the level."""
    texts = (f"{p:.{digits}g}" for digits in range(3, 18))
    return next(text for text in texts if (float(text) <= level) == (p <= level))


def star(v: Verdict) -> str:
    return UNCORRECTED if v.test.dominance_p <= v.level < v.dominance_p else ""


def _legend(c: Comparison) -> list[str]:
    where = "are in `to_frame()`, and in comparison.md of --out."
    if len(c.names) > MANY:
        return [f"The words and p-values of all pairs {where}"]
    letters = ", ".join(f"{sign} {word}" for word, sign in SIGNS.items())
    if len(c.names) > SOME:
        return [f"{letters}; p-values {where}"]
    few = len(c.names) <= FEW
    lines = [] if few else [f"{letters}."]
    lines += [
        f"Below each {'word' if few else 'letter'}: p of dominance / p of non-dominance, after "
        f"{c.correction_name}; at level {c.level:g}",
        *_wrapped(
            "contradicted: dominance is rejected; established: non-dominance is, "
            f"{c.range_tested}; not contradicted: the reverse is contradicted, and dominance is "
            "not rejected even without the correction."
        ),
    ]
    stars = any(star(v) for v in c.verdicts)
    return lines + ([f"{UNCORRECTED} rejected without the correction."] if stars else [])


def _title(c: Comparison) -> str:
    of = f" of {c.source}" if c.source else ""
    paired = ", paired rows" if c.paired else ""
    return (
        f"{len(c.names)} columns{of}: tolerance {c.tolerance:g}, {c.resamples:,} resamples, "
        f"seed {c.seed}, level {c.level:g}{paired}"
    )


def summary_rows(c: Comparison) -> list[tuple[str, ...]]:
    rows = []
    for s in c.summaries:
        values = (s.mean, s.deviation, s.worst, s.cvar(0.05), s.cvar(0.25), s.median, s.best)
        rows.append((s.name, f"{s.n:,}", *(f"{value:.4g}" for value in values)))
    return rows


def year_rows(c: Comparison) -> list[tuple[str, ...]]:
    """Of the columns whose rows have dates."""
    years = [(s.name, s.annual) for s in c.summaries if s.annual is not None]
    return [
        (name, share(y.growth), share(y.volatility), ratio(y.sharpe), ratio(y.sortino),
         share(y.max_drawdown))
        for name, y in years
    ]  # fmt: skip


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.4g} %"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def sets(c: Comparison, order: int) -> list[tuple[str, str]]:
    def listed(names: Sequence[str]) -> str:
        more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
        return ", ".join(names[:MANY]) + more if names else "none"

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
        p_text(v.dominance_p, v.level) + star(v),
        p_text(v.nondominance_p, v.level),
    ]
    if v.violation is not None and v.almost_ratio is not None:
        cells += [f"{v.violation:.4g}", f"{v.almost_ratio:.4g}"]
    return cells


def explanation(c: Comparison) -> str:
    return (
        f"P-values are those of {c.resamples:,} resamples (seed {c.seed}) after "
        f"{c.correction_name} over all ordered pairs. At level {c.level:g}, a over b is "
        "*contradicted* where the "
        'hypothesis "a dominates b" is rejected (Barrett and Donald, 2003), *established* where '
        f'"a does not dominate b" is rejected (Davidson and Duclos, 2013), {c.range_tested}, '
        '*not contradicted* where "b dominates a" is rejected and '
        '"a dominates b" is not, even without the correction (a star marks where it '
        "is). Otherwise one *cannot tell*."
    )


def align(rows: Sequence[Sequence[str]], *, left: bool = False) -> list[str]:
    """Columns of equal width; all but the first to the right, unless `left`."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if i and not left else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
