"""Run directories: what is written, what survives damage and crashes, what is refused."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper.claims import Claim, read_claims, write_claims
from surefoot.runs import tables
from surefoot.runs.directory import RunDir
from surefoot.runs.files import read_json
from surefoot.runs.provenance import portable_command


@dataclass(frozen=True)
class Greedy:
    explore: float = 0.1


@dataclass(frozen=True)
class Ssd:
    explore: float = 0.1


@dataclass(frozen=True)
class Config:
    trials: int = 50
    behaviour: tuple[Greedy | Ssd, ...] = (Greedy(), Ssd())
    temperatures: tuple[float, ...] = (1.0, 0.25)
    names: dict[str, float] = field(default_factory=lambda: {"b": 1.0, "a": float("inf")})


COLUMNS = {
    "trial": np.arange(6),
    "policy": ["ssd", "greedy", "ssd", "céli", "", "ssd"],
    "value": np.array([0.1, np.nan, -np.inf, -0.0, 1e-308, 3.0]),
    "share": np.linspace(0, 1, 6, dtype=np.float32),
    "fell": np.array([True, False, True, True, False, False]),
    "maybe": [1.5, None, 2.5, None, None, 3.5],
}
CLAIM = Claim("a", "5.4", "x", "y", "reproduced", intervals={"s": Interval(1.0, 0.5, 1.5, 9)})


@pytest.fixture
def run(tmp_path) -> RunDir:
    return RunDir.create(
        tmp_path / "run", Config(), kind="figures", seeds=0, command=["surefoot", "demo"]
    )


# --- run directories -----------------------------------------------------------------------


def test_the_configuration_is_written_with_its_types(run):
    config = run.read_config()
    assert config == {
        "kind": "figures",
        "trials": 50,
        "behaviour": [{"type": "Greedy", "explore": 0.1}, {"type": "Ssd", "explore": 0.1}],
        "temperatures": [1.0, 0.25],
        "names": {"a": "inf", "b": 1.0},
    }


def test_provenance_says_versions_and_nothing_of_the_machine(tmp_path):
    home = os.path.expanduser("~")
    command = [
        f"{home}/bin/surefoot", "reproduce", "--out", f"{home}/runs/x", f"--config={home}/a.toml",
        "--address", "ray://head.example.org:10001", "--address=head", "--note", f"see {home}",
        str(Path.cwd() / "runs" / "y"), "someone@somewhere", "10.1.2.3:6379", "../../z", "--seed=3",
    ]  # fmt: skip
    run = RunDir.create(
        tmp_path / "r", Config(), kind="figures", seeds={"trials": [0, 1]}, command=command
    )
    content = run.read_provenance()
    assert content["command"] == [
        "surefoot", "reproduce", "--out", "x", "--config=a.toml",
        "--address", "ADDRESS", "--address=ADDRESS", "--note", "see ~",
        "runs/y", "ADDRESS", "ADDRESS", "z", "--seed=3",
    ]  # fmt: skip
    assert content["seeds"] == {"trials": [0, 1]}
    assert {"surefoot", "python", "jax", "numpy", "gymnasium"} <= content["versions"].keys()
    assert content["versions"]["numpy"] == np.__version__
    text = (run.path / "provenance.json").read_text()
    for private in (home, str(tmp_path), socket.gethostname(), "head", "somewhere"):
        assert private not in text
    assert not re.search(rf"\b{re.escape(getpass.getuser())}\b", text)


def test_the_command_of_a_module_is_the_program():
    assert portable_command(["/x/site-packages/surefoot/__main__.py", "demo"]) == [
        "surefoot",
        "demo",
    ]
    assert portable_command(["surefoot", "--engine", "ray", "--address", "auto"])[-1] == "auto"
    assert portable_command([]) == []


def test_a_run_says_its_kind_and_one_of_0_1_0_is_refused_by_name(run):
    assert run.kind == "figures"
    with pytest.raises(InputError, match="Did you mean 'sweep'"):
        RunDir.create(run.path, Config(), kind="sweeps", seeds=0, existing="resume")
    with pytest.raises(InputError, match="kind was 'figures', is 'sweep'"):
        RunDir.create(run.path, Config(), kind="sweep", seeds=0, existing="resume")
    (run.path / "config.json").write_text('{"trials": 50, "type": "Config"}')
    (run.path / "provenance.json").write_text('{"versions": {"surefoot": "0.1.0"}}')
    with pytest.raises(InputError, match=r"cannot be resumed: .* written by surefoot 0\.1\.0"):
        RunDir.create(run.path, Config(), kind="figures", seeds=0, existing="resume")
    with pytest.raises(InputError, match=r"written by surefoot 0\.1\.0, does not say what kind"):
        assert RunDir.open(run.path).kind


def test_an_existing_run_is_not_touched_unless_asked(run):
    run.write_summary({"a": 1})
    with pytest.raises(InputError, match="already holds a run: resume it, overwrite it"):
        RunDir.create(run.path, Config(), kind="figures", seeds=0)
    assert run.read_summary() == {"a": 1}


def test_resuming_asks_for_the_same_configuration(run):
    run.write_table(COLUMNS, "part-1")
    again = RunDir.create(run.path, Config(), kind="figures", seeds=0, existing="resume")
    assert again.tables == ["part-1"]
    changed = replace(Config(), trials=60, behaviour=(Greedy(), Greedy()))
    with pytest.raises(InputError) as caught:
        RunDir.create(run.path, changed, kind="figures", seeds=0, existing="resume")
    assert "trials was 50, is 60" in str(caught.value)
    assert "behaviour was" in str(caught.value)


def test_resuming_nothing_begins(tmp_path):
    run = RunDir.create(tmp_path / "a" / "b", Config(), kind="figures", seeds=0, existing="resume")
    assert run.read_config()["trials"] == 50


def test_resuming_with_other_words_or_versions_is_recorded_once(run):
    for _ in range(2):
        RunDir.create(
            run.path,
            Config(),
            kind="figures",
            seeds=0,
            existing="resume",
            command=["surefoot", "--resume"],
        )
    RunDir.create(
        run.path, Config(), kind="figures", seeds=0, existing="resume", command=["surefoot", "demo"]
    )
    content = run.read_provenance()
    assert content["command"] == ["surefoot", "demo"]
    assert [entry["command"] for entry in content["resumed"]] == [["surefoot", "--resume"]]


def test_a_run_killed_after_its_first_file_can_be_resumed(run):
    (run.path / "provenance.json").unlink()
    (run.path / ".summary.json.abc.tmp").write_bytes(b"half")
    RunDir.create(run.path, Config(), kind="figures", seeds=7, existing="resume")
    assert run.read_provenance()["seeds"] == 7
    assert not list(run.path.glob(".*"))


def test_overwriting_removes_the_run_and_nothing_else(run):
    run.write_table(COLUMNS)
    run.write_summary({})
    write_claims(run, [CLAIM])
    run.write_figure("f", b"png", b"svg")
    run.mark_complete()
    (run.path / "notes.txt").write_text("mine")
    new = RunDir.create(run.path, Config(trials=3), kind="figures", seeds=0, existing="overwrite")
    assert new.read_config()["trials"] == 3
    assert sorted(os.listdir(run.path)) == ["config.json", "notes.txt", "provenance.json"]
    assert not new.complete


@pytest.mark.parametrize("existing", ["error", "resume", "overwrite"])
def test_a_directory_of_other_things_is_never_touched(tmp_path, existing):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        RunDir.create(tmp_path, Config(), kind="figures", seeds=0, existing=existing)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_configuration_that_cannot_be_stored_makes_no_directory(tmp_path):
    with pytest.raises(InputError, match=r"config\.f is a function"):
        RunDir.create(
            tmp_path / "run", {"f": test_resuming_nothing_begins}, kind="figures", seeds=0
        )
    with pytest.raises(InputError, match="Did you mean 'resume'"):
        RunDir.create(tmp_path / "run", Config(), kind="figures", seeds=0, existing="resum")
    assert not (tmp_path / "run").exists()


def test_opening_what_is_no_run(tmp_path, run):
    with pytest.raises(InputError, match="no such run directory"):
        RunDir.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no config\.json"):
        RunDir.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        RunDir.create(tmp_path / "file", Config(), kind="figures", seeds=0)
    opened = RunDir.open(str(run.path))
    for read in (RunDir.read_summary, read_claims):
        with pytest.raises(InputError, match="there is no such file"):
            read(opened)
    with pytest.raises(InputError, match=r"unknown table in .* 'results'"):
        opened.read_table()
    (run.path / "config.json").write_text("[1]")
    with pytest.raises(InputError, match="does not hold a JSON object"):
        opened.read_config()


def test_summary_claims_figures_and_completion(run):
    run.write_summary({"b": {"x": float("nan")}, "a": 0.1 + 0.2})
    assert run.read_summary() == {"a": 0.30000000000000004, "b": {"x": None}}
    write_claims(run, [CLAIM])
    assert read_claims(run) == (CLAIM,)
    assert (run.path / "claims.md").read_text().startswith("1 claim: 1 reproduced.")
    run.write_figure("steps", b"png", b"svg")
    assert run.figures == ["steps"]
    assert (run.path / "figures" / "steps.svg").read_bytes() == b"svg"
    assert not run.complete
    run.mark_complete()
    assert run.complete
    assert read_json(run.path / "complete.json")["figures"] == ["steps"]


# --- tables --------------------------------------------------------------------------------


def test_a_table_comes_back_bit_for_bit(run):
    run.write_table(COLUMNS)
    frame = run.read_table()
    assert frame.columns == list(COLUMNS)
    assert frame["value"].to_numpy().tobytes() == COLUMNS["value"].tobytes()
    assert frame["share"].dtype == pl.Float32
    assert frame["policy"].to_list() == COLUMNS["policy"]
    assert frame["maybe"].to_list() == COLUMNS["maybe"]
    assert run.tables == ["results"]


def test_equal_content_gives_equal_files(run, tmp_path):
    other = RunDir.create(
        tmp_path / "other", Config(), kind="figures", seeds=0, command=["surefoot", "demo"]
    )
    for each in (run, other):
        each.write_table(COLUMNS)
        each.write_summary({"x": [1.5]})
        write_claims(each, [CLAIM])
        each.mark_complete()
    names = sorted(os.listdir(run.path))
    assert names == sorted(os.listdir(other.path))
    for name in names:
        assert (run.path / name).read_bytes() == (other.path / name).read_bytes(), name


class OnDevice:
    """As arrays of JAX and torch have it."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


