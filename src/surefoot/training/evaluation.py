"""Several policies act on what one agent has learned, in the same episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import jax
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from surefoot.agents.adapters import Actor, act
from surefoot.agents.explain import mean_alone
from surefoot.core.markup import html_table
from surefoot.core.particles import cvar
from surefoot.core.stats import Interval, mean_interval
from surefoot.envs import TabularEnv
from surefoot.envs.discrete import decode
from surefoot.envs.making import made_env, separate_env, single_spec
from surefoot.envs.masks import Masks
from surefoot.errors import InputError, RunError, at_least, check_episodes
from surefoot.policies import SSD, DecidedBy, Decision, Greedy, policy_named
from surefoot.runs.progress import Bar, progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LANES = 16  # environments stepped side by side, so that one compiled call decides for all
LONGEST = 100_000  # steps of an episode in an environment that sets no limit
CVAR_LEVELS = (0.05, 0.25)
TAILS = tuple(f"CVaR {level:g}" for level in CVAR_LEVELS)
COLUMNS = ("policy", "mean return", "deviation", *TAILS, "steps")
RESAMPLES = 1000

Returns = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluated:
    """Complete episodes of one policy."""

    policy: str
    returns: Returns
    """Undiscounted, one per episode; the n-th episode has the same seed for every policy."""
    lengths: NDArray[np.int64]
    decided: dict[str, float]
    """Share of the decisions made by the mean alone, by dominance between actions that are worth
    the same, by a drawn tie, by the fallback, by another score."""

    @property
    def mean(self) -> Interval:
        return mean_interval(self.returns)

    @property
    def deviation(self) -> float:
        if self.returns.min() == self.returns.max():  # exactly, whatever the mean is rounded to
            return 0.0
        return float(np.std(self.returns, ddof=1))

    def cvar(self, level: float, seed: int = 0) -> Interval:
        """Mean of the worst share with a percentile bootstrap interval."""
        n, rng = len(self.returns), np.random.default_rng(seed)
        parts = [  # a million numbers at a time
            np.asarray(cvar(self.returns[rng.integers(n, size=(rows, n))], level))
            for rows in _parts(RESAMPLES, max(1, 1_000_000 // n))
        ]
        low, high = np.quantile(np.concatenate(parts), [0.025, 0.975])
        return Interval(float(cvar(self.returns, level)), float(low), float(high), n)

    def row(self, seed: int = 0) -> tuple[str, ...]:
        """Its numbers as text, under `COLUMNS`."""
        tails = [str(self.cvar(level, seed)) for level in CVAR_LEVELS]
        steps = f"{self.lengths.mean():.4g}"
        return (self.policy, str(self.mean), f"{self.deviation:.4g}", *tails, steps)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return html_table(COLUMNS, [self.row()])

    def figure(self) -> Figure:
        """A matplotlib figure of the returns: distribution, lower tail, dispersion."""
        from surefoot.plots import draw_comparison

        return draw_comparison({self.policy: self.returns})


def evaluate(
    agent: Any,
    policies: Sequence[str] = ("ssd", "greedy"),
    *,
    env: str | Callable[[], gym.Env[Any, Any]] | None = None,
    episodes: int = 100,
    seed: int = 0,
    show: bool = False,
) -> tuple[Evaluated, ...]:
    """Returns of `episodes` episodes under each policy, none of them exploring.

    `agent` is a surefoot agent, or whatever `adapters.act` takes. `env` is the id of an
    environment or a function that makes one; by default it is the agent's own. Every policy
    meets the same seeds, so that the returns can be compared as pairs.
    """
    at_least(0, seed=seed)
    check_episodes(2, 4 * len(policies), episodes=episodes)
    if not policies:
        raise InputError("policies: name at least one, such as ssd")
    if len(set(policies)) < len(policies):
        raise InputError(f"policies: {', '.join(policies)}: one of them is named twice")
    actors = {name: act(agent, policy_named(name), seed=seed) for name in policies}
    make = _maker(agent, env)
    lanes = [make() for _ in range(min(LANES, episodes))]
    for actor in actors.values():
        _check_spaces(actor, lanes[0])
    longest = getattr(getattr(agent, "config", None), "horizon", LONGEST)  # as in training
    out = []
    total, mode = episodes * len(policies), "auto" if show else "silent"
    try:
        with progress(total, "evaluate", "episodes", mode=mode) as bar:  # type: ignore[arg-type]
            for name, actor in actors.items():
                bar.note(name)
                out.append(_episodes(name, actor, lanes, episodes, seed, bar, longest))
    finally:
        for lane in lanes:
            lane.close()
    return tuple(out)


def _episodes(
    name: str,
    actor: Actor,
    lanes: list[gym.Env[Any, Any]],
    episodes: int,
    seed: int,
    bar: Bar,
    longest: int,
) -> Evaluated:
    """Each lane takes the next episode as soon as its last one is over."""
    totals, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
    begun, readers = len(lanes), [Masks(lane) for lane in lanes]
    starts = [lane.reset(seed=seed + i) for i, lane in enumerate(lanes)]
    seen = [s[0] for s in starts]
    masks: list[Any] = [reader.read(s[1]) for reader, s in zip(readers, starts, strict=True)]
    at: list[int | None] = list(range(begun))  # the episode each lane is in
    counts: Counter[str] = Counter()
    by_mean = isinstance(actor.policy, SSD | Greedy)
    while any(episode is not None for episode in at):
        known = masks[0] is not None
        decision = actor.decide(_batch(seen), action_masks=np.stack(masks) if known else None)
        who = _who(decision, by_mean)
        for i, episode in enumerate(at):
            if episode is None:
                continue
            counts[who[i]] += 1
            action = decode(lanes[i].action_space, int(decision.action[i]))
            seen[i], reward, terminated, truncated, info = lanes[i].step(action)
            totals[episode] += float(reward)
            if not np.isfinite(totals[episode]):
                raise RunError(
                    f"{name}, episode {episode}: the environment returned the reward {reward}"
                )
            lengths[episode] += 1
            over = terminated or truncated or lengths[episode] >= longest
            if over:
                bar.advance()
                at[i] = begun if begun < episodes else None
                if begun < episodes:
                    seen[i], info = lanes[i].reset(seed=seed + begun)
                    begun += 1
            if known:
                masks[i] = readers[i].expect(info, final=at[i] is None)
    shares = {who: number / counts.total() for who, number in counts.most_common()}
    return Evaluated(name, totals, lengths, shares)


def _parts(total: int, most: int) -> list[int]:
    return [min(most, total - done) for done in range(0, total, most)]


def _who(decision: Decision, by_mean: bool) -> list[str]:
    """Who decided for each lane, `mean` where that alone did."""
    names = np.array([kind.name.lower() for kind in DecidedBy], dtype=object)[decision.decided_by]
    alone = (decision.decided_by == DecidedBy.DOMINANCE) & mean_alone(decision)
    alone |= (decision.decided_by == DecidedBy.SCORE) & by_mean
    return list(np.where(alone, "mean", names))


def _batch(seen: list[Any]) -> Any:
    return seen if isinstance(seen[0], tuple | dict) else np.stack([np.asarray(s) for s in seen])


def _maker(agent: Any, env: Any) -> Callable[[], gym.Env[Any, Any]]:
    if callable(env):
        return env
    if isinstance(env, str):
        return lambda: made_env(env)
    maker = getattr(agent, "env_maker", None)
    if maker is not None:
        return maker
    inner = getattr(agent, "env", None)
    if isinstance(inner, gym.Env | VectorEnv) and single_spec(inner) is not None:
        return lambda: separate_env(inner)  # type: ignore[arg-type]
    if getattr(agent, "mdp", None) is not None:
        mdp = jax.tree.map(np.asarray, agent.mdp)
        return lambda: gym.wrappers.TimeLimit(TabularEnv(mdp), agent.config.horizon)
    raise InputError("env: this agent's environment is not registered; name its id, or a function")


def _check_spaces(actor: Actor, env: gym.Env[Any, Any]) -> None:
    for name in ("observation_space", "action_space"):
        own, other = getattr(actor, name), getattr(env, name)
        if own is not None and own != other:
            raise InputError(f"env: its {name} is {other}, the agent's is {own}")
