"""Small sweeps that several tests run, and what they leave on disk."""

from pathlib import Path

from surefoot.training.sweep import Sweep

CLIFF = {
    "agent": "tabular", "env": "surefoot/RiskyCliff-v0", "steps": 1000, "eval_episodes": 3,
    "memory": 4, "loss": "q-learning", "behaviour": "greedy", "evaluation": "greedy",
}  # fmt: skip
"""Compiles in a moment; once for all cells, as the noise of the rewards is no part of a program."""
SIGMAS = [0.001, 0.5]


def cliff(seeds: int = 3, **changes) -> Sweep:
    return Sweep({**CLIFF, **changes}, {"env.sigma": SIGMAS}, tuple(range(seeds)))


def results(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "results").glob("*")}
