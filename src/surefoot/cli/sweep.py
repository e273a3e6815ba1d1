"""`surefoot sweep`: trainings over a grid of settings and seeds, here or on a cluster."""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from surefoot.cli.compare import in_terminal
from surefoot.cli.modules import allow_modules
from surefoot.cli.options import parse, read_toml, take_config
from surefoot.errors import InputError, RunError, unknown, visible
from surefoot.runs.files import toml_text
from surefoot.training.engines import RETRIES

if TYPE_CHECKING:
    from surefoot.training.sweep import Sweep

Words = tyro.conf.UseAppendAction[tuple[str, ...]]
SHOWN = 10  # failures that are printed
SHARED = ("env", "agent", "steps")  # settings that have an option of their own
ABOUT = "Train over a grid of settings and seeds. A TOML file has seeds, [base], [grid]."


@dataclass(frozen=True)
class SweepOptions:
    base: Path | None = None
    """TOML file of settings that all trainings share, such as surefoot train --print-config
    writes."""
    env: str = ""
    """Gymnasium id of the environment."""
    agent: str = ""
    """neural, tabular, or by default auto: tabular where the observations are discrete."""
    steps: int = 0
    """Environment steps of each training."""
    set: Words = ()
    """One more shared setting: --set particles=16 --set env.sigma=0.01."""
    grid: Words = ()
    """Values of a setting: --grid loss=wgf,qr --grid behaviour=ssd,cvar:0.25 --grid steps=1000."""
    seeds: str = "0:5"
    """0:5 for 0 to 4, 0,3,7 for those three, or one number."""
    out: Path = Path("runs/sweep")
    """Results go here, each once; the same command again runs what is missing."""
    engine: str = "local"
    """serial, local (worker processes of this machine) or ray (a cluster)."""
    address: str = ""
    """Of the engine ray: local, auto, host:port or ray://host:port; a local one by default."""
    workers: int = 0
    """Worker processes; 0 for one per core."""
    retries: int = RETRIES
    """How often a training whose worker dies is tried again."""
    keep_failed: bool = False
    """Leave trainings alone that have failed before."""
    print_config: bool = False
    """Print the sweep as TOML for --config, and run nothing."""


FILE = ("base", "grid", "seeds", "out", "engine", "address", "workers", "retries", "keep_failed")
# What a training's file has and a sweep decides for itself.
OF_TRAINING = (
    "out", "seed", "existing", "eval_every", "watch", "watch_every", "checkpoint_every",
    "on_fault", "tensorboard", "wandb",
)  # fmt: skip


def main(words: list[str]) -> int:
    """0 done, 2 wrong use, 3 some trainings failed."""
    rest, source = take_config(words)
    stored = {} if source is None else _read_sweep(source)
    own = {name: value for name, value in stored.items() if name not in ("base", "grid")}
    options = parse(SweepOptions, rest, "surefoot sweep", ABOUT, own)
    sweep = sweep_of(options, stored)
    lists = [value for value in _values(sweep, "wrapper") if isinstance(value, list | tuple)]
    allow_modules(_values(sweep, "env"), itertools.chain(*lists), words)
    if options.print_config:
        list(sweep.cells())  # a file that could not be run is not worth printing
        print(to_toml(options, sweep), end="")
        return 0
    return _run(options, sweep)


def _values(sweep: Sweep, name: str) -> list[Any]:
    """All that the sweep says of a setting."""
    return [sweep.base.get(name), *sweep.grid.get(name, ())]


def _run(options: SweepOptions, sweep: Sweep) -> int:
    from rich.console import Console

    from surefoot.training.sweep import run_sweep
    from surefoot.training.sweep.summary import to_table

    result = run_sweep(
        sweep,
        options.out,
        engine=options.engine,
        workers=options.workers or None,
        address=options.address or None,
        retries=options.retries,
        keep_failed=options.keep_failed,
    )
    Console().print(to_table(result.rows, f"sweep, {result.run} trainings run now"))
    for comparison in result.comparisons.values():
        print(f"{in_terminal(comparison, options.out, 'comparison.json')}\n")
    if result.note:
        print(f"{result.note}\n")
    print(f"summary.csv, summary.json, trials.csv and all results are in {options.out}")
    for name, error in list(result.failures.items())[:SHOWN]:
        print(f"failed: {visible(name)}: {visible(error)}", file=sys.stderr)
    if len(result.failures) > SHOWN:
        print(f"and {len(result.failures) - SHOWN} more, in failed/", file=sys.stderr)
    return RunError.exit_code if result.failures else 0


def sweep_of(options: SweepOptions, stored: dict[str, Any]) -> Sweep:
    """The sweep's file first, then the file of shared settings, then the options, then --set."""
    from surefoot.training.sweep.spec import Sweep, parse_grid, parse_seeds, parse_setting

    base: dict[str, Any] = dict(stored.get("base", {}))
    base |= {} if options.base is None else _settings(options.base)
    base |= {name: getattr(options, name) for name in SHARED if getattr(options, name)}
    base |= dict(parse_setting(text) for text in options.set)
    grid = stored.get("grid", {}) | dict(parse_grid(text) for text in options.grid)
    return Sweep({k: v for k, v in base.items() if k not in grid}, grid, parse_seeds(options.seeds))


def _settings(path: Path) -> dict[str, Any]:
    """What `train --print-config` wrote, or the [base] of a sweep's own file."""
    from surefoot.training.sweep.spec import parse_setting

    table = read_toml(path)
    table = table.get("base", table)
    if not isinstance(table, dict):
        raise InputError(f"{path}: base must be a table, [base]")
    # As `train` reads them: settings that belong together may stand in a table of their own.
    tables = [inner for inner in table.values() if isinstance(inner, dict)]
    table = {name: value for name, value in table.items() if not isinstance(value, dict)}
    for inner in tables:
        table |= inner
    own = table.pop("env_option", [])
    if not isinstance(own, list) or not all(isinstance(text, str) for text in own):
        raise InputError(f"{path}: env_option = {own!r}: it must be a list of name=value")
    options = dict(parse_setting(f"env.{text}") for text in own)
    return {k: v for k, v in table.items() if k not in OF_TRAINING} | options


def to_toml(options: SweepOptions, sweep: Sweep) -> str:
    names = ("out", "engine", "address", "workers", "retries", "keep_failed")
    values = {name: getattr(options, name) for name in names}
    values = {name: v for name, v in values.items() if v or name == "retries"}
    return toml_text({**values, **sweep.as_table()})


def _read_sweep(path: Path) -> dict[str, Any]:
    """A sweep's own file, checked as far as the options are not."""
    from surefoot.training.sweep.spec import parse_seeds

    stored = read_toml(path)
    for name, value in stored.items():
        if name not in FILE:
            raise unknown(f"option in {path}:", name, FILE)
        if name in ("base", "grid") and not isinstance(value, dict):
            raise InputError(f"{path}: {name} must be a table, [{name}]")
    for table, wanted in (("base", "one value"), ("grid", "a list of values")):
        for name, value in stored.get(table, {}).items():
            fits = isinstance(value, list) and value if table == "grid" else True
            if isinstance(value, dict) or not fits:
                raise InputError(f"{path}: [{table}] {name} = {value!r}: it must be {wanted}")
    if "seeds" in stored:
        stored["seeds"] = ",".join(map(str, parse_seeds(stored["seeds"])))
    return stored
