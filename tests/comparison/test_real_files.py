"""Files as people have them: dates, indices, percents, commas, gaps and prices."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.comparison import compare, read_returns, write_returns
from surefoot.comparison.dates import dates_of, labels, rows_per_year
from surefoot.comparison.numerals import read_numerals
from surefoot.comparison.prices import UnitRoot, looks_like_prices, returns_of, unit_root
from surefoot.comparison.returns import as_table
from surefoot.comparison.summaries import annual_measures, summary_of
from surefoot.errors import InputError

FILES = Path(__file__).parent / "files"
MONTHS = np.array(["2020-01-31", "2020-02-29", "2020-03-31"], "M8[us]")


def written(tmp_path: Path, content: str, name: str = "returns.csv") -> Path:
    path = tmp_path / name
    path.write_text(content)
    return path


# --- dates and other indices ---------------------------------------------------------------


@pytest.mark.parametrize(
    "cells",
    [
        ("2020-01-31", "2020-02-29", "2020-03-31"),
        ("2020-01-31 00:00:00", "2020-02-29 00:00:00", "2020-03-31 00:00:00"),
        ("2020-01-31T00:00:00Z", "2020-02-29T00:00:00Z", "2020-03-31T00:00:00Z"),
        # midnight in New York stays that day, on either side of the change of clocks
        ("2020-01-31 00:00:00-05:00", "2020-02-29 00:00:00-05:00", "2020-03-31 00:00:00-04:00"),
        ("2020/01/31", "2020/2/29", "2020/03/31"),
        ("31.01.2020", "29.2.2020", "31.03.2020"),
        ("1/31/2020", "2/29/2020", "3/31/2020"),
        ("31/01/2020", "29/02/2020", "31/03/2020"),
        ("31-Jan-2020", "29-Feb-2020", "31-Mar-2020"),
        ('"Jan 31, 2020"', '"Feb 29, 2020"', '"Mar 31, 2020"'),
        ("20200131", "20200229", "20200331"),
    ],
)
def test_dates_as_people_write_them(tmp_path: Path, cells: tuple[str, ...]) -> None:
    rows = "\n".join(f"{cell},{i},{i + 1}" for i, cell in enumerate(cells))
    table = read_returns(written(tmp_path, f"Date,a,b\n{rows}\n"))
    assert list(table) == ["a", "b"]
    np.testing.assert_array_equal(table.dates["a"], MONTHS)
    assert "dates are in column 'Date': 2020-01-31 to 2020-03-31, 12 rows a year" in table.notes
    assert table.aligned


@pytest.mark.parametrize(
    ("name", "cells", "rows", "last"),
    [
        ("Date", ("202001", "202002", "202003"), 12, "2020-03-01"),
        ("", ("192607", "192608", "192609"), 12, "1926-09-01"),
        ("quarter", ("2020Q1", "2020Q2", "2020Q3"), 4, "2020-07-01"),
        ("Year", ("1999", "2000", "2001"), 1, "2001-01-01"),
    ],
)
def test_months_quarters_and_years(
    tmp_path: Path, name: str, cells: tuple[str, ...], rows: int, last: str
) -> None:
    """Years were compared as if they were returns."""
    body = "\n".join(f"{cell},{i},{i + 1}" for i, cell in enumerate(cells))
    table = read_returns(written(tmp_path, f"{name},a,b\n{body}\n"))
    assert list(table) == ["a", "b"]
    assert str(table.dates["a"][-1])[:10] == last
    assert any(f"{last}, {rows} rows a year" in note for note in table.notes)
    if cells[0].isdigit() and name:  # as Parquet has them
        path = tmp_path / "returns.parquet"
        pl.DataFrame({name: list(map(int, cells)), "a": [1.0, 2, 3]}).write_parquet(path)
        assert str(read_returns(path).dates["a"][-1])[:10] == last


def test_months_and_times_within_a_day(tmp_path: Path) -> None:
    monthly = read_returns(written(tmp_path, "m,a,b\n2020-01,1,2\n2020-02,3,4\n"))
    assert monthly.dates["a"].astype("M8[D]").tolist()[1].isoformat() == "2020-02-01"
    # within days one clock keeps the order: 01:30-04:00 is 05:30 UTC, then 01:15-05:00 is 06:15
    zones = "2020-11-01 01:30:00-04:00,1,2\n2020-11-01 01:15:00-05:00,3,4\n"
    table = read_returns(written(tmp_path, f"t,a,b\n{zones}"))
    assert [str(d)[11:16] for d in table.dates["a"]] == ["05:30", "06:15"]


@pytest.mark.parametrize(
    ("rows", "place", "complaint"),
    [
        (("2020-01-01", "x", "2020-01-03"), "row 3", "'x', which is not a date like '2020-01-01'"),
        (("2020-01-01", "2020-02-30", "2020-03-01"), "row 3", "not a date"),
        (("2020-01-01", "", "2020-01-03"), "row 3", "not a date"),
        (("2020-01-01", "2020-01-01", "2020-01-03"), "row 3", "repeats the date"),
        (("2020-01-01", "2020-01-03", "2020-01-02"), "row 4", "out of order"),
        (("01/02/2020", "02/02/2020", "03/02/2020"), "row 2", "may be 02 January or 01 February"),
        (("31/01/2020", "01/32/2020", "02/02/2020"), "row 3", "not a date like"),
    ],
)
def test_bad_dates(tmp_path: Path, rows: tuple[str, ...], place: str, complaint: str) -> None:
    body = "\n".join(f"{cell},{i},{i + 1}" for i, cell in enumerate(rows))
    path = written(tmp_path, f"date,a,b\n{body}\n")
    with pytest.raises(InputError) as caught:
        read_returns(path)
    message = str(caught.value)
    assert f"returns.csv: {place}, column 'date'" in message
    assert complaint in message
    # the way out: the column is not an index, and not asked for
    assert read_returns(path, ["a", "b"], index="none").dates == {}


def test_numbers_under_the_name_of_a_date_are_not_compared(tmp_path: Path) -> None:
    path = written(tmp_path, "date,a,b\n43861,1,2\n43890,3,4\n")  # a spreadsheet's days
    with pytest.raises(
        InputError, match=r"row 2, column 'date' holds '43861', which is not a date"
    ):
        read_returns(path)
    assert list(read_returns(path, index="date")) == ["a", "b"]


def test_newest_first_is_turned_round(tmp_path: Path) -> None:
    content = "date,a,b\n2020-01-03,3,\n2020-01-02,2,5\n2020-01-01,1,4\n"
    table = read_returns(written(tmp_path, content.replace("3,\n", "3,6\n")))
    assert table["a"].tolist() == [1, 2, 3]
    assert table.dates["b"].tolist() == sorted(table.dates["b"].tolist())
    assert any("newest row came first" in note for note in table.notes)
    with pytest.raises(InputError, match=r"row 4, column 'b' is missing"):  # as in the file
        read_returns(written(tmp_path, content.replace("1,4", "1,").replace("3,\n", "3,6\n")))


@pytest.mark.parametrize("name", ["", "index", "Unnamed: 0", "seed"])
def test_row_numbers_are_not_compared(tmp_path: Path, name: str) -> None:
    table = read_returns(written(tmp_path, f"{name},a,b\n5,1,2\n6,3,4\n"))
    assert list(table) == ["a", "b"]
    assert any("not compared" in note for note in table.notes)
    if name:  # the same name over returns is a column like any other
        assert name in read_returns(written(tmp_path, f"{name},a\n0.5,1\n-0.5,3\n"))


def test_long_columns_that_count_are_not_compared(tmp_path: Path) -> None:
    """Whatever they are called: nobody has returns of 1, 2, 3, ..., 10."""
    body = [f"{i},{i % 3},{i % 4}" for i in range(1, 11)]
    table = read_returns(written(tmp_path, "\n".join(["t,a,b", *body])))
    assert list(table) == ["a", "b"]
    assert any("column 't' counts the rows" in note for note in table.notes)
    assert "t" in read_returns(written(tmp_path, "\n".join(["t,a,b", *body[:9]])))
    assert "t" in read_returns(written(tmp_path, "\n".join(["t,a,b", *body])), index="none")
    assert "t" in as_table({"t": np.arange(10.0), "a": np.ones(10)})  # who made it knows what it is


def test_labels_without_a_name(tmp_path: Path) -> None:
    table = read_returns(written(tmp_path, ",a,b\nfirst,1,2\nsecond,3,4\n"))
    assert list(table) == ["a", "b"]
    named = written(tmp_path, "task,a,b\nx,1,2\ny,3,4\n")
    assert list(read_returns(named, index="task")) == ["a", "b"]
    with pytest.raises(InputError, match="Did you mean 'task'"):
        read_returns(named, index="tasks")


@pytest.mark.parametrize("kind", ["dates", "zone", "range", "labels", "numbers"])
def test_parquet_of_pandas(kind: str) -> None:
    """Written by pandas 3.1 with pyarrow 26."""
    table = read_returns(FILES / f"pandas-{kind}.parquet")
    assert {name: z.tolist() for name, z in table.items()} == {
        "a": [0.01, -0.02, 0.03], "b": [0.02, 0.01, -0.01],
    }  # fmt: skip
    if kind in ("dates", "zone"):
        np.testing.assert_array_equal(table.dates["b"], MONTHS)
    else:
        assert table.dates == {}


def test_parquet_of_polars(tmp_path: Path) -> None:
    path = tmp_path / "returns.parquet"
    frame = pl.DataFrame({"day": MONTHS, "a": [1.0, 2.0, None], "b": ["1,5 %", "2 %", "-3 %"]})
    frame.with_columns(pl.col("day").cast(pl.Date)).write_parquet(path)
    table = read_returns(path)
    np.testing.assert_array_equal(table.dates["b"], MONTHS)
    assert table["b"].tolist() == [0.015, 0.02, -0.03]
    assert table["a"].tolist() == [1.0, 2.0]
    assert not table.aligned


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_other_columns_of_parquet(tmp_path: Path) -> None:
    """Decimals are numbers, lists are not: both ended in a traceback."""
    path = tmp_path / "returns.parquet"
    decimals = pl.Series([0.25, None, -1.5]).cast(pl.Decimal(scale=2))
    pl.DataFrame({"a": decimals, "b": [1.0, 2.0, 3.0]}).write_parquet(path)
    np.testing.assert_array_equal(read_returns(path, missing="drop")["a"], [0.25, -1.5])
    pl.DataFrame({"a": [[1.0], [2.0]], "b": [1.0, 2.0]}).write_parquet(path)
    with pytest.raises(InputError, match=r"returns\.parquet: column 'a' holds List"):
        read_returns(path)


def test_an_index_of_two_columns_is_refused(tmp_path: Path) -> None:
    """Its columns were compared as if they were returns."""
    path = tmp_path / "returns.parquet"
    notes = {"pandas": json.dumps({"index_columns": ["y", "m"]})}
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [2020, 2020], "m": [1, 2]})
    frame.write_parquet(path, metadata=notes)
    with pytest.raises(InputError, match=r"the index has 2 columns \(y, m\)"):
        read_returns(path)


def test_tables_of_pandas_in_memory() -> None:
    pd = pytest.importorskip("pandas")

    columns = {"a": [0.01, -0.02, 0.03], "b": [0.02, 0.01, -0.01]}
    frame = pd.DataFrame(columns, index=pd.DatetimeIndex(MONTHS))
    months = pd.DataFrame(columns, index=pd.period_range("2020-01", periods=3, freq="M"))
    zoned = frame.tz_localize("Europe/Berlin")
    for each in (frame, zoned, frame.rename_axis("date").reset_index()):
        table = as_table(each)
        assert {name: z.tolist() for name, z in table.items()} == columns
        np.testing.assert_array_equal(table.dates["a"], MONTHS)
    assert rows_per_year(as_table(months).dates["a"]) == 12
    assert as_table(frame.reset_index(drop=True)).dates == {}
    nullable = pd.DataFrame({"a": pd.array([1.0, None, 2.0], "Float64"), "b": [1.0, 2.0, 3.0]})
    assert as_table(nullable, missing="pair")["a"].tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="row 0, column 'a' holds 'x'"):
        as_table(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}))


def test_dates_are_written_and_read_back(tmp_path: Path) -> None:
    columns = {"a": np.array([0.1, 0.2, 0.3]), "b": np.array([0.3, 0.1, 0.2])}
    path = write_returns(tmp_path / "r.csv", columns, ("date", labels(MONTHS)))
    table = read_returns(path)
    np.testing.assert_array_equal(table.dates["a"], MONTHS)
    assert table["b"].tolist() == [0.3, 0.1, 0.2]
    assert labels(MONTHS)[0] == "2020-01-31"
    hours = MONTHS + np.timedelta64(90, "m")
    assert labels(hours)[0] == "2020-01-31T01:30:00"
    np.testing.assert_array_equal(
        read_returns(write_returns(path, columns, ("date", labels(hours)))).dates["a"], hours
    )


def test_rows_per_year() -> None:
    def every(days: float, n: int = 40) -> Any:
        step = np.timedelta64(round(days * 86400), "s")
        return np.datetime64("2020-01-01", "us") + np.arange(n) * step

    days = np.arange("2020-01-01", "2020-12-31", dtype="M8[D]").astype("M8[us]")
    trading = days[np.is_busday(days.astype("M8[D]"))]
    assert rows_per_year(days) == 365.25
    assert rows_per_year(trading) == 252
    assert rows_per_year(trading[np.arange(len(trading)) % 9 > 0]) == 252  # holidays
    assert rows_per_year(every(7)) == 52
    assert rows_per_year(every(14)) == pytest.approx(365.25 / 14)
    assert rows_per_year(np.arange("2015-01", "2020-01", dtype="M8[M]").astype("M8[us]")) == 12
    assert rows_per_year(every(91)) == 4
    assert rows_per_year(every(365)) == 1
    assert rows_per_year(every(1 / 24, 25)) == pytest.approx(24 * 365.25)
    assert rows_per_year(every(1, 2)) is None


# --- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("1,5", "2"), (1.5, 2.0)),
        (("1.234,5", "1.234"), (1234.5, 1234.0)),  # the first settles the second
        (("1,234.5", "1,234"), (1234.5, 1234.0)),
        (("0.5", "1,234"), (0.5, 1234.0)),
        (("1,234,567", "1.5"), (1234567.0, 1.5)),
        (("1 234,5", "-0,25"), (1234.5, -0.25)),
        (("1'234.5", "\u22120.25"), (1234.5, -0.25)),
        (("1\u202f234", "5"), (1234.0, 5.0)),
        (("1.234", "5"), (1.234, 5.0)),  # nothing speaks of commas
        (("1.5%", "-2 %"), (0.015, -0.02)),
        (("1,5%", "-2,25\u00a0%"), (0.015, -0.0225)),
        (("1,5e-3", "2E2"), (0.0015, 200.0)),
    ],
)
def test_numbers_as_people_write_them(
    tmp_path: Path, cells: tuple[str, str], values: tuple[float, float]
) -> None:
    path = written(tmp_path, f'a\tb\n"{cells[0]}"\t{cells[0]}\n"{cells[1]}"\t{cells[1]}\n')
    table = read_returns(path)
    assert table["a"].tolist() == table["b"].tolist() == pytest.approx(list(values), rel=1e-15)


def test_the_caller_can_settle_the_decimal_sign(tmp_path: Path) -> None:
    path = written(tmp_path, "a;b\n1,234;2\n3,500;4\n")
    with pytest.raises(InputError, match=r"row 2, column 'a' holds '1,234', which may be 1234 or"):
        read_returns(path)
    assert read_returns(path, decimal="comma")["a"].tolist() == [1.234, 3.5]
    assert read_returns(path, decimal="point")["a"].tolist() == [1234, 3500]
    other = written(tmp_path, "a;b\n1.5;2\n2.5;4\n")
    with pytest.raises(InputError, match=r"'1.5', which is not a number with a decimal comma"):
        read_returns(other, decimal="comma")
    with pytest.raises(InputError, match="value of decimal"):
        read_returns(path, decimal="dot")  # type: ignore[arg-type]


@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=20), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_every_convention_reads_back_what_it_wrote(cents: list[int], places: int) -> None:
    values = [c / 10**places for c in cents]
    english = [f"{v:,.{places}f}" for v in values]
    german = [cell.translate(str.maketrans(",.", ".,")) for cell in english]
    swiss = [cell.replace(",", "'") for cell in english]
    for cells, sign in ((english, "point"), (german, "comma"), (swiss, "point")):
        # a settled cell beside it makes every reading unambiguous
        settled = {"x": cells, "y": ["0.5" if sign == "point" else "0,5"] * len(cells)}
        read, _ = read_numerals(settled, "auto", lambda i, name: f"{i} {name}")
        assert read["x"].tolist() == pytest.approx(values, rel=1e-15)


# --- gaps ----------------------------------------------------------------------------------


GAPS = "date,a,b\n2020-01-01,,1\n2020-01-02,2,\n2020-01-03,3,3\n2020-01-04,4,4\n2020-01-05,5,\n"


def test_gaps(tmp_path: Path) -> None:
    path = written(tmp_path, GAPS)
    with pytest.raises(InputError, match=r"row 2, column 'a' is missing .*--missing pair"):
        read_returns(path)
    pair = read_returns(path, missing="pair")
    assert pair["a"].tolist() == pair["b"].tolist() == [3, 4]
    assert pair.aligned
    assert "3 of 5 rows were left out, where a value is missing (a 1, b 2)" in pair.notes
    assert pair.dates["a"].astype("M8[D]").astype(str).tolist() == ["2020-01-03", "2020-01-04"]
    drop = read_returns(path, missing="drop")
    assert drop["a"].tolist() == [2, 3, 4, 5]
    assert drop["b"].tolist() == [1, 3, 4]
    assert not drop.aligned
    assert any("column by column: a 1, b 2 of 5 rows" in note for note in drop.notes)
    assert str(drop.dates["b"][1])[:10] == "2020-01-03"
    with pytest.raises(InputError, match="no values: a comparison needs at least 2"):
        read_returns(written(tmp_path, "a,b\n1,\n,2\n3,\n,4\n"), missing="pair")
    with pytest.raises(InputError, match="value of missing"):
        read_returns(path, missing="fill")  # type: ignore[arg-type]


def test_equal_lengths_of_different_rows_are_not_aligned() -> None:
    table = as_table({"a": [1.0, None, 3.0], "b": [None, 2.0, 3.0]}, missing="drop")
    assert len(table["a"]) == len(table["b"])
    assert not table.aligned


def test_a_table_is_read_once(tmp_path: Path) -> None:
    table = read_returns(written(tmp_path, GAPS), missing="pair")
    assert as_table(table, columns=["b"]).dates.keys() == {"b"}
    assert as_table(table).notes == table.notes
    with pytest.raises(InputError, match="unknown column"):
        as_table(table, columns=["c"])


# --- prices --------------------------------------------------------------------------------


def prices(n: int = 120, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: 100 * np.exp(np.cumsum(rng.normal(0.005, 0.04, n))) for name in ("x", "y")}


def test_prices_are_refused_and_converted(tmp_path: Path) -> None:
    table = prices()
    with pytest.raises(InputError, match=r"'x' and 1 more look like prices.*--prices"):
        compare(table)
    returns = as_table(table, prices=True)
    assert len(returns["x"]) == 119
    np.testing.assert_allclose(returns["x"], table["x"][1:] / table["x"][:-1] - 1)
    assert as_table(table, prices=False)["x"].tolist() == table["x"].tolist()
    assert list(compare(table, prices=True, resamples=19).returns) == ["x", "y"]
    path = written(tmp_path, "date,a,b\n2020-01-01,100,8\n2020-01-02,110,\n2020-01-03,99,10\n"
                             "2020-01-04,198,5\n2020-01-05,198,10\n")  # fmt: skip
    read = read_returns(path, prices=True, missing="pair")
    # 110/100, 99/110, 198/99, 198/198, less 1; b has 5/10 and 10/5 on the last two days
    assert read["a"].tolist() == pytest.approx([1.0, 0.0])
    assert read["b"].tolist() == pytest.approx([-0.5, 1.0])
    assert str(read.dates["a"][0])[:10] == "2020-01-04"
    assert "2 of 4 rows were left out, where a value is missing (b 2)" in read.notes
    with pytest.raises(InputError, match=r"row 3, column 'a' holds 0: a price must be positive"):
        read_returns(written(tmp_path, "a,b\n1,2\n0,3\n2,3\n"), prices=True)


def test_unit_root_by_hand() -> None:
    # d = 1, 2, 3, 4, 5 on 1 and x = 0, 1, 3, 6, 10: S_xx = 146 - 20^2/5 = 66,
    # S_xd = 85 - 20 * 15/5 = 25, g = 25/66; S_dd = 10, so the residual sum of squares is
    # 10 - 625/66 = 35/66, its variance a third of that, and t = g / sqrt(35/198 / 66).
    test = unit_root(np.array([0.0, 1.0, 3.0, 6.0, 10.0, 15.0]))
    assert test is not None
    assert (test.lags, test.n) == (0, 5)
    assert test.root == pytest.approx(1 + 25 / 66)
    assert test.statistic == pytest.approx((25 / 66) / np.sqrt(35 / 198 / 66))
    # MacKinnon's value for 100 rows at level 0.01, from his table: -3.4974
    assert UnitRoot(0.0, 1.0, 0, 100).critical == pytest.approx(-3.4975, abs=2e-4)
    assert unit_root(np.ones(50)) is None
    line = unit_root(np.arange(1.0, 51.0))
    assert line is not None
    assert line.statistic == 0


@pytest.mark.parametrize("seed", range(4))
def test_unit_root_is_that_of_statsmodels(seed: int) -> None:
    tools = pytest.importorskip("statsmodels.tsa.stattools")
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=60 + 100 * seed)
    for x in (steps, np.cumsum(steps), np.convolve(np.cumsum(steps), [1, 0.5, 0.25])[:-2]):
        ours = unit_root(x)
        assert ours is not None
        most = min(int(np.ceil(12 * (len(x) / 100) ** 0.25)), len(x) // 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statistic, _, lags, n, critical, *_ = tools.adfuller(x, maxlag=most, autolag="BIC")
        assert ours.statistic == pytest.approx(statistic, rel=1e-8)
        assert (ours.lags, ours.n) == (lags, n)
        assert ours.critical == pytest.approx(critical["1%"], rel=1e-9)


def test_what_looks_like_prices() -> None:
    """Of 200 series each: how many are taken for prices."""
    rng = np.random.default_rng(1)

    def share(draw: Any) -> float:
        return float(np.mean([looks_like_prices(draw()) for _ in range(200)]))

    assert share(lambda: 100 * np.exp(np.cumsum(rng.normal(0.0003, 0.01, 250)))) >= 0.95
    assert share(lambda: np.exp(np.cumsum(rng.normal(0.005, 0.04, 60)))) >= 0.95
    assert share(lambda: rng.exponential(size=60)) <= 0.02
    assert share(lambda: rng.uniform(1, 2, size=250)) == 0
    assert share(lambda: rng.normal(0, 1, size=60)) == 0  # not positive
    assert not looks_like_prices(np.full(50, 2.0))  # a sure return
    assert not looks_like_prices(np.cumsum(np.ones(19)))  # too short to say


@given(st.lists(st.floats(-0.9, 2), min_size=2, max_size=30), st.floats(0.1, 1e6))
@settings(max_examples=60, deadline=None)
def test_prices_made_of_returns_give_them_back(returns: list[float], start: float) -> None:
    wealth = start * np.concatenate([[1.0], np.cumprod(1 + np.array(returns))])
    np.testing.assert_allclose(returns_of(wealth), returns, atol=1e-9)


# --- a year --------------------------------------------------------------------------------


def test_annual_measures_by_hand() -> None:
    # Wealth 1, 1.1, 0.55, 0.66, 0.99: growth a quarter -0.01, a year (4 rows of 4) the same.
    # Largest loss: from 1.1 to 0.55, one half. Mean (0.1 - 0.5 + 0.2 + 0.5)/4 = 0.075;
    # deviations 0.025, -0.575, 0.125, 0.425: squares sum to 0.5275, /3.
    z = np.array([0.1, -0.5, 0.2, 0.5])
    year = annual_measures(z, 4.0)
    deviation = np.sqrt(0.5275 / 3)
    assert year.growth == pytest.approx(-0.01)
    assert year.volatility == pytest.approx(2 * deviation)
    assert year.sharpe == pytest.approx(2 * 0.075 / deviation)
    assert year.sortino == pytest.approx(2 * 0.075 / 0.25)  # downside: sqrt(0.25 / 4) = 0.25
    assert year.max_drawdown == pytest.approx(0.5)
    # twice as many rows a year: growth compounds, (0.99)^2 - 1
    assert annual_measures(z, 8.0).growth == pytest.approx(0.99**2 - 1)


def test_annual_measures_that_do_not_exist() -> None:
    sure = annual_measures(np.array([0.01, 0.01, 0.01]), 12.0)
    assert sure.sharpe is None
    assert sure.sortino is None
    assert sure.max_drawdown == 0
    ruin = annual_measures(np.array([0.5, -1.0, 0.5]), 12.0)
    assert ruin.growth is None
    assert ruin.max_drawdown is None
    assert ruin.sharpe == pytest.approx(0.0)


@given(st.lists(st.floats(-0.9, 1), min_size=3, max_size=40))
@settings(max_examples=60, deadline=None)
def test_annual_measures_against_a_loop(returns: list[float]) -> None:
    year = annual_measures(np.array(returns), 12.0)
    wealth, top, worst = 1.0, 1.0, 0.0
    for r in returns:
        wealth *= 1 + r
        top = max(top, wealth)
        worst = max(worst, 1 - wealth / top)
    assert year.max_drawdown == pytest.approx(worst, abs=1e-9)
    assert year.growth == pytest.approx(wealth ** (12 / len(returns)) - 1, rel=1e-6, abs=1e-9)


def test_a_column_has_a_year_where_its_rows_have_dates() -> None:
    z = np.array([0.1, -0.5, 0.2, 0.5])
    quarters = np.array(["2020-03-31", "2020-06-30", "2020-09-30", "2020-12-31"], "M8[us]")
    year = summary_of("z", z, quarters).annual
    assert year is not None
    assert year.rows_per_year == 4
    assert year.growth == pytest.approx(-0.01)
    assert summary_of("z", z).annual is None
    assert dates_of([], "date", str) is None
