"""Several environments of a kind side by side: our own list of them, or a Gymnasium VectorEnv.

Both answer a step with both ends of every lane's transition. The lanes of our own list start each
episode from a seed of its own, so that an episode can be played again up to where it was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from surefoot.envs.faults import TrainingEnv
from surefoot.envs.masks import Masks
from surefoot.errors import InputError

VOID = 2  # in `cut`: no transition, but the step in which a VectorEnv resets a lane


class Shown(NamedTuple):
    """What the lanes showed in one step."""

    obs_t: list[Any]  # an episode's last observation where it is over
    obs_next: list[Any]  # what to act on next: a reset's where it is over
    reward: np.ndarray  # [n]
    terminated: np.ndarray  # [n]
    cut: np.ndarray  # [n] 1 if truncated, 2 (VOID) if this was no step at all
    masks: Any = ()  # [2, n, A] the legal actions at both, if there are masks


class Lanes(TrainingEnv):
    """Our own list of environments. The k-th episode of lane i is number `k * n + i` of the run."""

    replays = True  # an episode can be played again from its seed

    def __init__(
        self, envs: list[gym.Env[Any, Any]], seed: int, remake: Callable[[], Any] | None = None
    ) -> None:
        super().__init__(envs[0], seed, remake)
        self.lanes = [TrainingEnv(env, seed, remake) for env in envs]
        self._readers: list[Masks] = []
        self._masked = False

    @property
    def environments(self) -> list[Any]:
        return [lane.env for lane in self.lanes]

    def limit_time(self, seconds: float | None) -> None:
        super().limit_time(seconds)
        for lane in self.lanes:
            lane.limit_time(seconds)

    def renew(self) -> None:
        for lane in self.lanes:
            lane.renew()
        self.env = self.lanes[0].env

    def number(self, lane: int, episode: int) -> int:
        return episode * len(self.lanes) + lane

    def start(self, episodes: Any) -> tuple[list[Any], Any]:
        """The first observations of these episodes, one of each lane, and their masks if any."""
        self._readers = [Masks(lane.env) for lane in self.lanes]
        begun = [lane.reset(self.number(i, int(episodes[i]))) for i, lane in enumerate(self.lanes)]
        masks = [reader.read(info) for reader, (_, info) in zip(self._readers, begun, strict=True)]
        self._masked = masks[0] is not None
        return [obs for obs, _ in begun], np.stack(masks) if self._masked else None  # type: ignore[arg-type]

    def move(self, actions: list[Any], episodes: Any) -> Shown:
        """One step of each lane; those that are over begin the next of their `episodes`."""
        ends, starts, rewards, masks, flags = [], [], [], [], []
        for i, (lane, action) in enumerate(zip(self.lanes, actions, strict=True)):
            obs, reward, terminated, truncated, info = lane.step(action)
            ends.append(obs)
            before = self._mask(i, info, final=terminated)
            if terminated or truncated:
                obs, info = lane.reset(self.number(i, int(episodes[i]) + 1))
                masks.append((before, self._mask(i, info)))
            else:
                masks.append((before, before))
            starts.append(obs)
            rewards.append(reward)
            flags.append((terminated, truncated))
        terminated, truncated = np.array(flags, np.int8).T
        legal = np.stack(masks, axis=1) if self._masked else ()
        return Shown(ends, starts, np.array(rewards, np.float64), terminated, truncated, legal)

    def _mask(self, lane: int, info: dict[str, Any], final: bool = False) -> Any:
        if self._masked:
            return self._readers[lane].expect(info, final=final)
        if "action_mask" in info:
            raise InputError("info has an action_mask after a step, but had none after a reset")
        return None

    def play(self, lane: int, episode: int, actions: list[Any]) -> Any:
        """Begin an episode and repeat its actions: the last observation."""
        one = self.lanes[lane]
        obs = one.reset(self.number(lane, episode))[0]
        for action in actions:
            obs = one.step(action)[0]
        return obs


class VectorLanes(TrainingEnv):
    """A VectorEnv as the caller made it, whichever way it resets."""

    replays = False  # only it knows the seeds of its episodes

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int) -> None:
        super().__init__(env, seed)  # type: ignore[arg-type]
        self._vector, self.size = env, int(env.num_envs)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.mode = mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
        self._over = np.zeros(self.size, bool)

    def _each(self, obs: Any) -> list[Any]:
        return list(gym.vector.utils.iterate(self.env.observation_space, obs))

    def start(self, episodes: Any) -> tuple[list[Any], Any]:
        obs, info = self.reset(int(np.sum(episodes)))
        self._refuse_masks(info)
        self._over = np.zeros(self.size, bool)
        return self._each(obs), None

    def move(self, actions: list[Any], episodes: Any) -> Shown:
        void, together = self._over, self._together(actions)
        obs, reward, terminated, truncated, info = self.step(together)
        self._refuse_masks(info)
        terminated, truncated = (np.array(x, np.int8) for x in (terminated, truncated))
        over, ends = (terminated | truncated) > 0, self._each(obs)
        starts = list(ends)
        if self.mode is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(over):
                ends[i] = info["final_obs"][i]
        elif self.mode is AutoresetMode.DISABLED:
            if over.any():
                ends = copy.deepcopy(ends)  # they may lie in the arrays that a reset writes to
                obs, _ = self.env.reset(options={"reset_mask": over})
                starts = self._each(obs)
        else:
            self._over = over
            truncated = np.where(void, VOID, truncated).astype(np.int8)
            terminated = np.where(void, 0, terminated).astype(np.int8)
        return Shown(ends, starts, np.array(reward, np.float64), terminated, truncated)

    def _together(self, actions: list[Any]) -> Any:
        space = self._vector.single_action_space
        made: Any = gym.vector.utils.create_empty_array(space, self.size, fn=np.zeros)
        return gym.vector.utils.concatenate(space, actions, made)

    @staticmethod
    def _refuse_masks(info: dict[str, Any]) -> None:
        if "action_mask" in info:
            raise InputError(
                "a VectorEnv that masks actions is not supported: pass the environment's id, or a "
                "function that makes one, and n_envs"
            )
