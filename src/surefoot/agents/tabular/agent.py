"""`TabularAgent`: return distributions for every state and action of a finite environment.

agent = TabularAgent("surefoot/RiskyCliff-v0", behaviour="ssd:0.0005", seed=0)
agent.learn(50_000, progress=True)
print(agent.explain(24))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.base import Agent
from surefoot.agents.saving import LAYOUT, AgentFile
from surefoot.agents.tabular.algorithm import Table, behaviour
from surefoot.agents.tabular.compiled_loop import CompiledTable
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.loop import COUNTS, Ended, SteppedTable
from surefoot.agents.tabular.outcomes import MOST, at
from surefoot.agents.tabular.stored import (
    as_now,
    check_table,
    digest,
    stored_mask,
    with_target_actions,
)
from surefoot.envs import (
    ACTION_NAMES,
    CliffWalkEnv,
    RiskTaskEnv,
    RiskyCliffEnv,
    TabularEnv,
    TabularMDP,
    decode,
    encode,
)
from surefoot.envs.discrete import space_size
from surefoot.envs.faults import Fault
from surefoot.envs.making import added_wrappers, time_limit
from surefoot.errors import InputError, must_fit
from surefoot.policies import Decision, Policy, decide_rows, policy_named
from surefoot.runs.format import count, from_named, named
from surefoot.runs.logs import Finished

ARRAYS = (TabularEnv, CliffWalkEnv, RiskyCliffEnv, RiskTaskEnv)  # nothing but their arrays


class TabularAgent(Agent):
    """Return distributions for every state and action of a finite environment.

    `env` is a `TabularMDP` or one of surefoot's own environments (whole runs compiled), or any
    Gymnasium environment with discrete spaces, or its name (stepped through its own API). Further
    arguments are those of `TabularConfig`, such as `loss="qr"`, `behaviour="cvar:0.25"`.
    """

    kind = "tabular"
    config_type = TabularConfig
    episode_columns = ("step", "episode", "return", "length", *COUNTS[2:])

    def __init__(
        self,
        env: TabularMDP | gym.Env[Any, Any] | str,
        config: TabularConfig | None = None,
        *,
        seed: int = 0,
        eval_env: str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(env, config, seed=seed, eval_env=eval_env, **options)
        self._episodes = np.zeros((0, len(COUNTS)), np.float32)  # rows, and room for more
        self._number = 0  # of them that count
        self._read: tuple[int, np.ndarray, Any] | None = None  # as of a step, on the host
        self.mdp: TabularMDP | None = None
        key_run, key_table, _ = jax.random.split(jax.random.key(seed), 3)
        if isinstance(env, TabularMDP):
            self.mdp = env.to_jax()
        else:
            opened = self._open(env)
            inner = opened.env.unwrapped
            plain = type(inner) in ARRAYS and not added_wrappers(opened.env)
            if isinstance(inner, TabularEnv) and plain:
                self.mdp, self._own_env = inner.mdp.to_jax(), opened.env
            else:  # what is around it, or made of it, has its own way to step
                self._training_env = opened
        self._check_eval_env()
        states = space_size(self.observation_space, "observation_space")
        actions = space_size(self.action_space, "action_space")
        each = self.config.particles + 4 * self.config.pooled + 6 * MOST * self.config.by_evidence
        must_fit(states * actions * each, f"a table of {states:,} states x {actions:,} actions")
        self._learner: CompiledTable | SteppedTable
        if self.mdp is not None:
            limit = None if self._own_env is None else time_limit(self._own_env)
            horizon = min(self.config.horizon, limit or self.config.horizon)
            within = dataclasses.replace(self.config, horizon=horizon)
            self._learner = CompiledTable(within, self.mdp, key_run)
        else:
            assert self._training_env is not None
            self._learner = SteppedTable(self.config, self._training_env, key_table)

    # --- what it is --------------------------------------------------------------------

    @property
    def table(self) -> Table:
        """What was learned: particles `z[S, A, N]`, target actions, remembered transitions."""
        return self._learner.table

    @property
    def num_timesteps(self) -> int:
        return self._learner.steps

    @property
    def at_boundary(self) -> bool:
        return self._learner.at_boundary

    @property
    def episodes(self) -> np.ndarray:
        """One row of `COUNTS` for each finished episode; not to be written to."""
        rows = self._episodes[: self._number]
        rows.setflags(write=False)
        return rows

    @property
    def episode_returns(self) -> np.ndarray:
        """Return of each finished episode, in order."""
        return self.episodes[:, COUNTS.index("return")].copy()

    @property
    def observation_space(self) -> gym.Space[Any]:
        if self.env is not None:
            return self.env.observation_space
        assert self.mdp is not None
        return gym.spaces.Discrete(self.mdp.num_states)

    @property
    def action_space(self) -> gym.Space[Any]:
        if self.env is not None:
            return self.env.action_space
        assert self.mdp is not None
        return gym.spaces.Discrete(self.mdp.num_actions)

    @property
    def action_names(self) -> tuple[str, ...]:
        inner = None if self.env is None else self.env.unwrapped
        grid = isinstance(inner, TabularEnv) and inner.grid is not None
        return tuple(ACTION_NAMES) if grid else super().action_names

    # --- learning ------------------------------------------------------------------------

    def _advance(self, steps: int) -> list[Finished]:
        try:
            return self._finished(self._learner.advance(steps))
        except Fault as fault:
            fault.ended = self._finished(fault.ended)
            raise

    def _cut(self) -> list[Finished]:
        assert isinstance(self._learner, SteppedTable)  # a compiled run has no faults to pass over
        return self._finished(self._learner.cut())

    def _finished(self, ended: list[Ended]) -> list[Finished]:
        """Keep the counts of finished episodes, in an array that grows by doubling."""
        first, self._number = self._number, self._number + len(ended)
        if self._number > len(self._episodes):
            room = np.zeros((max(64, 2 * self._number), len(COUNTS)), np.float32)
            room[:first] = self._episodes[:first]
            self._episodes = room
        out = []
        for i, (step, counts) in enumerate(ended, first):
            self._episodes[i] = counts
            out.append(Finished(step, i, float(counts[0]), int(counts[1])))
        return out

    def _episode_row(self, episode: Finished) -> tuple[Any, ...]:
        return *episode[:4], *map(int, self._episodes[episode.episode, 2:])

    # --- acting --------------------------------------------------------------------------

    def own_actions(self, actions: Any) -> Any:
        own = [decode(self.action_space, int(action)) for action in np.ravel(actions)]
        if np.ndim(actions) == 0:
            return int(own[0]) if np.ndim(own[0]) == 0 else own[0]
        made = np.asarray(own)
        return made.reshape(np.shape(actions) + made.shape[1:])

    def _rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        single = np.ndim(obs) == 0 or isinstance(obs, tuple | dict)
        single = single or self.observation_space.contains(obs)
        states = [self._state(one) for one in ([obs] if single else obs)]
        return np.asarray(states, np.int32), bool(single)

    def _state(self, obs: Any) -> int:
        """The number of an observation of the environment, such as Blackjack's tuple or a state
        of a space that counts from 1; a number may stand for any other state."""
        own = obs.item() if np.ndim(obs) == 0 and hasattr(obs, "item") else obs
        space, size = self.observation_space, self._z.shape[0]
        known = np.ndim(own) > 0 or isinstance(own, dict) or space.contains(own)
        index = np.asarray(encode(space, own) if known else own)
        if index.shape != () or not np.issubdtype(index.dtype, np.integer):
            raise InputError(f"obs = {obs!r}: a state is one whole number")
        if not 0 <= int(index) < size:
            raise InputError(f"obs = {obs!r}: states are 0..{size - 1}")
        return int(index)

    @property
    def _z(self) -> np.ndarray:
        """Particles `[S, A, N]` on the host, brought there once."""
        if self._read is None or self._read[0] != self.num_timesteps:
            z, known = jax.tree.map(np.asarray, self._learner.known)
            self._read = self.num_timesteps, z, known
        return self._read[1]

    def _estimates(self, rows: np.ndarray) -> tuple[np.ndarray, Any]:
        z = self._z[rows]
        assert self._read is not None
        return z, at(self._read[2], rows)

    def _masks(self, rows: np.ndarray, masks: Any = None) -> np.ndarray:
        """As the caller says, else as the process says, or as far as the environment has shown."""
        own = known_masks(self)
        masks = super()._masks(rows, masks)
        if masks is None:
            masks = np.ones((len(rows), self._z.shape[1]), bool)
            return masks if own is None else own[rows]
        return masks

    @property
    def _shown_masks(self) -> np.ndarray | None:
        return self._learner.mask if isinstance(self._learner, SteppedTable) else None

    def _decide(self, rows: np.ndarray, deterministic: bool, masks: Any) -> Decision:
        policy = policy_named(self.config.evaluation) if deterministic else behaviour(self.config)
        key = self._tie_key if deterministic else self._draw_key()
        # The same answer every time for a state; another draw for each row where it explores.
        each = rows if deterministic else np.arange(len(rows), dtype=np.int32)
        return _decided(policy, *self._estimates(rows), key, each, masks)

    def _ties(self, row: Any) -> jax.Array:
        return jax.random.fold_in(self._tie_key, int(row))

    def _actor(self) -> Callable[[Any, Any], Any]:
        states = np.arange(len(self._z), dtype=np.int32)
        masks = self._masks(states)
        actions = np.asarray(self._decide(states, True, masks).action)

        def act(obs: Any, mask: Any) -> Any:
            state = self._state(obs)
            if mask is not None and not np.array_equal(mask, masks[state]):  # new in evaluation
                return self.predict(obs, action_masks=mask)
            return self.own_actions(actions[state])

        return act

    def _clock(self) -> Any:
        return range(self.config.horizon)

    def _evaluation_env(self) -> gym.Env[Any, Any]:
        if self._eval_env is None and self.env is None:
            self._eval_env = TabularEnv(jax.tree.map(np.asarray, self.mdp))
        return super()._evaluation_env()

    # --- files ---------------------------------------------------------------------------

    def _about(self) -> dict[str, Any]:
        number = self._learner.number if isinstance(self._learner, SteppedTable) else 0
        masked = self._shown_masks is not None
        return super()._about() | {
            "number": number, "process": digest(self.mdp), "masked": masked
        }  # fmt: skip

    def _learned(self) -> dict[str, Any]:
        mask = self._shown_masks
        return named(self.table, "table") | ({} if mask is None else {"mask": mask})

    def _tree(self) -> Any:
        return self._learner.tree()

    def _more_arrays(self) -> dict[str, np.ndarray]:
        return {"episodes": self.episodes.copy()}

    @classmethod
    def from_file(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        file = as_now(file, options)
        path, arrays, about = file
        agent = cls._built(file, env, options, "table")
        steps = count(about, "num_timesteps", path)
        table: Table = jax.tree.map(jnp.array, from_named(agent.table, arrays, "table", path))
        if about.get("layout") != LAYOUT:
            mask = None if agent.mdp is None else agent.mdp.mask
            table = with_target_actions(agent.config, table, mask, agent.seed)
        if isinstance(agent._learner, SteppedTable):
            # An episode of its own, not the first one over again.
            agent._learner.start_from(table, steps, count(about, "number", path) + 1)
            if about.get("masked"):
                agent._learner.know_masks(stored_mask(arrays.get("mask"), table, path))
        else:
            agent._learner.start_from(table, steps)
        return agent

    @classmethod
    def _restored(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        path, arrays, about = file
        agent = cls._built(file, env, options, "run.table")
        if about.get("process") != digest(agent.mdp):
            raise InputError(f"{path}: was taken in another process than env")
        if about.get("masked") and isinstance(agent._learner, SteppedTable):
            agent._learner.know_masks()
        tree = from_named(agent._learner.tree(), arrays, "run", path)
        agent._learner.restore(tree, count(about, "num_timesteps", path))
        rows = arrays.get("episodes", np.zeros(0))
        if rows.shape[1:] != (len(COUNTS),) or rows.dtype != np.float32:
            raise InputError(f"{path}: its episodes are not a table of {len(COUNTS)} columns")
        agent._episodes, agent._number = rows.copy(), len(rows)
        return agent

    @classmethod
    def _built(cls, file: AgentFile, env: Any, options: dict[str, Any], prefix: str) -> Self:
        """A new agent with the settings of a file, whose table has the size the file's has."""
        eval_env = options.pop("eval_env", None)
        config, seed = cls._settings(file, options)
        check_table(file, config, prefix)  # before anything is allocated for it
        remake = None
        if not isinstance(env, TabularMDP):
            env, remake = cls._env_of(file, env)
        agent = cls(env, config, seed=seed, eval_env=eval_env)
        if agent._training_env is not None:
            agent._training_env.remake = remake
        return agent

    def _begin_again(self) -> bool:
        assert isinstance(self._learner, SteppedTable)
        return self._learner.begin_again()


def known_masks(agent: TabularAgent) -> np.ndarray | None:
    """The legal actions `[S, A]`, as the process says or as far as the environment has shown."""
    own = agent._shown_masks if agent.mdp is None else agent.mdp.mask
    return None if own is None else np.asarray(own, bool)


@partial(jax.jit, static_argnums=0)
def _decided(policy: Policy, z: Any, n: Any, key: Any, each: Any, masks: Any) -> Decision:
    """Decisions for particles `[B, A, N]`; the ties of row b are drawn by `each[b]`."""
    keys = jax.vmap(partial(jax.random.fold_in, key))(each)
    return decide_rows(policy, z, keys, masks, n)
