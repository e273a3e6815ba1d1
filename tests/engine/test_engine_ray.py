"""The Ray engine against a real Ray: alone on this machine, and as a cluster that loses a node."""

import os
import threading
import time
from pathlib import Path

import engine_jobs
import pytest

from surefoot.engine import ray_engine, run_jobs
from surefoot.errors import InputError, RunError

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
    with ray_engine._connected(ray_engine._import_ray(), "local", 2):
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


def test_a_node_is_killed_in_the_middle(paths, tmp_path):
    from ray.cluster_utils import Cluster

    quick = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": quick},
    )
    try:
        doomed = cluster.add_node(num_cpus=1)
        jobs = [(str(tmp_path), x, 1.0) for x in range(12)]

        def kill_when_both_work():
            while len({p.name.split("-")[1] for p in tmp_path.iterdir()}) < 2:
                time.sleep(0.1)
            time.sleep(0.3)
            cluster.remove_node(doomed, allow_graceful=False)

        killer = threading.Thread(target=kill_when_both_work, daemon=True)
        killer.start()
        found = list(run_jobs(engine_jobs.slow_square, jobs, engine="ray", address=cluster.address))
        killer.join(timeout=60)
        assert not killer.is_alive()
        assert sorted(found) == [(x, x * x) for x in range(12)]
        begun = [p.name.split("-")[0] for p in tmp_path.iterdir()]
        assert len(begun) > len(set(begun)) == 12  # some trial did run twice, and counted once
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_no_cluster_there_is_one_line():
    with pytest.raises(RunError, match=r"no Ray cluster at '127.0.0.1:1'"):
        list(run_jobs(engine_jobs.square, [1], engine="ray", address="127.0.0.1:1"))
    with pytest.raises(InputError, match="use local, auto, host:port"):
        list(run_jobs(engine_jobs.square, [1], engine="ray", address="somewhere"))
