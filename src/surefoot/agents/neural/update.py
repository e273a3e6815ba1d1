"""What is learned from one batch of transitions: its targets, the loss, and a step of Adam."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from surefoot.agents.neural.acting import Heads, heads, pick
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.ensemble import resample, surest_of_tied
from surefoot.agents.neural.losses import Bootstrap, loss_of
from surefoot.agents.neural.network import Params
from surefoot.agents.neural.optimizer import optimizer, split
from surefoot.agents.neural.replay import Sample, legal
from surefoot.agents.neural.spaces import Spec
from surefoot.policies import DecidedBy


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
    loss = loss_of(config)
    rows = heads(config, spec, params, batch.obs_tm1)
    predicted = at_action(rows.outputs, batch.action_tm1)
    aim = Bootstrap(aims.anchor, batch.reward_t, batch.discount_t, aims.outputs)
    value = jnp.mean(loss.values(predicted, aim))
    learned = value, loss.particles(predicted)
    if config.ensemble == 0:
        return value, learned
    means = at_action(jnp.swapaxes(rows.means, 1, 2), batch.action_tm1)  # [B, E]
    mean_t = batch.reward_t[:, None] + batch.discount_t[:, None] * aims.means
    weight = resample(batch.number, config.ensemble)
    return value + 0.5 * jnp.mean(jnp.sum(weight * (means - mean_t) ** 2, axis=1)), learned


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
