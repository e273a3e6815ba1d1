"""Section 5.2 on a page: distributions, convergence, errors, and the cliff walk state by state."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from surefoot.core.particles import dispersion_space
from surefoot.core.stats import mean_interval
from surefoot.envs.cliffs import ACTION_NAMES, ARROWS, cliff_walk
from surefoot.envs.montecarlo import monte_carlo_returns
from surefoot.paper.evaluation.figures import look_of
from surefoot.paper.evaluation.flows import GRID, PLACES
from surefoot.plots.styles import BLACK, GREY, Style
from surefoot.report import explorer
from surefoot.report.charts import (
    ALPHA,
    axes,
    band,
    between,
    dots,
    explained,
    keys,
    line,
    numbers,
    text,
)
from surefoot.report.parts import Chart, Explorer, Key, Panel, one
from surefoot.report.run import Builder, Run

INK = Style(BLACK, "X", ":")
BINS = 60
MEASURES = {
    "wasserstein_1": ("W₁ to many rollouts (return)", 1.0),
    "second_moment_relative": ("second moment, relative error (%)", 100.0),
    "wasserstein_1_to_fitted_rollouts": ("W₁ to the fitted rollouts (return)", 1.0),
}
ROLLOUTS = 200  # of each action in each state, where the report simulates the policy


def builders() -> dict[str, Builder]:
    found: dict[str, Builder] = {"explorer": grid}
    for place in PLACES:
        found[f"distributions-{place}"] = lambda run, p=place: distributions(run, p)  # type: ignore[misc]
        found[f"outcome-risk-{place}"] = lambda run, p=place: outcome_risk(run, p)  # type: ignore[misc]
    return found | {"convergence": convergence, "errors": errors}


def particles(run: Run, transport: str) -> tuple[np.ndarray, np.ndarray]:
    """Final particles and the rollouts they were fitted to, `[T, P, A, N]` each."""
    frame = run.table(f"particles-{transport}")
    trials = int(frame["trial"].max()) + 1  # type: ignore[arg-type]
    shape = (trials, len(PLACES), len(ACTION_NAMES), -1)
    return tuple(frame[n].to_numpy().astype(float).reshape(shape) for n in ("z", "target_z"))  # type: ignore[return-value]


def distributions(run: Run, place: str) -> Chart:
    index, variants = list(PLACES).index(place), {}
    for transport in run.config["transports"]:
        z, target = particles(run, transport)
        panels = []
        for a, action in enumerate(ACTION_NAMES):
            panels.append(_histograms(z[0, index, a], target[0, index, a], action, transport))
        variants[transport] = tuple(panels)
    legend = (Key("particles", GREY, "", "area"), Key("rollouts", BLACK, "solid"))
    caption = (
        "First trial. Particles per bin, on an axis that is linear up to 10 (the square root is "
        "drawn); in colour the particles, as a line the rollouts they were fitted to."
    )
    return Chart(f"distributions-{place}", f"Return distributions at the {place}", variants, legend,
                 caption.replace(", on an axis that is linear up to 10 (the square root is drawn)",
                                 ", root scale"), "transport", 260)  # fmt: skip


def _histograms(z: np.ndarray, target: np.ndarray, action: str, transport: str) -> Panel:
    edges = np.linspace(min(z.min(), target.min()) - 1, max(z.max(), target.max()) + 1, BINS)
    own, fitted = (np.histogram(values, edges)[0] for values in (z, target))
    middle = (edges[1:] + edges[:-1]) / 2
    top = max(own.max(), fitted.max(), 1)
    ticks = [t for t in (1, 5, 10, 25, 50, 100, 200, 500, 1000, 2000) if t <= top * 1.1]
    bars: dict[str, Any] = {
        "type": "bar", "x": numbers(middle), "y": numbers(np.sqrt(own)), "name": "particles",
        "legendgroup": "particles", "customdata": own.tolist(),
        "marker": {"color": look_of(transport).color, "opacity": 0.6},
        "hovertemplate": "about %{x:.4g}: %{customdata}<extra>particles</extra>",
    }  # fmt: skip
    steps = line(middle, np.sqrt(fitted), "rollouts", Style(BLACK, "X", "-"), markers=0, width=1.2)
    steps["line"]["shape"] = "hvh"
    steps |= {"customdata": fitted.tolist(),
              "hovertemplate": "about %{x:.4g}: %{customdata}<extra>rollouts</extra>"}  # fmt: skip
    y = {"tickvals": numbers(np.sqrt(ticks)), "ticktext": [str(t) for t in ticks]}
    layout = axes("discounted return", "particles per bin", bargap=0.05, yaxis=y)
    return Panel(action, (bars, steps), layout, 260)


def outcome_risk(run: Run, place: str) -> Chart:
    index, variants = list(PLACES).index(place), {}
    for transport in run.config["transports"]:
        z, target = particles(run, transport)
        panels = []
        for a, action in enumerate(ACTION_NAMES):
            panels.append(
                _risk_panel(z[0, index, a], target[:, index, a].ravel(), action, transport)
            )
        variants[transport] = tuple(panels)
    legend = (
        Key("F⁽²⁾ of the particles", GREY, "solid", "area"),
        Key("F⁽²⁾ of the rollouts", BLACK, "dot"),
        Key("asymptotes", GREY, "dash"),
    )
    caption = (
        "Shaded: the dispersion space of the first trial's particles, whose area is half the "
        "variance. Dotted: the rollouts of all trials together."
    )
    return Chart(f"outcome-risk-{place}", f"Outcome-risk diagrams at the {place}", variants, legend,
                 caption, "transport", 260)  # fmt: skip


def _risk_panel(z: np.ndarray, rollouts: np.ndarray, action: str, transport: str) -> Panel:
    alpha = np.linspace(np.quantile(rollouts, 0.002) - 15, rollouts.max() + 15, 240)
    space, truth = dispersion_space(z, alpha), dispersion_space(rollouts, alpha)
    floor = np.maximum(space.left_asymptote, space.right_asymptote)
    look, own = look_of(transport), "F⁽²⁾ of the particles"
    traces = (
        between(alpha, floor, space.frontier, own, look, 0.3),
        line(alpha, space.frontier, own, Style(look.color, "o", "-"), markers=0),
        line(alpha, floor, "asymptotes", Style(GREY, "o", "--"), markers=0, width=1.2),
        line(alpha, truth.frontier, "F⁽²⁾ of the rollouts", INK, markers=0),
    )
    title = f"{action}: deviation {z.std():.1f}"
    return Panel(title, traces, axes(f"outcome {ALPHA} (return)", f"F⁽²⁾({ALPHA})"), 260)


def convergence(run: Run) -> Chart:
    columns = {"loss": "proximal loss (return²)", "free_energy": "free energy (return²)",
               "squared_value_error": "squared value error (return²)"}  # fmt: skip
    names = [t for t in run.config["transports"] if not t.endswith("-scaled")]
    looks = {t: look_of(t) for t in names}
    panels = []
    for column, label in columns.items():
        traces = []
        for transport in names:
            frame = run.table(f"curves-{transport}").sort("step", "trial")
            steps = frame["step"].unique().sort().to_numpy()
            trials = int(frame["trial"].max()) + 1  # type: ignore[arg-type]
            values = frame[column].to_numpy().reshape(len(steps), trials, -1).mean(-1)
            shown = mean_interval(values.T)
            low = np.maximum(shown.low, 1e-12)
            traces += band(steps, type(shown)(np.maximum(shown.mean, 1e-12), low,
                                              np.maximum(shown.high, low), shown.n),
                           transport, looks[transport])  # fmt: skip
        y = {"type": "log", "exponentformat": "power"}
        panels.append(Panel("", tuple(traces), axes("JKO step", label, yaxis=y)))
    caption = (
        f"Mean over places and actions, {run.config['trials']} trials, 95 % interval; values below "
        "10⁻¹² are drawn there. sinkhorn-scaled counts in another unit and is left out."
    )
    return Chart(
        "convergence", "Convergence of the flow", one(*panels), keys(names, looks), caption
    )


def errors(run: Run) -> Chart:
    transports = run.summary["transports"]
    names = [t for t in run.config["transports"] if t in transports]
    looks = {t: look_of(t) for t in names}
    where = [(p, a) for p in PLACES for a in ACTION_NAMES]
    panels = []
    for measure, (label, scale) in MEASURES.items():
        traces = []
        for i, name in enumerate(names):
            shift = (i - (len(names) - 1) / 2) * 0.18
            shown = [explained(transports[name][p][a][measure]) for p, a in where]
            scaled = [type(s)(scale * s.mean, scale * s.low, scale * s.high, s.n) for s in shown]
            at = [k + shift for k in range(len(where))]
            traces.append(dots(at, scaled, name, looks[name]))
        ticks = {"tickvals": list(range(len(where))), "tickangle": -45,
                 "ticktext": [text(f"{p}, {a}") for p, a in where]}  # fmt: skip
        panels.append(Panel("", tuple(traces), axes("", label, xaxis=ticks), 360))
    caption = f"Mean over {run.config['trials']} trials with 95 % interval, by place and action."
    return Chart("errors", "Errors by transport", one(*panels), keys(names, looks, lines=False),
                 caption)  # fmt: skip


# --- the grid ----------------------------------------------------------------------------


def grid(run: Run) -> Explorer:
    """Rollouts of the evaluated policy in every state; the fitted particles where there are any."""
    config = run.config
    policy = tuple(ARROWS.index(arrow) for arrow in run.summary["policy"])
    ways = explorer.deciders("ssd:tolerance=0.001", 1e-3, "greedy", "cvar:0.25")
    drawn = simulated(policy, float(config["fall"]), float(config["gamma"]),
                      int(config["horizon"]), int(config["seed"]))  # fmt: skip
    states = explorer.acting_states(GRID)
    learned = {"rollouts of the evaluated policy": explorer.Learned(drawn, ways, states)}
    for transport in config["transports"]:
        if f"particles-{transport}" not in run.store.tables:
            continue
        z = np.zeros((GRID.num_states, len(ACTION_NAMES), particles(run, transport)[0].shape[-1]))
        z[list(PLACES.values())] = particles(run, transport)[0][0]
        own = explorer.Learned(z, ways, sorted(PLACES.values()))
        learned[f"particles of {transport}, first trial (two cells)"] = own
    data = explorer.explore(
        learned, explorer.grid_places(GRID, np.zeros(GRID.num_states, bool)), actions=ACTION_NAMES,
        columns=GRID.columns, start=GRID.start, choice="distributions", unit="discounted return",
    )  # fmt: skip
    caption = (
        f"Click a cell, or walk with the arrow keys. Each action is taken once, then the policy "
        f"that was evaluated goes on: {ROLLOUTS} rollouts, simulated for this page from the run's "
        "seed. The experiment fitted its particles in the start and the cell above it."
    )
    return Explorer("explorer", "The cliff walk, state by state", data, caption)


@lru_cache(maxsize=2)
def simulated(
    policy: tuple[int, ...], fall: float, gamma: float, horizon: int, seed: int
) -> np.ndarray:
    """`[S, A, ROLLOUTS]`."""
    states = np.arange(GRID.num_states)[:, None]
    drawn = monte_carlo_returns(
        cliff_walk(fall=fall), np.asarray(policy), states, np.arange(len(ACTION_NAMES))[None],
        rollouts=ROLLOUTS, horizon=horizon, gamma=gamma, key=jax.random.key(seed),
    )  # fmt: skip
    return np.asarray(drawn)
