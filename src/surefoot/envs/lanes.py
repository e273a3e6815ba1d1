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
from surefoot.envs.making import separate_env
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
            read, masked = self._readers[i].after_step, self._masked
            before = after = read(info, masked=masked, final=terminated)
            if terminated or truncated:
                obs, info = lane.reset(self.number(i, int(episodes[i]) + 1))
                after = read(info, masked=masked)
            masks.append((before, after))
            starts.append(obs)
            rewards.append(reward)
            flags.append((terminated, truncated))
        terminated, truncated = np.array(flags, np.int8).T
        legal = np.stack(masks, axis=1) if self._masked else ()
        return Shown(ends, starts, np.array(rewards, np.float64), terminated, truncated, legal)

    def play(self, lane: int, episode: int, actions: list[Any]) -> Any:
        """Begin an episode and repeat its actions: the last observation."""
        one = self.lanes[lane]
        obs = one.reset(self.number(lane, episode))[0]
        for action in actions:
            obs = one.step(action)[0]
        return obs


def lanes_of(first: TrainingEnv, n: int, seed: int) -> Lanes:
    """An environment and `n - 1` more of its kind."""
    make = first.remake
    if make is None and first.env.spec is None:
        raise InputError(f"n_envs: {first.name} is not registered: pass a function that makes one")
    more = [separate_env(first.env) if make is None else make() for _ in range(n - 1)]
    return Lanes([first.env, *more], seed, make)


class VectorLanes(TrainingEnv):
    """A VectorEnv as the caller made it, whichever way it resets."""

    replays = False  # only it knows the seeds of its episodes

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int) -> None:
        super().__init__(env, seed)  # type: ignore[arg-type]
        self._vector, self.size = env, int(env.num_envs)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.mode = mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
        self._over = np.zeros(self.size, bool)
        self._reader, self._masked = Masks(env), False
        self._call = getattr(env, "call", None)  # a method of its environments
        self._asked = self._call is not None and any(self._call("has_wrapper_attr", "action_masks"))

    def _each(self, obs: Any) -> list[Any]:
        return list(gym.vector.utils.iterate(self.env.observation_space, obs))

    def start(self, episodes: Any) -> tuple[list[Any], Any]:
        obs, info = self.reset(int(np.sum(episodes)))
        together = self.mode is AutoresetMode.SAME_STEP
        if together and self._asked and "action_mask" not in info:
            raise InputError(
                "action_masks() of a VectorEnv that resets in the same step cannot be asked for an "
                "episode's last observation: take another autoreset_mode, or info['action_mask']"
            )
        self._over = np.zeros(self.size, bool)
        masks = [self._reader.read(own) for own in self._infos(info)]
        self._masked = masks[0] is not None
        return self._each(obs), np.stack(masks) if self._masked else None  # type: ignore[arg-type]

    def move(self, actions: list[Any], episodes: Any) -> Shown:
        void, together = self._over, self._together(actions)
        obs, reward, terminated, truncated, info = self.step(together)
        terminated, truncated = (np.array(x, np.int8) for x in (terminated, truncated))
        over, ends, infos = (terminated | truncated) > 0, self._each(obs), self._infos(info)
        starts, following, last = list(ends), list(infos), terminated
        if self.mode is AutoresetMode.SAME_STEP:
            final = self._infos(info.get("final_info", {})) if over.any() else []
            for i in np.flatnonzero(over):
                ends[i], infos[i] = info["final_obs"][i], final[i]
            last = np.zeros_like(over)
        elif self.mode is AutoresetMode.DISABLED:
            if over.any():
                ends = copy.deepcopy(ends)  # they may lie in the arrays that a reset writes to
                obs, info = self.env.reset(options={"reset_mask": over})
                starts, begun = self._each(obs), self._infos(info)
                for i in np.flatnonzero(over):
                    following[i] = begun[i]
            last = np.zeros_like(over)
        else:
            self._over = over
            truncated = np.where(void, VOID, truncated).astype(np.int8)
            terminated = np.where(void, 0, terminated).astype(np.int8)
        masks = [self._legal(infos, terminated), self._legal(following, last)]
        legal = np.stack(masks) if self._masked else ()
        return Shown(ends, starts, np.array(reward, np.float64), terminated, truncated, legal)

    def _infos(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        """What the info of all says of the legal actions of each."""
        given, has = info.get("action_mask"), info.get("_action_mask", np.ones(self.size, bool))
        if given is None and self._call is not None and self._asked:
            given = self._call("action_masks")
        if given is None:
            return [{} for _ in range(self.size)]
        return [{"action_mask": given[i]} if has[i] else {} for i in range(self.size)]

    def _legal(self, infos: list[dict[str, Any]], final: Any) -> list[Any]:
        read, masked = self._reader.after_step, self._masked
        return [read(infos[i], masked=masked, final=bool(final[i])) for i in range(self.size)]

    def _together(self, actions: list[Any]) -> Any:
        space = self._vector.single_action_space
        made: Any = gym.vector.utils.create_empty_array(space, self.size, fn=np.zeros)
        return gym.vector.utils.concatenate(space, actions, made)
