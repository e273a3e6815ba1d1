"""`TabularAgent`: learn, predict, explain, save and load, in the manner SB3 users know."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.explain import Explanation, explain
from surefoot.agents.tabular import files
from surefoot.agents.tabular.algorithm import Table, behave, initial_table
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.episodes import Episodes
from surefoot.agents.tabular.stepping import Walk, walk
from surefoot.agents.tabular.training import COUNTS, Run, advance, start_runs
from surefoot.envs import ACTION_NAMES, TabularEnv, TabularMDP, decode, encode, flatten_discrete
from surefoot.envs.faults import Fault, FaultPolicy, Stage, env_about, fault_policy
from surefoot.errors import InputError, RunError, unknown
from surefoot.policies import Policy, policy_named
from surefoot.runs.checkpoints import Checkpoints, Snapshot
from surefoot.runs.logs import RunLog
from surefoot.runs.progress import Mode
from surefoot.runs.progress import progress as show_progress
from surefoot.runs.session import Pace, Session

CHUNK = 500  # steps between two looks of the host
Callback = Callable[["TabularAgent"], bool | None]  # return False to stop


class TabularAgent:
    """Return distributions for every state and action of a finite environment.

    `env` is a `TabularMDP` or one of surefoot's own environments (whole runs compiled), or any
    Gymnasium environment with discrete spaces, or its name (stepped through its own API).
    Further arguments are those of `TabularConfig`, such as `loss="qr"`, `behaviour="cvar:0.25"`.
    """

    def __init__(
        self,
        env: TabularMDP | gymnasium.Env | str,
        config: TabularConfig | None = None,
        *,
        seed: int = 0,
        **options: Any,
    ) -> None:
        known = [f.name for f in dataclasses.fields(TabularConfig)]
        for name in options:
            if name not in known:
                raise unknown("option of TabularAgent", name, known)
        self.config = dataclasses.replace(config or TabularConfig(), **options)
        self.seed = seed
        self.num_timesteps = 0
        self.faults: list[str] = []  # what the run went on after
        self._episodes = Episodes(len(COUNTS))
        self._ended = 0  # step at which the last finished episode ended
        self._book: RunLog | None = None  # while learning
        self._logged: dict[str, int] | None = None  # how long the logs were at the checkpoint
        self._open(env)
        key_run, key_table, self._key = jax.random.split(jax.random.key(seed), 3)
        if self.mdp is not None:
            self._run: Run = start_runs(self.config, self.mdp, CHUNK, key_run[None])
        else:
            assert self.env is not None
            sizes = self.env.num_states, self.env.num_actions
            self._table = initial_table(self.config, *sizes, key_table)
            self._walk = Walk.fresh()

    def _open(self, given: TabularMDP | gymnasium.Env | str) -> None:
        self.mdp: TabularMDP | None = None
        self._stage: Stage | None = None
        self._process: str | None = None  # a digest of `mdp`, once it is needed
        self.action_names: tuple[str, ...] = ()
        env = _made(given)
        self._env_about = None if isinstance(env, TabularMDP) else env_about(env)
        if isinstance(env, TabularMDP):
            self.mdp = env.to_jax()
        elif isinstance(env.unwrapped, TabularEnv):
            self.mdp = env.unwrapped.mdp.to_jax()
            if env.unwrapped.grid is not None:
                self.action_names = tuple(ACTION_NAMES)
        else:
            remake = partial(_remade, given) if isinstance(given, str) else None
            self._stage = Stage(flatten_discrete(env), self.seed, remake)
        size = self.mdp.num_actions if self.mdp is not None else self.env.num_actions
        self.action_names = self.action_names or tuple(str(a) for a in range(size))

    @property
    def env(self) -> Any:
        """The Gymnasium environment that is stepped; None where the run is compiled."""
        return None if self._stage is None else self._stage.env

    @property
    def table(self) -> Table:
        if self.mdp is None:
            return self._table
        return jax.tree.map(lambda x: x[0], self._run.table)

    @property
    def episodes(self) -> np.ndarray:
        """One row of `COUNTS` for each finished episode."""
        return self._episodes.rows

    @property
    def episode_returns(self) -> np.ndarray:
        """Return of each finished episode, in order."""
        return self.episodes[:, COUNTS.index("return")].copy()

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | None = None,
        *,
        progress: bool = False,
        log: str | Path | None = None,
        checkpoints: Checkpoints | None = None,
        on_fault: str | FaultPolicy = "stop",
    ) -> TabularAgent:
        """Go on learning for this many steps; two calls equal one long one.

        `log` is a directory for `episodes.csv`; `checkpoints` keeps the whole run on disk, on
        Ctrl-C and SIGTERM too; `on_fault` says what to do about an environment that raises,
        hangs or gives no number.
        """
        if total_timesteps < 1:
            raise InputError(f"total_timesteps = {total_timesteps}: it must be at least one")
        mode: Mode = "auto" if progress else "silent"
        policy, session = fault_policy(on_fault), Session(self, checkpoints)
        book = None if log is None else RunLog(log, tables=files.log_tables(self))
        if book is not None and self._logged is not None:
            book.rewind(self._logged)
        self._book, self._logged = book, None
        try:
            with show_progress(total_timesteps, "learning", "steps", mode=mode) as task, session:
                self._learn(total_timesteps, callback, task, session, policy)
        except Fault as fault:
            raise RunError(str(fault), partial=self) from fault.__cause__
        finally:
            self._book = None
            if book is not None:
                book.close()
        return self

    def _learn(
        self,
        total: int,
        callback: Callback | None,
        task: Any,
        session: Session,
        policy: FaultPolicy,
    ) -> None:
        last, keeper, pace = self.num_timesteps + total, session.checkpoints, Pace(CHUNK)
        while self.num_timesteps < last:
            before = self.num_timesteps
            steps = min(CHUNK, last - before)
            if self.mdp is not None:
                # Equal lengths, whatever the remainder: each length is a compilation.
                self._advance(min(steps, keeper.every) if keeper is not None else steps)
            else:
                if keeper is not None:
                    steps = min(steps, keeper.every - before % keeper.every)
                walk(self, min(steps, pace.begin()), session, policy)
                pace.end(self.num_timesteps - before)
            task.advance(self.num_timesteps - before)
            stop = callback is not None and callback(self) is False
            session.between()
            if stop:
                return

    def _advance(self, steps: int) -> None:
        """A chunk of compiled steps, and the episodes that ended in it."""
        assert self.mdp is not None
        before = int(self._run.steps[0])
        self._run = advance(self.config, self.mdp, None, steps, self._run)
        done = int(self._run.episode[0])
        self._finished(np.array(self._run.episodes[0, :done]))
        self._run = self._run._replace(episode=jnp.zeros_like(self._run.episode))
        fault = int(self._run.fault[0])
        self.num_timesteps += steps if fault < 0 else fault - before
        if fault >= 0:
            name = self._env_about["id"] if self._env_about else "TabularMDP"
            raise Fault(
                f"{name}, seed {self.seed}, step {self.num_timesteps + 1}, state "
                f"{int(self._run.state[0])}: the reward or the estimate made from it is not finite",
                lasting=True,
            )

    def _finished(self, rows: np.ndarray) -> None:
        """Note finished episodes `[E, F]`."""
        if len(rows) and self._book is not None:
            self._book.rows("episodes", files.log_rows(self, rows))
        self._episodes.extend(rows)
        self._ended += int(rows[:, COUNTS.index("steps")].sum())

    def return_distribution(self, obs: Any) -> np.ndarray:
        """Particles `[A, N]`, ascending, of a state."""
        return np.asarray(self.table.z[self._state(obs)])

    def predict(self, obs: Any, *, deterministic: bool = True) -> Any:
        """The evaluation policy's action, as the environment takes it: an int as a rule.

        Ties are broken by a key of the seed and the state: the same answer every time. With
        `deterministic=False` the behaviour policy acts, exploration included.
        """
        index = self._state(obs)
        if deterministic:
            policy = self._policy("evaluation")
            key = jax.random.fold_in(jax.random.key(self.seed), index)
        else:
            policy = behave(self.config)
            self._key, key = jax.random.split(self._key)
        action = int(_choose(policy, self.table.z, index, key, self._mask(index)))
        if self.env is None:
            return action
        own = decode(self.env.env.action_space, action)
        return int(own) if np.ndim(own) == 0 else own

    def explain(self, obs: Any) -> Explanation:
        """Who decided in a state, and by how much."""
        index = self._state(obs)
        key = jax.random.fold_in(jax.random.key(self.seed), index)
        z, policy = self.table.z[index], self._policy("evaluation")
        return explain(z, policy, key, mask=self._mask(index), names=self.action_names)

    # --- files ---------------------------------------------------------------------------

    @property
    def at_boundary(self) -> bool:
        """Whether the run can be taken up again from where it is."""
        if self._stage is None or not self._stage.reseeds:
            return True
        return not self._walk.begun or self._walk.clock == 0

    def snapshot(self, *, cut: bool = False) -> Snapshot:
        """Everything the run is made of, in memory of its own; `Checkpoints` writes it."""
        return files.snapshot(self, cut)

    def save(self, path: str | Path) -> None:
        """Everything the agent has learned and its settings, without pickle."""
        files.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: TabularMDP | gymnasium.Env | str | None = None,
        **options: Any,
    ) -> TabularAgent:
        """The agent as it was saved; learning goes on from its table in a new episode.

        `env` is needed where it had no registered name; `options` replace settings.
        """
        return files.load(cls, path, env, options)

    @classmethod
    def resume(
        cls,
        place: str | Path,
        env: TabularMDP | gymnasium.Env | str | None = None,
        **options: Any,
    ) -> TabularAgent:
        """The run of a checkpoint, or of a directory's newest one, exactly where it was.

        `resume(...).learn(n)` equals, bit for bit, `n` more steps of the run that was cut off.
        """
        return files.resume(cls, place, env, options)

    # --- within --------------------------------------------------------------------------

    def _policy(self, which: str) -> Policy:
        return policy_named(getattr(self.config, which))

    def _state(self, obs: Any) -> int:
        index = np.asarray(self._encoded(obs))
        if index.shape != () or not np.issubdtype(index.dtype, np.integer):
            raise InputError(f"obs = {obs!r}: a state is one whole number")
        if not 0 <= int(index) < self.table.z.shape[0]:
            raise InputError(f"obs = {obs!r}: states are 0..{self.table.z.shape[0] - 1}")
        return int(index)

    def _encoded(self, obs: Any) -> Any:
        """The number of a state that is told in the environment's own words, such as Blackjack's
        tuple or a space that counts from 1; a number may stand for any other state."""
        if self.env is None:
            return obs
        space = self.env.env.observation_space
        known = np.ndim(obs) > 0 or space.contains(obs)
        return encode(space, obs) if known else obs

    def _mask(self, state: int) -> jax.Array | None:
        if self.mdp is None or self.mdp.mask is None:
            return None
        return jnp.asarray(self.mdp.mask)[state]


def _made(env: TabularMDP | gymnasium.Env | str) -> TabularMDP | gymnasium.Env:
    if not isinstance(env, str):
        return env
    try:
        return gymnasium.make(env)
    except gymnasium.error.Error as error:
        raise InputError(f"environment {env!r}: {error}") from None


def _remade(env: str) -> Any:
    return flatten_discrete(gymnasium.make(env))


@partial(jax.jit, static_argnums=0)
def _choose(policy: Policy, z: jax.Array, state: Any, key: jax.Array, mask: Any) -> jax.Array:
    return policy(z[state], key, mask, assume_sorted=True)
