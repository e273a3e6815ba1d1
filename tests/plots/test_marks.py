"""Figures: fixed styles, equal bytes, what is drawn, and what cannot be."""

from __future__ import annotations

import io
import re
import sys
from itertools import combinations
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.plots import (
    PALETTE,
    STYLES,
    band,
    heatmap,
    intervals,
    legend,
    new_figure,
    render,
    save_figure,
    shares,
    style,
    styles,
    svg,
    violins,
)
from surefoot.runs.directory import RunDir

POLICIES = ("SSD", "greedy", "CVaR 0.05", "CVaR 0.25", "CVaR 0.45")
LOSSES = ("wgf-sample", "wgf-mixture", "QR")
TRANSPORTS = ("sinkhorn", "divergence", "exact", "QR", "truth")


@pytest.mark.parametrize("group", [POLICIES, LOSSES, TRANSPORTS])
def test_names_of_one_figure_differ_in_colour_marker_and_line(group):
    for one, other in combinations([style(name) for name in group], 2):
        assert one.color != other.color
        assert one.marker != other.marker
        assert one.linestyle != other.linestyle


def test_every_spelling_has_the_same_style():
    assert style("CVaR 0.25") == style("cvar_0.25") == style("CVaR(0.25)") == style("cvar-0.25")
    assert style("SSD") == STYLES["ssd"]
    assert style("epsilon-greedy") == style("ε-greedy") == style("Greedy")
    assert style("WGF (sinkhorn)") == style("sinkhorn")


def test_unknown_names_get_what_is_free():
    looks = styles(["mine", "SSD", "yours", *(f"p{i}" for i in range(30))])
    assert looks["SSD"] == STYLES["ssd"]
    assert len({looks[name].color for name in ("mine", "SSD", "yours")}) == 3
    assert len({(look.color, look.marker) for look in looks.values()}) == len(looks)
    # Beyond 64 names there is nothing new to give: they repeat, and nothing breaks.
    assert len({(s.color, s.marker) for s in styles(f"p{i}" for i in range(100)).values()}) == 64


