"""The tables of docs/scaling.md, from what `bench_scale` measured and the simulation of sweeps."""

from __future__ import annotations

import json
import statistics
from typing import Any

from benchmarks.harness import ROOT
from benchmarks.simulation import Costs, limits, simulate

FIGURES = ROOT / "benchmarks" / "results" / "scale.json"
PAGE = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- made by `python -m benchmarks scale` -->", "<!-- end of what is made -->"
TRIALS = 10_000
NAP = 0.1  # as in bench_scale


def write(figures: dict[str, Any]) -> None:
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    render()


def render() -> None:
    """Put the tables between the marks of the page, and leave its words alone."""
    figures = json.loads(FIGURES.read_text())
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    parts = [
        *("### Throughput", THROUGHPUT.format(**figures), measured_table(figures)),
        *("### What the parts cost", PARTS, costs_table(figures)),
        *("### The simulation beside measurements", CHECK, check(figures)),
        *("### 10^4 trials on 16 and 256 cores", FORECAST, forecast(figures), bound(figures)),
    ]
    PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{tail}")


THROUGHPUT = """Risky-cliff trials (Algorithm 1, mixture targets, SSD behaviour, 10,000 steps), in
turn, in two rounds, while the load average was {load:.0f} on {cores} cores. The wall clock says
little where so much else shares the cores: the last column is the share of a core that workers got,
and it changed from minute to minute. CPU time does not have that trouble: throughput per CPU is
what workers give on cores of their own, less what they take from each other's caches."""
PARTS = """Start-up is until the first trial begins, and the CPU time of compiling without a cache
(`JAX_COMPILATION_CACHE_DIR` saves most of that from the second time on)."""
CHECK = """Jobs that sleep need no core, so that load blurs them least. For the trials the
simulation was given how long each took in its worker, and had to find how they follow each other.
Where the measured is above the simulated, the driver or a worker waited for its turn on a
core; over Ray the worker's second job hides that."""
FORECAST = """The last column is by how much shorter the sweep would be without that cost (two that
hide behind each other can both show little). Workers are taken to be as fast as here, nodes to
start side by side, and the driver's costs not to grow with the number of workers."""


def bound(figures: dict[str, Any]) -> str:
    """From how many workers on the driver is the limit, whatever else is done."""
    own, most = trial_seconds(figures), []
    for engine in figures["engines"]:
        costs = costs_of(figures, engine)
        most.append(f"{own / (costs.driver + costs.store):.0f} ({engine})")
    return (
        f"One driver keeps up with {' or '.join(most)} workers on trials of {_time(own)}, and with "
        "as many more as trials are longer."
    )


def costs_of(figures: dict[str, Any], engine: str) -> Costs:
    """The figures as the simulation wants them: CPU where waiting is no cost of ours."""
    measured = figures["engines"][engine]
    results = [
        m for name, runs in figures["measured"].items() if name.startswith(engine) for m in runs
    ]
    return Costs(
        driver=measured["cpu"],
        store=figures["store"][0],
        hire=measured["hire"],
        start=min(m["up"] for m in results) + figures["compiling"],
        depth=2 if engine == "ray" else 1,
    )


def trial_seconds(figures: dict[str, Any]) -> float:
    """CPU of a warm trial, over all engines."""
    return statistics.median(m["cpu"] for runs in figures["measured"].values() for m in runs)


