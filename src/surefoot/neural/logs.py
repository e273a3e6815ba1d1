"""What training writes down: CSV always, Parquet where polars is, TensorBoard and W&B by hooks."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.errors import InputError, RunError
from surefoot.neural.loop import Finished

TABLES = {
    "episodes": ("step", "episode", "return", "length", "loss"),
    "evaluations": ("step", "episode", "return"),
    "distributions": ("step", "state", "action", "particle", "value"),
}


@dataclass(frozen=True)
class Watch:
    """Observations whose return distributions are saved every `every` environment steps."""

    obs: Any
    every: int = 1000

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InputError(f"watch: every = {self.every}, it must be at least 1")


class Hook(Protocol):
    """Where scalars go besides the files."""

    def scalar(self, name: str, value: float, step: int) -> None: ...

    def close(self) -> None: ...


class RunLog:
    """Tables in a directory, each row on disk when it is written, and hooks for scalars."""

    def __init__(self, directory: str | Path, hooks: Sequence[Hook] = ()) -> None:
        self.directory, self.hooks = Path(directory), tuple(hooks)
        self._files: dict[str, Any] = {}
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {directory}: {error.strerror}") from error

    def episode(self, episode: Finished) -> None:
        self._rows("episodes", [tuple(episode)])
        for name, value in (("return", episode.total), ("length", episode.length)):
            self._scalar(f"episode/{name}", float(value), episode.step)
        self._scalar("train/loss", episode.loss, episode.step)

    def evaluation(self, step: int, returns: np.ndarray) -> None:
        self._rows("evaluations", [(step, i, float(r)) for i, r in enumerate(returns)])
        self._scalar("evaluation/return", float(np.mean(returns)), step)

    def distribution(self, step: int, z: np.ndarray) -> None:
        """Particles `z[states, A, N]` of the watched states."""
        rows = [(step, *place, float(value)) for place, value in np.ndenumerate(z)]
        self._rows("distributions", rows)

    def close(self) -> None:
        """Close the files, and write each table as Parquet too if polars is installed."""
        for file in self._files.values():
            file.close()
        for name in self._files:
            self._parquet(name)
        self._files.clear()
        for hook in self.hooks:
            hook.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            if table not in self._files:
                path = self.directory / f"{table}.csv"
                new = not path.exists() or path.stat().st_size == 0
                self._files[table] = path.open("a", newline="", encoding="utf-8")
                if new:
                    csv.writer(self._files[table]).writerow(TABLES[table])
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
        path = self.directory / f"{table}.csv"
        polars.read_csv(path).write_parquet(path.with_suffix(".parquet"))

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
            return __import__(module, fromlist=["SummaryWriter"]).SummaryWriter(str(directory))
        except ImportError:
            continue
    raise InputError("TensorBoard logging needs tensorboardX, or torch with tensorboard")


class WeightsAndBiases:
    """Scalars for Weights & Biases; offline unless told otherwise, to be synced later."""

    def __init__(
        self, project: str, directory: str | Path, *, offline: bool = True, config: Any = None
    ) -> None:
        try:
            import wandb
        except ImportError:
            raise InputError("Weights & Biases logging needs wandb: pip install wandb") from None
        mode = "offline" if offline else "online"
        self._run = wandb.init(project=project, dir=str(directory), mode=mode, config=config)

    def scalar(self, name: str, value: float, step: int) -> None:
        self._run.log({name: value}, step=step)

    def close(self) -> None:
        self._run.finish()
