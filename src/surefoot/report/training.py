"""A training run on a page: learning curves, watched distributions, the agent's decisions."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import InputError
from surefoot.experiments.styles import BLUE, VERMILION, Style
from surefoot.explain_agent import action_names, env_of, initial_obs, open_agent
from surefoot.mdp.cliffs import CliffGrid, noisy_states
from surefoot.policies import policy_named
from surefoot.report import explorer
from surefoot.report.charts import axes, between, line, looks_of, numbers
from surefoot.report.explorer import Learned, Place
from surefoot.report.parts import AbsentError, Chart, Explorer, Key, Note, Panel, Part, one
from surefoot.report.run import MISFITS

FILES = ("episodes.csv", "evaluations.csv", "distributions.csv", "agent.safetensors", "checkpoints")
TRAINING, EVALUATION = Style(BLUE, "o", "-"), Style(VERMILION, "s", "--")
MOST_POINTS = 1500  # of a curve: finer than a pixel
MOST_STATES = 600  # of a table that is shown state by state


def is_training(path: Path) -> bool:
    return any((path / name).exists() for name in FILES)


def training_parts(path: Path, seed: int) -> list[Part]:
    parts: list[Part] = []
    for what, build in (
        ("The learning curve", lambda: learning(path)),
        ("What was watched", lambda: watched(path)),
        ("The agent's decisions", lambda: decisions(path, seed)),
    ):
        try:
            parts.append(build())
        except InputError as error:
            parts.append(Note(f"{what} is not shown: {error}.", "quiet"))
        except MISFITS as error:
            parts.append(Note(f"{what} is not shown: what is stored does not fit ({error!r}).",
                              "quiet"))  # fmt: skip
    return parts


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """Columns of numbers. The last row of a run that goes on may be half written: it is left."""
    if not path.is_file():
        raise AbsentError(f"there is no {path.name} in this run")
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = list(csv.reader(file))
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    if body and len(body[-1]) != len(header):
        body = body[:-1]
    if not header or not body:
        raise AbsentError(f"{path.name} is empty")
    try:
        table = np.asarray([[float(v) if v else np.nan for v in row] for row in body])
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    return {name: table[:, i] for i, name in enumerate(header)}


# --- learning ----------------------------------------------------------------------------


def learning(path: Path) -> Chart:
    episodes = read_csv(path / "episodes.csv")
    step, legend = episodes["step"], [Key("training", BLUE, "solid", "circle")]
    main = _curve(step, episodes["return"])
    if (path / "evaluations.csv").is_file():
        main += list(_evaluations(read_csv(path / "evaluations.csv")))
        legend.append(Key("evaluation", VERMILION, "dash", "square"))
    panels = [Panel("Return", tuple(main), axes("environment steps", "return per episode"), 360)]
    for name, label in (("length", "steps per episode"), ("loss", "mean loss of an episode")):
        if name in episodes and np.isfinite(episodes[name]).any():
            traces = tuple(_curve(step, episodes[name]))
            panels.append(Panel(name.capitalize(), traces, axes("environment steps", label), 360))
    window = _window(len(step))
    caption = f"Dots: single episodes of {len(step):,}. Line: mean of {window} episodes."
    if len(legend) > 1:
        caption += " Evaluation: mean, and the range of its episodes."
    return Chart("learning", "Learning curve", one(*panels), tuple(legend), caption, width=380)


def _window(count: int) -> int:
    return max(1, min(100, count // 20))


def _curve(x: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Single episodes faint, their moving average on top."""
    fine = np.isfinite(y)
    x, y, width = x[fine], y[fine], _window(int(fine.sum()))
    at = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).astype(int))
    points = line(x[at], y[at], "training", TRAINING) | {"mode": "markers", "opacity": 0.35}
    points["marker"] = {"color": BLUE, "size": 4, "symbol": "circle"}
    total = np.cumsum(np.concatenate([[0.0], y]))
    mean, middle = (total[width:] - total[:-width]) / width, x[width - 1 :]
    at = np.unique(np.linspace(0, len(mean) - 1, MOST_POINTS // 2).astype(int))
    return [points, line(middle[at], mean[at], "training", TRAINING)]


def _evaluations(table: dict[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    steps = np.unique(table["step"])
    groups = [table["return"][table["step"] == step] for step in steps]
    low, mean, high = (np.asarray([f(g) for g in groups]) for f in (np.min, np.mean, np.max))
    yield between(steps, low, high, "evaluation", EVALUATION)
    yield line(steps, mean, "evaluation", EVALUATION)


# --- watched distributions -----------------------------------------------------------------


def watched(path: Path) -> Chart:
    """How each action's return distribution changed while the agent learned."""
    steps, z = _watched(path)
    actions = [f"action {a}" for a in range(z.shape[2])]
    looks, levels = looks_of(actions), np.linspace(0, z.shape[3] - 1, 5).round().astype(int)
    variants = {}
    for state in range(z.shape[1]):
        panels = []
        for a, name in enumerate(actions):
            own = np.sort(z[:, state, a], axis=-1)
            bands = [between(steps, own[:, low], own[:, high], name, looks[name], 0.16)
                     for low, high in ((levels[0], levels[4]), (levels[1], levels[3]))]  # fmt: skip
            mean = line(steps, own.mean(-1), name, looks[name])
            layout = axes("environment steps", "return", yaxis={"range": _range(z[:, state])})
            panels.append(Panel(name, (*bands, mean), layout, 280))
        variants[f"observation {state}"] = tuple(panels)
    legend = tuple(Key(n, looks[n].color, "solid", "area") for n in actions)
    caption = "Line: mean. Dark: middle half of the particles; light: all of them."
    return Chart("watched", "Return distributions watched", variants, legend, caption,
                 "observation", 300)  # fmt: skip


def _range(z: np.ndarray) -> list[float]:
    low, high = float(z.min()), float(z.max())
    air = 0.05 * (high - low) or 1.0
    return [low - air, high + air]


def _watched(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Steps `[T]` and particles `[T, states, A, N]`."""
    table = read_csv(path / "distributions.csv")
    steps = np.unique(table["step"])
    sizes = [int(table[name].max()) + 1 for name in ("state", "action", "particle")]
    whole = len(table["step"]) // int(np.prod(sizes))  # a last block may be half written
    values = table["value"][: whole * int(np.prod(sizes))]
    if whole < 1 or any(b <= a for a, b in pairwise(steps)):
        raise AbsentError("distributions.csv holds no whole block")
    return steps[:whole], values.reshape(whole, *sizes)


# --- decisions -----------------------------------------------------------------------------


def decisions(path: Path, seed: int) -> Explorer:
    try:
        agent = open_agent(path)
    except InputError as error:
        raise AbsentError(f"the agent cannot be opened ({error})") from None
    if hasattr(agent, "table"):
        return _tabular(agent)
    return _neural(agent, path, seed)


def _ways(agent: Any) -> dict[str, Any]:
    own = policy_named(agent.config.evaluation)
    return explorer.deciders(own, own.tolerance, "ssd", "greedy", "cvar:0.25")


def _tabular(agent: Any) -> Explorer:
    z = np.asarray(agent.table.z)
    if len(z) > MOST_STATES:
        raise AbsentError(f"{len(z)} states are too many for one page; see `surefoot explain`")
    mdp = agent.mdp
    masks = None if mdp is None or mdp.mask is None else np.asarray(mdp.mask)
    grid = grid_of(mdp)
    states = list(range(len(z))) if grid is None else explorer.acting_states(grid)
    start = initial_obs(agent, agent.seed) if grid is not None else states[0]
    places = (
        [Place(f"state {s}", text=str(s)) for s in range(len(z))] if grid is None
        else explorer.grid_places(grid, noisy_states(mdp))
    )  # fmt: skip
    learned = {"this agent": Learned(z, _ways(agent), states, masks, agent.seed)}
    names = action_names(agent, z.shape[1])
    data = explorer.explore(learned, places, actions=names, start=int(start), choice="",
                            columns=grid.columns if grid else 0)  # fmt: skip
    caption = (
        "Click a state, or walk with the arrow keys: what the agent has learned there, and what a "
        "policy decides."
    )
    return Explorer("explorer", "The agent, state by state", data, caption)


def grid_of(mdp: Any) -> CliffGrid | None:
    """The geometry of an MDP that is one of our cliffs: where every move leads tells it."""
    if mdp is None or mdp.num_actions != 4:
        return None
    moves = np.asarray(mdp.next_state)[:, :, 0]
    for columns in (c for c in range(3, mdp.num_states // 2 + 1) if mdp.num_states % c == 0):
        grid = CliffGrid(mdp.num_states // columns, columns)
        states = explorer.acting_states(grid)
        expected = [[_lands(grid, s, a) for a in range(4)] for s in states]
        if np.array_equal(moves[states], expected):
            return grid
    return None


def _lands(grid: CliffGrid, state: int, action: int) -> int:
    entered = grid.move(state, action)
    return grid.start if grid.is_cliff(entered) else entered


def _neural(agent: Any, path: Path, seed: int) -> Explorer:
    """The first observation of the environment, and those that were watched."""
    obs = initial_obs(agent, seed)
    z, places = [np.asarray(agent.return_distribution(obs))], [
        Place(f"first observation, seed {seed}: {_shown(obs)}", text="first observation")
    ]  # fmt: skip
    try:
        steps, seen = _watched(path)
        for i, each in enumerate(seen[-1]):
            z.append(each)
            label = f"watched observation {i}, at step {int(steps[-1]):,}"
            places.append(Place(label, text=f"watched {i}"))
    except InputError:
        pass  # nothing was watched
    names = action_names(agent, len(z[0]))
    learned = {"this agent": Learned(np.stack(z), _ways(agent), seed=agent.seed)}
    data = explorer.explore(learned, places, actions=names, choice="")
    env = env_of(agent)
    where = f" in {env.spec.id}" if env is not None and env.spec else ""
    caption = "Click an observation: what the agent expects of each action, and what it decides."
    return Explorer("explorer", f"The agent's decisions{where}", data, caption)


def _shown(obs: Any) -> str:
    values = numbers(np.asarray(obs, dtype=float).ravel()[:8], 3)
    return ", ".join(str(v) for v in values) + (" ..." if np.size(obs) > 8 else "")
