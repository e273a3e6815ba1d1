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

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.ensemble import members, mixed, resample, surest_of_tied
from surefoot.agents.neural.losses import Loss, loss_of
from surefoot.agents.neural.network import Params, init_network, network, observed
from surefoot.agents.neural.optimizer import adam
from surefoot.agents.neural.replay import (
    Replay,
    Sample,
    empty_replay,
    insert,
    legal,
    sample,
    scaled,
)
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.scale import Scale, begun, initial_scale, observe, renewed, shown
from surefoot.core.sorting import network_sort
from surefoot.policies import Decision, Explore, Greedy, Policy


class Carry(NamedTuple):
    """What one step changes: donated to it, and given back."""

    params: Params
    opt_state: Any
    replay: Replay
    steps: jax.Array  # int32: environment steps done, and so rows inserted
    scale: Scale


class Seen(NamedTuple):
    """What the environment showed, in two arrays: each argument costs time per call.

    With several environments, lanes, all have an axis for them after the first.
    """

    obs: Any  # [3, *obs]: obs_tm1, obs_t, and what to act on next (a reset's if it ended)
    outcome: Any  # [4] float32: action_tm1, reward_t, terminated, truncated (2: a void step)
    masks: Any = ()  # [2, W] where there are masks: of obs_t and of what to act on next, packed


# Places in `record`, the one array that is read back after each step: the actions come first.
LOSS, FINITE = -2, -1
FIRST = 0x7FFFFFFF  # stands for the step number where the first action is drawn


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
    )


def optimizer(config: NeuralConfig) -> Any:
    rate: Any = config.learning_rate
    if config.learning_rate_end is not None:
        updates = config.learning_rate_steps * config.updates // config.update_every
        rate = optax.linear_schedule(rate, config.learning_rate_end, max(updates, 1))
    shaping = config.particles / (config.particles + config.ensemble)
    return adam(rate, config.adam_eps, config.max_grad_norm, shaping)


class Heads(NamedTuple):
    """What the network says of each action, in the units it learns in."""

    outputs: jax.Array  # [B, A, W] what the loss makes particles of
    means: jax.Array  # [B, E, A] the ensemble's means


def heads(config: NeuralConfig, spec: Spec, params: Params, obs: jax.Array) -> Heads:
    """The network at observations `[B, *obs]`. The ensemble reads the features of the particles."""
    actions = spec.num_actions
    shaping = actions * config.particles
    outputs, means = network(spec, params, obs, shaping, normalise=config.normalise)
    return Heads(
        outputs.reshape(len(outputs), actions, config.particles),
        means.reshape(len(means), config.ensemble, actions),
    )


def estimates(config: NeuralConfig, rows: Heads, word: jax.Array) -> jax.Array:
    """What the behaviour policy decides on: an ensemble `[B, E, A, N]` if it asks for evidence,
    else the particles `[B, A, N]` of the member that `word` draws, or of the network."""
    z = loss_of(config).particles(rows.outputs)
    if config.behaviour.needs_evidence:
        return members(z, rows.means)
    if config.ensemble == 0 or config.member_steps == 0:
        return z
    one = scaled(word, jnp.asarray(config.ensemble))
    return members(z, jax.lax.dynamic_slice_in_dim(rows.means, one, 1, axis=1))[:, 0]


def pick(policy: Policy, z: jax.Array, key: jax.Array, masks: Any = None) -> jax.Array:
    """The policy's action for each row of `estimates`; one key serves the ties of a batch."""
    blind = isinstance(policy, Greedy)  # a mean does not mind the order

    def decide(z: jax.Array, mask: Any) -> jax.Array:
        return policy(z, key, mask, assume_sorted=blind)

    return jax.vmap(decide)(z, masks)


def explore_rate(config: NeuralConfig, steps: Any) -> jax.Array:
    """Probability of a random action at step `steps`: always before there is anything to follow."""
    rate = jnp.asarray(config.explore, jnp.float32)
    if config.explore_start is not None:
        done = jnp.minimum(steps / config.explore_steps, 1.0)
        rate = config.explore_start + done * (config.explore - config.explore_start)
    return jnp.where(steps < config.learning_starts, 1.0, rate)


