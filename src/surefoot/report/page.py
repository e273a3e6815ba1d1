"""A page: what it is made of, and how the templates turn it into one HTML file.

The file needs nothing else: styles, script, figures and data are inside. A content security policy
forbids every connection, every script and every style but those written here, so a page made from
somebody else's files can neither phone home nor run their code. All text is escaped besides.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar

from surefoot import __version__
from surefoot.errors import InputError

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Note:
    """A sentence; `tone` is plain, quiet or warning."""

    text: str
    tone: str = "plain"
    title: ClassVar[str] = ""
    template: ClassVar[str] = "note.html"


@dataclass(frozen=True)
class Badge:
    """A verdict in a cell: `tone` is good, half, bad or none; a sign says it without colour."""

    text: str
    tone: str
    detail: str = ""
    """A line below it."""

    @property
    def sign(self) -> str:
        return {"good": "✓", "half": "◐", "bad": "✗"}.get(self.tone, "○")


TableCell = str | Badge | Sequence[str]  # a sequence is several lines


@dataclass(frozen=True)
class DataTable:
    """`look` is text, claims (text in fixed columns) or numbers (right-aligned after the first)."""

    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    title: str
    caption: str = ""
    look: str = "text"
    template: ClassVar[str] = "table.html"


@dataclass(frozen=True)
class Folded:
    """Names and values, or text as it is, that open with a click."""

    title: str
    rows: tuple[tuple[str, str], ...] = ()
    code: str = ""
    template: ClassVar[str] = "folded.html"


@dataclass(frozen=True)
class Figure:
    """A picture as a data URI, made by `surefoot.report.svg`."""

    name: str
    title: str
    uri: str
    caption: str = ""
    template: ClassVar[str] = "figure.html"


@dataclass(frozen=True)
class Explorer:
    """States to click on; `data` is what `surefoot.report.explorer` made."""

    title: str
    data: Mapping[str, Any]
    caption: str = ""
    template: ClassVar[str] = "explorer.html"


Part = Note | DataTable | Folded | Figure | Explorer


@dataclass(frozen=True)
class Section:
    """One run, or what stands before all runs."""

    title: str
    parts: tuple[Part, ...]
    lead: str = ""


@dataclass(frozen=True)
class Page:
    title: str
    sections: tuple[Section, ...]


def guarded(what: str, build: Callable[[], list[Part]]) -> list[Part]:
    """The parts, or a sentence that says why they are not there: one damaged file of a run, or
    one that is not quite ours, does not take the rest of the page with it."""
    try:
        return build()
    except InputError as error:
        return [Note(f"{what}: not shown, because {error}.", "warning")]
    except Exception as error:
        return [Note(f"{what}: not shown, what is stored does not fit ({error!r}).", "warning")]


def render(page: Page) -> bytes:
    """The complete file; equal pages have equal bytes."""
    script, style = asset("report.js"), asset("report.css")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template("page.html")
    text = template.render(
        page=page, script=script, style=style, policy=policy, version=__version__
    )
    return text.encode(errors="replace")  # half a character of a file is no reason for no page


def asset(name: str) -> str:
    return resources.files("surefoot.report").joinpath("assets", name).read_text("utf-8")


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surefoot.report"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    # `tojson` writes <, > and & as numbers, so that no HTML parser can leave it.
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False, "separators": (",", ":"), "ensure_ascii": False,
    }  # fmt: skip
    environment.filters["slug"] = _slug
    return environment


def _slug(text: str) -> str:
    """The readable end of an anchor; what stands before it makes it unique."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:60]


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
