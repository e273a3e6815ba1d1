"""The command line: help, exit codes, one line for a mistake, TOML in and out."""

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from surefoot import __version__
from surefoot.cli import COMMANDS, main
from surefoot.cli.options import from_toml, to_toml
from surefoot.cli.reproduce import options_of
from surefoot.comparison import read_returns
from surefoot.errors import InputError
from surefoot.paper import APART, EXPERIMENTS
from surefoot.paper.risky_cliff import RiskyCliffConfig


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert main([]) == 2


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"surefoot {__version__}\n"


@pytest.mark.parametrize("name", [*EXPERIMENTS, *APART])
def test_every_experiment_has_help_with_defaults(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", name, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--out" in text
    assert "--seed" in text
    assert "default" in text


def test_config_goes_out_and_comes_back(tmp_path, capsys):
    assert stopped(["reproduce", "risky-cliff", "--trials", "7", "--print-config"]) == 0
    path = tmp_path / "own.toml"
    path.write_text(capsys.readouterr().out)
    words = ["reproduce", "risky-cliff", "--config", str(path), "--episodes", "9"]
    assert stopped([*words, "--print-config"]) == 0
    out = capsys.readouterr().out
    assert "trials = 7\n" in out
    assert "episodes = 9\n" in out
    assert to_toml(RiskyCliffConfig(trials=7)) == to_toml(
        from_toml(RiskyCliffConfig, _write(tmp_path, RiskyCliffConfig(trials=7)))
    )


def stopped(words: list[str]) -> int:
    """The exit code of what ends in SystemExit: help, --print-config, a word tyro refuses."""
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code)


def test_flags_stand_alone_or_with_a_value(capsys):
    for words, said in [
        (["--paired"], True), (["--paired", "True"], True), (["--no-paired"], False),
        (["--paired", "False"], False), (["--paired", "None"], None), ([], None),
    ]:  # fmt: skip
        assert stopped(["compare", *words, "x.csv", "--print-config"]) == 0
        out = capsys.readouterr().out
        assert tomllib.loads(out).get("paired") is said
        assert 'file = "x.csv"\n' in out


def test_tables_and_flat_names_are_both_read(tmp_path):
    path = tmp_path / "x.toml"
    for text in ("[config]\ntrials = 7\n", "trials = 7\n", 'out = "a"\n[config]\ntrials = 7\n'):
        path.write_text(text)
        made = from_toml(options_of("risky-cliff", RiskyCliffConfig), path)
        assert made.config == RiskyCliffConfig(trials=7)
    path.write_text("config = 3\n")
    with pytest.raises(InputError, match="config must be a table"):
        from_toml(options_of("risky-cliff", RiskyCliffConfig), path)


def _write(folder: Path, config: RiskyCliffConfig) -> Path:
    path = folder / "again.toml"
    path.write_text(to_toml(config))
    return path


def test_toml_mistakes_are_named(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("trails = 3\n")
    with pytest.raises(InputError, match=r"'trails'.*Did you mean 'trials'"):
        from_toml(RiskyCliffConfig, path)
    path.write_text('trials = "many"\n')
    with pytest.raises(InputError, match="it must be an int"):
        from_toml(RiskyCliffConfig, path)
    path.write_text("trials = = 3")
    with pytest.raises(InputError, match="not a TOML file"):
        from_toml(RiskyCliffConfig, path)
    with pytest.raises(InputError, match="cannot be read"):
        from_toml(RiskyCliffConfig, tmp_path / "none.toml")


@pytest.mark.wide
def test_compare_on_a_file(tmp_path, capsys):
    path = tmp_path / "returns.csv"
    path.write_text("sure,risky\n" + "".join(f"{5 + 0.01 * (i % 3)},{i % 11}\n" for i in range(60)))
    assert main(["compare", str(path), "--resamples", "99", "--out", str(tmp_path / "out")]) == 0
    assert "sure" in capsys.readouterr().out
    files = {"comparison.json", "comparison.md", "config.json", "provenance.json", "complete.json"}
    files |= {"returns.csv", "returns.parquet", "summary.json", "figures"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == files
    again = tmp_path / "out" / "returns.csv"
    assert read_returns(again).keys() == {"sure", "risky"}
    for name, column in read_returns(path).items():
        np.testing.assert_array_equal(read_returns(again)[name], column)
    assert main(["compare", str(again), "--resamples", "19", "--out", str(tmp_path / "out")]) == 0


def test_compare_leaves_other_runs_alone(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"type": "RiskyCliffConfig"}')
    path = tmp_path / "returns.csv"
    path.write_text("a,b\n1,2\n2,3\n")
    assert main(["compare", str(path), "--resamples", "19", "--out", str(tmp_path)]) == 2
    assert "holds a run of another kind" in capsys.readouterr().err


def test_installed_script_answers():
    script = Path(sys.executable).with_name("surefoot")
    done = subprocess.run([script, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown command 'nothing'" in done.stderr


def test_compare_reads_files_as_they_are(tmp_path, capsys):
    path = tmp_path / "prices.csv"
    rng = np.random.default_rng(0)
    prices = 100 * np.exp(np.cumsum(rng.normal(0, 0.02, (60, 2)), axis=0))
    days = np.arange("2020-01-01", "2020-03-01", dtype="M8[D]")
    pairs = zip(days, prices, strict=True)
    rows = [f"{day};{a:.4f};{b:.4f}".replace(".", ",") for day, (a, b) in pairs]
    rows[9] = f"{days[9]};;{prices[9, 1]:.4f}".replace(".", ",")
    path.write_text("\n".join(["date;a;b", *rows]))
    words = ["compare", str(path), "--resamples", "99"]
    assert main(words) == 2
    assert "look like prices" in capsys.readouterr().err
    assert main([*words, "--prices", "--returns"]) == 2
    assert "not both" in capsys.readouterr().err
    assert main([*words, "--prices"]) == 2
    assert "row 11, column 'a' is missing" in capsys.readouterr().err
    assert main([*words, "--prices", "--missing", "pair"]) == 0
    printed = capsys.readouterr().out
    assert "2 of 59 rows were left out" in printed
    assert "2020-01-01 to 2020-02-29" in printed
    assert "decimal comma" in printed
    assert "max drawdown" in printed
    assert main([*words, "--returns", "--missing", "drop", "--index", "date"]) == 0
    assert main([*words, "--index", "dat"]) == 2
    assert "Did you mean 'date'" in capsys.readouterr().err
