"""The scripts of `examples/` do what they say, each in a directory of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOWN = {
    "compare_strategies": ([], ["index dominates fund: ", "fund dominates index: contradicted"]),
    "own_environment": ([], ["action 0: of the actions that are worth the same, it is the surest"]),
    "sb3_ensemble": (
        ["--steps", "300", "--models", "2", "--episodes", "2"],
        ["at the start: action", "ssd: return", "greedy: return"],
    ),
    "suite_entry": ([], ["insurance", "not all answered rightly"]),
    "sweep_on_a_cluster": (
        ["--engine", "serial", "--steps", "300", "--seeds", "2"],
        ["behaviour=ssd does better than behaviour=greedy with probability"],
    ),
}


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_does_what_it_says(name, tmp_path):
    if name == "sb3_ensemble":
        pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: make torch peers")
    words, expected = SHOWN[name]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *words], cwd=tmp_path, text=True,
        capture_output=True, timeout=900, env={**os.environ, "PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in expected:
        assert text in done.stdout
