"""The paper's experiments, one module for each section, and what became of its claims.

| module        | of the paper                    | module        | shared                       |
|---------------|---------------------------------|---------------|------------------------------|
| `figures`     | figures 1 and 2                 | `experiment`  | the frame of them all        |
| `regression`  | 5.1, moments of a mixture       | `claims`      | paper, measured, verdict     |
| `ablation`    | appendix, temperature and h     | `fitting`     | data and fits of 5.1         |
| `evaluation`  | 5.2, the returns of a policy    | `flows`       | what 5.2 measures            |
| `gym`         | 5.3, control with networks      | `control`     | tasks and training of 5.3    |
| `gym_choices` | what 5.3 leaves open            | `moments`     | probes of dispersion (5.3)   |
| `risky_cliff` | 5.4, control under uncertainty  | `improvement` | rules that `theory` checks   |
| `theory`      | not of it: policy improvement   | `surest_cells`| what `surest` runs           |
| `surest`      | not of it: what 0.2 promises    |               |                              |
| `never_worse` | not of it: what that costs      |               |                              |

Each module has its settings (`RegressionConfig`, ...), its `EXPERIMENT`, its `run` and its
`figures(results)`, by name; `caption(kind, name)` is the sentence under one.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.errors import InputError, unknown
from surefoot.paper.captions import caption
from surefoot.paper.claims import Claim, write_claims
from surefoot.runs.directory import RunDir
from surefoot.runs.progress import progress

if TYPE_CHECKING:
    from surefoot.paper.experiment import Experiment

__all__ = ["APART", "EXPERIMENTS", "caption", "experiment_named", "run_all"]

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
APART = {
    "gym-choices": "how the settings that section 5.3 leaves open were chosen",
    "never-worse": "the default agent against a greedy one on control tasks (about two hours)",
    "surest": "with nothing set, is the surest of equally good actions taken? (about an hour)",
    "theory": "policy improvement by dominance and by CVaR on random processes",
}


def experiment_named(name: str) -> Experiment:
    """Imported on use: the list of experiments loads none of them."""
    if name not in EXPERIMENTS | APART:
        raise unknown("experiment", name, EXPERIMENTS | APART)
    module = importlib.import_module(f"surefoot.paper.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def run_all(
    out: Path, *, seed: int = 0, trials: int | None = None, only: tuple[str, ...] = ()
) -> list[Claim]:
    """Run what is not complete yet; an interrupted call continues when it is repeated."""
    chosen = [name for name in EXPERIMENTS if not only or name in only]
    if not chosen:
        raise InputError(f"nothing to run: there is {', '.join(EXPERIMENTS)}")
    claims: list[Claim] = []
    with progress(len(chosen), "all experiments", unit="experiments") as task:
        for name in chosen:
            experiment = experiment_named(name)
            config = experiment.config(seed=seed)
            if trials is not None:
                config = replace(config, trials=trials)
            claims += experiment.run(config, out / name, existing="resume")
            task.advance()
            write_claims(RunDir(out), claims)
    return claims
