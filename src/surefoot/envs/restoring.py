"""The state of a Gymnasium environment, taken out and put back, where that is possible.

An environment's layers (wrappers and the environment itself) keep their state in attributes.
Where all of it is plain data (numbers, text, arrays, lists and dicts of these, NumPy random
generators) it can be stored and put back. Anything else, such as a physics engine's world,
cannot, and `capture` says what stands in the way. A layer can speak for itself instead:

    def get_state(self) -> dict          # of plain data
    def set_state(self, state: dict) -> None
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections import deque
from enum import Enum
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import PassiveEnvChecker

from surefoot.errors import InputError

CONSTANT = {
    "env", "spec", "metadata", "reward_range", "render_mode", "P",
    "_saved_kwargs", "_cached_spec", "_metadata", "_ezpickle_args", "_ezpickle_kwargs",
}  # fmt: skip
"""Attributes that are set once: what Gymnasium keeps, and the transition table it publishes."""
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class Unrestorable(Exception):
    """What of an environment cannot be stored."""


class _Pen:
    """Values as JSON, with arrays aside; notes which objects it has met."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._met: dict[int, Any] = {}  # the objects too, so that no id is used twice

    def write(self, value: Any, where: str) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, np.random.Generator):
            return self._generator(value, where)
        if type(value) is tuple:
            return {"tuple": self._items(value, where)}
        if isinstance(value, gym.Space):  # all it keeps is what it samples with
            return {"space": self.write(value._np_random, where)}
        self._meet(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) is list:
            return {"list": self._items(value, where)}
        if type(value) is deque:
            return {"deque": self._items(value, where), "maxlen": value.maxlen}
        if type(value) is dict:
            return {"dict": [[self.write(k, where), self.write(v, f"{where}[{k!r}]")]
                             for k, v in value.items()]}  # fmt: skip
        if type(value).__module__.startswith("gymnasium."):  # such as a running mean
            return {"object": self.attributes(value, where)}
        raise Unrestorable(f"{where} is a {type(value).__name__}")

    def attributes(self, owner: Any, where: str) -> dict[str, Any]:
        """Everything an object keeps in its attributes that could change."""
        if any(getattr(kind, "__slots__", ()) for kind in type(owner).__mro__):
            raise Unrestorable(f"{where} keeps state in slots")
        return {
            name: self.write(value, f"{where}.{name}")
            for name, value in sorted(vars(owner).items())
            if name not in CONSTANT and not _constant(value)
        }

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.write(v, f"{where}[{i}]") for i, v in enumerate(values)]

    def _meet(self, value: Any, where: str) -> None:
        """The same list under two names would come back as two lists."""
        parts = [value, *([value.base] if getattr(value, "base", None) is not None else [])]
        if any(id(part) in self._met for part in parts):
            raise Unrestorable(f"{where} is shared with another attribute")
        self._met |= {id(part): part for part in parts}

    def _array(self, value: np.ndarray, where: str) -> Any:
        if type(value) is not np.ndarray or value.dtype.kind not in "fiubSU":
            raise Unrestorable(f"{where} is an array of {value.dtype}")
        if value.dtype.kind in "SU":
            text = [_text(item) for item in value.ravel().tolist()]
            return {"text": text, "dtype": value.dtype.str, "shape": list(value.shape)}
        name = f"env.{len(self.arrays)}"
        self.arrays[name] = value.copy()
        return {"array": name}

    def _scalar(self, value: np.generic, where: str) -> Any:
        if isinstance(value, np.str_):
            return {"str_": str(value)}
        return {"scalar": self._array(np.asarray(value), where)["array"]}

    def _generator(self, value: np.random.Generator, where: str) -> Any:
        kind = type(value.bit_generator).__name__
        if kind not in GENERATORS:
            raise Unrestorable(f"{where} is a random generator of kind {kind}")
        return {"generator": kind, "state": self.write(dict(value.bit_generator.state), where)}


def _constant(value: Any) -> bool:
    """What an attribute can hold that does not change: code, frozen data, drawing surfaces."""
    frozen = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if frozen and type(value).__dataclass_params__.frozen:
        return True
    code = type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, Enum
    return isinstance(value, code) or type(value).__module__.split(".")[0] == "pygame"


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def layers(env: gym.Env[Any, Any]) -> list[Any]:
    """The wrappers from outside in, and the environment; checkers keep nothing that matters."""
    found: list[Any] = []
    while isinstance(env, gym.Wrapper):
        found.append(env)
        env = env.env
    return [layer for layer in (*found, env) if not isinstance(layer, PassiveEnvChecker)]


