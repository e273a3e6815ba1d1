"""The tasks of the risk suite that need a network: compiled functions, and the same in Gymnasium.

`TwoRoads`: a point goes to the right-hand side, straight through a field of noisy rewards or around
it, which takes three steps more. `NoisyCartPole`: balancing pays 1 a step; left of x = -0.1 it pays
1 + U[-6, 6]. Both know the three questions of `envs.risk`; their answer is known in closed form,
because the noise moves nothing but the rewards. `MeanReversion` is the trading task of QR-SRM
(Moghimi and Ku, arXiv 2501.02087, after Coache and Jaimungal): an Ornstein-Uhlenbeck price, 21
trades from -2 to 2, no tie by construction. Its numbers are those of the authors' code as far as
that is public (the paper's text was not at hand); `best_trading` solves it on a grid.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from surefoot.envs.classic import CartPole, EnvState, Moved, RandomEnv
from surefoot.envs.drawing import draw_plane
from surefoot.envs.risk import PRICE, QUESTIONS, TRAP, positive
from surefoot.errors import InputError, unknown

ANY = 3.4e38  # what float32 can hold


class Picture(NamedTuple):
    words: str
    point: tuple[float, float]  # of the unit square
    noisy: tuple[float, float, float, float] | None = None  # left, right, low, high of it
    pole: float | None = None  # on the point, and how far it leans to the right


@dataclass(frozen=True)
class NoisyEnv(RandomEnv):
    """A task with noisy places, and what is asked there."""

    question: str = "tie"
    price: float = PRICE
    questions: ClassVar[tuple[str, ...]] = QUESTIONS
    bounds: ClassVar[tuple[tuple[float, float], ...]]
    """Lowest and highest of each number that is seen."""

    def __post_init__(self) -> None:
        if self.question not in self.questions:
            raise unknown("question", self.question, self.questions)
        for name in ("price", "scale", "sigma"):
            if hasattr(self, name):
                positive(name, getattr(self, name))

    @property
    def lead(self) -> float:
        """By how many deviations of its return the risky way is better."""
        return {"tie": 0.0, "price": self.price, "trap": -TRAP}[self.question]

    @abstractmethod
    def at_risk(self, x: Any) -> Any:
        """Whether acting here pays a noisy reward."""

    @abstractmethod
    def picture(self, x: np.ndarray) -> Picture:
        """What is seen, to look at."""


@dataclass(frozen=True)
class TwoRoads(NoisyEnv):
    """Right, up or down by 0.1, from near the origin to x = 1.

    Every step costs 0.1. In the field 0.2 <= x < 0.8, y < 0.25 it costs 0.15 and N(0, sigma^2)
    comes on top: straight through are 10 steps, 6 of them there, 1.3 in all; around it 13 steps,
    1.3 too. (Starts lie in a square of side 0.04; from its left half both roads have a step more.)
    """

    env_id: str = "surefoot/TwoRoads-v0"
    num_actions: int = 3
    obs_size: int = 2
    time_limit: int = 60
    sigma: float = 0.4
    bounds: ClassVar[tuple[tuple[float, float], ...]] = ((-0.1, 1.2), (-0.2, 0.6))

    @property
    def deviation(self) -> float:
        """Of the return straight through."""
        return self.sigma * math.sqrt(6)

    @property
    def best_mean(self) -> float:
        """Half of the starts need one step more."""
        return self.scale * (-1.35 + max(0.0, self.lead) * self.deviation)

    def draw_start(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (2,), minval=-0.02, maxval=0.02)

    def at_risk(self, x: Any) -> Any:
        return (x[..., 0] >= 0.2) & (x[..., 0] < 0.8) & (x[..., 1] < 0.25)

    def moved(self, x: jax.Array, action: jax.Array, noise: Any) -> Moved:
        risk = self.at_risk(x)
        in_field = -0.15 + self.lead * self.deviation / 6 + self.sigma * noise
        new = x + 0.1 * jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])[action]
        new = jnp.stack([new[0], jnp.clip(new[1], -0.1, 0.5)])
        return new, jnp.where(risk, in_field, -0.1), new[0] >= 1.0

    def picture(self, x: np.ndarray) -> Picture:
        point = (x[0] + 0.1) / 1.3, (x[1] + 0.2) / 0.8
        where = "in the noisy field" if bool(self.at_risk(x)) else "outside the noisy field"
        field = 0.3 / 1.3, 0.9 / 1.3, 0.0, 0.45 / 0.8
        return Picture(f"x {x[0]:.2f}, y {x[1]:.2f}, {where}", point, field)


@dataclass(frozen=True)
class NoisyCartPole(NoisyEnv):
    """CartPole whose reward is 1 + U[-6, 6] where x < -0.1; by question it is better or worse
    there, by `price` or `TRAP` deviations of the return of an episode spent there."""

    env_id: str = "surefoot/NoisyCartPole-v0"
    num_actions: int = 2
    obs_size: int = 4
    time_limit: int = 500
    bounds: ClassVar[tuple[tuple[float, float], ...]] = (
        (-4.8, 4.8), (-ANY, ANY), (-0.42, 0.42), (-ANY, ANY),
    )  # fmt: skip

    @property
    def bonus(self) -> float:
        return self.lead * self.deviation / self.time_limit

    @property
    def deviation(self) -> float:
        """Of the return of 500 steps in the region."""
        return 6 / math.sqrt(3) * math.sqrt(self.time_limit)

    @property
    def best_mean(self) -> float:
        """Where the region pays more it has to be reached first: the best linear rule known spends
        472 of the 500 steps there (4,000 episodes, error 0.5; the test has it)."""
        return self.scale * (self.time_limit + 472 * max(0.0, self.bonus))

    def draw_start(self, key: jax.Array) -> jax.Array:
        return CartPole().draw_start(key)

    def draw(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, minval=-6.0, maxval=6.0)

    def at_risk(self, x: Any) -> Any:
        return x[..., 0] < -0.1

    def moved(self, x: jax.Array, action: jax.Array, noise: Any) -> Moved:
        new, reward, fallen = CartPole().move(x, action)
        return new, reward + jnp.where(self.at_risk(x), self.bonus + noise, 0.0), fallen

    def picture(self, x: np.ndarray) -> Picture:
        where = "noisy" if bool(self.at_risk(x)) else "calm"
        words = f"x {x[0]:.2f}, angle {x[2]:.2f}, {where}"
        return Picture(words, ((x[0] + 2.4) / 4.8, 0.3), (0.0, 2.3 / 4.8, 0.0, 1.0), float(x[2]))


@dataclass(frozen=True)
class MeanReversion(NoisyEnv):
    """Ten trades in an asset whose price S reverts to 1; what is left at the end is sold.

    dS = 2 (1 - S) dt + sigma dW over one unit of time. A trade u of -2, -1.8, ..., 2 pays
    -S u - 0.005 u^2, the end q S - 0.5 q^2 for the holding q. Seen are S, q and the time.
    """

    env_id: str = "surefoot/MeanReversion-v0"
    num_actions: int = 21
    obs_size: int = 3
    time_limit: int = 1000  # never reached: an episode ends after ten trades
    sigma: float = 1.0
    questions: ClassVar[tuple[str, ...]] = ("tie",)
    bounds: ClassVar[tuple[tuple[float, float], ...]] = ((-ANY, ANY), (-20.0, 20.0), (0.0, 1.0))
    speed: ClassVar[float] = 2.0
    trades: ClassVar[int] = 10

    @property
    def keeps(self) -> float:
        """What is left after a step of a distance from 1."""
        return math.exp(-self.speed / self.trades)

    @property
    def jitter(self) -> float:
        """Deviation of the price after a step."""
        return self.sigma * math.sqrt((1 - self.keeps**2) / (2 * self.speed))

    def draw_start(self, key: jax.Array) -> jax.Array:
        return jnp.array([1.0, 0.0, 0.0])

    def at_risk(self, x: Any) -> Any:
        return jnp.abs(x[..., 1]) > 1e-3  # something is held

    def moved(self, x: jax.Array, action: jax.Array, noise: Any) -> Moved:
        price, held, time = x
        trade = (action - 10) / 5.0
        reward = -price * trade - 0.005 * trade**2
        price = 1.0 + (price - 1.0) * self.keeps + self.jitter * noise
        held, time = held + trade, time + 1.0 / self.trades
        over = time > 1 - 0.5 / self.trades
        end = held * price - 0.5 * held**2
        return jnp.stack([price, held, time]), reward + jnp.where(over, end, 0.0), over

    def picture(self, x: np.ndarray) -> Picture:
        point = min(max((x[0] + 1) / 4, 0.0), 1.0), (x[1] + 20) / 40
        return Picture(f"price {x[0]:.2f}, holding {x[1]:.1f}, time {x[2]:.1f}", point)


class BestTrading(NamedTuple):
    """The risk-neutral answer to `MeanReversion`."""

    mean: float
    actions: np.ndarray  # [trades, prices, 201] by time, price and holding (-20, -19.8, ..., 20)
    prices: np.ndarray


def best_trading(env: MeanReversion, points: int = 641, nodes: int = 16) -> BestTrading:
    """The best mean return of `MeanReversion`, by dynamic programming on a grid of prices.

    Holdings lie on a lattice of step 0.2, so only the price is interpolated; the expectation over
    the next price is Gauss-Hermite's.
    """
    at, weight = np.polynomial.hermite_e.hermegauss(nodes)
    price = 1 + np.linspace(-6, 6, points) * env.sigma / math.sqrt(2 * env.speed)
    after = 1 + (price[:, None] - 1) * env.keeps + env.jitter * at  # [P, nodes]
    held = np.arange(-100, 101) / 5.0
    value = held * price[:, None] - 0.5 * held**2  # [P, Q], at the end
    actions = []
    for _ in range(env.trades):
        mean = np.stack(
            [np.interp(after, price, column) @ weight / weight.sum() for column in value.T], axis=1
        )
        options = [
            np.roll(mean, -shift, axis=1) - price[:, None] * shift / 5 - 0.005 * (shift / 5) ** 2
            for shift in range(-10, 11)
        ]
        value = np.max(options, axis=0)
        actions.append(np.argmax(options, axis=0))
    best = env.scale * float(value[points // 2, 100])
    return BestTrading(best, np.stack(actions[::-1]), price)


NETWORK_TASKS: dict[str, type[NoisyEnv]] = {
    "two-roads": TwoRoads,
    "noisy-cartpole": NoisyCartPole,
    "mean-reversion": MeanReversion,
}


class PureGymEnv(gym.Env[Any, Any]):
    """A compiled task as a Gymnasium environment: the same `step`, called from outside."""

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, task: str, render_mode: str | None = None, **knobs: Any) -> None:
        if task not in NETWORK_TASKS:
            raise unknown("task", task, NETWORK_TASKS)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        kind = NETWORK_TASKS[task]
        known = ("question", "price", "scale", "sigma")
        for name in knobs:
            if name not in known or not hasattr(kind, name):
                raise unknown(f"knob of {task}", name, [k for k in known if hasattr(kind, k)])
        self.pure = kind(**knobs)
        self.render_mode = render_mode
        low, high = np.array(self.pure.bounds, np.float32).T
        self.observation_space = spaces.Box(low, high, dtype=np.float32)
        self.action_space = spaces.Discrete(self.pure.num_actions)
        self._state: EnvState | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = _reset(self.pure, int(self.np_random.integers(2**31)))
        return np.asarray(self._state.x), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gym.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(action):
            raise InputError(f"action {action!r}: actions are 0..{self.pure.num_actions - 1}")
        self._state, x, reward, terminated, truncated = _step(self.pure, self._state, int(action))
        return np.asarray(x), float(reward), bool(terminated), bool(truncated), {}

    def render(self) -> Any:
        if self.render_mode is None or self._state is None:
            gym.logger.warn("render() needs a render_mode and a reset")
            return None
        seen = self.pure.picture(np.asarray(self._state.x))
        ansi = self.render_mode == "ansi"
        return seen.words if ansi else draw_plane(seen.point, seen.noisy, seen.pole)


_step = jax.jit(lambda env, state, action: env.step(state, action), static_argnums=0)
_reset = jax.jit(lambda env, seed: env.reset(jax.random.key(seed)), static_argnums=0)
