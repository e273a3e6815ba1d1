"""Section 5.4 on a page: curves per episode, who decided, paths, the sweep, and the grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from surefoot.core.stats import mean_interval
from surefoot.envs.cliffs import ACTION_NAMES, CliffGrid, noisy_states, risky_cliff
from surefoot.paper.risky_cliff.config import Cell, Config
from surefoot.paper.risky_cliff.figures import WHO, WINDOW, label_of
from surefoot.plots.styles import style
from surefoot.report import explorer
from surefoot.report.charts import (
    axes,
    band,
    dots,
    explained,
    keys,
    line,
    numbers,
    rule,
    text,
)
from surefoot.report.parts import AbsentError, Chart, Explorer, Key, Panel, one
from surefoot.report.run import Builder, Run

# Colour and pattern of each authority, as in the experiment's own figure.
AUTHORITIES = dict(
    zip(
        WHO,
        (("#0072B2", ""), ("#56B4E9", ""), ("#E69F00", "/"), ("#CC79A7", "x"), ("#BBBBBB", ".")),
        strict=True,
    )
)
CURVES = {  # name of the figure: column, axis, title, added up
    "top-row": ("over_top", "share of episodes", "Over the top row", False),
    "falls": ("falls", "cliff falls so far", "Falls from the cliff", True),
    "return": ("return", "return per episode", "Return", False),
    "steps": ("steps", "steps per episode", "Steps", False),
    "ties": ("ties", "steps per episode", "Steps with several best actions", False),
}
FINALS = {
    "top_row_share": "episodes over the top row (share)",
    "falls": "cliff falls per trial",
    "return": "return per episode",
    "steps": "steps per episode",
}


def builders() -> dict[str, Builder]:
    found: dict[str, Builder] = {"explorer": grid, "final": final_values}
    for name in CURVES:
        found[name] = lambda run, name=name: curves(run, name)  # type: ignore[misc]
    return found | {"who-decided": who_decided, "paths": paths, "tolerance": sweep}


def config_of(run: Run) -> Config:
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in run.config.items()
    }
    values.pop("kind", None)
    return Config(**values)


def _legend(policies: tuple[str, ...]) -> tuple[Key, ...]:
    labels = {label_of(p): style(p) for p in policies}
    return keys(labels, labels)


# --- curves ------------------------------------------------------------------------------


def curves(run: Run, name: str) -> Chart:
    config = config_of(run)
    column, label, title, adding = CURVES[name]
    panels = []
    for loss in config.losses:
        traces: list[dict[str, Any]] = []
        late = []
        for policy in config.policies:
            values = _values(run, Cell(loss, policy, config.tolerance), column)
            values = np.cumsum(values, axis=1) if adding else smooth(values)
            late.append(values[:, 20:])
            x = np.arange(values.shape[1]) + (1 if adding else (WINDOW + 1) / 2)
            traces += band(x, mean_interval(values), label_of(policy), style(policy))
        layout = axes("episode", label)
        if column in ("steps", "return"):
            layout["yaxis"]["range"] = _range(column, np.concatenate(late))
        panels.append(Panel(loss, tuple(traces), layout))
    what = f"Mean of {config.trials} trials with 95 % interval"
    note = "" if adding else f", averaged over {WINDOW} episodes"
    wild = ". The first wild episodes lie outside the frame: double-click to see all"
    caption = what + note + (wild if column in ("steps", "return") else "") + "."
    return Chart(name, title, one(*panels), _legend(config.policies), caption)


def _values(run: Run, cell: Cell, column: str) -> np.ndarray:
    frame = run.table(cell.name)
    trials = int(frame["trial"].max()) + 1  # type: ignore[arg-type]
    return frame[column].to_numpy().reshape(trials, -1)


def smooth(values: np.ndarray) -> np.ndarray:
    """Moving average over episodes `[trials, episodes - WINDOW + 1]`."""
    total = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    width = min(WINDOW, values.shape[1])
    return (total[:, width:] - total[:, :-width]) / width


def _range(column: str, late: np.ndarray) -> list[float]:
    if not late.size:
        return [0, 50] if column == "steps" else [-100, 0]
    if column == "steps":
        return [10, max(30.0, float(np.percentile(late, 99)))]
    return [min(-60.0, float(np.percentile(late, 1))), 0]


# --- from the summary ----------------------------------------------------------------------


def final_values(run: Run) -> Chart:
    known = [*run.config["losses"], *run.config["checks"], *run.summary["losses"]]
    losses = {k: run.summary["losses"][k] for k in dict.fromkeys(known)}
    found = [p for cells in losses.values() for p in cells]
    policies = tuple(p for p in dict.fromkeys([*run.config["policies"], *found]) if p in found)
    panels = []
    for name, label in FINALS.items():
        traces = []
        for i, policy in enumerate(policies):
            own = {loss: cells[policy] for loss, cells in losses.items() if policy in cells}
            shift = (i - (len(policies) - 1) / 2) * 0.8 / len(policies)
            at = [list(losses).index(loss) + shift for loss in own]
            shown = [explained(cell[name]) for cell in own.values()]
            traces.append(dots(at, shown, label_of(policy), style(policy), across=True))
        ticks = {"tickvals": list(range(len(losses))), "ticktext": [text(n) for n in losses]}
        layout = axes(label, "", yaxis={**ticks, "autorange": "reversed", "title": {"text": ""}})
        panels.append(Panel("", tuple(traces), layout, 60 + 58 * len(losses)))
    last = run.summary.get("last_episodes", "last")
    caption = f"Mean over trials with 95 % interval, over the last {last} episodes; falls over all."
    return Chart("final", "What each policy came to", one(*panels), _legend(policies), caption)


def who_decided(run: Run) -> Chart:
    losses = {k: run.summary["losses"][k] for k in run.config["losses"]}
    panels = []
    for loss, cells in losses.items():
        policies = [p for p in run.config["policies"] if p in cells]
        traces = tuple(
            {
                "type": "bar", "orientation": "h", "name": text(who.replace("_", "-")),
                "legendgroup": who.replace("_", "-"),
                "y": [text(label_of(p)) for p in policies],
                "x": numbers([100 * cells[p]["decided_by"][who] for p in policies]),
                "marker": {"color": color, "pattern": {"shape": pattern, "fillmode": "overlay"}},
                "hovertemplate": "%{y}: %{x:.1f} %" + f"<extra>{text(who)}</extra>",
            }
            for who, (color, pattern) in AUTHORITIES.items()
        )  # fmt: skip
        layout = axes(
            "share of steps (%)", "", barmode="stack", xaxis={"range": [0, 100]},
            yaxis={"autorange": "reversed", "title": {"text": ""}},
        )  # fmt: skip
        panels.append(Panel(loss, traces, layout))
    legend = tuple(Key(w.replace("_", "-"), c, "", "box") for w, (c, _) in AUTHORITIES.items())
    caption = "Who chose the action, over all steps of all trials, exploration included."
    return Chart("who-decided", "Who decided", one(*panels), legend, caption)


def sweep(run: Run) -> Chart:
    rows = run.summary["tolerance_sweep"]
    if not rows:
        raise AbsentError("this run swept no tolerances")
    true = run.summary["true_std_at_the_fork"]["right"]
    policies = tuple(dict.fromkeys(row["policy"] for row in rows))
    titles = {"top_row_share": "share of episodes over the top row", "falls": FINALS["falls"]}
    panels = []
    for name, label in titles.items():
        traces = tuple(
            dots([r["tolerance"] for r in own], [explained(r[name]) for r in own],
                 label_of(p), style(p), joined=True)
            for p in policies for own in [[r for r in rows if r["policy"] == p]]
        )  # fmt: skip
        panels.append(Panel("", traces, _tolerance_axes(label, true)))
    own = [r for r in rows if r["policy"] == "ssd"]
    decided = [r["share_of_ties_decided_by_dominance"] for r in own]
    trace = line([r["tolerance"] for r in own], decided, label_of("ssd"), style("ssd"))
    panels.append(Panel("", (trace,), _tolerance_axes("share of ties dominance decides", true)))
    caption = (
        f"Mean of {run.config['sweep_trials']} trials with 95 % interval, wgf-mixture. Dotted: "
        "deviation of the return along the cliff. The tolerance must lie below it, and above the "
        "jitter of the estimates."
    )
    return Chart("tolerance", "What the tie tolerance does", one(*panels), _legend(policies),
                 caption)  # fmt: skip


def _tolerance_axes(label: str, true: float) -> dict[str, Any]:
    x = {"type": "log", "exponentformat": "power", "dtick": 1}
    return axes("tie tolerance (units of return)", label, xaxis=x,
                shapes=[rule(true, upright=True)])  # fmt: skip


# --- paths -------------------------------------------------------------------------------


def paths(run: Run) -> Chart:
    config = config_of(run)
    grid, mdp = CliffGrid(config.rows, config.columns), _mdp(config)
    noisy = noisy_states(mdp)
    variants = {}
    for loss in config.losses:
        panels = []
        for policy in config.policies:
            table = run.table(f"path.{Cell(loss, policy, config.tolerance).name}")
            own, greedy = (_walk(grid, table[name].to_numpy()) for name in ("own", "greedy"))
            panels.append(
                _path_panel(grid, noisy, table["visited"].to_numpy(), own, greedy, policy)
            )
        variants[loss] = tuple(panels)
    legend = (
        Key("behaviour", "#D55E00", "solid", "circle"),
        Key("greedy target", "#000000", "dash"),
        Key("random reward", "#E69F00", "dot"),
        Key("cliff", "#6E6E6E", "", "box"),
    )
    caption = (
        "Lines: paths of the first trial without exploration. Shade and numbers: % of trials "
        "whose behaviour passes. S start, G goal."
    )
    return Chart("paths", "Paths learned", variants, legend, caption, "loss", 420)


def _mdp(config: Config) -> Any:
    return risky_cliff(rows=config.rows, columns=config.columns, sigma=config.sigma)


def _walk(grid: CliffGrid, place: np.ndarray) -> np.ndarray:
    """Cells `[steps, 2]` in the order of the walk."""
    order = np.argsort(place, kind="stable")[int((place < 0).sum()) :]
    return np.asarray([grid.cell(int(s)) for s in order])


def _path_panel(
    grid: CliffGrid,
    noisy: np.ndarray,
    visited: np.ndarray,
    own: np.ndarray,
    greedy: np.ndarray,
    policy: str,
) -> Panel:
    share = 100 * visited.reshape(grid.rows, grid.columns)
    shown = [[None if grid.is_cliff(grid.state(r, c)) else round(float(share[r, c]))
              for c in range(grid.columns)] for r in range(grid.rows)]  # fmt: skip
    heat = {
        "type": "heatmap", "z": shown, "zmin": 0, "zmax": 100, "showscale": False, "xgap": 1,
        "ygap": 1, "colorscale": [[0, "rgba(86,180,233,0.06)"], [1, "rgba(86,180,233,0.75)"]],
        "hovertemplate": "row %{y}, column %{x}: %{z} % of trials<extra></extra>",
    }  # fmt: skip
    looks = (
        (greedy, "greedy target", {"color": "#000000", "dash": "dash", "width": 1.5}, "lines"),
        (own, "behaviour", {"color": "#D55E00", "width": 2.5}, "lines+markers"),
    )
    walks = [
        {"type": "scatter", "x": cells[:, 1].tolist(), "y": cells[:, 0].tolist(), "mode": mode,
         "line": look, "marker": {"color": look["color"], "size": 6}, "legendgroup": name,
         "name": name, "hoverinfo": "skip"}
        for cells, name, look, mode in looks if len(cells)
    ]  # fmt: skip
    plain = {"dtick": 1, "showgrid": False, "zeroline": False}
    layout = axes(
        "column", "row", shapes=list(_boxes(grid, noisy)), annotations=list(_marks(grid, shown)),
        xaxis={"range": [-0.5, grid.columns - 0.5], **plain},
        yaxis={"range": [grid.rows - 0.5, -0.5], **plain},
    )  # fmt: skip
    return Panel(label_of(policy), (heat, *walks), layout, 260)


def _boxes(grid: CliffGrid, noisy: np.ndarray) -> Iterator[dict[str, Any]]:
    for state in range(grid.num_states):
        row, column = grid.cell(state)
        box = {"type": "rect", "x0": column - 0.48, "x1": column + 0.48, "y0": row - 0.48,
               "y1": row + 0.48}  # fmt: skip
        if grid.is_cliff(state):
            yield {**box, "fillcolor": "#6E6E6E", "line": {"width": 0}, "layer": "below"}
        elif noisy[state]:
            yield {**box, "line": {"color": "#E69F00", "dash": "dot", "width": 1.5}}


def _marks(grid: CliffGrid, shown: list[list[int | None]]) -> Iterator[dict[str, Any]]:
    for state in range(grid.num_states):
        row, column = grid.cell(state)
        mark = {grid.start: "<b>S</b>", grid.goal: "<b>G</b>"}.get(state)
        at = {"x": column, "showarrow": False, "font": {"size": 9.5}}
        if shown[row][column]:
            yield {**at, "x": column + 0.27, "y": row - 0.32, "text": str(shown[row][column])}
        if mark:
            yield {**at, "y": row + 0.3, "text": mark}


# --- the grid ----------------------------------------------------------------------------


def grid(run: Run) -> Explorer:
    """Every cell of the experiment whose particles are stored, decided by its own policy."""
    config = config_of(run)
    cliff, learned = CliffGrid(config.rows, config.columns), {}
    shape = (cliff.num_states, len(ACTION_NAMES), -1)
    states = explorer.acting_states(cliff)
    for cell in config.cells():
        if cell.sweep or f"particles.{cell.name}" not in run.store.tables:
            continue
        frame = run.table(f"particles.{cell.name}").sort("state", "action", "particle")
        behaviour = config.agent(cell).behaviour
        policies = explorer.deciders(behaviour, cell.tolerance, "ssd", "greedy")
        z = frame["z"].to_numpy().reshape(shape)
        learned[f"{cell.loss}, {label_of(cell.policy)}"] = explorer.Learned(
            z, policies, states, seed=config.seed
        )
    if not learned:
        raise AbsentError(
            "the particles.*.parquet tables are not here: they are made again by repeating the "
            "command of this run"
        )
    first = next((n for n in learned if n.endswith("SSD")), next(iter(learned)))
    ordered = {first: learned[first]} | learned
    data = explorer.explore(
        ordered, explorer.grid_places(cliff, noisy_states(_mdp(config))), actions=ACTION_NAMES,
        columns=cliff.columns, start=cliff.state(cliff.rows - 2, 0), choice="learned by",
    )  # fmt: skip
    return Explorer("explorer", "The cliff, state by state", data, CAPTION)


CAPTION = (
    "Click a cell, or walk with the arrow keys: what the first trial learned there, and what a "
    "policy decides. Arrow: the action taken; ringed: dominance decided; dotted: entering pays a "
    "random reward; hatched: the cliff. In the cell above the start the two paths part."
)
