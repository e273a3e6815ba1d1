"""A run directory as the report reads it: what is there, and words for what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from surefoot.errors import InputError
from surefoot.report.parts import AbsentError, Chart, Explorer, Note, Part, Picture
from surefoot.runs.directory import RunDir

if TYPE_CHECKING:
    import polars

NOT_KEPT = "it is made again by repeating the command of this run"
# What reading a file that is not quite ours can raise; never an error of the page itself.
MISFITS = (KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError)


@dataclass(frozen=True)
class Run:
    """One run of an experiment."""

    store: RunDir
    name: str

    @cached_property
    def config(self) -> dict[str, Any]:
        return self.store.read_config()

    @cached_property
    def summary(self) -> Any:
        if not (self.store.path / "summary.json").is_file():
            raise AbsentError(f"summary.json is not here: {NOT_KEPT}")
        return self.store.read_summary()

    def table(self, name: str) -> polars.DataFrame:
        if not (self.store.path / f"{name}.parquet").is_file():
            raise AbsentError(f"the table {name}.parquet is not here: {NOT_KEPT}")
        return self.store.read_table(name)


Builder = Callable[[Run], Chart | Explorer]


def figures_of(run: Run, builders: Mapping[str, Builder]) -> list[Part]:
    """Every figure of the run: built anew from what is stored, else as the picture it left."""
    parts: list[Part] = []
    for name, build in builders.items():
        try:
            parts.append(build(run))
        except InputError as error:
            parts += _instead(run, name, str(error))
        except MISFITS as error:
            parts += _instead(run, name, f"what is stored does not fit ({error!r})")
    for name in run.store.figures:
        if name not in builders:
            parts += _instead(run, name, "this report does not know how to draw it")
    return parts


def _instead(run: Run, name: str, why: str) -> list[Part]:
    if name in run.store.figures:
        png = run.store.figure(name).read_bytes()
        return [Picture(name, title_of(name), png, f"The stored picture, because {why}.")]
    return [Note(f"{title_of(name)}: not shown, because {why}.", "quiet")]


def title_of(name: str) -> str:
    return name.replace("-", " ").replace("_", " ").capitalize()
