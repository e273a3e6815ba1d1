"""The two cliffs: Sutton and Barto's with falls, and the paper's with two equally good paths.

Cells are numbered row by row from the top left, state = row * columns + column. The start is the
bottom left cell, the goal (terminal) the bottom right one, the cliff lies between them. Actions
are 0 up, 1 right, 2 down, 3 left. A move against a wall enters the same cell again and pays that
cell's reward. Falling pays the cliff's reward and leads back to the start; the episode goes on.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surefoot.envs.finite import TabularMDP
from surefoot.errors import InputError

ACTION_NAMES = ("up", "right", "down", "left")
ARROWS = ("↑", "→", "↓", "←")
MOST_CELLS = 1_000_000
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


@dataclass(frozen=True)
class CliffGrid:
    """Geometry of a cliff; knows nothing of rewards."""

    rows: int = 4
    columns: int = 12

    def __post_init__(self) -> None:
        for name, least in (("rows", 2), ("columns", 3)):
            value = getattr(self, name)
            try:
                value = operator.index(value)
            except TypeError:
                raise InputError(f"{name} is {value!r}: it must be an integer") from None
            if value < least:
                raise InputError(f"{name} is {value}: a cliff needs at least {least}")
            object.__setattr__(self, name, value)
        if self.rows * self.columns > MOST_CELLS:
            raise InputError(
                f"a cliff of {self.rows:,} x {self.columns:,} cells: at most {MOST_CELLS:,}"
            )

    @property
    def num_states(self) -> int:
        return self.rows * self.columns

    @property
    def start(self) -> int:
        return (self.rows - 1) * self.columns

    @property
    def goal(self) -> int:
        return self.rows * self.columns - 1

    def state(self, row: int, column: int) -> int:
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            raise InputError(f"cell ({row}, {column}) is outside {self.rows} x {self.columns}")
        return row * self.columns + column

    def cell(self, state: int) -> tuple[int, int]:
        if not 0 <= state < self.num_states:
            raise InputError(f"state {state} is outside 0..{self.num_states - 1}")
        row, column = divmod(int(state), self.columns)
        return row, column

    def is_cliff(self, state: int) -> bool:
        return self.start < state < self.goal

    def is_top_row(self, state: int) -> bool:
        return 0 <= state < self.columns

    def is_next_to_cliff(self, state: int) -> bool:
        """Shares an edge with the cliff: the row above it, and the start."""
        row, column = self.cell(state)
        above = row == self.rows - 2 and 0 < column < self.columns - 1
        return above or state == self.start

    def move(self, state: int, action: int) -> int:
        """The cell entered, which is the same one at a wall and may be a cliff cell."""
        row, column = self.cell(state)
        down, right = MOVES[action]
        row = min(max(row + down, 0), self.rows - 1)
        column = min(max(column + right, 0), self.columns - 1)
        return self.state(row, column)


def cliff_walk(
    rows: int = 4,
    columns: int = 12,
    fall: float = 0.05,
    step_reward: float = -1.0,
    cliff_reward: float = -100.0,
) -> TabularMDP:
    """Section 5.2's CliffWalk: Sutton and Barto's cliff, made slippery at its edge.

    In a cell that shares an edge with the cliff (the row above it and the start), whatever the
    action, the agent falls with probability `fall` instead of moving.
    """
    grid = CliffGrid(rows, columns)
    _check_reward("step_reward", step_reward)
    _check_reward("cliff_reward", cliff_reward)
    if not 0 <= fall <= 1:
        raise InputError(f"fall is {fall}: a probability lies in [0, 1]")
    mean = np.full(grid.num_states, float(step_reward))
    return _grid_mdp(grid, mean, np.zeros_like(mean), cliff_reward, fall=float(fall))


def risky_cliff(
    rows: int = 4,
    columns: int = 12,
    sigma: float = 1e-3,
    step_reward: float = -1.0,
    cliff_reward: float = -100.0,
    reward_clip: tuple[float, float] = (-10.0, 10.0),
    bonus: float = 0.0,
) -> TabularMDP:
    """Section 5.4's CliffWalk: the top row and the row along the cliff are worth the same.

    Reward on ENTERING a cell: top row `top_row_reward` (-2/3 on 4 x 12), the row along the cliff
    in columns 1..columns-2 N(step_reward, sigma^2), elsewhere `step_reward`. `sigma` is a
    standard deviation. Only the random rewards are clipped; with a sigma so large that the clip
    bites on one side more than on the other, the two paths no longer tie exactly.

    `bonus` makes the path along the cliff better by so much in all, or worse. Where the grid is so
    high that no negative reward of the top row alone makes up for the climb, the first and the last
    column share in it (`detour_rewards`).
    """
    grid = CliffGrid(rows, columns)
    mean = detour_rewards(grid, step_reward)
    _check_reward("cliff_reward", cliff_reward)
    _check_reward("bonus", bonus)
    if step_reward + bonus / (grid.columns - 2) >= 0:
        raise InputError(
            f"bonus is {bonus}: above {-step_reward * (grid.columns - 2):g} it would pay to walk "
            "along the cliff for ever"
        )
    if not (np.isfinite(sigma) and sigma >= 0):
        raise InputError(f"sigma is {sigma}: a standard deviation is finite and not negative")
    if sigma > 0 and not reward_clip[0] < step_reward < reward_clip[1]:
        raise InputError(f"reward_clip {reward_clip} does not contain step_reward {step_reward}")
    mean[-2, 1:-1] += bonus / (grid.columns - 2)
    std = np.zeros_like(mean)
    std[-2, 1:-1] = sigma
    return _grid_mdp(grid, mean.ravel(), std.ravel(), cliff_reward, reward_clip=reward_clip)


def detour_rewards(grid: CliffGrid, step_reward: float = -1.0) -> np.ndarray:
    """[rows, columns] certain rewards of entering each cell, such that both paths tie.

    Up to (columns + 3) / 2 rows the top row has `top_row_reward`. Beyond, the path over the top has
    C + 2R - 6 cells of its own (those above the row along the cliff), and C - 2 noisy ones of the
    other path to make up for: each is worth r (C - 2) / (C + 2R - 6).
    """
    mean = np.full((grid.rows, grid.columns), float(step_reward))
    if grid.columns + 4 - 2 * grid.rows > 0 or grid.rows < 3 or not step_reward < 0:
        mean[0] = top_row_reward(grid, step_reward)  # which refuses what cannot tie
        return mean
    own = step_reward * (grid.columns - 2) / (grid.columns + 2 * grid.rows - 6)
    mean[0], mean[:-2, 0], mean[:-2, -1] = own, own, own
    return mean


def top_row_reward(grid: CliffGrid, step_reward: float = -1.0) -> float:
    """The reward of a top-row cell that makes both paths of `risky_cliff` worth the same.

    With R rows, C columns and step reward r the path along the cliff has C + 1 moves, worth
    (C + 1) r. The one over the top enters C top-row cells and 2R - 3 others, worth
    C x + (2R - 3) r. Equal for x = r (C + 4 - 2R) / C: -8/12 on 4 x 12.
    """
    _check_reward("step_reward", step_reward)
    if step_reward >= 0:
        raise InputError(f"step_reward is {step_reward}: the paths tie only for a negative one")
    if grid.rows < 3:
        raise InputError(f"rows is {grid.rows}: a top row apart from the cliff's needs 3")
    if grid.columns + 4 - 2 * grid.rows <= 0:
        most = (grid.columns + 3) // 2
        raise InputError(
            f"rows is {grid.rows}: with {grid.columns} columns at most {most} rows let the top "
            "row tie at a negative reward"
        )
    return step_reward * (grid.columns + 4 - 2 * grid.rows) / grid.columns


def _grid_mdp(
    grid: CliffGrid,
    mean: np.ndarray,
    std: np.ndarray,
    cliff_reward: float,
    *,
    fall: float = 0.0,
    reward_clip: tuple[float, float] = (-np.inf, np.inf),
) -> TabularMDP:
    """Arrays from the reward for entering each cell. Outcome 0 is the move, outcome 1 the slip."""
    shape = (grid.num_states, len(MOVES), 2 if fall > 0 else 1)
    # Nobody ever acts on the goal or inside the cliff: absorbing there, at no reward.
    next_state = np.broadcast_to(np.arange(grid.num_states)[:, None, None], shape).copy()
    probability = np.zeros(shape)
    probability[..., 0] = 1.0
    reward_mean, reward_std = np.zeros(shape), np.zeros(shape)
    terminal = np.ones(shape, bool)
    for state in range(grid.num_states):
        if state == grid.goal or grid.is_cliff(state):
            continue
        for action in range(len(MOVES)):
            at = (state, action)
            entered = grid.move(state, action)
            falls = grid.is_cliff(entered)
            next_state[at] = grid.start  # slips included
            reward_mean[at] = cliff_reward
            terminal[at] = False
            if not falls:
                next_state[(*at, 0)] = entered
                reward_mean[(*at, 0)], reward_std[(*at, 0)] = mean[entered], std[entered]
                terminal[(*at, 0)] = entered == grid.goal
                if fall > 0 and grid.is_next_to_cliff(state):
                    probability[at] = (1.0 - fall, fall)
    return TabularMDP(
        next_state=next_state,
        probability=probability,
        reward_mean=reward_mean,
        reward_std=reward_std,
        terminal=terminal,
        start=grid.start,
        reward_clip=reward_clip,
    )


def _check_reward(name: str, value: float) -> None:
    if not np.isfinite(value):
        raise InputError(f"{name} is {value}: it must be finite")


class GreedyPath(NamedTuple):
    """What happens when each action's likeliest outcome comes true."""

    states: tuple[int, ...]  # the terminal state included
    actions: tuple[int, ...]
    mean_return: float  # undiscounted
    terminated: bool  # False: the policy runs in a circle


