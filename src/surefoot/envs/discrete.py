"""Any Gymnasium environment with discrete spaces, as integers 0..S-1 and 0..A-1."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.finite import TabularMDP
from surefoot.errors import InputError

SUPPORTED = "Discrete, MultiDiscrete, MultiBinary, and Tuple or Dict of these"
MOST = 2**31 - 1  # indices are int32 everywhere else


def space_size(space: spaces.Space[Any], what: str = "space") -> int:
    """How many different elements there are; the first axis of a table."""
    size = 1
    for factor in _factors(space, what):
        size *= factor
    if size > MOST:
        raise InputError(f"{what} has {size:.3g} elements: a table holds at most {MOST}")
    return size


def encode(space: spaces.Space[Any], value: Any) -> int:
    """The number of an element, in the order of nested loops (the last part runs fastest)."""
    index = 0
    for digit, base in zip(_digits(space, value), _factors(space, "space"), strict=True):
        index = index * base + digit
    return index


def decode(space: spaces.Space[Any], index: int) -> Any:
    """The element with that number; the inverse of `encode`."""
    digits: list[int] = []
    for base in reversed(_factors(space, "space")):
        index, digit = divmod(int(index), base)
        digits.append(digit)
    return _element(space, digits)


def tabular_from_gym(env: gym.Env[Any, Any] | str, start: Any = None) -> TabularMDP:
    """The process behind an environment that publishes it as `env.unwrapped.P[s][a]`.

    FrozenLake, Taxi and CliffWalking do; surefoot's own environments have their arrays. Outcomes
    that differ in nothing are merged. A time limit is not part of the process, and is left out.
    """
    inner = (gym.make(env) if isinstance(env, str) else env).unwrapped
    if isinstance(mdp := getattr(inner, "mdp", None), TabularMDP) and start is None:
        return mdp
    table = getattr(inner, "P", None)
    if table is None:
        raise InputError(f"{inner} has no transition table P: step it instead")
    if start is None:
        start = getattr(inner, "initial_state_distrib", None)
        if start is None:
            raise InputError(f"{inner} has no initial_state_distrib: pass start=")
    num_states = space_size(inner.observation_space, "observation_space")
    num_actions = space_size(inner.action_space, "action_space")
    merged = [[_merge(table[s][a]) for a in range(num_actions)] for s in range(num_states)]
    shape = (num_states, num_actions, max(len(pair) for row in merged for pair in row))
    next_state, probability = np.zeros(shape, np.int64), np.zeros(shape)
    reward, terminal = np.zeros(shape), np.zeros(shape, bool)
    for s, row in enumerate(merged):
        for a, pair in enumerate(row):
            next_state[s, a] = s  # the unused outcomes stay put
            for m, ((to, gain, ends), p) in enumerate(pair.items()):
                next_state[s, a, m], probability[s, a, m] = to, p
                reward[s, a, m], terminal[s, a, m] = gain, ends
    return TabularMDP(
        next_state=next_state,
        probability=probability,
        reward_mean=reward,
        terminal=terminal,
        start=start,
    )


def _merge(outcomes: Any) -> OrderedDict[tuple[int, float, bool], float]:
    merged: OrderedDict[tuple[int, float, bool], float] = OrderedDict()
    for p, to, gain, ends in outcomes:
        outcome = (int(to), float(gain), bool(ends))
        merged[outcome] = merged.get(outcome, 0.0) + float(p)
    return merged


def _factors(space: spaces.Space[Any], what: str) -> list[int]:
    """The sizes of the elementary choices an element is made of."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    if isinstance(space, spaces.MultiBinary):
        return [2] * int(np.prod(space.shape))
    if isinstance(space, spaces.Tuple):
        return [f for part in space.spaces for f in _factors(part, what)]
    if isinstance(space, spaces.Dict):
        return [f for part in space.spaces.values() for f in _factors(part, what)]
    raise InputError(f"{what} is {space}: supported are {SUPPORTED}")


def _digits(space: spaces.Space[Any], value: Any) -> list[int]:
    """Each elementary choice as 0..n-1, offsets of `start` taken off."""
    if isinstance(space, spaces.Tuple):
        pairs = zip(space.spaces, value, strict=True)
        return [d for part, v in pairs for d in _digits(part, v)]
    if isinstance(space, spaces.Dict):
        return [d for k, part in space.spaces.items() for d in _digits(part, value[k])]
    if not space.contains(value):
        raise InputError(f"{value!r} is not in {space}")
    if isinstance(space, spaces.Discrete):
        return [int(value) - int(space.start)]
    flat = np.asarray(value).ravel()
    offset = space.start.ravel() if isinstance(space, spaces.MultiDiscrete) else 0
    return [int(d) for d in flat - offset]


def _element(space: spaces.Space[Any], digits: list[int]) -> Any:
    """Consumes `digits` from the end: the first elementary choice comes last in the list."""
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(digits.pop() + int(space.start))
    if isinstance(space, spaces.Tuple):
        return tuple(_element(part, digits) for part in space.spaces)
    if isinstance(space, spaces.Dict):
        return {k: _element(part, digits) for k, part in space.spaces.items()}
    shape = space.shape or ()
    flat = np.array([digits.pop() for _ in range(int(np.prod(shape)))], space.dtype)
    value = flat.reshape(shape)
    return value + space.start if isinstance(space, spaces.MultiDiscrete) else value
