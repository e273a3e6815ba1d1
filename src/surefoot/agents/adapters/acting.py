"""From a model that predicts return distributions to one that acts on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from surefoot.agents.base import Agent
from surefoot.core.array import largest, refuse_masked
from surefoot.core.evidence import Known, as_counts
from surefoot.envs.masks import checked_masks
from surefoot.errors import InputError, count_at_least
from surefoot.policies import SSD, Decision, Explore, Policy, decide_rows, policy_named, precision

Adapter = Callable[[Any], Any]
"""Observations `[B, ...]` to particles `[B, A, N]`, or to ensembles of them `[B, E, A, N]`."""


def act(
    model: Any,
    policy: Policy | str | None = None,
    *,
    seed: int | None = None,
    observation_space: Any = None,
    particles: int = 200,
) -> Actor:
    """Let `policy` (default `SSD()`) choose the actions by what `model` predicts.

    `model` is an sb3-contrib QRDQN, a tianshou QRDQN, IQN, FQF, C51 or Rainbow, one of surefoot's
    own agents (then its evaluation policy and its seed are the defaults), or any callable from
    observations `[B, ...]` to particles `[B, A, N]`. A list of models, trained alike from
    different seeds or data, is an ensemble, whose spread says how well the means are known. One
    model of another library has no such evidence: `SSD()` refuses it, `SSD(tolerance)` takes it.
    For a callable, `observation_space` tells a single observation from a batch; without it all
    are batches. `particles` is how many IQN, FQF and C51 are read with.
    """
    count_at_least(1, particles=particles)
    if isinstance(model, list | tuple):
        adapter: Adapter = EnsembleAdapter([adapter_for(one, particles) for one in model])
    else:
        adapter = adapter_for(model, particles)
    agent = getattr(adapter, "agent", None)
    if policy is None:
        policy = SSD() if agent is None else agent.config.evaluation
    if seed is None:
        seed = 0 if agent is None else agent.seed
    count_at_least(0, seed=seed)
    chosen = policy_named(policy)
    foreign = adapter is not model and not isinstance(adapter, EnsembleAdapter | AgentAdapter)
    if chosen.needs_evidence and foreign:
        raise InputError(
            f"{type(model).__name__} is one model: it does not say how well its means are known, "
            "so SSD() cannot tell which actions are worth the same. Pass a list of models trained "
            "from different seeds, or a tolerance in units of return: act(model, 'ssd:0.1')"
        )
    return Actor(adapter, chosen, seed, observation_space)


def adapter_for(model: Any, particles: int = 200) -> Adapter:
    """The ready adapter for a model of a known library; any other callable is one already."""
    modules = {base.__module__ for base in type(model).__mro__}
    if any(name.startswith("sb3_contrib.qrdqn") for name in modules):
        from surefoot.agents.adapters.libraries import SB3Adapter

        return SB3Adapter(model)
    if any(name.startswith("tianshou.") for name in modules):
        from surefoot.agents.adapters.libraries import TianshouAdapter

        return TianshouAdapter(model, particles)
    if isinstance(model, Agent):
        return AgentAdapter(model)
    kind = type(model).__name__
    if any(name.startswith(("stable_baselines3.", "sb3_contrib.")) for name in modules):
        raise InputError(f"{kind} has no return distribution: of SB3's, sb3-contrib's QRDQN has")
    if not callable(model):
        raise InputError(
            f"model is a {kind}: pass an sb3-contrib or tianshou model, or a callable from "
            "observations [B, ...] to particles [B, A, N]"
        )
    return model


class AgentAdapter:
    """One of surefoot's own agents, for everything that expects SB3's `predict`."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.observation_space, self.action_space = agent.observation_space, agent.action_space
        self.is_single = agent.is_single

    def __call__(self, obs: Any) -> Any:
        return self.agent.estimates(obs)

    def own_actions(self, actions: Any) -> NDArray[Any]:
        """In the environment's own words, one row each for actions of several parts."""
        return np.asarray(self.agent.own_actions(actions))


class EnsembleAdapter:
    """Several models as one ensemble; what the first says of its spaces holds for all."""

    def __init__(self, adapters: list[Adapter]) -> None:
        if len(adapters) < 2:
            raise InputError(f"a list of {len(adapters)} models: an ensemble needs at least two")
        self.adapters = adapters
        for name in ("observation_space", "action_space", "is_single", "own_actions"):
            if hasattr(adapters[0], name):
                setattr(self, name, getattr(adapters[0], name))

    def __call__(self, obs: Any) -> NDArray[np.floating[Any]]:
        parts = [_numpy(_point(adapter(obs))) for adapter in self.adapters]
        shapes = sorted({part.shape for part in parts})
        if len(shapes) > 1:
            raise InputError(f"the models disagree on the shape of particles: {shapes}")
        return np.stack(parts, axis=1)


def _point(made: Any) -> Any:
    """Particles `[B, A, N]` of what an adapter made."""
    z = made[0] if isinstance(made, tuple) else made
    return z.mean(axis=1) if np.ndim(z) == 4 else z


def _numpy(z: Any) -> NDArray[np.floating[Any]]:
    return np.asarray(z.detach().cpu() if hasattr(z, "detach") else z)


