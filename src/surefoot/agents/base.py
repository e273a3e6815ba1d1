"""`Agent`: what every agent can do, in one place: learn, predict, decide, explain, save, resume.

Learning is here, acting in `decisions`, files in `saving`. A subclass says what differs: how a few
steps are made (`_advance`), what it knows of an observation (`_estimates`, `_decide`), and what its
run is made of (`_tree`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import jax

from surefoot.agents.decisions import Deciding
from surefoot.agents.saving import maker_of
from surefoot.core.markup import html_lines, html_table
from surefoot.envs.faults import Fault, FaultPolicy, TrainingEnv, fault_policy
from surefoot.envs.making import opened_env
from surefoot.errors import InputError, RunError, at_least, check_episodes, unknown
from surefoot.policies import SSD
from surefoot.runs.checkpoints import Checkpoints
from surefoot.runs.format import settings
from surefoot.runs.logs import Finished, RunLog, Watch
from surefoot.runs.progress import Bar, Mode
from surefoot.runs.progress import progress as show_progress
from surefoot.runs.session import Pace, Session
from surefoot.runs.tables import End

STRETCH = 500  # most steps between two looks at the clock, signals, logs

Callback = Callable[[Any, Finished], bool | None]
"""`callback(agent, episode)`, once for each finished episode; returning False stops `learn`."""


class _Looks(NamedTuple):
    """What `learn` does between two stretches of steps."""

    callback: Callback | None
    book: RunLog | None
    eval_every: int | None
    eval_episodes: int
    watch: Watch | None


class BlindLossWarning(UserWarning):
    """SSD would act on what the loss cannot learn."""


def blindness(config: Any) -> str:
    """Why SSD acts on nothing with this configuration; empty where it does not or can."""
    policies = (config.behaviour, config.evaluation)
    if not (config.blind and any(isinstance(policy, SSD) for policy in policies)):
        return ""
    return (
        f"loss {config.loss!r} cannot learn how dispersed random returns are, which is what SSD "
        f"acts on: the surer action will not be recognised. {config.seeing} can"
    )


class Agent(Deciding):
    """Learns return distributions in an environment and acts on them by any policy."""

    episode_columns: ClassVar[tuple[str, ...]]  # of `episodes.csv`

    def __init__(
        self,
        env: Any,
        config: Any = None,
        *,
        seed: int = 0,
        eval_env: Any = None,
        **options: Any,
    ) -> None:
        known = [field.name for field in dataclasses.fields(self.config_type)]
        for name in options:
            if name not in known:
                raise unknown(f"option of {type(self).__name__}", name, known)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise InputError(f"seed = {seed!r}: it must be a whole number from 0 to 2^32 - 1")
        self.config: Any = dataclasses.replace(config or self.config_type(), **options)
        blind = blindness(self.config)
        if blind:
            warnings.warn(blind, BlindLossWarning, stacklevel=3)
        self.seed = seed
        self.faults: list[str] = []  # what the run went on after
        self._eval_env = None if eval_env is None else opened_env(eval_env, "eval_env")
        self._tie_key, self._drawn = jax.random.key(seed), 0
        self._book: RunLog | None = None  # while learning
        self._logged: dict[str, End] | None = None  # where the logs ended at the checkpoint
        self._own_env, self._training_env = None, None

    def _open(self, env: Any) -> TrainingEnv:
        """The environment as training steps it."""
        return TrainingEnv(opened_env(env), self.seed, maker_of(env))

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

        Several environments (`n_envs`) are stepped together: the last round is made whole.

        `callback(agent, episode)` is called once for each finished episode (compiled runs: after
        each stretch of steps); returning False stops. `log` is a directory for CSV files (or a
        `RunLog` with more hooks): episodes, evaluations every `eval_every` steps, and the return
        distributions of `watch`. `checkpoints` keeps the whole run on disk, on Ctrl-C and
        SIGTERM too; `on_fault` says what to do about an environment that raises, hangs or gives
        no number.
        """
        at_least(0, total_timesteps=total_timesteps)
        total_timesteps += -total_timesteps % self._together
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
        step = self.num_timesteps
        last, pace, going = step + total, Pace(STRETCH), True
        while going and step < last:
            before = step
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
                step = self.num_timesteps
                continue
            step = self.num_timesteps
            bar.advance(step - before)
            seconds = pace.end(step - before)
            going = self._note(episodes, looks, bar)
            if looks.book is not None:  # after the episodes: a log's steps never go back
                looks.book.speed(step, step - before, seconds)
            self._look(looks, before, step)
            session.between()

    @property
    def _together(self) -> int:
        """Steps that are made at once."""
        return 1

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

    def _look(self, looks: _Looks, before: int, step: int) -> None:
        """Evaluations and watched states, where they have become due since step `before`."""
        book, watch = looks.book, looks.watch

        def due(every: int) -> bool:
            return step // every > before // every

        if looks.eval_every is not None and due(looks.eval_every):
            returns = self.evaluate(looks.eval_episodes)
            if book is not None:
                book.evaluation(step, returns)
        if watch is not None and book is not None and due(watch.every):
            known = self.estimates(watch.obs)
            if self.is_single(watch.obs):
                known = jax.tree.map(lambda part: part[None], known)
            book.distribution(step, *known)

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
