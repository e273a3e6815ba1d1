"""The command line: help, exit codes, one line for a mistake, TOML in and out."""

import subprocess
import sys
from pathlib import Path

import pytest

from surefoot import __version__
from surefoot.cli import COMMANDS, main
from surefoot.cli.options import from_toml, to_toml
from surefoot.errors import InputError
from surefoot.experiments.everything import APART, EXPERIMENTS
from surefoot.experiments.risky_cliff import Config


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert main([]) == 2


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"surefoot {__version__}\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trian"], "unknown command 'trian'"),
        (["reproduce", "risky-clif"], "unknown experiment 'risky-clif'"),
        (["reproduce", "risky-cliff", "--losses", "wfg-mixture"], "Did you mean 'wgf-mixture'?"),
        (["reproduce", "risky-cliff", "--policies", "sdd"], "unknown policy 'sdd'"),
        (["reproduce", "all", "--only", "cliff"], "unknown experiment 'cliff'"),
        (["compare"], "name a CSV or Parquet file"),
        (["compare", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, line, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("surefoot: ")
    assert line in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


@pytest.mark.parametrize("name", [*EXPERIMENTS, *APART])
def test_every_experiment_has_help_with_defaults(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", name, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--out" in text
    assert "--seed" in text
    assert "default" in text


def test_wrong_type_is_refused():
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "risky-cliff", "--trials", "many"])
    assert stop.value.code == 2


def test_config_goes_out_and_comes_back(tmp_path, capsys):
    assert main(["reproduce", "risky-cliff", "--trials", "7", "--print-config", "True"]) == 0
    path = tmp_path / "own.toml"
    path.write_text(capsys.readouterr().out)
    assert from_toml(Config, path) == Config(trials=7)
    path.write_text("[config]\n" + path.read_text())
    words = ["reproduce", "risky-cliff", "--config", str(path), "--episodes", "9"]
    assert main([*words, "--print-config", "True"]) == 0
    out = capsys.readouterr().out
    assert "trials = 7\n" in out
    assert "episodes = 9\n" in out
    assert to_toml(Config(trials=7)) == to_toml(
        from_toml(Config, _write(tmp_path, Config(trials=7)))
    )


def _write(folder: Path, config: Config) -> Path:
    path = folder / "again.toml"
    path.write_text(to_toml(config))
    return path


def test_toml_mistakes_are_named(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("trails = 3\n")
    with pytest.raises(InputError, match=r"'trails'.*Did you mean 'trials'"):
        from_toml(Config, path)
    path.write_text('trials = "many"\n')
    with pytest.raises(InputError, match="a int is wanted"):
        from_toml(Config, path)
    path.write_text("trials = = 3")
    with pytest.raises(InputError, match="not a TOML file"):
        from_toml(Config, path)
    with pytest.raises(InputError, match="cannot be read"):
        from_toml(Config, tmp_path / "none.toml")


def test_compare_on_a_file(tmp_path, capsys):
    path = tmp_path / "returns.csv"
    path.write_text("sure,risky\n" + "".join(f"{5 + 0.01 * (i % 3)},{i % 11}\n" for i in range(60)))
    assert main(["compare", str(path), "--resamples", "99", "--out", str(tmp_path / "out")]) == 0
    assert "sure" in capsys.readouterr().out
    assert (tmp_path / "out" / "comparison.json").exists()


def test_installed_script_answers():
    script = Path(sys.executable).with_name("surefoot")
    done = subprocess.run([script, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown command 'nothing'" in done.stderr
