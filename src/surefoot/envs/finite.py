"""A finite Markov decision process as arrays, and its pure JAX `step`.

Every pair (state s, action a) has up to M outcomes. Outcome m happens with
`probability[s, a, m]`, leads to `next_state[s, a, m]`, pays a reward drawn from
N(`reward_mean`, `reward_std`^2) and ends the episode where `terminal` is set. The same arrays
feed the JAX `step`, the Gymnasium environment and exact dynamic programming.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.core.array import refuse_masked
from surefoot.errors import InputError

Array = Any  # NumPy arrays when built, JAX arrays after `to_jax`, tracers inside jit

# Probabilities given in float32 sum to one within a few ulp times M.
SUM_TOLERANCE = 1e-5


def cumulative_probability(probability: Array) -> np.ndarray:
    """Inverse-CDF thresholds along the last axis, in float64.

    Entries from the last possible outcome on are exactly 1, so that a uniform number in [0, 1)
    never selects an impossible outcome because a sum had been rounded to 0.9999999.
    """
    p = np.asarray(probability, np.float64)
    cdf = np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)
    size = p.shape[-1]
    last = size - 1 - np.argmax(p[..., ::-1] > 0, axis=-1)
    cdf[np.arange(size) >= last[..., None]] = 1.0
    return np.minimum(cdf, 1.0)


def check_process(mdp: Any) -> None:
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp is a {type(mdp).__name__}: pass a TabularMDP")


@dataclass(frozen=True, eq=False)
class TabularMDP:
    """States 0..S-1, actions 0..A-1, up to M outcomes of each pair; a JAX PyTree.

    Built from anything array-like, checked, and kept as read-only NumPy arrays; `to_jax` gives
    the copy for devices. Unused outcomes have probability 0. Floating arrays share one dtype,
    that of the arrays given (float64 for lists, which makes the dynamic programming exact); JAX
    computes in float32 unless x64 is enabled.
    """

    next_state: Array  # [S, A, M] integers
    probability: Array  # [S, A, M], sums to one over M
    reward_mean: Array  # [S, A, M]
    reward_std: Array = None  # [S, A, M] standard deviation of the reward, default 0
    terminal: Array = None  # [S, A, M] does this outcome end the episode, default never
    start: Array = 0  # a state, or a distribution [S]
    mask: Array = None  # [S, A] feasible actions, default all; masked pairs still need a row
    reward_clip: tuple[float, float] = (-np.inf, np.inf)  # applied to random rewards only
    cumulative: Array = field(init=False, repr=False)  # [S, A, M], from `probability`
    start_cumulative: Array = field(init=False, repr=False)  # [S], None for a single start state
    noisy: bool = field(init=False, repr=False)  # is any reward random

    def __post_init__(self) -> None:
        shape = _shape(self.next_state)
        dtype = np.result_type(
            *(_real(x) for x in (self.probability, self.reward_mean, self.reward_std))
        )
        floats = {
            name: _floating(name, getattr(self, name), shape, dtype)
            for name in ("probability", "reward_mean", "reward_std")
        }
        start = _start(self.start, shape[0], dtype)
        values = floats | {
            "next_state": _next_state(self.next_state, shape),
            "terminal": _boolean("terminal", self.terminal, shape, default=False),
            "mask": None if self.mask is None else _mask(self.mask, shape),
            "start": start,
            "start_cumulative": cumulative_probability(start).astype(dtype) if start.ndim else None,
            "reward_clip": _clip(self.reward_clip),
            "cumulative": cumulative_probability(_sums_to_one(floats["probability"])).astype(dtype),
            "noisy": bool(np.any(_non_negative("reward_std", floats["reward_std"]) > 0)),
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def num_states(self) -> int:
        return int(self.next_state.shape[-3])

    @property
    def num_actions(self) -> int:
        return int(self.next_state.shape[-2])

    @property
    def num_outcomes(self) -> int:
        return int(self.next_state.shape[-1])

    @property
    def start_distribution(self) -> np.ndarray:
        """[S], also where the start is a single state."""
        start = np.asarray(self.start)
        if start.ndim == 1:
            return start.astype(np.float64) / start.sum(dtype=np.float64)
        return np.eye(self.num_states)[int(start)]

    @property
    def feasible(self) -> np.ndarray:
        """[S, A] mask, all true where none was given."""
        if self.mask is None:
            return np.ones((self.num_states, self.num_actions), bool)
        return np.asarray(self.mask)

    def to_jax(self, dtype: Any = jnp.float32) -> TabularMDP:
        """The same process as JAX arrays with floats of `dtype`."""

        def convert(x: Array) -> jax.Array:
            return jnp.asarray(x, dtype if np.issubdtype(x.dtype, np.floating) else None)

        return jax.tree.map(convert, self)


_STATIC = ("reward_clip", "noisy")
_LEAVES = tuple(f.name for f in fields(TabularMDP) if f.name not in _STATIC)


def _flatten_with_keys(mdp: TabularMDP) -> tuple[Any, tuple[Any, ...]]:
    keyed = [(jax.tree_util.GetAttrKey(name), getattr(mdp, name)) for name in _LEAVES]
    return keyed, tuple(getattr(mdp, name) for name in _STATIC)


def _flatten(mdp: TabularMDP) -> tuple[Any, tuple[Any, ...]]:
    return [getattr(mdp, name) for name in _LEAVES], tuple(getattr(mdp, name) for name in _STATIC)


def _unflatten(static: tuple[Any, ...], leaves: Any) -> TabularMDP:
    # Not through __init__: inside jit the leaves are tracers, which cannot be checked.
    mdp = object.__new__(TabularMDP)
    for name, value in zip(_LEAVES + _STATIC, (*leaves, *static), strict=True):
        object.__setattr__(mdp, name, value)
    return mdp


jax.tree_util.register_pytree_with_keys(TabularMDP, _flatten_with_keys, _unflatten, _flatten)


def step(
    mdp: TabularMDP, state: Array, action: Array, key: Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One transition of one agent: (next_state, reward, terminated). Compose with `vmap`, `jit`.

    Only gathers, elementwise work and an integer sum, so that a trial gives the same bits alone
    and in a batch of any width. Indices are not checked here: out of range ones are clamped.
    """
    outcome, noise = jnp.int32(0), jnp.float32(0)
    if mdp.num_outcomes > 1 or mdp.noisy:
        # One draw for both purposes: a key split would cost more than the whole transition.
        outcome_u, noise = jax.random.uniform(key, (2,), jnp.asarray(mdp.reward_mean).dtype)
        cdf = jnp.asarray(mdp.cumulative)[state, action]
        outcome = jnp.sum(outcome_u >= cdf[:-1], dtype=jnp.int32)  # inverse CDF; 0 when M = 1
    at = (state, action, outcome)
    reward = jnp.asarray(mdp.reward_mean)[at]
    if mdp.noisy:
        std = jnp.asarray(mdp.reward_std)[at]
        drawn = jnp.clip(reward + std * _normal(noise), *mdp.reward_clip)
        reward = jnp.where(std > 0, drawn, reward)  # certain rewards are not clipped
    return jnp.asarray(mdp.next_state)[at], reward, jnp.asarray(mdp.terminal)[at]


