"""A result is written once, whole, and the first one stays."""

import os
import threading

import pytest
from sweep_cases import CLIFF

from surefoot.errors import RunError
from surefoot.runs.files import write_once
from surefoot.training.sweep import ResultStore, make_training

TRIAL = make_training(CLIFF, 0)


def test_the_first_result_stays(tmp_path):
    store = ResultStore(tmp_path)
    assert store.get(TRIAL) is None
    assert store.put(TRIAL, {"returns": [1.0]})
    assert not store.put(TRIAL, {"returns": [2.0]})
    assert store.get(TRIAL)["returns"] == [1.0]
    assert store.get(make_training(CLIFF, 1)) is None
    assert [p.name for p in store.results.iterdir()] == [f"{TRIAL.key}.json"]  # no litter


def test_many_writers_at_once_have_one_winner(tmp_path):
    stores = [ResultStore(tmp_path) for _ in range(8)]
    gate, won = threading.Barrier(8), []

    def write(i):
        gate.wait()
        if stores[i].put(TRIAL, {"returns": [float(i)]}):
            won.append(i)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert stores[0].get(TRIAL)["returns"] == [float(won[0])]


@pytest.mark.parametrize("content", [b"", b'{"trial": ', b"[]", b"\xff\x00", b'{"training": {}}'])
def test_a_damaged_result_is_put_aside_and_made_again(tmp_path, content):
    store = ResultStore(tmp_path)
    store.put(TRIAL, {"returns": [1.0]})
    path = store.results / f"{TRIAL.key}.json"
    path.write_bytes(content)
    assert store.get(TRIAL) is None
    assert store.put(TRIAL, {"returns": [1.0]})
    assert store.get(TRIAL)["returns"] == [1.0]
    assert path.with_suffix(".damaged").read_bytes() == content


def test_a_number_that_has_changed_is_noticed(tmp_path):
    store = ResultStore(tmp_path)
    store.put(TRIAL, {"returns": [1.0]})
    path = store.results / f"{TRIAL.key}.json"
    path.write_bytes(path.read_bytes().replace(b"1.0\n  ]", b"7.0\n  ]"))
    assert b"7.0" in path.read_bytes()
    assert store.get(TRIAL) is None


def test_a_failure_goes_when_the_trial_succeeds(tmp_path):
    store = ResultStore(tmp_path)
    store.put_failure(TRIAL, "step 3: no")
    store.put_failure(TRIAL, "step 4: no")
    assert store.get_failure(TRIAL) == "step 4: no"
    store.put(TRIAL, {"returns": [1.0]})
    assert store.get_failure(TRIAL) is None


def test_a_file_system_without_links_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert write_once(tmp_path / "x.json", b"first")
    assert not write_once(tmp_path / "x.json", b"second")
    assert (tmp_path / "x.json").read_bytes() == b"first"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_disk_that_refuses_is_one_line(tmp_path):
    store = ResultStore(tmp_path)
    store.results.rmdir()
    store.results.touch()
    with pytest.raises(RunError, match=r"cannot write .*File exists"):
        store.put(TRIAL, {"returns": [1.0]})
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot make"):
        ResultStore(tmp_path / "file")