def test_frames_and_device_arrays_are_tables_too(run):
    run.write_table(pl.DataFrame({"a": [1, 2]}), "frame")
    run.write_table({"z": OnDevice()}, "device")
    assert run.read_table("frame")["a"].to_list() == [1, 2]
    assert run.read_table("device")["z"].to_list() == [0.0, 1.0, 2.0]
    run.write_table({"none": np.zeros(0)}, "empty")
    assert run.read_table("empty").height == 0


INTACT = tables.encode(COLUMNS, "t")


@settings(max_examples=300)
@given(st.data())
def test_damage_never_reaches_the_parser(data):
    # Polars reads about half of all bit-flipped files without an error and aborts on some.
    content = bytearray(INTACT)
    for position in data.draw(st.sets(st.integers(0, len(INTACT) - 1), min_size=1, max_size=3)):
        content[position] ^= 1 << data.draw(st.integers(0, 7))
    kept = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    with pytest.raises(InputError, match=r"^t.parquet: (is|has) "):
        tables.decode(bytes(content[:kept]), "t.parquet")


@pytest.mark.parametrize("change", [lambda b: b + b"x", lambda b: b"", lambda b: b[:-1]])
def test_longer_and_shorter_files_are_damaged(change):
    with pytest.raises(InputError, match=r"^t.parquet: "):
        tables.decode(change(INTACT), "t.parquet")


