"""Reading returns: every way a file can be wrong is an InputError with its place."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from surefoot.comparison import compare, read_returns
from surefoot.comparison.returns import Missing, as_table
from surefoot.errors import InputError

DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")


def written(tmp_path: Path, content: str | bytes, name: str = "returns.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n3,4\n5,\n",
        "a;b\r\n1;2\r\n3;4\r\n5;\r\n",
        "a\tb\n1\t2\n3\t4\n5\n",
        "\ufeffa, b\n 1, 2\n3 ,4\n5,NA\n\n  \n",
        '"a","b"\n"1","2"\n3,4.0e0\n5.0,nan\n,\n',
    ],
)
def test_csv_in_many_dialects(tmp_path: Path, content: str) -> None:
    columns = read_returns(written(tmp_path, content))
    assert list(columns) == ["a", "b"]
    np.testing.assert_array_equal(columns["a"], [1, 3, 5])
    np.testing.assert_array_equal(columns["b"], [2, 4])


@pytest.mark.parametrize(
    ("content", "place", "complaint"),
    [
        ("", "returns.csv", "is empty"),
        (" \n\n", "returns.csv", "is empty"),
        ("a,b\n", "returns.csv", "1 row"),
        ("a,b\n1,2\n", "column 'a'", "1 value: a comparison needs at least 2"),
        ("a,b\n1,2\n3,\n", "column 'b'", "1 value"),
        ("a,b\n1,\n3,\n", "column 'b'", "no values"),
        ("a,b\n1,2\n,3\n4,5\n", "row 3, column 'a'", "is missing"),
        ("a,b\n1,2\n\n4,5\n", "row 3, column 'a'", "is missing"),
        ("a,b\n1,2\n3,NaN\n4,5\n", "row 3, column 'b'", "is missing"),
        ("a,b\n1,2\n3,four\n", "row 3, column 'b'", "'four', which is not a number"),
        ("a;b\n1,0;2\n3;4.5\n", "row 2, column 'a'", "row 3, column 'b' holds '4.5'"),
        ('a,b\n"1,234",2\n3,4\n', "row 2, column 'a'", "may be 1234 or 1.234"),
        ("a,b\n1%,2%\n3%,4\n", "row 3, column 'b'", "without a percent sign"),
        ("a,b\n1%,2\n3%,4\n", "row 2, column 'b'", "without a percent sign"),
        ("a,b\n1,2\n3,1_000\n", "row 3, column 'b'", "not a number"),
        ("a,b\n1,2\n3,inf\n", "row 3, column 'b'", "is infinite"),
        ("a,b\n1,2\n3,-1e999\n", "row 3, column 'b'", "is infinite"),
        ("a,b\n1,2\n3,1e200\n", "row 3, column 'b'", "beyond"),
        ("a,a\n1,2\n3,4\n", "row 1", "columns 1 and 2 are both named 'a'"),
        (",a\n0,2\n0,4\n", "row 1, column 1", "no name"),
        ("a,\n0,2\n1,4\n", "row 1, column 2", "no name"),
        ("1,2\n3,4\n5,6\n", "row 1", "must name the columns"),
        ("a,b\n1,2\n3,4,5\n", "row 3", "3 cells"),
        ('a,b\n1,"2\n3,4\n', "row 2", "cannot be read"),
        ("a,b\n1,\x00\n3,4\n", "row 2", ""),
        (b"a,b\n1,2\n3,\xff\n", "row 3", "not UTF-8"),
        ("a,b\n1,2\n3,4\n".encode("utf-16"), "row 1", "not UTF-8"),
        (b"PAR1 but not really", "returns.csv", "Parquet"),
    ],
)
def test_errors_name_their_place(
    tmp_path: Path, content: str | bytes, place: str, complaint: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_returns(written(tmp_path, content))
    message = str(caught.value)
    assert "returns.csv" in message
    assert place in message
    assert complaint in message
    assert "\n" not in message


def test_no_file_and_no_file_but_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_returns(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_returns(tmp_path)


def test_columns_can_be_chosen_and_the_rest_is_not_looked_at(tmp_path: Path) -> None:
    path = written(tmp_path, "name,a,b\nx,1,2\ny,3,4\n")
    with pytest.raises(InputError, match=r"row 2, column 'name' holds 'x'"):
        read_returns(path)
    assert list(read_returns(path, ["b", "a"])) == ["b", "a"]
    with pytest.raises(InputError, match="Did you mean 'name'"):
        read_returns(path, ["nam"])


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "returns.parquet"
    frame = pl.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, None], "name": ["x", "y", "z"]})
    frame.write_parquet(path)
    found = read_returns(path, ["a", "b"])
    np.testing.assert_array_equal(found["a"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found["b"], [0.5, 1.5])
    with pytest.raises(InputError, match=r"row 1, column 'name' holds 'x'"):
        read_returns(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="not readable as Parquet"):
        read_returns(path)
    pl.DataFrame({"a": [1.0, None, 3.0]}).write_parquet(path)
    with pytest.raises(InputError, match="row 2, column 'a' is missing"):
        read_returns(path)
    pl.DataFrame({"a": [True, False]}).write_parquet(path)
    with pytest.raises(InputError, match="holds bool"):
        read_returns(path)


def test_tables_in_memory() -> None:
    expected = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([4.0, 5.0])}
    table = pl.DataFrame({"a": [1, 2, 3], "b": [4.0, 5.0, None]})
    matrix = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, np.nan]])
    for found in (
        as_table(expected),
        as_table({"a": [1, 2, 3], "b": (4.0, 5.0)}),
        as_table(table),
        as_table(table.to_dict(as_series=True)),
        as_table(matrix, ["a", "b"]),
        as_table({"c": ["x"], **expected}, columns=["a", "b"]),
    ):
        assert list(found) == ["a", "b"]
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
    assert list(as_table(matrix)) == ["0", "1"]


@pytest.mark.parametrize(
    ("returns", "names", "message"),
    [
        ({"a": [1.0, None, 2.0]}, None, "row 1, column 'a' is missing"),
        ({"a": [1.0, "x"]}, None, "row 1, column 'a' holds 'x'"),
        ({"a": [1.0, True]}, None, None),
        ({"a": [[1.0], [2.0]]}, None, r"shape \(2, 1\)"),
        ({"a": [[1.0], [2.0, 3.0]]}, None, "column 'a'"),
        ({"a": np.array([True, False])}, None, "holds bool"),
        ({"a": np.array(["1", "2"])}, None, "holds <U1, not numbers"),
        ({"a": np.array([1.0, 2.0], object)}, None, "holds object, not numbers"),
        ({"a": ["1", "2"]}, None, "row 0, column 'a' holds '1'"),
        ({"a": np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)}, None, "column 'a' is a masked array"),
        (np.ma.masked_equal(np.ones((3, 2)), 2.0), None, "masked array"),
        (np.array([["1", "2"]]), None, "the array holds <U1, not numbers"),
        (np.full((3, 2), np.datetime64("2020-01-01")), None, "datetime64"),
        ({"d": DAYS, "e": DAYS, "a": [1.0] * 3}, None, "column 'e' holds datetime64"),
        ({1: [1.0, 2.0], "1": [1.0, 2.0]}, None, "columns 1 and 2 are both named '1'"),
        ({"a": [1.0, 2.0]}, ["b"], "have names already"),
        ([1.0, 2.0], None, "a list may hold columns or rows"),
        (np.ones((3, 2)), ["a"], "1 for 2 columns"),
        (np.ones((3, 2)), ["a", "a"], "both named 'a'"),
        (None, None, "pass a dict"),
    ],
)
def test_wrong_tables(returns: object, names: list[str] | None, message: str | None) -> None:
    if message is None:  # NumPy makes [1.0, True] numbers: nothing is left to object to
        assert as_table(returns)["a"].tolist() == [1.0, 1.0]
        return
    with pytest.raises(InputError, match=message):
        as_table(returns, names)


cells = st.sampled_from(
    ["", "1", "-2.5", "1e9", "nan", "inf", "x", '"', "'", "1_0", " 3 ", "é", "2020-01-01",
     "2020-02-30", "1/2/2020", '"1,5"', "5%", '"1,234"', "0.5", "%", "9999-12-31"]
)  # fmt: skip
lines = st.lists(cells, max_size=4).map(lambda row: ",".join(row))
fuzzed = st.one_of(
    st.binary(max_size=80),
    st.text(max_size=80).map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.lists(lines, max_size=6).map(lambda rows: "\n".join(["a,b", *rows]).encode()),
    st.lists(lines, max_size=6).map(lambda rows: "\n".join(["date,b", *rows]).encode()),
    st.binary(max_size=40).map(lambda tail: b"PAR1" + tail + b"PAR1"),
)


@pytest.mark.wide
@given(fuzzed, st.sampled_from(["error", "drop", "pair"]), st.sampled_from([None, True, False]))
@example(b"a" * 200_000 + b",b\n1,2\n", "error", None)  # longer than a cell may be
@example(b"a,b\r1,2\r3,4\r", "error", None)
@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_the_bytes_it_is_an_input_error_or_clean_columns(
    tmp_path: Path, content: bytes, missing: Missing, prices: bool | None
) -> None:
    with contextlib.suppress(InputError):
        table = read_returns(written(tmp_path, content), missing=missing, prices=prices)
        for name, values in table.items():
            assert values.dtype == np.float64
            assert len(values) >= 2
            assert np.isfinite(values).all()
            assert not table.dates or len(table.dates[name]) == len(values)


numbers = st.floats(-1e150, 1e150)


@given(st.lists(numbers, min_size=2, max_size=6), st.lists(numbers, min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_whatever_can_be_read_can_be_compared(a: list[float], b: list[float]) -> None:
    result = compare({"a": a, "b": b}, resamples=19)
    assert np.isfinite(result.summary("a").deviation)
    assert str(result)