def reset(mdp: TabularMDP, key: Array) -> jax.Array:
    """A start state; without random numbers where the process has only one."""
    start = jnp.asarray(mdp.start)
    if start.ndim == 0:
        return start
    uniform = jax.random.uniform(key, (), start.dtype)
    return jnp.sum(uniform >= jnp.asarray(mdp.start_cumulative)[:-1], dtype=jnp.int32)


def _normal(uniform: jax.Array) -> jax.Array:
    """A standard normal number by the inverse CDF, kept off minus infinity at uniform = 0."""
    lowest = jnp.nextafter(jnp.asarray(-1, uniform.dtype), jnp.asarray(0, uniform.dtype))
    return np.sqrt(2).astype(uniform.dtype) * jax.lax.erf_inv(jnp.maximum(lowest, 2 * uniform - 1))


def _shape(next_state: Array) -> tuple[int, ...]:
    shape = np.shape(next_state)
    if len(shape) != 3 or 0 in shape:
        raise InputError(f"next_state has shape {shape}: it must be [states, actions, outcomes]")
    return shape


def _real(x: Array) -> np.dtype:
    dtype = np.float32 if x is None else np.asarray(x).dtype
    return np.dtype(dtype if np.issubdtype(dtype, np.floating) else np.float64)


def _where(index: np.ndarray) -> str:
    return ", ".join(f"{n}={i}" for n, i in zip("sam", index.tolist(), strict=False))


