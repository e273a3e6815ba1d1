"""Pictures of environments: text for the terminal and pixels by NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surefoot.envs.cliffs import ARROWS, CliffGrid, GreedyPath

AGENT = "@"

_GROUND, _NOISY, _DOTS = (246, 243, 235), (250, 225, 178), (196, 120, 30)
_CLIFF, _HATCH, _LINE = (58, 52, 60), (92, 66, 66), (205, 200, 190)
_START, _GOAL, _LETTER = (205, 221, 243), (190, 226, 190), (50, 60, 75)
_AGENT, _RIM = (28, 96, 190), (255, 255, 255)

_FONT = {  # 5 x 7
    "S": (".###.", "#...#", "#....", ".###.", "....#", "#...#", ".###."),
    "G": (".###.", "#...#", "#....", "#.###", "#...#", "#...#", ".###."),
}


def draw_grid(
    grid: CliffGrid,
    noisy: Sequence[bool] | np.ndarray | None = None,
    agent: int | None = None,
) -> str:
    """One line a row: S start, G goal, # cliff, ~ random reward, @ agent, · the rest."""
    marks = _marks(grid, noisy)
    if agent is not None:
        marks[grid.cell(agent)] = AGENT
    return _join(marks)


def draw_path(
    grid: CliffGrid,
    path: GreedyPath,
    noisy: Sequence[bool] | np.ndarray | None = None,
) -> str:
    """The grid with an arrow in every cell the path leaves; start and goal keep their letters."""
    marks = _marks(grid, noisy)
    for state, action in zip(path.states, path.actions, strict=False):
        if state not in (grid.start, grid.goal):
            marks[grid.cell(state)] = ARROWS[action]
    return _join(marks)


def draw_pixels(
    grid: CliffGrid,
    noisy: Sequence[bool] | np.ndarray | None = None,
    agent: int | None = None,
    *,
    cell: int = 48,
) -> np.ndarray:
    """[rows * cell + 1, columns * cell + 1, 3] uint8; the same marks as `draw_grid`."""
    return _pixels(_marks(grid, noisy), agent, cell)


def draw_text(cells: tuple[int, int], at: int | None) -> str:
    """States in rows and columns: @ where the agent is, · elsewhere."""
    marks = np.full(cells[0] * cells[1], "·")
    if at is not None:
        marks[at] = AGENT
    return _join(marks.reshape(cells))


def draw_cells(cells: tuple[int, int], at: int | None) -> np.ndarray:
    """As `draw_pixels`; the same marks as `draw_text`."""
    return _pixels(np.full(cells, "·"), at, 48)


def _pixels(marks: np.ndarray, agent: int | None, cell: int) -> np.ndarray:
    """A tile for each of the marks `[rows, columns]`, with lines between them."""
    rows, columns = marks.shape
    image = np.empty((rows * cell + 1, columns * cell + 1, 3), np.uint8)
    image[:] = _LINE
    tiles = {mark: _tile(mark, cell) for mark in "·~#SG"}
    for state, mark in enumerate(marks.ravel()):
        tile = _with_agent(tiles[mark]) if state == agent else tiles[mark]
        top, left = (cell * place + 1 for place in divmod(state, columns))
        image[top : top + cell - 1, left : left + cell - 1] = tile
    return image


def draw_plane(
    point: tuple[float, float],
    shaded: tuple[float, float, float, float] | None = None,
    pole: float | None = None,
) -> np.ndarray:
    """[height, width, 3] uint8: a point of the unit square, a box (left, right, low, high) of it
    that pays noisy rewards, and a pole on the point that leans to the right by `pole` radians."""
    height, width = 240, 480
    y, x = np.mgrid[:height, :width]
    across, up = (x + 0.5) / width, 1 - (y + 0.5) / height
    image = np.empty((height, width, 3), np.uint8)
    image[:] = _GROUND
    if shaded is not None:
        left, right, low, high = shaded
        image[(across >= left) & (across < right) & (up >= low) & (up < high)] = _NOISY
    right_of, above = (across - point[0]) * width, (up - point[1]) * height
    if pole is not None:
        along = right_of * np.sin(pole) + above * np.cos(pole)
        beside = np.abs(right_of * np.cos(pole) - above * np.sin(pole))
        image[(along > 0) & (along < height / 2) & (beside < 3)] = _LETTER
    away = np.hypot(right_of, above)
    image[away < 12], image[away < 10] = _RIM, _AGENT
    return image


def _marks(grid: CliffGrid, noisy: Sequence[bool] | np.ndarray | None) -> np.ndarray:
    marks = np.full(grid.num_states, "·")
    if noisy is not None:
        marks[np.asarray(noisy, bool)] = "~"
    marks[grid.start : grid.goal + 1] = "#"
    marks[grid.start], marks[grid.goal] = "S", "G"
    return marks.reshape(grid.rows, grid.columns)


def _join(marks: np.ndarray) -> str:
    return "\n".join(" ".join(map(str, row)) for row in marks)


def _tile(mark: str, cell: int) -> np.ndarray:
    """[cell - 1, cell - 1, 3]: one pixel of every cell is the line between cells."""
    size = cell - 1
    y, x = np.mgrid[:size, :size]
    tile = np.empty((size, size, 3), np.uint8)
    tile[:] = {"~": _NOISY, "#": _CLIFF, "S": _START, "G": _GOAL}.get(mark, _GROUND)
    if mark == "#":
        tile[(x + y) % 12 < 3] = _HATCH
    elif mark == "~":
        for across, down in ((1, 1), (3, 1), (2, 2), (1, 3), (3, 3)):  # the five of a die
            tile[np.hypot(x - across * size / 4, y - down * size / 4) < size / 18] = _DOTS
    elif mark in _FONT:
        glyph = np.array([[c == "#" for c in line] for line in _FONT[mark]])
        scale = max(size // 12, 1)
        big = glyph.repeat(scale, axis=0).repeat(scale, axis=1)
        top, left = (size - big.shape[0]) // 2, (size - big.shape[1]) // 2
        tile[top : top + big.shape[0], left : left + big.shape[1]][big] = _LETTER
    return tile


def _with_agent(tile: np.ndarray) -> np.ndarray:
    tile = tile.copy()
    size = tile.shape[0]
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    distance = np.hypot(x, y) / size
    tile[distance < 0.34] = _RIM
    tile[distance < 0.29] = _AGENT
    return tile
