"""The risky cliff on the engines: equal tables, and a run that changes engine half way."""

from dataclasses import replace

import pytest

from surefoot.errors import InputError
from surefoot.paper import risky_cliff
from surefoot.paper.risky_cliff import RiskyCliffConfig

pytestmark = pytest.mark.wide

SMALL = RiskyCliffConfig(
    trials=2, episodes=12, losses=("wgf-mixture",), policies=("greedy", "ssd"), checks=(),
    tolerances=(), last=5, memory=8, engine="serial",
)  # fmt: skip


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    out = tmp_path_factory.mktemp("serial") / "run"
    risky_cliff.run(SMALL, out)
    return out


def tables(out):
    return {path.name: path.read_bytes() for path in out.glob("*.parquet")}


@pytest.mark.slow
def test_a_run_is_taken_up_on_another_engine(serial):
    before = tables(serial)
    (serial / "wgf-mixture.ssd.parquet").unlink()
    (serial / "complete.json").unlink()
    risky_cliff.run(replace(SMALL, engine="local", workers=1), serial, existing="resume")
    assert tables(serial) == before


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_workers_make_the_same_tables(engine, serial, tmp_path):
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: make peers")
    risky_cliff.run(replace(SMALL, engine=engine, workers=2), tmp_path / "run")
    made = tables(tmp_path / "run")
    assert len(made) == 6
    assert made == tables(serial)


def test_options_are_checked_before_anything_runs():
    with pytest.raises(InputError, match="unknown engine 'slurm'"):
        RiskyCliffConfig(engine="slurm")
    with pytest.raises(InputError, match="only the engine ray"):
        RiskyCliffConfig(address="auto")
