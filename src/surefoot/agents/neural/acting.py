"""What a network says of each action, and which action follows from it: pure functions.

`act` gathers data, `decide` evaluates, `behave` is as in training. The randomness of a step comes
in words of 32 bits, so that a run taken up again draws the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.ensemble import members, mixed, widened
from surefoot.agents.neural.losses import loss_of
from surefoot.agents.neural.network import Params, network
from surefoot.agents.neural.replay import scaled
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.scale import Scale, shown
from surefoot.core.sorting import network_sort
from surefoot.policies import Decision, Explore, Greedy, Policy

AT_MOST = 10  # times `member_steps` before another member takes over within an episode
FIRST = 0x7FFFFFFF  # stands for the step number where the first action is drawn


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


def pick(policy: Policy, z: jax.Array, key: jax.Array, masks: Any = None) -> Decision:
    """The policy's decision for each row of `estimates`; one key serves the ties of a batch."""
    blind = isinstance(policy, Greedy)  # a mean does not mind the order

    def decide(z: jax.Array, mask: Any) -> Decision:
        return policy.decide(z, key, mask, assume_sorted=blind)

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
    turn: Any,
    key: jax.Array,
    mask: Any = None,
) -> jax.Array:
    """The behaviour policy's action at one observation, or a random one; takes 4 words, and the
    run's key, which draws the member of the ensemble that acts since step `turn`."""
    word = mixed(key[0] ^ mixed(turn // max(config.member_steps, 1)))
    z = estimates(config, heads(config, spec, params, obs[None]), word)
    masks = None if mask is None else mask[None]
    chosen = pick(config.behaviour, z, as_key(bits[:2]), masks).action[0]
    strays = unit(bits[2]) < explore_rate(config, steps)
    return jnp.where(strays, any_legal(spec, bits[3], mask), chosen)


def act_all(
    config: NeuralConfig,
    spec: Spec,
    params: Params,
    obs: jax.Array,
    words: jax.Array,
    steps: Any,
    turn: Any,
    key: jax.Array,
    mask: Any,
) -> jax.Array:
    """`act`, in every lane if there are several, each with words and a member of its own."""
    if config.n_envs == 1:
        return act(config, spec, params, obs, words, steps, turn, key, mask)

    def one(lane: jax.Array, obs: Any, words: Any, turn: Any, mask: Any) -> jax.Array:
        return act(config, spec, params, obs, words, steps, turn, key ^ mixed(lane), mask)

    return jax.vmap(one)(jnp.arange(config.n_envs), obs, words.reshape(-1, 4), turn, mask)


def next_turn(config: NeuralConfig, turn: jax.Array, over: jax.Array, steps: Any) -> jax.Array:
    """The step since which the member acts that decides next: another one takes over after
    `member_steps` steps, where an episode ends, or within one that goes on for very long."""
    done, enough = steps - turn, max(config.member_steps, 1) * config.n_envs
    return jnp.where((over & (done >= enough)) | (done >= AT_MOST * enough), steps, turn)


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
    turn = jnp.zeros(() if config.n_envs == 1 else config.n_envs, jnp.int32)
    return act_all(config, spec, params, obs, words, 0, turn, key, mask)


def ascending(
    config: NeuralConfig, spec: Spec, params: Params, scale: Scale, obs: jax.Array
) -> jax.Array:
    """All that is known at observations `[B, *obs]`, in the environment's units."""
    rows = heads(config, spec, params, obs)
    z = network_sort(loss_of(config).particles(rows.outputs))
    return (members(z, widened(rows.means)) if config.ensemble > 1 else z) * shown(scale)


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
