"""What a page is made of, before it is HTML: text, tables, charts, pictures, an explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import InputError

Trace = dict[str, Any]


class AbsentError(InputError):
    """The data a chart is drawn from are not in the run; the text says which and why."""


@dataclass(frozen=True)
class Note:
    """A sentence; `tone` is plain, warning or quiet."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class Badge:
    """A cell that is a verdict: `tone` is good, half, bad or none."""

    text: str
    tone: str


Cell = str | Badge | Sequence[str]  # a sequence is several lines


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    numbers: bool = False  # columns after the first are numbers
    wide: bool = False  # a table of claims: text in every column


@dataclass(frozen=True)
class Facts:
    """Names and values that may be folded away."""

    title: str
    rows: tuple[tuple[str, str], ...]
    code: str = ""


@dataclass(frozen=True)
class Key:
    """An entry of a chart's legend; its traces carry `legendgroup = name`."""

    name: str
    color: str
    dash: str = "solid"
    symbol: str = ""  # a plotly marker, "area" or "box"


@dataclass(frozen=True)
class Panel:
    """One plot. `layout` holds what differs from the house layout, axes titles above all."""

    title: str
    data: tuple[Trace, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 300


@dataclass(frozen=True)
class Chart:
    """A figure: panels side by side where the page is wide, one below the other where it is not.

    Several `variants` are chosen from a select box under `choice`.
    """

    name: str
    title: str
    variants: Mapping[str, tuple[Panel, ...]]
    legend: tuple[Key, ...] = ()
    caption: str = ""
    choice: str = ""
    width: int = 330  # of the narrowest panel, in pixels


@dataclass(frozen=True)
class Picture:
    """A stored PNG where the data behind it are not to be had, and why."""

    name: str
    title: str
    png: bytes
    why: str


@dataclass(frozen=True)
class Explorer:
    """States to click on; `data` is what `explorer.py` made."""

    name: str
    title: str
    data: Mapping[str, Any]
    caption: str = ""


Part = Note | Table | Facts | Chart | Picture | Explorer


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
    lead: str = ""


def one(*panels: Panel) -> dict[str, tuple[Panel, ...]]:
    """The variants of a chart that has only one."""
    return {"": panels}
