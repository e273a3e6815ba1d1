"""Serial and local engines: same results, each once, whatever happens to the workers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import engine_jobs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.errors import InputError, RunError
from surefoot.training.engines import run_jobs
from surefoot.training.engines.work import Work

pytestmark = pytest.mark.wide


def test_serial_is_a_map():
    assert list(run_jobs(engine_jobs.square, [3, 4], engine="serial")) == [(0, 9), (1, 16)]
    assert list(run_jobs(engine_jobs.square, [], engine="local")) == []


def test_workers_are_reused_and_have_one_thread():
    found = dict(run_jobs(engine_jobs.environment, ["NPROC"] * 6, workers=2))
    assert set(found) == set(range(6))
    assert {value for _, value in found.values()} == {"1"}
    processes = {pid for pid, _ in found.values()}
    assert len(processes) <= 2
    assert os.getpid() not in processes
    assert not any(alive(pid) for pid in processes)  # nothing is left behind


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(tmp_path):
    jobs = [(str(tmp_path), x) for x in range(3)]
    found = list(run_jobs(engine_jobs.die_once, jobs, workers=2))
    assert sorted(found) == [(x, x * x) for x in range(3)]
    assert len(list(tmp_path.iterdir())) == 3  # every one of them did die


@pytest.mark.slow
def test_a_job_that_kills_every_worker_is_named_and_the_others_are_not_blamed():
    names = [f"trial {x}" for x in range(4)]
    with pytest.raises(RunError, match=r"trial 2: 2 workers died running it .*SIGKILL"):
        list(run_jobs(engine_jobs.poison, range(4), workers=2, retries=1, names=names))


def test_what_stands_for_a_lost_result_lets_the_others_go_on():
    found = run_jobs(
        engine_jobs.poison, range(4), workers=2, retries=0, if_lost=lambda i, error: str(error)
    )
    results = dict(found)
    assert "job 2: 1 worker died" in results.pop(2)
    assert results == {0: 0, 1: 1, 3: 9}


@pytest.mark.parametrize("engine", ["serial", "local"])
def test_what_a_job_raises_arrives_as_it_is(engine):
    with pytest.raises(RunError, match="reward nan") as caught:
        list(run_jobs(engine_jobs.refuse, range(3), engine=engine, workers=1))
    assert caught.value.partial == [1, 2]


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_driver(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import engine_jobs\n"
        "from surefoot.training.engines import run_jobs\n"
        "list(run_jobs(engine_jobs.slow_square, [(sys.argv[2], x, 60.0) for x in (1, 2)]"
        ", workers=2))\n"
    )
    here = str(Path(engine_jobs.__file__).parent)
    driver = subprocess.Popen([sys.executable, "-c", code, here, str(tmp_path)])
    workers = [int(name.split("-")[1]) for name in wait_for_files(tmp_path, 2)]
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(alive(pid) for pid in workers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "rya"}, "unknown engine 'rya'.*Did you mean 'ray'"),
        ({"workers": 0}, "workers = 0"),
        ({"retries": -1}, "retries = -1"),
        ({"address": "auto"}, "only the engine ray has an address"),
        ({"engine": "ray", "address": "rubbish"}, "host:port or ray://host:port"),
        ({"engine": "ray", "address": "http://a:1"}, "host:port or ray://host:port"),
    ],
)
def test_options_that_cannot_work(options, message):
    with pytest.raises(InputError, match=message):
        next(run_jobs(engine_jobs.square, [1], **options))


@given(st.lists(st.sampled_from(["finish", "die", "back", "late"]), max_size=60), st.integers(0, 3))
def test_every_job_is_finished_or_lost_exactly_once(events, retries):
    """Whatever workers do, in whatever order, no job is counted twice and none is forgotten."""
    work = Work(engine_jobs.square, range(4), retries)
    over: list[int] = []
    for event in [*events, *["finish"] * 200]:
        index = work.take()
        if index is None:
            break
        if event == "finish":
            over += [index] if work.finish(index) else []
        elif event == "die":
            over += [index] if work.died(index, "SIGKILL") else []
        elif event == "back":
            work.put_back(index)
        else:  # believed dead, tried again, and then both answers come
            work.put_back(index)
            over += [index] if work.finish(index) else []
            again = work.take()
            over += [again] if work.finish(again) else []
    assert sorted(over) == [0, 1, 2, 3]
    assert work.left == 0


def alive(pid: int) -> bool:
    """Zombies do not count: they wait for a parent to read their end."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for_files(folder: Path, count: int, seconds: float = 60.0) -> list[str]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        names = [p.name for p in folder.iterdir()]
        if len(names) >= count:
            return names
        time.sleep(0.1)
    raise AssertionError(f"only {os.listdir(folder)} after {seconds} s")


def test_killing_is_real():
    """The helper above sees a process come and go."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert alive(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not alive(process.pid)
