"""Environments made by their Gymnasium id, and what a file says to make one again."""

from __future__ import annotations

import copy
import importlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from surefoot.errors import InputError, SurefootError

OF_VECTORS = ("num_envs", "vectorization_mode", "vector_kwargs", "max_episode_steps")
OF_MAKE = (TimeLimit, OrderEnforcing, PassiveEnvChecker)
EXTRA = re.compile(r"classic[-_]control|box2d", re.IGNORECASE)  # what surefoot[envs] brings


def made_env(
    env_id: str,
    wrappers: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    *,
    render_mode: str | None = None,
) -> gym.Env[Any, Any]:
    """`gymnasium.make`, where a failure is an error of one line; and `wrappers` around it, each
    named `module:Name`, the first innermost. `options` may come from a file, so they are arguments
    of the environment and of nothing else."""
    own = dict(options or {}) | ({} if render_mode is None else {"render_mode": render_mode})
    try:
        env = gym.make(env_id, **own)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an environment of the user's own can raise anything
        raise _one_line(f"environment {env_id!r}", error) from error
    for name in wrappers:
        env = _wrapped(env, name)
    return env


def opened_env(env: Any, name: str = "env") -> gym.Env[Any, Any]:
    """An environment, the one of that id, or what a function makes."""
    if isinstance(env, str):
        return made_env(env)
    if not isinstance(env, gym.Env) and callable(env):
        env = env()
    if not isinstance(env, gym.Env):
        raise InputError(
            f"{name} is a {type(env).__name__}: pass a Gymnasium environment or its id"
        )
    return env


def _wrapped(env: gym.Env[Any, Any], name: str) -> gym.Env[Any, Any]:
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise InputError(f"wrapper {name!r}: write it as module:Name")
    try:
        made = getattr(importlib.import_module(module), attribute)(env)
    except Exception as error:  # so can a wrapper
        raise _one_line(f"wrapper {name!r}", error) from error
    if not isinstance(made, gym.Env):
        raise InputError(f"wrapper {name!r} makes a {type(made).__name__}, not an environment")
    return made


def _one_line(what: str, error: BaseException) -> InputError:
    known = isinstance(error, gym.error.Error | ImportError | AttributeError | SurefootError)
    text = f"{'' if known else f'{type(error).__name__}: '}{' '.join(str(error).split())}"
    if isinstance(error, gym.error.DependencyNotInstalled) and EXTRA.search(text):
        text = "it needs packages that are not installed: pip install 'surefoot[envs]'"
    return InputError(f"{what}: {text}")


def separate_env(env: gym.Env[Any, Any], **mode: Any) -> gym.Env[Any, Any]:
    """Another environment of the same kind."""
    spec, name = single_spec(env), type(env.unwrapped).__name__
    if spec is None:
        raise InputError(f"{name} is not registered: pass eval_env for evaluation")
    try:
        return gym.make(spec, **mode)
    except Exception as error:  # such as a wrapper that does not say what it was made with
        text = " ".join(str(error).split())
        raise InputError(
            f"another {name} cannot be made ({text}): pass a function that makes one as env, or "
            "eval_env for evaluation"
        ) from error


def single_spec(env: Any) -> EnvSpec | None:
    """What it is registered as; of a VectorEnv by `gymnasium.make_vec`, what one of its
    environments is. None where that is not known."""
    spec = env.spec
    if spec is None or not isinstance(env, VectorEnv):
        return spec
    if spec.kwargs.get("wrappers"):
        return None
    spec = copy.deepcopy(spec)
    spec.kwargs = {name: value for name, value in spec.kwargs.items() if name not in OF_VECTORS}
    return spec


def suited_agent(
    env_id: str, wrappers: Sequence[str] = (), options: Mapping[str, Any] | None = None
) -> Literal["neural", "tabular"]:
    """Tabular where the observations can be numbered, else neural."""
    from surefoot.envs.discrete import space_size

    env = made_env(env_id, wrappers, options)
    try:
        space_size(env.observation_space)
    except InputError:
        return "neural"
    finally:
        env.close()
    return "tabular"


def added_wrappers(env: gym.Env[Any, Any]) -> list[str]:
    """What is around it besides what `gymnasium.make` puts there, the outermost first."""
    around = [type(layer) for layer in _layers(env)]
    return [kind.__name__ for kind in around if kind not in OF_MAKE]


def time_limit(env: gym.Env[Any, Any]) -> int | None:
    """The steps after which the wrappers around it end an episode, if they do."""
    limits = [layer.spec for layer in _layers(env) if isinstance(layer, TimeLimit)]
    steps = [spec.max_episode_steps for spec in limits if spec is not None]
    return min((limit for limit in steps if limit is not None), default=None)


def _layers(env: Any) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def env_name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def env_recipe(env: gym.Env[Any, Any] | None) -> dict[str, Any] | None:
    """What `gym.make` needs to make another one, or None where that is not known."""
    spec = None if env is None else single_spec(env)
    if spec is None or spec.additional_wrappers or not _plain(spec.kwargs):
        return None
    if spec.id not in gym.registry:  # `gym.make("module:Name-v0")` finds it by importing
        return None
    return {"id": spec.id, "kwargs": spec.kwargs, "max_episode_steps": spec.max_episode_steps}


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) for k in value) and all(map(_plain, value.values()))
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def env_from_file(about: Mapping[str, Any], path: object) -> gym.Env[Any, Any]:
    """The environment a file names. Only what is registered already: a file imports nothing."""
    recipe = about.get("env")
    if recipe is None:
        raise InputError(f"{path}: does not say how to make its environment: pass env=")
    try:
        name, options, limit = recipe["id"], recipe["kwargs"], recipe["max_episode_steps"]
        if name not in gym.registry or not _plain(options) or not isinstance(options, dict):
            raise InputError(f"{path}: environment {str(name)[:80]!r} is not registered: pass env=")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise TypeError("max_episode_steps is not a whole number")
        return gym.make(name, max_episode_steps=limit, **options)
    except (gym.error.Error, TypeError, KeyError, ValueError, AssertionError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path}: its environment cannot be made ({text})") from None
