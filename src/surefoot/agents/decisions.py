"""What an agent does with what it knows: predict, decide, explain, evaluate.

A subclass says what it knows of an observation (`_estimates`) and how it decides (`_decide`).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from surefoot.agents.explain import Explanation, explain, known_action_names
from surefoot.agents.saving import Saved
from surefoot.core.evidence import Known
from surefoot.envs.faults import evaluation_seed
from surefoot.envs.making import separate_env
from surefoot.envs.masks import Masks, checked_masks
from surefoot.errors import InputError, at_least, check_episodes
from surefoot.policies import Decision, Policy, policy_named
from surefoot.runs.session import end_if_overdue


class Deciding(Saved):
    """The part of an agent that acts."""

    _eval_env: gym.Env[Any, Any] | None
    _tie_key: jax.Array

    @property
    def env_maker(self) -> Callable[[], Any] | None:
        """How to make another training environment, where it came by its name or as a function."""
        return None if self._training_env is None else self._training_env.remake

    @property
    def observation_space(self) -> gym.Space[Any]:
        assert self.env is not None
        return self.env.observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        assert self.env is not None
        return self.env.action_space

    @property
    def action_names(self) -> tuple[str, ...]:
        """What the environment's actions are known as, else their numbers."""
        return known_action_names(self.env_name, self.action_space)

    def predict(self, obs: Any, *, deterministic: bool = True, action_masks: Any = None) -> Any:
        """The evaluation policy's action, as the environment takes it; one each for a batch.

        Ties are broken the same way each time. With `deterministic=False` the behaviour policy
        acts as it does in training, exploration included. `action_masks` `[A]`, or `[B, A]` for a
        batch, leaves the legal actions.
        """
        decided = self.decide(obs, deterministic=deterministic, action_masks=action_masks)
        return self.own_actions(decided.action)

    def decide(self, obs: Any, *, deterministic: bool = True, action_masks: Any = None) -> Decision:
        """What `predict` decides, with its reasons; batched if `obs` is. Actions count from 0."""
        rows, single = self._rows(obs)
        masks = self._masks(rows, action_masks)
        if not deterministic:
            self._drawn += 1  # a stream of its own: the run does not notice
        decided = jax.device_get(self._decide(rows, deterministic, masks))
        return jax.tree.map(lambda leaf: leaf[0], decided) if single else decided

    def explain(
        self, obs: Any, policy: Policy | str | None = None, *, action_masks: Any = None
    ) -> Explanation:
        """Who decides at one observation, and by how much; `print` it.

        `policy` asks what another one would do with what this agent has learned.
        """
        rows, single = self._rows(obs)
        if not single:
            raise InputError(
                f"obs has the shape of a batch ({len(rows)} rows): explain takes one; decide "
                "takes a batch too"
            )
        chosen = policy_named(self.config.evaluation if policy is None else policy)
        masks = self._masks(rows, action_masks)
        z, n = self._estimates(rows)
        n, mask = jax.tree.map(lambda part: part[0], (n, masks))
        return explain(z[0], chosen, self._ties(rows[0]), mask=mask, n=n, names=self.action_names)

    def return_distribution(self, obs: Any) -> np.ndarray:
        """Ascending, equally likely returns `[A, N]`, or `[B, A, N]` for a batch."""
        z, _ = self.estimates(obs)
        alone = 2 if self.is_single(obs) else 3
        return z.mean(axis=-3) if z.ndim > alone else z

    def estimates(self, obs: Any) -> tuple[np.ndarray, np.ndarray | Known | None]:
        """What policies decide on: `(z, n)`, particles `[A, N]` and what they rest on (transitions
        seen `n[A]`, and the errors of the means if they are known), or an ensemble `[E, A, N]` and
        None; with a batch axis in front for a batch."""
        rows, single = self._rows(obs)
        known = self._estimates(rows)
        return jax.tree.map(lambda part: part[0], known) if single else known

    def is_single(self, obs: Any) -> bool:
        """Whether `obs` is one observation, or else a batch of them."""
        return self._rows(obs)[1]

    def evaluate(self, episodes: int = 10, *, seed: int | None = None) -> np.ndarray:
        """Undiscounted returns of whole episodes under the evaluation policy.

        A separate environment and key: training is not disturbed. Episode `i` starts from
        `seed + i`; by default from seeds made of the agent's own, so that agents of different seeds
        meet different episodes.
        """
        check_episodes(1, episodes=episodes)
        if seed is None:
            seeds = [evaluation_seed(self.seed, i) for i in range(episodes)]
        else:
            at_least(0, seed=seed)
            seeds = list(range(seed, seed + episodes))
        env, act, totals = self._evaluation_env(), self._actor(), np.zeros(episodes)
        masks = Masks(env)
        for episode, start in enumerate(seeds):
            obs, info = env.reset(seed=start)
            for _ in self._clock():
                end_if_overdue()
                action = act(obs, masks.read(info))
                obs, reward, terminated, truncated, info = env.step(action)
                totals[episode] += float(reward)
                if terminated or truncated:
                    break
        return totals

    def first_observation(self, seed: int) -> Any:
        """What an episode begins with, after a reset with this seed."""
        return beginning(self, seed)[0]

    def _check_eval_env(self) -> None:
        """Numbers of a box may have other bounds there; all else must be the same."""
        if self._eval_env is None:
            return
        for name in ("observation_space", "action_space"):
            own, other = getattr(self, name), getattr(self._eval_env, name)
            boxes = isinstance(own, gym.spaces.Box) and isinstance(other, gym.spaces.Box)
            if own != other and not (boxes and own.shape == other.shape):
                raise InputError(f"eval_env: its {name} is {other}, the agent's is {own}")

    def _evaluation_env(self) -> gym.Env[Any, Any]:
        if self._eval_env is None:
            assert self.env is not None
            make = self.env_maker
            self._eval_env = separate_env(self.env) if make is None else make()
        return self._eval_env

    def _actor(self) -> Callable[[Any, Any], Any]:
        """`predict` for many observations and their masks, one after the other."""
        return lambda obs, mask: self.predict(obs, action_masks=mask)

    def _clock(self) -> Any:
        """The steps an evaluation episode may have."""
        return itertools.count()

    @abstractmethod
    def own_actions(self, actions: Any) -> Any:
        """Actions that count from 0 in the environment's own words; an int for a single one."""

    @abstractmethod
    def _rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        """A batch of observations, checked, and whether it was a single one."""

    @abstractmethod
    def _estimates(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | Known | None]:
        """Ascending particles `[B, A, N]` and what each rests on, or an ensemble of them
        `[B, E, A, N]` and None."""

    @abstractmethod
    def _decide(self, rows: np.ndarray, deterministic: bool, masks: Any) -> Decision:
        """The evaluation policy's decisions, or the behaviour policy's."""

    @abstractmethod
    def _ties(self, row: Any) -> jax.Array:
        """The key that breaks ties at an observation."""

    def _masks(self, rows: np.ndarray, masks: Any) -> np.ndarray | None:
        """The legal actions `[B, A]` at observations, as the caller says; None: all of them."""
        return None if masks is None else checked_masks(masks, (len(rows), len(self.action_names)))

    def _draw_key(self) -> jax.Array:
        return jax.random.fold_in(self._tie_key, self._drawn)


def beginning(agent: Deciding, seed: int) -> tuple[Any, np.ndarray | None]:
    """What an episode begins with, after a reset with this seed, and the legal actions there if the
    environment names them."""
    at_least(0, seed=seed)
    known = agent.env is None or agent.env.spec is not None or agent._eval_env is not None
    env = agent._evaluation_env() if known or agent.env_maker is not None else agent.env
    assert env is not None
    obs, info = env.reset(seed=seed)
    return obs, Masks(env).read(info)
