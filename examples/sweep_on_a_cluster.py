"""A grid of settings and seeds on all machines of a Ray cluster; repeat it to go on.

    pip install 'surefoot[ray]'
    ray start --head                                   # on the first machine
    ray start --address FIRST:6379                     # on each other one
    python examples/sweep_on_a_cluster.py --engine ray --address auto

With `--engine local`, the default here, it runs in processes of this machine. Every result is
written once, so a sweep that was stopped, or that has grown, runs what is missing.
"""

from __future__ import annotations

import argparse

from surefoot.training.sweep import Sweep, run_sweep

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--engine", default="local", choices=["serial", "local", "ray"])
    options.add_argument("--address")
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--out", default="runs/cluster")
    chosen = options.parse_args()

    sweep = Sweep(
        base={"env": "surefoot/RiskyCliff-v0", "steps": chosen.steps, "env.sigma": 0.1},
        grid={"behaviour": ["ssd", "greedy", "cvar:0.25"]},
        seeds=tuple(range(chosen.seeds)),
    )
    result = run_sweep(sweep, chosen.out, engine=chosen.engine, address=chosen.address)
    for row in result.rows:
        print(f"{row['behaviour']}: {row['mean']:.4g} [{row['low']:.4g}, {row['high']:.4g}]")
    for pair in result.improvements:
        better = f"{pair['mean']:.2f} [{pair['low']:.2f}, {pair['high']:.2f}]"
        print(f"{pair['a']} does better than {pair['b']} with probability {better}")
    print(f"one page of it all: surefoot report {chosen.out}")
