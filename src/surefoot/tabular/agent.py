"""`TabularAgent`: learn, predict, explain, save and load, in the manner SB3 users know."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.errors import InputError, RunError, unknown
from surefoot.explain import Explanation, explain
from surefoot.mdp import ACTION_NAMES, TabularEnv, TabularMDP, decode, encode, flatten_discrete
from surefoot.policies import Policy, policy_named, policy_text
from surefoot.progress import Mode, progress
from surefoot.saving import read_agent, write_agent
from surefoot.tabular.algorithm import (
    Memory,
    Table,
    Transition,
    behave,
    initial_table,
    update,
)
from surefoot.tabular.config import TabularConfig
from surefoot.tabular.training import COUNTS, Run, advance, raise_faults, start_runs

CHUNK = 500  # compiled steps between two looks of the host
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
        self.episodes: list[np.ndarray] = []
        self._open(env)
        key_run, key_table, self._key = jax.random.split(jax.random.key(seed), 3)
        if self.mdp is not None:
            self._run: Run = start_runs(self.config, self.mdp, CHUNK, key_run[None])
        else:
            assert self.env is not None
            sizes = self.env.num_states, self.env.num_actions
            self._table = initial_table(self.config, *sizes, key_table)

    def _open(self, env: TabularMDP | gymnasium.Env | str) -> None:
        self.mdp: TabularMDP | None = None
        self.env = None
        self.action_names: tuple[str, ...] = ()
        if isinstance(env, str):
            try:
                env = gymnasium.make(env)
            except gymnasium.error.Error as error:
                raise InputError(f"environment {env!r}: {error}") from None
        if isinstance(env, TabularMDP):
            self.mdp = env.to_jax()
        elif isinstance(env.unwrapped, TabularEnv):
            self.mdp = env.unwrapped.mdp.to_jax()
            if env.unwrapped.grid is not None:
                self.action_names = tuple(ACTION_NAMES)
        else:
            self.env = flatten_discrete(env)
        size = self.mdp.num_actions if self.mdp is not None else self.env.num_actions  # type: ignore[union-attr]
        self.action_names = self.action_names or tuple(str(a) for a in range(size))

    @property
    def table(self) -> Table:
        if self.mdp is None:
            return self._table
        return jax.tree.map(lambda x: x[0], self._run.table)

    @property
    def episode_returns(self) -> np.ndarray:
        """Return of each finished episode, in order."""
        return np.asarray([row[COUNTS.index("return")] for row in self.episodes])

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | None = None,
        *,
        progress: bool = False,
    ) -> TabularAgent:
        """Go on learning for this many steps; calls can follow each other."""
        if total_timesteps < 1:
            raise InputError(f"total_timesteps = {total_timesteps}: it must be at least one")
        mode: Mode = "auto" if progress else "silent"
        if self.mdp is not None:
            self._learn_compiled(total_timesteps, callback, mode)
        else:
            self._learn_stepped(total_timesteps, callback, mode)
        return self

    def _learn_compiled(self, total: int, callback: Callback | None, mode: Mode) -> None:
        done = 0
        with progress(total, "learning", unit="steps", mode=mode) as task:
            while done < total:
                steps = min(CHUNK, total - done)
                assert self.mdp is not None
                self._run = advance(self.config, self.mdp, None, steps, self._run)
                raise_faults(self._run, range(1))
                ended = int(self._run.episode[0])
                self.episodes += list(np.asarray(self._run.episodes[0, :ended]))
                zero = jnp.zeros_like(self._run.episode)
                self._run = self._run._replace(episode=zero)
                done += steps
                self.num_timesteps += steps
                task.advance(steps)
                if callback is not None and callback(self) is False:
                    return

    def _learn_stepped(self, total: int, callback: Callback | None, mode: Mode) -> None:
        assert self.env is not None
        env = self.env
        fresh = jax.jit(partial(_act, self.config))
        follow = jax.jit(partial(_follow, self.config), donate_argnums=(0,))
        tally = np.zeros(len(COUNTS), np.float32)
        self._key, key = jax.random.split(self._key)
        state, _ = env.reset(seed=self.seed if self.num_timesteps == 0 else None)
        action = fresh(self._table, state, key)
        clock = 0
        with progress(total, "learning", unit="steps", mode=mode) as task:
            for step in range(1, total + 1):
                obs, reward, terminated, truncated, _ = env.step(int(action))
                if not np.isfinite(reward):
                    raise RunError(
                        f"step {self.num_timesteps}, state {state}: reward {reward} is not finite"
                    )
                clock += 1
                over = terminated or truncated or clock >= self.config.horizon
                discount = self.config.gamma * (1.0 - terminated)
                tally[:3] += reward, 1, terminated
                start = env.reset()[0] if over else obs
                self._key, key = jax.random.split(self._key)
                seen = (state, action, reward, discount, obs, start, over)
                self._table, action = follow(self._table, *seen, key)
                self.num_timesteps += 1
                state = start
                if over:
                    self.episodes.append(tally.copy())
                    tally[:], clock = 0, 0
                if step % CHUNK == 0 or step == total:
                    task.advance(step - task.done)
                    if callback is not None and callback(self) is False:
                        return

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
        action = int(policy(self.table.z[index], key, self._mask(index), assume_sorted=True))
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

    def save(self, path: Any) -> None:
        """Everything the agent has learned and its settings, without pickle."""
        settings = dataclasses.asdict(self.config) | {
            name: value if isinstance(value, str) else policy_text(value)
            for name in ("behaviour", "target", "evaluation")
            for value in [getattr(self.config, name)]
        }
        about = {
            "config": settings,
            "seed": self.seed,
            "num_timesteps": self.num_timesteps,
            "action_names": self.action_names,
        }
        table = self.table
        arrays = {"z": table.z, "target_action": table.target_action, "visits": table.visits}
        arrays |= {f"memory.{name}": value for name, value in table.memory._asdict().items()}
        write_agent(path, "tabular", arrays, about)

    @classmethod
    def load(cls, path: Any, env: TabularMDP | gymnasium.Env | str) -> TabularAgent:
        """The agent as it was saved; learning goes on from its table in `env`."""
        arrays, about = read_agent(path, "tabular")
        agent = cls(env, TabularConfig(**about["config"]), seed=about["seed"])
        given = {name: jnp.asarray(value) for name, value in arrays.items()}
        try:
            memory = Memory(*(given[f"memory.{name}"] for name in Memory._fields))
            table = Table(given["z"], given["target_action"], memory, given["visits"])
        except KeyError as error:
            raise InputError(f"{path}: {error.args[0]} is missing") from None
        if jax.tree.map(jnp.shape, agent.table) != jax.tree.map(jnp.shape, table):
            raise InputError(f"{path}: its table does not fit the environment")
        agent.num_timesteps = about["num_timesteps"]
        if agent.mdp is None:
            agent._table = table
        else:
            agent._run = agent._run._replace(table=jax.tree.map(lambda x: x[None], table))
        return agent

    def _policy(self, which: str) -> Policy:
        return policy_named(getattr(self.config, which))

    def _state(self, obs: Any) -> int:
        index = np.asarray(obs) if np.ndim(obs) == 0 else np.asarray(self._encoded(obs))
        if index.shape != () or not np.issubdtype(index.dtype, np.integer):
            raise InputError(f"obs = {obs!r}: a state is one whole number")
        if not 0 <= int(index) < self.table.z.shape[0]:
            raise InputError(f"obs = {obs!r}: states are 0..{self.table.z.shape[0] - 1}")
        return int(index)

    def _encoded(self, obs: Any) -> Any:
        """A state in the environment's own words, such as Blackjack's tuple."""
        return obs if self.env is None else encode(self.env.env.observation_space, obs)

    def _mask(self, state: int) -> jax.Array | None:
        if self.mdp is None or self.mdp.mask is None:
            return None
        return jnp.asarray(self.mdp.mask)[state]


def _act(config: TabularConfig, table: Table, state: Any, key: jax.Array) -> jax.Array:
    return behave(config)(table.z[state], key, assume_sorted=True)


def _follow(
    config: TabularConfig,
    table: Table,
    state: Any,
    action: Any,
    reward: Any,
    discount: Any,
    obs: Any,
    start: Any,
    over: Any,
    key: jax.Array,
) -> tuple[Table, jax.Array]:
    """Learn from one transition and choose the next action, in one compiled call."""
    key_act, key_target = jax.random.split(key)
    taken = _act(config, table, obs, key_act) if config.on_policy else action
    seen = Transition(state, action, jnp.float32(reward), jnp.float32(discount), obs, taken)
    table = update(config, table, seen, None, key_target, jnp.asarray(True))
    action = _act(config, table, start, key_act)
    if config.on_policy:
        action = jnp.where(over, action, taken)
    return table, action
