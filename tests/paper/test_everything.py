"""`reproduce all` over the committed results: everything is there, so nothing is run again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from surefoot.paper.everything import EXPERIMENTS, run_all
from surefoot.runs.files import read_json

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.skipif(not RESULTS.exists(), reason="not a checkout with its results")
def test_whole_runs_are_read_with_the_configuration_of_today(tmp_path, monkeypatch):
    for name in EXPERIMENTS:
        shutil.copytree(RESULTS / name, tmp_path / name, ignore=shutil.ignore_patterns("*.parquet"))
        module = __import__(f"surefoot.paper.{name.replace('-', '_')}", fromlist=["run"])
        monkeypatch.setattr(module, "run", lambda *_, **__: pytest.fail("run again"))
    claims = run_all(tmp_path)
    assert read_json(tmp_path / "claims.json") == read_json(RESULTS / "claims.json")
    assert len({claim.id for claim in claims}) == len(claims) > 30