def act(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    obs: jax.Array,
    bits: jax.Array,
    steps: Any,
    key: jax.Array,
    mask: Any = None,
) -> jax.Array:
    """The behaviour policy's action at one observation, or a random one; takes 4 words, and the
    run's key, which draws the member of the ensemble that decides for a while."""
    stretch = steps // max(config.member_steps, 1)
    z = estimates(config, heads(config, spec, params, obs[None]), mixed(key[0] ^ mixed(stretch)))
    masks = None if mask is None else mask[None]
    chosen = pick(config.behaviour, z, as_key(bits[:2]), masks)[0]
    strays = unit(bits[2]) < explore_rate(config, steps)
    return jnp.where(strays, any_legal(spec, bits[3], mask), chosen)


def act_all(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    obs: jax.Array,
    words: jax.Array,
    steps: Any,
    key: jax.Array,
    mask: Any,
) -> jax.Array:
    """`act`, in every lane if there are several, each with words and a member of its own."""
    if config.n_envs == 1:
        return act(config, spec, params, obs, words, steps, key, mask)

    def one(lane: jax.Array, obs: jax.Array, words: jax.Array, mask: Any) -> jax.Array:
        return act(config, spec, params, obs, words, steps, key ^ mixed(lane), mask)

    return jax.vmap(one)(jnp.arange(config.n_envs), obs, words.reshape(-1, 4), mask)


def any_legal(spec: Spec, word: jax.Array, mask: Any) -> jax.Array:
    """One of the actions, or of the legal ones if there is a mask `[A]`, all equally likely."""
    if mask is None:
        return scaled(word, jnp.asarray(spec.num_actions))
    order = jnp.cumsum(mask, dtype=jnp.int32)  # of the legal actions, from 1
    return jnp.argmax(order > scaled(word, order[-1])).astype(jnp.int32)


def random_words(key: jax.Array, step: Any, number: int) -> jax.Array:
    """All the randomness of a step in two hashes (each costs as much as a small layer)."""
    return jax.random.bits(jax.random.fold_in(as_key(key), step), (number,), jnp.uint32)


def as_key(words: jax.Array) -> jax.Array:
    return jax.random.wrap_key_data(words)


def unit(word: jax.Array) -> jax.Array:
    """A random word as a number in [0, 1)."""
    return (word >> 8).astype(jnp.float32) * 2.0**-24


class Targets(NamedTuple):
    """What the target network says of a batch; no gradient."""

    outputs: jax.Array  # [B, W] at the bootstrap actions
    anchor: jax.Array  # [B, W] at the transitions' own start and action
    means: jax.Array  # [B, E] of the bootstrap actions: those worth the same are averaged


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
        action_t, share = surest_of_tied(config.target, z, chooser.means, key, masks)
    else:
        action_t = pick(config.target, z, key, masks)
        share = (action_t[:, None] == jnp.arange(spec.num_actions)).astype(jnp.float32)
    means = jnp.sum(rows.means * share[:, None, :], axis=-1)
    return jax.lax.stop_gradient(Targets(at_action(rows.outputs, action_t), anchor, means))


def at_action(rows: jax.Array, actions: jax.Array) -> jax.Array:
    """`rows[B, A, W]` at `actions[B]`: a masked sum, whose gradient needs no scatter."""
    taken = actions[:, None] == jnp.arange(rows.shape[1])
    return jnp.sum(jnp.where(taken[:, :, None], rows, 0.0), axis=1)


def batch_loss(
    config: NeuralConfig, spec: Spec, params: Params, batch: Sample, aims: Targets
) -> tuple[jax.Array, jax.Array]:
    """What is minimised, and of it the loss of the particles."""
    loss: Loss = loss_of(config)
    rows = heads(config, spec, params, batch.obs_tm1)
    predicted = at_action(rows.outputs, batch.action_tm1)
    each = loss.values(predicted, aims.anchor, batch.reward_t, batch.discount_t, aims.outputs)
    value = jnp.mean(each)
    if config.ensemble == 0:
        return value, value
    means = at_action(jnp.swapaxes(rows.means, 1, 2), batch.action_tm1)  # [B, E]
    aim = batch.reward_t[:, None] + batch.discount_t[:, None] * aims.means
    weight = resample(batch.number, config.ensemble)
    return value + 0.5 * jnp.mean(jnp.sum(weight * (means - aim) ** 2, axis=1)), value


