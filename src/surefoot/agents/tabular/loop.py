"""Where a table learns in an environment that is stepped through Gymnasium's API.

Lines 5 to 10 of Algorithm 1 are one compiled call, shared with the runs of `compiled_loop`.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.algorithm import (
    Table,
    Transition,
    act,
    evidence,
    initial_table,
    learn_and_act,
    target_actions,
)
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.outcomes import at
from surefoot.core.evidence import Known
from surefoot.envs.discrete import decode, encode, space_size
from surefoot.envs.faults import Fault, TrainingEnv, fault_from
from surefoot.envs.masks import Masks
from surefoot.errors import InputError
from surefoot.policies import DecidedBy, Decision

COUNTS = (
    "return",
    "steps",
    "terminated",
    "ties",
    "ties_by_dominance",
    *(f"by_{who.name.lower()}" for who in DecidedBy),
)
SPOILT = "the reward or the estimate made from it is not finite"
Ended = tuple[int, np.ndarray]
"""A finished episode: the step of the run at which it ended, and its counts `[F]`."""


def reasons(decision: Decision) -> jax.Array:
    """Ties, ties that dominance broke, and who decided, as numbers that can be added up."""
    tie = decision.multiple_solutions
    dominance = decision.decided_by == DecidedBy.DOMINANCE
    who = jnp.arange(len(DecidedBy)) == decision.decided_by
    return jnp.concatenate([jnp.stack([tie, tie & dominance]), who]).astype(jnp.float32)


class SteppedTable:
    """One run in an environment that is stepped through Gymnasium's API."""

    def __init__(self, config: TabularConfig, env: TrainingEnv, key: jax.Array) -> None:
        self.config, self.env = config, env
        seen, done = env.env.observation_space, env.env.action_space
        sizes = space_size(seen, "observation_space"), space_size(done, "action_space")
        key_table, self.key = jax.random.split(key)
        self.table = _initial(config, *sizes, key_table)
        self.mask: np.ndarray | None = None  # [S, A] as far as it was shown, where there are masks
        self._mask: jax.Array | None = None  # the same where it is computed with
        self.steps = 0
        self.begin(0)

    def begin(self, number: int) -> None:
        """Be before the start of an episode."""
        self.begun, self.number, self.clock = False, number, 0
        self.state, self.record = 0, np.zeros(len(COUNTS) - 1, np.int32)  # see `_record`
        self.tally = np.zeros(len(COUNTS), np.float32)

    @property
    def at_boundary(self) -> bool:
        """Whether the run is between two episodes, where it can be taken up again."""
        return self.clock == 0

    def start_from(self, table: Table, steps: int, number: int) -> None:
        self.table, self.steps = table, steps
        self.key = jax.random.fold_in(self.key, steps)
        self.begin(number)

    @property
    def known(self) -> tuple[jax.Array, Known | jax.Array]:
        """Particles `[S, A, N]`, and what their means rest on."""
        return self.table.z, evidence(self.config, self.table)

    def know_masks(self, mask: np.ndarray | None = None) -> None:
        """The environment has masks: every action of a state is legal until it shows otherwise."""
        shape = self.table.visits.shape
        self.mask = np.ones(shape, bool) if mask is None else mask.reshape(shape).astype(bool)
        self._mask = jnp.array(self.mask)

    def _note_mask(self, state: int, info: dict[str, Any]) -> None:
        mask = Masks(self.env.env).read(info)
        if mask is None:
            if self.mask is not None:
                raise InputError("info has no action_mask, which it had before")
            return
        if self.mask is None:
            self.know_masks()
        assert self.mask is not None
        if not np.array_equal(self.mask[state], mask):
            self.mask[state] = mask
            self._mask = jnp.array(self.mask)

    def advance(self, steps: int) -> list[Ended]:
        """Up to that many steps, fewer if the episode ends.

        A step that fails raises `Fault` and changes nothing that was learned.
        """
        first, learn = _stepped(self.config)
        env, seen = self.env, self.env.env.observation_space
        taken = self.env.env.action_space
        if not self.begun:
            self.state = self._start(self.number, seen)
            self.key, record = first(self.table, self.state, self.key, self._mask)
            self.record, self.begun = np.asarray(record), True
        for _ in range(steps):
            action = int(self.record[0])
            try:
                obs, reward, terminated, truncated, info = env.step(decode(taken, action))
                if not np.isfinite(reward):
                    raise Fault(f"state {self.state}, the environment returned the reward {reward}")
                obs_t = encode(seen, obs)
                over = terminated or truncated or self.clock + 1 >= self.config.horizon
                if not terminated and (self.mask is not None or "action_mask" in info):
                    self._note_mask(obs_t, info)
                start = self._start(self.number + 1, seen) if over else obs_t
            except Exception as error:
                raise fault_from(error) from error
            discount = self.config.gamma * (1.0 - terminated)
            places = np.array((self.state, action, obs_t, start, over), np.int32)
            reasons = self.record[1:-1]
            self.table, self.key, record = learn(
                self.table,
                self.key,
                places,
                np.array((reward, discount), np.float32),
                self._mask,
            )
            self.record = np.asarray(record)
            self.steps, self.clock, self.state = self.steps + 1, self.clock + 1, start
            self.tally[:3] += reward, 1, terminated
            self.tally[3:] += reasons
            if not self.record[-1]:
                text = f"in state {int(places[0])} {SPOILT}"
                raise Fault(text, lasting=True, step=self.steps)
            if over:  # the next episode has its first state and action already
                ended, self.tally = self.tally, np.zeros_like(self.tally)
                self.clock, self.number = 0, self.number + 1
                return [(self.steps, ended)]
        return []

    def cut(self) -> list[Ended]:
        """Give up the episode under way."""
        ended = [(self.steps, self.tally)] if self.clock > 0 else []
        self.begin(self.number + 1)
        return ended

    def begin_again(self) -> bool:
        """Start the pending episode in the environment; whether it shows what it showed before."""
        seen = self.env.env.observation_space
        return not self.begun or self._start(self.number, seen) == self.state

    def _start(self, number: int, seen: gym.Space[Any]) -> int:
        try:
            obs, info = self.env.reset(number)
            state = encode(seen, obs)
            self._note_mask(state, info)
            return state
        except Exception as error:
            raise fault_from(error) from error

    def tree(self) -> Any:
        """All the run is made of, but for the environment."""
        return {
            "table": self.table,
            "key": jax.random.key_data(self.key),
            "record": self.record,
            "state": np.int64(self.state),
            "begun": np.bool_(self.begun),
            "number": np.int64(self.number),
            "clock": np.int64(self.clock),
            "tally": self.tally,
            **({} if self.mask is None else {"mask": self.mask}),
        }

    def restore(self, tree: Any, steps: int) -> None:
        self.table, self.steps = jax.tree.map(jnp.array, tree["table"]), steps
        self.key = jax.random.wrap_key_data(jnp.array(tree["key"]))
        self.begin(int(tree["number"]))
        self.begun, self.state = bool(tree["begun"]), int(tree["state"])
        self.record, self.tally = np.array(tree["record"]), np.array(tree["tally"])
        self.clock = int(tree["clock"])
        if "mask" in tree:
            self.know_masks(tree["mask"])


