"""What training writes down: CSV always, Parquet where polars is, TensorBoard and W&B by hooks."""

from __future__ import annotations

import contextlib
import csv
import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from surefoot.errors import InputError, RunError, at_least
from surefoot.runs.files import atomic_write, make_directory

TABLES = {
    "episodes": ("step", "episode", "return", "length", "loss"),
    "evaluations": ("step", "episode", "return"),
    "distributions": ("step", "state", "action", "particle", "value"),
}


class Finished(NamedTuple):
    """A finished episode."""

    step: int  # environment steps of the run when it ended
    episode: int  # from 0
    total: float  # undiscounted return
    length: int
    loss: float  # of the last update


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
    """Tables in a directory, each row on disk when it is written, and hooks for scalars."""

    def __init__(self, directory: str | Path, hooks: Sequence[Hook] = ()) -> None:
        self.directory, self.hooks = Path(directory), tuple(hooks)
        self.tables = TABLES  # the columns of each
        self._files: dict[str, Any] = {}
        self._touched: set[str] = set()  # tables whose Parquet is no longer up to date
        make_directory(self.directory)

    def episode(self, episode: Finished, row: tuple[Any, ...] | None = None) -> None:
        """A finished episode; `row` is its line where the table has other columns."""
        self._rows("episodes", [tuple(episode) if row is None else row])
        for name, value in (("return", episode.total), ("length", episode.length)):
            self._scalar(f"episode/{name}", float(value), episode.step)
        if np.isfinite(episode.loss):  # a table has none
            self._scalar("train/loss", episode.loss, episode.step)

    def evaluation(self, step: int, returns: np.ndarray) -> None:
        self._rows("evaluations", [(step, i, float(r)) for i, r in enumerate(returns)])
        self._scalar("evaluation/return", float(np.mean(returns)), step)

    def distribution(self, step: int, z: np.ndarray) -> None:
        """Particles `z[states, A, N]` of the watched states."""
        rows = [(step, *place, float(value)) for place, value in np.ndenumerate(z)]
        self._rows("distributions", rows)

    def lengths(self) -> dict[str, int]:
        """Bytes of each table so far: a checkpoint's place in the logs."""
        return {n: f.stat().st_size for n in self.tables if (f := self._path(n)).exists()}

    def rewind(self, lengths: Mapping[str, int]) -> None:
        """Forget what was written after a checkpoint, so that a resumed run writes it once."""
        for table in self.tables:
            path, length = self._path(table), lengths.get(table, 0)
            if table in self._files:
                self._files.pop(table).close()
            if not path.exists() or path.stat().st_size == length:
                continue
            if path.stat().st_size < length:
                raise InputError(
                    f"{path} is shorter than at the checkpoint: it is another run's, or was cut"
                )
            with path.open("r+b") as file:
                file.truncate(length)
            self._touched.add(table)

    def sync(self) -> None:
        """See that a power cut after the checkpoint takes no line from before it."""
        for file in list(self._files.values()):
            with contextlib.suppress(ValueError):  # closed meanwhile, which is as good
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files, and write each table as Parquet too if polars is installed."""
        for file in self._files.values():
            file.close()
        for name in sorted(self._touched):
            self._parquet(name)
        self._files.clear()
        self._touched.clear()
        for hook in self.hooks:
            hook.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            if table not in self._files:
                path = self._path(table)
                new = not path.exists() or path.stat().st_size == 0
                self._files[table] = path.open("a", newline="", encoding="utf-8")
                if new:
                    csv.writer(self._files[table]).writerow(self.tables[table])
            self._touched.add(table)
            csv.writer(self._files[table]).writerows(rows)
            self._files[table].flush()
        except OSError as error:
            raise RunError(
                f"cannot write {self.directory}/{table}.csv: {error.strerror}"
            ) from error

    def _parquet(self, table: str) -> None:
        try:
            import polars
        except ImportError:  # the CSV is there all the same
            return
        from surefoot.runs import tables

        path = self._path(table)
        if path.stat().st_size:
            frame = polars.read_csv(path)
            atomic_write(path.with_suffix(".parquet"), tables.encode(frame, table))

    def _path(self, table: str) -> Path:
        return self.directory / f"{table}.csv"

    def _scalar(self, name: str, value: float, step: int) -> None:
        for hook in self.hooks:
            hook.scalar(name, value, step)


class TensorBoard:
    """Scalars for TensorBoard; needs `tensorboard` (or torch with it) to be installed."""

    def __init__(self, directory: str | Path) -> None:
        self._writer = _tensorboard_writer(directory)

    def scalar(self, name: str, value: float, step: int) -> None:
        self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


def _tensorboard_writer(directory: str | Path) -> Any:
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        try:
            return importlib.import_module(module).SummaryWriter(str(directory))
        except ImportError:
            continue
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