def measured_table(figures: dict[str, Any]) -> str:
    lines = [
        "| engine | workers | CPU a trial | throughput over serial, per CPU | wall clock a trial |"
    ]
    lines[0] += " throughput over serial, wall clock | share of a core a worker got |"
    lines += ["|---|---|---|---|---|---|---|"]
    base = figures["measured"]["serial 1"]
    ours = statistics.median(m["cpu"] for m in base)
    for name, runs in figures["measured"].items():
        engine, workers = name.split()
        cpu = statistics.median(m["cpu"] for m in runs)
        walls = ", ".join(f"{m['seconds']:.3g} s" for m in runs)
        gains = [b["seconds"] / m["seconds"] for m, b in zip(runs, base, strict=True)]
        ratio = ", ".join(f"{gain:.2f}" for gain in gains)
        share = statistics.median(m["cpu"] / m["wall"] for m in runs)
        lines.append(
            f"| {engine} | {workers} | {cpu:.3g} s | {int(workers) * ours / cpu:.2f} | {walls} | "
            f"{ratio} | {share:.0%} |"
        )
    return "\n".join(lines)


def costs_table(figures: dict[str, Any]) -> str:
    lines = ["| cost | local | ray |", "|---|---|---|"]
    costs = {engine: costs_of(figures, engine) for engine in ("local", "ray")}
    wall = {engine: figures["engines"][engine]["wall"] for engine in costs}
    rows = {
        "a job that does nothing, two workers, wall clock": wall,
        "of it the driver's CPU": {e: c.driver for e, c in costs.items()},
        "a result written and synced": {e: c.store for e, c in costs.items()},
        "the driver's CPU to start a worker": {e: c.hire for e, c in costs.items()},
        "a worker until it is up and has compiled": {e: c.start for e, c in costs.items()},
    }
    for name, cost in rows.items():
        lines.append(f"| {name} | {_time(cost['local'])} | {_time(cost['ray'])} |")
    return "\n".join(lines)


def check(figures: dict[str, Any]) -> str:
    """The simulation beside what was measured: jobs that sleep, and the trials themselves.

    Jobs that sleep need no core, so load does not blur them. For the trials the simulation is
    given how long each took in its worker, load included: it must find how they follow each other.
    """
    lines = ["| jobs | engine | workers | simulated | measured | measured / simulated |"]
    lines += ["|---|---|---|---|---|---|"]
    for engine, measured in figures["engines"].items():
        costs = costs_of(figures, engine)
        warm = Costs(costs.driver, 0.0, 0.0, 0.0, costs.depth)  # none of these is stored
        for workers, seen in measured["sleeping"].items():
            lines.append(_compared(f"sleep {NAP:g} s", engine, int(workers), NAP, seen, warm))
        for run in figures["measured"][f"{engine} 2"]:
            lines.append(_compared("risky cliff", engine, 2, run["wall"], run["seconds"], warm))
    return "\n".join(lines)


def _compared(
    jobs: str, engine: str, workers: int, duration: float, seen: float, costs: Costs
) -> str:
    simulated = simulate([duration] * 400, workers, costs).seconds / 400
    ratio = f"{seen / simulated:.2f}"
    return f"| {jobs} | {engine} | {workers} | {_time(simulated)} a job | {_time(seen)} | {ratio} |"


def forecast(figures: dict[str, Any]) -> str:
    """10^4 trials: short ones, the risky cliff's own, and ten minutes of a network."""
    lines = [
        "| trial | engine | cores | 10^4 trials | one core would take | "
        "workers busy | driver busy | what prolongs it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    own = trial_seconds(figures)
    for seconds in (0.05, own, 600.0):
        for engine, cores in (("local", 16), ("ray", 16), ("ray", 256)):
            durations, costs = [seconds] * TRIALS, costs_of(figures, engine)
            outcome = simulate(durations, cores, costs)
            shares = limits(durations, cores, costs)
            ranked = sorted(shares.items(), key=lambda pair: -pair[1])
            words = ", ".join(f"{name} {share:.0%}" for name, share in ranked if share >= 0.01)
            lines.append(
                f"| {_time(seconds)} | {engine} | {cores} | {_time(outcome.seconds)} | "
                f"{_time(seconds * TRIALS)} | {outcome.busy:.0%} | {outcome.driver_busy:.0%} | "
                f"{words} |"
            )
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:.3g} days"
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


if __name__ == "__main__":
    render()
