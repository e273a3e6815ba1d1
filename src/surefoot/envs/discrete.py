"""Any Gymnasium environment with discrete spaces, as integers 0..S-1 and 0..A-1."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.finite import TabularMDP
from surefoot.envs.making import opened_env
from surefoot.errors import InputError

SUPPORTED = "Discrete, MultiDiscrete, MultiBinary, and Tuple or Dict of these"
MOST = 2**31 - 1  # indices are int32 everywhere else


def space_size(space: spaces.Space[Any], what: str = "space") -> int:
    """How many different elements there are; the first axis of a table."""
    size = _size(space, what)
    if size > MOST:
        raise InputError(f"{what} has {size:.3g} elements: a table holds at most {MOST}")
    return size


def encode(space: spaces.Space[Any], value: Any) -> int:
    """The number of an element, in the order of nested loops (the last part runs fastest)."""
    index = 0
    if isinstance(space, spaces.Tuple | spaces.Dict):
        own = value if isinstance(space, spaces.Tuple) else [value[key] for key in space.spaces]
        for part, element in zip(_parts(space), own, strict=True):
            index = index * _size(part) + encode(part, element)
        return index
    if not space.contains(value):
        raise InputError(f"{value!r} is not in {space}")
    if isinstance(space, spaces.Discrete):
        return int(value) - int(space.start)
    offset = space.start if isinstance(space, spaces.MultiDiscrete) else 0
    for digit, base in zip((np.asarray(value) - offset).ravel(), _bases(space), strict=True):
        index = index * base + int(digit)
    return index


def decode(space: spaces.Space[Any], index: int) -> Any:
    """The element with that number; the inverse of `encode`."""
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(int(index) + int(space.start))
    elements: list[Any] = []
    if isinstance(space, spaces.Tuple | spaces.Dict):
        for part in reversed(_parts(space)):
            index, own = divmod(int(index), _size(part))
            elements.insert(0, decode(part, own))
        if isinstance(space, spaces.Dict):
            return dict(zip(space.spaces, elements, strict=True))
        return tuple(elements)
    for base in reversed(_bases(space)):
        index, digit = divmod(int(index), base)
        elements.insert(0, digit)
    value = np.array(elements, space.dtype).reshape(space.shape or ())
    return value + space.start if isinstance(space, spaces.MultiDiscrete) else value


def tabular_from_gym(env: gym.Env[Any, Any] | str, start: Any = None) -> TabularMDP:
    """The process behind an environment that publishes it as `env.unwrapped.P[s][a]`.

    FrozenLake, Taxi and CliffWalking do; surefoot's own environments have their arrays. Outcomes
    that differ in nothing are merged. A time limit is not part of the process, and is left out.
    """
    inner = opened_env(env).unwrapped
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


def _merge(outcomes: Any) -> dict[tuple[int, float, bool], float]:
    merged: dict[tuple[int, float, bool], float] = {}
    for p, to, gain, ends in outcomes:
        outcome = (int(to), float(gain), bool(ends))
        merged[outcome] = merged.get(outcome, 0.0) + float(p)
    return merged


def _size(space: spaces.Space[Any], what: str = "space") -> int:
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return math.prod(_size(part, what) for part in _parts(space))
    return math.prod(_bases(space, what))


def _parts(space: spaces.Tuple | spaces.Dict) -> list[spaces.Space[Any]]:
    return list(space.spaces if isinstance(space, spaces.Tuple) else space.spaces.values())


def _bases(space: spaces.Space[Any], what: str = "space") -> list[int]:
    """How many values each number of an element may have."""
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    raise InputError(f"{what} is {space}: supported are {SUPPORTED}")
