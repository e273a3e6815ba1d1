"""The simulation of sweeps: by hand, against bounds, and against an independent one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation import Costs, limits, simulate

pytestmark = pytest.mark.wide

FREE = Costs(driver=0.0, store=0.0, hire=0.0, start=0.0)
seconds = st.floats(0.0, 10.0)
some_costs = st.builds(
    Costs, driver=seconds, store=seconds, hire=seconds, start=seconds, depth=st.integers(1, 3)
)
some_trials = st.lists(st.floats(0.0, 20.0), min_size=1, max_size=40)


def test_three_trials_on_two_workers_by_hand():
    # Worker 0 is up at 0.5 + 1 = 1.5, worker 1 at 1 + 1 = 2; trials take 10.
    # 11.5: worker 0 ends; the driver has it until 12.5, gives it trial 3, stores until 14.5.
    # 12.0: worker 1 ends; it waits until 14.5, is served at 15.5, stored at 17.5; nothing is left.
    # 22.5: worker 0 ends trial 3; served at 23.5, stored at 25.5.
    costs = Costs(driver=1.0, store=2.0, hire=0.5, start=1.0)
    outcome = simulate([10.0] * 3, 2, costs)
    assert outcome.seconds == 25.5
    assert outcome.busy == pytest.approx(30 / 51)
    assert outcome.driver_busy == pytest.approx((2 * 0.5 + 3 * 3) / 25.5)


def test_a_second_job_hides_the_driver_by_hand():
    # One worker, ten trials of 1 s, 0.5 s of driver each. With one job at a time every trial waits
    # for the driver: 10 * 1.5. With two, the second begins at once while more than 2 are left to
    # give out: trials 1 to 8 follow each other, the driver is ready 0.5 s after each end. When 2
    # are left no second job is held any more, so the last ones wait 0.5 s each.
    one = Costs(driver=0.5, store=0.0, hire=0.0, start=0.0)
    two = Costs(driver=0.5, store=0.0, hire=0.0, start=0.0, depth=2)
    assert simulate([1.0] * 10, 1, one).seconds == 15.0
    assert simulate([1.0] * 10, 1, two).seconds == 10.0 + 2 * 0.5 + 0.5


@given(some_trials, st.integers(1, 8), some_costs)
def test_no_sweep_beats_its_bounds(trials, workers, costs):
    outcome = simulate(trials, workers, costs)
    n, used = len(trials), min(workers, len(trials))
    alone = used * costs.hire + costs.start + sum(trials) + n * (costs.driver + costs.store)
    assert outcome.seconds <= alone + 1e-6
    assert outcome.seconds >= n * (costs.driver + costs.store) - 1e-6
    assert outcome.seconds >= sum(trials) / used + costs.hire + costs.start - 1e-6
    assert outcome.seconds >= max(trials) + costs.driver + costs.store - 1e-6
    assert 0 <= outcome.busy <= 1 + 1e-9
    assert 0 <= outcome.driver_busy <= 1 + 1e-9


@given(st.integers(1, 60), st.integers(1, 8), st.integers(1, 3))
def test_without_costs_equal_trials_go_in_rounds(n, workers, depth):
    costs = Costs(0.0, 0.0, 0.0, 0.0, depth)
    assert simulate([2.0] * n, workers, costs).seconds == 2.0 * math.ceil(n / workers)


@given(some_trials, st.integers(1, 8))
def test_without_costs_it_is_list_scheduling(trials, workers):
    """An independent way to the same number: each trial goes to whoever is free first."""
    free = np.zeros(min(workers, len(trials)))
    for duration in trials:
        free[free.argmin()] += duration
    assert simulate(trials, workers, FREE).seconds == pytest.approx(free.max())


def test_the_limit_is_what_is_slow():
    many = [0.01] * 2000
    calm = Costs(driver=1e-5, store=1e-5, hire=0.0, start=0.0)
    assert slowest(many, 4, calm) == "computing"
    disk = Costs(driver=1e-5, store=0.02, hire=0.0, start=0.0)
    assert slowest(many, 64, disk) == "result store"
    slow = Costs(driver=0.02, store=1e-5, hire=0.0, start=0.0)
    assert slowest(many, 64, slow) == "driver"
    late = Costs(driver=1e-5, store=1e-5, hire=0.1, start=20.0)
    assert slowest(many, 64, late) == "start-up"


def slowest(trials, workers, costs):
    shares = limits(trials, workers, costs)
    return max(shares, key=shares.get)
