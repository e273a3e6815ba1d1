"""Two million steps: memory stays where it was."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.agents.loading import resume
from surefoot.runs.checkpoints import Checkpoints

STATM = Path("/proc/self/statm")


def resident() -> float:
    """Megabytes."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
def test_two_million_tabular_steps_in_flat_memory(tmp_path):
    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", seed=1, memory=4, particles=4)
    keeper = Checkpoints(tmp_path, every=50_000)
    sizes = []

    def look(agent: sf.TabularAgent, _) -> None:
        if agent.num_timesteps // 100_000 > len(sizes):
            sizes.append(resident())

    agent.learn(2_000_000, callback=look, checkpoints=keeper)
    assert len(sizes) == 20
    # The counts of some 10^5 episodes take 40 bytes each; nothing else may grow.
    episodes = agent.episodes.nbytes / 1e6
    assert max(sizes[4:]) - sizes[3] < 15 + 4 * episodes, sizes
    assert resume(tmp_path).num_timesteps == 2_000_000
