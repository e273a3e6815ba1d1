"""What lies at a path, and the sections of the page made from it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper.claims import Claim, read_claims, tally
from surefoot.paper.everything import APART, EXPERIMENTS
from surefoot.report.comparison import comparison_parts
from surefoot.report.parts import Badge, Facts, Note, Page, Part, Section, Table
from surefoot.report.run import MISFITS, Builder, Run, figures_of
from surefoot.report.training import is_training, training_parts
from surefoot.runs.directory import RunDir
from surefoot.runs.files import portable_path, read_json

TONES = {"reproduced": "good", "partly": "half", "not reproduced": "bad", "not testable": "none"}
HEADER = ("claim", "the paper says", "measured, with 95 % interval", "verdict", "why")
ABOUT = EXPERIMENTS | APART


def page_of(path: Path) -> Page:
    """The page of whatever lies at `path`, or an error that says what it should have been."""
    if path.is_file():
        return Page(f"Comparison of {path.name}", (file_section(path),))
    if not path.is_dir():
        raise InputError(f"{path}: there is no such run directory or file")
    if is_run(path):
        section = section_of(path)
        return Page(section.title, (section,))
    inner = sorted(p for p in path.iterdir() if p.is_dir() and is_run(p))
    if not inner:
        raise InputError(
            f"{path} is not a run directory (no config.json, no training, no comparison), and "
            "holds none"
        )
    order = list(ABOUT)
    inner.sort(key=lambda p: (order.index(p.name) if p.name in order else len(order), p.name))
    sections = [_safely(p) for p in inner]
    return Page(f"Report on {_name(path)}", (_overview(inner, sections), *sections))


def is_run(path: Path) -> bool:
    named = any((path / n).is_file() for n in ("config.json", "comparison.json"))
    return named or is_training(path)


def section_of(path: Path) -> Section:
    """One run of whichever kind."""
    config = _object(path / "config.json")
    if (path / "comparison.json").is_file():
        return Section(f"Comparison: {_name(path)}", (*comparison_of(path), *_source(path, config)))
    kind = experiment_of(config)
    if config.get("kind") == "training" or (kind is None and is_training(path)):
        return training_section(path, config)
    run = Run(RunDir.open(path), _name(path))
    parts = [*_state(path), *_claims(path), *figures_of(run, builders_of(kind, run))]
    if kind == "sweep":
        from surefoot.report.sweep import failures

        return Section(f"Sweep: {run.name}", (*parts, *failures(run), *_source(path, config)))
    title = kind or run.name
    return Section(title, (*parts, *_source(path, config)), ABOUT.get(title, "").capitalize())


def experiment_of(config: Mapping[str, Any]) -> str | None:
    kind = config.get("kind")
    return kind if kind in _BUILDERS else None


def builders_of(kind: str | None, run: Run) -> dict[str, Builder]:
    """Imported on use: a page of one experiment does not load the others."""
    try:
        return _BUILDERS[kind](run) if kind in _BUILDERS else {}
    except (InputError, *MISFITS):
        return {}  # every stored picture is shown with its reason instead


def _risky_cliff(_: Run) -> dict[str, Builder]:
    from surefoot.report import risky_cliff

    return risky_cliff.builders()


def _evaluation(_: Run) -> dict[str, Builder]:
    from surefoot.report import evaluation

    return evaluation.builders()


def _moments(run: Run) -> dict[str, Builder]:
    from surefoot.report import moments

    return moments.ablation() if "step_sizes" in run.config else moments.regression(run)


def _theory(_: Run) -> dict[str, Builder]:
    from surefoot.report import theory

    return theory.builders()


def _sweep(_: Run) -> dict[str, Builder]:
    from surefoot.report import sweep

    return sweep.builders()


def _control(run: Run) -> dict[str, Builder]:
    from surefoot.report import control

    return control.choices() if "target_periods" in run.config else control.builders(run)


_BUILDERS: dict[str | None, Callable[[Run], dict[str, Builder]]] = {
    "risky-cliff": _risky_cliff,
    "evaluation": _evaluation,
    "regression": _moments,
    "ablation": _moments,
    "figures": _theory,
    "gym": _control,
    "gym-choices": _control,
    "sweep": _sweep,
}


# --- the other kinds -----------------------------------------------------------------------


def file_section(path: Path) -> Section:
    """A file of returns, compared here and now."""
    from surefoot.comparison import compare, read_returns

    returns = read_returns(path)
    told = compare(returns, source=path.name).to_dict()
    return Section(path.name, tuple(comparison_parts(told, returns)))


def comparison_of(path: Path) -> list[Part]:
    from surefoot.comparison import read_returns

    told = _object(path / "comparison.json")
    try:
        returns = read_returns(path / "returns.csv") if (path / "returns.csv").is_file() else None
        return comparison_parts(told, returns)
    except MISFITS as error:
        raise InputError(f"{path / 'comparison.json'}: is not a comparison ({error!r})") from None


def training_section(path: Path, config: Mapping[str, Any]) -> Section:
    env = str(config["env"]) if "env" in config else ""
    names = ("agent", "loss", "particles", "behaviour", "evaluation", "steps", "seed")
    told = [f"{name} {config[name]}" for name in names if name in config]
    parts = training_parts(path, config)
    title = f"Training: {_name(path)}" + (f" on {env}" if env else "")
    return Section(title, (*_state(path), *parts, *_source(path, config)), ", ".join(told))


# --- what all have -------------------------------------------------------------------------


def _state(path: Path) -> list[Part]:
    if (path / "complete.json").is_file() or not (path / "config.json").is_file():
        return []
    return [Note("This run has not come to its end: what it has so far is shown.", "warning")]


def _claims(path: Path) -> list[Part]:
    claims = _read_claims(path)
    if not claims:
        return []
    rows = tuple(
        ([c.id, f"section {c.section}"], c.paper, c.evidence, Badge(c.verdict, TONES[c.verdict]),
         c.reason)
        for c in claims
    )  # fmt: skip
    return [Table(HEADER, rows, tally(claims) + ".", wide=True)]


def _read_claims(path: Path) -> tuple[Claim, ...]:
    if not (path / "claims.json").is_file():
        return ()
    return read_claims(RunDir(path))


def _source(path: Path, config: Mapping[str, Any]) -> list[Part]:
    """Where the results come from, folded away."""
    found: list[Part] = []
    if (path / "provenance.json").is_file():
        told = _object(path / "provenance.json")
        rows = [("command", _command(told.get("command")))]
        rows += [("resumed by", _command(r.get("command"))) for r in told.get("resumed", ())
                 if isinstance(r, dict)]  # fmt: skip
        rows += [(name, json.dumps(told[name])) for name in ("seeds", "platform") if name in told]
        versions = told.get("versions")
        if isinstance(versions, dict):
            rows.append(("versions", ", ".join(f"{k} {v}" for k, v in versions.items())))
        found.append(Facts("Provenance: command, seeds, versions", tuple(rows)))
    if config:
        found.append(Facts("Configuration", (), json.dumps(config, indent=2, ensure_ascii=False)))
    return found


def _command(words: Any) -> str:
    return shlex.join(str(w) for w in words) if isinstance(words, list) else "not recorded"


def _overview(inner: list[Path], sections: list[Section]) -> Section:
    rows = []
    for path, section in zip(inner, sections, strict=True):
        try:
            claims = _read_claims(path)
        except InputError:
            claims = ()
        rows.append((section.title, section.lead, tally(claims) if claims else _outcome(path)))
    table = Table(("run", "what it is", "what came out"), tuple(rows))
    return Section("Overview", (table,))


def _outcome(path: Path) -> str:
    """Of a training: the return it ended with."""
    try:
        told = _object(path / "summary.json")
        return f"evaluation return {Interval.from_dict(told['evaluation_return'])}"
    except (InputError, *MISFITS):
        return ""


def _safely(path: Path) -> Section:
    """In a folder of runs a damaged one is told, and does not take the others with it."""
    try:
        return section_of(path)
    except InputError as error:
        return Section(_name(path), (Note(f"This run cannot be shown: {error}.", "warning"),))


def _object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: does not hold a JSON object")
    return content


def _name(path: Path) -> str:
    return Path(portable_path(path.resolve())).name
