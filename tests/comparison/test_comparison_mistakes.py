"""Comparison: mistakes in one line, columns that count are no returns, units do not matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.comparison import (
    almost_dominance,
    compare,
    dominance_test,
    further_tests,
    maximality,
    read_returns,
    relative_ranking,
)
from surefoot.errors import InputError

RNG = np.random.default_rng(1)
A, B = RNG.normal(0.1, 1, 40), RNG.normal(0, 1.3, 40)
BOTH = {"a": A, "b": B}


def names(returns: Any, **options: Any) -> list[str]:
    return [one.name for one in compare(returns, resamples=19, **options).summaries]


# --- what is compared --------------------------------------------------------------------------


def test_a_list_of_columns_needs_their_names() -> None:
    for returns in ([A, B], (A, B), [A, B[:20]], [[0.1, 0.2], [0.3, 0.1], [0.1, 0.4]], []):
        with pytest.raises(InputError, match="name the columns"):
            compare(returns)
    assert names([A, B[:20]], names=["x", "y"]) == ["x", "y"]
    same = compare([A, B], names=["a", "b"], resamples=19), compare(BOTH, resamples=19)
    assert same[0].verdicts == same[1].verdicts
    with pytest.raises(InputError, match="names: 3 for 2 columns"):
        compare([A, B], names=["x", "y", "z"])
    assert names(np.c_[A, B]) == ["0", "1"]


ROWS = [(0.1, 0.2), (0.1, 0.3), (-0.2, 0.1)]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("Unnamed: 0", "012"),
        ("Unnamed: 0.1", "012"),
        ("index", "123"),
        ("index", "321"),
        ("year", ("2000", "2001", "2002")),
        ("year", ("2000.0", "2001.0", "2002.0")),
        ("FY", ("2000", "2001", "2002")),
    ],
)
def test_a_column_that_counts_is_left_out_wherever_it_stands(
    name: str, cells: tuple[str, ...], place: int, tmp_path: Path
) -> None:
    lines = [["A", "B"], *([str(value) for value in row] for row in ROWS)]
    for line, cell in zip(lines, (name, *cells), strict=True):
        line.insert(place, cell)
    (tmp_path / "x.csv").write_text("\n".join(",".join(line) for line in lines))
    table = read_returns(tmp_path / "x.csv")
    assert list(table) == ["A", "B"]
    assert any(name in note for note in table.notes)
    assert list(read_returns(tmp_path / "x.csv", ["A", "B", name])) == ["A", "B", name]


def test_both_counting_columns_of_a_table_saved_twice_are_left_out(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i},{x},{y}" for i, (x, y) in enumerate(ROWS))
    (tmp_path / "x.csv").write_text(f"Unnamed: 0.1,Unnamed: 0,A,B\n{rows}\n")
    assert list(read_returns(tmp_path / "x.csv")) == ["A", "B"]


def test_a_column_that_counts_the_rows_of_a_frame_is_left_out() -> None:
    pd = pytest.importorskip("pandas")
    for values in (range(40), range(1980, 2020), np.arange(40.0)):
        for place in (0, 1, 2):
            frame = pd.DataFrame(BOTH)
            frame.insert(place, "t", values)
            assert names(frame) == ["a", "b"]
    assert names({"t": np.arange(40), **BOTH}) == ["t", "a", "b"]  # named one by one


# --- units -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-6, 1e6, 1e-45, 1e-120, 1e40, 1e120])
def test_no_p_value_depends_on_the_unit(unit: float) -> None:
    rng = np.random.default_rng(3)
    table = {name: rng.normal(mean, 1, 40) for name, mean in (("a", 0.4), ("b", 0.0), ("c", -0.3))}

    def said(factor: float) -> list[Any]:
        scaled = {name: values * factor for name, values in table.items()}
        found = compare(scaled, prices=False, resamples=99, correction="romano-wolf")
        further = further_tests(scaled["a"], scaled["b"], resamples=99, grid=[0, factor])
        exact = further_tests(scaled["a"], scaled["b"], resamples=99)
        most = [maximality(scaled, order, prices=False, resamples=99) for order in (1, 2)]
        return [
            *((v.word, v.dominance_p, v.nondominance_p) for v in found.verdicts),
            *(test.p_value for test in (*further, *exact)),
            *((one.p_value, one.pair) for one in most),
        ]

    assert said(unit) == said(1.0)


def test_a_statistic_has_the_unit_of_the_returns() -> None:
    # A power of two, so that nothing rounds. Suprema have the unit to the order less one, integrals
    # of squares that twice and one more.
    plain, scaled = (further_tests(A * c, B * c, resamples=19) for c in (1.0, 8.0))
    for one, other in zip(plain, scaled, strict=True):
        powers = one.order - 1
        powers = 2 * powers + 1 if one.method == "contact-set" else powers
        assert other.statistic == one.statistic * 8.0**powers
    joint = [maximality({"a": A * c, "b": B * c}, resamples=19, prices=False) for c in (1.0, 8.0)]
    assert joint[1].statistic == 8 * joint[0].statistic


# --- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compare(BOTH, resamples="a"), "resamples = 'a'"),
        (lambda: compare(BOTH, resamples=19.7), "resamples = 19.7"),
        (lambda: compare(BOTH, resamples=None), "resamples = None"),
        (lambda: compare(BOTH, seed=True), "seed = True"),
        (lambda: compare(BOTH, level="a"), "level = 'a'"),
        (lambda: compare(BOTH, level=0), "level = 0"),
        (lambda: compare(BOTH, tolerance="a"), "tolerance = 'a'"),
        (lambda: compare(BOTH, tolerance="a", further=True), "tolerance = 'a'"),
        (lambda: compare(BOTH, trim="a"), "trim = 'a'"),
        (lambda: compare(BOTH, trim=[0.1]), r"trim = \[0.1\]"),
        (lambda: compare(BOTH, paired="yes"), "paired = 'yes'"),
        (lambda: compare(BOTH, dependence=1.5), "dependence = 1.5"),
        (lambda: compare(BOTH, dependence=None), "dependence = None"),
        (lambda: compare(BOTH, dependence=[2]), r"dependence = \[2\]"),
        (lambda: compare(BOTH, columns="ab"), "columns = 'ab'"),
        (lambda: compare(BOTH, columns=3), "columns = 3"),
        (lambda: compare(np.c_[A, B], names="ab"), "names = 'ab'"),
        (lambda: compare(np.c_[A, B], names=3), "names = 3"),
        (lambda: further_tests(A, B, grid=[]), "grid is empty"),
        (lambda: further_tests(A, B, grid="a"), "grid must hold numbers"),
        (lambda: further_tests(A, B, grid=[np.nan, 1]), "grid has 1 of 2"),
        (lambda: further_tests(A, B, grid=5), "grid of shape"),
        (lambda: further_tests(A, B, subsample="a"), "subsample = 'a'"),
        (lambda: further_tests(A, B, subsample=3.5), "subsample = 3.5"),
        (lambda: dominance_test(A, B, np.array([1, 2])), "order = array"),
        (lambda: dominance_test(A, [[1], [1, 2]]), "y must be a list of numbers"),
        (lambda: almost_dominance(A, B, level=0), "level = 0"),
        (lambda: almost_dominance(A, B, level="a"), "level = 'a'"),
        (lambda: relative_ranking(BOTH, level=3), "level = 3"),
        (lambda: read_returns(None), "path = None"),
    ],
)
def test_mistakes_are_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_grid_may_come_in_any_order() -> None:
    grids = [0.5, -1.0, 0.0], [-1, 0, 0.5, 0.5]
    first, second = (further_tests(A, B, grid=grid, resamples=19) for grid in grids)
    assert first == second
