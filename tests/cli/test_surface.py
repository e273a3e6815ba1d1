"""The public surface since the last release: what changes is named in the changelog."""

import re
from pathlib import Path

import pytest
from surface import surface

import surefoot as sf

HERE = Path(__file__).parent
RELEASED = max(HERE.glob("surface-*.txt"))  # of the last release
CHANGES = (HERE.parents[1] / "CHANGELOG.md").read_text().split("\n## ")[1]


def released() -> dict[str, str]:
    rows = (line.partition(":") for line in RELEASED.read_text().splitlines())
    return {name: words.strip() for name, _, words in rows}


def unnamed(before: dict[str, str], after: dict[str, str], text: str) -> list[str]:
    """What is new, gone or called otherwise, and stands nowhere in the text as code."""
    code = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    missing = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        words = set(before.get(name, "").split()) ^ set(after.get(name, "").split())
        named = name.removeprefix("surefoot ") in code or (words and words <= code)
        if not named:
            missing.append(name)
    return missing


def test_every_change_of_the_surface_is_in_the_changelog():
    assert sf.__version__.startswith(CHANGES.split()[0])
    missing = unnamed(released(), surface(), CHANGES)
    assert not missing, f"changed since {RELEASED.stem}, and not in CHANGELOG.md: {missing}"


@pytest.mark.parametrize(
    ("after", "text", "missing"),
    [
        ({"compare": "returns seed", "cvar": "z"}, "", []),
        ({"compare": "returns seed"}, "", ["cvar"]),  # gone
        ({"compare": "returns seed"}, "`cvar(z)` is gone", []),
        ({"compare": "returns", "cvar": "z"}, "`compare` is quick", []),
        ({"compare": "returns level", "cvar": "z"}, "compare, `seed`", ["compare"]),
        ({"compare": "returns level", "cvar": "z"}, "`level`, `seed`", []),
        ({"compare": "returns seed", "cvar": "z", "surefoot fly": ""}, "", ["surefoot fly"]),
    ],
)
def test_a_change_without_an_entry_is_noticed(after, text, missing):
    assert unnamed({"compare": "returns seed", "cvar": "z"}, after, text) == missing
