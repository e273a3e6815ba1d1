"""Every block of README and docs runs as it stands, and what the pages name exists.

The Python blocks of a page run one after the other in one namespace and one empty directory, as a
reader would run them; those that import a library which need not be installed stand alone, and are
skipped where it is missing. `surefoot` commands are run where they are quick and what they read is
there, and else parsed by the command's own parser: an option that is gone fails. Blocks of the
language `output` show what was printed before them.
"""

import importlib
import importlib.util
import inspect
import re
import typing
from pathlib import Path

import pytest
import tyro
from docs_pages import (
    PAGES,
    ROOT,
    blocks_of,
    commands_in,
    imports_in,
    mentions_of,
    names_in,
    page_id,
)

from surefoot.cli import COMMANDS, main

CHAINS = [
    page
    for page in PAGES
    if any(b.language == "python" or b.title or commands_in(b) for b in blocks_of(page))
]
ALONE = [
    pytest.param(block, id=block.where)
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "python" and block.needs
]
MENTIONS = [
    pytest.param(words, id=f"{page_id(page)}: {' '.join(words)}")
    for page in PAGES
    for words in mentions_of(page)
]


class Parsed(BaseException):
    """Raised when a command's options have been read, in place of the work itself."""


@pytest.fixture
def parse_only(monkeypatch):
    """Options are read by the real parser; what would follow is not begun."""
    real = tyro.cli

    def read(*args: typing.Any, **options: typing.Any) -> typing.NoReturn:
        real(*args, **options)
        raise Parsed

    def check(words: list[str]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(tyro, "cli", read)
            try:
                code = main(words)  # help and the like come to an end without options
            except Parsed:
                return
            except SystemExit as end:
                code = end.code
        assert code in (0, None), f"surefoot {' '.join(words)}: exit code {code}"

    return check


def is_quick(words: list[str]) -> bool:
    """A look at a file or a run that an earlier block of the page has made."""
    return words[0] in ("compare", "explain") and any(Path(word).exists() for word in words[1:])


# Each trains agents of its own; the quick tests still look whether what they name exists.
LONG = {
    "adapters.md", "getting-started.md", "neural.md", "own-environment.md", "own-risk-measure.md",
    "real-prices.md", "report.md", "suite.md", "surviving.md",
}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p.name in LONG else p for p in CHAINS],
    ids=page_id,
)
def test_page_runs(page, tmp_path, monkeypatch, parse_only, capsys):
    monkeypatch.chdir(tmp_path)
    if page.name == "real-prices.md":
        pytest.importorskip("skfolio", reason="`make peers`")
    names = {"__name__": "__docs__"}
    printed = ""
    for block in blocks_of(page):
        if block.title:
            Path(block.title).write_text(block.text)
        elif block.language == "output":
            missing = [line for line in block.text.splitlines() if line not in printed]
            assert not missing, f"{block.where}: never printed"
        elif block.language == "python" and not block.needs:
            # Padded, so that a traceback names the line of the page.
            code = "\n" * block.line + block.text
            exec(compile(code, str(block.page), "exec"), names)
        for words in commands_in(block):
            if is_quick(words):
                assert main(words) == 0, block.where
            else:
                parse_only(words)
        printed += capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_names_of_surefoot_exist(page):
    for where, names in names_in(page):
        assert exists(names), f"{where}: there is no {'.'.join(names)}"


@pytest.mark.parametrize("folder", ["benchmarks", "tools"])
def test_imports_of_benchmarks_and_tools_exist(folder):
    """No test runs them, and they use names that are not public."""
    for script in sorted((ROOT / folder).glob("*.py")):
        for names in imports_in(script.read_text()):
            assert exists(names), f"{folder}/{script.name}: there is no {'.'.join(names)}"


def exists(names: list[str]) -> bool:
    """Whether a dotted name leads to a module, a class or what one of them has."""
    value = importlib.import_module(names[0])
    for name in names[1:]:
        if not (inspect.ismodule(value) or inspect.isclass(value)):
            return True  # an attribute of a value that only running the page would show
        if not hasattr(value, name):
            inner = f"{getattr(value, '__name__', '')}.{name}"
            if not inspect.ismodule(value) or importlib.util.find_spec(inner) is None:
                return False
            importlib.import_module(inner)
        value = getattr(value, name)
    return True


def test_a_name_that_is_gone_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Words on `surefoot.no_such`, `surefoot.envs.cliffs` and `surefoot.toml`.\n\n```python\n"
        "from surefoot.envs import gone\nsf.SSD().decide\nsf.SSD.decide(sf.no_such())\n```\n"
    )
    named = {".".join(names): exists(names) for _, names in names_in(page)}
    assert named == {
        "surefoot.no_such": False,
        "surefoot.envs.cliffs": True,
        "surefoot.envs.gone": False,
        "surefoot.SSD": True,
        "surefoot.SSD.decide": True,
    }


@pytest.mark.slow  # for the imports of those libraries alone
@pytest.mark.torch
@pytest.mark.parametrize("block", ALONE)
@pytest.mark.filterwarnings("ignore")  # of libraries that are not ours
def test_block_with_other_libraries_runs(block, tmp_path, monkeypatch):
    if block.missing:
        pytest.skip(f"{', '.join(sorted(block.missing))} not installed: `make torch peers`")
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, block.where, "exec"), {"__name__": "__docs__"})


@pytest.mark.parametrize("words", MENTIONS)
def test_command_named_in_the_text_exists(words, parse_only):
    assert words[0] in COMMANDS, f"there is no command {words[0]}"
    value = ["1"] if words[-1].startswith("--") else []  # right for paths, numbers and flags
    if len(words) > 1:  # else it is a name, not a call
        parse_only(words + value)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_is_gone_is_noticed(name, parse_only, capsys):
    first = {"reproduce": ["figures"], "train": ["CartPole-v1"]}
    words = [name, *first.get(name, [])]
    parse_only(words)
    with pytest.raises(AssertionError, match="exit code 2"):
        parse_only([*words, "--no-such-option", "1"])
    capsys.readouterr()


def test_a_command_that_is_gone_is_noticed(parse_only, capsys):
    with pytest.raises(AssertionError, match="exit code 2"):
        parse_only(["no-such-command"])
    capsys.readouterr()


def test_make_targets_exist():
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = {m for b in blocks_of(page) for words in commands_in(b, "make") for m in words}
        named |= set(re.findall(r"`make ([a-z-]+)`", page.read_text()))
        assert named <= known, f"{page_id(page)}: {named - known}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_local_links_lead_somewhere(page):
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text()):
        if "://" in link:
            continue
        target = page.parent / link if link else page
        assert target.exists(), f"{page_id(page)}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{page_id(page)}: {link}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """What Python-Markdown makes of the headings; it is not installed where only tests run."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r": ([\w/-]+\.md)$", text.split("\nnav:")[1], re.MULTILINE)
    assert sorted(named) == sorted(page_id(p) for p in PAGES if p.name != "README.md")


def test_pages_hold_no_unfinished_work():
    for page in PAGES:
        assert not re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", page.read_text()), page_id(page)
