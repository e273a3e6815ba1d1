"""`surefoot reproduce EXPERIMENT`: one experiment of the paper, or all of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from surefoot.cli.options import EXISTING, parse
from surefoot.errors import unknown
from surefoot.paper import APART, EXPERIMENTS, experiment_named, run_all
from surefoot.paper.claims import to_table

OUT = "Directory for tables, figures, claims and summary.json."
ALL = "every experiment in order; repeat the command to pick up where it stopped"


@dataclass(frozen=True)
class ReproduceAllOptions:
    seed: int = 0
    """Seed of every experiment."""
    trials: int | None = None
    """Trials of each experiment; by default each its own number."""
    only: tuple[str, ...] = ()
    """Only these experiments."""
    out: Path = Path("runs/all")
    """One folder per experiment, and claims.md and claims.json over all."""


def main(words: list[str]) -> int:
    known = {**EXPERIMENTS, **APART, "all": ALL}
    if not words or words[0] in ("-h", "--help"):
        print("usage: surefoot reproduce EXPERIMENT [--help] ...\n")
        print("\n".join(f"  {name:<12} {text}" for name, text in known.items()))
        return 0 if words else 2
    if words[0] not in known:
        raise unknown("experiment", words[0], known)
    if words[0] == "all":
        options = parse(ReproduceAllOptions, words[1:], "surefoot reproduce all", ALL)
        for name in options.only:
            if name not in EXPERIMENTS:
                raise unknown("experiment", name, EXPERIMENTS)
        made = run_all(options.out, seed=options.seed, trials=options.trials, only=options.only)
        return finish(made, "all experiments", options.out)
    return run_one(words[0], words[1:])


def run_one(name: str, words: list[str]) -> int:
    experiment = experiment_named(name)
    options: Any = parse(
        options_of(name, experiment.config), words, f"surefoot reproduce {name}", about(name)
    )
    made = experiment.run(options.config, options.out, existing=options.existing)
    return finish(made, f"{name}: {about(name)}", options.out)


def about(name: str) -> str:
    return (EXPERIMENTS | APART)[name]


def finish(claims: Any, title: str, out: Path) -> int:
    """The verdicts, counted below their table, and where everything is."""
    console = Console()
    console.print(to_table(claims, title=title))
    console.print(f"results, figures and summary.json are in {out}")
    return 0


def options_of(name: str, config: Any) -> type[Any]:
    """The experiment's own options and those every experiment has."""
    existing = Literal["error", "resume", "overwrite"]
    return dataclasses.make_dataclass(
        "ReproduceOptions",
        [
            ("config", config, dataclasses.field(default_factory=config)),
            ("out", Annotated[Path, tyro.conf.arg(help=OUT)], Path("runs") / name),
            ("existing", Annotated[existing, tyro.conf.arg(help=EXISTING)], "resume"),
        ],
        frozen=True,
        namespace={"__doc__": config.__doc__},
    )
