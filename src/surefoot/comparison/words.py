"""A comparison in words: for the terminal and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

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
MANY = 24  # columns beyond which a matrix is no longer readable
UNCORRECTED = "*"
WHY_A_RANGE = "since at the ends the two curves meet whatever is true"
WIDTH = 105  # of a line, where nobody says how wide the terminal is
MOST_LINES = 60  # of a table of pairs that a terminal shows
IN_PYTHON = "`to_frame()`, or comparison.md of `save(directory)`"
Layout = Literal["words", "cells", "letters", "counts"]


def text(c: Comparison, width: int = WIDTH, where: str = IN_PYTHON) -> str:
    """For a terminal: tables of the columns, a matrix of verdicts for each order, the sets.

    Of very many columns it has no p-values; `where` says where they are.
    """
    layout = _layout(c, width)
    parts = [
        *_wrapped(_title(c), width=width),
        *(line for note in (*c.reading, c.rows_drawn) for line in _wrapped(note, "  ", width)),
        "",
        *align([HEADER, *summary_rows(c)]),
    ]
    if c.has_years:
        parts += ["", "A year", *align([YEAR_HEADER, *year_rows(c)])]
    for order in (2, 1):
        title = f"{ORDER_TITLES[order]}: does the row dominate the column?"
        parts += ["", *_wrapped(title, width=width)]
        parts += [f"  {line}" for line in _matrix_lines(c, order, layout)]
        if layout == "letters":
            parts += _pair_lines(c, order, width)
        for label, names in sets(c, order):
            parts += _wrapped(f"{label}: {names}", "  ", width)
    parts += ["", *_legend(c, layout, width, where)]
    for table in _further(c, MOST_LINES):
        parts += ["", *_wrapped(table.title, width=width), *align([table.header, *table.rows])]
        parts += _wrapped(table.caption, width=width)
    parts += [line for note in c.notes for line in _wrapped(f"Note: {note}.", width=width)]
    return "\n".join(parts)


def _wrapped(note: str, indent: str = "", width: int = WIDTH) -> list[str]:
    return textwrap.wrap(
        note, min(width, WIDTH), initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


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


def _layout(c: Comparison, width: int) -> Layout:
    """The fullest that fits: words or letters with their p-values, or letters with a list below."""
    if len(c.names) > MANY:
        return "counts"
    for layout in ("words", "cells"):
        lines = (line for order in (1, 2) for line in _matrix_lines(c, order, layout))
        if max(map(len, lines)) + 2 <= width:
            return layout
    return "letters"


def _matrix_lines(c: Comparison, order: int, layout: Layout) -> list[str]:
    if layout == "counts":
        return [counts(c, order)]
    full = layout == "words"
    heads = c.names if full else [str(i + 1) for i in range(len(c.names))]
    numbers = {(v.a, v.b): p_values(v) for v in c.verdicts if v.order == order}
    rows = []
    for head, (a, row) in zip(heads, matrix(c, order).items(), strict=True):
        words = (word if full or word is None else SIGNS[word] for word in row)
        rows.append((a if full else f"{head} {a}", *(word or "." for word in words)))
        if layout != "letters":
            below = (numbers.get((a, b), "") for b in c.names)
            rows.append(("", *(below if full else map(_short, below))))
    gap = " " if layout == "letters" else "  "
    return [line.rstrip() for line in align([("", *heads), *rows], left=True, gap=gap)]


def counts(c: Comparison, order: int) -> str:
    """How often each word was said."""
    every: list[str] = [v.word for v in c.verdicts if v.order == order]
    each = ", ".join(f"{word} {every.count(word):,}" for word in SIGNS)
    return f"of {len(every):,} ordered pairs: {each}"


class Decided(NamedTuple):
    """The pairs in which a hypothesis is rejected, and the least p-values of all others.

    Every word follows from these: in each of the others one cannot tell.
    """

    pairs: list[tuple[Verdict, Verdict]]
    """Both directions, the one with the better word first."""
    others: int
    least: tuple[float, float]
    """Of dominance and of non-dominance, among the others."""


def decided(verdicts: Iterable[Verdict], order: int) -> Decided:
    of = {(v.a, v.b): v for v in verdicts if v.order == order}
    place = {name: i for i, name in enumerate(dict.fromkeys(a for a, _ in of))}
    pairs: list[tuple[Verdict, Verdict]] = []
    others: list[Verdict] = []
    for a, b in combinations(place, 2):
        both = of[a, b], of[b, a]
        if min(min(v.dominance_p, v.nondominance_p) for v in both) > both[0].level:
            others += both
        else:
            better, worse = sorted(both, key=lambda v: list(SIGNS).index(v.word))
            pairs.append((better, worse))
    pairs.sort(key=lambda pair: (place[pair[0].a], place[pair[0].b]))
    least = (
        min((v.dominance_p for v in others), default=1.0),
        min((v.nondominance_p for v in others), default=1.0),
    )
    return Decided(pairs, len(others) // 2, least)


def others_sentence(chosen: Decided, level: float) -> str:
    """What is known of the pairs that are not listed; nothing if there are none."""
    if not chosen.others:
        return ""
    dominance, nondominance = (p_text(p, level) for p in chosen.least)
    which = f"the other {chosen.others:,}" if chosen.pairs else f"all {chosen.others:,} pairs"
    return (
        f"Cannot tell: {which}, with p-values of at least {dominance} (dominance) and "
        f"{nondominance} (non-dominance)"
    )


def _pair_lines(c: Comparison, order: int, width: int) -> list[str]:
    """The p-values behind the letters: as many pairs on a line as fit."""
    chosen = decided(c.verdicts, order)
    number = {name: str(i + 1) for i, name in enumerate(c.names)}
    rows = [
        (f"{number[v.a]}-{number[v.b]}", *(f"{SIGNS[w.word]} {_short(p_values(w))}" for w in both))
        for both in chosen.pairs
        for v in both[:1]
    ]
    lines = []
    if rows:
        title = f"Pairs with a p-value of at most {c.level:g}"
        about = f"{title} ({len(rows):,}); i-j: i over j, then j over i"
        lines += _wrapped(about, "  ", width)
        entries = align(rows, left=True)
        each = max(1, (width - 1) // (len(entries[0]) + 3))
        for at in range(0, len(entries), each):
            lines.append(("    " + " | ".join(entries[at : at + each])).rstrip())
    return lines + _wrapped(others_sentence(chosen, c.level), "  ", width)


def p_values(v: Verdict) -> str:
    """Of dominance and of non-dominance, corrected; a star where only the correction saves it."""
    return f"{p_text(v.dominance_p, v.level)}{star(v)} / {p_text(v.nondominance_p, v.level)}"


def _short(numbers: str) -> str:
    return numbers.replace("0.", ".").replace(" ", "")


def p_text(p: float, level: float) -> str:
    """Three digits, and more where they would put it on the other side of the level."""
    texts = (f"{p:.{digits}g}" for digits in range(3, 18))
    return next(text for text in texts if (float(text) <= level) == (p <= level))


def star(v: Verdict) -> str:
    return UNCORRECTED if v.test.dominance_p <= v.level < v.dominance_p else ""


def _legend(c: Comparison, layout: Layout, width: int, where: str) -> list[str]:
    letters = ", ".join(f"{sign} {word}" for word, sign in SIGNS.items())
    p = f"p of dominance / p of non-dominance, after {c.correction_name}."
    lines = {
        "words": [f"Below each word: {p}"],
        "cells": [f"{letters}.", f"Below each letter: {p}"],
        "letters": [f"{letters}.", f"Behind each letter: {p}"],
        "counts": [f"Words and p-values of all pairs, after {c.correction_name}: {where}."],
    }[layout]
    lines += [
        f"At level {c.level:g} contradicted: dominance is rejected; established: non-dominance is, "
        f"{c.range_tested}; not contradicted: the reverse is contradicted, and dominance is not "
        "rejected even without the correction; cannot tell: all else."
    ]
    listed = [v for order in (1, 2) for both in decided(c.verdicts, order).pairs for v in both]
    shown = {"letters": listed, "counts": []}.get(layout, c.verdicts)
    if any(star(v) for v in shown):
        lines.append(f"{UNCORRECTED} rejected without the correction.")
    return [each for line in lines for each in _wrapped(line, width=width)]


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
        f"{WHY_A_RANGE}, "
        '*not contradicted* where "b dominates a" is rejected and '
        '"a dominates b" is not, even without the correction (a star marks where it '
        "is). Otherwise one *cannot tell*."
    )


def align(rows: Sequence[Sequence[str]], *, left: bool = False, gap: str = "  ") -> list[str]:
    """Columns of equal width; all but the first to the right, unless `left`."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        gap.join(
            cell.rjust(width) if i and not left else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
