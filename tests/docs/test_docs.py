"""Every Python block of README and docs runs as it stands, and local links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("[!_]*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


def test_there_are_blocks_to_run():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS)
def test_python_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {"__name__": "__docs__"}
    exec(compile(block, "docs block", "exec"), before)
    assert len(before) > 1  # it defined or imported something


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_local_links_exist(page):
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text())
    for link in links:
        if "://" not in link and not link.startswith("assets/results/"):  # copied by `make docs`
            assert (page.parent / link).exists(), f"{page.name}: {link}"
