"""Ground truth on the cliffs, against an oracle in exact fractions."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.envs import (
    CliffGrid,
    cliff_walk,
    draw_grid,
    draw_path,
    draw_pixels,
    evaluate_policy,
    greedy_path,
    noisy_states,
    optimal_actions,
    risky_cliff,
    top_row_reward,
    value_iteration,
)
from surefoot.errors import InputError

GRIDS = [(4, 12), (3, 3), (3, 5), (5, 8), (6, 20)]
UP, RIGHT, DOWN, LEFT = range(4)


def exact_moves(rows, columns):
    """{cell: [(entered cell or None at the goal, reward)] * 4}, written from the notes."""
    top = Fraction(-(columns + 4 - 2 * rows), columns)
    start, goal = (rows - 1, 0), (rows - 1, columns - 1)
    moves = {}
    for row in range(rows):
        for column in range(columns):
            if row == rows - 1 and (row, column) != start:
                continue
            moves[row, column] = []
            for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1)):
                to = (min(max(row + down, 0), rows - 1), min(max(column + right, 0), columns - 1))
                if to[0] == rows - 1 and 0 < to[1] < columns - 1:
                    moves[row, column].append((start, Fraction(-100)))
                else:
                    reward = top if to[0] == 0 else Fraction(-1)
                    moves[row, column].append((None if to == goal else to, reward))
    return moves


@cache
def exact_q(rows, columns):
    """Exact optimal Q by Bellman-Ford in rationals: {cell: [q of the four actions]}."""
    moves = exact_moves(rows, columns)
    value = dict.fromkeys(moves, Fraction(-10_000))
    changed = True
    while changed:
        q = {
            cell: [reward + (value[to] if to else 0) for to, reward in out]
            for cell, out in moves.items()
        }
        changed = any(max(q[cell]) > value[cell] for cell in moves)
        value = {cell: max(q[cell]) for cell in moves}
    return q


def optimal_paths(rows, columns):
    """All action sequences from the start that use optimal actions only (no zero cycles exist)."""
    moves, q = exact_moves(rows, columns), exact_q(rows, columns)
    paths, open_ = [], [((rows - 1, 0), ())]
    while open_:
        cell, taken = open_.pop()
        for action in range(4):
            if q[cell][action] == max(q[cell]):
                to = moves[cell][action][0]
                extended = (*taken, action)
                paths.append(extended) if to is None else open_.append((to, extended))
    return sorted(paths)


def along(rows, columns, level):
    """Up `level` cells, right to the last column, down again."""
    return (UP,) * level + (RIGHT,) * (columns - 1) + (DOWN,) * level


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_dp_agrees_with_exact_fractions_in_every_cell(rows, columns):
    grid, oracle = CliffGrid(rows, columns), exact_q(rows, columns)
    result = value_iteration(risky_cliff(rows, columns), 1.0)
    assert result.converged
    for cell, q in oracle.items():
        state = grid.state(*cell)
        np.testing.assert_allclose(result.q[state], [float(x) for x in q], rtol=1e-13)
        ties = [x == max(q) for x in q]
        np.testing.assert_array_equal(optimal_actions(result.q)[state], ties)


def test_on_4_x_12_both_paths_are_worth_exactly_minus_13_and_nothing_else_is():
    assert top_row_reward(CliffGrid()) == -2 / 3
    assert max(exact_q(4, 12)[3, 0]) == -13
    assert value_iteration(risky_cliff(), 1.0).v[36] == pytest.approx(-13, abs=1e-14)
    assert optimal_paths(4, 12) == sorted([along(4, 12, 1), along(4, 12, 3)])


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_the_only_decision_is_above_the_start_and_all_else_costs_a_third(rows, columns):
    # Gap between best and second best action: zero in the cell above the start. On the other
    # cells of the two paths it is at least the advantage of one top-row cell, (2R - 4) / C = 1/3,
    # or the price of a bump into the top wall where that is less (not so on 4 x 12: 2/3).
    q, advantage = exact_q(rows, columns), Fraction(2 * rows - 4, columns)
    bump = Fraction(columns + 4 - 2 * rows, columns)
    fork = (rows - 2, 0)
    path_cells = {(row, column) for row in (0, rows - 2) for column in range(columns)}
    path_cells |= {(row, column) for row in range(rows - 1) for column in (0, columns - 1)}
    gaps = {cell: max(q[cell]) - sorted(q[cell])[-2] for cell in path_cells | {(rows - 1, 0)}}
    assert gaps.pop(fork) == 0
    assert [q[fork][a] == max(q[fork]) for a in range(4)] == [True, True, False, False]
    assert min(gaps.values()) == min(advantage, bump)
    if (rows, columns) == (4, 12):
        assert min(gaps.values()) == Fraction(1, 3)


@pytest.mark.parametrize("later", range(11))
def test_leaving_the_row_along_the_cliff_later_costs_a_third_a_column(later):
    # Up, `later` columns along the cliff, up to the top row, right, down.
    actions = (UP,) + (RIGHT,) * later + (UP, UP) + (RIGHT,) * (11 - later) + (DOWN,) * 3
    moves, cell, total = exact_moves(4, 12), (3, 0), Fraction(0)
    for action in actions:
        cell, reward = moves[cell][action]
        total += reward
    assert cell is None
    assert total == -13 - Fraction(later, 3)


@given(st.integers(3, 9), st.integers(3, 24))
@settings(max_examples=25, deadline=None)
def test_two_optimal_paths_on_every_grid_that_is_allowed(rows, columns):
    if columns + 4 - 2 * rows <= 0:
        with pytest.raises(InputError, match="columns at most"):
            top_row_reward(CliffGrid(rows, columns))
        return
    assert optimal_paths(rows, columns) == sorted(
        {along(rows, columns, rows - 1)} | {along(rows, columns, 1)}
    )
    assert max(exact_q(rows, columns)[rows - 1, 0]) == -(columns + 1)


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_only_the_path_along_the_cliff_is_uncertain(rows, columns):
    # columns - 2 noisy cells are entered once each: variance (columns - 2) sigma^2.
    mdp, sigma = risky_cliff(rows, columns, sigma=0.01), 0.01
    tied = optimal_actions(value_iteration(mdp, 1.0).q)
    top = evaluate_policy(mdp, tied.argmax(axis=1), 1.0)  # up is preferred
    bottom = evaluate_policy(mdp, 3 - tied[:, ::-1].argmax(axis=1), 1.0)
    start = CliffGrid(rows, columns).start
    assert top.v_mean[start] == pytest.approx(-(columns + 1), abs=1e-12)
    assert bottom.v_mean[start] == pytest.approx(-(columns + 1), abs=1e-12)
    assert top.v_variance[start] == pytest.approx(0, abs=1e-25)
    assert bottom.v_variance[start] == pytest.approx((columns - 2) * sigma**2, rel=1e-9)


def test_reward_map_of_risky_cliff():
    mdp, grid = risky_cliff(), CliffGrid()
    reward = {}
    for state in [*range(36), 36]:
        for action in range(4):
            entered = grid.move(state, action)
            key = "cliff" if grid.is_cliff(entered) else entered
            pay = (mdp.reward_mean[state, action, 0], mdp.reward_std[state, action, 0])
            assert reward.setdefault(key, pay) == pay
    assert reward.pop("cliff") == (-100, 0)
    for state, (mean, std) in reward.items():
        row, column = grid.cell(state)
        assert mean == (-2 / 3 if row == 0 else -1)
        assert std == (1e-3 if row == 2 and 1 <= column <= 10 else 0)
    assert noisy_states(mdp).sum() == 10


def test_cliff_walk_falls_from_cells_that_share_an_edge_with_the_cliff():
    mdp, grid = cliff_walk(fall=0.05), CliffGrid()
    slippery = {grid.state(2, column) for column in range(1, 11)} | {grid.start}
    for state in [*range(36), grid.start]:
        for action in range(4):
            fell = mdp.reward_mean[state, action] == -100
            chance = mdp.probability[state, action][fell].sum()
            into = grid.is_cliff(grid.move(state, action))
            assert chance == pytest.approx(1.0 if into else 0.05 if state in slippery else 0.0)
            possible = fell & (mdp.probability[state, action] > 0)
            assert (mdp.next_state[state, action][possible] == grid.start).all()
            assert not mdp.terminal[state, action][possible].any()


def test_without_falls_it_is_the_textbook_cliff():
    # Sutton and Barto, example 6.6: the optimal path has 13 moves along the edge.
    mdp = cliff_walk(fall=0.0)
    assert mdp.num_outcomes == 1
    result = value_iteration(mdp, 1.0)
    assert result.v[36] == -13
    path = greedy_path(mdp, result.q.argmax(axis=1))
    assert path.actions == along(4, 12, 1)


def test_greedy_path_reports_a_circle():
    path = greedy_path(risky_cliff(), np.zeros(48, int))  # up for ever
    assert not path.terminated
    assert path.states == (36, 24, 12, 0, 0)
    with pytest.raises(InputError, match="actions has shape"):
        greedy_path(risky_cliff(), np.zeros(4, int))
    with pytest.raises(InputError, match=r"actions\[0\] is 9"):
        greedy_path(risky_cliff(), np.full(48, 9))


def test_cells_and_states():
    grid = CliffGrid(5, 8)
    assert [grid.state(*grid.cell(s)) for s in range(40)] == list(range(40))
    assert [s for s in range(40) if grid.is_top_row(s)] == list(range(8))
    assert [s for s in range(40) if grid.is_cliff(s)] == list(range(33, 39))
    assert (grid.start, grid.goal) == (32, 39)
    with pytest.raises(InputError, match="outside 5 x 8"):
        grid.state(5, 0)
    with pytest.raises(InputError, match=r"outside 0\.\.39"):
        grid.cell(40)


def test_drawings():
    mdp, grid = risky_cliff(3, 5), CliffGrid(3, 5)
    assert draw_grid(grid, noisy_states(mdp), agent=5).splitlines() == [
        "· · · · ·",
        "@ ~ ~ ~ ·",
        "S # # # G",
    ]
    path = greedy_path(mdp, value_iteration(mdp, 1.0).q.argmax(axis=1))
    assert draw_path(grid, path, noisy_states(mdp)).splitlines() == [
        "→ → → → ↓",
        "↑ ~ ~ ~ ↓",
        "S # # # G",
    ]
    picture = draw_pixels(grid, noisy_states(mdp), agent=5, cell=20)
    assert picture.shape == (61, 101, 3)
    # Agent, noise, cliff, start, goal and plain ground are told apart.
    tiles = [picture[r : r + 19, c : c + 19].tobytes() for r in (1, 21, 41) for c in (1, 21, 81)]
    assert len(set(tiles)) == 6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cliff_walk(rows=1), "rows is 1"),
        (lambda: cliff_walk(columns=2), "columns is 2"),
        (lambda: cliff_walk(rows=4.5), "rows is 4.5: it must be an integer"),
        (lambda: cliff_walk(fall=1.5), "fall is 1.5"),
        (lambda: cliff_walk(step_reward=np.nan), "step_reward is nan"),
        (lambda: risky_cliff(cliff_reward=np.inf), "cliff_reward is inf"),
        (lambda: risky_cliff(sigma=-1), "sigma is -1"),
        (lambda: risky_cliff(rows=2), "rows is 2"),
        (lambda: top_row_reward(CliffGrid(8, 12)), "at most 7 rows"),
        (lambda: risky_cliff(bonus=10), "bonus is 10: above 10 it would pay to walk"),
        (lambda: risky_cliff(bonus=np.nan), "bonus is nan"),
        (lambda: risky_cliff(step_reward=1), "step_reward is 1"),
        (lambda: risky_cliff(step_reward=-20), "does not contain step_reward"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
