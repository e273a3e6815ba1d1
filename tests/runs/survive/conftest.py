"""One length of compiled stretches for all of these tests: each length is a compilation."""

from __future__ import annotations

import pytest
import survive_child


@pytest.fixture(autouse=True, scope="module")
def short_stretches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefoot.agents.tabular.agent.CHUNK", survive_child.EVERY)
        yield
