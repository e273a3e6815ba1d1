"""Sentences and tables as HTML for notebooks. All text is escaped; nothing has a background of its
own, so that it suits a light and a dark notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_lines(lines: Iterable[str]) -> str:
    """A paragraph; the first line is strong."""
    first, *rest = map(escape, lines)
    return f"<p>{'<br>'.join([f'<strong>{first}</strong>', *rest])}</p>"


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], strong: int | None = None
) -> str:
    """The first cell of a row is its name; the row number `strong` stands out."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = ""
    for number, (first, *rest) in enumerate(rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        style = ' style="font-weight:600"' if number == strong else ""
        body += f"<tr{style}><th>{escape(first)}</th>{cells}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
