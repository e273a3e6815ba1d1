"""What an environment carries from one episode to the next, for checkpoints.

An episode starts from its seed, so most environments carry nothing. Those that do, such as a
curriculum, say what by two methods on any of their layers (wrappers and the environment itself):

    def get_state(self) -> dict          # numbers, text, arrays, and lists and dicts of these
    def set_state(self, state: dict) -> None

Gymnasium's NormalizeObservation and NormalizeReward keep running means; they are known here.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import NormalizeObservation, NormalizeReward

from surefoot.errors import InputError, RunError

Arrays = dict[str, np.ndarray]


def read_memory(envs: list[Any]) -> tuple[list[Any], Arrays]:
    """What each layer of the environments carries, as JSON and arrays."""
    arrays: Arrays = {}
    memory = []
    for layer in _layers(envs):
        state = _state_of(layer)
        if state is not None:
            name = type(layer).__name__
            if not isinstance(state, dict):
                raise RunError(f"{name}.get_state() returned a {type(state).__name__}, not a dict")
            memory.append({"layer": name, "state": _written(state, arrays, name)})
    return memory, arrays


def restore_memory(envs: list[Any], memory: Any, arrays: Arrays, path: object) -> None:
    """Set each layer to what it carried. The environments have been reset before."""
    mine = [layer for layer in _layers(envs) if _state_of(layer) is not None]
    own = [type(layer).__name__ for layer in mine]
    try:
        names = [entry["layer"] for entry in memory]
        if names != own:
            raise InputError(
                f"{path}: holds the memory of {', '.join(map(str, names)) or 'no layer'}; of this "
                f"environment's layers {', '.join(own) or 'none'} keep one"
            )
        for layer, entry in zip(mine, memory, strict=True):
            _set_state(layer, _read(entry["state"], arrays))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: the memory of the environment is damaged ({error})") from None


def _layers(envs: list[Any]) -> list[Any]:
    """Of each environment, the wrappers from outside in and the environment."""
    layers: list[Any] = []
    for env in envs:
        while isinstance(env, gym.Wrapper):
            layers.append(env)
            env = env.env
        layers.append(env)
    return layers


def _state_of(layer: Any) -> Any:
    if isinstance(layer, NormalizeObservation):
        return {"running": _running(layer.obs_rms)}
    if isinstance(layer, NormalizeReward):
        return {"running": _running(layer.return_rms), "reward": layer.discounted_reward}
    kind = type(layer)
    speaks = all(callable(getattr(kind, name, None)) for name in ("get_state", "set_state"))
    return layer.get_state() if speaks else None


def _set_state(layer: Any, state: dict[str, Any]) -> None:
    if isinstance(layer, NormalizeObservation):
        _run_on(layer.obs_rms, state["running"])
    elif isinstance(layer, NormalizeReward):
        _run_on(layer.return_rms, state["running"])
        layer.discounted_reward = state["reward"]
    else:
        layer.set_state(state)


def _running(mean: Any) -> dict[str, Any]:
    """Gymnasium's RunningMeanStd as data."""
    return {name: getattr(mean, name) for name in ("mean", "var", "count")}


def _run_on(mean: Any, state: dict[str, Any]) -> None:
    mean.mean, mean.var, mean.count = (state[name] for name in ("mean", "var", "count"))


def _written(value: Any, arrays: Arrays, where: str) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"dict": {k: _written(v, arrays, f"{where}.{k}") for k, v in value.items()}}
    if type(value) in (list, tuple):
        kind = type(value).__name__
        return {kind: [_written(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]}
    if (
        isinstance(value, float | np.generic | np.ndarray)
        and np.asarray(value).dtype.kind in "fiub"
    ):
        name = f"env.{len(arrays)}"
        arrays[name] = np.array(value)
        return {"array" if isinstance(value, np.ndarray) else "scalar": name}
    raise RunError(f"{where} is a {type(value).__name__}, which a checkpoint cannot hold")


def _read(value: Any, arrays: Arrays) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    ((kind, inside),) = value.items()
    if kind == "dict":
        return {name: _read(item, arrays) for name, item in inside.items()}
    if kind in ("list", "tuple"):
        items = [_read(item, arrays) for item in inside]
        return tuple(items) if kind == "tuple" else items
    if kind == "array":
        return arrays[inside].copy()
    if kind == "scalar":
        return arrays[inside][()]
    raise ValueError(f"{kind!r} is no kind of value")
