"""A training run on a page: learning curves, watched distributions, the agent's decisions."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.agents.loading import open_agent
from surefoot.envs.cliffs import CliffGrid, noisy_states
from surefoot.errors import InputError
from surefoot.plots.styles import BLUE, VERMILION, Style
from surefoot.policies import policy_named
from surefoot.report import explorer
from surefoot.report.charts import axes, between, line, looks_of, numbers, rgba
from surefoot.report.explorer import Learned, Place
from surefoot.report.parts import AbsentError, Chart, Explorer, Key, Note, Panel, Part, one
from surefoot.report.run import MISFITS

FILES = ("episodes.csv", "evaluations.csv", "distributions.csv", "agent.safetensors", "checkpoints")
TRAINING, EVALUATION = Style(BLUE, "o", "-"), Style(VERMILION, "s", "--")
AUTHORITIES = {  # as in the risky cliff's figures
    "dominance": "#0072B2", "score": "#56B4E9", "tie_break": "#E69F00", "fallback": "#CC79A7",
    "exploration": "#BBBBBB",
}  # fmt: skip
MOST_POINTS = 1500  # of a curve: finer than a pixel
MOST_STATES = 600  # of a table that is shown state by state


class UntoldError(AbsentError):
    """Nothing of the kind was asked for: not worth a sentence."""


def is_training(path: Path) -> bool:
    return any((path / name).exists() for name in FILES)


def training_parts(path: Path, config: Mapping[str, Any]) -> list[Part]:
    parts: list[Part] = []
    seed = config.get("seed")
    start = seed if isinstance(seed, int) and seed >= 0 else 0
    agent, why = _agent(path, config.get("env"))
    for what, build in (
        ("The learning curve", lambda: learning(path)),
        ("Who decided", lambda: authorities(path)),
        ("What was watched", lambda: watched(path, agent, config.get("watch"))),
        ("The agent's decisions", lambda: decisions(path, agent, why, start)),
    ):
        try:
            parts.append(build())
        except UntoldError:
            continue
        except InputError as error:
            parts.append(Note(f"{what}: not shown, because {error}.", "quiet"))
        except MISFITS as error:
            told = f"{what}: not shown, because what is stored does not fit ({error!r})."
            parts.append(Note(told, "quiet"))
    return parts


def _agent(path: Path, env: Any) -> tuple[Any, str]:
    """The agent, or None and why it cannot be had. A report is made of other people's runs too:
    it imports nothing that a file names."""
    if isinstance(env, str) and ":" in env:
        module = env.partition(":")[0]
        return None, f"its environment is made by {module!r}, which `surefoot explain` imports"
    try:
        return open_agent(path), ""
    except InputError as error:
        return None, f"the agent cannot be opened ({error})"


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
    panels = [Panel("Return", tuple(main), _axes("return per episode", episodes["return"]), 360)]
    for name, label in (("length", "steps per episode"), ("loss", "mean loss of an episode")):
        if name in episodes and np.isfinite(episodes[name]).any():
            traces = tuple(_curve(step, episodes[name]))
            panels.append(Panel(name.capitalize(), traces, _axes(label, episodes[name]), 360))
    window = _window(len(step))
    caption = (
        f"Dots: single episodes of {len(step):,}. Line: mean of {window} episodes. Single wild "
        "episodes may lie outside the frame: double-click to see all."
    )
    if len(legend) > 1:
        caption += " Evaluation: mean, and the range of its episodes."
    return Chart("learning", "Learning curve", one(*panels), tuple(legend), caption, width=380)


def _axes(label: str, values: np.ndarray) -> dict[str, Any]:
    """Framed so that a few wild episodes, as at the beginning, do not flatten all others."""
    layout, fine = axes("environment steps", label), values[np.isfinite(values)]
    low, high = np.percentile(fine, [3, 97])
    if np.ptp(fine) > 3 * (high - low) > 0:
        air = 0.25 * (high - low)
        layout["yaxis"]["range"] = [low - air, high + air]
    return layout


def _window(count: int) -> int:
    return max(1, min(100, count // 20))


def _curve(x: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Single episodes faint, their moving average on top."""
    fine = np.isfinite(y)
    x, y, width = x[fine], y[fine], _window(int(fine.sum()))
    at = _thin(len(x), MOST_POINTS)
    points = line(x[at], y[at], "training", TRAINING) | {"mode": "markers", "opacity": 0.35}
    points["marker"] = {"color": BLUE, "size": 4, "symbol": "circle"}
    mean, middle = _moving(y, width), x[width - 1 :]
    at = _thin(len(mean), MOST_POINTS // 2)
    return [points, line(middle[at], mean[at], "training", TRAINING)]


def _evaluations(table: dict[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    steps = np.unique(table["step"])
    groups = [table["return"][table["step"] == step] for step in steps]
    low, mean, high = (np.asarray([f(g) for g in groups]) for f in (np.min, np.mean, np.max))
    yield between(steps, low, high, "evaluation", EVALUATION)
    yield line(steps, mean, "evaluation", EVALUATION)


def authorities(path: Path) -> Chart:
    """Who chose the actions, as tabular runs count it."""
    episodes = read_csv(path / "episodes.csv")
    names = [n for n in AUTHORITIES if f"by_{n}" in episodes]
    if not names:
        raise UntoldError("not counted")
    total = np.sum([episodes[f"by_{n}"] for n in names], axis=0)
    width, traces = _window(len(total)), []
    for name in names:
        share = 100 * _moving(episodes[f"by_{name}"], width) / _moving(total, width)
        at = _thin(len(share), MOST_POINTS // 2)
        look = Style(AUTHORITIES[name], "o", "-")
        trace = line(episodes["step"][width - 1 :][at], share[at], name.replace("_", "-"), look,
                     markers=0, width=0.5)  # fmt: skip
        filled = {"stackgroup": "all", "fillcolor": rgba(look.color, 0.75)}
        traces.append(trace | filled)
    layout = axes("environment steps", "share of steps (%)", yaxis={"range": [0, 100]})
    legend = tuple(Key(n.replace("_", "-"), AUTHORITIES[n], "", "box") for n in names)
    caption = f"Over {width} episodes at a time, exploration included."
    return Chart("who-decided", "Who decided", one(Panel("", tuple(traces), layout)), legend,
                 caption)  # fmt: skip


def _thin(count: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, most).astype(int))  # ends are kept


def _moving(values: np.ndarray, width: int) -> np.ndarray:
    total = np.cumsum(np.concatenate([[0.0], values]))
    return (total[width:] - total[:-width]) / width


# --- watched distributions -----------------------------------------------------------------


def watched(path: Path, agent: Any, asked: Any) -> Chart:
    """How each action's return distribution changed while the agent learned."""
    steps, z = _watched(path)
    named = agent.action_names if agent is not None else range(z.shape[2])
    actions = [f"action {a}" for a in named]
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
        variants[f"{state}: {_asked(asked, state)}"] = tuple(panels)
    legend = tuple(Key(n, looks[n].color, "solid", "area") for n in actions)
    caption = "Line: mean. Dark: middle half of the particles; light: all of them."
    return Chart("watched", "Return distributions watched", variants, legend, caption,
                 "observation", 300)  # fmt: skip


def _asked(asked: Any, state: int) -> str:
    """What was asked to be watched, where the configuration says it."""
    if isinstance(asked, list) and state < len(asked):
        wanted = asked[state]
        return ", ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)
    return "observation"


def _range(z: np.ndarray) -> list[float]:
    low, high = float(z.min()), float(z.max())
    air = 0.05 * (high - low) or 1.0
    return [low - air, high + air]


def _watched(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Steps `[T]` and particles `[T, states, A, N]`."""
    if not (path / "distributions.csv").is_file():
        raise UntoldError("nothing was watched")
    table = read_csv(path / "distributions.csv")
    steps = np.unique(table["step"])
    sizes = [int(table[name].max()) + 1 for name in ("state", "action", "particle")]
    whole = len(table["step"]) // int(np.prod(sizes))  # a last block may be half written
    values = table["value"][: whole * int(np.prod(sizes))]
    if whole < 1 or any(b <= a for a, b in pairwise(steps)):
        raise AbsentError("distributions.csv holds no whole block")
    return steps[:whole], values.reshape(whole, *sizes)


# --- decisions -----------------------------------------------------------------------------


def decisions(path: Path, agent: Any, why: str, seed: int) -> Explorer:
    if agent is None:
        raise AbsentError(why)
    return _tabular(agent) if hasattr(agent, "table") else _neural(agent, path, seed)


def _ways(agent: Any) -> dict[str, Any]:
    own = policy_named(agent.config.evaluation)
    return explorer.deciders(own, own.tolerance, "ssd", "greedy", "cvar:0.25")


def _tabular(agent: Any) -> Explorer:
    z = np.asarray(agent.table.z)
    if len(z) > MOST_STATES:
        raise AbsentError(f"{len(z)} states are too many for one page; see `surefoot explain`")
    mdp = agent.mdp
    masks = None if mdp is None or mdp.mask is None else np.asarray(mdp.mask)
    places, states, columns = _layout(agent, len(z))
    start = agent.first_observation(agent.seed)
    start = start if isinstance(start, int) and start in states else states[0]
    learned = {"this agent": Learned(z, _ways(agent), states, masks, agent.seed)}
    names = agent.action_names
    data = explorer.explore(learned, places, actions=names, start=int(start), choice="",
                            columns=columns)  # fmt: skip
    caption = (
        "Click a state, or walk with the arrow keys: what the agent has learned there, and what a "
        "policy decides."
    )
    return Explorer("explorer", "The agent, state by state", data, caption)


def _layout(agent: Any, size: int) -> tuple[list[Place], list[int], int]:
    """Places, the states in which one acts, and columns: ours, Gymnasium's grids, or a row."""
    grid = grid_of(agent.mdp)
    if grid is not None:
        noisy = noisy_states(agent.mdp)
        return explorer.grid_places(grid, noisy), explorer.acting_states(grid), grid.columns
    world = getattr(agent.env, "unwrapped", None)
    marks = np.asarray(getattr(world, "desc", np.zeros(0, "S1")))
    if marks.ndim == 2 and marks.size == size and marks.dtype.kind == "S":  # FrozenLake
        kinds = {b"S": "start", b"G": "goal", b"H": "cliff"}
        found = [kinds.get(bytes(mark), "") for mark in marks.ravel()]
        places = [Place(f"row {s // marks.shape[1]}, column {s % marks.shape[1]}, state {s}", kind)
                  for s, kind in enumerate(found)]  # fmt: skip
        return (
            places,
            [s for s, k in enumerate(found) if k not in ("goal", "cliff")],
            marks.shape[1],
        )
    return [Place(f"state {s}", text=str(s)) for s in range(size)], list(range(size)), 0


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
    obs = agent.first_observation(seed)
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
    names = agent.action_names
    learned = {"this agent": Learned(np.stack(z), _ways(agent), seed=agent.seed)}
    data = explorer.explore(learned, places, actions=names, choice="")
    where = f" in {agent.env.spec.id}" if agent.env is not None and agent.env.spec else ""
    caption = "Click an observation: what the agent expects of each action, and what it decides."
    return Explorer("explorer", f"The agent's decisions{where}", data, caption)


def _shown(obs: Any) -> str:
    values = numbers(np.asarray(obs, dtype=float).ravel()[:8], 3)
    return ", ".join(str(v) for v in values) + (" ..." if np.size(obs) > 8 else "")