def luminance(color: str) -> float:
    """Relative luminance of WCAG 2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_every_colour_shows_on_white():
    # Okabe and Ito's yellow, left out, has a contrast of 1.3.
    for color in PALETTE:
        assert 1.05 / (luminance(color) + 0.05) > 2.0, color


def draw_bands():
    figure, axes = new_figure(1, 2, title="Bands")
    x = np.arange(100.0)
    for k, name in enumerate(POLICIES):
        band(axes[0, 0], x, x * k, x * k - 1, x * k + 1, name)
    legend(axes[0, 0], outside=True)
    return figure, axes


def test_figures_are_equal_bytes_on_any_day(tmp_path, monkeypatch):
    png, svg = render(draw_bands()[0])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert render(draw_bands()[0]) == (png, svg)
    assert png.startswith(b"\x89PNG")
    assert b"<dc:date>" not in svg
    assert b"Matplotlib v" not in svg
    run = RunDir.create(tmp_path / "run", {}, kind="figures", seeds=0)
    path = save_figure(draw_bands()[0], run, "bands")
    assert path.read_bytes() == png
    assert (run.path / "figures" / "bands.svg").read_bytes() == svg
    assert run.figures == ["bands"]


def test_nothing_global_is_changed():
    before = dict(matplotlib.rcParams)
    render(draw_bands()[0])
    assert dict(matplotlib.rcParams) == before
    figure, ax = new_figure(size=(4, 3))
    assert ax.get_subplotspec().get_gridspec().nrows == 1
    assert tuple(figure.get_size_inches()) == (4, 3)
    assert ax.title.get_fontsize() == 11


def test_a_band_holds_its_interval():
    _, axes = draw_bands()
    ax = axes[0, 0]
    assert [line.get_label() for line in ax.lines] == list(POLICIES)
    assert ax.lines[0].get_color() == style("SSD").color
    path = ax.collections[3].get_paths()[0].vertices
    at_ten = path[path[:, 0] == 10.0][:, 1]
    assert (at_ten.min(), at_ten.max()) == (29.0, 31.0)
    with pytest.raises(InputError, match="band 'x': x, mean, low and high differ in shape"):
        band(ax, [1, 2], [1, 2], [1, 2], [1], "x")


def test_violins_lie_where_the_samples_are():
    figure, ax = new_figure()
    rng = np.random.default_rng(0)
    data = {"QR": [rng.normal(0, 1, 80), rng.normal(5, 1, 80)], "WGF": [[2.0, 2.0, 2.0], [3.0]]}
    violins(ax, data, [5, 10])
    legend(ax)
    render(figure)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["5", "10"]
    means = {
        round(float(x), 1): float(y) for line in ax.lines if line.get_marker() in ("s", "o")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }  # fmt: skip
    assert means == {
        -0.2: data["QR"][0].mean(), 0.2: 2.0, 0.8: data["QR"][1].mean(), 1.2: 3.0
    }  # fmt: skip
    bodies = [body.get_paths()[0].vertices for body in ax.collections if body.get_alpha()]
    assert len(bodies) == 2  # samples without spread have no density
    assert bodies[0][:, 1].min() == pytest.approx(data["QR"][0].min())
    assert bodies[0][:, 1].max() == pytest.approx(data["QR"][0].max())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["QR", "WGF"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"QR": [[1.0]]}, "violins 'QR': 1 samples for 2 categories"),
        ({"QR": [[1.0], []]}, "violin 'QR', b: needs finite values"),
        ({"QR": [[1.0], [np.nan]]}, "violin 'QR', b: needs finite values"),
    ],
)
def test_violins_without_samples_are_named(data, message):
    with pytest.raises(InputError, match=message):
        violins(new_figure()[1], data, ["a", "b"])


def hatched(ax) -> set[tuple[int, int]]:
    cells = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_hatch()]
    return {(int(p.get_y() + 0.5), int(p.get_x() + 0.5)) for p in cells}


def test_a_heat_map_writes_every_number_and_hatches_what_is_marked():
    figure, ax = new_figure()
    values = np.array([[0.1, 0.2, 1e6], [np.nan, 0.5, 0.6]])
    marked = np.array([[False, False, True], [False, False, False]])
    heatmap(ax, values, ["a", "b"], [1, 2, 3], half_width=values / 10, marked=marked, label="RMSE")
    render(figure)
    assert hatched(ax) == {(0, 2)}
    cells = {t.get_position()[::-1]: t.get_text() for t in ax.texts}
    assert cells == {
        (0, 0): "0.1\n±0.01", (0, 1): "0.2\n±0.02", (0, 2): "1e+06\n±1e+05",
        (1, 0): "n/a", (1, 1): "0.5\n±0.05", (1, 2): "0.6\n±0.06",
    }  # fmt: skip
    # The marked outlier takes no part in the colours.
    assert ax.images[0].get_clim() == (0.1, 0.6)
    assert ax.get_legend().get_texts()[0].get_text() == "not converged"


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[[2.0, 2.0]], [[np.nan, np.nan]]])
def test_heat_maps_without_contrast_still_draw(values, log):
    figure, ax = new_figure()
    heatmap(ax, values, ["a"], [1, 2], log=log)
    assert render(figure)[0].startswith(b"\x89PNG")
    assert ax.get_legend() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [[1.0]]}, r"values \(1, 1\), .* for 1 row and 2 column"),
        ({"marked": [True]}, r"marked \(1,\)"),
        ({"half_width": [[1.0]]}, r"half_width \(1, 1\)"),
        ({"values": [[0.0, 1.0]], "log": True}, "at or below zero"),
    ],
)
def test_heat_maps_that_do_not_fit_are_named(arguments, message):
    arguments = {"values": [[1.0, 2.0]]} | arguments
    with pytest.raises(InputError, match=message):
        heatmap(new_figure()[1], row_labels=["a"], column_labels=[1, 2], **arguments)


def test_the_picture_has_ink_in_the_style_of_its_names():
    figure, ax = new_figure(size=(4, 3))
    band(ax, [0, 1], [0, 0], [-1, -1], [1, 1], "SSD")
    pixels = matplotlib.image.imread(io.BytesIO(render(figure)[0]))[..., :3]
    blue = np.abs(pixels - np.array(to_rgb(style("SSD").color))).max(axis=-1) < 0.02
    assert blue.sum() > 300
    assert (pixels.mean(axis=-1) > 0.99).mean() > 0.3  # a light background


def test_the_svg_is_one_element_that_a_page_can_hold():
    figure, axes = draw_bands()
    axes[0, 1].set_title("a -- <b> & $x^2$")
    text = svg(figure)
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert root.get("viewBox")
    for needless in ("<?xml", "<!DOCTYPE", "<!--", "<metadata", '<g id="'):
        assert needless not in text
    # Everything that is referred to is there, and coordinates are short.
    named = {e.get("id") for e in root.iter() if e.get("id")}
    asked = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert asked <= named
    assert max(len(n.partition(".")[2]) for n in re.findall(r"L ([\d.]+)", text)) <= 2


def test_intervals_stand_side_by_side_in_their_category():
    _, ax = new_figure()
    groups = {"QR": [Interval(1.0, 0.5, 1.5, 9), None], "WGF": [None, Interval(2.0, 1.0, 3.0, 9)]}
    intervals(ax, groups, ["few", "many"], across=True)
    (one, *_), (other, *_) = ax.containers
    assert (one.get_xdata()[0], one.get_ydata()[0]) == (1.0, pytest.approx(-0.2))
    assert (other.get_xdata()[0], other.get_ydata()[0]) == (2.0, pytest.approx(1.2))
    ends = ax.containers[1][2][0].get_segments()[0]
    assert sorted(ends[:, 0]) == [1.0, 3.0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["few", "many"]
    assert ax.get_ylim() == (1.5, -0.5)  # the first on top


def test_shares_fill_the_bar():
    _, ax = new_figure()
    shares(ax, {"SSD": {"dominance": 0.25, "tie_break": 0.65, "exploration": 0.1}})
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert ends == pytest.approx([25, 25, 90, 90, 100])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'surefoot\[report\]'"):
        new_figure()