class Actor:
    """A model and a policy that acts on it, with SB3's `predict`; made by `act`."""

    def __init__(
        self, adapter: Adapter, policy: Policy, seed: int = 0, observation_space: Any = None
    ) -> None:
        self.adapter, self.policy = adapter, policy
        space = getattr(adapter, "observation_space", None)
        self.observation_space = space if observation_space is None else observation_space
        self.action_space = getattr(adapter, "action_space", None)
        self._key, self._calls = jax.random.key(seed), 0

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[NDArray[np.int64], Any]:
        """The action for one observation or a batch, and the `state` that came in (unused).

        With `deterministic` nothing is explored and equal observations get equal actions;
        without, ties are drawn anew at every call, reproducibly from the seed.
        """
        decision = self.decide(observation, deterministic=deterministic, action_masks=action_masks)
        chosen = np.asarray(decision.action, dtype=np.int64)
        own = getattr(self.adapter, "own_actions", None)  # counted from 0 unless it knows better
        return (chosen if own is None else own(chosen)), state

    def decide(
        self, observation: Any, *, deterministic: bool = True, action_masks: Any = None
    ) -> Decision:
        """The action with who decided, the ties, the candidates, the margin, the violations."""
        z, n, single = self._estimates(observation)
        masks = self._masks(action_masks, (len(z), z.shape[-2]))
        policy = self.policy
        if deterministic:  # without exploration, as for SB3's own models
            policy = policy.policy if isinstance(policy, Explore) else policy
            keys = jnp.broadcast_to(self._key, (len(z),))  # the same for every row
        else:
            keys = jax.random.split(jax.random.fold_in(self._key, self._calls), len(z))
            self._calls += 1
        with precision(z):
            decision = decide_rows(policy, z, keys, masks, n)
        return jax.tree.map(
            lambda leaf: np.asarray(leaf)[0] if single else np.asarray(leaf), decision
        )

    def return_distribution(self, observation: Any) -> NDArray[np.floating[Any]]:
        """Ascending particles `[A, N]` of one observation, `[B, A, N]` of a batch."""
        z, _, single = self._estimates(observation)
        z = _point(z)
        return z[0] if single else z

    def _estimates(
        self, observation: Any
    ) -> tuple[NDArray[np.floating[Any]], jax.Array | Known | None, bool]:
        """Ascending particles `[B, A, N]` or an ensemble `[B, E, A, N]`, the observations behind
        them if that is known, and whether it is a single one."""
        single = self._is_single(observation)
        made = self.adapter(_add_axis(observation) if single else observation)
        if isinstance(made, tuple) and len(made) != 2:
            raise InputError(f"the model returned {len(made)} parts: particles, or these and n")
        made, n = made if isinstance(made, tuple) else (made, None)
        refuse_masked(made, "what the model returned")
        z = _numpy(made)
        if z.dtype.kind not in "biuf":
            raise InputError(f"the model returned {z.dtype}: real numbers are needed")
        if z.ndim not in (3, 4) or 0 in z.shape or (single and len(z) != 1):
            raise InputError(
                f"the model returned particles of shape {z.shape}"
                f"{' for one observation' if single else ''}: they must be [B, A, N], or "
                "[B, E, A, N] for an ensemble"
            )
        if not np.isfinite(z).all():
            bad = tuple(int(i) for i in np.argwhere(~np.isfinite(z))[0])
            raise InputError(f"the model returned a particle that is not finite, at {bad}")
        wide = np.promote_types(z.dtype, np.float32)  # in which halves are calculated
        if np.abs(z).max() > largest(np, wide, z.shape[-1]):
            raise InputError("the model returned particles that are too large to be added up")
        n = None if n is None else as_counts(n, (len(z), z.shape[-2]))
        return np.sort(z, axis=-1), n, single

    def _is_single(self, observation: Any) -> bool:
        own = getattr(self.adapter, "is_single", None)
        if own is not None:
            return bool(own(observation))
        return self.observation_space is not None and _is_single(
            self.observation_space, observation, "observation"
        )

    def _masks(self, masks: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        if masks is None:
            return np.ones(shape, bool)
        return checked_masks(masks, shape)


def _add_axis(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {key: _add_axis(value) for key, value in observation.items()}
    return np.asarray(observation)[None]


def _is_single(space: Any, observation: Any, name: str) -> bool:
    """Whether the observation has the shape of the space, or a batch axis before it."""
    if hasattr(space, "spaces") and isinstance(space.spaces, Mapping):
        if not isinstance(observation, Mapping) or set(observation) != set(space.spaces):
            raise InputError(f"{name} must be a dict with the keys {', '.join(space.spaces)}")
        answers = {
            _is_single(inner, observation[key], f"{name}[{key!r}]")
            for key, inner in space.spaces.items()
        }
        if len(answers) > 1:
            raise InputError(f"{name}: some of its parts are batched and some are not")
        return answers.pop()
    shape, own = space.shape, np.shape(observation)
    if shape is None:
        raise InputError(f"{name}: a {type(space).__name__} space has no shape to tell a batch by")
    if own == shape:
        return True
    if own[1:] == shape and len(own) == len(shape) + 1:
        return False
    raise InputError(f"{name} has shape {own}: the space has {shape}, a batch [B, *{shape}]")
