"""Make docs/reproduction.md and docs/learning.md from the committed results."""

from __future__ import annotations

import json
from pathlib import Path

from surefoot.paper import APART, EXPERIMENTS, caption
from surefoot.paper.claims import read_claims, to_markdown
from surefoot.runs.directory import RunDir

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
LEARNING = ROOT / "benchmarks" / "results"

HEAD = """# Reproduction

This page is made from `results/` by `tools/pages.py`. Everything on it comes from

    surefoot reproduce all --out results
{apart}

with the versions below. Intervals are 95 % Student t intervals over independent trials unless a
table says otherwise. A claim that does not hold is listed as such, with the reason measured.
"""


LEARNING_HEAD = """# Learning beside sb3-contrib

Our QR and WGF agents and sb3-contrib's QR-DQN, at the same settings, steps and seeds, trained one
after the other by `make bench-learning`. This page is made from the results it wrote into
`benchmarks/results/`. Returns are undiscounted, of ten greedy episodes, twenty times during
training; a run's score is the mean over the last fifth of them.

"paper" stands for the settings of section 5.3 (two hidden layers of 256, 2 particles, Adam 1e-3,
batch 32, replay 10,000, exploration 0.1, gamma 0.99), with a target period of 100 steps and
gradients clipped at norm 1 for all three. Our own runs are those of `surefoot reproduce gym`.
"""


def main() -> None:
    reproduction()
    learning()


def learning() -> None:
    """The side-by-side curves, as far as they were run."""
    kept = json.loads((LEARNING / "learning.json").read_text())
    if not kept["runs"]:
        return
    versions = ", ".join(f"{name} {version}" for name, version in kept["versions"].items())
    seeds = sorted({run["seed"] for run in kept["runs"].values()})
    table = (LEARNING / "learning.md").read_text()
    picture = "![learning curves](../benchmarks/results/learning.png)"
    about = f"Seeds {', '.join(map(str, seeds))}; {versions}."
    (DOCS / "learning.md").write_text("\n\n".join([LEARNING_HEAD, picture, table, about]) + "\n")


def reproduction() -> None:
    apart = [name for name in APART if (RESULTS / name / "complete.json").exists()]
    lines = [f"    surefoot reproduce {name} --out results/{name}" for name in apart]
    parts = [HEAD.format(apart="\n".join(lines))]
    for name, title in (EXPERIMENTS | APART).items():
        if not (RESULTS / name / "complete.json").exists():
            continue
        run = RunDir.open(RESULTS / name)
        parts += [f"## {name}: {title}", to_markdown(read_claims(run))]
        if name == "risky-cliff":
            parts.append(sweep_table(run.read_summary()))
        for figure in run.figures:
            parts.append(f"![{name}, {figure}](../results/{name}/figures/{figure}.png)")
            parts.append(f"*{caption(name, figure)}*")
        versions = run.read_provenance()["versions"]
        shown = ", ".join(f"{k} {v}" for k, v in versions.items())
        parts.append(
            f"`surefoot reproduce {name}`; {shown}; seeds {run.read_provenance()['seeds']}."
        )
    (DOCS / "reproduction.md").write_text("\n\n".join(parts) + "\n")


def sweep_table(summary: dict) -> str:
    """What the tie tolerance does, and what was learned where the two paths part."""
    rows = ["### The tie tolerance (wgf-mixture)", ""]
    rows += [
        "| policy | tolerance | over the top row | falls | ties decided by dominance |",
        "|---|---|---|---|---|",
    ]
    for cell in summary["tolerance_sweep"]:
        share, falls = cell["top_row_share"], cell["falls"]
        rows.append(
            f"| {cell['policy']} | {cell['tolerance']:g} | {_interval(share, 3)} | "
            f"{_interval(falls, 1)} | {100 * cell['share_of_ties_decided_by_dominance']:.0f} % |"
        )
    rows += ["", "### All cells", ""]
    rows += [
        "| loss | behaviour | over the top row | falls | steps | return | learned std up / right |"
    ]
    rows += ["|---|---|---|---|---|---|---|"]
    for loss, policies in summary["losses"].items():
        for policy, cell in policies.items():
            numbers = [
                _interval(cell[k], d)
                for k, d in (("top_row_share", 3), ("falls", 1), ("steps", 1), ("return", 1))
            ]
            spread = cell["learned_std_at_the_fork"]
            rows.append(
                f"| {loss} | {policy} | {' | '.join(numbers)} | "
                f"{spread['up']:.2g} / {spread['right']:.2g} |"
            )
    truth = summary["true_std_at_the_fork"]
    rows.append(
        f"\nTrue deviation where the paths part: up {truth['up']:g}, right {truth['right']:.2g}."
    )
    return "\n".join(rows)


def _interval(value: dict, digits: int) -> str:
    return f"{value['mean']:.{digits}f} [{value['low']:.{digits}f}, {value['high']:.{digits}f}]"


if __name__ == "__main__":
    main()
    print("written: docs/reproduction.md, docs/learning.md")
