"""Where a table learns in a process given as arrays: many trials in one batch, or one run.

A trial has a key of its own, made from the seed and its number; nothing is shared between trials
but the program, so a trial gives the same bits alone and in any batch. Between chunks of steps
the host looks in: progress moves, interrupts are honoured, faults stop the run by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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
)
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.loop import COUNTS, SPOILT, Ended, reasons
from surefoot.agents.tabular.outcomes import at
from surefoot.core.evidence import Known
from surefoot.envs.faults import Fault
from surefoot.envs.finite import TabularMDP, reset
from surefoot.envs.finite import step as mdp_step
from surefoot.errors import InputError, RunError
from surefoot.runs.progress import Mode, progress

Measure = Callable[[Transition], jax.Array]  # what else to count per episode: [F] floats

CHUNK = 500  # most steps, and so most episodes, between two looks of the host


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
            table, state, decision.action, reasons(decision), key, zero, zero, zero, *counts,
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
        reasons=reasons(decision),
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


class CompiledTable:
    """One run in a process made of arrays: many steps in one call."""

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
