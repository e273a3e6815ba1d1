"""Make docs/reproduction.md and its pictures from the committed `results/`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from surefoot.experiments.claims import to_markdown
from surefoot.experiments.everything import EXPERIMENTS
from surefoot.experiments.store import RunDir

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"

HEAD = """# Reproduction

This page is made from `results/` by `tools/pages.py`. Everything on it comes from

    surefoot reproduce all --out results

with the versions below. Intervals are 95 % Student t intervals over independent trials unless a
table says otherwise. A claim that does not hold is listed as such, with the reason measured.
"""


def main() -> None:
    parts = [HEAD]
    assets = DOCS / "assets" / "results"
    shutil.rmtree(assets, ignore_errors=True)
    for name, title in EXPERIMENTS.items():
        if not (RESULTS / name / "complete.json").exists():
            continue
        run = RunDir.open(RESULTS / name)
        parts += [f"## {name}: {title}", to_markdown(run.read_claims())]
        if name == "risky-cliff":
            parts.append(sweep_table(run.read_summary()))
        (assets / name).mkdir(parents=True)
        for figure in run.figures:
            shutil.copy(run.figure(figure), assets / name / f"{figure}.png")
            parts.append(f"![{name}, {figure}](assets/results/{name}/{figure}.png)")
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
    print(json.dumps({"written": "docs/reproduction.md"}))
