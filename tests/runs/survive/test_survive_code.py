"""Nothing surefoot reads from a file can become code."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import surefoot

SOURCES = sorted(Path(surefoot.__file__).parent.rglob("*.py"))
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "marshal",
    "shelve",
    "joblib.load",
}
CALLS = {"eval", "exec", "compile", "__import__"}


def offences(source: str) -> list[str]:
    """Where a text of Python could make code of data."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or "", *(f"{node.module}.{a.name}" for a in node.names)}
            found += [n for n in names if n in MODULES or n.split(".")[0] in MODULES]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += [node.func.id] if node.func.id in CALLS else []
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from pickle import loads", "import cloudpickle as c", "eval('1')",
        "exec(data)", "np.load(f, allow_pickle=True)", "from joblib import load",
        "x = __import__(name)", "import marshal",
    ],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(text):
    assert offences(text)


def test_methods_and_words_are_not_offences():
    assert not offences("model.eval()\n'pickle'\nre.compile('x')\nimport json")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_no_source_of_the_package_can(path):
    assert not offences(path.read_text())


def test_nor_any_module_that_is_loaded_under_its_name():
    loaded = {
        Path(module.__file__).resolve()
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == "surefoot" and getattr(module, "__file__", None)
    }
    assert loaded <= {path.resolve() for path in SOURCES}
    assert len(loaded) > 30
