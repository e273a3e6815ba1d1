"""Nothing that lies in a run directory or in the working directory is run as code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import TABLE

import surefoot as sf
from surefoot.cli import main

SCRIPT = Path(sys.executable).with_name("surefoot")
MARKER = "from pathlib import Path\nPath({!r}).touch()\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory with a module that leaves a trace when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    monkeypatch.delitem(sys.modules, "evilmod", raising=False)
    (tmp_path / "evilmod.py").write_text(MARKER.format(str(tmp_path / "imported")))
    yield tmp_path
    sys.modules.pop("evilmod", None)


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    path = tmp_path_factory.mktemp("agent") / "agent.safetensors"
    sf.TabularAgent("surefoot/RiskyCliff-v0", **TABLE).save(path)
    return path


@pytest.mark.parametrize("command", ["evaluate", "explain", "report"])
def test_a_run_directory_imports_nothing(command, place, agent, capsys):
    run = place / "run"
    run.mkdir()
    (run / "agent.safetensors").write_bytes(agent.read_bytes())
    config = {"kind": "training", "agent": "tabular", "env": "evilmod:Evil-v0", "env_options": {}}
    (run / "config.json").write_text(json.dumps(config))
    code = main([command, "run"])
    assert not (place / "imported").exists()
    assert str(place) not in sys.path
    if command != "report":  # the page is made, of what is there
        assert code == 2
        assert "name it by --env" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "sweep"])
def test_a_configuration_file_imports_nothing(command, place, capsys):
    content = {"train": 'env = "evilmod:Evil-v0"', "sweep": '[base]\nenv = "evilmod:Evil-v0"'}
    (place / "x.toml").write_text(content[command])
    assert main([command, "--config", "x.toml"]) == 2
    assert "'evilmod:Evil-v0' is named by a file" in capsys.readouterr().err
    assert not (place / "imported").exists()


WRAPPED = 'env = "CartPole-v1"\nsteps = 9\nwrapper = ["evilmod:Evil"]\n'


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("train --config x.toml", WRAPPED),
        ("train --compiled False --config x.toml", 'env = "evilmod:Evil-v0"'),
        ("sweep --base x.toml", WRAPPED),
        ("sweep --config x.toml", f"[base]\n{WRAPPED}"),
        ("sweep --config x.toml", f"[base]\n{WRAPPED}".replace("[base]", "[base]\nagent='neural'")),
        (
            "sweep --config x.toml",
            "[base]\nenv = 'CartPole-v1'\nsteps = 9\n[grid]\nwrapper = [['evilmod:Evil']]",
        ),
    ],
)
def test_a_wrapper_that_a_file_names_is_not_imported(words, content, place, capsys):
    (place / "x.toml").write_text(content)
    assert main([*words.split(), "--out", "run"]) == 2
    assert "is named by a file, and a file imports nothing" in capsys.readouterr().err
    assert not (place / "imported").exists()
    assert not (place / "run").exists()


@pytest.mark.parametrize("command", ["train", "sweep", "explain"])
def test_arguments_of_an_environment_are_none_of_ours(command, place, agent, capsys):
    """`wrappers` names no wrapper: it is an argument that the environment does not know."""
    run = place / "run"
    run.mkdir()
    (run / "agent.safetensors").write_bytes(agent.read_bytes())
    env, wrappers = "surefoot/RiskyCliff-v0", ["evilmod:Evil"]
    config = {"kind": "training", "env": env, "env_options": {"wrappers": wrappers}}
    (run / "config.json").write_text(json.dumps(config))
    (place / "train.toml").write_text(f'env_option = ["wrappers={wrappers}"]\n')
    (place / "sweep.toml").write_text(f'[base]\nsteps = 9\n"env.wrappers" = {wrappers}\n')
    words = {
        "train": ["train", env, "--config", "train.toml", "--out", "new"],
        "sweep": ["sweep", "--env", env, "--config", "sweep.toml", "--out", "new"],
        "explain": ["explain", "run", "--env", env],
    }
    assert main(words[command]) == 2
    assert "unknown argument 'wrappers'" in capsys.readouterr().err
    assert not (place / "imported").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["train", "evilmod:Evil-v0"],
        ["evaluate", "{agent}", "--env", "evilmod:Evil-v0"],
        ["explain", "{agent}", "--env=evilmod:Evil-v0"],
        ["sweep", "--steps", "9", "--grid", "env=surefoot/CliffWalk-v0,evilmod:Evil-v0"],
    ],
)
def test_what_was_typed_is_imported_from_the_working_directory(words, place, agent, capsys):
    assert main([word.format(agent=agent) for word in words]) == 2  # it registers nothing
    assert (place / "imported").exists()
    assert "Evil" in capsys.readouterr().err


@pytest.mark.parametrize("own", [pytest.param(False, marks=pytest.mark.slow), True])
def test_plugins_in_the_working_directory_are_not_run(own, tmp_path):
    """JAX runs whatever package it finds under `jax_plugins`; also where a module was typed."""
    (tmp_path / "jax_plugins" / "evil").mkdir(parents=True)
    plugin = tmp_path / "jax_plugins" / "evil" / "__init__.py"
    plugin.write_text(MARKER.format(str(tmp_path / "plugged")))
    (tmp_path / "typed.py").write_text(MARKER.format(str(tmp_path / "imported")))
    (tmp_path / "r.csv").write_text("sure,risky\n2,1\n2,3\n")
    words = ["train", "typed:Own-v0"] if own else ["explain", "--returns", "r.csv"]
    done = subprocess.run([SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == (2 if own else 0), done.stderr
    assert not (tmp_path / "plugged").exists()
    assert (tmp_path / "imported").exists() == own
