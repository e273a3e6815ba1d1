"""`import surefoot`: quick, whole, typed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot as sf

LIGHT = ("compare", "evaluate", "demo", "report", "explain", "reproduce")
HEAVY = ("jax", "optax", "matplotlib", "polars", "plotly", "scipy", "torch")


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.wide
def test_importing_and_help_bring_nothing_heavy():
    """One process for all: what comes, comes with the first words after which it is there."""
    words = [["--help"], ["--version"], *([c, "--help"] for c in LIGHT)]
    code = f"""
import contextlib, io, sys
import surefoot
from surefoot.cli import main
for words in [[], *{words}]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        if words:
            main(words)
    print(*words, *[m for m in {HEAVY} if m in sys.modules])
import gymnasium
print(gymnasium.make("surefoot/RiskyCliff-v0").spec.id)
import surefoot.comparison, surefoot.cli.compare
print(surefoot.compare.__name__, callable(surefoot.compare))"""
    wanted = [" ".join(said) for said in [[], *words]]
    # `surefoot.compare` stays the function, whatever is imported.
    assert fresh(code).splitlines() == [*wanted, "surefoot/RiskyCliff-v0", "compare True"]


def test_every_public_name_is_there_and_the_three_lists_agree():
    for name in sf.__all__:
        assert getattr(sf, name) is not None
    assert dir(sf) == sorted(sf.__all__)
    tree = ast.parse(Path(sf.__file__).read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: node.module
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen.keys() | {"__version__"} == set(sf.__all__)
    home = {name: module for module, names in sf._NAMES.items() for name in names.split()}
    assert home.keys() | set(sf._MODULES) | {"__version__"} == set(sf.__all__)
    for name, module in home.items():
        assert seen[name] == f"surefoot.{module}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Agent'"):
        sf.Agent  # noqa: B018


USERS_SCRIPT = """
import numpy as np
import surefoot as sf

agent = sf.NeuralAgent("CartPole-v1", behaviour=sf.SSD(), seed=0)
agent.learn(50_000, progress=True, checkpoints=sf.Checkpoints("run"))
action = agent.predict(np.zeros(4))
z: np.ndarray = agent.return_distribution(np.zeros(4))
told: sf.Explanation = agent.explain(np.zeros(4))
who: sf.DecidedBy = told.decided_by
agent.save("agent.safetensors")
again = sf.load("agent.safetensors")
comparison: sf.Comparison = sf.compare({"a": [1.0, 2.0], "b": [2.0, 3.0]})
names: tuple[str, ...] = comparison.dominant()
actor = sf.adapters.act(agent, policy=sf.CVaR(0.25))
found = sf.evaluate(agent, ("ssd", "greedy"), episodes=10)
table: sf.TabularAgent = sf.TabularAgent("FrozenLake-v1", behaviour="cvar:0.25").learn(100)
sf.train(sf.Training("CartPole-v1"), "run")
"""
SLIPS = {
    'sf.NeuralAgentt("CartPole-v1")': "has no attribute",
    'agent.learn("many")': "arg-type",
    "sf.SSD(tolerence=0.1)": "call-arg",
    "number: int = comparison.dominant()": "assignment",
}


@pytest.mark.slow
def test_a_user_s_script_is_type_checked(tmp_path):
    """mypy --strict sees the public names with their types: no error but the slips meant."""
    script = tmp_path / "script.py"
    script.write_text(USERS_SCRIPT + "\n".join(SLIPS) + "\n")
    root = Path(sf.__file__).parents[2]
    words = ["--strict", "--config-file", "/dev/null", "--follow-imports", "silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "--cache-dir", root / ".cache" / "mypy", script],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(told) == len(SLIPS), done.stdout + done.stderr
    first = 1 + USERS_SCRIPT.count("\n")
    for number, (line, word) in enumerate(zip(told, SLIPS.values(), strict=True)):
        assert line.startswith(f"script.py:{first + number}:")
        assert word in line
