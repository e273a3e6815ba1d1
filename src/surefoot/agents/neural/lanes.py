"""A network that learns in several Gymnasium environments side by side: one compiled call for all.

Where our own lanes are stepped, the actions of the episodes under way are kept. An episode starts
from its seed, so a run that is taken up again plays them once more and stands where it was.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from surefoot.agents.neural.config import NeuralConfig
from surefoot.agents.neural.loop import LARGEST, RunState, Underway, begun, between, loss_text
from surefoot.agents.neural.replay import TRUNCATED, VOID, pack
from surefoot.agents.neural.spaces import Spec
from surefoot.agents.neural.step import AVERAGED_EVERY, FINITE, LOSS, Seen, compiled, passed
from surefoot.envs.faults import Fault, fault_from
from surefoot.envs.lanes import VOID as NO_STEP
from surefoot.envs.lanes import Lanes, Shown, VectorLanes
from surefoot.errors import InputError
from surefoot.runs.logs import Finished


class SteppedLanes:
    """A run in `n_envs` Gymnasium environments."""

    at_boundary = True  # it can be taken up again from anywhere

    def __init__(
        self, config: NeuralConfig, spec: Spec, env: Lanes | VectorLanes, state: RunState
    ) -> None:
        self.config, self.spec, self.env, self.state = config, spec, env, state
        self.calls = compiled(config, spec)
        self.history: list[list[int]] = [[] for _ in range(config.n_envs)]
        self.voids = 0  # rows of the replay in which a VectorEnv reset a lane: no steps

    def advance(self, steps: int) -> list[Finished]:
        """At least that many steps, fewer if an episode ends or a VectorEnv resets a lane.

        A step that fails raises `Fault` and leaves the run as it was before that step.
        """
        if not self.state.begun:
            self._begin()
        config, n = self.config, self.config.n_envs
        for _ in range(-(-steps // n)):
            state = self.state
            carry, networks, done = state.carry, state.networks, int(state.carry.steps)
            try:
                actions = [self.spec.own_action(int(action)) for action in state.action]
                shown = self.env.move(actions, state.episode.number)
                seen = self._seen(shown)
            except Exception as error:
                raise fault_from(error) from error
            learns = done >= config.learning_starts and (done + n) % config.update_every == 0
            call = self.calls.step if learns else self.calls.warm
            carry, record = call(carry, networks.target, state.key, seen)
            row = record.tolist()  # the one wait
            chosen, said, finite = row[:n], row[LOSS:FINITE], row[FINITE]
            done += n
            if any(passed(config, done, every) for every in (config.target_period, AVERAGED_EVERY)):
                networks, carry = between(config, self.spec, done, networks, carry)
            ended, episode = self._note(shown, done, said)
            self.state = state._replace(
                carry=carry,
                networks=networks,
                obs=seen.obs[2],
                action=np.array(chosen, np.int32),
                episode=episode,
            )
            if not finite:
                at = done - self.voids
                raise Fault(loss_text(said[0]), lasting=True, step=at, ended=ended)
            if ended:
                return ended
        return []

    def _seen(self, shown: Shown) -> Seen:
        """The answer of the environments as the compiled step takes it."""
        spec, state, n = self.spec, self.state, self.config.n_envs
        both = np.empty((3, n, *spec.obs_shape), spec.obs_dtype)
        both[0] = state.obs
        for place, rows in ((1, shown.obs_t), (2, shown.obs_next)):
            for lane, obs in enumerate(rows):
                both[place, lane] = spec.take(obs)
        if both.dtype.kind == "f" and not np.isfinite(both).all():
            raise Fault("the environment returned an observation that is NaN or infinite")
        bad = ~(abs(shown.reward) < LARGEST)
        if bad.any():
            raise Fault(f"the environment returned the reward {shown.reward[bad][0]}")
        outcome = np.stack([state.action, shown.reward, shown.terminated, shown.cut])
        masks: Any = ()
        if len(state.carry.replay.masks):
            masks = np.stack([[pack(mask) for mask in rows] for rows in shown.masks])
        return Seen(both, outcome.astype(np.float32), masks)

    def _note(self, shown: Shown, done: int, said: list[float]) -> tuple[list[Finished], Underway]:
        """Count the step in every lane's episode; those that have ended."""
        totals, lengths, numbers = (np.array(part) for part in self.state.episode)
        steps = shown.cut != NO_STEP
        totals, lengths = totals + np.where(steps, shown.reward, 0.0), lengths + steps
        ended, n = [], len(totals)
        at_each = done - n - self.voids + np.cumsum(steps)
        self.voids += n - int(steps.sum())
        for lane in range(n):
            self.history[lane].append(int(self.state.action[lane]))
            if steps[lane] and (shown.terminated[lane] or shown.cut[lane]):
                at, number = int(at_each[lane]), int(numbers.sum())
                total, length = float(totals[lane]), int(lengths[lane])
                ended.append(Finished(at, number, total, length, *said))
                totals[lane], lengths[lane], numbers[lane] = 0.0, 0, numbers[lane] + 1
                self.history[lane].clear()
        return ended, Underway(totals, lengths, numbers)

    def _begin(self) -> None:
        """The first observations of episodes and the actions to them."""
        state, spec = self.state, self.spec
        try:
            first, masks = self.env.start(state.episode.number)
            obs = np.stack([spec.check(spec.take(one), flat=True) for one in first])
        except Exception as error:
            raise fault_from(error) from error
        self.history = [[] for _ in self.history]
        self.state = begun(self.config, spec, state, obs, masks)

    def begin_again(self) -> bool:
        """Bring the environments to where the run is; whether they show what they showed before.

        Only a VectorEnv knows how its episodes started: there, new ones begin.
        """
        state, env = self.state, self.env
        if not state.begun:
            return True
        if isinstance(env, VectorLanes):
            self.cut()
            return False
        try:
            env.start(state.episode.number)  # whether there are masks
            shown = []
            for lane, actions in enumerate(self.history):
                own = [self.spec.own_action(action) for action in actions]
                obs = env.play(lane, int(state.episode.number[lane]), own)
                shown.append(self.spec.check(self.spec.take(obs), flat=True))
        except Exception as error:
            raise fault_from(error) from error
        return np.array_equal(np.stack(shown), state.obs)

    def cut(self) -> list[Finished]:
        """Give up the episodes under way: truncated after the last step they made."""
        state, n = self.state, self.config.n_envs
        carry, done = state.carry, int(state.carry.steps)
        ended: list[Finished] = []
        totals, lengths, numbers = (np.array(part) for part in state.episode)
        if state.begun and done > 0:
            outcome = np.array(carry.replay.outcome)
            steps = outcome[(done - n + np.arange(n)) % len(outcome), 2] < VOID
            at_each = done - self.voids - steps.sum() + np.cumsum(steps)
            for lane in np.flatnonzero(lengths):
                row = outcome[(done - n + lane) % len(outcome)]
                row[2] = row[2] if row[2] >= VOID else TRUNCATED
                at = int(at_each[lane])
                number, total = int(numbers.sum()) + len(ended), float(totals[lane])
                ended.append(Finished(at, number, total, int(lengths[lane])))
            carry = carry._replace(replay=carry.replay._replace(outcome=jnp.array(outcome)))
        following = Underway(np.zeros(n), np.zeros(n, np.int64), numbers + 1)
        self.history = [[] for _ in self.history]
        self.state = state._replace(carry=carry, begun=np.bool_(False), episode=following)
        return ended

    def arrays(self) -> dict[str, np.ndarray]:
        """The actions of the episodes under way, for a checkpoint."""
        if not self.env.replays:
            return {}
        return {f"lane.{i}": np.array(own, np.int32) for i, own in enumerate(self.history)}

    def restore(self, arrays: dict[str, np.ndarray], path: object) -> None:
        """Know them again."""
        if not self.env.replays:
            return
        for lane in range(self.config.n_envs):
            own = arrays.get(f"lane.{lane}", np.zeros(0))
            legal = (own >= 0) & (own < self.spec.num_actions)
            if own.dtype != np.int32 or own.ndim != 1 or not legal.all():
                raise InputError(
                    f"{path}: the actions of environment {lane} are missing or damaged; a run in a "
                    "VectorEnv goes on in one: pass it as env"
                )
            self.history[lane] = [int(action) for action in own]
