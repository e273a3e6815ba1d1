"""What the file of a tabular agent holds: checked, and of 0.1.0 put into the words of today."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.saving import LAYOUT, AgentFile, check_finite
from surefoot.agents.scale import initial_scale
from surefoot.agents.tabular.algorithm import Table, evidence, target_actions
from surefoot.agents.tabular.config import TabularConfig
from surefoot.core.names import NAMED_LOSSES
from surefoot.envs import TabularMDP
from surefoot.errors import InputError
from surefoot.runs.format import named


def check_table(file: AgentFile, config: TabularConfig, prefix: str) -> None:
    """Refuse a table that is missing, of another size than the settings say, or not finite."""
    path, arrays, _ = file
    z, memory = (arrays.get(f"{prefix}.{name}") for name in ("z", "memory.reward"))
    if z is None or memory is None:
        raise InputError(f"{path}: its table is missing")
    if z.shape[-1:] != (config.particles,) or memory.shape[-1:] != (config.pooled,):
        raise InputError(f"{path}: its table does not fit its settings")
    read = {f"{prefix}.{name}" for name in ("z", "memory.reward", "outcomes.reward")}
    check_finite({name: arrays[name] for name in sorted(read & set(arrays))}, path)


def stored_mask(mask: np.ndarray | None, table: Table, path: object) -> np.ndarray:
    """The legal actions `[S, A]` as far as the environment had shown them."""
    if mask is None or mask.shape != table.visits.shape or mask.dtype != bool:
        raise InputError(f"{path}: its mask does not fit its table")
    return mask


def digest(mdp: TabularMDP | None) -> str | None:
    """The process a run was compiled for."""
    if mdp is None:
        return None
    made = hashlib.sha256()
    for name, leaf in named(mdp, "mdp").items():
        array = np.asarray(leaf)
        made.update(f"{name} {array.dtype} {array.shape} ".encode())
        made.update(np.ascontiguousarray(array).tobytes())
    made.update(repr(mdp.reward_clip).encode())
    return made.hexdigest()


# --- files of 0.1.0 ----------------------------------------------------------------------


def as_now(file: AgentFile, options: dict[str, Any]) -> AgentFile:
    """A file of 0.1.0 with the settings and the unit of rewards that this version asks for."""
    path, arrays, about = file
    if about.get("layout") == LAYOUT or not isinstance(about.get("config"), dict):
        return file
    unit = jax.tree.map(np.asarray, initial_scale(options.get("reward_scale", 1.0)))
    config = _settings_as_now(about["config"])
    return AgentFile(path, arrays | named(unit, "table.scale"), about | {"config": config})


def _settings_as_now(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of 0.1.0, where `wgf` was any proximal step and exact by default."""
    operator = config.get("potential"), config.get("transport")
    config = config | {"reward_scale": 1.0}
    names: dict[Any, str] = {pair: name for name, pair in NAMED_LOSSES.items()}
    if config.get("loss") != "wgf":
        return config | {"potential": None, "transport": None}
    try:
        return config | {"loss": names[operator], "potential": None, "transport": None}
    except (KeyError, TypeError):  # a pair that has no name, or nonsense
        return config


def with_target_actions(
    config: TabularConfig, table: Table, mask: jax.Array | None, seed: int
) -> Table:
    """Line 7 of Algorithm 1 where 0.1.0 had not been: it wrote action 0 there."""
    choose = jax.jit(target_actions, static_argnums=0)
    best = choose(config, table.z, evidence(config, table), jax.random.key(seed), mask)
    been = table.visits.any(axis=-1)
    return table._replace(target_action=jnp.where(been, table.target_action, best))