def capture(env: gym.Env[Any, Any]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """The state of every layer as JSON and arrays, or `Unrestorable`."""
    pen, told = _Pen(), []
    for layer in layers(env):
        name = type(layer).__name__
        if _speaks(layer):
            own = layer.get_state()
            if not isinstance(own, dict):
                raise Unrestorable(f"{name}.get_state() gave a {type(own).__name__}, not a dict")
            state = {"own": pen.write(own, f"{name}.get_state()")}
            if isinstance(getattr(layer, "_np_random", None), np.random.Generator):
                state["random"] = pen.write(layer._np_random, f"{name}.np_random")
        else:
            state = {"attributes": pen.attributes(layer, name)}
        told.append({"layer": name, **state})
    return told, pen.arrays


def _speaks(layer: Any) -> bool:
    return all(callable(getattr(type(layer), name, None)) for name in ("get_state", "set_state"))


def restore(env: gym.Env[Any, Any], told: Any, arrays: dict[str, np.ndarray], path: object) -> None:
    """Put back what `capture` took. The environment must have been reset before, so that
    everything is there that a reset makes."""
    mine = layers(env)
    try:
        names = [layer["layer"] for layer in told]
        own = [type(layer).__name__ for layer in mine]
        if names != own:
            raise InputError(
                f"{path}: was taken from {' of '.join(map(str, names))}; this environment is "
                f"{' of '.join(own)}"
            )
        reader = _Reader(arrays)
        for layer, state in zip(mine, told, strict=True):
            if "own" in state:
                layer.set_state(reader.read(state["own"]))
                if "random" in state:
                    layer._np_random = reader.read(state["random"], layer._np_random)
            else:
                reader.fill(layer, state["attributes"])
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InputError(f"{path}: the state of the environment is damaged ({error})") from None


class _Reader:
    """The inverse of `_Pen`."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays

    def fill(self, owner: Any, attributes: dict[str, Any]) -> None:
        kept = vars(owner)
        for name, value in attributes.items():
            fixed = name in CONSTANT or _constant(kept.get(name))
            if fixed or (name not in kept and hasattr(type(owner), name)):
                raise ValueError(f"{name!r} is not part of a state")
            kept[name] = self.read(value, kept.get(name))

    def read(self, value: Any, old: Any = None) -> Any:
        if not isinstance(value, dict):
            if value is None or isinstance(value, bool | int | float | str):
                return value
            raise ValueError("a list stands where a value should")
        kind = next(iter(value))
        if kind in ("tuple", "list", "deque"):
            items = [self.read(item) for item in value[kind]]
            if kind == "deque":
                return deque(items, value["maxlen"])
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {self.read(k): self.read(v) for k, v in value[kind]}
        if kind == "array":
            return self._arrays[value[kind]].copy()
        if kind == "scalar":
            return self._arrays[value[kind]][()]
        if kind == "object":
            self.fill(old, value[kind])
            return old
        return self._rare(kind, value, old)

    def _rare(self, kind: str, value: dict[str, Any], old: Any) -> Any:
        if kind == "generator":
            return self._generator(value, old)
        if kind == "space":
            if not isinstance(old, gym.Space):
                raise ValueError("a space stands where there is none")
            old._np_random = self.read(value[kind], old._np_random)
            return old
        if kind == "float":
            return float(value[kind])
        if kind == "bytes":
            return bytes.fromhex(value[kind])
        if kind == "str_":
            return np.str_(value[kind])
        if kind == "text":
            dtype = np.dtype(value["dtype"])
            items = [t.encode("latin-1") if dtype.kind == "S" else t for t in value[kind]]
            return np.array(items, dtype).reshape(value["shape"])
        raise ValueError(f"{kind!r} is no kind of value")

    def _generator(self, value: dict[str, Any], old: Any) -> np.random.Generator:
        """In place where there is one: others may hold the same generator."""
        kind = value["generator"]
        if kind not in GENERATORS:
            raise ValueError(f"{kind!r} is no random generator")
        if not isinstance(old, np.random.Generator) or type(old.bit_generator).__name__ != kind:
            old = np.random.Generator(getattr(np.random, kind)())
        old.bit_generator.state = self.read(value["state"])
        return old
