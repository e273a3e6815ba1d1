"""Section 5.3 on a page: evaluation returns of every trial, second moments, the choices made."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from surefoot.core.stats import interquartile_mean
from surefoot.paper.gym import TASKS
from surefoot.paper.gym_choices import Setting
from surefoot.plots.styles import style
from surefoot.report.charts import axes, keys, line, looks_of, numbers, rule, text
from surefoot.report.parts import AbsentError, Chart, Key, Panel, one
from surefoot.report.run import Builder, Run

TABLE = re.compile(r"(?P<task>.+?)(?:\.(?P<loss>[a-z-]+)-(?P<seed>\d+))?")


def builders(run: Run) -> dict[str, Builder]:
    found: dict[str, Builder] = {"returns": returns, "scores": scores}
    if "moments" in run.summary:
        found["second-moments"] = second_moments
    return found


def _frames(run: Run) -> dict[str, Any]:
    """Rows of all trials of each task; a task is one table, or one per trial."""
    import polars as pl

    found: dict[str, list[Any]] = {}
    for name in run.store.tables:
        match = TABLE.fullmatch(name)
        if match and match["task"].removesuffix("-exploring") in TASKS:
            found.setdefault(match["task"], []).append(run.table(name))
    if not found:
        raise AbsentError(
            "the tables of the trials are not here: they are made by running it again"
        )
    order = [task for base in TASKS for task in (base, f"{base}-exploring") if task in found]
    return {task: pl.concat(found[task]) for task in order}


def returns(run: Run) -> Chart:
    panels, losses = [], {}
    for name, frame in _frames(run).items():
        traces: list[dict[str, Any]] = []
        for loss in frame["loss"].unique().sort().to_list():
            losses[loss] = look = style(loss)
            own = frame.filter(frame["loss"] == loss).sort("seed", "step")
            steps = own["step"].unique().sort().to_numpy()
            curves = own["return"].to_numpy().reshape(-1, len(steps))
            thin = [line(steps, curve, loss, look, markers=0, width=1) for curve in curves]
            traces += [{**t, "opacity": 0.35, "hoverinfo": "skip", "hovertemplate": None}
                       for t in thin]  # fmt: skip
            middle = [interquartile_mean(column) for column in curves.T]
            traces.append(line(steps, middle, loss, look, width=2.5))
        task = TASKS[name.removesuffix("-exploring")]
        title = task.env_id + (", settings made for the task" if "exploring" in name else "")
        layout = axes("environment steps", "return of ten greedy episodes",
                      shapes=[rule(task.solved)])  # fmt: skip
        panels.append(Panel(title, tuple(traces), layout, 330))
    caption = "All trials thin, their interquartile mean thick. Dotted: solved."
    return Chart("returns", "Evaluation return", one(*panels), keys(losses, losses), caption)


def scores(run: Run) -> Chart:
    """Final score of each trial, from the summary alone."""
    panels = []
    for name in (n for n in run.summary if n in TASKS):
        facts, traces = run.summary[name], []
        rows = {"paper's settings": facts} | (
            {"settings made for the task": facts["exploring"]} if "exploring" in facts else {}
        )
        for i, loss in enumerate(("qr", "wgf")):
            look, at, values = style(loss), [], []
            for k, row in enumerate(rows.values()):
                values += row[loss]
                at += [k + (i - 0.5) * 0.3] * len(row[loss])
            trace = line(values, at, loss, look, hover="%{x:.5g}")
            traces.append(trace | {"mode": "markers"})
        y = {"tickvals": list(range(len(rows))), "ticktext": list(rows), "title": {"text": ""},
             "range": [len(rows) - 0.5, -0.5]}  # fmt: skip
        layout = axes("final return", "", yaxis=y, shapes=[rule(TASKS[name].solved, upright=True)])
        panels.append(Panel(TASKS[name].env_id, tuple(traces), layout, 200))
    looks = {loss: style(loss) for loss in ("qr", "wgf")}
    caption = "Mean return over the last fifth of training, one mark per trial. Dotted: solved."
    return Chart("scores", "Final return of each trial", one(*panels),
                 keys(looks, looks, lines=False), caption)  # fmt: skip


def second_moments(run: Run) -> Chart:
    found = run.summary["moments"]
    parts = {"arms": "reward noise (arms)", "fork": "noise behind a fork"}
    looks = looks_of(list(parts.values()))
    traces = tuple(
        {
            "type": "bar", "orientation": "h", "name": label, "legendgroup": label,
            "y": [text(n) for n in found], "x": numbers([f[part] for f in found.values()]),
            "marker": {"color": looks[label].color},
            "hovertemplate": "%{y}: %{x:.3g}<extra>" + label + "</extra>",
        }
        for part, label in parts.items()
    )  # fmt: skip
    layout = axes("learned over true standard deviation", "", barmode="group",
                  shapes=[rule(1.0, upright=True)],
                  yaxis={"autorange": "reversed", "title": {"text": ""}})  # fmt: skip
    panel = Panel("", traces, layout, 80 + 46 * len(found))
    legend = tuple(Key(label, looks[label].color, "", "box") for label in parts.values())
    caption = "1 is right, 0 is blind to the noise."
    return Chart("second-moments", "Learned dispersion", one(panel), legend, caption)


def choices() -> dict[str, Builder]:
    return {"choices": _choices}


def _choices(run: Run) -> Chart:
    panels = []
    for task, rows in run.summary.items():
        labels = [_label(row) for row in rows]
        traces: list[dict[str, Any]] = []
        for loss in ("qr", "wgf"):
            look = style(loss)
            for part, symbol in (("half", "-open"), ("whole", "")):
                pairs = [(v, i) for i, row in enumerate(rows) if row["loss"] == loss
                         for v in row[part]]  # fmt: skip
                values, at = np.asarray(pairs).T
                trace = line(values, at, loss, look, hover="%{x:.5g}") | {"mode": "markers"}
                trace["marker"] = {**trace["marker"], "symbol": trace["marker"]["symbol"] + symbol}
                trace["marker"].pop("maxdisplayed")
                traces.append(trace)
        y = {"tickvals": list(range(len(rows))), "ticktext": [text(n) for n in labels],
             "autorange": "reversed", "title": {"text": ""}}  # fmt: skip
        layout = axes("return", "", yaxis=y, shapes=[rule(TASKS[task].solved, upright=True)])
        panels.append(Panel(TASKS[task].env_id, tuple(traces), layout, 90 + 24 * len(rows)))
    looks = {loss: style(loss) for loss in ("qr", "wgf")}
    caption = "Full: the last fifth of the run; open: of its first half. Dotted: solved."
    return Chart("choices", "The choices section 5.3 leaves open", one(*panels),
                 keys(looks, looks, lines=False), caption, width=430)  # fmt: skip


def _label(row: dict[str, Any]) -> str:
    names = [name for name in Setting._fields if name in row]
    return f"{row['loss']}, {Setting(**{name: row[name] for name in names}).label}"
