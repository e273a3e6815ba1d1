"""A cluster of two nodes, emulated on this machine, that loses one of them; and none at all."""

import os
import threading
import time
from pathlib import Path

import engine_jobs
import pytest

from surefoot.errors import InputError, RunError
from surefoot.training.engines import ray_engine, run_jobs

ray = pytest.importorskip("ray", reason="Ray is not installed: make peers")
pytestmark = [pytest.mark.slow, pytest.mark.ray]
QUICK = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500}


def test_a_node_is_killed_in_the_middle(tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster

    # Workers of a cluster must be able to import what they run.
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK},
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


def test_the_only_node_is_lost(tmp_path, monkeypatch):
    """The driver's own node has no CPU; the one that has is killed, and none comes back."""
    from ray.cluster_utils import Cluster

    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK},
    )
    try:
        only = cluster.add_node(num_cpus=1)

        def kill_when_it_works():
            while not any(tmp_path.iterdir()):
                time.sleep(0.1)
            monkeypatch.setattr(ray_engine, "PATIENCE", 6.0)
            cluster.remove_node(only, allow_graceful=False)

        threading.Thread(target=kill_when_it_works, daemon=True).start()
        jobs = [(str(tmp_path), x, 1.0) for x in range(4)]
        with pytest.raises(RunError, match=r"no Ray worker for 6 s: .* have 0 CPUs .*same command"):
            list(run_jobs(engine_jobs.slow_square, jobs, engine="ray", address=cluster.address))
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_no_cluster_there_is_one_line():
    with pytest.raises(RunError, match=r"no Ray cluster at '127.0.0.1:1'"):
        list(run_jobs(engine_jobs.square, [1], engine="ray", address="127.0.0.1:1"))
    with pytest.raises(InputError, match="use local, auto, host:port"):
        list(run_jobs(engine_jobs.square, [1], engine="ray", address="somewhere"))
