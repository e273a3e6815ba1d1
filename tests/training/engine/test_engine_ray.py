"""The Ray engine against a real Ray on this machine."""

import os
from pathlib import Path

import engine_jobs
import pytest

from surefoot.errors import InputError, RunError
from surefoot.training.engines import ray_engine, run_jobs

ray = pytest.importorskip("ray", reason="Ray is not installed: make peers")
pytestmark = [pytest.mark.slow, pytest.mark.ray]


@pytest.fixture(scope="module")
def paths():
    """Workers of a cluster must be able to import what they run."""
    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        yield


@pytest.fixture(scope="module")
def connection(paths):
    """One Ray for the tests that need no more than two workers."""
    with ray_engine.connected(ray_engine.import_ray(), "local", 2):
        yield
    assert not ray.is_initialized()


def test_equal_to_serial_each_once_and_on_reused_workers(connection):
    jobs = list(range(12))
    serial = list(run_jobs(engine_jobs.jax_sum, jobs, engine="serial"))
    assert sorted(run_jobs(engine_jobs.jax_sum, jobs, engine="ray")) == serial
    told = dict(run_jobs(engine_jobs.environment, ["NPROC"] * 8, engine="ray"))
    assert {value for _, value in told.values()} == {"1"}
    assert len({pid for pid, _ in told.values()}) <= 2


def test_dead_workers_are_replaced(connection, tmp_path):
    jobs = [(str(tmp_path), x) for x in range(2)]
    found = list(run_jobs(engine_jobs.die_once, jobs, engine="ray", workers=2))
    assert sorted(found) == [(0, 0), (1, 1)]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_lost_job_is_named_and_errors_arrive_as_they_are(connection):
    with pytest.raises(RunError, match="job 2: 1 worker died running it"):
        list(run_jobs(engine_jobs.poison, range(3), engine="ray", retries=0, workers=1))
    with pytest.raises(RunError, match="reward nan") as caught:
        list(run_jobs(engine_jobs.refuse, range(3), engine="ray", workers=1))
    assert caught.value.partial == [1, 2]


def test_another_cluster_than_the_one_connected_is_refused(connection):
    with pytest.raises(InputError, match="already connected to another Ray"):
        list(run_jobs(engine_jobs.square, [1], engine="ray", address="127.0.0.1:1"))
