"""Strategies by their returns: who is better for everyone who dislikes risk, and how sure is that?

    python examples/compare_strategies.py [returns.csv]

Without a file it makes up monthly returns of an index, of the index with borrowed money, and of a
fund that follows the index and takes 0.3 % a month. A file has one column for each strategy.
"""

from __future__ import annotations

import sys

import numpy as np

import surefoot as sf


def made_up(months: int = 240) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    index = rng.normal(0.006, 0.04, months)
    fund = index - 0.003 + rng.normal(0, 0.002, months)
    return {"index": index, "levered": 2 * index - 0.006, "fund": fund}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        result = sf.compare_file(sys.argv[1])
    else:
        result = sf.compare(made_up(), source="made-up monthly returns", prices=False)
    print(result)  # in a notebook: result alone, and result.figure()
    for verdict in result.verdicts:
        if verdict.order == 2 and verdict.word != "cannot tell":
            print(f"{verdict.a} dominates {verdict.b}: {verdict.word}")
