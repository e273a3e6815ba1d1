"""`surefoot sweep`: trainings over a grid of settings and seeds, here or on a cluster."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from surefoot.cli.options import own_modules, parse, read_toml, take_config
from surefoot.errors import InputError, RunError, unknown
from surefoot.runs.files import toml_value
from surefoot.training.engines import RETRIES
from surefoot.training.sweep import Sweep, parse_seeds, run_sweep
from surefoot.training.sweep.spec import parse_grid, parse_setting
from surefoot.training.sweep.summary import to_table

Words = tyro.conf.UseAppendAction[tuple[str, ...]]
SHOWN = 10  # failures that are printed
SHARED = ("env", "agent", "steps")  # settings that have an option of their own


@dataclass(frozen=True)
class Options:
    base: Path | None = None
    """TOML file of settings that all trials share, such as surefoot train --print-config writes."""
    env: str = ""
    """Gymnasium id of the environment."""
    agent: str = ""
    """neural, tabular, or by default auto: tabular where the observations are discrete."""
    steps: int = 0
    """Environment steps of each trial."""
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
    """How often a trial whose worker dies is tried again."""
    keep_failed: bool = False
    """Leave trials alone that have failed before."""
    print_config: bool = False
    """Print the sweep as TOML for --config, and run nothing."""


FILE = ("base", "grid", "seeds", "out", "engine", "address", "workers", "retries", "keep_failed")
ABOUT = "Train over a grid of settings and seeds. A TOML file has seeds, [base], [grid]."


def main(words: list[str]) -> int:
    """0 done, 2 wrong use, 3 some trials failed."""
    options = parse(Options, _spelled_out(words), "surefoot sweep", ABOUT)
    sweep = sweep_of(options)
    for env in (sweep.base.get("env"), *sweep.grid.get("env", ())):
        own_modules(env)
    if options.print_config:
        list(sweep.cells())  # a file that could not be run is not worth printing
        print(to_toml(options, sweep), end="")
        return 0
    result = run_sweep(
        sweep,
        options.out,
        engine=options.engine,
        workers=options.workers or None,
        address=options.address or None,
        retries=options.retries,
        keep_failed=options.keep_failed,
    )
    Console().print(to_table(result.rows, f"sweep, {result.run} trials run now"))
    print(f"summary.csv, summary.json, trials.csv and all results are in {options.out}")
    for name, error in list(result.failures.items())[:SHOWN]:
        print(f"failed: {name}: {error}", file=sys.stderr)
    if len(result.failures) > SHOWN:
        print(f"and {len(result.failures) - SHOWN} more, in failed/", file=sys.stderr)
    return RunError.exit_code if result.failures else 0


def sweep_of(options: Options) -> Sweep:
    """File of shared settings first, then the options, then --set."""
    base: dict[str, Any] = {} if options.base is None else _settings(options.base)
    base |= {name: getattr(options, name) for name in SHARED if getattr(options, name)}
    base |= dict(parse_setting(text) for text in options.set)
    grid = dict(parse_grid(text) for text in options.grid)
    return Sweep({k: v for k, v in base.items() if k not in grid}, grid, parse_seeds(options.seeds))


# What a training's file has and a sweep decides for itself.
OF_TRAINING = (
    "out", "seed", "existing", "eval_every", "watch", "watch_every", "checkpoint_every",
    "on_fault", "tensorboard", "wandb",
)  # fmt: skip


def _settings(path: Path) -> dict[str, Any]:
    """What `train --print-config` wrote, or the [base] of a sweep's own file."""
    found = read_toml(path)
    found = found.get("base", found)
    options = dict(parse_setting(f"env.{text}") for text in found.pop("env_option", ()))
    return {k: v for k, v in found.items() if k not in OF_TRAINING} | options


def to_toml(options: Options, sweep: Sweep) -> str:
    names = ("out", "engine", "address", "workers", "retries", "keep_failed")
    values = {name: getattr(options, name) for name in names}
    lines = [f"{name} = {toml_value(v)}\n" for name, v in values.items() if v or name == "retries"]
    return "".join(lines) + sweep.to_toml()


def _spelled_out(words: list[str]) -> list[str]:
    """The file of `--config` as the words that say the same, before those of the command line."""
    rest, path = take_config(words)
    return rest if path is None else [*_words_of(path), *rest]


def _words_of(path: Path) -> list[str]:
    words: list[str] = []
    for name, value in read_toml(path).items():
        if name not in FILE:
            raise unknown(f"option in {path}:", name, FILE)
        if name in ("base", "grid"):
            if not isinstance(value, dict):
                raise InputError(f"{path}: {name} must be a table, [{name}]")
            for setting, content in value.items():
                words += _setting_words(path, name, setting, content)
        elif name == "seeds":
            words += ["--seeds", ",".join(map(str, parse_seeds(value)))]
        else:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def _setting_words(path: Path, table: str, name: str, value: Any) -> list[str]:
    if table == "base" and not isinstance(value, dict):
        return ["--set", f"{name}={toml_value(value)}"]
    if table == "grid" and isinstance(value, list) and value:
        return ["--grid", f"{name}={','.join(toml_value(v) for v in value)}"]
    wanted = "one value" if table == "base" else "a list of values"
    raise InputError(f"{path}: [{table}] {name} = {value!r}: {wanted} is wanted")
