"""Results of a sweep on disk: one file per training, written once, never overwritten.

OUT/results/KEY.json   the result of a training; the first one to arrive stays
OUT/failed/KEY.json    why a training has no result; goes when it succeeds later
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from surefoot.errors import InputError
from surefoot.runs.checksum import PLACEHOLDER, stamp, verify
from surefoot.runs.files import (
    atomic_write,
    discard_temporaries,
    inside,
    json_bytes,
    make_directory,
    plain,
    read_bytes,
    read_json,
    write_once,
)
from surefoot.training.train import Training

Record = dict[str, Any]


class ResultStore:
    """By the key of a training: a second result of the same training finds its place taken."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.results, self.failed = inside(directory, "results"), inside(directory, "failed")
        for folder in (self.results, self.failed):
            make_directory(folder)
            discard_temporaries(folder)

    def put(self, training: Training, result: Record) -> bool:
        """Store a result; False where there was one already, which stays."""
        content = {"training": training.as_dict(), "checksum": PLACEHOLDER, **result}
        first = write_once(self._file(training), b"".join(stamp(json_bytes(content))))
        with contextlib.suppress(OSError):
            self._failure(training).unlink(missing_ok=True)
        return first

    def get(self, training: Training) -> Record | None:
        """The stored result; a damaged file is put aside and counts as none."""
        path = self._file(training)
        if not path.is_file() or path.is_symlink():
            return None
        try:
            data = read_bytes(path)
            verify(data, path)
            record = json.loads(data)
            if record["training"] == plain(training.as_dict()):
                return record
        except (InputError, ValueError, KeyError, TypeError):
            pass
        os.replace(path, path.with_suffix(".damaged"))
        return None

    def put_failure(self, training: Training, error: str) -> None:
        record = {"training": training.as_dict(), "error": error}
        atomic_write(self._failure(training), json_bytes(record))

    def get_failure(self, training: Training) -> str | None:
        """Why the training has no result, if it was tried."""
        try:
            return str(read_json(self._failure(training))["error"])
        except (InputError, KeyError, TypeError):
            return None

    def _file(self, training: Training) -> Path:
        return self.results / f"{training.key}.json"

    def _failure(self, training: Training) -> Path:
        return self.failed / f"{training.key}.json"
