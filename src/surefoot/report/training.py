"""A training on a page: curves, who decided, watched distributions, decisions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from surefoot import plots
from surefoot.agents.decisions import beginning
from surefoot.agents.explain import observation_text
from surefoot.agents.loading import open_agent
from surefoot.agents.tabular.agent import known_masks
from surefoot.core.evidence import Known
from surefoot.core.stats import Interval
from surefoot.envs.cliffs import CliffGrid, noisy_states
from surefoot.envs.discrete import encode
from surefoot.errors import InputError
from surefoot.policies import policy_named
from surefoot.report.explorer import (
    Learned,
    Place,
    acting_states,
    cliff_places,
    explore,
    policies_to_ask,
)
from surefoot.report.film import FILE
from surefoot.report.page import Explorer, Figure, Note, Part, guarded
from surefoot.report.stored import Stored, drawn_uri
from surefoot.runs.files import read_bytes

MOST_STATES = 600  # of a table that is shown state by state
MOST_STEPS = 12  # of the watched distributions that can be chosen from
LARGEST_FILM = 20_000_000  # bytes that a page embeds


def training_parts(stored: Stored, config: Mapping[str, Any]) -> list[Part]:
    agent, why = _agent(stored, config.get("env"))
    return [
        *guarded("The score", lambda: _score(stored)),
        *guarded("Episodes to watch", lambda: _film(stored)),
        *guarded("Learning curve", lambda: _learning(stored)),
        *guarded("Training from within", lambda: _within(stored)),
        *guarded("Who decided", lambda: _authorities(stored)),
        *guarded("What was watched", lambda: _watched(stored, config, agent)),
        *guarded("The agent's decisions", lambda: _states(agent, why)),
    ]


def _agent(stored: Stored, env: Any) -> tuple[Any, str]:
    """The agent, or None and why it cannot be had. A report is made of other people's runs too:
    it imports nothing that a file names."""
    if isinstance(env, str) and ":" in env:
        module = env.partition(":")[0]
        return None, f"its environment is made by {module!r}, which `surefoot explain` can import"
    try:
        stored.file("agent.safetensors")  # not a link that leads elsewhere
        return open_agent(stored.path), ""
    except Exception as error:  # whatever a damaged file makes of it
        return None, f"the agent cannot be opened ({error})"


def _score(stored: Stored) -> list[Part]:
    """The final score as a number, with its interval."""
    summary = stored.json("summary.json")
    if not isinstance(summary.get("evaluation_return"), dict):
        return []
    score = Interval.from_dict(summary["evaluation_return"])
    after = f" after {summary['steps']:,} steps" if isinstance(summary.get("steps"), int) else ""
    text = f"Score: {score}, the mean return of {score.n} episodes without exploration{after}"
    return [Note(f"{text} (95 % interval).")]


# --- figures -------------------------------------------------------------------------------


def _film(stored: Stored) -> list[Part]:
    """What `surefoot watch` has written, if it has been called."""
    if not stored.has(FILE):
        return []
    content = read_bytes(stored.file(FILE))
    if content[:6] != b"GIF89a" or len(content) > LARGEST_FILM:
        raise InputError(f"{FILE} is no GIF of up to {LARGEST_FILM / 1e6:.0f} MB")
    caption = (
        "What the agent expects of each action as the episode goes on: all particles, their middle "
        "half and their mean; the action taken is blue, and the words say who decided."
    )
    uri = f"data:image/gif;base64,{base64.b64encode(content).decode()}"
    return [Figure("watch", "Episodes to watch", uri, caption)]


def _learning(stored: Stored) -> list[Part]:
    if not stored.has("episodes.csv"):
        return [Note("No episode has been written down yet: there is no episodes.csv.", "quiet")]
    evaluations = stored.columns("evaluations.csv") if stored.has("evaluations.csv") else None
    figure = plots.draw_learning(stored.columns("episodes.csv"), evaluations)
    caption = "Single wild episodes may lie outside the frame."
    return [Figure("learning", "Learning curve", drawn_uri(figure), caption)]


def _within(stored: Stored) -> list[Part]:
    """What the network said of its training, and how fast it went."""
    if not stored.has("episodes.csv"):
        return []
    speed = stored.columns("speed.csv") if stored.has("speed.csv") else None
    episodes = stored.columns("episodes.csv")
    figure = plots.draw_within(episodes, speed)
    if figure is None:
        return []
    caption = (
        "The speed is that of training, evaluations apart; compiling counts in the first points."
    )
    if "grad_norm" in episodes:  # a network's; a table says nothing of its updates
        caption = (
            "Of the update after an episode's last step. Estimates are of its batch's actions, in "
            "the environment's units; dominance is the share of the actions bootstrapped from that "
            f"were taken because they are surer than others worth the same. {caption}"
        )
    return [Figure("within", "Training from within", drawn_uri(figure), caption)]


def _authorities(stored: Stored) -> list[Part]:
    """Who chose the actions, as tabular runs count it."""
    if not stored.has("episodes.csv"):
        return []
    figure = plots.draw_authorities(stored.columns("episodes.csv"))
    if figure is None:
        return []
    caption = "Share of the steps, exploration included."
    return [Figure("who-decided", "Who decided", drawn_uri(figure), caption)]


def _watched(stored: Stored, config: Mapping[str, Any], agent: Any) -> list[Part]:
    """How the distributions of the watched observations changed, and the decisions on the way."""
    if not stored.has("distributions.csv"):
        return []
    steps, z = _blocks(stored, "distributions.csv", "particle", "value")
    actions = _action_names(agent, z.shape[2])
    parts: list[Part] = []
    for state, label in enumerate(_observations(config.get("watch"), z.shape[1])):
        figure = plots.draw_watched(steps, z[:, state], actions)
        caption = "Line: mean. Dark: middle half of the particles; light: all of them."
        title = f"Return distributions watched: {label}"
        parts.append(Figure(f"watched-{state}", title, drawn_uri(figure), caption))
    return [*parts, *guarded("Decisions", lambda: [_decisions(stored, steps, z, actions, config)])]


def _blocks(stored: Stored, name: str, last: str, *values: str) -> tuple[np.ndarray, ...]:
    """Steps `[T]` and columns `[T, states, A, last]`; a last block may be half written."""
    table = stored.columns(name)
    sizes = [int(table[key].max()) + 1 for key in ("state", "action", last)]
    block = int(np.prod(sizes))
    count = len(table["step"]) // block
    if count < 1:
        raise InputError(f"{name} holds no complete block")
    columns = (table[key][: count * block].reshape(count, *sizes) for key in values)
    return table["step"][: count * block : block], *columns


def _with_evidence(
    stored: Stored, steps: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Steps, particles and what these rest on, as `Learned` takes them. A run that was cut off may
    have one block more of particles."""
    written, mean, n, error = _blocks(stored, "evidence.csv", "member", "mean", "n", "error")
    both = min(len(steps), len(written))
    if mean.shape[1:3] != z.shape[1:3] or not np.array_equal(written[:both], steps[:both]):
        raise InputError("evidence.csv and distributions.csv are not of the same observations")
    steps, z, mean, n, error = (part[:both] for part in (steps, z, mean, n, error))
    if mean.shape[3] == 1:  # a table's
        n, error = n[..., 0], error[..., 0]
        return steps, z, n if np.isnan(error).all() else Known(n, error)
    centre = z - z.mean(axis=-1, keepdims=True)  # members differ by their means alone
    return steps, np.moveaxis(mean, 3, 2)[..., None] + centre[:, :, None], None


