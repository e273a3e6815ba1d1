"""`surefoot suite`: who takes the right action, on every task, with one and the same configuration.

`suite.cells` runs the tasks; here are the rows of its tables, and what has to come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surefoot.core.stats import (
    Interval,
    holm,
    mean_interval,
    mean_share_interval,
    paired_difference,
)
from surefoot.paper.claims import Claim, Finding
from surefoot.paper.experiment import Experiment, by_cells
from surefoot.suite.cells import SuiteConfig, compute_cell
from surefoot.suite.figures import draw
from surefoot.suite.scores import RIGHT, solved

USUAL = ("player", "seed", "right", "given_up", "spread", "word", "note")  # columns of every cell


class SuiteRow(NamedTuple):
    """A player in one task: what all its seeds came to."""

    way: str
    task: str
    question: str
    scale: float
    player: str
    right: Interval | None  # None where no action is right, or it was not run
    given_up: Interval | None
    spread: Interval | None
    words: dict[str, int]
    solved: bool | None  # None where no action is right
    more: dict[str, Interval | None]
    """Of networks: mean and tails of the return, exposure to noise, CPU seconds of a training."""
    note: str = ""

    @property
    def title(self) -> str:
        scale = "" if self.scale == 1 else f" x {self.scale:g}"
        return f"{self.task}, {self.question}{scale}"


DEFAULT = {"same": "ssd", "online": "ssd", "network": "network: ssd"}
"""Our agent as it is, by the way of learning."""


class SuiteResults(NamedTuple):
    config: SuiteConfig
    rows: tuple[SuiteRow, ...]
    values: Mapping[tuple[str, str, str], np.ndarray]
    """Share of right decisions by (way, title, player), seed by seed."""

    def of(self, way: str, player: str | None = None) -> list[SuiteRow]:
        return [r for r in self.rows if r.way == way and player in (None, r.player)]


def read(config: SuiteConfig, tables: Any) -> SuiteResults:
    groups: dict[tuple[Any, ...], list[dict[str, np.ndarray]]] = {}
    for cell in config.cells():
        table = tables[cell.name]
        for player in dict.fromkeys(table["player"]):
            mine = table["player"] == player
            part = {name: column[mine] for name, column in table.items()}
            groups.setdefault((*cell[:4], str(player)), []).append(part)
    rows, values = [], {}
    for key, parts in groups.items():
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        row = _row(key, whole)
        rows.append(row)
        values[row.way, row.title, row.player] = whole["right"]
    return SuiteResults(config, tuple(rows), values)


def _row(key: tuple[Any, ...], whole: Mapping[str, np.ndarray]) -> SuiteRow:
    way, task, question, scale, player = key
    right, given_up = float(whole["right"].mean()), float(whole["given_up"].mean())
    answered = None if np.isnan(right) else solved(question, right, given_up)
    words = {str(said): int((whole["word"] == said).sum()) for said in np.unique(whole["word"])}
    first = _interval(whole["right"], mean_share_interval)
    second, third = _interval(whole["given_up"]), _interval(whole["spread"])
    notes = np.unique(whole["note"]) if "note" in whole else np.array([""])
    note = "; ".join(filter(None, map(str, notes)))
    more = {name: _interval(whole[name]) for name in whole if name not in USUAL}
    return SuiteRow(
        way, task, question, scale, player, first, second, third, words, answered, more, note
    )


def _interval(values: np.ndarray, of_mean: Any = mean_interval) -> Interval | None:
    if not np.isfinite(values).all():
        return None
    if len(values) < 2:  # exact, or one network
        one = float(values[0])
        return Interval(one, one, one, 1)
    return of_mean(values)


def summary(results: SuiteResults) -> dict[str, Any]:
    return {
        "rows": [row._asdict() for row in results.rows],
        "against ssd": _against(results),
    }


def _against(results: SuiteResults) -> list[dict[str, Any]]:
    """Share of right decisions of the default rule less each other's, seed by seed, with Holm's
    correction over all of them."""
    rows: list[dict[str, Any]] = []
    for way, default in DEFAULT.items():
        for row in results.of(way):
            own = results.values.get((way, row.title, default))
            other = results.values[way, row.title, row.player]
            if row.player == default or own is None or row.right is None or len(own) < 2:
                continue
            made = paired_difference(own, other)
            rows.append(
                {"way": way, "task": row.title, "player": row.player}
                | {"difference": made.interval, "p": float(made.p_value)}
            )
    if rows:
        for one, p in zip(rows, holm(np.array([one["p"] for one in rows], float)), strict=True):
            one["holm_p"] = float(p)
    return rows


def judge(results: SuiteResults) -> list[Claim]:
    claims = []
    for way, default in DEFAULT.items():
        own = [row for row in results.of(way, default) if row.solved is not None]
        if not own:
            continue
        for question, wanted in (
            ("tie", f"at least {RIGHT} of the decisions right on every tie"),
            ("price", "at most 0.02 deviations given up on every price"),
            ("trap", f"at least {RIGHT} of the decisions right on every trap"),
        ):
            asked = [row for row in own if row.question == question]
            claims.append(_claim(way, question, wanted, asked))
        claims.append(_others(results, way))
        claims.append(_established(results, way))
    return claims


def _claim(way: str, question: str, wanted: str, rows: list[SuiteRow]) -> Claim:
    failed = [row for row in rows if not row.solved]
    said = f"{len(rows) - len(failed)} of {len(rows)}"
    if failed:
        said += "; not: " + "; ".join(
            f"{row.title} (right {row.right.mean:.2f}, gives up {row.given_up.mean:.2f})"
            for row in failed
            if row.right is not None and row.given_up is not None
        )
    verdict: Finding = "reproduced" if not failed else "partly" if len(failed) < len(rows) else (
        "not reproduced"
    )  # fmt: skip
    statement = f"The default SSD agent answers every {question} ({_ways(way)})."
    return Claim(f"suite/{way}-{question}", "not claimed", statement, said, verdict, wanted)


def _ways(way: str) -> str:
    titles = {"same": "the rule on the same data", "online": "the agent, online"}
    return titles.get(way, "networks")


def _others(results: SuiteResults, way: str) -> Claim:
    """Which rules solve every question at the scale 1."""
    tasks = {row.title for row in results.of(way) if row.scale == 1 and row.solved is not None}
    done: dict[str, set[str]] = {}
    for row in (*results.of(way), *results.of("sb3" if way == "network" else "static")):
        if row.scale == 1 and row.solved:
            done.setdefault(row.player, set()).add(row.title)
    counts = {player: len(titles) for player, titles in sorted(done.items())}
    everything = [player for player, number in counts.items() if number == len(tasks)]
    said = ", ".join(f"{player} {number}" for player, number in counts.items())
    holds = everything == [DEFAULT[way]]
    return Claim(
        f"suite/{way}-others",
        "not claimed",
        f"The default SSD agent answers all {len(tasks)} questions, and nobody else does "
        f"({_ways(way)}).",
        f"questions answered: {said}",
        "reproduced" if holds else "not reproduced",
        "Our rules decide on the same networks."
        if way == "network"
        else "Static CVaR plans with the process known, where rewards are discrete.",
    )


def _established(results: SuiteResults, way: str) -> Claim:
    """On a tie the means are equal, so that dominance can hardly be established: see the page."""
    counts: dict[str, int] = {}
    for row in results.of(way, DEFAULT[way]):
        if row.question == "tie" and row.solved is not None:
            for said, number in row.words.items():
                counts[said] = counts.get(said, 0) + number
    total = sum(counts.values())
    holds = counts.get("established", 0) >= 0.9 * total
    said = ", ".join(f"{word} {number}" for word, number in sorted(counts.items()))
    return Claim(
        f"suite/{way}-established",
        "not claimed",
        f"On ties the returns of SSD dominate greedy's, 'established' on nine seeds in ten "
        f"({_ways(way)}).",
        f"{said}, of {total}",
        "reproduced" if holds else "not reproduced",
        "On a tie the two means are equal; the test establishes dominance only where the better "
        "mean is seen, too. 'Same': greedy acts alike on that seed.",
    )


EXPERIMENT = Experiment(
    kind="suite",
    config=SuiteConfig,
    measure=by_cells(compute_cell, "suite"),
    read=read,
    summarise=summary,
    judge=judge,
    draw=draw,
    seeds=lambda config: list(range(config.seed, config.seed + config.most_seeds)),
)
