"""`NeuralAgent`: train on a Gymnasium environment, act, look at return distributions.

agent = NeuralAgent("CartPole-v1", seed=0)
agent.learn(50_000, progress=True)
action = agent.predict(obs)
z = agent.return_distribution(obs)   # ascending particles [A, N]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv

from surefoot.agents.base import Agent
from surefoot.agents.neural.compiled_loop import CompiledNetwork, compiled_rollouts
from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.lanes import SteppedLanes
from surefoot.agents.neural.loop import (
    RunState,
    SteppedNetwork,
    acting,
    fresh_state,
    size_of,
    state_shapes,
    to_device,
)
from surefoot.agents.neural.network import given_network
from surefoot.agents.neural.replay import with_masks
from surefoot.agents.neural.spaces import Spec, spec_of
from surefoot.agents.neural.step import Networks
from surefoot.agents.neural.step import compiled as compiled_calls
from surefoot.agents.saving import LAYOUT, AgentFile, check_finite
from surefoot.agents.scale import initial_scale
from surefoot.envs.classic import EnvState, PureEnv, pure_env_of
from surefoot.envs.faults import Fault, TrainingEnv
from surefoot.envs.lanes import Lanes, VectorLanes, lanes_of
from surefoot.errors import InputError, at_least, check_episodes, must_fit
from surefoot.policies import Decision
from surefoot.runs.format import count, from_named, named
from surefoot.runs.logs import Finished


class _Learned(NamedTuple):
    """What a saved agent holds."""

    params: Any
    opt_state: Any
    target_params: Any
    scale: Any
    average: Any


class _Recipe(NamedTuple):
    """What an agent of a file is built from."""

    env: gym.Env[Any, Any]
    config: NeuralConfig
    seed: int
    compiled: bool
    remake: Any  # makes another environment
    like: RunState  # shapes of the run
    network: Any  # the caller's own layers
    eval_env: Any


class NeuralAgent(Agent):
    """Learns return distributions with a network and acts on them by any policy."""

    kind = "neural"
    config_type = NeuralConfig
    episode_columns = ("step", "episode", "return", *Finished._fields[3:])

    def __init__(
        self,
        env: str | gym.Env[Any, Any] | VectorEnv[Any, Any, Any] | Callable[[], gym.Env[Any, Any]],
        config: NeuralConfig | None = None,
        *,
        seed: int = 0,
        compiled: bool = False,
        eval_env: str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | None = None,
        network: Any = None,
        **options: Any,
    ) -> None:
        """`env` is a Gymnasium environment, its id or a function that makes one, or a VectorEnv;
        `options` are fields of `NeuralConfig`, such as `n_envs=8`.

        `compiled=True` runs the environment inside the compiled loop (CartPole-v1, MountainCar-v0
        and what has a `pure` function of its own, as the suite's tasks have). `eval_env` serves
        `evaluate`; one more is made of `env` if not given. `network` is the widths of the hidden
        layers, or layers of your own below the last one: a pure function
        `(parameters, x[B, ...]) -> features [B, F]`, and its initial parameters.
        """
        body, own, options = given_network(network, options)
        if isinstance(env, VectorEnv):
            if env.num_envs == 1:
                raise InputError("env: a VectorEnv of one environment: pass that one, or its id")
            options = options | {"n_envs": int(env.num_envs)}
        super().__init__(env, config, seed=seed, eval_env=eval_env, **options)
        self._training_env = self._open(env)
        self.spec: Spec = spec_of(self._training_env.env, body)
        self.pure: PureEnv | None = pure_env_of(self._training_env.env) if compiled else None
        self._calls = compiled_calls(self.config, self.spec)
        self._before_loading = 0
        self._evaluates_inside = self.pure is not None and eval_env is None
        self._check_eval_env()
        self._learner: SteppedNetwork | SteppedLanes | CompiledNetwork
        must_fit(size_of(state_shapes(self.config, self.spec, own)), "the network with its replay")
        batch = self.config.batch_size
        must_fit(batch * self._widest, f"batch_size = {batch}: a batch")
        state = fresh_state(self.config, self.spec, seed, own)
        if self.pure is not None:
            self._learner = CompiledNetwork(self.config, self.spec, self.pure, state)
        elif isinstance(self._training_env, Lanes | VectorLanes):
            self._learner = SteppedLanes(self.config, self.spec, self._training_env, state)
        else:
            self._learner = SteppedNetwork(self.config, self.spec, self._training_env, state)

    def _open(self, env: Any) -> TrainingEnv:
        if isinstance(env, VectorEnv):
            return VectorLanes(env, self.seed)
        first, n = super()._open(env), self.config.n_envs
        return first if n == 1 else lanes_of(first, n, self.seed)

    # --- what it is --------------------------------------------------------------------

    @property
    def observation_space(self) -> gym.Space[Any]:
        env: Any = self.env
        return env.single_observation_space if isinstance(env, VectorEnv) else env.observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        env: Any = self.env
        return env.single_action_space if isinstance(env, VectorEnv) else env.action_space

    @property
    def num_timesteps(self) -> int:
        return self._before_loading + int(self._learner.state.carry.steps) - self._voids

    @property
    def _voids(self) -> int:
        """Rows of the replay that are no steps."""
        return self._learner.voids if isinstance(self._learner, SteppedLanes) else 0

    @property
    def _together(self) -> int:
        return self.config.n_envs

    @property
    def at_boundary(self) -> bool:
        return self._learner.at_boundary

    @property
    def params(self) -> Any:
        """The network's parameters, as copies."""
        return _copy(self._learner.state.carry.params)

    @property
    def state(self) -> RunState:
        """All the run is made of as NumPy arrays (copies), but for a Gymnasium environment."""
        return _copy(self._learner.state)

    # --- learning ------------------------------------------------------------------------

    def _advance(self, steps: int) -> list[Finished]:
        try:
            return self._since_the_start(self._learner.advance(steps))
        except Fault as fault:
            if fault.step is not None:
                fault.step += self._before_loading
            fault.ended = self._since_the_start(fault.ended)
            raise

    def _cut(self) -> list[Finished]:
        assert not isinstance(self._learner, CompiledNetwork)  # these have no faults to pass
        return self._since_the_start(self._learner.cut())

    def _since_the_start(self, episodes: Any) -> list[Finished]:
        """Steps before the agent was saved and loaded count too."""
        return [e._replace(step=e.step + self._before_loading) for e in episodes]

    def _episode_row(self, episode: Finished) -> tuple[Any, ...]:
        # As short as they are exact, and none as polars and pandas know it for a number.
        said = ("NaN" if np.isnan(value) else np.float32(value) for value in episode[4:])
        return (*episode[:4], *said)

    # --- acting --------------------------------------------------------------------------

    def own_actions(self, actions: Any) -> Any:
        if self.spec.choices is not None:
            each = [self.spec.own_action(int(action)) for action in np.ravel(actions)]
            return each[0] if np.ndim(actions) == 0 else np.asarray(each)
        own = np.asarray(actions, np.int64) + self.spec.action_start
        return int(own) if own.ndim == 0 else own

    def _rows(self, obs: Any) -> tuple[np.ndarray, bool]:
        array = self.spec.check(obs)
        single = array.ndim == len(self.spec.obs_shape)
        return (array[None] if single else array), single

    def _estimates(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        known = acting(self.config, self._learner.state)
        return np.array(self._calls.estimates(*known, rows)), None

    def _decide(self, rows: np.ndarray, deterministic: bool, masks: Any) -> Decision:
        state = self._learner.state
        if deterministic:
            known = acting(self.config, state)
            return self._calls.decide(*known, rows, self._tie_key, masks)
        # The clock of training, which begins anew when an agent is loaded.
        known, steps = (state.carry.params, state.carry.scale), np.int32(state.carry.steps)
        return self._calls.behave(*known, rows, self._draw_key(), steps, masks)

    def _ties(self, row: Any) -> jax.Array:
        return self._tie_key

    @property
    def _widest(self) -> int:
        """Numbers of the widest layer for one observation."""
        return max((*self.config.hidden, self.config.particles * self.spec.num_actions))

    def evaluate(self, episodes: int = 10, *, seed: int | None = None) -> np.ndarray:
        if self.pure is None or not self._evaluates_inside:
            return super().evaluate(episodes, seed=seed)
        check_episodes(1, self._widest, episodes=episodes)  # all side by side
        seed = self.seed + 10_000 if seed is None else seed
        at_least(0, seed=seed)
        key = jax.random.key(seed)
        run = compiled_rollouts(self.config, self.spec, self.pure, episodes)
        return np.asarray(run(*acting(self.config, self._learner.state), key), np.float64)

    # --- files ---------------------------------------------------------------------------

    @property
    def _stepped(self) -> TrainingEnv | None:
        return None if self.pure is not None else self._training_env

    @property
    def _earlier(self) -> int:
        return self._before_loading

    def _about(self) -> dict[str, Any]:
        masked = not isinstance(self._learner.state.carry.replay.masks, tuple)
        about = {"compiled": self.pure is not None, "masked": masked, "voids": self._voids}
        return super()._about() | about

    def _learned(self) -> dict[str, Any]:
        learned = _learned(self._learner.state)
        if learned.average:  # what decides, also where no average was taken yet
            learned = learned._replace(average=acting(self.config, self._learner.state)[0])
        return named(learned, "agent")

    def _tree(self) -> Any:
        return self._learner.state

    def _more_arrays(self) -> dict[str, np.ndarray]:
        return self._learner.arrays() if isinstance(self._learner, SteppedLanes) else {}

    @classmethod
    def from_file(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        path, arrays, about = file
        if about.get("layout") != LAYOUT and isinstance(about.get("config"), dict):
            # 0.1 had neither an ensemble nor a unit of its own.
            config = about["config"] | {"ensemble": 0, "averaging": 0, "reward_scale": 1.0}
            file = AgentFile(path, arrays, about | {"config": config})
            arrays = arrays | named(_host(initial_scale(1.0)), "agent.scale")
        recipe = cls._checked(file, env, options)
        like = recipe.like
        model = _learned(like)
        learned = from_named(model, arrays, "agent", path)
        check_finite(named(learned, "agent"), path)
        agent = cls._built(recipe)
        agent._before_loading = count(about, "num_timesteps", path)
        own = partial(jnp.array, copy=True)
        params, opt_state, target, scale, average = jax.tree.map(own, tuple(learned))
        state = agent._learner.state
        # Other draws than those of the run that was saved, from the same seed.
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), agent._before_loading)
        agent._learner.state = state._replace(
            carry=state.carry._replace(params=params, opt_state=opt_state, scale=scale),
            networks=Networks(target, average),
            key=jax.random.key_data(key),
        )
        return agent

    @classmethod
    def _restored(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> Self:
        path, arrays, about = file
        recipe = cls._checked(file, env, options)
        like = recipe.like
        if about.get("masked"):
            replay = with_masks(like.carry.replay, spec_of(recipe.env))
            like = like._replace(carry=like.carry._replace(replay=replay))
        if "run.env.x" in arrays:
            lanes = np.shape(like.action)
            noise = np.zeros((*lanes, 2), np.uint32) if "run.env.noise" in arrays else ()
            inside: Any = EnvState(like.obs, np.zeros(lanes, np.int32)[()], noise)  # type: ignore[arg-type]
            like = like._replace(env=inside)
        state: RunState = from_named(like, arrays, "run", path)
        check_finite(named((state.carry.params, state.networks), "run.params"), path)
        agent = cls._built(recipe)
        agent._learner.state = to_device(state)
        if isinstance(agent._learner, SteppedLanes):
            agent._learner.restore(arrays, path)
            agent._learner.voids = count({"voids": 0} | about, "voids", path)
        agent._before_loading = count(about, "earlier", path)
        return agent

    @classmethod
    def _checked(cls, file: AgentFile, env: Any, options: dict[str, Any]) -> _Recipe:
        """How to build the agent of a file, and the shapes of its run: nothing is allocated yet."""
        network, eval_env = options.pop("network", None), options.pop("eval_env", None)
        body, own, options = given_network(network, options)
        config, seed = cls._settings(file, options)
        inside = file.about.get("compiled")
        if not isinstance(inside, bool):
            text = str(inside)[:80]
            raise InputError(f"{file.path}: compiled = {text}, it must be true or false")
        env, remake = cls._env_of(file, env)
        try:
            like = state_shapes(config, spec_of(env, body), own)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{file.path}: its settings make no sense ({error})") from None
        must_fit(size_of(like), f"{file.path}: the network with its replay")
        return _Recipe(env, config, seed, inside, remake, like, network, eval_env)

    @classmethod
    def _built(cls, recipe: _Recipe) -> Self:
        several = recipe.config.n_envs > 1 and recipe.remake is not None
        agent = cls(
            recipe.remake if several else recipe.env,
            recipe.config,
            seed=recipe.seed,
            compiled=recipe.compiled,
            network=recipe.network,
            eval_env=recipe.eval_env,
        )
        assert agent._training_env is not None
        agent._training_env.remake = recipe.remake
        return agent

    def _begin_again(self) -> bool:
        assert not isinstance(self._learner, CompiledNetwork)
        return self._learner.begin_again()


def _learned(state: RunState) -> _Learned:
    carry, networks = state.carry, state.networks
    return _Learned(carry.params, carry.opt_state, networks.target, carry.scale, networks.average)


def _copy(tree: Any) -> Any:
    """NumPy copies: training donates the originals and writes over them."""
    return jax.tree.map(lambda leaf: np.array(leaf, copy=True), tree)


def _host(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)
