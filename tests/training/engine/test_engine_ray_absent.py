"""What the Ray engine says where Ray is not installed, not reachable or slow to start."""

import sys

import engine_jobs
import pytest

from surefoot.errors import InputError, RunError
from surefoot.training.engines import ray_engine, run_jobs


def test_ray_that_is_not_installed_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as Python has it for what cannot be imported
    with pytest.raises(InputError, match=r"Ray is not installed \(pip install 'surefoot\[ray\]'\)"):
        list(run_jobs(engine_jobs.square, [1], engine="ray"))


class SlowRay:
    """Comes up at the last attempt that is allowed, or one later."""

    def __init__(self, late: int) -> None:
        self.left, self.stopped = late, 0

    def init(self, **options: object) -> None:
        assert options["address"] == "local"
        self.left -= 1
        if self.left >= 0:
            raise Exception("The current node timed out during startup.")

    def shutdown(self) -> None:
        self.stopped += 1


def test_a_slow_start_is_tried_again():
    ray = SlowRay(ray_engine.LOCAL_STARTS - 1)
    ray_engine._start_local(ray, 2)
    assert ray.stopped == ray_engine.LOCAL_STARTS - 1
    with pytest.raises(RunError, match="Ray cannot start here: The current node timed out"):
        ray_engine._start_local(SlowRay(ray_engine.LOCAL_STARTS), 2)


def test_versions_must_agree():
    ours = ray_engine.versions()
    ray_engine._check_versions(ours)
    with pytest.raises(RunError, match=r"has jax 0\.0\.1, this process"):
        ray_engine._check_versions({**ours, "jax": "0.0.1"})
