"""A sweep on a page: its cells with intervals over seeds, profiles, who does better, curves."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

from surefoot import plots
from surefoot.report.comparison import choice_part, method_note, verdict_parts
from surefoot.report.page import DataTable, Figure, Note, Part, guarded
from surefoot.report.stored import Stored, drawn_uri
from surefoot.runs.files import read_bytes
from surefoot.training.sweep.summary import few_seeds

MOST_FAILURES = 24  # that a page lists
MOST_PAIRS = 60
OF_TRIAL = ("seed", "return", "key")  # columns of trials.csv that are no setting
NUMBERS = {
    "seeds": "seeds", "failed": "failed", "mean": "return", "low": "95 % from", "high": "to",
    "cvar_0.25": "worst 25 %", "training_return": "training",
}  # fmt: skip


def sweep_parts(stored: Stored) -> list[Part]:
    return [
        *guarded("Cells", lambda: _cells(stored)),
        *guarded("Performance profiles", lambda: _profiles(stored)),
        *guarded("Probability of improvement", lambda: _improvements(stored)),
        *guarded("Dominance between cells", lambda: _verdicts(stored)),
        *guarded("Learning curves", lambda: _curves(stored)),
        *guarded("Failures", lambda: _failures(stored)),
    ]


def _cells(stored: Stored) -> list[Part]:
    cells = stored.json("summary.json").get("cells")
    if not cells:
        return [Note("The sweep has no summary yet.", "quiet")]
    dots: dict[str, list[float]] = {}
    for row in _trials(stored):
        if row["return"]:
            dots.setdefault(_label(row), []).append(float(row["return"]))
    labels = [plots.cell_label(cell) for cell in cells]
    rows = tuple(
        (name, *(_number(cell.get(key)) for key in NUMBERS))
        for name, cell in zip(labels, cells, strict=True)
    )
    caption = "Intervals are bootstrapped over seeds and lie within what the seeds have reached."
    table = DataTable(
        ("cell", *NUMBERS.values()), rows, "Each cell in numbers", caption, look="numbers"
    )
    drawn = plots.draw_sweep_cells(cells, [dots.get(name, []) for name in labels])
    few = few_seeds(cells)
    return [
        *([Note(few, "warning")] if few else []),
        Figure("cells", "Return of each cell", drawn_uri(drawn), "A dot is a seed."),
        table,
    ]


def _profiles(stored: Stored) -> list[Part]:
    """Of cells with several seeds; environments apart, since their returns are not comparable."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in _trials(stored):
        if row["return"] and np.isfinite(float(row["return"])):
            method = {name: value for name, value in row.items() if name != "env"}
            own = values.setdefault(row.get("env", ""), {})
            own.setdefault(_label(method), []).append(float(row["return"]))
    if not any(len(own) > 1 for methods in values.values() for own in methods.values()):
        return []
    caption = (
        "How many of the trainings of a cell return more than the value below: a curve that lies "
        "above another is better there. Bands: 95 % at each point."
    )
    drawn = plots.draw_sweep_profiles(values)
    return [Figure("profiles", "Performance profiles", drawn_uri(drawn), caption)]


def _improvements(stored: Stored) -> list[Part]:
    pairs = stored.json("summary.json").get("improvements") or []
    if not pairs:
        return []
    rows = tuple(
        (str(p["a"]), str(p["b"]), f"{p['mean']:.2f} [{p['low']:.2f}, {p['high']:.2f}]")
        for p in sorted(pairs, key=lambda p: -abs(p["mean"] - 0.5))[:MOST_PAIRS]
    )
    caption = (
        "How likely a training of the first does better than one of the second, ties counted half: "
        "0.5 is no difference. 95 % bootstrap intervals"
        + (", averaged over environments." if pairs[0]["tasks"] > 1 else ".")
    )
    header = ("cell", "against", "does better with probability")
    return [DataTable(header, rows, "Probability of improvement", caption)]


def _verdicts(stored: Stored) -> list[Part]:
    """Paired by seed; a sweep with one cell, or with very many, has none."""
    if not stored.has("comparison.json"):
        return []
    content = stored.json("comparison.json")
    parts: list[Part] = []
    for task, own in content.get("environments", {"": content}).items():
        notes = [Note(f"{note}.", "warning") for note in own["notes"]]
        where = f" ({task})" if task else ""
        parts += [*notes, choice_part(own, where), *verdict_parts(own, where), method_note(own)]
    about = "Cells are compared by the mean return of each training, paired by seed."
    return [*parts, Note(about, "quiet")]


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


def _trials(stored: Stored) -> list[dict[str, str]]:
    if not stored.has("trials.csv"):
        return []
    return list(csv.DictReader(read_bytes(stored.file("trials.csv")).decode().splitlines()))


def _label(row: dict[str, str]) -> str:
    return plots.cell_label({k: v for k, v in row.items() if k not in OF_TRIAL})


def _curves(stored: Stored) -> list[Part]:
    """Evaluation return while learning, of the trials that were evaluated on the way."""
    curves: dict[str, list[np.ndarray]] = {}
    for row in _trials(stored):
        name = f"results/{row['key']}.json"
        if row["key"].isalnum() and stored.has(name):
            curve = np.asarray(stored.json(name)["curve"], dtype=float)
            curves.setdefault(_label(row), []).append(curve)
    if not any(len(curve) > 1 for own in curves.values() for curve in own):
        return []
    return [Figure("curves", "Learning curves", drawn_uri(plots.draw_sweep_curves(curves)))]


def _failures(stored: Stored) -> list[Part]:
    failures = stored.json("summary.json").get("failures", {})
    if not failures:
        return []
    rows = tuple((str(name), str(why)) for name, why in list(failures.items())[:MOST_FAILURES])
    more = f"The first {MOST_FAILURES} of {len(failures)}." if len(failures) > len(rows) else ""
    return [DataTable(("trial", "why it has no result"), rows, "Trials without a result", more)]
