"""`surefoot reproduce EXPERIMENT`: one experiment of the paper, or all of them."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from surefoot.cli.options import parse, to_toml
from surefoot.errors import unknown
from surefoot.experiments.claims import tally, to_table

EXPERIMENTS = {
    "evaluation": "section 5.2: policy evaluation on the cliff walk",
    "risky-cliff": "section 5.4: control in the presence of uncertainty",
    "regression": "section 5.1: moments by quantile regression and by the flow",
    "ablation": "appendix: temperature and step size of the proximal loss",
    "figures": "figures 1 and 2: dispersion space and three comparisons",
}


def main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print("usage: surefoot reproduce EXPERIMENT [--help] ...\n")
        print("\n".join(f"  {name:<12} {text}" for name, text in EXPERIMENTS.items()))
        return 0 if words else 2
    if words[0] not in EXPERIMENTS:
        raise unknown("experiment", words[0], EXPERIMENTS)
    return run_one(words[0], words[1:])


def run_one(name: str, words: list[str]) -> int:
    module = importlib.import_module(f"surefoot.experiments.{name.replace('-', '_')}")
    options: Any = parse(
        options_of(name, module.Config), words, f"surefoot reproduce {name}", EXPERIMENTS[name]
    )
    if options.print_config:
        print(to_toml(options.config), end="")
        return 0
    claims = module.run(options.config, options.out, existing=options.existing)
    console = Console()
    console.print(to_table(claims, title=f"{name}: {EXPERIMENTS[name]}"))
    console.print(f"{tally(claims)}\nresults, figures and summary.json are in {options.out}")
    return 0


def options_of(name: str, config: type[Any]) -> type[Any]:
    """The experiment's own options and those every experiment has."""
    existing = Literal["error", "resume", "overwrite"]
    return dataclasses.make_dataclass(
        "Options",
        [
            ("config", config, dataclasses.field(default_factory=config)),
            ("out", Path, Path("runs") / name),
            ("existing", existing, "resume"),
            ("print_config", bool, False),
        ],
        frozen=True,
        namespace={"__doc__": config.__doc__},
    )
