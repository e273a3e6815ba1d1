"""Bytes on disk, whole or not at all, and the JSON dialect of all our files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from enum import Enum

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.stats import Interval
from surefoot.errors import InputError, RunError
from surefoot.runs.files import atomic_write, discard_temporaries, json_bytes, plain, read_json


def test_a_write_replaces_whole_files_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "file"
    atomic_write(path, b"one")
    atomic_write(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["file"]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic_write(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write .*file: No space left on device"):
        atomic_write(path, b"new")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_only_a_file_gives_way_to_a_file(tmp_path):
    """`--out /dev/null` of somebody who may do everything must not replace the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="pipe: is not a file, and is not replaced by one"):
        atomic_write(pipe, b"x")
    assert pipe.is_fifo()
    with pytest.raises(RunError, match=r"cannot write \.: it is a directory"):
        atomic_write(".", b"x")


def test_a_directory_in_the_way_is_a_clear_error(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*taken"):
        atomic_write(tmp_path / "taken", b"x")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match=r"cannot write .*inner"):
        atomic_write(tmp_path / "file" / "inner", b"x")
    assert sorted(os.listdir(tmp_path)) == ["file", "taken"]


KILLED = """
import sys
from surefoot.runs.files import atomic_write
print("ready", flush=True)
while True:
    for letter in b"ab":
        atomic_write(sys.argv[1], bytes([letter]) * 300_000)
"""


@pytest.mark.wide
def test_a_killed_writer_leaves_one_version_or_the_other(tmp_path):
    path = tmp_path / "file"
    for pause in (0.001, 0.013, 0.029, 0.051):
        writer = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        while not path.exists():
            time.sleep(0.001)
        time.sleep(pause)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert path.read_bytes() in (b"a" * 300_000, b"b" * 300_000)
        discard_temporaries(tmp_path)
        assert os.listdir(tmp_path) == ["file"]


class Colour(Enum):
    RED = "red"


def test_plain_knows_what_experiments_hold():
    value = {
        2: (1, 2.5, None, True),
        "nan": [np.nan, np.inf, -np.inf, np.float32(0.5), np.int64(3), np.bool_(False)],
        "array": np.array([[1, 2], [3, 4]]),
        "jax": jnp.arange(2.0),
        "enum": Colour.RED,
        "set": {"b", "a"},
        "interval": Interval(1.0, 0.5, 1.5, 9),
    }
    assert plain(value) == {
        "2": [1, 2.5, None, True],
        "nan": [None, "inf", "-inf", 0.5, 3, False],
        "array": [[1, 2], [3, 4]],
        "jax": [0.0, 1.0],
        "enum": "red",
        "set": ["a", "b"],
        "interval": {"mean": 1.0, "low": 0.5, "high": 1.5, "n": 9, "level": 0.95},
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"b": [object()]}}, r"value\.a\.b\[0\] is a object"),
        ({1: 0, "1": 0}, "two keys that both read '1'"),
        ({(1, 2): 0}, "keys must be text or numbers"),
        ({"a": np.array([object()])}, r"value\.a is a ndarray"),
        ({"a": 1j}, r"value\.a is a complex"),
    ],
)
def test_what_is_not_json_is_named(value, message):
    with pytest.raises(InputError, match=message):
        plain(value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_json_gives_back_every_bit_whatever_the_order_of_keys(value):
    data = json_bytes(value)
    assert json.loads(data) == value
    if isinstance(value, dict):
        assert json_bytes(dict(reversed(value.items()))) == data


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b'{"a": 1} trailing']
)
def test_damaged_json_is_named(tmp_path, data):
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(InputError, match=r"x\.json: is n(ot valid JSON|ested too deeply)"):
        read_json(tmp_path / "x.json")
