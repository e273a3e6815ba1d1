"""`surefoot bench`: the numbers are there, and mistakes are told."""

import json

import pytest

from surefoot.benching import PARTS, Contestant, measure
from surefoot.cli import main
from surefoot.errors import InputError


def test_policies_are_measured_and_written(tmp_path, capsys):
    path = tmp_path / "speed.json"
    assert main(["bench", "policies", "--rounds", "2", "--out", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "SSD, 64 x 4 actions" in shown
    found = json.loads(path.read_text())
    assert {row["part"] for row in found["rows"]} == {"policies"}
    assert len(found["rows"]) == 3
    for row in found["rows"]:
        assert row["seconds"] > 0
        assert row["per_second"] == pytest.approx(1 / row["seconds"])
    assert "jax" in found["versions"]


def test_contestants_take_turns_and_the_median_counts(monkeypatch):
    order, clock = [], iter([0, 2, 10, 30, 40, 44, 50, 70, 80, 83, 90, 110])

    def contestant(name, number):
        return lambda: Contestant(lambda: order.append(name), number)

    own = {"a": contestant("a", 2), "b": contestant("b", 5), "absent": lambda: None}
    monkeypatch.setitem(PARTS, "own", ("steps", lambda: own))
    monkeypatch.setattr("surefoot.benching.time.process_time", lambda: next(clock))
    rows = measure("own", rounds=3)
    assert order == ["a", "b"] * 3
    # a: 2, 4 and 3 seconds for two steps each, so 1, 2 and 1.5; b: always 20 seconds for five
    assert [(row.case, row.seconds) for row in rows] == [("a", 1.5), ("b", 4.0)]


def test_mistakes(tmp_path, capsys):
    assert main(["bench", "policies", "--rounds", "0"]) == 2
    assert main(["bench", "policies", "--out", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    with pytest.raises(InputError, match="Did you mean 'tabular'"):
        measure("tabula")


@pytest.mark.slow
def test_everything_is_measured(capsys):
    assert main(["bench", "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "risky cliff, one agent" in shown
    assert "CartPole-v1, qr, compiled" in shown
