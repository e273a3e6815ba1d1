"""The comparison as a whole: verdicts, sets, support, words, files, figure."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.cli.compare import in_terminal
from surefoot.cli.compare import main as command
from surefoot.comparison import Comparison, compare, compare_file, read_returns
from surefoot.comparison.bootstrap import DominanceTest
from surefoot.comparison.result import Verdict
from surefoot.comparison.words import p_text, text
from surefoot.core.particles import cumulative_cdf, cvar, variance
from surefoot.core.stats import holm
from surefoot.errors import InputError
from surefoot.plots.comparison import dispersion_above
from surefoot.runs.files import read_json

MIRROR = {"dominates": "dominated", "dominated": "dominates"}


def drawn(seed: int = 0, n: int = 400, resamples: int = 500) -> Comparison:
    rng = np.random.default_rng(seed)
    returns = {
        "sure": rng.normal(1, 0.5, n),
        "wild": rng.normal(1, 2, n - 50),
        "poor": rng.normal(-1, 2, n),
    }
    return compare(returns, resamples=resamples, seed=seed)


def test_relations_by_hand() -> None:
    # sorted partial sums over 2: a 0, 2; b 0.5, 1.5; c 1, 2; d = c.
    # Second order: c over a (1 >= 0, 2 >= 2) and over b; a and b cross (0 < 0.5, 2 > 1.5).
    # First order: quantiles a 0, 4; b 1, 2; c 2, 2. c over b; c and a cross (2 > 0, 2 < 4).
    returns = {"a": [4, 0], "b": [1, 2], "c": [2, 2], "d": [2.0, 2.0]}
    c = compare(returns, resamples=19)
    assert c.verdict("c", "a").relation == "dominates"
    assert c.verdict("a", "c").relation == "dominated"
    assert c.verdict("a", "b").relation == "neither"
    assert c.verdict("c", "d").relation == "equal"
    assert c.verdict("c", "a", 1).relation == "neither"
    assert c.verdict("c", "b", 1).relation == "dominates"
    assert c.dominant() == c.efficient() == ("c", "d")
    assert c.dominant(1) == ()
    assert c.efficient(1) == ("a", "c", "d")
    assert c.verdict("a", "b").violation == 0.5
    # D_a - D_b is 0, 1/2, 1/2, -1/2 at 0, 1, 2, 4 (linear): the area above zero is
    # 1/4 + 1/2 + 1/4 = 1, below 1/4: the ratio of a is 1 / 1.25.
    assert c.verdict("a", "b").almost_ratio == pytest.approx(0.8)
    assert c.verdict("b", "a").almost_ratio == pytest.approx(0.2)
    assert c.verdict("a", "b", 1).violation is None
    loose = compare(returns, resamples=19, tolerance=0.5)
    assert loose.verdict("a", "b").relation == "equal"  # the violations are 1/2 both


def test_summary() -> None:
    z = np.array([3.0, -1.0, 2.0, 4.0])
    s = compare({"z": z, "other": z + 1}, resamples=19).summary("z")
    assert (s.n, s.mean, s.worst, s.median, s.best) == (4, 2.0, -1.0, 2.5, 4.0)
    assert s.deviation == pytest.approx(z.std(ddof=1))
    for share in (0.01, 0.25, 0.3, 0.5, 1.0):  # 0.3: (-1 + 0.2 * 2) / 1.2 by hand
        assert s.cvar(share) == pytest.approx(cvar(z, share))
    assert s.cvar(0.3) == pytest.approx(-0.5)
    with pytest.raises(InputError, match="share"):
        s.cvar(0.255)


def test_what_is_established() -> None:
    c = drawn()
    assert c.verdict("sure", "poor").word == "established"
    assert c.verdict("poor", "sure").word == "contradicted"
    assert c.verdict("sure", "wild").word == "not contradicted"  # equal means in truth
    assert c.dominant(established=True) == ()
    assert c.dominant(1, established=True) == ()  # sure and wild cross at first order
    assert c.verdict("sure", "wild", 1).word == "contradicted"
    assert c.verdict("wild", "sure", 1).word == "contradicted"
    for v in c.verdicts:
        back = c.verdict(v.b, v.a, v.order)
        assert v.reverse_dominance_p == back.dominance_p
        assert v.relation == MIRROR.get(back.relation, back.relation)
        assert {v.word, back.word} != {"established"}
    for order in (1, 2):
        these = [v for v in c.verdicts if v.order == order]
        assert len(these) == 6
        for name in ("dominance_p", "nondominance_p"):
            adjusted = holm([getattr(v.test, name) for v in these])
            assert [getattr(v, name) for v in these] == pytest.approx(adjusted.tolist())


@pytest.mark.parametrize(
    ("raw", "dominance", "nondominance", "reverse", "word"),
    [
        (0.6, 1.0, 0.01, 0.01, "established"),
        (0.6, 1.0, 0.01, 0.20, "established"),
        (0.001, 0.01, 1.0, 0.01, "contradicted"),
        (0.001, 0.01, 0.01, 0.01, "contradicted"),  # beyond the range: one contradiction is enough
        (0.6, 1.0, 0.06, 0.01, "not contradicted"),
        (0.6, 1.0, 0.06, 0.06, "cannot tell"),
        (0.03, 0.09, 0.5, 0.01, "cannot tell"),  # the correction must not help a
    ],
)
def test_words_follow_from_the_p_values(
    raw: float, dominance: float, nondominance: float, reverse: float, word: str
) -> None:
    test = DominanceTest(2, 0.1, raw, 0.5, low=0.0, high=1.0, weakest=0.5, margin=0.1)
    verdict = Verdict(
        "a", "b", 2, "dominates", test, dominance, nondominance, reverse, 0.05, 0.0, 0.0
    )
    assert verdict.word == word


def test_a_pair_does_not_depend_on_the_others() -> None:
    c = drawn()
    rng = np.random.default_rng(0)
    pair = {"sure": rng.normal(1, 0.5, 400), "wild": rng.normal(1, 2, 350)}
    alone = compare(pair, resamples=500, seed=0)
    assert alone.verdict("sure", "wild").test == c.verdict("sure", "wild").test


def test_few_values_and_few_resamples_are_noted() -> None:
    c = compare({name: np.arange(3.0) for name in "abcdefgh"}, resamples=100)
    assert any("56 ordered pairs: take at least 1120" in note for note in c.notes)
    assert any("a has 3 values" in note for note in c.notes)
    assert "take at least 1120" in str(c)
    assert not drawn().notes


def test_words() -> None:
    c = drawn()
    text = str(c)
    lines = [line.split() for line in text.splitlines()]
    second = next(i for i, line in enumerate(lines) if line[:2] == ["Second", "order"])
    assert lines[second + 1] == ["sure", "wild", "poor"]
    assert lines[second + 2] == ["sure", ".", "not", "contradicted", "established"]
    assert lines[second + 6] == ["poor", "contradicted", "contradicted", "."]
    assert "dominant in the sample, over every other: sure" in text
    assert "500 resamples, seed 0, level 0.05" in text
    assert max(map(len, text.splitlines())) <= 110
    odd = compare({"a|b": [1.0, 2.0], "c\nd": [1.0, 3.0]}, resamples=19).to_markdown()
    tables = [line for line in odd.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") in (4, 7, 9, 10) for line in tables)
    assert "a\\|b" in odd


def test_every_word_follows_from_what_is_printed() -> None:
    """The p-values under a word, those of the reverse and the star are all that is needed."""
    rng = np.random.default_rng(3)
    seen = set()
    for means in ((0.0, 0.25, 0.35), (0.0, 0.6, 0.0)):
        c = compare({str(i): rng.normal(m, 1 + i, 120) for i, m in enumerate(means)}, resamples=199)
        lines = str(c).splitlines()
        for order, title in ((2, "Second order"), (1, "First order")):
            start = next(i for i, line in enumerate(lines) if line.startswith(title))
            places = [lines[start + 1].index(name) for name in c.names] + [None]
            printed = {}
            for i, a in enumerate(c.names):
                words, numbers = lines[start + 2 + 2 * i], lines[start + 3 + 2 * i]
                for j, b in enumerate(c.names):
                    cell = slice(places[j], places[j + 1])
                    printed[a, b] = words[cell].strip(), numbers[cell].strip()
            for (a, b), (word, numbers) in printed.items():
                if a == b:
                    assert (word, numbers) == (".", "")
                    continue
                reverse = printed[b, a][1].split(" / ")[0]
                derived = follows(*numbers.split(" / "), reverse, 0.05)
                assert word == derived == c.verdict(a, b, order).word
                seen.add(word)
    assert len(seen) >= 3


def test_the_range_of_established_is_said() -> None:
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=100), "b": rng.normal(size=100)}
    # 20 of 200 pooled values; of 80 a quarter, where lengths differ
    assert "all but the lowest 10 % of the pooled" in " ".join(
        str(compare(columns, resamples=19)).split()
    )
    mixed = compare({**columns, "c": rng.normal(size=30), "d": rng.normal(size=50)}, resamples=19)
    assert "all but the lowest 10 to 25 % of the pooled" in mixed.to_markdown()
    assert "lowest 2 %" in compare(columns, resamples=19, trim=0.02)._repr_html_()


def test_no_rounding_puts_a_p_value_on_the_other_side_of_the_level() -> None:
    assert p_text(0.0123456, 0.05) == "0.0123"
    assert p_text(1.0, 0.05) == "1"
    assert p_text(0.05, 0.05) == "0.05"
    assert p_text(0.05001, 0.05) == "0.05001"
    assert p_text(0.0012345, 0.001234) == "0.0012345"


def test_many_columns_are_letters_and_very_many_are_counted() -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(i, 1, 30) for i in range(26)}
    some = compare({name: columns[name] for name in list(columns)[:6]}, resamples=999)
    lines = [line.split() for line in str(some).splitlines()]
    letters = {"established": "E", "not contradicted": "n", "contradicted": "c", "cannot tell": "?"}
    for i, a in enumerate(some.names):
        row = ["." if a == b else letters[some.verdict(a, b).word] for b in some.names]
        assert [str(i + 1), a, *row] in lines
    assert ["1", "c0", ".", "c", "c", "c", "c", "c"] in lines
    assert "E established, n not contradicted" in str(some)
    below = lines[lines.index(["1", "c0", ".", "c", "c", "c", "c", "c"]) + 1]
    printed = [some.verdict("c0", b) for b in some.names[1:]]
    assert below == [f"{v.dominance_p:.3g}/1".removeprefix("0") for v in printed]
    assert "Below each letter: p of dominance / p of non-dominance" in str(some)
    many = str(compare(columns, resamples=19))
    assert "of 650 ordered pairs: established 0, not contradicted 0, contradicted 0" in many
    assert "Words and p-values of all pairs, after Holm's correction: `to_frame()`, or" in many


def follows(dominance: str, nondominance: str, reverse: str, level: float) -> str:
    """The word, from what is printed alone."""
    if float(dominance.strip("*")) <= level:
        return "contradicted"
    if float(nondominance) <= level:
        return "established"
    if float(reverse.strip("*")) <= level and "*" not in dominance:
        return "not contradicted"
    return "cannot tell"


@pytest.mark.parametrize(
    ("width", "size", "p_in_cells"),
    [(105, 13, False), (60, 8, False), (105, 24, False), (240, 13, True)],
)
def test_every_letter_follows_from_what_is_printed(width: int, size: int, p_in_cells: bool) -> None:
    """With a list of pairs where p-values have no room in the matrix."""
    rng = np.random.default_rng(4)
    common = rng.normal(0, 0.4, 60)
    columns = {f"c{i}": common + rng.normal(0.1 * i, 1 + (i % 3), 60) for i in range(size)}
    columns["c1"] = columns["c0"] + rng.uniform(0.5, 0.8, 60)  # established
    c = compare(columns, resamples=199, correction="romano-wolf")
    shown = text(c, width)
    verdicts = shown[shown.index("Second order") :]  # the table of numbers is as wide as it is
    assert max(map(len, verdicts.splitlines())) <= width
    assert ("\n  Pairs with a p-value of at most 0.05" in shown) is not p_in_cells
    if p_in_cells:
        return
    letters = {"E": "established", "n": "not contradicted", "c": "contradicted", "?": "cannot tell"}
    seen = set()
    for order, title in ((2, "Second order"), (1, "First order")):
        part = shown[shown.index(title) :]
        part = part[: part.index("dominant in the sample")]
        entry = r"(\d+)-(\d+) +([Enc?]) ([\d.*]+)/([\d.]+) +([Enc?]) ([\d.*]+)/([\d.]+)"
        derived = {}
        for i, j, there, p, q, back, reverse, reverse_q in re.findall(entry, part):
            a, b = c.names[int(i) - 1], c.names[int(j) - 1]
            derived[a, b] = follows(p, q, reverse, 0.05)
            derived[b, a] = follows(reverse, reverse_q, p, 0.05)
            assert (derived[a, b], derived[b, a]) == (letters[there], letters[back])
        rest = " ".join(part[part.index("Cannot tell: the other ") :].split())
        count, p, q = re.findall(r"other ([\d,]+), .* least ([\d.]+) \(d.* ([\d.]+) \(non", rest)[0]
        others = [v for v in c.verdicts if v.order == order and (v.a, v.b) not in derived]
        assert len(others) == 2 * int(count)
        assert min(float(p), float(q)) > 0.05  # so that none of their words is another
        assert float(p) == pytest.approx(min(v.dominance_p for v in others), rel=1e-2)
        assert float(q) == pytest.approx(min(v.nondominance_p for v in others), rel=1e-2)
        for v in c.verdicts:
            if v.order == order:
                assert v.word == derived.get((v.a, v.b), "cannot tell")
                seen.add(v.word)
    assert len(seen) >= 3


def test_where_the_p_values_of_very_many_columns_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, 25))
    path = tmp_path / "returns.csv"
    names = ",".join(f"c{i}" for i in range(25))
    path.write_text("\n".join([names, *(",".join(map(str, row)) for row in table)]))
    assert command([str(path), "--resamples", "19"]) == 0
    assert "run again with --out DIR, then they are in DIR/comparison.md" in one_line(capsys)
    out = tmp_path / "out"
    assert command([str(path), "--resamples", "19", "--out", str(out)]) == 0
    assert f"after Holm's correction: {out}/comparison.md." in one_line(capsys)
    rows = (out / "comparison.md").read_text().splitlines()
    assert sum(bool(re.match(r"\| c\d+ \| c\d+ \|", row)) for row in rows) == 2 * 600


def test_the_command_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    c = compare({f"column {i}": rng.normal(size=30) for i in range(12)}, resamples=99)
    assert in_terminal(c, None) == str(c)  # a file or a pipe
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for columns, matrix in (("260", "Below each word"), ("70", "Behind each letter")):
        monkeypatch.setenv("COLUMNS", columns)
        assert matrix in in_terminal(c, None)


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_tables_for_notebooks() -> None:
    rng = np.random.default_rng(0)
    days = np.arange("2020-01-01", "2020-03-01", dtype="M8[D]")
    names = ("a<b>", "c&d")
    table = {"day": days, **{name: rng.normal(0, 0.01, 60) for name in names}}
    c = compare(table, resamples=99)
    shown = c._repr_html_()
    ET.fromstring(shown.replace("<br>", "<br/>"))  # well formed
    assert "a&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "max drawdown" in shown
    verdicts = c.to_frame()
    assert verdicts.height == 4
    for row in verdicts.iter_rows(named=True):
        verdict = c.verdict(row["a"], row["b"], row["order"])
        assert row["word"] == verdict.word
        assert row["dominance_p"] == verdict.dominance_p
        assert row["raw_dominance_p"] == verdict.test.dominance_p
    summaries = c.to_frame("summaries")
    assert summaries["name"].to_list() == ["a<b>", "c&d"]
    assert summaries["rows_per_year"].to_list() == [365.25, 365.25]
    assert summaries["max_drawdown"][0] == c.summary("a<b>").annual.max_drawdown
    with pytest.raises(InputError, match="unknown table"):
        c.to_frame("pairs")  # type: ignore[arg-type]


def test_percents_taken_for_fractions_are_noted() -> None:
    months = np.arange("2010-01", "2012-01", dtype="M8[M]").astype("M8[D]")
    rng = np.random.default_rng(0)
    table = {"month": months, "a": rng.normal(0, 4, 24), "b": rng.normal(0, 2, 24)}
    assert any("0.01 for one percent" in note for note in compare(table, resamples=99).notes)
    small = {name: z if name == "month" else z / 100 for name, z in table.items()}
    assert compare(small, resamples=99).notes == ()


def test_dates_are_saved_with_the_returns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    months = np.arange("2010-01", "2012-01", dtype="M8[M]").astype("M8[D]")
    c = compare({"month": months, "a": rng.normal(0, 0.1, 24), "b": rng.normal(0, 0.1, 24)},
                resamples=19)  # fmt: skip
    c.save(tmp_path / "out")
    again = compare_file(tmp_path / "out" / "returns.csv", resamples=19)
    assert again.summary("a").annual == c.summary("a").annual
    assert again.verdicts == c.verdicts
    content = read_json(tmp_path / "out" / "comparison.json")
    assert content["summaries"][0]["annual"]["rows_per_year"] == 12
    assert content["reading"] == [*c.reading, c.rows_drawn]


@pytest.mark.wide
def test_saved(tmp_path: Path) -> None:
    table = tmp_path / "returns.csv"
    table.write_text("a,b\n1,2\n2,3\n3,4\n4,\n")
    c = compare_file(table, out=tmp_path / "out", resamples=99, seed=4)
    files = [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    names = sorted(str(p.relative_to(tmp_path / "out")) for p in files)
    assert names == [
        "comparison.json", "comparison.md", "complete.json", "config.json",
        "figures/bands.png", "figures/bands.svg", "figures/comparison.png",
        "figures/comparison.svg", "provenance.json", "returns.csv", "returns.parquet",
        "summary.json",
    ]  # fmt: skip
    content = read_json(tmp_path / "out" / "comparison.json")
    assert content == json.loads(json.dumps(c.to_dict()))
    assert content["source"] == "returns.csv"
    assert content["orders"]["2"]["dominant"] == ["b"]
    assert len(content["summaries"][0]["cvar_curve"]) == len(content["levels"]) == 100
    assert (tmp_path / "out" / "figures" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    again = compare_file(table, out=tmp_path / "again", resamples=99, seed=4)
    assert again.to_dict() == c.to_dict()
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_saved_returns_keep_their_rows_together(tmp_path: Path) -> None:
    # Columns sorted one by one would lose which values belong to the same day.
    returns = {"a": np.array([3.0, 1.0, 2.0]), "b": np.array([1.0, 5.0, 4.0])}
    c = compare(returns, resamples=19, paired=True)
    again = read_returns(c.save(tmp_path / "out") / "returns.csv")
    assert {name: column.tolist() for name, column in again.items()} == {
        name: column.tolist() for name, column in returns.items()
    }
    assert compare(again, resamples=19, paired=True).to_dict() == c.to_dict()


@pytest.mark.wide
def test_where_a_comparison_may_be_saved(tmp_path: Path) -> None:
    c = compare({"a": [1.0, 2.0], "b": [1.0, 3.0]}, resamples=19)
    old = tmp_path / "of 0.1.0"  # its config.json: "kind" among the settings, more than now
    old.mkdir()
    (old / "config.json").write_text('{"columns": ["x", "y"], "kind": "comparison", "seed": 3}')
    (old / "provenance.json").write_text('{"versions": {"surefoot": "0.1.0"}}')
    c.save(old)
    c.save(old)
    assert read_json(old / "config.json")["columns"] == ["a", "b"]
    for other in ('{"kind": "training"}', '{"trials": 50}'):  # the latter as 0.1.0 had it
        (old / "config.json").write_text(other)
        with pytest.raises(InputError, match="another kind"):
            c.save(old)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").touch()
    with pytest.raises(InputError, match="is not empty"):
        c.save(mine)
    with pytest.raises(InputError, match="is a file"):
        c.save(mine / "thesis.tex")


def test_figure_has_every_curve_up_to_twelve() -> None:
    figure = drawn().figure()
    for ax in figure.axes:
        assert [line.get_label() for line in ax.lines] == ["sure", "wild", "poor"]
        assert ax.get_title()
        assert ax.get_xlabel()
        assert ax.get_ylabel()
    dominance = figure.axes[1].lines
    assert np.abs(dominance[0].get_ydata()).max() == 0  # the dominant one is flat at zero
    assert all(line.get_ydata().min() < 0 for line in dominance[1:])
    many = {str(i): np.array([i, i + 1.0]) for i in range(15)}
    figure = compare(many, resamples=19).figure()
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert labels == [str(i) for i in range(3, 15)]  # the best means
    assert "12 drawn" in figure.get_suptitle()


@pytest.mark.wide
def test_awkward_names_are_drawn_and_saved(tmp_path: Path) -> None:
    names = ["_hidden", "a$b$\\frac", "x" * 80, "two\nlines"]
    c = compare({name: [1.0, 2.0 + i] for i, name in enumerate(names)}, resamples=19)
    assert c.names[3] == "two lines"
    c.save(tmp_path)
    legend = [text.get_text() for text in c.figure().legends[0].get_texts()]
    assert legend[0] == "_hidden"
    assert len(legend) == 4


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=20).map(lambda v: np.sort(v)))
@settings(deadline=None)
def test_dispersion_is_the_space_between(z: np.ndarray) -> None:
    alpha = np.linspace(z[0] - 1, z[-1] + 1, 4001)
    height = dispersion_above(z, alpha)
    expected = cumulative_cdf(z, alpha) - np.maximum(alpha - z.mean(), 0)
    np.testing.assert_allclose(height, np.maximum(expected, 0), atol=1e-9)
    area = np.trapezoid(height, alpha)  # half the variance; the step of alpha is the error
    assert area == pytest.approx(variance(z) / 2, abs=0.1)


@given(st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=4), min_size=2, max_size=4))
@settings(max_examples=40, deadline=None)
def test_the_sets_follow_from_the_relations(columns: list[list[int]]) -> None:
    c = compare({str(i): column for i, column in enumerate(columns)}, resamples=19)
    for order in (1, 2):
        for a in c.names:
            relations = [c.verdict(a, b, order).relation for b in c.names if b != a]
            assert (a in c.dominant(order)) == (set(relations) <= {"dominates", "equal"})
            assert (a in c.efficient(order)) == ("dominated" not in relations)
        assert c.efficient(order)  # without a tolerance dominance is transitive: someone is left
    for a, b in itertools.permutations(c.names, 2):  # first order implies second
        if c.verdict(a, b, 1).relation == "dominates":
            assert c.verdict(a, b, 2).relation == "dominates"
        if c.verdict(a, b, 2).relation == "dominates":
            assert c.summary(a).mean >= c.summary(b).mean - 1e-12


@pytest.mark.parametrize(
    ("returns", "options", "message"),
    [
        ({"a": [1.0, 2.0]}, {}, "at least 2 columns"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"level": 0.0}, "level = 0.0"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"tolerance": -1.0}, "tolerance"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"resamples": 3}, "resamples = 3"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"seed": -3}, "seed = -3"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, {"paired": True}, "a: 2, b: 3"),
    ],
)
def test_wrong_use(returns: dict, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(returns, **options)


def test_wrong_questions() -> None:
    c = drawn(n=60, resamples=19)
    with pytest.raises(InputError, match="Did you mean 'sure'"):
        c.verdict("sur", "wild")
    with pytest.raises(InputError, match="itself"):
        c.verdict("sure", "sure")
    with pytest.raises(InputError, match="order = 3"):
        c.dominant(3)


def test_progress_goes_to_stderr_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"a": [1.0, 2.0], "b": [1.0, 2.0]}
    compare(columns, resamples=19)
    assert capsys.readouterr() == ("", "")
    compare(columns, resamples=19, progress=True)
    assert "compare" in capsys.readouterr().err


def test_names_of_0_1_0_warn_or_say_what_to_use() -> None:
    verdict = compare({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 3.0]}, resamples=20).verdicts[0]
    with pytest.warns(DeprecationWarning, match="called dominance_p"):
        assert verdict.adjusted_p == verdict.dominance_p
    with pytest.raises(AttributeError, match="`word` says"):
        _ = verdict.finding
    with pytest.raises(AttributeError, match="a verdict has no nonsense"):
        _ = verdict.nonsense
    assert copy.deepcopy(verdict) == verdict
    assert pickle.loads(pickle.dumps(verdict)) == verdict