_initial = jax.jit(initial_table, static_argnums=(0, 1, 2))  # one program, not a hundred


@lru_cache(maxsize=32)
def _stepped(config: TabularConfig) -> tuple[Any, Any]:
    """The first action of a run, and everything a step does, compiled."""
    return jax.jit(partial(_first, config)), jax.jit(partial(_learn, config), donate_argnums=0)


def _first(
    config: TabularConfig, table: Table, state: Any, key: jax.Array, mask: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    key, key_act = jax.random.split(key)
    return key, _record(act(config, table, state, mask, key_act), True)


def _learn(
    config: TabularConfig,
    table: Table,
    key: jax.Array,
    places: jax.Array,
    numbers: jax.Array,
    mask: jax.Array | None,
) -> tuple[Table, jax.Array, jax.Array]:
    """Learn from one transition and choose the next action; one record is read back."""
    state, action, obs_t, start, over = places
    key, *keys = jax.random.split(key, 3)
    seen = Transition(state, action, numbers[0], numbers[1], obs_t, action)
    if mask is not None:  # a* of obs_t dates from before its mask was known, maybe
        known = at(evidence(config, table), obs_t[None])
        best = target_actions(config, table.z[obs_t][None], known, keys[1], mask[obs_t][None])[0]
        old = table.target_action[obs_t]
        best = jnp.where(mask[obs_t, old], old, best)
        table = table._replace(target_action=table.target_action.at[obs_t].set(best))
    table, decision = learn_and_act(
        config, table, seen, start, over > 0, mask, (keys[0], keys[1]), jnp.asarray(True)
    )
    return table, key, _record(decision, jnp.all(jnp.isfinite(table.z[state, action])))


def _record(decision: Decision, finite: Any) -> jax.Array:
    """The action, who decided, and whether what was learned is a number."""
    parts = decision.action[None], reasons(decision), jnp.asarray(finite)[None]
    return jnp.concatenate([part.astype(jnp.int32) for part in parts])
