"""surefoot's own agents as adapters, for everything that expects SB3's `predict`."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.discrete import decode, encode


class NeuralAdapter:
    """Particles of a `NeuralAgent`."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.observation_space = agent.env.observation_space
        self.action_space = agent.env.action_space

    def is_single(self, obs: Any) -> bool:
        return self.agent.spec.check(obs).ndim == len(self.agent.spec.obs_shape)

    def __call__(self, obs: Any) -> NDArray[np.float32]:
        return self.agent.return_distribution(obs)

    def own_actions(self, indices: Any) -> NDArray[np.int64]:
        return np.asarray(indices, np.int64) + self.agent.spec.action_start


class TabularAdapter:
    """Particles of a `TabularAgent`; a single observation is one that its environment gives."""

    def __init__(self, agent: Any) -> None:
        self.agent, self._read = agent, -1
        if agent.env is None:  # arrays of our own
            states, actions, _ = agent.table.z.shape
            self.observation_space: Any = spaces.Discrete(states)
            self.action_space: Any = spaces.Discrete(actions)
        else:
            self.observation_space = agent.env.env.observation_space
            self.action_space = agent.env.env.action_space

    def is_single(self, obs: Any) -> bool:
        return np.ndim(obs) == 0 or bool(self.observation_space.contains(obs))

    def __call__(self, obs: Any) -> NDArray[np.float32]:
        if self._read != self.agent.num_timesteps:  # from the device once, not at every call
            self._z, self._read = np.asarray(self.agent.table.z), self.agent.num_timesteps
        return self._z[[self._state(one) for one in obs]]

    def _state(self, obs: Any) -> int:
        own = obs.item() if np.ndim(obs) == 0 and hasattr(obs, "item") else obs
        if self.observation_space.contains(own):
            return encode(self.observation_space, own)
        return self.agent._state(own)  # says what is wrong with it

    def own_actions(self, indices: Any) -> NDArray[Any]:
        """In the environment's own words, one row each for actions of several parts."""
        indices = np.asarray(indices)
        own = [decode(self.action_space, int(i)) for i in indices.ravel()]
        made = np.asarray(own)
        return made.reshape(indices.shape + made.shape[1:])
