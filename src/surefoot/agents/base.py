"""`Agent`: what every agent can do, in one place: learn, predict, decide, explain, save, resume.

A subclass says what differs: how a few steps are made (`_advance`), what it knows of an
observation (`_estimates`, `_decide`), and what its run is made of (`_tree`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import gymnasium as gym
import jax
import numpy as np

from surefoot.agents.explain import Explanation, explain, known_action_names
from surefoot.agents.saving import Saved, maker_of, opened_env
from surefoot.core.evidence import Known
from surefoot.core.markup import html_lines, html_table
from surefoot.envs.faults import Fault, FaultPolicy, TrainingEnv, fault_policy
from surefoot.envs.making import env_name, separate_env
from surefoot.envs.masks import Masks, checked_masks
from surefoot.errors import InputError, RunError, at_least, check_episodes, unknown
from surefoot.policies import SSD, Decision, Policy, policy_named
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.format import settings
from surefoot.runs.logs import Finished, RunLog, Watch
from surefoot.runs.progress import Bar, Mode
from surefoot.runs.progress import progress as show_progress
from surefoot.runs.session import Pace, Session
from surefoot.runs.tables import End

STRETCH = 500  # most steps between two looks at the clock, signals, logs
EVALUATION_SEEDS = 10_000  # apart from those of training

Callback = Callable[[Any, Finished], bool | None]
"""`callback(agent, episode)`, once for each finished episode; returning False stops `learn`."""


class _Looks(NamedTuple):
    """What `learn` does between two stretches of steps."""

    callback: Callback | None
    book: RunLog | None
    eval_every: int | None
    eval_episodes: int
    watch: Watch | None


class Agent(Saved):
    """Learns return distributions in an environment and acts on them by any policy."""

    episode_columns: ClassVar[tuple[str, ...]]  # of `episodes.csv`

    def __init__(
        self,
        env: Any,
        config: Any = None,
        *,
        seed: int = 0,
        eval_env: gym.Env[Any, Any] | None = None,
        **options: Any,
    ) -> None:
        known = [field.name for field in dataclasses.fields(self.config_type)]
        for name in options:
            if name not in known:
                raise unknown(f"option of {type(self).__name__}", name, known)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise InputError(f"seed = {seed!r}: it must be a whole number from 0 to 2^32 - 1")
        self.config: Any = dataclasses.replace(config or self.config_type(), **options)
        self._warn_of_blindness()
        self.seed = seed
        self.faults: list[str] = []  # what the run went on after
        self._eval_env = eval_env
        self._tie_key, self._drawn = jax.random.key(seed), 0
        self._book: RunLog | None = None  # while learning
        self._logged: dict[str, End] | None = None  # where the logs ended at the checkpoint
        self._own_env: gym.Env[Any, Any] | None = None  # of a run that does not step it
        self._training_env: TrainingEnv | None = None

    def _warn_of_blindness(self) -> None:
        policies = (self.config.behaviour, self.config.evaluation)
        if self.config.blind and any(isinstance(policy, SSD) for policy in policies):
            warnings.warn(
                f"loss {self.config.loss!r} cannot learn how dispersed random returns are, which "
                "is what SSD acts on: the surer action will not be recognised. "
                f"{self.config.seeing} can",
                stacklevel=4,
            )

    def _open(self, env: Any) -> TrainingEnv:
        """The environment as training steps it."""
        return TrainingEnv(opened_env(env), self.seed, maker_of(env))

    # --- what it is --------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """What a notebook shows: what it is, how far it is, and where its settings differ."""
        title = f"{type(self).__name__} on {self.env_name}, seed {self.seed}"
        own, usual = settings(self.config), settings(self.config_type())
        changed = [(name, str(own[name]), str(usual[name]))
                   for name in own if own[name] != usual[name]]  # fmt: skip
        about = (
            f"{self.num_timesteps:,} steps learned, loss {own['loss']}, acts by {own['evaluation']}"
        )
        table = html_table(("setting", "here", "default"), changed) if changed else ""
        return f"<div>{html_lines([title, about])}{table}</div>"

    @property
    def env(self) -> gym.Env[Any, Any] | None:
        """The training environment; None for a process given as arrays."""
        return self._own_env if self._training_env is None else self._training_env.env

    @property
    def env_maker(self) -> Callable[[], Any] | None:
        """How to make another training environment, where it came by its name or as a function."""
        return None if self._training_env is None else self._training_env.remake

    @property
    def env_name(self) -> str:
        return "TabularMDP" if self.env is None else env_name(self.env)

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

    # --- learning ------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | None = None,
        *,
        progress: bool = False,
        log: str | Path | RunLog | None = None,
        eval_every: int | None = None,
        eval_episodes: int = 10,
        watch: Watch | None = None,
        checkpoints: Checkpoints | None = None,
        on_fault: str | FaultPolicy = "stop",
    ) -> Self:
        """Train for `total_timesteps` more environment steps; two calls equal one long one.

        `callback(agent, episode)` is called once for each finished episode (compiled runs: after
        each stretch of steps); returning False stops. `log` is a directory for CSV files (or a
        `RunLog` with more hooks): episodes, evaluations every `eval_every` steps, and the return
        distributions of `watch`. `checkpoints` keeps the whole run on disk, on Ctrl-C and
        SIGTERM too; `on_fault` says what to do about an environment that raises, hangs or gives
        no number.
        """
        at_least(0, total_timesteps=total_timesteps)
        if eval_every is not None:
            at_least(1, eval_every=eval_every)
            check_episodes(1, eval_episodes=eval_episodes)
        policy = fault_policy(on_fault)
        if self._training_env is not None:
            self._training_env.limit_time(policy.step_timeout)
        book = log if isinstance(log, RunLog) or log is None else RunLog(log)
        session = Session(self, checkpoints, partial(self._begin_log, book))
        looks = _Looks(callback, book, eval_every, eval_episodes, watch)
        mode: Mode = "auto" if progress else "silent"
        name = f"{self.env_name}, {self.config.loss}, seed {self.seed}"
        own = book if book is not None and book is not log else contextlib.nullcontext()
        try:
            before = self.num_timesteps  # a resumed run's bar starts where it was
            shown = show_progress(before + total_timesteps, name, "steps", start=before, mode=mode)
            with own, shown as bar, session:
                self._learn(total_timesteps, looks, policy.retries, session, bar)
        finally:
            self._book = None
        return self

    def _begin_log(self, book: RunLog | None) -> None:
        """Once the directories are this process's."""
        if book is not None:
            book.begin(self.num_timesteps, self._logged, self.episode_columns)
        self._book, self._logged = book, None

    def _learn(self, total: int, looks: _Looks, retries: int, session: Session, bar: Bar) -> None:
        every = [part.every for part in (looks.watch, session.checkpoints) if part is not None]
        every += [] if looks.eval_every is None else [looks.eval_every]
        last, pace, going = self.num_timesteps + total, Pace(STRETCH), True
        while going and self.num_timesteps < last:
            before = self.num_timesteps
            steps = min(last - before, pace.begin(), *(e - before % e for e in every))
            try:
                episodes: Sequence[Finished] = self._advance(steps)
            except Fault as fault:
                error = RunError(self._place(fault), partial=self)
                episodes = fault.ended if fault.lasting else self._cut()
                self._note(episodes, looks, bar)
                if fault.lasting:  # what was learned is spoilt: the last checkpoint is good
                    raise error from fault.__cause__
                if retries < 1:
                    session.save()
                    raise error from fault.__cause__
                retries -= 1
                self.faults.append(str(error))
                warnings.warn(f"{error}; retries left: {retries}", stacklevel=3)
                if self._training_env is not None:
                    self._training_env.renew()
                continue
            moved = self.num_timesteps - before
            bar.advance(moved)
            seconds = pace.end(moved)
            if looks.book is not None:
                looks.book.speed(self.num_timesteps, moved, seconds)
            going = self._note(episodes, looks, bar)
            self._look(looks, before)
            session.between()

    def _note(self, episodes: Sequence[Finished], looks: _Looks, bar: Bar) -> bool:
        """Log finished episodes and tell the callback; False if it asks to stop."""
        going = True
        for episode in episodes:
            if looks.book is not None:
                looks.book.episode(episode, self._episode_row(episode))
            if looks.callback is not None and looks.callback(self, episode) is False:
                going = False
        if episodes:
            bar.note(f"episode {episodes[-1].episode}, return {episodes[-1].total:.6g}")
        return going

    def _look(self, looks: _Looks, before: int) -> None:
        """Evaluations and watched states, where they have become due since step `before`."""
        step, book, watch = self.num_timesteps, looks.book, looks.watch

        def due(every: int) -> bool:
            return step // every > before // every

        if looks.eval_every is not None and due(looks.eval_every):
            returns = self.evaluate(looks.eval_episodes)
            if book is not None:
                book.evaluation(step, returns)
        if watch is not None and book is not None and due(watch.every):
            z = self.return_distribution(watch.obs)
            book.distribution(step, z.reshape(-1, *z.shape[-2:]))

    def _place(self, fault: Fault) -> str:
        step = self.num_timesteps + 1 if fault.step is None else fault.step
        return f"{self.env_name}, seed {self.seed}, step {step}: {fault}"

    @abstractmethod
    def _advance(self, steps: int) -> list[Finished]:
        """Up to `steps` steps; a stepped run ends them where an episode ends."""

    @abstractmethod
    def _cut(self) -> list[Finished]:
        """Give up the episode under way, as truncated."""

    @abstractmethod
    def _episode_row(self, episode: Finished) -> tuple[Any, ...]:
        """A line of `episodes.csv`."""

    # --- acting --------------------------------------------------------------------------

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

        A separate environment and key: training is not disturbed, and equal seeds give equal
        episodes.
        """
        check_episodes(1, episodes=episodes)
        seed = self.seed + EVALUATION_SEEDS if seed is None else seed
        at_least(0, seed=seed)
        env, act, totals = self._evaluation_env(), self._actor(), np.zeros(episodes)
        masks = Masks(env)
        for episode in range(episodes):
            obs, info = env.reset(seed=seed + episode)
            for _ in self._clock():
                action = act(obs, masks.read(info))
                obs, reward, terminated, truncated, info = env.step(action)
                totals[episode] += float(reward)
                if terminated or truncated:
                    break
        return totals

    def first_observation(self, seed: int) -> Any:
        """What an episode begins with, after a reset with this seed."""
        at_least(0, seed=seed)
        known = self.env is None or self.env.spec is not None or self._eval_env is not None
        env = self._evaluation_env() if known or self.env_maker is not None else self.env
        assert env is not None
        return env.reset(seed=seed)[0]

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

    def _masks(self, rows: np.ndarray, given: Any) -> np.ndarray | None:
        """The legal actions `[B, A]` at observations, as the caller says; None: all of them."""
        return None if given is None else checked_masks(given, (len(rows), len(self.action_names)))

    def _draw_key(self) -> jax.Array:
        return jax.random.fold_in(self._tie_key, self._drawn)
