"""Trials in worker processes, the second-moment probes and the experiment as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import NETWORK

from surefoot.agents.neural import NeuralConfig
from surefoot.paper.moments import measure, midpoint_std
from surefoot.training.train import Training
from surefoot.training.trials import run_trials

SMALL = NeuralConfig(**NETWORK)


def trials(n):
    return [
        Training("CartPole-v1", SMALL, 200, seed, True, eval_every=100, eval_episodes=3)
        for seed in range(n)
    ]


def test_trials_count_and_repeat(capsys):
    first, again = (
        [r for _, r in run_trials(trials(2), engine="serial", mode="lines")] for _ in range(2)
    )
    assert "400/400 steps done" in capsys.readouterr().err
    for a, b in zip(first, again, strict=True):
        assert a.steps.tolist() == [100, 200]
        assert a.returns.shape == (2, 3)
        np.testing.assert_array_equal(a.returns, b.returns)
        np.testing.assert_array_equal(a.episode_returns, b.episode_returns)
    assert not np.array_equal(first[0].episode_returns, first[1].episode_returns)


@pytest.mark.slow
def test_workers_give_what_a_serial_run_gives(capsys):
    serial = dict(run_trials(trials(3), engine="serial", mode="silent"))
    spread = dict(run_trials(trials(3), workers=2, mode="lines"))
    assert set(serial) == set(spread) == {0, 1, 2}
    for index, result in serial.items():
        np.testing.assert_array_equal(result.episode_returns, spread[index].episode_returns)
    assert "600/600 steps done" in capsys.readouterr().err


def test_midpoints_by_hand():
    # Two particles sit at the quartiles of the normal: deviation 0.6745.
    assert midpoint_std(2) == pytest.approx(0.6745, abs=1e-4)


@pytest.mark.slow
def test_the_remedy_sees_what_the_papers_loss_cannot():
    paper, remedy = measure("wgf", 0, 4000), measure("proximal-qr", 0, 4000)
    assert max(paper.arms, paper.fork) < 0.3
    assert 0.7 < remedy.arms < 1.3
    assert 0.7 < remedy.fork < 1.2
