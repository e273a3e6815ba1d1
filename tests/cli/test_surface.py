"""The public surface since the last release: what changes is named in the changelog."""

import re
import tomllib
from pathlib import Path

import pytest
from surface import surface

import surefoot as sf

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHANGES = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]


def number(path: Path) -> list[int]:
    return [int(part) for part in path.stem.removeprefix("surface-").split(".")]


RELEASED = max(HERE.glob("surface-*.txt"), key=number)  # of the last release


def released() -> dict[str, str]:
    rows = (line.partition(":") for line in RELEASED.read_text().splitlines())
    return {name: words.strip() for name, _, words in rows}


def unnamed(before: dict[str, str], after: dict[str, str], text: str) -> list[str]:
    """What is new, gone or called otherwise, and stands nowhere in the text as code."""
    code = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    written = {name.partition(".")[0] for name in before if "." in name}  # 0.1.0 has no methods
    missing = []
    for name in sorted(before.keys() | after.keys()):
        owner, _, method = name.partition(".")
        if before.get(name) == after.get(name) or (method and owner not in written):
            continue
        words = set(before.get(name, "").split()) ^ set(after.get(name, "").split())
        short = method or name.removeprefix("surefoot ")
        named = short in code or (words and words <= code)
        if not named:
            missing.append(name)
    return missing


def test_every_change_of_the_surface_is_in_the_changelog():
    assert sf.__version__.startswith(CHANGES.split()[0])
    missing = unnamed(released(), surface(), CHANGES)
    assert not missing, f"changed since {RELEASED.stem}, and not in CHANGELOG.md: {missing}"


def test_the_version_is_the_same_everywhere():
    """And a release is one in every respect: CONTRIBUTING.md says what belongs to it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    (own,) = (package["version"] for package in locked if package["name"] == "surefoot")
    assert project["version"] == own == sf.__version__
    release, _, unfinished = sf.__version__.partition(".dev")
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {release}\n" in citation
    if not unfinished:
        said, date = CHANGES.splitlines()[0].split()
        assert said == release
        assert f"\ndate-released: {date.strip('()')}\n" in citation
        assert RELEASED.stem == f"surface-{release}"


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


def test_methods_are_part_of_the_surface():
    now = surface()
    assert now["TabularAgent.learn"].startswith("self total_timesteps callback progress")
    assert {"NeuralAgent.load", "Comparison.verdict", "SSD.decide", "Training.key"} <= now.keys()
    assert not [name for name in now if "._" in name]
    gone = {name: words for name, words in now.items() if name != "TabularAgent.explain"}
    assert unnamed(now, gone, "") == ["TabularAgent.explain"]
    assert unnamed(now, gone, "`TabularAgent.explain` is gone") == []
