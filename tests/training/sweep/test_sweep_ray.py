"""The same command on a cluster of two nodes, one of which is killed in mid-sweep."""

import threading
import time

import pytest
from sweep_cases import CLIFF, cliff, results

from surefoot.cli.sweep import main
from surefoot.training.sweep import run_sweep

ray = pytest.importorskip("ray", reason="Ray is not installed: make peers")
pytestmark = [pytest.mark.slow, pytest.mark.ray]
QUICK = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500}
SEEDS, STEPS = 8, 30_000


def test_every_trial_is_there_once_and_equal_to_the_serial_one(tmp_path):
    from ray.cluster_utils import Cluster

    out, wanted = tmp_path / "sweep", tmp_path / "wanted"
    run_sweep(cliff(SEEDS, steps=STEPS), wanted, engine="serial", mode="silent")
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK},
    )
    try:
        doomed = cluster.add_node(num_cpus=1)
        when = []

        def kill_in_the_middle():
            while len(list(out.glob("results/*.json"))) < 3:
                time.sleep(0.01)
            cluster.remove_node(doomed, allow_graceful=False)
            when.append(len(list(out.glob("results/*.json"))))

        killer = threading.Thread(target=kill_in_the_middle, daemon=True)
        killer.start()
        shared = [f"{name}={value}" for name, value in {**CLIFF, "steps": STEPS}.items()]
        words = [word for text in shared for word in ("--set", text)]
        words += ["--grid", "env.sigma=0.001,0.5", "--seeds", f"0:{SEEDS}", "--out", str(out)]
        assert main([*words, "--engine", "ray", "--address", cluster.address]) == 0
        killer.join(timeout=60)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert 3 <= when[0] < 2 * SEEDS  # the node did go before the end
    assert len(results(out)) == 2 * SEEDS
    assert results(out) == results(wanted)
