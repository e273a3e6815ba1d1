"""One environment step of the agent as one pure function: insert, sample, update, act.

    carry, record = step(carry, target_params, key, seen)  # carry is donated: nothing is copied

The environment runs outside (or, compiled, in the same loop). What it showed goes in as `seen`;
the next action comes back in `record`, a single small array, so that one call and one read are
all the Python there is per step. The target network is an argument and changes outside.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.agents.neural.acting import (
    act_all,
    as_key,
    ascending,
    begin,
    behave,
    decide,
    explore_rate,
    next_turn,
    random_words,
)
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.losses import loss_of
from surefoot.agents.neural.network import Params, init_network, observed
from surefoot.agents.neural.optimizer import optimizer
from surefoot.agents.neural.replay import Replay, empty_replay, insert, legal, sample
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.update import update
from surefoot.agents.scale import Scale, begun, initial_scale, observe, renewed, shown


class Carry(NamedTuple):
    """What one step changes: donated to it, and given back."""

    params: Params
    opt_state: Any
    replay: Replay
    steps: jax.Array  # int32: environment steps done, and so rows inserted
    scale: Scale
    turn: jax.Array  # int32, [n] of several lanes: the step since which the same member acts


class Seen(NamedTuple):
    """What the environment showed, in two arrays: each argument costs time per call.

    With several environments, lanes, all have an axis for them after the first.
    """

    obs: Any  # [3, *obs]: obs_tm1, obs_t, and what to act on next (a reset's if it ended)
    outcome: Any  # [4] float32: action_tm1, reward_t, terminated, truncated (2: a void step)
    masks: Any = ()  # [2, W] where there are masks: of obs_t and of what to act on next, packed


# Places in `record`, the one array that is read back after each step: the actions come first, then
# what the log says of a step that ended an episode (`Finished`, from its loss on).
LOSS, FINITE = -7, -1


def init_carry(config: NeuralConfig, spec: Spec, key: jax.Array, own: Any = None) -> Carry:
    """`own` are the parameters of the caller's own layers."""
    outputs = spec.num_actions * (config.particles + config.ensemble)
    params = init_network(key, spec, config.hidden, outputs, normalise=config.normalise, own=own)
    return Carry(
        params=params,
        opt_state=optimizer(config).init(params),
        replay=empty_replay(config.replay_size // config.n_envs * config.n_envs, spec),
        steps=jnp.zeros((), jnp.int32),
        scale=initial_scale(config.reward_scale),
        turn=jnp.zeros(() if config.n_envs == 1 else config.n_envs, jnp.int32),
    )


def step(
    config: NeuralConfig,
    spec: Spec,
    learn: bool,
    carry: Carry,
    target_params: Params,
    key: jax.Array,
    seen: Seen,
) -> tuple[Carry, jax.Array]:
    """Take in what the environment answered, learn from a batch, choose the next action."""
    action_tm1, reward_t, terminated, truncated = seen.outcome
    obs_tm1, obs_t, obs_next = seen.obs
    mask_t, mask_next = seen.masks if len(seen.masks) else ((), ())
    replay = insert(
        carry.replay,
        carry.steps,
        obs_tm1,
        action_tm1,
        reward_t,
        terminated,
        truncated,
        obs_t,
        mask_t,
    )
    n, rounds = config.n_envs, config.rounds
    steps = carry.steps + n
    scale = observe(carry.scale, reward_t, truncated < 2 if spec.voids else None)  # no void reward
    scale = begun(scale) if learn else scale
    unit = shown(scale)
    each = config.batch_size + 2  # words per update: the rows, and a key for the target policy
    words = random_words(key, carry.steps, 4 * n + each * rounds if learn else 4 * n)
    shown_obs = obs_t[None] if n == 1 else obs_t
    learner = (known(config, spec, carry.params, shown_obs), carry.opt_state)
    over = (terminated > 0) | (truncated == 1)
    turn = next_turn(config, carry.turn, over, steps)

    def improve(learner: tuple[Params, Any], own: jax.Array) -> tuple[tuple[Params, Any], Any]:
        batch = sample(
            replay, steps, own[2:], config.n_step, config.gamma, lanes=n, voids=spec.voids
        )
        batch = batch._replace(reward_t=batch.reward_t / unit)
        *new, said = update(
            config, spec, *learner, target_params, batch, as_key(own[:2]), jnp.any(over)
        )
        return (new[0], new[1]), said

    said = jnp.full(5, jnp.nan)  # of no update
    if learn and rounds == 1:
        learner, said = improve(learner, words[4 * n :])
    elif learn:  # a loop, so that compiling does not take `rounds` times as long
        learner, all_said = jax.lax.scan(improve, learner, words[4 * n :].reshape(-1, each))
        said = all_said[-1]
    params, opt_state = learner
    mask = legal(mask_next, spec.num_actions)
    action = act_all(config, spec, params, obs_next, words[: 4 * n], steps, turn, key, mask)
    loss, norm, mean, spread, dominance = said
    finite = jnp.all(jnp.isfinite(reward_t)) & jnp.all(jnp.isfinite(obs_t))
    finite = finite & jnp.isfinite(loss) if learn else finite
    loss = loss * unit ** loss_of(config).degree
    explore = explore_rate(config, steps)
    last = [loss, explore, norm, mean * unit, spread * unit, dominance, finite.astype(jnp.float32)]
    record = jnp.concatenate([action.astype(jnp.float32).reshape(n), jnp.stack(last)])
    return Carry(params, opt_state, replay, steps, scale, turn), record


def known(config: NeuralConfig, spec: Spec, params: Params, obs: jax.Array) -> Params:
    """The parameters, with observations `[B, *obs]` in their moments if there are any."""
    if not config.normalise:
        return params
    return (observed(params[0], spec.features(obs)), *params[1:])


class Networks(NamedTuple):
    """The parameters a run has beside those that it trains."""

    target: Params  # bootstrapped from
    average: Params  # decides; empty where the trained ones do


def mix_target(
    config: NeuralConfig, networks: Networks, params: Params, scale: Scale
) -> tuple[Networks, Params, Scale]:
    """The target network's change: a copy, or Polyak averaging; and where rewards have grown or
    shrunk, all networks in another unit."""
    target, average = networks
    if config.reward_scale is None:  # the last layer is linear: it says the same in another unit
        scale, ratio = renewed(scale)
        target, average, params = (_last_times(p, ratio) for p in (target, average, params))
    share = config.target_mix

    def towards(old: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.copy(new) if share == 1 else old + share * (new - old)

    return Networks(jax.tree.map(towards, target, params), average), params, scale


def _last_times(params: Params, ratio: jax.Array) -> Params:
    return (*params[:-1], params[-1] * ratio) if params else params


def mix_average(networks: Networks, params: Params, share: jax.Array) -> Networks:
    """Take so much of the trained parameters into their average."""
    average = jax.tree.map(lambda old, new: old + share * (new - old), networks.average, params)
    return networks._replace(average=average)


AVERAGED_EVERY = 100  # steps


def passed(config: NeuralConfig, done: int, every: int) -> bool:
    """Whether the last step, of all lanes, came to a multiple of `every` or went beyond one."""
    return done % every < config.n_envs


def average_share(config: NeuralConfig, done: int) -> float:
    """What the parameters after `done` steps count in their average; 0 where they are not due.

    The first count fully, then all alike, then the latest `averaging` steps most.
    """
    learned = done - config.learning_starts
    if config.averaging == 0 or learned <= 0 or not passed(config, done, AVERAGED_EVERY):
        return 0.0
    number = (learned + AVERAGED_EVERY - 1) // AVERAGED_EVERY
    return max(1 / number, min(1.0, AVERAGED_EVERY / config.averaging))


class Compiled(NamedTuple):
    """The functions above compiled for one configuration and one pair of spaces."""

    step: Any
    warm: Any  # a step without an update
    begin: Any
    sync: Any
    smooth: Any
    estimates: Any  # (params, scale, obs[B]) -> ascending z[B, A, N], or an ensemble
    decide: Any  # (params, scale, obs[B], key, masks) -> Decision of the evaluation policy, batched
    behave: Any  # (params, scale, obs[B], key, steps, masks) -> of the behaviour policy, exploring


@lru_cache(maxsize=32)
def compiled(config: NeuralConfig, spec: Spec) -> Compiled:
    """Compile once per process; agents with equal configurations share it."""
    return Compiled(
        step=jit_in_place(partial(step, config, spec, True)),
        warm=jit_in_place(partial(step, config, spec, False)),
        begin=jax.jit(partial(begin, config, spec)),
        sync=jax.jit(partial(mix_target, config)),
        smooth=jax.jit(mix_average),
        estimates=jax.jit(partial(ascending, config, spec)),
        decide=jax.jit(partial(decide, config, spec)),
        behave=jax.jit(partial(behave, config, spec)),
    )


def jit_in_place(function: Any) -> Any:
    """Compile a function whose first argument is donated and updated where it lies.

    XLA for CPUs copies an array that is written and then read (the replay, the weights) unless
    it looks closely at when; for 10^6 transitions that copy would cost more than the step.
    """
    options = {"xla_cpu_copy_insertion_use_region_analysis": True}
    on_cpu = jax.default_backend() == "cpu"
    return jax.jit(function, donate_argnums=0, compiler_options=options if on_cpu else None)
