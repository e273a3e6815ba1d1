"""Damaged, foreign and hostile files: an error that says what is wrong, never anything else."""

from __future__ import annotations

import hashlib
import json
import random

import numpy as np
import pytest
import survive_child
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

import surefoot as sf
from surefoot.agents.loading import load, resume
from surefoot.agents.neural import NeuralConfig
from surefoot.agents.tabular import TabularConfig
from surefoot.errors import InputError
from surefoot.paper.claims import Claim, read_claims, write_claims
from surefoot.runs import checksum
from surefoot.runs import format as saving
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.directory import RunDir

pytestmark = pytest.mark.wide

QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A saved agent and a checkpoint of each of two kinds, with what reads them."""
    folder, found = tmp_path_factory.mktemp("files"), []
    for name in ("tabular-stepped", "neural-gymnasium"):
        keeper = Checkpoints(folder / name, every=30)
        agent = survive_child.kinds()[name]().learn(70, checkpoints=keeper)
        agent.save(folder / f"{name}.safetensors")
        found += [(folder / f"{name}.safetensors", load), (keeper.latest(), resume)]
    return found


def told(read, what):
    """What was read, or what was told; anything else that is raised fails the test."""
    try:
        return read(what)
    except InputError as error:
        return error


def refused(path, read, data: bytes, match: str | None = None) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError, match=match) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert len(text) < 700
    return text


def test_every_flipped_bit_and_every_cut_is_noticed(files, tmp_path):
    chance = random.Random(3)
    for path, read in files:
        data = path.read_bytes()
        for _ in range(40):
            at, bit = chance.randrange(len(data)), chance.randrange(8)
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            refused(tmp_path / "x", read, bytes(damaged))
        for _ in range(20):
            refused(tmp_path / "x", read, data[: chance.randrange(len(data))])
        refused(tmp_path / "x", read, data + b"\0")
        (tmp_path / "x").write_bytes(data)
        read(tmp_path / "x")  # and what is not damaged is read


@QUIET
@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_any_bytes(files, tmp_path, data, size):
    for _, read in files[:2]:
        refused(tmp_path / "x", read, data)
        refused(tmp_path / "x", read, size.to_bytes(8, "little") + data)
        framed = json.dumps({"__metadata__": {"surefoot": data.hex()}}).encode()
        refused(tmp_path / "x", read, len(framed).to_bytes(8, "little") + framed)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "cut short"),
        (b"\xff" * 8 + b"{}", "cut short"),  # a header of 2^64 bytes
        (save({"a": np.zeros(3)}), "not a surefoot agent"),
        (save({"a": np.zeros(3)}, {"surefoot": "[]"}), "not a surefoot agent"),
        (save({"a": np.zeros(3)}, {"surefoot": "[" * 100_000}), "not a surefoot agent"),
        (save({"a": np.zeros(3)}, {"surefoot": "1" * 10_000}), "not a surefoot agent"),
        (save({"a": np.zeros(3)}, {"surefoot": '{"format": 99, "surefoot": "9.0"}'}), "format 99"),
        (save({"a": np.zeros(3)}, {"surefoot": '{"format": 1}'}), "no checksum"),
        (b"PK\x03\x04" + bytes(100), "cut short"),
    ],
)
def test_foreign_files(files, tmp_path, data, match):
    for _, read in files:
        refused(tmp_path / "x", read, data, match)


def forged(path, change) -> bytes:
    """A file with a right checksum whose content has been changed by someone who knows how."""
    contents = "agent" if path.parent.name.startswith("files") else "checkpoint"
    arrays, about = saving.read_agent(path, contents=contents)
    about = {k: v for k, v in about.items() if k != "checksum"}
    arrays, about = change(dict(arrays), json.loads(json.dumps(about)))
    kind, contents = about.pop("kind"), about.pop("contents")
    return b"".join(saving.encode(kind, arrays, about, contents))


def test_every_wrong_array_is_named(files, tmp_path):
    for path, read in files:
        contents = "agent" if read is load else "checkpoint"
        names = list(saving.read_agent(path, contents=contents)[0])
        for name in [n for n in names if not n.startswith("env.")]:
            for change in (
                lambda a, h, n=name: ({k: v for k, v in a.items() if k != n}, h),
                lambda a, h, n=name: (a | {n: np.zeros(a[n].shape, np.float16)}, h),
                lambda a, h, n=name: (a | {n: np.zeros((3, *a[n].shape, 2), a[n].dtype)}, h),
                lambda a, h, n=name: (a | {n: np.zeros((0,), a[n].dtype)}, h),
            ):
                refused(tmp_path / "x", read, forged(path, change))
        evil = forged(path, lambda a, h: (a | {"../../etc/passwd": np.zeros(1)}, h))
        refused(tmp_path / "x", read, evil, "is no name of an array")


WRONG = [
    None, -1, 2**70, 1.5, "x", "../../x", [], {}, [[]], True, {"id": "os:system"},
    {"id": "CartPole-v1", "kwargs": {"render_mode": 3}, "max_episode_steps": "x"},
    {"id": "../x", "kwargs": {}, "max_episode_steps": None}, {"generator": "os.system"},
    [{"layer": "CartPoleEnv", "attributes": {"step": "x"}}], [None, None, None],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*does not start equal episodes")
def test_wrong_headers_are_refused_or_harmless(files, tmp_path):
    chance, path = random.Random(2), tmp_path / "x"
    for source, read in files:
        contents = "agent" if read is load else "checkpoint"
        header = saving.read_agent(source, contents=contents)[1]
        config = header["config"]
        places = [{name: w} for name in header if name not in ("format", "checksum") for w in WRONG]
        settings = [{"config": config | {name: w}} for name in config for w in WRONG]
        for change in [*chance.sample(places, 50), *chance.sample(settings, 25)]:
            path.write_bytes(forged(source, lambda a, h, c=change: (a, h | c)))
            found = told(read, path)
            if isinstance(found, InputError):
                assert str(found).startswith(str(path))
            else:
                assert isinstance(found, sf.NeuralAgent | sf.TabularAgent)


@pytest.mark.parametrize("cls", [NeuralConfig, TabularConfig])
def test_every_wrong_setting_is_told(cls):
    good = json.loads(json.dumps(saving.settings(cls())))
    assert saving.configuration(cls, good, "file") == cls()
    for name in good:
        for wrong in WRONG:
            found = told(lambda g: saving.configuration(cls, g, "file"), good | {name: wrong})
            assert isinstance(found, cls) or str(found).startswith("file: ")
    for wrong in (None, [], "x", {"no_such": 1}):
        found = told(lambda g: saving.configuration(cls, g, "file"), wrong)
        assert isinstance(found, InputError)


def test_sizes_that_would_not_fit_into_memory_are_not_tried(files, tmp_path):
    for path, read in files:
        sizes = ("particles", "memory") if "tabular" in str(path) else ("particles", "replay_size")
        for field in sizes:
            data = forged(
                path, lambda a, h, f=field: (a, h | {"config": h["config"] | {f: 10**13}})
            )
            refused(tmp_path / "x", read, data)


def test_devices_and_directories_are_not_read(tmp_path):
    for path in ("/dev/zero", tmp_path, tmp_path / "missing", "a\0b"):
        with pytest.raises(InputError):
            load(path)


def test_nothing_in_a_file_is_imported(files, tmp_path):
    path, read = files[2]
    evil = {"id": "surefoot_no_such_module:Env-v0", "kwargs": {}, "max_episode_steps": None}
    data = forged(path, lambda a, h: (a, h | {"env": evil}))
    refused(tmp_path / "x", read, data, "is not registered")


# --- result files ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("polars")
    run = RunDir.create(
        tmp_path_factory.mktemp("run") / "run", {"a": 1, "b": [1, 2]}, kind="figures", seeds=[0]
    )
    run.write_table({"x": np.arange(50.0), "name": ["a", "b"] * 25})
    run.write_summary({"mean": 1.5})
    write_claims(run, [Claim("c", "a claim", "1", "2", "reproduced")])
    return run


READERS = {
    "config.json": RunDir.read_config,
    "provenance.json": RunDir.read_provenance,
    "summary.json": RunDir.read_summary,
    "claims.json": read_claims,
    "results.parquet": RunDir.read_table,
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_results_are_named_or_still_say_something(run, tmp_path, name):
    data, chance = (run.path / name).read_bytes(), random.Random(5)
    copy = RunDir(tmp_path)
    for i in range(150):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        damaged = damaged[: chance.randrange(len(data))] if i % 3 == 0 else damaged
        _read(copy, name, bytes(damaged))
    for text in (b"[" * 50_000, b"null", b"[]", b'[{"a": []}]', b"{", b"\xff\xfe", b"1e999"):
        _read(copy, name, text)


@QUIET
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
       lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=8), x, max_size=3),
       max_leaves=6))  # fmt: skip
def test_any_json_instead_of_results(tmp_path, value):
    copy = RunDir(tmp_path)
    for name in ("config.json", "provenance.json", "summary.json", "claims.json"):
        _read(copy, name, json.dumps(value).encode())


def _read(copy: RunDir, name: str, data: bytes) -> None:
    (copy.path / name).write_bytes(data)
    found = told(READERS[name], copy)
    # A flipped letter in a text is still a text; in a table nothing goes unnoticed.
    assert name in str(found) if isinstance(found, InputError) else name.endswith(".json")


def test_the_checksum_covers_every_byte(files):
    path, _ = files[0]
    data = path.read_bytes()
    at = data.index(checksum.MARK) + len(checksum.MARK)
    blank = data[:at] + checksum.BLANK + data[at + 64 :]
    assert hashlib.sha256(blank).hexdigest().encode() == data[at : at + 64]
