"""Learning in an environment that is stepped through Gymnasium's API."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from surefoot.agents.tabular.algorithm import Table, Transition, behave, update
from surefoot.agents.tabular.config import TabularConfig
from surefoot.agents.tabular.training import COUNTS
from surefoot.envs.faults import Fault, FaultPolicy, Stage, env_name, limited
from surefoot.runs.session import Session

if TYPE_CHECKING:
    from surefoot.agents.tabular.agent import TabularAgent


@dataclass
class Walk:
    """Where a run is in its environment."""

    begun: bool
    state: int
    action: jax.Array  # int32: chosen and not yet taken
    clock: int  # steps in this episode
    number: int  # of this episode
    tally: np.ndarray  # [F] counts of this episode

    @classmethod
    def fresh(cls, number: int = 0) -> Walk:
        tally = np.zeros(len(COUNTS), np.float32)
        return cls(False, 0, jnp.zeros((), jnp.int32), 0, number, tally)


def walk(agent: TabularAgent, steps: int, session: Session, policy: FaultPolicy) -> None:
    """Up to `steps` steps, over the faults that the policy lets pass; fewer if the run has to
    pause where an episode ends."""
    stage = agent._stage
    assert stage is not None
    last = agent.num_timesteps + steps
    while agent.num_timesteps < last:
        try:
            if _stretch(agent, stage, last, session, policy.step_timeout):
                break
        except Fault as fault:
            _handle(agent, stage, fault, session, policy)
    if not np.isfinite(agent._table.z).all():
        raise Fault(f"{_where(agent)}an estimate is no longer finite", lasting=True)


def _stretch(
    agent: TabularAgent, stage: Stage, last: int, session: Session, timeout: float | None
) -> bool:
    """Steps until `last`; True if it paused before. A failed step changes nothing."""
    config, here = agent.config, agent._walk
    fresh, follow = _compiled(config)
    step: Callable[[Any], Any] = stage.env.step
    start, reset = stage.start, stage.reset
    if timeout is not None:
        step, start, reset = (limited(call, timeout) for call in (step, start, reset))
    try:
        if not here.begun:
            state = start(here.number)
            agent._key, key = jax.random.split(agent._key)
            here.state, here.action = state, fresh(agent._table, state, key)
            here.begun = True
        while agent.num_timesteps < last:
            obs, reward, terminated, truncated, _ = step(int(here.action))
            if not np.isfinite(reward):
                raise Fault(f"state {here.state}, the environment gave the reward {reward}")
            over = terminated or truncated or here.clock + 1 >= config.horizon
            begin = reset(here.number + 1) if over else obs
            discount = config.gamma * (1.0 - terminated)
            agent._key, key = jax.random.split(agent._key)
            seen = (here.state, here.action, reward, discount, obs, begin, over)
            agent._table, here.action = follow(agent._table, *seen, key)
            here.tally[:3] += reward, 1, terminated
            here.clock, here.state = here.clock + 1, begin
            agent.num_timesteps += 1
            if over:
                agent._finished(here.tally[None])
                here.tally[:], here.clock, here.number = 0, 0, here.number + 1
                if stage.reseeds and session.wants_boundary():
                    return True
    except Exception as error:
        raise _named(error, agent) from error
    return False


def _handle(
    agent: TabularAgent, stage: Stage, fault: Fault, session: Session, policy: FaultPolicy
) -> None:
    """Go on with a new episode, or stop with everything from before the fault kept."""
    broken = agent._walk
    if broken.clock > 0:
        agent._finished(broken.tally[None])
    agent._walk = Walk.fresh(broken.number + 1)
    if session.retried >= policy.retries:
        if session.checkpoints is not None:
            session.checkpoints.save(agent)
        raise fault
    session.retried += 1
    agent.faults.append(str(fault))
    warnings.warn(f"{fault}; retry {session.retried} of {policy.retries}", stacklevel=2)
    stage.renew()


def _named(error: Exception, agent: TabularAgent) -> Fault:
    where = _where(agent)
    if isinstance(error, Fault):
        return Fault(where + str(error))
    text = " ".join(str(error).split())
    return Fault(f"{where}the environment raised {type(error).__name__}: {text}")


def _where(agent: TabularAgent) -> str:
    return f"{env_name(agent.env)}, seed {agent.seed}, step {agent.num_timesteps + 1}: "


@lru_cache(maxsize=32)
def _compiled(config: TabularConfig) -> tuple[Any, Any]:
    follow = jax.jit(partial(_follow, config), donate_argnums=(0,))
    return jax.jit(partial(_act, config)), follow


def _act(config: TabularConfig, table: Table, state: Any, key: jax.Array) -> jax.Array:
    return behave(config)(table.z[state], key, assume_sorted=True)


def _follow(
    config: TabularConfig,
    table: Table,
    state: Any,
    action: Any,
    reward: Any,
    discount: Any,
    obs: Any,
    start: Any,
    over: Any,
    key: jax.Array,
) -> tuple[Table, jax.Array]:
    """Learn from one transition and choose the next action, in one compiled call."""
    key_act, key_target = jax.random.split(key)
    taken = _act(config, table, obs, key_act) if config.on_policy else action
    seen = Transition(state, action, jnp.float32(reward), jnp.float32(discount), obs, taken)
    table = update(config, table, seen, None, key_target, jnp.asarray(True))
    action = _act(config, table, start, key_act)
    if config.on_policy:
        action = jnp.where(over, action, taken)
    return table, action
