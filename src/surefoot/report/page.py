"""A page as one HTML file that needs nothing else: plotly, styles, script and data are inside.

A content security policy forbids every connection and every script but the two that are written
here, so a page made from somebody else's files can neither phone home nor run their code. All
text is escaped on the way in, besides.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

from surefoot import __version__
from surefoot.errors import InputError
from surefoot.report.parts import (
    Badge,
    Cell,
    Chart,
    Explorer,
    Facts,
    Note,
    Page,
    Part,
    Picture,
    Section,
    Table,
)

escape = html.escape
HOW = (
    "An action dominates another in the second order where its curve F⁻² lies nowhere below: "
    "every risk-averse judge prefers it. The shaded dispersion space has half the variance as area."
)


def render(page: Page) -> bytes:
    """The whole file."""
    scripts = [plotly_source(), asset("report.js")]
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )
    single = len(page.sections) == 1  # its title is the page's
    sections = [_section(s, i, not single) for i, s in enumerate(page.sections)]
    lead = f'<p class="quiet">{escape(page.lead)}</p>' if page.lead else ""
    title = escape(page.title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>{asset('report.css')}</style></head><body>",
            f'<header class="top"><div><h1>{title}</h1>{lead}{_contents(page)}</div>',
            '<button id="theme" type="button" hidden>Dark</button></header><main>',
            "<noscript><p>The figures of this page are drawn by its own script: allow it.</p>"
            "</noscript>",
            *sections,
            f"<footer>Made by surefoot {escape(__version__)}. This file needs no network."
            "</footer></main>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    ).encode()


def plotly_source() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError("a report needs plotly: install surefoot[report]") from None
    source = get_plotlyjs()
    if "</script" in source.lower():  # it would end our element; no release has had one
        raise InputError("this plotly cannot be put into a page: it holds a closing script tag")
    return source


def asset(name: str) -> str:
    return resources.files("surefoot.report").joinpath("assets", name).read_text("utf-8")


def json_text(value: Any) -> str:
    """JSON that no HTML parser can leave: the marks of tags are written as numbers."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _contents(page: Page) -> str:
    if len(page.sections) < 2:
        return ""
    links = "".join(
        f'<li><a href="#s{i}">{escape(section.title)}</a></li>'
        for i, section in enumerate(page.sections)
    )
    return f'<nav class="contents" aria-label="contents"><ul>{links}</ul></nav>'


def _section(section: Section, index: int, titled: bool) -> str:
    parts = "\n".join(
        _part(part, f"s{index}p{number}") for number, part in enumerate(section.parts)
    )
    lead = f"<p>{escape(section.lead)}</p>" if section.lead else ""
    title = f"<h2>{escape(section.title)}</h2>" if titled else ""
    return f'<section id="s{index}">{title}{lead}{parts}</section>'


def _part(part: Part, key: str) -> str:
    if isinstance(part, Note):
        return f'<p class="{escape(part.tone)}">{escape(part.text)}</p>'
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Facts):
        return _facts(part)
    if isinstance(part, Picture):
        return _picture(part)
    if isinstance(part, Chart):
        return _chart(part, key)
    return _explorer(part, key)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    rows = "".join(f"<tr>{''.join(_cells(row, table.header))}</tr>" for row in table.rows)
    kind = "numbers" if table.numbers else "claims stack" if table.wide else "stack"
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="scroll"><table class="{kind}">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cells(row: tuple[Cell, ...], header: tuple[str, ...]) -> Iterator[str]:
    for cell, name in zip(row, header, strict=True):
        if isinstance(cell, Badge):
            inner = f'<span class="badge {escape(cell.tone)}">{escape(cell.text)}</span>'
        elif isinstance(cell, str):
            inner = escape(cell)
        else:
            inner = "".join(f'<span class="line">{escape(line)}</span>' for line in cell)
        yield f'<td data-label="{escape(name)}">{inner}</td>'


def _facts(facts: Facts) -> str:
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.rows)
    code = f"<pre>{escape(facts.code)}</pre>" if facts.code else ""
    listed = f"<dl>{rows}</dl>" if rows else ""
    return f"<details><summary>{escape(facts.title)}</summary>{listed}{code}</details>"


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f'<figure data-name="{escape(picture.name)}"><h3>{escape(picture.title)}</h3>'
        f"<figcaption>{escape(picture.why)}</figcaption>"
        f'<img alt="{escape(picture.title)}" src="data:image/png;base64,{data}"></figure>'
    )


def _chart(chart: Chart, key: str) -> str:
    spec = {
        "width": chart.width,
        "choice": chart.choice,
        "legend": [vars(entry) for entry in chart.legend],
        "variants": {
            name: [
                {"title": p.title, "data": p.data, "layout": p.layout, "height": p.height}
                for p in panels
            ]
            for name, panels in chart.variants.items()
        },
    }
    return (
        f'<figure class="chart" id="{key}" data-name="{escape(chart.name)}">'
        f"{_caption(chart.title, chart.caption)}"
        '<div class="controls"></div><div class="legend"></div><div class="panels"></div>'
        f"{_data(key, spec)}</figure>"
    )


def _explorer(part: Explorer, key: str) -> str:
    header = ["action", "mean", "deviation", *(f"CVaR {level:g}" for level in part.data["levels"])]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    titles = (
        "Return distribution of each action",
        "Cumulative quantiles F⁻²",
        "Dispersion space",
    )
    panels = "".join(
        f'<div class="panel"><h4>{escape(t)}</h4><div class="plot"></div></div>' for t in titles
    )
    return (
        f'<figure class="explorer" id="{key}" data-name="{escape(part.name)}">'
        f"{_caption(part.title, part.caption)}"
        f'<p class="quiet">{escape(HOW)}</p>'
        '<div class="controls"></div><div class="states" role="group" aria-label="states"></div>'
        '<p><strong class="where"></strong></p><div class="words" aria-live="polite"></div>'
        f'<div class="legend"></div><div class="panels">{panels}</div>'
        f'<div class="scroll"><table class="numbers"><thead><tr>{head}</tr></thead><tbody>'
        f"</tbody></table></div>{_data(key, {**part.data, 'header': header})}</figure>"
    )


def _caption(title: str, caption: str) -> str:
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<h3>{escape(title)}</h3>{below}"


def _data(key: str, spec: Any) -> str:
    return f'<script type="application/json" id="data-{key}">{json_text(spec)}</script>'
