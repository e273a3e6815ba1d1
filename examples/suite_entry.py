"""A player of your own in the risk suite: does it take the action that is known to be right?

    python examples/suite_entry.py

`train(env, seed)` returns an agent, a model with SB3's `predict`, or a function from observations
to actions or to particles. Here it is a table that acts by CVaR: it buys safety at any price, and
the suite shows it.
"""

from __future__ import annotations

from typing import Any

import surefoot as sf


def train(env: Any, seed: int) -> sf.TabularAgent:
    return sf.TabularAgent(env, evaluation="cvar:0.25", seed=seed).learn(2_000)


if __name__ == "__main__":
    scores = sf.suite.run(train=train, tasks=("insurance",))
    print(scores)
    print("all questions answered rightly" if scores.solved else "not all answered rightly")
