"""Make docs/reproduction.md, docs/learning.md and README's picture from the committed results."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

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
training (highway-fast: twenty episodes, four times); a run's score is the mean over the last fifth
of them.

"paper" stands for the settings of section 5.3 (two hidden layers of 256, 2 particles, Adam 1e-3,
batch 32, replay 10,000, exploration 0.1, gamma 0.99), with a target period of 100 steps and
gradients clipped at norm 1 for all three. Our own runs are those of `surefoot reproduce gym`.

`make bench-learning` also has four environments of others (Acrobot, LavaGap, highway-fast, MinAtar
Breakout), our QR beside QR-DQN. Their settings are in `benchmarks/learning.py`; "at least as good"
is a one-sided Welch test at level 0.05 that ours is not worse by the margin, which is a tenth of
the way from a bad return to a good one (Acrobot -500 and -80; LavaGap 0 and 1; highway-fast 0 and
30; Breakout 0 and 10) and was chosen before the runs. It is shown on Acrobot, LavaGap and Breakout.

On highway-fast it is not shown. After 3,000 steps the means are 17.2 and 17.5, but seeds scatter
about them by 3.0 (ours) and 3.9, and one run goes up and down by as much (9.4, 18.2, 9.6, 21.0 at
its four evaluations). Five seeds of each leave an interval from -5 to 5, wider than the margin of
3; with this scatter it takes about 17 of each to show a true tie four times in five. On the way
QR-DQN was ahead: 18.9 against 16.2 after 1,500 steps, 17.7 against 14.7 after 2,250.

Ours takes 0.4 of the CPU time on the other three, and as much on highway-fast, whose own steps are
slow.
"""


BEGIN, END = "<!-- from results/surest, by tools/pages.py -->", "<!-- until here -->"
PICTURE = (
    "![Which action the default agent, a greedy one and CVaR take: left where a sure and a noisy "
    "one are worth the same, right where the noisy one is worth more]"
    "(results/surest/figures/promise.png)"
)
PROMISE = """Nothing was set, on tasks whose answer is known. **Left, both are worth the same**: the
default agent takes the sure action, tables in {cliff} at every size of
noise, networks on {tie}. A greedy agent with the same estimates takes it at {greedy}. **Right, the
noisy action is worth more**: the default agent takes it, on {better}. CVaR 0.25 leaves it at
{cvar}: that agent pays for safety. The steps were also played with rewards times 1000 and times
0.001. Of {of} conditions set beforehand, {held} hold ([verdicts](results/surest/claims.md),
`surefoot reproduce surest`)."""

LEADS = """**Smaller leads need more data.** There the noisy action is better by a third or half of
a deviation. An action is seen to be better after about (3 x deviation / lead)² trials of it, so a
lead of a tenth takes about 900; until then it counts as worth the same, and the surer action is
taken ([measured](docs/concepts.md#smaller-leads-need-more-data))."""

SUITE = """Where greedy gambles and CVaR pays: on {of} questions whose answer is known ([the
suite](docs/suite.md): insurance, suppliers, maintenance, ...), tables, deciding on the same data:
the default rule is right on {same[ssd]}, a greedy one on {same[greedy]}, CVaR on {same[cvar]} at
most. Tables, each agent learning online from its own data: {online[ssd]}, {online[greedy]} and
{online[cvar]}. Networks, on {asked} questions of their own: the default agent is right on
{network[ssd]}, greedy with the same networks on {network[greedy]}, CVaR on {network[cvar]} at most
([verdicts](results/suite/claims.md), `surefoot suite`)."""


def main() -> None:
    reproduction()
    learning()
    readme = ROOT / "README.md"
    if (RESULTS / "surest" / "complete.json").exists():
        before, _, rest = readme.read_text().partition(BEGIN)
        block = promise(RunDir.open(RESULTS / "surest"))
        readme.write_text(before + block + rest.partition(END)[2])


def promise(run: RunDir) -> str:
    """README's picture and the sentences under it."""
    summary, verdicts = run.read_summary(), [claim.verdict for claim in read_claims(run)]
    cliff = [row["sure"]["mean"] for row in summary["cliff"] if row["rule"] == "SSD, 3 errors"]
    networks = summary["networks"]

    def seeds(question: str) -> str:
        """On how many seeds the networks were right."""
        counts = {True: [0, 0], False: [0, 0]}  # of the roads, and of the steps: right, and all
        for row in networks:
            if row["question"] == question:
                right, count = row["right"]["mean"], counts[row["task"] == "roads"]
                count[0] += round(right * row["right"]["n"])
                count[1] += row["right"]["n"]
        roads, steps = (f"{right} of {all_}" for right, all_ in counts.values())
        return f"{roads} seeds where a road is chosen and on {steps} where every step is a choice"

    def sure(rule: str, question: str) -> str:
        """At which share of its choices a rule takes the sure action, setting by setting."""
        shares = [row[f"sure by {rule}"] for row in networks if row["question"] == question]
        mean, low, high = (100 * f for f in (sum(shares) / len(shares), min(shares), max(shares)))
        settings = f"on average over the {len(shares)} settings of networks"
        return f"{mean:.0f} % of its choices {settings} (from {low:.0f} to {high:.0f} %)"

    words = PROMISE.format(
        cliff="every trial" if min(cliff) == 1 else f"{min(cliff):.2f} of the trials or more",
        held=verdicts.count("reproduced"),
        of=len(verdicts),
        tie=seeds("tie"),
        greedy=sure("greedy", "tie"),
        better=seeds("better"),
        cvar=sure("cvar:0.25", "better"),
    )
    suite = SUITE.format(**answered(RunDir.open(RESULTS / "suite")))
    return "\n\n".join([BEGIN, PICTURE, *map(_wrapped, (words, LEADS, suite)), END])


def answered(run: RunDir) -> dict[str, Any]:
    """How many questions of the suite each rule answers at the scale 1, the best level for CVaR."""
    rows = [row for row in run.read_summary()["rows"] if row["scale"] == 1]
    counts = {way: Counter[str]() for way in ("same", "online", "network")}
    for row in rows:
        if row["way"] in counts and row["solved"]:
            counts[row["way"]][row["player"].removeprefix("network: ")] += 1
    for own in counts.values():
        own["cvar"] = max((n for p, n in own.items() if p.startswith("cvar")), default=0)

    def questions(way: str) -> int:
        asked = {(r["task"], r["question"]) for r in rows if r["way"] == way}
        none = {(r["task"], r["question"]) for r in rows if r["solved"] is None}
        return len(asked - none)

    return counts | {"of": questions("same"), "asked": questions("network")}


def _wrapped(words: str) -> str:
    return textwrap.fill(" ".join(words.split()), 100, break_on_hyphens=False)


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
        seeds = _seeds(run.read_provenance()["seeds"])
        parts.append(f"`surefoot reproduce {name}`; {shown}; {seeds}.")
    (DOCS / "reproduction.md").write_text("\n\n".join(parts) + "\n")


def _seeds(seeds: Any) -> str:
    """What provenance.json holds, in words: `seed 0`, `seeds 1000 to 1039`."""
    numbers = list(seeds.values()) if isinstance(seeds, dict) else seeds
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return f"seed {first}"
    if numbers == list(range(first, last + 1)):
        return f"seeds {first} to {last}"
    return f"seeds {', '.join(map(str, numbers))}"


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
    print("written: docs/reproduction.md, docs/learning.md, README.md")
