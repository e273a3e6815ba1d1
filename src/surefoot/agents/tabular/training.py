"""Many independent trials at once: a whole run compiled, in chunks of steps.

Each trial has a key of its own, made from the seed and its number; nothing is shared between
trials but the program, so a trial gives the same bits alone and in any batch. Between chunks the
host looks in: progress moves, interrupts are honoured, faults stop the run by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.algorithm import Table, Transition, behave, initial_table, update
from surefoot.agents.tabular.config import TabularConfig
from surefoot.envs.finite import TabularMDP, reset
from surefoot.envs.finite import step as mdp_step
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


class Run(NamedTuple):
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
) -> Run:
    """The first state of each trial, one key per trial."""
    width = len(COUNTS) + extra

    def one(key: jax.Array) -> Run:
        key_table, key_reset, key_act, key = jax.random.split(key, 4)
        table = initial_table(config, mdp.num_states, mdp.num_actions, key_table, mdp.mask)
        state = reset(mdp, key_reset)
        decision = behave(config).decide(
            table.z[state], key_act, _mask_at(mdp, state), assume_sorted=True
        )
        zero = jnp.zeros((), jnp.int32)
        counts = jnp.zeros(width), jnp.zeros((episodes, width))
        return Run(
            table, state, decision.action, _reasons(decision), key, zero, zero, zero, *counts,
            zero - 1,
        )  # fmt: skip

    return jax.vmap(one)(keys)


def one_step(config: TabularConfig, mdp: TabularMDP, measure: Measure | None, run: Run) -> Run:
    """One step of one trial, an episode's end and the next one's beginning included."""
    key, key_env, key_act, key_reset, key_target = jax.random.split(run.key, 5)
    active = (run.episode < run.episodes.shape[0]) & (run.fault < 0)
    obs, reward, terminated = mdp_step(mdp, run.state, run.action, key_env)  # line 5
    discount = config.gamma * (1.0 - terminated)
    clock = run.clock + 1
    over = terminated | (clock >= config.horizon)
    fresh = jnp.where(over, reset(mdp, key_reset), obs)

    def act(table: Table, state: jax.Array) -> Decision:
        mask = _mask_at(mdp, state)
        return behave(config).decide(table.z[state], key_act, mask, assume_sorted=True)

    # On-policy targets use the action really taken next, so it is chosen before the update.
    before = act(run.table, obs) if config.on_policy else None
    follow = run.action if before is None else before.action
    seen = Transition(run.state, run.action, reward, discount, obs, follow)
    sound = active & jnp.isfinite(reward)  # what is not a number is never learned
    table = update(config, run.table, seen, mdp.mask, key_target, sound)
    decision = act(table, fresh)
    if before is not None:
        decision = jax.tree.map(lambda a, b: jnp.where(over, a, b), decision, before)

    counts = jnp.concatenate(
        [jnp.stack([reward, jnp.float32(1), terminated.astype(jnp.float32)]), run.reasons]
        + ([] if measure is None else [measure(seen)])
    )
    tally = run.tally + jnp.where(active, counts, 0.0)
    line = jnp.minimum(run.episode, run.episodes.shape[0] - 1)
    healthy = sound & jnp.all(jnp.isfinite(table.z[seen.obs_tm1, seen.action_tm1]))
    done = over & healthy
    following = Run(
        table=table,
        state=fresh,
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
    runs: Run,
) -> Run:
    """`steps` steps of every trial in one compiled call; another number compiles nothing anew."""

    def body(_: Any, runs: Run) -> Run:
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
    chunk: int = 500,
    description: str = "training",
    quiet: bool = False,
) -> Run:
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


def raise_faults(runs: Run, numbers: range) -> None:
    """Stop by name where a reward or an estimate is no longer a number."""
    faults = np.asarray(runs.fault)
    if (faults < 0).all():
        return
    first = int(np.flatnonzero(faults >= 0)[0])
    raise RunError(
        f"trial {numbers[first]}, step {faults[first]}, state {int(runs.state[first])}: "
        "the reward or the estimate made from it is not finite",
        partial=runs,
    )


def _reasons(decision: Decision) -> jax.Array:
    """Ties, ties that dominance broke, and who decided, as numbers that can be added up."""
    tie = decision.multiple_solutions
    dominance = decision.decided_by == DecidedBy.DOMINANCE
    who = jnp.arange(len(DecidedBy)) == decision.decided_by
    return jnp.concatenate([jnp.stack([tie, tie & dominance]), who]).astype(jnp.float32)


def _mask_at(mdp: TabularMDP, state: Any) -> jax.Array | None:
    return None if mdp.mask is None else jnp.asarray(mdp.mask)[state]