def _observations(asked: Any, count: int) -> list[str]:
    """What was asked to be watched, where the configuration says it."""
    asked = asked if isinstance(asked, list) else []
    labels = []
    for i in range(count):
        wanted = asked[i] if i < len(asked) else "observation"
        text = ", ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)
        labels.append(f"{i}: {text[:60]}")
    return labels


def _action_names(agent: Any, size: int) -> tuple[str, ...]:
    return agent.action_names if agent is not None else tuple(map(str, range(size)))


# --- decisions -----------------------------------------------------------------------------


def _decisions(
    stored: Stored,
    steps: np.ndarray,
    z: np.ndarray,
    actions: tuple[str, ...],
    config: Mapping[str, Any],
) -> Explorer:
    """The watched observations to click on, at several steps of the training."""
    own = str(config.get("evaluation", "ssd"))
    n, known = None, stored.has("evidence.csv")
    if known:
        steps, z, n = _with_evidence(stored, steps, z)
    ask = policies_to_ask(own, "ssd", "greedy", "cvar:0.25", known=known)
    chosen = np.unique(np.linspace(0, len(steps) - 1, MOST_STEPS).round().astype(int))[::-1]
    seed = int(config.get("seed", 0))
    learned = {}
    for t in chosen:
        rests_on = jax.tree.map(lambda part, t=t: part[t], n)
        learned[f"step {int(steps[t]):,}"] = Learned(z[t], ask, seed=seed, n=rests_on)
    labels = _observations(config.get("watch"), z.shape[1])
    places = [Place(f"watched observation {label}", text=label) for label in labels]
    data = explore(learned, places, actions=actions, choice="after")
    caption = (
        "Click an observation: what was expected of each action after so many steps, and what a "
        "policy decides."
    )
    if policy_named(own).tolerance is None and not known:
        caption += (
            " How well the means are known was not written down: the agent has no ensemble, or an "
            "earlier version trained it. SSD with tolerance 0 is shown in place of SSD by evidence "
            "and may decide otherwise."
        )
    return Explorer("Decisions at the watched observations", data, caption)


