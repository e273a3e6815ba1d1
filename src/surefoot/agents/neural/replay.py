"""Uniform replay as preallocated arrays: written in place, read by gathering rows.

Both ends of a transition are stored in the environment's own type, so that a row holds nothing
but the transition. Discounting and n-step returns happen on sampling: the stored rows know
neither gamma nor n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.spaces import Spec

TERMINATED, TRUNCATED, VOID = 1, 2, 4  # bits of `ended`; a void row holds no transition
REDRAWN = 3  # times, where a void row was drawn


class Sample(NamedTuple):
    """Both ends of a (possibly n-step) transition; leading axis B when sampled."""

    obs_tm1: jax.Array
    action_tm1: jax.Array
    reward_t: jax.Array  # sum_k gamma^k r over the n steps
    discount_t: jax.Array  # gamma^n * (1 - terminated): zero on termination only
    obs_t: jax.Array
    number: jax.Array  # of the transition, counted from the first ever inserted
    masks_t: Any = ()  # [B, W] the legal actions at obs_t, packed


class Replay(NamedTuple):
    """A ring of one-step transitions: the k-th ever inserted is in row `k % capacity`.

    Several environments side by side take turns: a lane's next transition is `lanes` rows on.
    """

    obs: jax.Array  # [C, 2, *obs]: obs_tm1 and obs_t (an episode's last one, never a reset's)
    outcome: jax.Array  # [C, 3] float32: action_tm1, reward_t, ended (TERMINATED | TRUNCATED)
    masks: Any = ()  # [C, W] uint8: the legal actions at obs_t, packed; where there are masks

    @property
    def capacity(self) -> int:
        return self.outcome.shape[0]


def empty_replay(capacity: int, spec: Spec) -> Replay:
    return Replay(
        obs=jnp.zeros((capacity, 2, *spec.obs_shape), spec.obs_dtype),
        outcome=jnp.zeros((capacity, 3), jnp.float32),
    )


def with_masks(replay: Replay, spec: Spec) -> Replay:
    """With room for masks, in an environment that turned out to have some."""
    width = (spec.num_actions + 7) // 8
    return replay._replace(masks=jnp.zeros((replay.capacity, width), jnp.uint8))


def pack(mask: np.ndarray) -> np.ndarray:
    """A mask `[A]` in bits `[W]`."""
    return np.packbits(mask, bitorder="little")


def legal(masks: Any, actions: int) -> Any:
    """Masks `[..., A]` from bits `[..., W]`; None where there are no masks."""
    if isinstance(masks, tuple):
        return None
    a = np.arange(actions)
    return (masks[..., a // 8] >> (a % 8).astype(np.uint8)) & 1 > 0


def insert(
    replay: Replay,
    count: jax.Array,
    obs_tm1: jax.Array,
    action_tm1: jax.Array,
    reward_t: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    obs_t: jax.Array,
    mask_t: Any = (),
) -> Replay:
    """Write row number `count` in place (the caller donates the arrays), or the next `n` rows if
    everything has an axis of lanes `[n]` in front, of which the capacity is a multiple."""
    ended = TERMINATED * (terminated > 0) + TRUNCATED * truncated
    lanes = action_tm1.ndim
    # Rows and not columns: XLA repeats a write to a one-dimensional array inside the gathers
    # that follow, and pays for it with a copy of the whole array per step.
    outcome = jnp.stack([x.astype(jnp.float32) for x in (action_tm1, reward_t, ended)], axis=-1)
    i = count % replay.capacity
    in_dim = jax.lax.dynamic_update_slice_in_dim, jax.lax.dynamic_update_index_in_dim
    put = in_dim[0] if lanes else in_dim[1]
    return Replay(
        obs=put(replay.obs, jnp.stack([obs_tm1, obs_t], axis=lanes), i, 0),
        outcome=put(replay.outcome, outcome, i, 0),
        masks=() if isinstance(mask_t, tuple) else put(replay.masks, mask_t, i, 0),
    )


def sample(
    replay: Replay,
    count: jax.Array,
    bits: jax.Array,
    n_step: int,
    gamma: float,
    *,
    lanes: int = 1,
    voids: bool = False,
) -> Sample:
    """A transition for each of `bits[B]` (uint32), uniform over the filled of `count` rows."""
    # Integers all the way: 24 bits of a float would favour some of 10^6 rows by 6 %.
    age = scaled(bits, jnp.minimum(count, replay.capacity))  # 0 is the newest row
    if voids:
        age = _not_void(replay, count, bits, age, lanes)
    at = (count - 1 - age) % replay.capacity
    obs, (action_tm1, reward_t, ended) = replay.obs[at], replay.outcome[at].T
    obs_tm1, obs_t = obs[:, 0], obs[:, 1]
    discount, last = jnp.full(bits.shape, gamma, jnp.float32), at
    if n_step > 1:
        reward_t, discount, last = _look_ahead(replay, at, age, n_step, gamma, lanes)
        obs_t, ended = replay.obs[last, 1], replay.outcome[last, 2]
    terminated = ended.astype(jnp.int32) & TERMINATED
    discount_t = jnp.where(terminated > 0, 0.0, discount)
    action_tm1 = action_tm1.astype(jnp.int32)
    masks_t = () if isinstance(replay.masks, tuple) else replay.masks[last]
    return Sample(obs_tm1, action_tm1, reward_t, discount_t, obs_t, count - 1 - age, masks_t)


def _not_void(
    replay: Replay, count: jax.Array, bits: jax.Array, age: jax.Array, lanes: int
) -> jax.Array:
    """Other rows instead of void ones: drawn again, and at last the one before in the same lane,
    the end of an episode, which a void row always follows."""
    filled = jnp.minimum(count, replay.capacity)

    def void(age: jax.Array) -> jax.Array:
        return replay.outcome[(count - 1 - age) % replay.capacity, 2] >= VOID

    for turn in range(1, REDRAWN + 1):
        other = scaled(bits * jnp.uint32(0x9E3779B1) ** turn + jnp.uint32(turn), filled)
        age = jnp.where(void(age), other, age)
    return jnp.where(void(age), (age + lanes) % filled, age)


def _look_ahead(
    replay: Replay, at: jax.Array, age: jax.Array, n_step: int, gamma: float, lanes: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Reward sum, discount and last row of n steps, fewer where the episode or the data ends."""
    last = at
    reward_t, discount = replay.outcome[at, 1], jnp.full(at.shape, gamma, jnp.float32)
    going = jnp.ones(at.shape, bool)
    for k in range(1, n_step):
        going = going & (replay.outcome[last, 2] == 0) & (age >= k * lanes)
        following = (at + k * lanes) % replay.capacity
        reward_t = reward_t + jnp.where(going, discount * replay.outcome[following, 1], 0.0)
        discount = jnp.where(going, discount * gamma, discount)
        last = jnp.where(going, following, last)
    return reward_t, discount, last


def scaled(bits: jax.Array, limit: jax.Array) -> jax.Array:
    """`floor(bits * limit / 2^32)` from 32-bit products: limit < 2^31."""
    limit = limit.astype(jnp.uint32)
    high, low = bits >> 16, bits & 0xFFFF
    top, bottom = limit >> 16, limit & 0xFFFF
    middle = high * bottom + ((low * bottom) >> 16)
    # `high * bottom` is below 2^32 - 2^17 and the carry below 2^16: no overflow in `middle`.
    cross = low * top
    carry = ((middle & 0xFFFF) + (cross & 0xFFFF)) >> 16
    return (high * top + (middle >> 16) + (cross >> 16) + carry).astype(jnp.int32)
