"""What training writes down: CSV always, Parquet where polars is, TensorBoard and W&B by hooks."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from surefoot.core.evidence import Known
from surefoot.errors import InputError, SurefootError, at_least
from surefoot.runs.files import Lock, lock_directory, make_directory
from surefoot.runs.tables import End, GrowingTable

TABLES = {
    "episodes": ("step", "episode", "return", "length"),  # and what the agent adds
    "evaluations": ("step", "episode", "return"),
    "distributions": ("step", "state", "action", "particle", "value"),
    "evidence": ("step", "state", "action", "member", "mean", "n", "error"),
    "speed": ("step", "steps_per_second"),  # apart: all else is the same in every repetition
}
SPEED_EVERY = 1.0  # seconds of training


class Finished(NamedTuple):
    """A finished episode."""

    step: int  # environment steps of the run when it ended
    episode: int  # from 0
    total: float  # undiscounted return
    length: int
    # What a network says of the update after its last step; NaN where there was none.
    loss: float = math.nan
    explore: float = math.nan  # probability of a random action
    grad_norm: float = math.nan  # before `max_grad_norm`, in the units that are learned in
    estimate: float = math.nan  # mean return that the network expects of the batch's actions
    spread: float = math.nan  # standard deviation of these returns about their means
    dominance: float = math.nan  # share of the batch's bootstrap actions that it chose


@dataclass(frozen=True)
class Watch:
    """Observations whose return distributions are saved every `every` environment steps."""

    obs: Any
    every: int = 1000

    def __post_init__(self) -> None:
        at_least(1, every=self.every)


class Hook(Protocol):
    """Where scalars go besides the files."""

    def scalar(self, name: str, value: float, step: int) -> None: ...

    def close(self) -> None: ...


class RunLog:
    """Tables in a directory, which is this process's alone meanwhile, and hooks for scalars."""

    def __init__(self, directory: str | Path, hooks: Sequence[Hook] = ()) -> None:
        self.directory, self.hooks = Path(directory), tuple(hooks)
        make_directory(self.directory)
        self._lock: Lock | None = lock_directory(self.directory)
        self._tables = {
            name: GrowingTable(self.directory, name, columns) for name, columns in TABLES.items()
        }
        self._pace = (0, 0, 0.0)  # last step, steps and seconds since the last row of `speed`

    def begin(self, step: int, ends: Mapping[str, End] | None, columns: Sequence[str]) -> None:
        """Go on with the log of a run that has done `step` steps.

        `columns` are those of `episodes`; `ends` is where the tables ended at the checkpoint that
        the run was resumed from. What came after is forgotten, so that it is written once.
        """
        self._tables["episodes"].columns = tuple(columns)
        same = {name: table for name, table in self._tables.items() if name != "speed"}
        begun = any(table.path.exists() for table in same.values())
        if ends is not None and begun:  # else the run goes on in another directory
            for go in (GrowingTable.check, GrowingTable.rewind):  # none is cut before all fit
                for name, table in same.items():
                    go(table, ends.get(name, End()))
        for table in same.values():
            if table.last_step() > step:
                raise InputError(
                    f"{table.path} goes on to step {table.last_step()}, this run has done {step}: "
                    "it is another run's; choose another directory"
                )
        self._tables["speed"].forget_after(step)  # no two runs are equally fast
        for hook in self.hooks:
            if isinstance(hook, TensorBoard):
                hook.begin(step)

    def episode(self, episode: Finished, row: tuple[Any, ...] | None = None) -> None:
        """A finished episode; `row` is its line where the table has other columns."""
        self._tables["episodes"].add([tuple(episode) if row is None else row])
        for name, value in (("return", episode.total), ("length", episode.length)):
            self._scalar(f"episode/{name}", float(value), episode.step)
        for name in Finished._fields[4:]:
            if math.isfinite(value := getattr(episode, name)):  # a table has none
                self._scalar(f"train/{name}", value, episode.step)

    def speed(self, step: int, moved: int, seconds: float) -> None:
        """So many steps, up to `step`, took so long to train; a row every second or so."""
        self._pace = (step, self._pace[1] + moved, self._pace[2] + seconds)
        if self._pace[2] >= SPEED_EVERY:
            self._write_speed()

    def _write_speed(self) -> None:
        step, moved, seconds = self._pace
        if moved and seconds > 0:
            rate = float(f"{moved / seconds:.4g}")
            self._tables["speed"].add([(step, rate)])
            self._scalar("train/steps_per_second", rate, step)
        self._pace = (step, 0, 0.0)

    def evaluation(self, step: int, returns: np.ndarray) -> None:
        self._tables["evaluations"].add((step, i, float(r)) for i, r in enumerate(returns))
        self._scalar("evaluation/return", float(np.mean(returns)), step)

    def distribution(self, step: int, z: np.ndarray, n: np.ndarray | Known | None = None) -> None:
        """Particles `z[states, A, N]` of the watched states and what they rest on, or an ensemble
        `z[states, E, A, N]`: its average, and the mean of each member."""
        if z.ndim == 4:
            means = z.mean(axis=-1).swapaxes(1, 2)  # [states, A, E]
            known = [(step, *place, float(mean), "", "") for place, mean in np.ndenumerate(means)]
            z = z.mean(axis=1)
        else:
            known = list(_counted(step, z.mean(axis=-1), n))
        rows = ((step, *place, float(value)) for place, value in np.ndenumerate(z))
        self._tables["distributions"].add(rows)
        if known:
            self._tables["evidence"].add(known)

    def ends(self) -> dict[str, End]:
        """Where each table ends: a checkpoint's place in the logs."""
        self._write_speed()  # of the steps before it, and of none after
        return {
            name: table.end
            for name, table in self._tables.items()
            if table.end.size and name != "speed"
        }

    def sync(self) -> None:
        """See that a power cut after the checkpoint takes no line from before it."""
        for table in self._tables.values():
            table.sync()

    def close(self) -> None:
        """Make a Parquet file of each table, if polars is installed."""
        try:
            self._write_speed()
        finally:  # a full disk must not keep the rest open
            for table in self._tables.values():
                table.close()
            for hook in self.hooks:
                hook.close()
            self._lock = None

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # The first error is the one to tell.
        with contextlib.suppress(*(() if kind is None else (SurefootError,))):
            self.close()

    def _scalar(self, name: str, value: float, step: int) -> None:
        for hook in self.hooks:
            hook.scalar(name, value, step)


