"""`surefoot evaluate AGENT_OR_RUN`: policies side by side on one learned distribution."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.cli.compare import can_draw, in_terminal
from surefoot.cli.modules import AgentOptions, open_typed
from surefoot.cli.options import parse
from surefoot.errors import InputError, at_least

if TYPE_CHECKING:
    from surefoot.comparison import Comparison
    from surefoot.training.evaluation import Evaluated

WHO = {"mean": "the mean alone", "score": "its own score", "tie_break": "a draw between equals"}
TEXT = "Let several policies act on what one agent has learned, in the same episodes."


@dataclass(frozen=True)
class EvaluateOptions(AgentOptions):
    policy: tuple[str, ...] = ("ssd", "greedy", "cvar:0.25")
    """Policies, as name, name:value or name:field=value: ssd, ssd:0.01, greedy, cvar:0.25, wang,
    cpw, mean-variance."""
    episodes: int = 100
    """Episodes of each policy, with the same seeds for all."""
    seed: int = 0
    """Seed of the first episode (the n-th has seed + n) and of the test."""
    tolerance: float = 0.0
    """Shortfalls up to this, in units of the returns, do not count in the comparison."""
    resamples: int = 1000
    """Bootstrap resamples of the dominance test."""
    out: Path | None = None
    """Directory for returns.csv, the comparison and its figures; nothing is written by default."""


def main(words: list[str]) -> int:
    options = parse(EvaluateOptions, words, "surefoot evaluate", TEXT)
    if options.agent is None:
        raise InputError("evaluate: name an agent or a run directory (surefoot evaluate --help)")
    at_least(0, seed=options.seed)
    from surefoot.comparison import check_directory, compare
    from surefoot.policies import policy_named
    from surefoot.runs.files import portable_path
    from surefoot.training.evaluation import evaluate

    for name in options.policy:
        policy_named(name)  # before anything is loaded
    if options.out is not None:
        check_directory(options.out)
        can_draw()
    agent = open_typed(options, words)
    evaluated = evaluate(
        agent, options.policy, episodes=options.episodes, seed=options.seed, show=True
    )  # in the environment it was opened in, with its arguments and wrappers
    show(evaluated, options)
    returns = {one.policy: one.returns for one in evaluated}
    source = f"{options.episodes} episodes with {portable_path(options.agent)}"
    comparison = None
    if len(returns) > 1:
        comparison = compare(
            returns, paired=True, dependence="none", prices=False, tolerance=options.tolerance,
            seed=options.seed,
            resamples=options.resamples, source=source,
        )  # fmt: skip
        print(f"\n{in_terminal(comparison, options.out)}")
    if options.out is not None:
        _save(options, evaluated, returns, comparison)
    return 0


def show(evaluated: tuple[Evaluated, ...], options: EvaluateOptions) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from surefoot.training.evaluation import COLUMNS

    title = f"{options.episodes} episodes each, 95 % intervals"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column)
    for one in evaluated:
        table.add_row(*one.row(options.seed))
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for one in evaluated:
        shares = ", ".join(f"{WHO.get(who, who)} {share:.1%}" for who, share in one.decided.items())
        console.print(f"{one.policy} decided by {shares}", highlight=False)


def _save(
    options: EvaluateOptions,
    evaluated: tuple[Evaluated, ...],
    returns: Any,
    comparison: Comparison | None,
) -> None:
    from surefoot.comparison import write_returns
    from surefoot.runs.files import portable_path
    from surefoot.training.evaluation import CVAR_LEVELS

    assert options.out is not None
    summary = {
        "episodes": options.episodes,
        "policies": {
            one.policy: {
                "mean": one.mean.as_dict(), "deviation": one.deviation,
                **{f"cvar_{a:g}": one.cvar(a, options.seed).as_dict() for a in CVAR_LEVELS},
                "steps": float(one.lengths.mean()), "decided_by": one.decided,
            }
            for one in evaluated
        },
    }  # fmt: skip
    if comparison is None:  # one policy: nothing to compare
        write_returns(options.out / "returns.csv", returns)
        print(f"\nreturns.csv is in {options.out}")
        return
    config = {
        "agent": portable_path(options.agent or ""), "env": options.env,
        "episodes": options.episodes, "policies": list(options.policy),
    }  # fmt: skip
    comparison.save(options.out, config=config, summary=summary)
    print(f"\nreturns.csv and the comparison are in {options.out}")
    print(f"one page of it all: surefoot report {options.out}")
