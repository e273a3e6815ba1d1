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
import optax

from surefoot.agents.neural.acting import (
    Heads,
    act_all,
    as_key,
    ascending,
    begin,
    behave,
    decide,
    explore_rate,
    heads,
    next_turn,
    pick,
    random_words,
)
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.ensemble import resample, surest_of_tied
from surefoot.agents.neural.losses import Loss, loss_of
from surefoot.agents.neural.network import Params, init_network, observed
from surefoot.agents.neural.optimizer import adam, split
from surefoot.agents.neural.replay import (
    Replay,
    Sample,
    empty_replay,
    insert,
    legal,
    sample,
)
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.scale import Scale, begun, initial_scale, observe, renewed, shown
from surefoot.policies import DecidedBy


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


def optimizer(config: NeuralConfig) -> Any:
    rate: Any = config.learning_rate
    if config.learning_rate_end is not None:
        updates = config.learning_rate_steps * config.updates // config.update_every
        rate = optax.linear_schedule(rate, config.learning_rate_end, max(updates, 1))
    return adam(rate, config.adam_eps, config.max_grad_norm, config.shaping)


class Targets(NamedTuple):
    """What the target network says of a batch; no gradient."""

    outputs: jax.Array  # [B, W] at the bootstrap actions
    anchor: jax.Array  # [B, W] at the transitions' own start and action
    means: jax.Array  # [B, E] of the bootstrap actions
    dominance: jax.Array  # [B] bool: whether it chose the bootstrap actions


def targets(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    target_params: Params,
    batch: Sample,
    key: jax.Array,
) -> Targets:
    """Line 7 of Algorithm 1 for a batch: the bootstrap actions, and what they are worth."""
    size = batch.reward_t.shape[0]
    if config.normalise:  # one view of the observations for both networks
        target_params = (params[0], *target_params[1:])
    if loss_of(config).anchored:  # both in one pass: the weights are read once
        both = jnp.concatenate([batch.obs_t, batch.obs_tm1])
        rows = heads(config, spec, target_params, both)
        anchor = at_action(rows.outputs[size:], batch.action_tm1)
        rows = Heads(rows.outputs[:size], rows.means[:size])
    else:
        rows = heads(config, spec, target_params, batch.obs_t)
        anchor = jnp.zeros((size, config.particles))
    chooser = heads(config, spec, params, batch.obs_t) if config.double_q else rows
    z = loss_of(config).particles(chooser.outputs)
    masks = legal(batch.masks_t, spec.num_actions)
    if config.target.needs_evidence:
        action_t, dominance = surest_of_tied(config.target, z, chooser.means, key, masks)
    else:
        action_t, decided_by, *_ = pick(config.target, z, key, masks)
        dominance = decided_by == DecidedBy.DOMINANCE
    means = at_action(jnp.swapaxes(rows.means, 1, 2), action_t)
    outputs = at_action(rows.outputs, action_t)
    return jax.lax.stop_gradient(Targets(outputs, anchor, means, dominance))


def at_action(rows: jax.Array, actions: jax.Array) -> jax.Array:
    """`rows[B, A, W]` at `actions[B]`: a masked sum, whose gradient needs no scatter."""
    taken = actions[:, None] == jnp.arange(rows.shape[1])
    return jnp.sum(jnp.where(taken[:, :, None], rows, 0.0), axis=1)


def batch_loss(
    config: NeuralConfig, spec: Spec, params: Params, batch: Sample, aims: Targets
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """What is minimised; of it the loss of the particles, and these `[B, N]`."""
    loss: Loss = loss_of(config)
    rows = heads(config, spec, params, batch.obs_tm1)
    predicted = at_action(rows.outputs, batch.action_tm1)
    each = loss.values(predicted, aims.anchor, batch.reward_t, batch.discount_t, aims.outputs)
    value = jnp.mean(each)
    learned = value, loss.particles(predicted)
    if config.ensemble == 0:
        return value, learned
    means = at_action(jnp.swapaxes(rows.means, 1, 2), batch.action_tm1)  # [B, E]
    aim = batch.reward_t[:, None] + batch.discount_t[:, None] * aims.means
    weight = resample(batch.number, config.ensemble)
    return value + 0.5 * jnp.mean(jnp.sum(weight * (means - aim) ** 2, axis=1)), learned


def update(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    opt_state: Any,
    target_params: Params,
    batch: Sample,
    key: jax.Array,
    logged: Any = False,
) -> tuple[Params, Any, jax.Array]:
    """One step of Adam on a batch; of it the loss and, where it is to be `logged`, the norm of the
    gradient, mean and spread of the estimates, and the share of the bootstrap actions that
    dominance chose."""
    aims = targets(config, spec, params, target_params, batch, key)
    descend = jax.value_and_grad(partial(batch_loss, config, spec), has_aux=True)
    (_, (value, z)), slope = descend(params, batch, aims)

    def measured() -> jax.Array:
        norm = optax.tree.norm(split(slope, config.shaping)[0])
        chosen = jnp.mean(aims.dominance, where=batch.discount_t > 0)  # no action follows an end
        return jnp.stack([norm, jnp.mean(z), jnp.mean(jnp.std(z, axis=-1)), chosen])

    # A branch: few steps end an episode, and the norm of a large gradient takes a while.
    more = jax.lax.cond(logged, measured, lambda: jnp.full(4, jnp.nan))
    changes, opt_state = optimizer(config).update(slope, opt_state, params)
    return optax.apply_updates(params, changes), opt_state, jnp.concatenate([value[None], more])


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
    scale = observe(carry.scale, reward_t)
    scale = begun(scale) if learn else scale
    unit = shown(scale)
    each = config.batch_size + 2  # words per update: the rows, and a key for the target policy
    words = random_words(key, carry.steps, 4 * n + each * rounds if learn else 4 * n)
    shown_obs = obs_t[None] if n == 1 else obs_t
    learner = (known(config, spec, carry.params, shown_obs), carry.opt_state)
    over = (terminated > 0) | (truncated > 0)
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
