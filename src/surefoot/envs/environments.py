"""The same arrays as a Gymnasium environment: the two cliffs, and the tasks of the risk suite.

Termination comes from the process. Truncation comes only from the time limit that `gym.make`
wraps around the registered environments (500 steps, the paper's horizon).
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.cliffs import CliffGrid, cliff_walk, noisy_states, risky_cliff
from surefoot.envs.drawing import draw_cells, draw_grid, draw_pixels, draw_text
from surefoot.envs.finite import TabularMDP, check_process
from surefoot.envs.risk_tasks import finite_task
from surefoot.errors import InputError, unknown


class TabularEnv(gym.Env[Any, Any]):
    """Steps a `TabularMDP` with Gymnasium's own random generator.

    `reset(options={"state": s})` starts in a chosen state. Where the process masks actions,
    `info["action_mask"]` says which are feasible. `grid` gives it something to render, or `cells`,
    the rows and columns its states are drawn in.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        mdp: TabularMDP,
        render_mode: str | None = None,
        grid: CliffGrid | None = None,
        cells: tuple[int, int] | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        check_process(mdp)
        if grid is not None and grid.num_states != mdp.num_states:
            raise InputError(f"grid has {grid.num_states} cells, mdp {mdp.num_states} states")
        self.mdp = mdp
        self.grid, self.cells = grid, cells
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(mdp.num_states)
        self.action_space = spaces.Discrete(mdp.num_actions)
        self._noisy = noisy_states(mdp)
        self._state: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        chosen = (options or {}).get("state")
        if chosen is None:
            start = self.mdp.start_cumulative
            chosen = self.mdp.start if start is None else self._draw(start)
        elif not self.observation_space.contains(chosen):
            raise InputError(f"state {chosen!r}: states are 0..{self.mdp.num_states - 1}")
        self._state = int(chosen)
        return self._state, self._info()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gym.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(action):
            raise InputError(f"action {action!r}: actions are 0..{self.mdp.num_actions - 1}")
        mdp = self.mdp
        at = (self._state, action, self._draw(mdp.cumulative[self._state, action]))
        reward, std = float(mdp.reward_mean[at]), float(mdp.reward_std[at])
        if std > 0:
            drawn = reward + std * self.np_random.standard_normal()
            reward = float(np.clip(drawn, *mdp.reward_clip))
        self._state = int(mdp.next_state[at])
        return self._state, reward, bool(mdp.terminal[at]), False, self._info()

    def render(self) -> Any:
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode: make the environment with one")
            return None
        if self.grid is None:
            if self.render_mode == "ansi":
                said = self._place()
                return (
                    said if self.cells is None else f"{said}\n{draw_text(self.cells, self._state)}"
                )
            if self.cells is not None:
                return draw_cells(self.cells, self._state)
            raise InputError("rgb_array needs a grid: this environment has none")
        draw: Callable[..., Any] = draw_grid if self.render_mode == "ansi" else draw_pixels
        return draw(self.grid, self._noisy, self._state)

    def _place(self) -> str:
        return f"state {self._state} of {self.mdp.num_states}"

    def _draw(self, cumulative: np.ndarray) -> int:
        if len(cumulative) == 1:
            return 0
        return int(np.sum(self.np_random.random() >= cumulative[:-1]))

    def _info(self) -> dict[str, Any]:
        if self.mdp.mask is None:
            return {}
        return {"action_mask": np.array(self.mdp.mask[self._state], np.int8)}


class _CliffEnv(TabularEnv):
    build: Callable[..., TabularMDP]

    def __init__(
        self, rows: int = 4, columns: int = 12, render_mode: str | None = None, **options: Any
    ) -> None:
        known = tuple(signature(self.build).parameters)
        for name in options:
            if name not in known:
                raise unknown("argument", name, (*known, "render_mode"))
        super().__init__(
            self.build(rows, columns, **options), render_mode, CliffGrid(rows, columns)
        )


class CliffWalkEnv(_CliffEnv):
    """`surefoot/CliffWalk-v0`: arguments of `cliff_walk`."""

    build = staticmethod(cliff_walk)


class RiskyCliffEnv(_CliffEnv):
    """`surefoot/RiskyCliff-v0`: arguments of `risky_cliff`."""

    build = staticmethod(risky_cliff)


class RiskTaskEnv(TabularEnv):
    """`surefoot/Insurance-v0` and the other finite tasks of the suite: their question and knobs."""

    def __init__(
        self, task: str, question: str = "tie", render_mode: str | None = None, **knobs: Any
    ) -> None:
        self.task = finite_task(task, question, **knobs)
        super().__init__(self.task.mdp, render_mode, cells=self.task.cells)

    def _place(self) -> str:
        return "before the first period" if self._state is None else self.task.place(self._state)
