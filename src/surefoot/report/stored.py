"""What a run directory holds, read without trusting it.

A run may come from somebody else. No link is followed out of its directory, nothing is larger than
a page can carry, and its figures are made harmless: they are shown as images, in which browsers
run no script and load nothing, and besides only shapes are kept of them, none of which points
outside, so that they are safe wherever a reader may copy them to.
"""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from surefoot.errors import InputError
from surefoot.runs.directory import RunDir
from surefoot.runs.files import inside, read_bytes, read_json_object
from surefoot.runs.tables import read_csv


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LARGEST = 16_000_000  # bytes of one figure
SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
ELEMENTS = _words(
    "svg g defs path use clipPath rect circle ellipse line polyline polygon text tspan image style "
    "linearGradient radialGradient stop pattern title desc"
)
ATTRIBUTES = _words(
    "id d x y x1 y1 x2 y2 cx cy r rx ry dx dy points width height viewBox transform style fill "
    "stroke opacity clip-path clip-rule fill-rule fill-opacity stroke-width stroke-opacity "
    "stroke-dasharray stroke-linecap stroke-linejoin patternUnits patternTransform offset "
    "stop-color stop-opacity gradientUnits gradientTransform font-family font-size font-weight "
    "font-style text-anchor preserveAspectRatio version href"
)
WITH_TEXT = ("text", "tspan", "title", "desc", "style")
_REFERENCE = re.compile(r"url\(\s*#[\w.-]+\s*\)")
_FORBIDDEN = re.compile(r"""url|@|\\|expression|javascript|image-set|["'<>]|//""", re.IGNORECASE)
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+")
_HARMLESS = re.compile(r"[0-9A-Za-z .,+-]*")  # nothing that could call or point: most paths
_FINE = re.compile(r"(\.\d\d)\d+")  # a hundredth of a point is finer than any screen
_IN_URI = str.maketrans({mark: quote(mark) for mark in '%#<>"'})


@dataclass(frozen=True)
class Stored:
    """The files of one run directory."""

    path: Path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def file(self, name: str) -> Path:
        """A file of the run, and of nothing else: no link leads out of its directory."""
        return inside(self.path, name)

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object; an empty one where there is no such file."""
        return read_json_object(self.file(name)) if self.has(name) else {}

    def columns(self, name: str) -> dict[str, np.ndarray]:
        """A CSV table of numbers; a last row that is still being written is left out."""
        return read_csv(self.file(name))

    def table(self, name: str) -> Any:
        """A Parquet table, verified by its checksum."""
        self.file(f"{name}.parquet")
        return RunDir(self.path).read_table(name)

    def figures(self) -> list[str]:
        """Names of the stored figures; a comparison saved by the library has one beside it."""
        files = [*self.path.glob("figures/*.svg"), *self.path.glob("figures/*.png")]
        return sorted({p.stem for p in (*files, *self.path.glob("comparison.svg")) if p.is_file()})

    def figure_uri(self, name: str) -> str:
        """The SVG if there is one, else the PNG."""
        for place in (f"figures/{name}.svg", f"{name}.svg"):
            if self.has(place):
                return svg_uri(safe_svg(read_bytes(self.file(place)), place))
        return png_uri(read_bytes(self.file(f"figures/{name}.png")), f"figures/{name}.png")


# --- figures -------------------------------------------------------------------------------


def safe_svg(data: bytes, source: object = "figure") -> str:
    """The shapes of an SVG file as SVG text, or an `InputError` that says why there are none."""
    if len(data) > LARGEST:
        raise InputError(f"{source}: is larger than {LARGEST // 1_000_000} MB")
    try:
        text = data.decode()
        if "<!ENTITY" in text:
            raise InputError(f"{source}: defines entities, which no figure needs")
        root = ET.fromstring(text.encode(), ET.XMLParser(encoding="utf-8"))
        if root.tag != f"{SVG}svg":
            raise InputError(f"{source}: is not an SVG picture")
        made = _kept(root, _ids_of_definitions(root), _wide(root), False)
        assert made is not None
        made.set("xmlns", SVG[1:-1])
        return ET.tostring(made, encoding="us-ascii").decode()
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise InputError(f"{source}: is not an SVG picture ({error})") from None


def drawn_uri(figure: Any) -> str:
    """A figure of `surefoot.plots`, drawn now."""
    from surefoot.plots import svg

    return svg_uri(safe_svg(svg(figure).encode()))


def svg_uri(svg: str) -> str:
    """What an `img` shows; about a tenth larger than the text, where base64 adds a third."""
    quoted = svg if "'" in svg else svg.replace('"', "'")
    return "data:image/svg+xml," + quoted.translate(_IN_URI)


def png_uri(data: bytes, source: object = "figure") -> str:
    if len(data) > LARGEST or not data.startswith(b"\x89PNG\r\n\x1a\n"):
        raise InputError(f"{source}: is not a PNG picture")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _ids_of_definitions(root: ET.Element) -> frozenset[str]:
    """What may be pointed at. Definitions point at nothing themselves, so that a small file
    cannot multiply into a picture no browser ever finishes."""
    inner = (e for defs in root.iter(f"{SVG}defs") for e in defs.iter())
    return frozenset(e.get("id", "") for e in inner) - {""}


def _wide(root: ET.Element) -> bool:
    """Whether the picture is measured in points, so that its coordinates can be shortened."""
    box = (root.get("viewBox") or "").split()
    return len(box) == 4 and float(box[2]) >= 100


def _kept(
    element: ET.Element, known: frozenset[str], shorten: bool, defining: bool
) -> ET.Element | None:
    tag = element.tag.removeprefix(SVG) if isinstance(element.tag, str) else ""
    if tag not in ELEMENTS or (tag == "use" and defining):
        return None
    defining = defining or tag in ("defs", "pattern", "clipPath")
    made = ET.Element(tag)
    for name, value in element.attrib.items():
        kept = _value(tag, name.removeprefix(XLINK), value, known, defining)
        if kept is not None:
            if shorten and name in ("d", "x", "y", "points"):
                kept = _FINE.sub(r"\1", kept)
            made.set(name.removeprefix(XLINK), kept)
    if tag == "image" and "href" not in made.attrib:
        return None
    text = element.text or ""
    if tag in WITH_TEXT and not (tag == "style" and _FORBIDDEN.search(text)):
        made.text = text
    for inner in element:
        kept_inner = _kept(inner, known, shorten, defining)
        if kept_inner is not None:
            made.append(kept_inner)
            kept_inner.tail = inner.tail if tag in WITH_TEXT else None
    return made


def _value(tag: str, name: str, value: str, known: frozenset[str], defining: bool) -> str | None:
    """The attribute's value if it may stay, with line breaks folded."""
    if name not in ATTRIBUTES:
        return None
    value = " ".join(value.split())
    if _HARMLESS.fullmatch(value) and name != "href":
        return value
    if name == "href":
        if tag == "use":
            return value if value[:1] == "#" and value[1:] in known else None
        picture = value.replace(" ", "")
        return picture if tag == "image" and _PNG.fullmatch(picture) else None
    rest = value if defining else _REFERENCE.sub("", value)
    return None if _FORBIDDEN.search(rest) else value
