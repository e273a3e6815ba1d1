"""What mkdocs needs to show pictures that live beside the results, not in docs/.

The pages link to them where they are (`../results/gym/figures/returns.png`), which is right in a
clone and on a forge; the site has only what lies under it, so there they are moved to `assets/`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = re.compile(r"\]\(\.\./((?:benchmarks/)?results/[^)\s]+\.png)\)")


def on_files(files: Files, config: Any) -> Files:
    """Every picture of the results is a file of the site."""
    from mkdocs.structure.files import File

    for folder in ("results", "benchmarks/results"):
        for picture in sorted((ROOT / folder).rglob("*.png")):
            name = f"assets/{picture.relative_to(ROOT).as_posix()}"
            files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return OUTSIDE.sub(r"](assets/\1)", markdown)