def _counted(step: int, means: np.ndarray, n: np.ndarray | Known | None) -> Iterator[Any]:
    """Rows of one member: means `[states, A]`, their counts, and their errors if they are known."""
    counts, errors = n if isinstance(n, Known) else (n, None)
    for place, mean in np.ndenumerate(means):
        if counts is not None:
            error = "" if errors is None else float(errors[place])
            yield step, *place, 0, float(mean), int(counts[place]), error


class TensorBoard:
    """Scalars for TensorBoard; needs tensorboardX, or torch with tensorboard, to be installed."""

    def __init__(self, directory: str | Path) -> None:
        self._directory, self._make = str(directory), _tensorboard_writer()
        self._done = 0
        self._writer: Any = None

    def begin(self, step: int) -> None:
        """So many steps are done: rows of later ones are written again, and shown once."""
        self._done = step

    def scalar(self, name: str, value: float, step: int) -> None:
        if self._writer is None:
            self._writer = self._make(self._directory, purge_step=self._done + 1)
        self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _tensorboard_writer() -> Any:
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(module).SummaryWriter
    raise InputError("TensorBoard logging needs tensorboardX, or torch with tensorboard")


class WeightsAndBiases:
    """Scalars for Weights & Biases; offline by default, to be synced later."""

    def __init__(
        self, project: str, directory: str | Path, *, offline: bool = True, config: Any = None
    ) -> None:
        try:
            import wandb
        except ImportError:
            raise InputError("Weights & Biases: pip install 'surefoot[wandb]'") from None
        mode: Literal["offline", "online"] = "offline" if offline else "online"
        self._run = wandb.init(project=project, dir=str(directory), mode=mode, config=config)

    def scalar(self, name: str, value: float, step: int) -> None:
        self._run.log({name: value}, step=step)

    def close(self) -> None:
        self._run.finish()