def _floating(name: str, x: Array, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    refuse_masked(x, name)
    x = np.zeros(shape, dtype) if x is None else np.asarray(x)
    if x.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {x.dtype}: real numbers are needed")
    x = x.astype(dtype)
    _same_shape(name, x, shape)
    if (bad := np.argwhere(~np.isfinite(x))).size:
        raise InputError(f"{name}[{_where(bad[0])}] is {x[tuple(bad[0])]}: it must be finite")
    return x


def _same_shape(name: str, x: np.ndarray, shape: tuple[int, ...]) -> None:
    if x.shape != shape:
        raise InputError(f"{name} has shape {x.shape}, next_state has {shape}")


def _non_negative(name: str, x: np.ndarray) -> np.ndarray:
    if (bad := np.argwhere(x < 0)).size:
        raise InputError(f"{name}[{_where(bad[0])}] is {x[tuple(bad[0])]}: it must not be negative")
    return x


def _sums_to_one(p: np.ndarray) -> np.ndarray:
    total = _non_negative("probability", p).sum(axis=-1, dtype=np.float64)
    if (bad := np.argwhere(abs(total - 1) > SUM_TOLERANCE)).size:
        raise InputError(f"probability[{_where(bad[0])}] sums to {total[tuple(bad[0])]:.6g}, not 1")
    return p


def _next_state(x: Array, shape: tuple[int, ...]) -> np.ndarray:
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.integer):
        raise InputError(f"next_state has dtype {x.dtype}: it must hold integers")
    if (bad := np.argwhere((x < 0) | (x >= shape[0]))).size:
        value = x[tuple(bad[0])]
        raise InputError(f"next_state[{_where(bad[0])}] is {value}: states are 0..{shape[0] - 1}")
    return x.astype(np.int32)


def _boolean(name: str, x: Array, shape: tuple[int, ...], *, default: bool) -> np.ndarray:
    x = np.full(shape, default) if x is None else np.asarray(x)
    _same_shape(name, x, shape)
    if not np.isin(x, (0, 1)).all():
        raise InputError(f"{name} must hold true or false only")
    return x.astype(bool)


def _mask(x: Array, shape: tuple[int, ...]) -> np.ndarray:
    if np.shape(x) != shape[:2]:
        raise InputError(f"mask has shape {np.shape(x)}: it must be {shape[:2]}")
    mask = _boolean("mask", x, shape[:2], default=True)
    if (bad := np.flatnonzero(~mask.any(axis=1))).size:
        raise InputError(f"mask[s={bad[0]}] leaves no action: every state needs one")
    return mask


def _start(x: Array, size: int, dtype: Any) -> np.ndarray:
    x = np.asarray(x)
    if x.ndim == 0 and np.issubdtype(x.dtype, np.integer) and 0 <= x < size:
        return x.astype(np.int32)
    if x.shape != (size,):
        raise InputError(f"start is {x}: it must be a state 0..{size - 1} or {size} probabilities")
    p = x.astype(np.float64)
    if not np.isfinite(p).all() or (p < 0).any() or abs(p.sum() - 1) > SUM_TOLERANCE:
        raise InputError(f"start sums to {p.sum():.6g}: probabilities must be >= 0 and sum to 1")
    if np.count_nonzero(p) == 1:
        return np.asarray(np.argmax(p), np.int32)  # one state: reset needs no random number
    return (p / p.sum()).astype(dtype)


def _clip(x: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in x)
    except (TypeError, ValueError):
        raise InputError(f"reward_clip is {x!r}: it must be a pair (low, high)") from None
    if not low < high:
        raise InputError(f"reward_clip is ({low}, {high}): low must be below high")
    return low, high
