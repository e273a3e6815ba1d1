"""What mkdocs needs beside its plugins: pictures that live beside the results, and formulas.

The pages link to pictures where they are (`../results/gym/figures/returns.png`), which is right in
a clone and on a forge; the site has only what lies under it, so there they are moved to `assets/`.

Formulas are written `$...$`, or between lines of `$$`, as a forge shows them. Here they become
MathML, which browsers draw themselves: no script, no fonts, no other host.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = re.compile(r"\]\(\.\./((?:benchmarks/)?results/[^)\s]+\.png)\)")
# Code first, so that a dollar in it stays one; then formulas on lines of their own, then in a line.
CODE_OR_FORMULA = re.compile(
    r"(?P<code>^```.*?^```|`[^`\n]+`)"
    r"|^\$\$\n(?P<block>.+?)\n\$\$$"
    r"|(?<![\\$\w])\$(?P<line>[^$\s](?:[^$\n]*[^$\s])?)\$(?![\w$])",
    re.DOTALL | re.MULTILINE,
)


def on_files(files: Files, config: Any) -> Files:
    """Every picture of the results is a file of the site."""
    from mkdocs.structure.files import File

    for folder in ("results", "benchmarks/results"):
        for picture in sorted((ROOT / folder).rglob("*.png")):
            name = f"assets/{picture.relative_to(ROOT).as_posix()}"
            files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return CODE_OR_FORMULA.sub(_marked, OUTSIDE.sub(r"](assets/\1)", markdown))


def on_page_content(html: str, **_: Any) -> str:
    return re.sub(r"formula-(\d+)-here", lambda mark: FORMULAS[int(mark[1])], html)


FORMULAS: list[str] = []  # as MathML; a mark stands for each until Markdown is done with the page


def _marked(found: re.Match[str]) -> str:
    """Markdown takes `<math>` at the start of a line for a block of its own, so it sees a word."""
    from latex2mathml.converter import convert

    if found["code"]:
        return found[0]
    display = "block" if found["block"] else "inline"
    formula = str(convert(found["block"] or found["line"], display=display))
    # Signs of order are operators, with room about them, and no names of variables.
    FORMULAS.append(re.sub(r"<mi>(&#x02A[0-9A-F]{2};)</mi>", r"<mo>\1</mo>", formula))
    return f"formula-{len(FORMULAS) - 1}-here"