def update(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    opt_state: Any,
    target_params: Params,
    batch: Sample,
    key: jax.Array,
) -> tuple[Params, Any, jax.Array]:
    """One step of Adam on a batch."""
    aims = targets(config, spec, params, target_params, batch, key)
    descend = jax.value_and_grad(partial(batch_loss, config, spec), has_aux=True)
    (_, value), slope = descend(params, batch, aims)
    changes, opt_state = optimizer(config).update(slope, opt_state, params)
    return optax.apply_updates(params, changes), opt_state, value


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

    def improve(learner: tuple[Params, Any], own: jax.Array) -> tuple[tuple[Params, Any], Any]:
        batch = sample(
            replay, steps, own[2:], config.n_step, config.gamma, lanes=n, voids=spec.voids
        )
        batch = batch._replace(reward_t=batch.reward_t / unit)
        *new, value = update(config, spec, *learner, target_params, batch, as_key(own[:2]))
        return (new[0], new[1]), value

    value = jnp.zeros(())
    if learn and rounds == 1:
        learner, value = improve(learner, words[4 * n :])
    elif learn:  # a loop, so that compiling does not take `rounds` times as long
        learner, values = jax.lax.scan(improve, learner, words[4 * n :].reshape(-1, each))
        value = values[-1]
    params, opt_state = learner
    mask = legal(mask_next, spec.num_actions)
    action = act_all(config, spec, params, obs_next, words[: 4 * n], steps, key, mask)
    finite = jnp.all(jnp.isfinite(reward_t)) & jnp.all(jnp.isfinite(obs_t)) & jnp.isfinite(value)
    value = value * unit ** loss_of(config).degree
    last = jnp.stack([value, finite.astype(jnp.float32)])
    record = jnp.concatenate([action.astype(jnp.float32).reshape(n), last])
    return Carry(params, opt_state, replay, steps, scale), record


def known(config: NeuralConfig, spec: Spec, params: Params, obs: jax.Array) -> Params:
    """The parameters, with observations `[B, *obs]` in their moments if there are any."""
    if not config.normalise:
        return params
    return (observed(params[0], spec.features(obs)), *params[1:])


def begin(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    key: jax.Array,
    obs: jax.Array,
    mask: Any = None,
) -> jax.Array:
    """The first action, to the observation of the first reset."""
    words = random_words(key, FIRST, 4 * config.n_envs)
    return act_all(config, spec, params, obs, words, 0, key, mask)


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


def ascending(
    config: NeuralConfig, spec: Spec, params: Params, scale: Scale, obs: jax.Array
) -> jax.Array:
    """All that is known at observations `[B, *obs]`, in the environment's units."""
    rows = heads(config, spec, params, obs)
    z = network_sort(loss_of(config).particles(rows.outputs))
    return (members(z, rows.means) if config.ensemble > 1 else z) * shown(scale)


def decide(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    scale: Scale,
    obs: jax.Array,
    key: jax.Array,
    masks: Any = None,
) -> Decision:
    """The evaluation policy's decisions; one key serves the ties of a batch."""
    z = ascending(config, spec, params, scale, obs)

    def one(z: jax.Array, mask: Any) -> Decision:
        return config.evaluation.decide(z, key, mask, assume_sorted=True)

    return jax.vmap(one)(z, masks)


def behave(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    scale: Scale,
    obs: jax.Array,
    key: jax.Array,
    steps: jax.Array,
    masks: Any = None,
) -> Decision:
    """As in training after `steps` steps: the behaviour policy with its exploration, row by row."""
    rows = heads(config, spec, params, obs)
    z = network_sort(estimates(config, rows, jax.random.bits(key, (), jnp.uint32))) * shown(scale)
    explore = Explore(config.behaviour, explore_rate(config, steps))  # type: ignore[arg-type]
    keys = jax.random.split(key, len(z))
    return jax.vmap(partial(explore.decide, assume_sorted=True))(z, keys, masks)
