"""A comparison on a page: which columns are left, what the sample supports, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.comparison.words import ORDER_TITLES
from surefoot.errors import InputError
from surefoot.report.page import Badge, Cell, DataTable, Figure, Note, Part, Section
from surefoot.report.stored import Stored, drawn_uri

SETS = {
    "dominates every other in the sample": "dominant",
    "established": "established_dominant",
    "dominated by none in the sample": "efficient",
}
RELATIONS = {
    "dominates": "a dominates b",
    "dominated": "b dominates a",
    "neither": "neither dominates",
    "equal": "equal",
}
WORDS = {
    "established": "good",
    "not contradicted": "half",
    "contradicted": "bad",
    "cannot tell": "none",
}


def file_section(path: Path) -> Section:
    """A file of returns, compared here and now."""
    from surefoot.comparison import compare, read_returns
    from surefoot.plots import draw_comparison

    result = compare(read_returns(path), source=path.name)
    figure = draw_comparison(
        result.returns,
        dominant=result.dominant(),
        established=result.dominant(established=True),
        efficient=result.efficient(),
    )
    drawn = Figure("comparison", "Distributions compared", drawn_uri(figure))
    return Section(f"Comparison of {path.name}", (*_parts(result.to_dict(), [drawn]),))


def comparison_parts(stored: Stored, figures: list[Part]) -> list[Part]:
    """From comparison.json, with the figures that are stored beside it."""
    try:
        return _parts(stored.json("comparison.json"), figures)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        place = stored.path / "comparison.json"
        raise InputError(f"{place}: is not a comparison ({error!r})") from None


def _parts(content: Mapping[str, Any], figures: list[Any]) -> list[Part]:
    parts: list[Part] = [_choice(content)]
    parts += [Note(f"{note}.", "warning") for note in content["notes"]]
    parts += [*figures, _summaries(content)]
    parts += [_pairs(content, order) for order in (2, 1)]
    return [*parts, Note(_method(content), "quiet")]


def _choice(content: Mapping[str, Any]) -> DataTable:
    rows = []
    for order in (2, 1):
        sets = content["orders"][str(order)]
        cells = [", ".join(sets[name]) or "none" for name in SETS.values()]
        rows.append((ORDER_TITLES[order], *cells))
    return DataTable(("order", *SETS), tuple(rows), "Which columns are left to choose from")


def _summaries(content: Mapping[str, Any]) -> DataTable:
    levels, rows = list(content["levels"]), []
    for s in content["summaries"]:
        tail = [s["cvar_curve"][levels.index(level)] for level in (0.05, 0.25)]
        values = (s["mean"], s["deviation"], s["worst"], *tail, s["median"], s["best"])
        rows.append((str(s["name"]), f"{s['n']:,}", *(f"{value:.4g}" for value in values)))
    header = ("column", "n", "mean", "deviation", "worst", "CVaR 5 %", "CVaR 25 %", "median",
              "best")  # fmt: skip
    return DataTable(header, tuple(rows), "Each column on its own", "In the unit of the returns.",
                 "numbers")  # fmt: skip


def _pairs(content: Mapping[str, Any], order: int) -> DataTable:
    header = ["a", "b", "in the sample", "a over b", "p of dominance", "p of non-dominance"]
    header += ["shortfall", "almost-SSD ratio"] if order == 2 else []
    rows = []
    for v in content["verdicts"]:
        if v["order"] != order:
            continue
        shown = RELATIONS.get(v["relation"], v["relation"])
        cells: list[Cell] = [str(v["a"]), str(v["b"]), str(shown)]
        cells.append(Badge(str(v["word"]), WORDS[v["word"]]))
        cells += [f"{v['dominance_p']:.3g}", f"{v['nondominance_p']:.3g}"]
        if order == 2:
            cells += [f"{v['violation']:.4g}", f"{v['almost_ratio']:.3g}"]
        rows.append(tuple(cells))
    title, caption = ORDER_TITLES[order].removesuffix(")").split(" (")
    return DataTable(
        tuple(header), tuple(rows), f"Pair by pair: {title.lower()}", f"{caption.capitalize()}."
    )


def _method(content: Mapping[str, Any]) -> str:
    paired = ", rows paired" if content["paired"] else ""
    return (
        f"P-values are those of {content['resamples']:,} resamples (seed {content['seed']}"
        f"{paired}) after Holm's correction over all ordered pairs. At level "
        f"{content['level']:g}, a over b is contradicted where the hypothesis that a dominates b "
        "is rejected (Barrett and Donald, 2003); established where the hypothesis that it does "
        "not is rejected (Davidson and Duclos, 2013, on the range of values in comparison.json); "
        "not contradicted where the reverse is rejected and it is not itself, even "
        f"without the correction. Otherwise one cannot tell. Tolerance {content['tolerance']:g}."
    )
