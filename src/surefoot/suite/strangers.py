"""`suite.run`: the score of a player of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from surefoot.core.markup import html_table
from surefoot.envs import FINITE_TASKS, QUESTIONS, RiskTask, TabularEnv, finite_task
from surefoot.envs.noisy import NETWORK_TASKS, NoisyEnv, PureGymEnv
from surefoot.errors import InputError, check_episodes, count_at_least, listed, unknown
from surefoot.policies import policy_named
from surefoot.runs.progress import progress
from surefoot.suite.players import chooser
from surefoot.suite.scores import HORIZON, Score, play, score, score_episodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = (*FINITE_TASKS, *NETWORK_TASKS)
LEGEND = (
    "right: share of right decisions; given up: of the best mean, in deviations; "
    "spread: of the return, 0 as the sure policy's, 1 as the risky one's."
)


@dataclass(frozen=True)
class SuiteScores:
    """What a player came to: `rows` holds (task, question, score); print it for a table."""

    rows: tuple[tuple[str, str, Score], ...]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        header = ("task", "question", "answered", "right", "given up", "spread")
        rows = []
        for task, question, own in self.rows:
            said = {True: "yes", False: "no", None: "no right one"}[own.answered(question)]
            numbers = (f"{own.right:.2f}", f"{own.given_up:.3f}", f"{own.spread:.2f}")
            rows.append((task, question, said, *numbers))
        return f"<div>{html_table(header, rows)}<p>{LEGEND}</p></div>"

    def figure(self) -> Figure:
        """A matplotlib figure: which questions are answered, by colour and by sign."""
        from surefoot.suite.figures import answer, draw_answers

        cells = {}
        for task, question, own in self.rows:
            good = own.answered(question)
            number = f"{own.given_up if question == 'price' else own.right:.2f}"
            name = f"{task}, {question}"
            cells["player", name] = ("-", "", None) if good is None else answer(good, number)
        title = "questions answered: share right, or given up where safety has a price"
        return draw_answers(["player"], [name for _, name in cells], cells, title)

    def __str__(self) -> str:
        lines = [f"{'task':<16}{'question':<10}{'':<4}{'right':>7}{'given up':>10}{'spread':>8}"]
        for task, question, own in self.rows:
            sign = {None: "  ", True: "✓ ", False: "✗ "}[own.answered(question)]
            numbers = f"{own.right:>7.2f}{own.given_up:>10.3f}{own.spread:>8.2f}"
            lines.append(f"{task:<16}{question:<10}{sign:<4}{numbers}")
        return "\n".join([*lines, LEGEND.replace("; spread", ";\nspread")])

    @property
    def solved(self) -> bool:
        """Whether every question that has a right answer is answered."""
        return all(own.answered(q) is not False for _, q, own in self.rows)


def run(
    player: Any = None,
    *,
    train: Callable[[gym.Env[Any, Any], int], Any] | None = None,
    tasks: Sequence[str] = tuple(FINITE_TASKS),
    questions: Sequence[str] = QUESTIONS,
    policy: str | None = None,
    episodes: int = 200,
    seed: int = 0,
    **knobs: Any,
) -> SuiteScores:
    """Score a player on tasks whose right action is known.

    `player` is an agent of surefoot, a model with SB3's `predict`, an `Actor` of `adapters.act`, or
    any callable from observations `[B, ...]` (of finite tasks: the numbers of states) to actions
    `[B]`, to particles `[B, A, N]`, an ensemble `[B, E, A, N]`, or particles with counts. It has to
    fit every task asked for; to train one for each, pass `train(env, seed)` instead, which returns
    a player. `policy` decides where distributions are returned: by default `ssd`, and surefoot's
    agents as they evaluate. `knobs` go to the tasks.
    Finite tasks are scored exactly, the others by `episodes` episodes.
    """
    if (player is None) == (train is None):
        raise InputError("pass a player, or train, a function that makes one for an environment")
    if train is not None and not callable(train):
        raise InputError(f"train is a {type(train).__name__}: pass a function train(env, seed)")
    check_episodes(2, episodes=episodes)
    count_at_least(0, seed=seed)
    if policy is not None:
        policy_named(policy)
    tasks, questions = listed(tasks, "tasks"), listed(questions, "questions")
    for name in tasks:
        if name not in TASKS:
            raise unknown("task", name, TASKS)
    asked = [(name, q) for name in tasks for q in questions if q in _questions(name)]
    for question in questions:
        if question not in QUESTIONS:
            raise unknown("question", question, QUESTIONS)
    if not asked:
        raise InputError(f"nothing to score: tasks = {tasks} have no question of {questions}")
    rows = []
    with progress(len(asked), "suite", unit="questions", mode="auto" if train else "silent") as bar:
        for name, question in asked:
            task = finite_task(name, question, **knobs) if name in FINITE_TASKS else None
            env = environment(name, question, **knobs)
            made = player if train is None else train(env, seed)
            if made is None:
                raise InputError("train returned None: it must return the player it has trained")
            rows.append((name, question, _scored(made, env, task, policy, episodes, seed)))
            bar.advance()
    return SuiteScores(tuple(rows))


def environment(name: str, question: str = "tie", **knobs: Any) -> gym.Env[Any, Any]:
    """A task of the suite as a Gymnasium environment, with its time limit."""
    if name in NETWORK_TASKS:
        return PureGymEnv(name, question=question, **knobs)
    task = finite_task(name, question, **knobs)
    return gym.wrappers.TimeLimit(TabularEnv(task.mdp, cells=task.cells), HORIZON)


def _questions(name: str) -> tuple[str, ...]:
    return NETWORK_TASKS[name].questions if name in NETWORK_TASKS else QUESTIONS


def _scored(
    player: Any,
    env: gym.Env[Any, Any],
    task: RiskTask | None,
    policy: str | None,
    episodes: int,
    seed: int,
) -> Score:
    if task is not None:
        choose = chooser(player, task.mdp.num_actions, policy)
        return score(task, choose(np.arange(task.mdp.num_states)))
    pure: NoisyEnv = env.unwrapped.pure  # type: ignore[attr-defined]
    choose = chooser(player, pure.num_actions, policy)
    return score_episodes(pure, play(pure, choose, episodes, seed))
