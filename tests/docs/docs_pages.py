"""The pages of the documentation as blocks of code that can be run."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("[!_]*.md"))]
SHELLS = ("console", "bash", "sh", "shell", "text", "")
# What a reader may not have installed; blocks that import it stand alone.
OPTIONAL = {"torch", "sb3_contrib", "stable_baselines3", "tianshou", "ray"}

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)(?P<more>[^\n`]*)\n(?P<text>.*?)^(?P=indent)``` *$",
    re.DOTALL | re.MULTILINE,
)
INDENTED = re.compile(r"(?:^ {4}[^\n]*\n)+", re.MULTILINE)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str
    title: str | None = None  # the file it is shown as: ```toml title="train.toml"

    @property
    def where(self) -> str:
        return f"{page_id(self.page)}:{self.line}"

    @property
    def missing(self) -> set[str]:
        """Optional libraries it imports that are not installed."""
        return {name for name in self.needs if importlib.util.find_spec(name) is None}

    @property
    def needs(self) -> set[str]:
        names: set[str] = set()
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Import):
                names |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
        return names & OPTIONAL


def blocks_of(page: Path) -> list[Block]:
    """Fenced blocks, and indented ones outside of them, in the order of the page."""
    text = page.read_text()
    blocks = []
    for match in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["more"])
        line = text.count("\n", 0, match.start()) + 1
        body = textwrap.dedent(match["text"])
        name = title and title[1]
        blocks.append(Block(page, line, match["language"], body, name))
    # What stands in fences is blanked out, line by line, so that places stay what they are.
    rest = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for match in INDENTED.finditer(rest):
        line = rest.count("\n", 0, match.start()) + 1
        blocks.append(Block(page, line, "", textwrap.dedent(match[0])))
    return sorted(blocks, key=lambda block: block.line)


def commands_in(block: Block, program: str = "surefoot") -> list[list[str]]:
    """The calls of a program in a shell block, as words without its name.

    Prompts, comments, continued lines, settings before the program and what comes after a pipe
    are understood; printed output is passed over.
    """
    if block.language not in SHELLS:
        return []
    lines = re.sub(r"\\\n\s*", " ", block.text).splitlines()
    commands = []
    for line in lines:
        words = line.removeprefix("$ ").strip()
        words = re.sub(r"^(?:[A-Z_]+=\S+ +)+", "", words)
        if not re.match(rf"{program}(?: +[a-z-]|$)", words):
            continue
        commands.append(shlex.split(re.split(r" [|;&>]", words)[0], comments=True)[1:])
    return commands


def mentions_of(page: Path, program: str = "surefoot") -> list[list[str]]:
    """Calls in running text, such as `surefoot compare FILE`; a bare name is none."""
    mentions = re.findall(rf"`{program} ([a-z][^`]*)`", words_of(page))
    return [shlex.split(words) for words in mentions if "..." not in words and "[" not in words]


def words_of(page: Path) -> str:
    """The text of a page, without its blocks and without what it says is gone: the first column of
    a table whose first column is an earlier version, and what "is gone"."""
    text = re.sub(r"`[^`]*` is gone", "", FENCE.sub("", page.read_text()))
    past = re.compile(r"^\| \d+\.\d+\.\d+ \|.*\n(?:\|.*\n)*", re.MULTILINE)
    return past.sub(lambda table: re.sub(r"^\|[^|]*\|", "|", table[0], flags=re.M), text)


def names_in(page: Path) -> list[tuple[str, list[str]]]:
    """What a page names of surefoot, in its words and in its Python blocks: (place, names)."""
    dotted = re.findall(r"`(surefoot(?:\.\w+)+)(?:\(.*?\))?`", words_of(page))
    names = [(page_id(page), name.split(".")) for name in dotted if not name.endswith(".toml")]
    for block in blocks_of(page):
        if block.language == "python":
            names += [(block.where, each) for each in imports_in(block.text)]
            nodes = ast.walk(ast.parse(block.text))
            chains = [_chain(node) for node in nodes if isinstance(node, ast.Attribute)]
            names += [(block.where, chain) for chain in chains if chain]
    return names


def imports_in(code: str) -> list[list[str]]:
    """What Python code imports from surefoot: `from surefoot.envs import cliffs` as three names."""
    return [
        [*node.module.split("."), each.name]
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("surefoot")
        for each in node.names
    ]


def _chain(node: ast.Attribute) -> list[str]:
    """`sf.SSD.decide` as ["surefoot", "SSD", "decide"]; nothing where another name begins it."""
    names: list[str] = []
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        names.insert(0, value.attr)
        value = value.value
    begins = isinstance(value, ast.Name) and value.id in ("sf", "surefoot")
    return ["surefoot", *names] if begins else []


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT) if page.is_relative_to(ROOT) else page).removeprefix("docs/")


if __name__ == "__main__":  # what would be run
    for each in PAGES:
        for block in blocks_of(each):
            print(block.where, block.language or "-", commands_in(block), file=sys.stderr)
