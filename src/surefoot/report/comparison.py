"""A comparison on a page: which columns are left, a matrix of verdicts, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefoot.comparison.bootstrap import DominanceTest
from surefoot.comparison.further_words import further_tables
from surefoot.comparison.result import Verdict
from surefoot.comparison.settings import range_tested
from surefoot.comparison.words import (
    MANY,
    ORDER_TITLES,
    WHY_A_RANGE,
    YEAR_HEADER,
    decided,
    others_sentence,
    p_values,
    ratio,
    share,
)
from surefoot.errors import InputError
from surefoot.report.page import Badge, DataTable, Figure, Folded, Note, Part, Section
from surefoot.report.stored import Stored, drawn_uri

SETS = {
    "dominates every other in the sample": "dominant",
    "established over every other": "established_dominant",
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
CAPTIONS = {
    "bands": "Above 0 the worst share τ of the first column is better on average. A band holds for "
    "all τ at once, but for its pair alone: the words are corrected for the number of pairs."
}
MOST_PAIRS = 300  # rows of a table that anyone reads


def file_section(path: Path) -> Section:
    """A file of returns, compared here and now."""
    from surefoot.comparison import compare, read_returns

    result = compare(read_returns(path), source=path.name)
    drawn = [
        Figure("comparison", "Distributions compared", drawn_uri(result.figure())),
        Figure("bands", "Differences with their bands", drawn_uri(result.figure("bands"))),
    ]
    return Section(f"Comparison of {path.name}", (*_parts(result.to_dict(), drawn),))


def comparison_parts(stored: Stored, figures: list[Part]) -> list[Part]:
    """From comparison.json, with the figures that are stored beside it."""
    try:
        return _parts(stored.json("comparison.json"), figures)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        place = stored.path / "comparison.json"
        raise InputError(f"{place}: is not a comparison ({error!r})") from None


def _parts(content: Mapping[str, Any], figures: list[Any]) -> list[Part]:
    parts: list[Part] = [choice_part(content)]
    parts += [Note(f"{note}.", "warning") for note in content["notes"]]
    parts += [*verdict_parts(content), method_note(content)]
    parts += [_captioned(part) for part in sorted(figures, key=_place)]
    parts.append(_summaries(content))
    if any(s.get("annual") for s in content["summaries"]):
        parts.append(_years(content))
    parts.append(_pairs(content))
    if "further" in content:
        for table in further_tables(content["further"], MOST_PAIRS):
            look = "numbers" if table.header[0] == "a over b" else "text"
            parts.append(DataTable(table.header, table.rows, table.title, table.caption, look))
    return [*parts, *(Note(f"{_sentence(note)}.", "quiet") for note in content.get("reading", ()))]


def _captioned(part: Part) -> Part:
    if isinstance(part, Figure) and part.name in CAPTIONS:
        return replace(part, caption=CAPTIONS[part.name])
    return part


def _place(part: Part) -> bool:
    """Distributions first."""
    return isinstance(part, Figure) and part.name != "comparison"


def verdict_parts(content: Mapping[str, Any], where: str = "") -> list[Part]:
    """A matrix for each order, or a list of pairs; `where` ends their titles. With what
    `method_note` says, every word follows from what is shown."""
    verdicts = [_verdict(v) for v in content["verdicts"]]
    if len(content["summaries"]) <= MANY:
        return [_matrix(content, verdicts, order, where) for order in (2, 1)]
    return [part for order in (2, 1) for part in _decided_parts(content, verdicts, order, where)]


def _verdict(v: Mapping[str, Any]) -> Verdict:
    """As it was before it was stored."""
    own = {name: v[name] for name in Verdict.__dataclass_fields__}
    return Verdict(**{**own, "test": DominanceTest(**v["test"])})


def choice_part(content: Mapping[str, Any], where: str = "") -> DataTable:
    """Who dominates, and whom nobody does; `where` ends the title."""
    rows = []
    for order in (2, 1):
        chosen = content["orders"][str(order)]
        cells = [", ".join(chosen[name]) or "none" for name in SETS.values()]
        rows.append((ORDER_TITLES[order], *cells))
    return DataTable(("order", *SETS), tuple(rows), f"Which columns are left to choose from{where}")


def _matrix(
    content: Mapping[str, Any], verdicts: list[Verdict], order: int, where: str
) -> DataTable:
    """What is known of each row over each column, with the two p-values."""
    names = [str(s["name"]) for s in content["summaries"]]
    cells = {(v.a, v.b): _badge(v) for v in verdicts if v.order == order}
    rows = tuple((a, *(cells.get((a, b), "") for b in names)) for a in names)
    title, who = ORDER_TITLES[order].removesuffix(")").split(" (")
    return DataTable(
        ("row over column", *names),
        rows,
        f"{title}: does the row dominate the column?{where}",
        f"{_sentence(who)}. Below each word: p of dominance / p of non-dominance, corrected; a "
        "star where dominance is rejected without the correction.",
        "matrix",
    )


def _badge(v: Verdict) -> Badge:
    return Badge(v.word, WORDS[v.word], p_values(v))


def _decided_parts(
    content: Mapping[str, Any], verdicts: list[Verdict], order: int, where: str
) -> list[Part]:
    """The pairs of very many columns in which something is rejected; the first as a table, and
    where there are more, all of them as text to search."""
    chosen, level = decided(verdicts, order), content["level"]
    title, who = ORDER_TITLES[order].removesuffix(")").split(" (")
    title = f"{title}: pairs with a p-value of at most {level:g}{where}"
    rows = tuple(
        (str(v.a), str(v.b), _badge(v), _badge(back)) for v, back in chosen.pairs[:MOST_PAIRS]
    )
    caption = (
        f"{_sentence(who)}. Below each word: p of dominance / p of non-dominance, corrected; a "
        f"star where dominance is rejected without the correction. {len(chosen.pairs):,} pairs. "
        f"{others_sentence(chosen, level)}"
    )
    parts: list[Part] = [DataTable(("a", "b", "a over b", "b over a"), rows, title, caption)]
    if len(chosen.pairs) > MOST_PAIRS:
        lines = (
            "\t".join((v.a, v.b, v.word, p_values(v), back.word, p_values(back)))
            for v, back in chosen.pairs
        )
        every = f"All {len(chosen.pairs):,} of them: a, b, a over b, b over a"
        parts.append(Folded(every, code="\n".join(lines)))
    return parts


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


def _years(content: Mapping[str, Any]) -> DataTable:
    rows = []
    for s in content["summaries"]:
        if s.get("annual"):
            y = s["annual"]
            shares = (share(y[name]) for name in ("growth", "volatility", "max_drawdown"))
            growth, volatility, drawdown = shares
            ratios = (ratio(y["sharpe"]), ratio(y["sortino"]))
            rows.append((str(s["name"]), growth, volatility, *ratios, drawdown,
                         f"{y['rows_per_year']:.4g}"))  # fmt: skip
    header = ("column", *YEAR_HEADER[1:], "rows a year")
    caption = "The return is compound; no riskless rate is taken off; drawdown of compound wealth."
    return DataTable(header, tuple(rows), "A year of each column", caption, "numbers")


def _pairs(content: Mapping[str, Any]) -> DataTable:
    """What the samples themselves show, each pair once, seen from the column that comes first, and
    the values at which 'established' is tested (the same in both directions)."""
    place = {s["name"]: i for i, s in enumerate(content["summaries"])}
    of = {(v["a"], v["b"], v["order"]): v for v in content["verdicts"]}
    pairs = [(a, b) for a, b, order in of if order == 2 and place[a] < place[b]]
    rows = []
    for a, b in pairs[:MOST_PAIRS]:
        second, back, first = of[a, b, 2], of[b, a, 2], of[a, b, 1]
        shown = (RELATIONS.get(v["relation"], v["relation"]) for v in (second, first))
        numbers = (second["violation"], back["violation"], second["almost_ratio"])
        ends = ((v["test"]["low"], v["test"]["high"]) for v in (second, first))
        ranges = (f"{float(low):.4g} to {float(high):.4g}" for low, high in ends)
        rows.append((str(a), str(b), *map(str, shown), *(f"{x:.4g}" for x in numbers), *ranges))
    header = ("a", "b", "second order", "first order", "shortfall of a", "shortfall of b",
              "almost-SSD ratio of a", "range, second order", "range, first order")  # fmt: skip
    caption = (
        "A shortfall is the largest by which a column's F⁻² lies below the other's. 'Established' "
        "is tested at every value of the range. "
    )
    if len(pairs) > MOST_PAIRS:
        caption += f"The first {MOST_PAIRS:,} pairs; comparison.md has them all."
    return DataTable(header, tuple(rows), "In the sample, pair by pair", caption.strip())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def method_note(content: Mapping[str, Any]) -> Note:
    """How the words follow from the p-values, and the range of what is established."""
    paired = ", rows paired" if content["paired"] else ""
    tested = range_tested([s["n"] for s in content["summaries"]], content.get("trim"))
    return Note(
        f"P-values are those of {content['resamples']:,} resamples (seed {content['seed']}"
        f"{paired}) corrected over all ordered pairs ({content.get('correction', 'holm')}). "
        f"At level {content['level']:g}, a over b is contradicted where the hypothesis that a "
        "dominates b is rejected (Barrett and Donald, 2003); established where the hypothesis that "
        f"it does not is rejected (Davidson and Duclos, 2013), {tested}, {WHY_A_RANGE}; "
        "not contradicted where the reverse is rejected and it is not itself, "
        "even without the correction. Otherwise one cannot tell. "
        f"Tolerance {content['tolerance']:g}.",
        "quiet",
    )
