"""Results of a sweep on disk: one file per trial, written once, never overwritten.

OUT/results/KEY.json   what a trial gave; the first one to arrive stays
OUT/failed/KEY.json    why a trial gave nothing; goes when it succeeds later
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from surefoot.errors import InputError, RunError
from surefoot.runs.files import TEMPORARY, atomic_write, discard_temporaries, json_bytes, read_json
from surefoot.training.sweep.trial import SweepTrial

Record = dict[str, Any]


class ResultStore:
    """Keyed by the trial itself: a second result of the same trial finds its place taken."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.results = Path(directory) / "results"
        self.failed = Path(directory) / "failed"
        for folder in (self.results, self.failed):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise RunError(f"cannot make {folder}: {error.strerror}") from error
            discard_temporaries(folder)

    def put(self, trial: SweepTrial, result: Record) -> bool:
        """Store a result; False where there was one already, which stays."""
        data = json_bytes({"trial": trial.canonical(), **result})
        first = write_once(self._file(trial), data)
        with contextlib.suppress(OSError):
            self._failure(trial).unlink(missing_ok=True)
        return first

    def get(self, trial: SweepTrial) -> Record | None:
        """The stored result; a damaged file is put aside and counts as none."""
        path = self._file(trial)
        if not path.is_file():
            return None
        try:
            record = read_json(path)
            if isinstance(record, dict) and record.get("trial") == trial.canonical():
                return record
        except InputError:
            pass
        os.replace(path, path.with_suffix(".damaged"))
        return None

    def put_failure(self, trial: SweepTrial, error: str) -> None:
        record = {"trial": trial.canonical(), "error": error}
        atomic_write(self._failure(trial), json_bytes(record))

    def get_failure(self, trial: SweepTrial) -> str | None:
        """Why the trial has no result, if it was tried."""
        try:
            return str(read_json(self._failure(trial))["error"])
        except (InputError, KeyError, TypeError):
            return None

    def _file(self, trial: SweepTrial) -> Path:
        return self.results / f"{trial.key}.json"

    def _failure(self, trial: SweepTrial) -> Path:
        return self.failed / f"{trial.key}.json"


def write_once(path: Path, data: bytes) -> bool:
    """Give `path` this content, whole, unless it exists; says whether it was given.

    A temporary file is written and synced first. `link` then gives it its name in one step, and
    unlike a rename fails where the name is taken. The directory is not synced: a name that a power
    failure takes away costs one trial, syncing for each of them would cost every sweep.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return _name(temporary, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _name(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: equal trials have equal bytes in any order
        if path.exists():
            return False
        os.rename(temporary, path)
    return True
