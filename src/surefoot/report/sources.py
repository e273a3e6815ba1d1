"""What lies at a path, and the sections of its page: chosen by the kind the run stores.

Rooms that need JAX or matplotlib are entered only for runs that need them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from surefoot import __version__
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper import APART, EXPERIMENTS, caption
from surefoot.paper.claims import from_json, tally
from surefoot.report.page import (
    Badge,
    DataTable,
    Figure,
    Folded,
    Note,
    Page,
    Part,
    Section,
    guarded,
)
from surefoot.report.stored import Stored
from surefoot.runs.directory import KINDS
from surefoot.runs.files import portable_path

ABOUT = {name: text[:1].upper() + text[1:] for name, text in (EXPERIMENTS | APART).items()}
VERDICTS = {"reproduced": "good", "partly": "half", "not reproduced": "bad", "not testable": "none"}
CLAIMS = ("claim", "statement", "measured, with 95 % interval", "verdict", "why")
SETTINGS = ("agent", "loss", "particles", "behaviour", "evaluation", "steps", "seed")
# What an agent leaves that was trained by the library and saved without a run around it.
TRAINING_FILES = ("agent.safetensors", "episodes.csv", "checkpoints")
# Of figures whose name says too little.
TITLES = {"comparison": "Distributions compared", "bands": "Differences with their bands"}
NO_PARTICLES = (
    "The cliff, state by state: not shown, because the tables particles.*.parquet are not here. "
    "Running the experiment again makes them."
)
MOST_NUMBERS = 500  # of a summary that a page lists


def page_of(path: Path) -> Page:
    """The page of whatever lies at `path`, or an error that says what it should have been."""
    if path.is_file():
        from surefoot.report.comparison import file_section

        section = file_section(path)
        return Page(section.title, (section,))
    if not path.is_dir():
        raise InputError(f"{path}: there is no such run directory or file")
    if is_run(path):
        section = section_of(path)
        return Page(section.title, (section,))
    inner = [p for p in sorted(path.iterdir()) if p.is_dir() and not p.is_symlink() and is_run(p)]
    if not inner:
        raise InputError(
            f"{path} is not a run directory (no config.json, no training, no comparison), and "
            "holds none"
        )
    order = list(ABOUT)  # as in the paper, then by name
    inner.sort(key=lambda p: (order.index(p.name) if p.name in order else len(order), p.name))
    sections = [_section_or_reason(p) for p in inner]
    overview = _overview([Stored(p) for p in inner], sections)
    return Page(f"Report on {_name(path)}", (overview, *sections))


def is_run(path: Path) -> bool:
    names = ("config.json", "comparison.json", *TRAINING_FILES)
    return any((path / name).exists() for name in names)


def section_of(path: Path) -> Section:
    """One run, by its kind."""
    stored = Stored(path)
    config = stored.json("config.json")
    kind = kind_of(stored, config)
    title, lead = f"{kind.capitalize()}: {_name(path)}", ""
    if kind == "training":
        from surefoot.report.training import training_parts

        title += f" on {config['env']}" if "env" in config else ""
        lead = ", ".join(f"{name} {config[name]}" for name in SETTINGS if name in config)
        parts = training_parts(stored, config)
    elif kind == "sweep":
        from surefoot.report.sweep import sweep_parts

        parts = sweep_parts(stored)
    elif kind == "comparison":
        from surefoot.report.comparison import comparison_parts

        parts = comparison_parts(stored, _figures(stored))
    elif kind == "suite":
        from surefoot.report.suite import LEAD, suite_parts

        title, lead = f"Risk suite: {_name(path)}", LEAD
        parts = guarded("Who is right", lambda: suite_parts(stored))
        parts += guarded("Claims", lambda: _claims(stored))
        parts += _figures(stored, kind)
    else:
        title, lead = kind or _name(path), ABOUT.get(kind, "")
        parts = guarded("Claims", lambda: _claims(stored))
        parts += guarded("The cliff, state by state", lambda: _explorer(stored, kind, config))
        parts += _figures(stored, kind)
    return Section(title, (*_warnings(stored, config), *parts, *_origin(stored, config)), lead)


def kind_of(stored: Stored, config: Mapping[str, Any]) -> str:
    """One of `KINDS`, or nothing for a run of 0.1.0, of which claims and figures are shown."""
    if not stored.has("config.json"):
        return "comparison" if stored.has("comparison.json") else "training"
    kind = config.get("kind")
    version = _version(stored)
    if kind is None and (stored.has("claims.json") or stored.figures()):
        return ""
    if kind is None:
        raise InputError(
            f"{stored.path}: config.json does not say what kind of run this is, and there are no "
            f"claims or figures to show; it was written by surefoot {version}: use that version"
        )
    if kind not in KINDS:
        raise InputError(
            f"{stored.path}: surefoot {version} wrote it, and surefoot {__version__} knows no runs "
            f"of kind {kind!r}"
        )
    return str(kind)


def _section_or_reason(path: Path) -> Section:
    """In a folder a damaged run says what is wrong, and does not take the others with it."""
    try:
        return section_of(path)
    except InputError as error:
        reason = str(error)
    except Exception as error:
        reason = repr(error)
    return Section(_name(path), (Note(f"This run cannot be shown: {reason}.", "warning"),))


def _overview(runs: list[Stored], sections: list[Section]) -> Section:
    rows = tuple(
        (section.title, section.lead, _outcome(stored))
        for stored, section in zip(runs, sections, strict=True)
    )
    table = DataTable(("run", "what it is", "what came out"), rows, "All runs")
    return Section("Overview", (table,))


def _outcome(stored: Stored) -> str:
    """The claims in one line, or the return a training ended with."""
    try:
        claims = from_json(stored.json("claims.json")) if stored.has("claims.json") else ()
        if claims:
            return tally(claims)
        interval = stored.json("summary.json")["evaluation_return"]
        return f"evaluation return {Interval.from_dict(interval)}"
    except Exception:  # the section itself says what is wrong
        return ""


# --- the parts of a run --------------------------------------------------------------------


def _warnings(stored: Stored, config: Mapping[str, Any]) -> Iterator[Part]:
    if not stored.has("config.json"):
        return
    if "kind" not in config:
        text = f"Written by surefoot {_version(stored)}: its claims and stored figures are shown."
        yield Note(text, "warning")
    if not stored.has("complete.json"):
        yield Note("This run is not finished: the page shows what it has so far.", "warning")


def _claims(stored: Stored) -> list[Part]:
    if not stored.has("claims.json"):
        return []
    claims = from_json(stored.json("claims.json"), stored.path / "claims.json")
    rows = tuple(
        ([c.id, c.where], c.paper, [*map(str, c.evidence)],
         Badge(c.verdict, VERDICTS[c.verdict]), str(c.reason))
        for c in claims
    )  # fmt: skip
    return [DataTable(CLAIMS, rows, "Claims", f"{tally(claims)}.", "claims")] if claims else []


def _explorer(stored: Stored, kind: str, config: Mapping[str, Any]) -> list[Part]:
    """The grid to click on, for the two experiments on a cliff."""
    if kind == "evaluation":
        from surefoot.report.explorer import cliff_walk_explorer

        return [cliff_walk_explorer(stored.json("summary.json"), config)]
    if kind != "risky-cliff":
        return []
    if not any(stored.path.glob("particles.*.parquet")):
        return [Note(NO_PARTICLES, "quiet")]
    from surefoot.report.explorer import risky_cliff_explorer

    return [risky_cliff_explorer(stored, config)]


def _figures(stored: Stored, kind: str = "") -> list[Part]:
    return [part for name in stored.figures() for part in _figure(stored, name, kind)]


def _figure(stored: Stored, name: str, kind: str) -> list[Part]:
    title = TITLES.get(name) or name.replace("-", " ").replace("_", " ").capitalize()

    def embedded() -> list[Part]:
        return [Figure(name, title, stored.figure_uri(name), caption(kind, name))]

    return guarded(title, embedded)


def _origin(stored: Stored, config: Mapping[str, Any]) -> list[Part]:
    """The numbers behind it and where it comes from, folded away."""
    parts = guarded("Numbers", lambda: _numbers(stored))
    parts += guarded("Provenance", lambda: _provenance(stored))
    if config:
        code = json.dumps(config, indent=2, ensure_ascii=False, default=str)
        parts.append(Folded("Configuration", code=code))
    return parts


def _numbers(stored: Stored) -> list[Part]:
    if not stored.has("summary.json"):
        return []
    rows = [*_flat(stored.json("summary.json"), "")]
    title = "Numbers of the summary"
    if len(rows) > MOST_NUMBERS:
        title += f", the first {MOST_NUMBERS} of {len(rows):,} (all are in summary.json)"
    return [Folded(title, tuple(rows[:MOST_NUMBERS]))] if rows else []


def _flat(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Names and values of a summary; an interval is one of them."""
    if isinstance(value, dict) and {"mean", "low", "high", "n"} <= set(value):
        try:
            yield where, f"{Interval.from_dict(value)}, n = {value['n']}"
        except (InputError, OverflowError):
            yield where, json.dumps(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{where}, {name}" if where else str(name))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for i, inner in enumerate(value):
            yield from _flat(inner, f"{where} {i}")
    elif isinstance(value, list):
        yield where, ", ".join(map(_short, value[:24])) + (" ..." if len(value) > 24 else "")
    else:
        yield where, _short(value)


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else "none" if value is None else str(value)


def _provenance(stored: Stored) -> list[Part]:
    if not stored.has("provenance.json"):
        return []
    content = stored.json("provenance.json")
    rows = [("command", _command(content.get("command")))]
    rows += [("resumed by", _command(r.get("command"))) for r in content.get("resumed", ())]
    rows += [(name, json.dumps(content[name])) for name in ("seeds", "platform") if name in content]
    versions = content.get("versions", {})
    rows.append(("versions", ", ".join(f"{k} {v}" for k, v in versions.items())))
    return [Folded("Provenance: command, seeds, versions", tuple(rows))]


def _command(words: Any) -> str:
    return shlex.join(str(w) for w in words) if isinstance(words, list) else "not recorded"


def _version(stored: Stored) -> str:
    versions = stored.json("provenance.json").get("versions")
    return (
        str(versions.get("surefoot", "?")) if isinstance(versions, dict) else "of unknown version"
    )


def _name(path: Path) -> str:
    return Path(portable_path(path.resolve())).name
