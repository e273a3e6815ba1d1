"""`Checkpoints`: where a run is kept while it lasts, and how it gets there without a pause.

The training thread copies the run to host memory (about a millisecond for 10^4 transitions);
another thread makes the file of it, syncs it and gives it its name. At most one is under way.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from surefoot.errors import InputError, RunError, at_least
from surefoot.runs.files import (
    Lock,
    atomic_write,
    discard_temporaries,
    inside,
    lock_directory,
    make_directory,
)
from surefoot.runs.format import encode, read_agent

_FILE = re.compile(r"step-(\d{12,18})\.safetensors")
Content = tuple[dict[str, np.ndarray], dict[str, Any]]


class Snapshot(NamedTuple):
    """A run at one moment, in memory of its own."""

    kind: str
    step: int
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]
    sync: Callable[[], None]  # brings to disk the logs whose lengths the snapshot records


class Kept(Protocol):
    """What can be kept."""

    @property
    def num_timesteps(self) -> int: ...

    @property
    def at_boundary(self) -> bool: ...

    def snapshot(self) -> Snapshot: ...


class Checkpoints:
    """The last `keep` checkpoints of a run in `directory`, one every `every` steps.

    agent.learn(100_000, checkpoints=Checkpoints("run/checkpoints"))
    agent = NeuralAgent.resume("run/checkpoints")

    `hint` replaces what an interrupted run says about how to resume.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        every: int = 5_000,
        keep: int = 3,
        *,
        hint: str | None = None,
    ) -> None:
        at_least(1, every=every, keep=keep)
        self.directory, self.every, self.keep, self.hint = Path(directory), every, keep, hint
        self._lock: Lock | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.last: int | None = None  # step of the newest one written or under way

    # --- for everyone --------------------------------------------------------------------

    def save(self, agent: Kept) -> Path:
        """Keep the agent's run as it is now; returns when it is on disk."""
        alone = self._lock is None  # not within `learn`
        self.open(agent.num_timesteps)
        try:
            self.settle()
            return self._write(agent.snapshot())
        finally:
            if alone:
                self.close()

    def latest(self) -> Path | None:
        """The newest checkpoint that is not damaged, or None."""
        newest = self.read_latest()
        return newest[0] if newest else None

    def path_of(self, step: int) -> Path:
        return self.directory / f"step-{step:012d}.safetensors"

    @property
    def paths(self) -> list[Path]:
        """All checkpoint files, the newest last."""
        if not self.directory.is_dir():
            return []
        named = (p for p in self.directory.iterdir() if _FILE.fullmatch(p.name))
        return sorted(p for p in named if not p.is_symlink())  # a link may lead anywhere

    # --- for `learn` ---------------------------------------------------------------------

    def open(self, step: int) -> None:
        """Claim the directory for a run that has done `step` steps."""
        if self._lock is not None:
            return
        make_directory(self.directory)
        lock = lock_directory(self.directory)
        later = self.read_latest(after=step)
        if later is not None:
            raise InputError(
                f"{self.directory} holds a checkpoint of step {_step(later[0])}, later than this "
                f"run's {step}: resume that one, or choose another directory"
            )
        discard_temporaries(self.directory)
        self._lock = lock
        self.last = max((s for s in map(_step, self.paths) if s <= step), default=None)

    def close(self) -> None:
        """Wait for the one under way and release the directory."""
        try:
            self.settle()
        finally:
            if self._lock is not None:
                self._lock.release()
            self._lock = None

    def due(self, step: int) -> bool:
        return self.last is None or step // self.every > self.last // self.every

    def offer(self, take: Callable[[], Snapshot]) -> bool:
        """Keep what `take` gives, in the background; False if one is still under way."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self.settle()
        snapshot = take()
        self.last = snapshot.step
        self._thread = threading.Thread(target=self._try, args=(snapshot,), name="checkpoint")
        self._thread.start()
        return True

    def settle(self) -> None:
        """Wait for the one under way; what went wrong there is raised here."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.complain()

    def complain(self) -> None:
        """Raise what went wrong in the background, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    # --- within --------------------------------------------------------------------------

    def _try(self, snapshot: Snapshot) -> None:
        try:
            self._write(snapshot)
        except BaseException as error:
            self._error = error

    def _write(self, snapshot: Snapshot) -> Path:
        path = self.path_of(snapshot.step)
        try:
            snapshot.sync()
            data = encode(snapshot.kind, snapshot.arrays, snapshot.about, "checkpoint")
            atomic_write(path, data)
        except RunError as error:
            good = [p.name for p in self.paths]
            kept = f"the last checkpoint is {good[-1]}" if good else "there is no checkpoint yet"
            raise RunError(f"{error}; {kept}") from error
        self.last = snapshot.step
        # Later ones are damaged files of a run that is being repeated: they count for nothing.
        for old in [p for p in self.paths if _step(p) <= snapshot.step][: -self.keep]:
            with contextlib.suppress(OSError):
                old.unlink()
        return path

    def read_latest(self, after: int = -1) -> tuple[Path, Content] | None:
        """The newest undamaged checkpoint of a step later than `after`, and what it holds."""
        for path in reversed(self.paths):
            if _step(path) <= after:
                return None
            try:
                return path, read_agent(path, contents="checkpoint")
            except InputError as error:
                warnings.warn(f"passed over: {error}", stacklevel=3)
        return None


def read_checkpoint(
    place: str | os.PathLike[str], kind: str | None = None
) -> tuple[Path, dict[str, np.ndarray], dict[str, Any]]:
    """A checkpoint file, or the newest undamaged one of a directory (or of a run directory)."""
    path = Path(place)
    if not path.is_dir():
        return path, *read_agent(path, kind, "checkpoint")
    folder = inside(path, "checkpoints")
    folder = folder if folder.is_dir() else path
    newest = Checkpoints(folder).read_latest()
    if newest is None:
        raise InputError(f"{place}: holds no checkpoint that can be read")
    path, (arrays, about) = newest
    if kind is not None and about.get("kind") != kind:
        raise InputError(f"{path}: holds a {about.get('kind')!r} agent, not a {kind} one")
    return path, arrays, about


def _step(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    assert match is not None
    return int(match[1])
