"""`surefoot watch RUN_DIR`: episodes as a GIF, with what the agent expects of each action."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surefoot.cli.explain import default_place
from surefoot.cli.modules import AgentOptions, open_typed
from surefoot.cli.options import parse, size_of
from surefoot.errors import InputError, require

ABOUT = (
    "Episodes of a trained agent as a GIF: the environment's picture, beside it the return "
    "distribution of every action as it changes, and the decision in words."
)


@dataclass(frozen=True)
class WatchOptions(AgentOptions):
    policy: str | None = None
    """Decide by this one instead of the agent's evaluation policy: greedy, cvar:0.25."""
    episodes: int = 1
    """Episodes to show."""
    frames: int = 150
    """Steps to show at most; the film ends there, within an episode if need be."""
    seed: int = 0
    """Seed of the first episode; the n-th has seed + n."""
    out: Path | None = None
    """The GIF; an earlier one is replaced. By default figures/watch.gif of the run, where its
    report finds it, or beside the file."""


def main(words: list[str]) -> int:
    options = parse(WatchOptions, words, "surefoot watch", ABOUT)
    if options.agent is None:
        raise InputError("watch: name a run directory or an agent's file (surefoot watch --help)")
    require("watch's picture", "report", "matplotlib")
    from surefoot.report.film import film
    from surefoot.runs.files import atomic_write

    agent = open_typed(options, words)
    made = film(
        agent, policy=options.policy, episodes=options.episodes, frames=options.frames,
        seed=options.seed,
    )  # fmt: skip
    out = options.out or default_place(options.agent, "watch.gif")
    print(f"{atomic_write(out, made)} ({size_of(len(made))}): open it in a browser")
    return 0
