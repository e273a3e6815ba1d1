"""The further tests of a comparison as tables, for a terminal, Markdown, notebooks and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

ALL_PAIRS = 'all pairs are in comparison.json and in `to_frame("further")`'
_SHORT = {"barrett-donald": "BD", "linton-subsample": "LMW", "donald-hsu": "DH",
          "contact-set": "CS"}  # fmt: skip
_ORDERS = {1: "first order", 2: "second order"}


class WordTable(NamedTuple):
    title: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def further_tables(further: Mapping[str, Any], most: int | None = None) -> Iterator[WordTable]:
    """From what `comparison.json` holds; of very many pairs the first `most`."""
    pairs, shown = further["pairs"], further["pairs"][:most]
    left_out = f" The first {len(shown)} of {len(pairs)} pairs; {ALL_PAIRS}."
    left_out = left_out if len(shown) < len(pairs) else ""
    yield _tests(shown, left_out)
    yield _almost(shown, f"{1 - further['level']:.4g}", left_out)
    for order in dict.fromkeys(rank["order"] for rank in further["ranking"]):
        yield _ranking([rank for rank in further["ranking"] if rank["order"] == order], order)
    if further["maximality"]:
        yield _maximality(further["maximality"])


def _tests(pairs: list[Any], left_out: str) -> WordTable:
    tests = pairs[0]["tests"]
    return WordTable(
        'Further tests of "a dominates b": p-values',
        "A small one contradicts it. BD: Barrett and Donald; LMW: Linton, Maasoumi and Whang, by "
        "subsampling; DH: Donald and Hsu, recentred; CS: Linton, Song and Whang, on the contact "
        "set; 1 to 3: the order. After Holm's correction over all ordered pairs." + left_out,
        ("a over b", *(f"{_SHORT[test['method']]} {test['order']}" for test in tests)),
        tuple((_named(p), *(f"{value:.3g}" for value in p["corrected"])) for p in pairs),
    )


def _almost(pairs: list[Any], confidence: str, left_out: str) -> WordTable:
    return WordTable(
        "Almost dominance: the share of the difference that speaks against a",
        "Of the squared differences of the quantiles (first order) or of F^-2 (second): 0 where a "
        "dominates, 1 where b does, with an interval, and the upper end of a one-sided "
        "one: at the first order that is the minimal epsilon of almost stochastic order (ASO). "
        f"Confidence {confidence} for each, not corrected." + left_out,
        ("a over b", "first order", "interval", "ASO", "second order", "interval", "upper end"),
        tuple(
            (_named(p), *(cell for one in p["almost"] for cell in (
                f"{one['ratio']:.3f}", _interval(one), f"{one['upper']:.3f}")))
            for p in pairs
        ),
    )  # fmt: skip


def _ranking(ranks: list[Any], order: int) -> WordTable:
    return WordTable(
        f"Each column against all others, {_ORDERS[order]}, best first",
        "Mean of the shares that speak against it: 0 dominates all others. Better than: after "
        "Holm's correction over all ordered pairs.",
        ("column", "mean share", "interval", "better than"),
        tuple((str(rank["name"]), f"{rank['ratio']:.3f}", _interval(rank),
               ", ".join(rank["better_than"]) or "none") for rank in ranks),
    )  # fmt: skip


def _maximality(tests: list[Any]) -> WordTable:
    return WordTable(
        'Is the set maximal? p-values of "some column dominates another"',
        "A small one says that no column dominates another. Most likely: the two for which the "
        "evidence against it is least.",
        ("order", "p", "most likely"),
        tuple((_ORDERS[one["order"]], f"{one['p_value']:.3g}", " over ".join(one["pair"]))
              for one in tests),
    )  # fmt: skip


def _named(pair: Mapping[str, Any]) -> str:
    return f"{pair['a']} over {pair['b']}"


def _interval(one: Mapping[str, Any]) -> str:
    return f"{one['low']:.3f} to {one['high']:.3f}"
