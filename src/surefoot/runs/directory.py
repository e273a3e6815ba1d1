"""A run directory: everything one run of an experiment leaves behind, and reading it back.

    RUN/config.json        what kind of run it is, and the settings it was made from
    RUN/provenance.json    versions, seeds and command; nothing of the machine or its user
    RUN/results.parquet    columns of measurements; further tables beside it by name
    RUN/summary.json       the numbers a reader wants
    RUN/claims.json, .md   paper / measured / verdict
    RUN/figures/           NAME.png and NAME.svg
    RUN/complete.json      written last: the run is finished, with this configuration

Every file is written completely or not at all, and equal content gives equal bytes. Nothing is
touched before the directory is locked, and no link is followed out of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from surefoot.errors import InputError, RunError, unknown
from surefoot.runs import tables
from surefoot.runs.checksum import MARK
from surefoot.runs.files import (
    TEMPORARY,
    Lock,
    atomic_write,
    discard_temporaries,
    inside,
    json_bytes,
    lock_directory,
    make_directory,
    plain,
    read_bytes,
    read_json,
    read_json_object,
)
from surefoot.runs.provenance import provenance

if TYPE_CHECKING:
    import polars

Existing = Literal["error", "resume", "overwrite"]
EXISTING = ("error", "resume", "overwrite")
KINDS = (
    "training", "sweep", "comparison", "risky-cliff", "evaluation", "regression", "ablation", "gym",
    "gym-choices", "figures", "theory", "surest", "never-worse",
    "suite",
)  # fmt: skip
FILES = (
    "complete.json",  # first: a run that is being removed must not look complete
    "summary.json",
    "claims.json",
    "claims.md",
    "provenance.json",
    "report.html",
    "agent.safetensors",
    "episodes.csv",
    "evaluations.csv",
    "distributions.csv",
    "speed.csv",
)
FOLDERS = ("figures", "checkpoints", "tensorboard")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class RunDir:
    """The directory of one run. Made by `create` for writing, by `open` for reading."""

    path: Path
    lock: Lock | None = field(default=None, repr=False, compare=False)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        config: Any,
        *,
        kind: str,
        seeds: Any,
        existing: Existing = "error",
        growing: Sequence[str] = (),
        command: Sequence[str] | None = None,
    ) -> RunDir:
        """Begin a run at `path`, or take up the one that is there.

        `config` is a dataclass (or dict) without the output path in it; `kind` is one of `KINDS`
        and stands in config.json, so that a reader need not guess; `seeds` what the
        run's randomness comes from; `command` the words of the command line (this process's
        by default). Where `path` already holds a run, `existing` decides: "error" refuses;
        "resume" continues it, provided the configuration is the same, but for the numbers named
        by `growing`, which may be larger than they were; "overwrite" removes what a run writes,
        and nothing else, and begins anew. A directory that holds other things is never touched.
        One process at a time owns a run directory: a second one is refused, until the first has
        ended, marked its run complete or dropped the `RunDir`.
        """
        if existing not in EXISTING:
            raise unknown("way to treat an existing run", existing, EXISTING)
        run = cls(Path(path))
        wanted = config_bytes(config, kind)  # fails before anything is made
        source = provenance(seeds, command)
        make_directory(run.path)
        run = cls(run.path, lock_directory(run.path))
        if not run.file("config.json").exists():
            if not all(_leftover(entry.name) for entry in run.path.iterdir()):
                raise InputError(f"{path} is not empty and holds no run: choose another directory")
        elif existing == "error":
            raise InputError(
                f"{path} already holds a run: resume it, overwrite it, or choose another directory"
            )
        elif existing == "resume":
            run._take_up(wanted, growing)
            discard_temporaries(run.path)
            run._note_resumption(source)
            return run
        else:
            run._clear()
        discard_temporaries(run.path)
        run._write("config.json", wanted)  # first: it is what makes the directory a run
        run._write("provenance.json", json_bytes(source, where="provenance"))
        return run

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunDir:
        """A run that is there, for reading."""
        run = cls(Path(path))
        if not run.path.is_dir():
            raise InputError(f"{path}: there is no such run directory")
        if not run.file("config.json").is_file():
            raise InputError(f"{path} is not a run directory: it has no config.json")
        return run

    # --- writing -------------------------------------------------------------------------

    def write_table(
        self, columns: Mapping[str, Any] | polars.DataFrame, name: str = "results"
    ) -> Path:
        """Store columns of equal length (numbers, truth values or text) as NAME.parquet, with a
        checksum inside that `read_table` verifies."""
        return atomic_write(self._table(name), tables.encode(columns, f"table {name}"))

    def write_summary(self, summary: Any) -> Path:
        """Store the numbers a reader wants; NaN becomes null, nothing is rounded."""
        return self._write("summary.json", json_bytes(summary, where="summary"))

    def write_figure(self, name: str, png: bytes, svg: bytes) -> Path:
        """Store a rendered figure in both forms; `plots.save_figure` renders it."""
        self._write(f"figures/{_checked_name('figure', name)}.svg", svg)
        return self._write(f"figures/{name}.png", png)

    def mark_complete(self) -> Path:
        """Say that the run is finished: the last thing it writes."""
        present = sorted(p.name for p in self.path.iterdir() if p.is_file() and p.name[0] != ".")
        files = [name for name in present if name != "complete.json"]
        content = {"files": files, "figures": self.figures, "config": self._config_digest()}
        path = self._write("complete.json", json_bytes(content))
        if self.lock is not None:
            self.lock.release()
        return path

    # --- reading -------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether the run is finished, with the configuration that is there."""
        if not self.file("complete.json").is_file():
            return False
        said = read_json_object(self.file("complete.json")).get("config")
        return said is None or said == self._config_digest()  # 0.1.0 did not say

    @property
    def tables(self) -> list[str]:
        return sorted(p.stem for p in self.path.glob("*.parquet"))

    @property
    def figures(self) -> list[str]:
        return sorted(p.stem for p in (self.path / "figures").glob("*.png"))

    def read_config(self) -> dict[str, Any]:
        return read_json_object(self.file("config.json"))

    @property
    def kind(self) -> str:
        """Which of `KINDS` the run is, as its configuration says."""
        kind = self.read_config().get("kind")
        if kind is None:
            raise InputError(f"{self.path}: {self._without_kind()}")
        if kind not in KINDS:
            raise InputError(f"{self.path}: {unknown('kind of run', kind, KINDS)}")
        return str(kind)

    def read_provenance(self) -> dict[str, Any]:
        return read_json_object(self.file("provenance.json"))

    def read_summary(self) -> Any:
        return read_json(self.file("summary.json"))

    def read_table(self, name: str = "results") -> polars.DataFrame:
        """A table that `write_table` stored, verified against its checksum."""
        path = self._table(name)
        if not path.is_file():
            raise unknown(f"table in {self.path}", name, self.tables)
        return tables.decode(read_bytes(path), path)

    def file(self, name: str) -> Path:
        """Where a file of the run lies; a link that leads out of the run is refused."""
        return inside(self.path, name)

    def reopen(self) -> None:
        """Say that the run is not finished, before anything of it changes."""
        try:
            for name in ("complete.json", "summary.json"):
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"cannot change {self.path}: {error.strerror or error}") from error

    # --- within --------------------------------------------------------------------------

    def _config_digest(self) -> str:
        return hashlib.sha256(read_bytes(self.file("config.json"))).hexdigest()

    def _take_up(self, config: bytes, growing: Sequence[str]) -> None:
        stored, wanted = self.read_config(), json.loads(config)
        if "kind" not in stored:
            raise InputError(f"{self.path} cannot be resumed: {self._without_kind()}")
        larger = [name for name in growing if _is_larger(wanted.get(name), stored.get(name))]
        same = {**wanted, **{name: stored[name] for name in larger}}
        changed = sorted(_differences(stored, same, ""))
        if changed:
            raise InputError(
                f"{self.path} cannot be resumed with another configuration: "
                f"{'; '.join(changed[:5])}{' ...' if len(changed) > 5 else ''}"
            )
        if larger:
            self.reopen()
            self._write("config.json", config)

    def _without_kind(self) -> str:
        """Why a directory has no kind: those of 0.1.0 had none, but for trainings."""
        versions = self.read_provenance().get("versions")
        version = versions.get("surefoot", "?") if isinstance(versions, dict) else "?"
        return (
            f"its config.json, written by surefoot {version}, does not say what kind of run it is; "
            f"use surefoot {version} for it, or begin anew in another directory"
        )

    def _note_resumption(self, source: dict[str, Any]) -> None:
        """Other versions or another command than before are part of the provenance."""
        if not self.file("provenance.json").exists():  # killed between its first two files
            self._write("provenance.json", json_bytes(source))
            return
        stored = self.read_provenance()
        now = {key: source[key] for key in ("versions", "command")}
        before = [{key: stored.get(key) for key in now}, *stored.get("resumed", [])]
        if now not in before:
            stored["resumed"] = [*before[1:], now]
            self._write("provenance.json", json_bytes(stored))

    def _clear(self) -> None:
        """Remove what a run writes. config.json stays until it is replaced, so that a removal
        cut short still leaves a run directory that can be overwritten."""
        try:
            for name in FILES:
                (self.path / name).unlink(missing_ok=True)
            for table in self.tables:
                if MARK in read_bytes(self._table(table)):  # another's own is not ours to remove
                    self._table(table).unlink()
            for name in FOLDERS:
                if (self.path / name).is_symlink():
                    (self.path / name).unlink()
                elif (self.path / name).is_dir():
                    shutil.rmtree(self.path / name)
        except OSError as error:
            raise RunError(f"cannot overwrite {self.path}: {error}") from error

    def _table(self, name: str) -> Path:
        return self.file(f"{_checked_name('table', name)}.parquet")

    def _write(self, name: str, data: bytes) -> Path:
        return atomic_write(self.file(name), data)