def test_any_parquet_reader_reads_a_table(run):
    path = run.write_table(COLUMNS)
    assert pl.read_parquet(path).equals(run.read_table())


def test_the_mark_of_the_checksum_cannot_be_forged_by_accident(run):
    with pytest.raises(InputError, match="is reserved for the checksum"):
        run.write_table({tables.MARK.decode(): [1]})


def test_a_damaged_table_is_refused(run):
    path = run.write_table({"x": np.arange(1000.0)})
    content = bytearray(path.read_bytes())
    content[200] ^= 4
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"results\.parquet: is damaged"):
        run.read_table()
    pl.DataFrame({"x": [1]}).write_parquet(path)
    with pytest.raises(InputError, match="not written by surefoot"):
        run.read_table()
    with pytest.raises(InputError, match="unknown table"):
        run.read_table("other")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "table results has no columns"),
        ({"a": [1], "b": [1, 2]}, r"columns differ in length \(a: 1, b: 2\)"),
        ({"a": np.zeros((2, 2))}, r"column 'a' has shape \(2, 2\)"),
        ({"a": [1.0, "x", None]}, "column 'a' mixes kinds"),
        ({"a": np.array(["2020-01-01"], "datetime64[D]")}, "column 'a' holds Date"),
    ],
)
def test_columns_that_are_none_are_named(run, columns, message):
    with pytest.raises(InputError, match=message):
        run.write_table(columns)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 200, "a\\b", "a\n"])
def test_names_cannot_leave_the_directory(run, name):
    with pytest.raises(InputError, match="name"):
        run.write_table(COLUMNS, name)
    with pytest.raises(InputError, match="name"):
        run.write_figure(name, b"", b"")
    with pytest.raises(InputError, match="name"):
        run.read_table(name)


def test_without_polars_the_error_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match=r"install surefoot\[report\]"):
        run.write_table(COLUMNS)
