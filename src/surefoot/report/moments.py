"""Section 5.1 and the ablation on a page: violins, RMSE, paired differences, heat maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.core.stats import Interval
from surefoot.paper.regression_report import ORDINALS
from surefoot.report.charts import axes, dots, explained, keys, looks_of, numbers, rule, text
from surefoot.report.parts import Chart, Key, Panel, one
from surefoot.report.run import Builder, Run

TITLES = {
    "five": "five-component mixture", "six": "six-component mixture", "narrow": "narrow mixture",
}  # fmt: skip
KINDS = {"rmse": "error (RMSE)", "rms_shift": "distance from the sample's moment (RMS)"}


def regression(run: Run) -> dict[str, Builder]:
    found: dict[str, Builder] = {}
    for name in readings(run):
        found[f"errors-{name}"] = lambda run, n=name: violins(run, n)  # type: ignore[misc]
        found[f"differences-{name}"] = lambda run, n=name: differences(run, n)  # type: ignore[misc]
    return found


def readings(run: Run) -> list[str]:
    """As the run names them; from its figures where it has no summary."""
    try:
        return list(dict.fromkeys(row["reading"] for row in run.summary["accuracy"]))
    except (KeyError, TypeError, AttributeError):
        return []


def violins(run: Run, reading: str) -> Chart:
    table = run.table("results")
    table = table.filter((table["reading"] == reading) & table["converged"])
    methods = table["method"].unique(maintain_order=True).to_list()
    looks, sizes = looks_of(methods), run.config["particles"]
    panels = []
    for k in (1, 2):
        traces = []
        for method in methods:
            own = table.filter(table["method"] == method)
            error = np.abs((own[f"estimate_{k}"] - own[f"truth_{k}"]).to_numpy())
            traces.append(_violin([f"{n} particles" for n in own["particles"]], error, method,
                                  looks[method].color))  # fmt: skip
        order = {"categoryorder": "array", "categoryarray": [f"{n} particles" for n in sizes]}
        layout = axes("", f"absolute error, {ORDINALS[k]} moment", xaxis=order,
                      yaxis={"rangemode": "tozero"}, violinmode="group", violingap=0.1,
                      violingroupgap=0.05)  # fmt: skip
        panels.append(Panel(f"{ORDINALS[k].capitalize()} moment", tuple(traces), layout, 380))
    legend = tuple(Key(m, looks[m].color, "", "area") for m in methods)
    caption = f"{run.config['trials']} trials each. Box: middle half; line: median; dashes: mean."
    title = f"Error of the moments, {TITLES.get(reading, reading)}"
    return Chart(f"errors-{reading}", title, one(*panels), legend, caption, width=560)


def _violin(x: list[str], y: np.ndarray, name: str, color: str) -> dict[str, Any]:
    return {
        "type": "violin", "x": x, "y": numbers(y, 4), "name": text(name), "legendgroup": name,
        "offsetgroup": name, "line": {"color": color, "width": 1}, "spanmode": "hard",
        "box": {"visible": True, "width": 0.25}, "meanline": {"visible": True}, "points": False,
        "hoverinfo": "y+name", "scalemode": "width", "hoveron": "violins",
    }  # fmt: skip


def differences(run: Run, reading: str) -> Chart:
    sizes, margin = list(run.config["particles"]), float(run.config["margin"])
    accuracy = [r for r in run.summary["accuracy"] if r["reading"] == reading]
    found = [r for r in run.summary["comparisons"] if r["reading"] == reading]
    methods = list(dict.fromkeys(r["method"] for r in accuracy))
    looks = looks_of(methods)
    above, below = [], []
    for k in (1, 2):
        rows = [r for r in accuracy if r["moment"] == k and r["rmse"] is not None]
        points = [(r["method"], r["particles"], explained(r["rmse"])) for r in rows]
        levels = {r["particles"]: r["sampling_error"] for r in rows}
        shapes = [_level(sizes.index(n), level) for n, level in levels.items()]
        layout = _size_axes(sizes, "RMSE", shapes) | {"title": {"text": ""}}
        layout["yaxis"]["rangemode"] = "tozero"
        title = f"{ORDINALS[k].capitalize()} moment: RMSE (dashed: sampling error)"
        above.append(Panel(title, _dodged(points, sizes, looks), layout, 320))
        rows = [r for r in found if r["moment"] == k and r["side"] == "estimate"]
        points = [
            (r["method"], r["particles"], _scaled(r, 100 * margin / r["margin"])) for r in rows
        ]
        label = "minus QR's (% of sampling error)"
        band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": -100 * margin,
                "y1": 100 * margin, "fillcolor": "rgba(128,128,128,0.2)", "line": {"width": 0},
                "layer": "below"}  # fmt: skip
        layout = _size_axes(sizes, label, [band, rule(0)])
        title = f"{ORDINALS[k].capitalize()} moment: paired difference (grey: equivalence)"
        below.append(Panel(title, _dodged(points, sizes, looks), layout, 320))
    caption = f"95 % intervals over {run.config['trials']} trials; differences are paired."
    title = f"RMSE and paired differences, {TITLES.get(reading, reading)}"
    legend = keys(methods, looks, lines=False)
    return Chart(f"differences-{reading}", title, one(*above, *below), legend, caption, width=460)


def _scaled(row: dict[str, Any], factor: float) -> Interval:
    mean, low, high = (factor * row[name] for name in ("difference", "low", "high"))
    return Interval(mean, low, high, row["trials"])


def _dodged(
    points: list[tuple[str, int, Interval]], sizes: list[int], looks: dict[str, Any]
) -> tuple[dict[str, Any], ...]:
    """Intervals side by side within each size."""
    names, traces = list(dict.fromkeys(name for name, *_ in points)), []
    for i, name in enumerate(names):
        own = [(n, value) for each, n, value in points if each == name]
        shift = (i - (len(names) - 1) / 2) * 0.8 / len(names)
        at = [sizes.index(n) + shift for n, _ in own]
        traces.append(dots(at, [value for _, value in own], name, looks[name]))
    return tuple(traces)


def _size_axes(sizes: list[int], label: str, shapes: list[dict[str, Any]]) -> dict[str, Any]:
    x = {"tickvals": list(range(len(sizes))), "ticktext": [str(n) for n in sizes],
         "range": [-0.5, len(sizes) - 0.5], "showgrid": False}  # fmt: skip
    return axes("particles", label, xaxis=x, shapes=shapes)


def _level(at: int, value: float) -> dict[str, Any]:
    return {"type": "line", "x0": at - 0.45, "x1": at + 0.45, "y0": value, "y1": value,
            "line": {"color": "#000000", "dash": "dash", "width": 1.5}}  # fmt: skip


# --- the ablation ------------------------------------------------------------------------


def ablation() -> dict[str, Builder]:
    return {"ablation": heat_maps}


def heat_maps(run: Run) -> Chart:
    cells, steps = run.summary["cells"], run.config["steps"]
    temperatures = list(dict.fromkeys(c["temperature"] for c in cells))
    sizes = list(dict.fromkeys(c["step_size"] for c in cells))
    by = {(c["temperature"], c["step_size"]): c for c in cells}
    rows = [[by[t, h] for h in sizes] for t in temperatures]
    names = ["exact" if t == 0 else f"{t:g}" for t in temperatures], [f"{h:g}" for h in sizes]
    panels = []
    for kind, told in KINDS.items():
        for k in (1, 2):
            traces, notes = _heat(rows, f"{kind}_{k}", names)
            layout = axes("step size h", "final temperature", xaxis={"type": "category"},
                          yaxis={"type": "category", "autorange": "reversed"},
                          annotations=notes)  # fmt: skip
            panels.append(Panel(f"{ORDINALS[k].capitalize()} moment: {told}", traces, layout, 430))
    caption = (
        f"{run.config['particles']} particles, {run.config['trials']} trials; ± is half the 95 % "
        f"interval. Grey: some trial was not at equilibrium after {steps} steps, so its number "
        "says where the flow was stopped. Colours on a logarithmic scale."
    )
    return Chart(
        "ablation", "Final temperature and step size", one(*panels), (), caption, width=480
    )


def _heat(
    rows: list[list[dict[str, Any]]], name: str, labels: tuple[list[str], list[str]]
) -> tuple[tuple[dict[str, Any], ...], list[dict[str, Any]]]:
    """Two maps, of the cells at equilibrium and of the others, and the numbers written on them."""
    shown = [[explained(cell[name]) for cell in row] for row in rows]
    stopped = np.array([[not cell["at_equilibrium"] for cell in row] for row in rows])
    logs = np.log10([[max(i.mean, 1e-12) for i in row] for row in shown])
    told = [[f"{i.mean:.3g}<br>±{i.half_width:.2g}" for i in row] for row in shown]
    low, high = _calm(logs[~stopped])
    y, x = labels
    cells = {"type": "heatmap", "x": x, "y": y, "text": told, "xgap": 1, "ygap": 1}
    hover = "temperature %{y}, h %{x}: %{text}"
    grey = {
        **cells, "z": [[1 if out else None for out in row] for row in stopped],
        "colorscale": [[0, "#8a8f98"], [1, "#8a8f98"]], "showscale": False, "opacity": 0.35,
        "hovertemplate": f"{hover}, not at equilibrium<extra></extra>",
    }  # fmt: skip
    colour = {
        **cells, "z": [[None if out else round(float(v), 4) for v, out in zip(*pair, strict=True)]
                       for pair in zip(logs, stopped, strict=True)],
        "colorscale": "Cividis", "zmin": low, "zmax": high, "colorbar": _bar(low, high),
        "hovertemplate": f"{hover}<extra></extra>",
    }  # fmt: skip
    notes = []
    for (row, column), value in np.ndenumerate(logs):
        bright = (value - low) / (high - low) > 0.55  # where the map is light, dark numbers
        ink = "#000000" if stopped[row, column] else "#111111" if bright else "#ffffff"
        # By index: an axis of categories would take the text "0.1" for a place.
        notes.append({"x": column, "y": row, "text": told[row][column], "showarrow": False,
                      "font": {"size": 10, "color": ink}})  # fmt: skip
    return (grey, colour), notes


def _calm(logs: np.ndarray) -> tuple[float, float]:
    """Where all cells agree within a tenth, one colour: colours must not magnify rounding."""
    if not logs.size:
        return 0.0, 1.0
    low, high = float(logs.min()), float(logs.max())
    return (low - 0.18, high + 0.18) if high - low < np.log10(1.1) else (low, high)


def _bar(low: float, high: float) -> dict[str, Any]:
    at = np.linspace(low, high, 5)
    return {"thickness": 12, "outlinewidth": 0, "tickvals": numbers(at),
            "ticktext": [f"{10**v:.2g}" for v in at]}  # fmt: skip