def config_bytes(config: Any, kind: str) -> bytes:
    """What config.json holds: the settings and the kind, which stands for their class too."""
    if kind not in KINDS:
        raise unknown("kind of run", kind, KINDS)
    content = plain(config, types=True, where="config")
    content.pop("type", None)
    return json_bytes({**content, "kind": kind})


def _checked_name(kind: str, name: str) -> str:
    """A name that cannot leave the run directory."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{kind} name {name!r}: use letters, digits, dots, dashes, underscores")
    return name


def _leftover(name: str) -> bool:
    """Of a run that was killed before it had a configuration, or a lock about to be used."""
    return name == ".lock" or (name.startswith(".") and name.endswith(TEMPORARY))


def _is_larger(new: Any, old: Any) -> bool:
    numbers = all(isinstance(n, int) and not isinstance(n, bool) for n in (new, old))
    return numbers and new > old


def _differences(stored: Any, wanted: Any, where: str) -> Iterable[str]:
    if isinstance(stored, dict) and isinstance(wanted, dict):
        for key in stored.keys() | wanted.keys():
            inner = f"{where}.{key}" if where else key
            yield from _differences(stored.get(key, "absent"), wanted.get(key, "absent"), inner)
    elif stored != wanted:
        yield f"{where} was {stored!r}, is {wanted!r}"
