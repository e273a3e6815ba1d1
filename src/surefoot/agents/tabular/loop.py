"""Where a table learns: many trials in one compiled batch, one compiled run, one stepped run.

A trial has a key of its own, made from the seed and its number; nothing is shared between trials
but the program, so a trial gives the same bits alone and in any batch. Between chunks of steps
the host looks in: progress moves, interrupts are honoured, faults stop the run by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

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
from surefoot.envs.finite import TabularMDP, reset
from surefoot.envs.finite import step as mdp_step
from surefoot.envs.masks import Masks
from surefoot.errors import InputError, RunError
from surefoot.policies import DecidedBy, Decision
from surefoot.runs.progress import Mode, progress

Measure = Callable[[Transition], jax.Array]  # what else to count per episode: [F] floats

COUNTS = (
    "return",
    "steps",
    "terminated",
    "ties",
    "ties_by_dominance",
    *(f"by_{who.name.lower()}" for who in DecidedBy),
)
CHUNK = 500  # most steps, and so most episodes, between two looks of the host
SPOILT = "the reward or the estimate made from it is not finite"
Ended = tuple[int, np.ndarray]
"""A finished episode: the step of the run at which it ended, and its counts `[F]`."""


class TrialState(NamedTuple):
    """Everything one trial is made of; `[T, ...]` in a batch."""

    table: Table
    state: jax.Array
    action: jax.Array  # chosen for `state`, with its reasons
    reasons: jax.Array  # [R]
    key: jax.Array
    clock: jax.Array  # steps in this episode
    steps: jax.Array  # steps in all
    episode: jax.Array
    tally: jax.Array  # [F] counts of the episode under way
    episodes: jax.Array  # [E, F] counts of the episodes done
    fault: jax.Array  # step of the first reward or particle that is not finite, or -1


# --- compiled ----------------------------------------------------------------------------


@partial(jax.jit, static_argnums=(0, 2, 4))
def start_runs(
    config: TabularConfig, mdp: TabularMDP, episodes: int, keys: jax.Array, extra: int = 0
) -> TrialState:
    """The first state of each trial, one key per trial."""
    width = len(COUNTS) + extra

    def one(key: jax.Array) -> TrialState:
        key_table, key_reset, key_act, key = jax.random.split(key, 4)
        table = initial_table(config, mdp.num_states, mdp.num_actions, key_table, mdp.mask)
        state = reset(mdp, key_reset)
        decision = act(config, table, state, mdp.mask, key_act)
        zero = jnp.zeros((), jnp.int32)
        counts = jnp.zeros(width), jnp.zeros((episodes, width))
        return TrialState(
            table, state, decision.action, _reasons(decision), key, zero, zero, zero, *counts,
            zero - 1,
        )  # fmt: skip

    return jax.vmap(one)(keys)


def one_step(
    config: TabularConfig, mdp: TabularMDP, measure: Measure | None, run: TrialState
) -> TrialState:
    """One step of one trial, an episode's end and the next one's beginning included."""
    key, key_env, key_act, key_reset, key_target = jax.random.split(run.key, 5)
    active = (run.episode < run.episodes.shape[0]) & (run.fault < 0)
    obs, reward, terminated = mdp_step(mdp, run.state, run.action, key_env)  # line 5
    discount = config.gamma * (1.0 - terminated)
    clock = run.clock + 1
    over = terminated | (clock >= config.horizon)
    start = jnp.where(over, reset(mdp, key_reset), obs)
    seen = Transition(run.state, run.action, reward, discount, obs, run.action)
    sound = active & jnp.isfinite(reward)  # what is not a number is never learned
    table, decision = learn_and_act(
        config, run.table, seen, start, over, mdp.mask, (key_act, key_target), sound
    )
    counts = jnp.concatenate(
        [jnp.stack([reward, jnp.float32(1), terminated.astype(jnp.float32)]), run.reasons]
        + ([] if measure is None else [measure(seen)])
    )
    tally = run.tally + jnp.where(active, counts, 0.0)
    line = jnp.minimum(run.episode, run.episodes.shape[0] - 1)
    healthy = sound & jnp.all(jnp.isfinite(table.z[seen.obs_tm1, seen.action_tm1]))
    done = over & healthy
    following = TrialState(
        table=table,
        state=start,
        action=decision.action,
        reasons=_reasons(decision),
        key=key,
        clock=jnp.where(over, 0, clock),
        steps=run.steps + 1,
        episode=run.episode + done,
        tally=jnp.where(done, 0.0, tally),
        episodes=run.episodes.at[line].set(jnp.where(done, tally, run.episodes[line])),
        fault=jnp.where(active & ~healthy, run.steps, run.fault),
    )
    # The table and the counts were only written where active; all else is small. A faulty trial
    # stays where the fault happened, so that it can be named.
    kept = jax.tree.map(
        lambda new, old: jnp.where(active, new, old),
        following._replace(table=None, episodes=None),  # type: ignore[arg-type]
        run._replace(table=None, episodes=None),  # type: ignore[arg-type]
    )
    state = jnp.where((following.fault >= 0) & active, run.state, kept.state)
    return kept._replace(table=table, episodes=following.episodes, state=state)


@partial(jax.jit, static_argnums=(0, 2), donate_argnums=(4,))
def advance(
    config: TabularConfig,
    mdp: TabularMDP,
    measure: Measure | None,
    steps: int | jax.Array,
    runs: TrialState,
) -> TrialState:
    """`steps` steps of every trial in one compiled call; another number compiles nothing anew."""

    def body(_: Any, runs: TrialState) -> TrialState:
        return jax.vmap(partial(one_step, config, mdp, measure))(runs)

    return jax.lax.fori_loop(0, steps, body, runs)


def trial_keys(seed: int, trials: range) -> jax.Array:
    """One key per trial number, independent of which others run."""
    key = jax.random.key(seed)
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.asarray(list(trials), jnp.uint32))


def train_trials(
    config: TabularConfig,
    mdp: TabularMDP,
    *,
    episodes: int,
    trials: int | range,
    seed: int = 0,
    measure: Measure | None = None,
    extra: int = 0,
    chunk: int = CHUNK,
    description: str = "training",
    quiet: bool = False,
) -> TrialState:
    """Train every trial for `episodes` episodes; progress on the terminal unless `quiet`."""
    if episodes < 1:
        raise InputError(f"episodes = {episodes}: there must be at least one")
    numbers = range(trials) if isinstance(trials, int) else trials
    if not len(numbers):
        raise InputError("trials: there must be at least one")
    mdp = mdp.to_jax()
    runs = start_runs(config, mdp, episodes, trial_keys(seed, numbers), extra)
    done = 0
    total = episodes * len(numbers)
    mode: Mode = "silent" if quiet else "auto"
    with progress(total, description, unit="episodes", mode=mode) as task:
        while done < total:
            runs = advance(config, mdp, measure, chunk, runs)
            raise_faults(runs, numbers)
            now = int(np.sum(np.asarray(runs.episode)))
            task.advance(now - done)
            done = now
    return runs


def raise_faults(runs: TrialState, numbers: range) -> None:
    """Stop by name where a reward or an estimate is no longer a number."""
    faults = np.asarray(runs.fault)
    if (faults < 0).all():
        return
    first = int(np.flatnonzero(faults >= 0)[0])
    raise RunError(
        f"trial {numbers[first]}, step {faults[first]}, state {int(runs.state[first])}: {SPOILT}",
        partial=runs,
    )


def _reasons(decision: Decision) -> jax.Array:
    """Ties, ties that dominance broke, and who decided, as numbers that can be added up."""
    tie = decision.multiple_solutions
    dominance = decision.decided_by == DecidedBy.DOMINANCE
    who = jnp.arange(len(DecidedBy)) == decision.decided_by
    return jnp.concatenate([jnp.stack([tie, tie & dominance]), who]).astype(jnp.float32)


class CompiledTable:
    """One run in a process that is given as arrays: whole chunks of steps in one call."""

    at_boundary = True  # everything it is made of is arrays

    def __init__(self, config: TabularConfig, mdp: TabularMDP, key: jax.Array) -> None:
        self.config, self.mdp = config, mdp
        self.run = start_runs(config, mdp, CHUNK, key[None])
        self.steps = 0

    @property
    def table(self) -> Table:
        return jax.tree.map(lambda leaf: leaf[0], self.run.table)

    def start_from(self, table: Table, steps: int) -> None:
        """Go on from a table in a new episode, with other draws than before."""
        key = jax.vmap(lambda key: jax.random.fold_in(key, steps))(self.run.key)
        self.run = self.run._replace(table=jax.tree.map(lambda x: x[None], table), key=key)
        self.steps = steps

    @property
    def known(self) -> tuple[jax.Array, Known | jax.Array]:
        """Particles `[S, A, N]`, and what their means rest on."""
        return self.run.table.z[0], at(evidence(self.config, self.run.table), 0)

    def advance(self, steps: int) -> list[Ended]:
        """That many steps, and the episodes that ended in them."""
        # Read as NumPy arrays: an index into a JAX array is a program of its own.
        before = int(np.asarray(self.run.steps)[0])
        start = self.steps - int(np.asarray(self.run.clock)[0])
        self.run = advance(self.config, self.mdp, None, steps, self.run)
        number = int(np.asarray(self.run.episode)[0])
        rows = np.array(np.asarray(self.run.episodes)[0, :number])
        self.run = self.run._replace(episode=jnp.zeros_like(self.run.episode))
        ends = start + np.cumsum(rows[:, COUNTS.index("steps")]).astype(np.int64)
        ended = list(zip(map(int, ends), rows, strict=True))
        fault = int(np.asarray(self.run.fault)[0])
        self.steps += steps if fault < 0 else fault - before
        if fault >= 0:
            text = f"in state {int(self.run.state[0])} {SPOILT}"
            raise Fault(text, lasting=True, step=self.steps + 1, ended=ended)
        return ended

    def tree(self) -> Any:
        """All the run is made of, but for its rows of finished episodes, which have been read."""
        words = jax.random.key_data(self.run.key)
        return self.run._replace(key=words, episodes=())

    def restore(self, tree: Any, steps: int) -> None:
        run: TrialState = jax.tree.map(jnp.array, tree)
        key = jax.random.wrap_key_data(run.key)
        self.run, self.steps = run._replace(key=key, episodes=self.run.episodes), steps


# --- stepped -----------------------------------------------------------------------------


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
        self._mask, shape = None, self.table.visits.shape
        self.mask = np.ones(shape, bool) if mask is None else mask.reshape(shape).astype(bool)

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
            self.mask[state], self._mask = mask, None

    def _legal(self) -> jax.Array | None:
        if self.mask is not None and self._mask is None:
            self._mask = jnp.array(self.mask)
        return self._mask

    def advance(self, steps: int) -> list[Ended]:
        """Up to that many steps, fewer if the episode ends.

        A step that fails raises `Fault` and changes nothing that was learned.
        """
        first, learn = _stepped(self.config)
        env, seen = self.env, self.env.env.observation_space
        taken = self.env.env.action_space
        if not self.begun:
            self.state = self._start(self.number, seen)
            self.key, record = first(self.table, self.state, self.key, self._legal())
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
                self._legal(),
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
    parts = decision.action[None], _reasons(decision), jnp.asarray(finite)[None]
    return jnp.concatenate([part.astype(jnp.int32) for part in parts])
