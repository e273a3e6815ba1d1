"""A comparison as HTML for notebooks, and as a polars table."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from surefoot.comparison.further_words import further_tables
from surefoot.comparison.words import (
    HEADER,
    IN_PYTHON,
    MANY,
    ORDER_TITLES,
    YEAR_HEADER,
    counts,
    explanation,
    matrix,
    p_values,
    sets,
    summary_rows,
    year_rows,
)
from surefoot.core.markup import html_lines, html_table
from surefoot.errors import InputError, unknown
from surefoot.runs.files import plain

if TYPE_CHECKING:
    import polars

    from surefoot.comparison.result import Comparison

TABLES = ("verdicts", "summaries", "further")
MOST_ROWS = 300  # of a table of pairs that anyone reads
# Colours that can be read on white and on black; weight and text say the same without them.
WORD_STYLES = {
    "established": "font-weight:600;color:#0a9a72",
    "not contradicted": "color:#b07a00",
    "contradicted": "color:#d9622b",
    "cannot tell": "opacity:.6",
}


def html(c: Comparison) -> str:
    """Tables without a background of their own: they suit a light and a dark notebook."""
    title = f"{len(c.names)} columns" + (f" of {c.source}" if c.source else "")
    parts = [html_lines([title]), html_table(("", *HEADER[1:]), summary_rows(c))]
    if c.has_years:
        parts.append(html_table(("a year", *YEAR_HEADER[1:]), year_rows(c)))
    for order in (2, 1):
        parts.append(f"<p>{escape(ORDER_TITLES[order])}: does the row dominate the column?</p>")
        if len(c.names) <= MANY:
            parts.append(_matrix(c, order))
        else:
            parts.append(f"<p>{escape(counts(c, order))}</p>")
        lines = (f"{label}: {escape(members)}" for label, members in sets(c, order))
        parts.append(f"<p>{'<br>'.join(lines)}</p>")
    if c.further is not None:
        for table in further_tables(plain(c.further), MOST_ROWS):
            caption = f"<p><small>{escape(table.caption)}</small></p>"
            parts += [html_lines([table.title]), html_table(table.header, table.rows), caption]
    plain_words = explanation(c).replace("*", "").removesuffix(".")
    where = (
        "Below each word: p of dominance / p of non-dominance"
        if len(c.names) <= MANY
        else f"Words and p-values of all pairs: {IN_PYTHON.replace('`', '')}"
    )
    small = [*c.reading, c.rows_drawn, *c.notes, f"{where}. {plain_words}"]
    parts += [f"<p><small>{escape(note)}.</small></p>" for note in small]
    return f"<div>{''.join(parts)}</div>"


def _matrix(c: Comparison, order: int) -> str:
    numbers = {(v.a, v.b): p_values(v) for v in c.verdicts if v.order == order}
    left = 'style="text-align:left"'
    head = "".join(f"<th {left}>{escape(name)}</th>" for name in ("", *c.names))
    body = ""
    for a, row in matrix(c, order).items():
        cells = ""
        for b, word in zip(c.names, row, strict=True):
            if word is None:
                cells += "<td></td>"
                continue
            style = f"text-align:left;{WORD_STYLES[word]}"
            small = f"<br><small>{escape(numbers[a, b])}</small>"
            cells += f'<td style="{style}">{escape(word)}{small}</td>'
        body += f"<tr><th>{escape(a)}</th>{cells}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def frame(c: Comparison, what: str) -> polars.DataFrame:
    try:
        import polars as pl
    except ImportError:
        raise InputError("a table needs polars: install surefoot[report]") from None
    if what not in TABLES:
        raise unknown("table", what, TABLES)
    if what == "summaries":
        return pl.DataFrame([_summary(s) for s in c.summaries])
    if what == "further":
        return pl.DataFrame(_further_rows(c))
    rows: list[dict[str, Any]] = []
    for v in c.verdicts:
        own = {k: x for k, x in vars(v).items() if k not in ("test", "level")}
        test = {f"raw_{k}": getattr(v.test, k) for k in ("dominance_p", "nondominance_p")}
        numbers = ("statistic", "low", "high", "weakest", "margin", "length")
        more = {name: getattr(v.test, name) for name in numbers}
        rows.append({**own, **test, **more, "word": v.word})
    return pl.DataFrame(rows)


def _further_rows(c: Comparison) -> list[dict[str, Any]]:
    if c.further is None:
        raise InputError("further tests were not asked for: compare(..., further=True)")
    return [
        {"a": pair.a, "b": pair.b, **asdict(test), "corrected_p": corrected}
        for pair in c.further.pairs
        for test, corrected in zip(pair.tests, pair.corrected, strict=True)
    ]


def _summary(s: Any) -> dict[str, Any]:
    names = ("name", "n", "mean", "deviation", "worst", "median", "best")
    tails = {f"cvar_{share:g}": s.cvar(share) for share in (0.05, 0.25)}
    year = asdict(s.annual) if s.annual is not None else {}
    return {**{name: getattr(s, name) for name in names}, **tails, **year}