def greedy_path(mdp: TabularMDP, actions: Any, start: int | None = None) -> GreedyPath:
    """Follow `actions[S]` from `start` until termination or until a state comes back."""
    actions = np.asarray(actions)
    if actions.shape != (mdp.num_states,) or not np.issubdtype(actions.dtype, np.integer):
        raise InputError(
            f"actions has shape {actions.shape}, dtype {actions.dtype}: "
            f"it must hold one integer for each of {mdp.num_states} states"
        )
    if (bad := np.flatnonzero((actions < 0) | (actions >= mdp.num_actions))).size:
        raise InputError(f"actions[{bad[0]}] is {actions[bad[0]]}: there are {mdp.num_actions}")
    state = int(np.argmax(mdp.start_distribution)) if start is None else int(start)
    if not 0 <= state < mdp.num_states:
        raise InputError(f"start is {state}: states are 0..{mdp.num_states - 1}")
    states, taken, total, terminated = [state], [], 0.0, False
    seen: set[int] = set()
    while not terminated and state not in seen:
        seen.add(state)
        action = int(actions[state])
        at = (state, action, int(np.argmax(np.asarray(mdp.probability)[state, action])))
        total += float(mdp.reward_mean[at])
        terminated = bool(mdp.terminal[at])
        state = int(mdp.next_state[at])
        states.append(state)
        taken.append(action)
    return GreedyPath(tuple(states), tuple(taken), total, terminated)


def noisy_states(mdp: TabularMDP) -> np.ndarray:
    """[S]: can entering this state pay a random reward?"""
    random = (np.asarray(mdp.reward_std) > 0) & (np.asarray(mdp.probability) > 0)
    marked = np.zeros(mdp.num_states, bool)
    marked[np.asarray(mdp.next_state)[random]] = True
    return marked