def _states(agent: Any, why: str) -> list[Part]:
    """Of a table every state; of a network the observation it begins with."""
    if agent is None:
        raise InputError(why)
    return [_table(agent) if hasattr(agent, "table") else _first_observation(agent)]


def _table(agent: Any) -> Explorer:
    z = np.asarray(agent.table.z)
    if len(z) > MOST_STATES:
        raise InputError(f"{len(z)} states are too many for one page; see `surefoot explain`")
    masks = known_masks(agent)
    places, states, columns = _layout(agent, len(z))
    start = int(encode(agent.observation_space, agent.first_observation(agent.seed)))
    start = start if start in states else states[0]
    _, n = agent.estimates(np.arange(len(z)))
    learned = Learned(z, _ask(agent), states, masks, agent.seed, n)
    data = explore({"this agent": learned}, places, actions=_action_names(agent, z.shape[1]),
                   start=start, columns=columns)  # fmt: skip
    caption = (
        "Click a state, or move with the arrow keys: what the agent has learned there, and what a "
        "policy decides. Ring: dominance decided, not the mean alone."
    )
    return Explorer("The agent, state by state", data, caption)


def _ask(agent: Any) -> dict[str, Any]:
    return policies_to_ask(agent.config.evaluation, "ssd", "greedy", "cvar:0.25")


def _layout(agent: Any, size: int) -> tuple[list[Any], list[int], int]:
    """Places, the states in which one acts, and columns: a cliff, Gymnasium's lake, or a row."""
    grid = grid_of(agent.mdp)
    if grid is not None:
        return cliff_places(grid, noisy_states(agent.mdp)), acting_states(grid), grid.columns
    world = getattr(agent.env, "unwrapped", None)
    marks = np.asarray(getattr(world, "desc", np.zeros(0, "S1")))
    if marks.ndim == 2 and marks.size == size and marks.dtype.kind == "S":  # FrozenLake
        columns = marks.shape[1]
        kinds = {b"S": "start", b"G": "goal", b"H": "cliff"}
        cells = [kinds.get(bytes(mark), "") for mark in marks.ravel()]
        places = [Place(f"row {s // columns}, column {s % columns}, state {s}", kind)
                  for s, kind in enumerate(cells)]  # fmt: skip
        return places, [s for s, k in enumerate(cells) if k not in ("goal", "cliff")], columns
    first = int(getattr(agent.observation_space, "start", 0))  # as the environment counts them
    places = [Place(f"state {s}", text=str(s)) for s in range(first, first + size)]
    return places, list(range(size)), 0


def grid_of(mdp: Any) -> Any:
    """The geometry of an MDP that is one of our cliffs, known by where every move leads."""
    if mdp is None or mdp.num_actions != 4:
        return None
    moves = np.asarray(mdp.next_state)[:, :, 0]
    for columns in (c for c in range(3, mdp.num_states // 2 + 1) if mdp.num_states % c == 0):
        grid = CliffGrid(mdp.num_states // columns, columns)
        states = acting_states(grid)
        entered = np.asarray([[grid.move(s, a) for a in range(4)] for s in states])
        fallen = np.vectorize(grid.is_cliff)(entered)
        if np.array_equal(moves[states], np.where(fallen, grid.start, entered)):
            return grid
    return None


def _first_observation(agent: Any) -> Explorer:
    obs, mask = beginning(agent, agent.seed)
    z = agent.estimates(obs)[0][None]
    shown = observation_text(obs)
    place = Place(f"first observation, seed {agent.seed}: {shown}", text="first observation")
    masks = None if mask is None else mask[None]
    learned = {"this agent": Learned(z, _ask(agent), masks=masks, seed=agent.seed)}
    data = explore(learned, [place], actions=_action_names(agent, z.shape[-2]))
    caption = "What the agent expects of each action at the beginning, and what it decides."
    return Explorer("The agent's first decision", data, caption)
