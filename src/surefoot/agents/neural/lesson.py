"""One call of `NeuralAgent.learn`: stretches of steps, and what happens between them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.agents.neural.fused import run_compiled
from surefoot.agents.neural.loop import run_gymnasium
from surefoot.agents.neural.state import RunState, cut
from surefoot.envs.faults import Fault, FaultPolicy
from surefoot.errors import RunError
from surefoot.runs.logs import Finished, RunLog, Watch
from surefoot.runs.progress import progress
from surefoot.runs.session import Pace, Session

if TYPE_CHECKING:
    from surefoot.agents.neural.agent import NeuralAgent

Callback = Callable[["NeuralAgent", Finished], bool | None]
"""Called after each episode; returning False stops `learn`, as in SB3."""
SLICE = 500  # most steps between two looks at the clock, evaluation, logs


@dataclass
class Lesson:
    """What `learn` was asked for."""

    steps: int
    session: Session
    faults: FaultPolicy
    progress: bool
    callback: Callback | None
    book: RunLog | None
    eval_every: int | None
    eval_episodes: int
    watch: Watch | None
    stopped: bool = False


def give(agent: NeuralAgent, lesson: Lesson) -> None:
    mode: Any = "auto" if lesson.progress else "silent"
    name = f"{agent.env_id}, {agent.config.loss}, seed {agent.seed}"
    book, agent._book = lesson.book, lesson.book
    if book is not None and agent._logged is not None:
        book.rewind(agent._logged)
    agent._logged = None
    try:
        with progress(lesson.steps, name, "steps", mode=mode) as bar, lesson.session:
            _stretches(agent, lesson, bar)
    except Fault as fault:
        raise RunError(str(fault), partial=agent) from fault.__cause__
    finally:
        agent._book = None


def _stretches(agent: NeuralAgent, lesson: Lesson, bar: Any) -> None:
    def ended(episode: Finished) -> bool:
        bar.note(f"episode {episode.episode}, return {episode.total:.6g}")
        if lesson.book is not None:
            lesson.book.episode(episode)
        if lesson.callback is not None and lesson.callback(agent, episode) is False:
            lesson.stopped = True
        pause = bool(agent._stage.reseeds) and lesson.session.wants_boundary()
        return lesson.stopped or pause

    watch, keeper = lesson.watch, lesson.session.checkpoints
    rhythms = [part.every for part in (watch, keeper) if part is not None]
    rhythms += [] if lesson.eval_every is None else [lesson.eval_every]
    last, pace = agent.num_timesteps + lesson.steps, Pace(SLICE)
    while agent.num_timesteps < last and not lesson.stopped:
        done = agent.num_timesteps
        stretch = min(last - done, pace.begin(), SLICE - done % SLICE)
        for every in rhythms:
            stretch = min(stretch, every - done % every)
        _run(agent, lesson, stretch, ended)
        moved = agent.num_timesteps - done
        bar.advance(moved)
        pace.end(moved)
        _measure(agent, lesson)
        lesson.session.between()


def _measure(agent: NeuralAgent, lesson: Lesson) -> None:
    """Evaluations and watched states, where they are due."""
    step, book, watch = agent.num_timesteps, lesson.book, lesson.watch
    if lesson.eval_every is not None and step % lesson.eval_every == 0:
        returns = agent.evaluate(lesson.eval_episodes)
        if book is not None:
            book.evaluation(step, returns)
    if watch is not None and book is not None and step % watch.every == 0:
        z = agent.return_distribution(watch.obs)
        book.distribution(step, z.reshape(-1, *z.shape[-2:]))


def _run(agent: NeuralAgent, lesson: Lesson, steps: int, ended: Callable[[Finished], bool]) -> None:
    """`steps` steps, over the faults that the policy lets pass."""

    def commit(state: RunState) -> None:
        agent._state = state

    def tell(episode: Finished) -> bool:
        return ended(episode._replace(step=episode.step + agent._earlier))

    common = agent.config, agent.spec
    last = agent.num_timesteps + steps
    while agent.num_timesteps < last:
        try:
            left = last - agent.num_timesteps
            if agent.pure is not None:
                run_compiled(*common, agent._state, agent.pure, left, tell, commit, agent.seed)
            else:
                timeout = lesson.faults.step_timeout
                run_gymnasium(*common, agent._state, agent._stage, left, tell, commit, timeout)
            return
        except Fault as fault:
            _handle(agent, lesson, fault, tell)


def _handle(
    agent: NeuralAgent, lesson: Lesson, fault: Fault, tell: Callable[[Finished], bool]
) -> None:
    """Go on with a new episode, or stop with everything from before the fault kept."""
    if fault.lasting:  # the network is spoilt: the last checkpoint is what is good
        raise fault
    broken = agent._state.episode
    agent._state = cut(agent._state)
    number = broken.number + 1
    agent._state = agent._state._replace(episode=agent._state.episode._replace(number=number))
    if int(broken.length) > 0:
        step = int(agent._state.carry.steps)
        total, length = float(broken.total), int(broken.length)
        tell(Finished(step, int(broken.number), total, length, 0.0))
    if lesson.session.retried >= lesson.faults.retries:
        if lesson.session.checkpoints is not None:
            lesson.session.checkpoints.save(agent)
        raise fault
    lesson.session.retried += 1
    agent.faults.append(str(fault))
    warnings.warn(
        f"{fault}; retry {lesson.session.retried} of {lesson.faults.retries}", stacklevel=2
    )
    agent._stage.renew()
