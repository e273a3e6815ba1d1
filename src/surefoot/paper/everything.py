"""Every experiment of the paper in order, picked up where it stopped, and one table of claims."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefoot.errors import InputError
from surefoot.paper.claims import Claim, read_claims, write_claims
from surefoot.runs.directory import RunDir
from surefoot.runs.progress import progress

# In the order of the paper.
EXPERIMENTS = {
    "figures": "figures 1 and 2: dispersion space and three comparisons",
    "regression": "section 5.1: moments by quantile regression and by the flow",
    "ablation": "appendix: temperature and step size of the proximal loss",
    "evaluation": "section 5.2: policy evaluation on the cliff walk",
    "gym": "section 5.3: WGF against QR with networks on control tasks (about half an hour)",
    "risky-cliff": "section 5.4: control in the presence of uncertainty",
}

# Not of the paper: run by name, not with the others.
APART = {"gym-choices": "how the settings that section 5.3 leaves open were chosen"}


def module_of(name: str) -> Any:
    """`Config` and `run(config, out, existing)` of an experiment."""
    return importlib.import_module(f"surefoot.paper.{name.replace('-', '_')}")


def run_all(
    out: Path, *, seed: int = 0, trials: int | None = None, only: tuple[str, ...] = ()
) -> list[Claim]:
    """Run what is not whole yet; an interrupted call continues when it is repeated."""
    chosen = [name for name in EXPERIMENTS if not only or name in only]
    if not chosen:
        raise InputError(f"nothing to run: there is {', '.join(EXPERIMENTS)}")
    claims: list[Claim] = []
    with progress(len(chosen), "all experiments", unit="experiments") as task:
        for name in chosen:
            claims += run_or_read(name, out / name, seed, trials)
            task.advance()
            write_claims(RunDir(out), claims)
    return claims


def run_or_read(name: str, out: Path, seed: int, trials: int | None) -> list[Claim]:
    module = module_of(name)
    config = module.Config(**({"seed": seed} if hasattr(module.Config, "seed") else {}))
    if trials is not None and hasattr(config, "trials"):
        config = replace(config, trials=trials)
    if (out / "complete.json").exists():
        # Where and by how many workers it is computed does not make it another run.
        wanted = config.computed() if hasattr(config, "computed") else config
        directory = RunDir.create(out, wanted, kind=name, seeds=[seed], existing="resume")
        return list(read_claims(directory))
    return module.run(config, out, existing="resume")
