"""The frame of every experiment: settings, tables, results, summary, claims, figures, once each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from surefoot.errors import InputError, RunError, require
from surefoot.paper.claims import Claim, read_claims, write_claims
from surefoot.plots import save_figure
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.files import plain
from surefoot.runs.progress import progress
from surefoot.runs.session import resumable
from surefoot.training.engines import run_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 1_000_000  # trials, seeds or episodes of an experiment
ELSEWHERE = ("engine", "address", "workers")
"""Settings of where a run is computed, which is no part of what is computed."""

Columns = Mapping[str, Any]
Config = TypeVar("Config")
Results = TypeVar("Results")


class Named(Protocol):
    """A part of an experiment that can be computed on its own, into the table of its name."""

    @property
    def name(self) -> str: ...


Cell = TypeVar("Cell", bound=Named)


class Stopped(NamedTuple):
    """A cell that could not be finished: what it had, and why."""

    tables: Mapping[str, Columns]
    fault: str


class Tables:
    """The tables of a run, each decoded once."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._read: dict[str, dict[str, np.ndarray]] = {}

    def __getitem__(self, name: str) -> dict[str, np.ndarray]:
        """The columns of a table."""
        if name not in self._read:
            frame = self.run.read_table(name)
            self._read[name] = {column: frame[column].to_numpy() for column in frame.columns}
        return self._read[name]

    def __contains__(self, name: str) -> bool:
        """Whether the table is there and undamaged: what a resumed run need not do again."""
        try:
            return self[name] is not None
        except InputError:
            return False

    def write(self, name: str, columns: Columns) -> None:
        self.run.write_table(columns, name)
        self._read.pop(name, None)


@dataclass(frozen=True)
class Experiment(Generic[Config, Results]):
    """One experiment: what it measures, and what is made of the measurements."""

    kind: str
    config: Callable[..., Config]
    """The class of its settings."""
    measure: Callable[[Config, Tables], None]
    """Compute the tables that are missing."""
    read: Callable[[Config, Tables], Results]
    """What was measured, decoded once for all that follows."""
    summarise: Callable[[Results], Any]
    judge: Callable[[Results], list[Claim]]
    draw: Callable[[Results], dict[str, Figure]]
    seeds: Callable[[Any], list[int]] = lambda config: [config.seed]

    def run(self, config: Config, out: Path, existing: Existing = "error") -> list[Claim]:
        """Run into the directory `out`, keeping what is there already; returns the claims."""
        require("an experiment", "report", "matplotlib", "polars")
        settings = plain(config, where="config")
        _check_counts(settings)
        stored = {name: value for name, value in settings.items() if name not in ELSEWHERE}
        run = RunDir.create(
            out, stored, kind=self.kind, seeds=self.seeds(config), existing=existing
        )
        if run.complete:
            return list(read_claims(run))
        with resumable(out):
            tables = Tables(run)
            self.measure(config, tables)
            results = self.read(config, tables)
            run.write_summary(self.summarise(results))
            claims = self.judge(results)
            write_claims(run, claims)
            for name, figure in self.draw(results).items():
                save_figure(figure, run, name)
            run.mark_complete()
        return claims

    def config_of(self, run: RunDir) -> Config:
        """The settings that a run directory was made with."""
        stored = {k: v for k, v in run.read_config().items() if k not in ("kind", "type")}
        try:
            return self.config(**{k: _tuples(v) for k, v in stored.items()})
        except TypeError as error:
            raise InputError(f"{run.path}: not the settings of {self.kind} ({error})") from None

    def results(self, run: RunDir) -> Results:
        """What a run directory holds, if its tables are there."""
        return self.read(self.config_of(run), Tables(run))


Compute = Callable[[tuple[Any, Cell]], Mapping[str, Columns] | Stopped]


def by_cells(compute: Compute[Any], description: str) -> Callable[[Any, Tables], None]:
    """How an experiment is measured whose settings say its `cells()`."""
    return lambda config, tables: measure_cells(
        config, tables, config.cells(), compute, description
    )


def measure_cells(
    config: Any, tables: Tables, cells: Sequence[Cell], compute: Compute[Cell], description: str
) -> None:
    """Each cell that has no table yet, on the engine of the settings (here, if they name none).

    `compute` makes a cell's tables. That of the cell's own name is written last: it marks the
    cell as done. Every cell is on disk before the next one is waited for.
    """
    missing = [cell for cell in cells if cell.name not in tables]
    done = len(cells) - len(missing)
    with progress(len(cells), description, unit="cells", start=done) as task:
        for index, made in run_jobs(
            compute,
            [(config, cell) for cell in missing],
            engine=getattr(config, "engine", "serial"),
            workers=getattr(config, "workers", 0) or None,
            address=getattr(config, "address", "") or None,
            names=[cell.name for cell in missing],
        ):
            own = missing[index].name
            finished = made.tables if isinstance(made, Stopped) else made
            for name in sorted(finished, key=lambda name: name == own):
                tables.write(name, finished[name])
            if isinstance(made, Stopped):
                where = tables.run.path
                raise RunError(f"{own}: {made.fault}; what was computed is in {where}")
            task.note(own)
            task.advance()


def _check_counts(settings: Mapping[str, Any]) -> None:
    """Refuse, before anything is made, what no machine would come to the end of."""
    for name, value in settings.items():
        counted = name.rpartition("_")[2] in ("trials", "seeds", "episodes", "rollouts")
        if counted and isinstance(value, int) and value > MOST:
            raise InputError(f"{name} = {value:,}: at most {MOST:,}")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
