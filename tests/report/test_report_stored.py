"""Files of a run that nobody vouches for: links, sizes, pictures that are more than pictures."""

import base64
import re
from urllib.parse import unquote

import numpy as np
import pytest

from surefoot.errors import InputError
from surefoot.report.stored import Stored, png_uri, safe_svg, svg_uri

PNG = b"\x89PNG\r\n\x1a\n"
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '


def cleaned(inner, attributes='viewBox="0 0 10 10"'):
    return safe_svg(f"{HEAD}{attributes}>{inner}</svg>".encode())


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        '<script xlink:href="data:text/javascript,alert(1)"/>',
        '<rect onclick="alert(1)" width="1"/>',
        '<a href="javascript:alert(1)"><rect width="1"/></a>',
        '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml">alert(1)</body></foreignObject>',
        '<image xlink:href="https://alert.invalid/1.png"/>',
        '<image href="data:image/svg+xml,&lt;svg/&gt;alert"/>',
        '<use href="https://alert.invalid/x.svg#a"/>',
        '<rect style="fill: url(https://alert.invalid)" width="1"/>',
        '<rect style="fill: u\\72l(https://alert.invalid)" width="1"/>',
        '<rect fill="url( //alert.invalid )" width="1"/>',
        '<style>@import "https://alert.invalid";</style>',
        '<style>* { background: url("alert") }</style>',
        '<animate attributeName="href" to="alert"/><set attributeName="onload" to="alert(1)"/>',
        '<rect xmlns="http://alert.invalid/other" width="1"/>',
        "<metadata>alert</metadata><?xml-stylesheet href='alert'?><!-- alert -->",
    ],
)
def test_only_shapes_are_left(evil):
    made = cleaned(f'{evil}<path d="M0 0L1 1"/>')
    assert "alert" not in made
    assert '<path d="M0 0L1 1" />' in made


def test_what_matplotlib_draws_is_kept():
    inner = (
        '<defs><clipPath id="p"><rect width="1"/></clipPath><path id="m" d="M0 0"/></defs>'
        '<g clip-path="url(#p)" style="fill: #0072b2"><use xlink:href="#m" x="1.5"/></g>'
        '<image width="2" xlink:href="data:image/png;base64,\nAA\nBB"/><text x="1">a &lt; b</text>'
    )
    made = cleaned(inner)
    for part in ('clip-path="url(#p)"', 'style="fill: #0072b2"', '<use href="#m" x="1.5" />',
                 'href="data:image/png;base64,AABB"', ">a &lt; b</text>"):  # fmt: skip
        assert part in made


def test_a_figure_of_ours_loses_only_its_metadata():
    from surefoot.plots import new_figure, render

    figure, ax = new_figure(size=(4, 3))
    ax.plot([0, 1], [0, 1], marker="o", label="a")
    ax.fill_between([0, 1], [0, 1], hatch="//")
    svg = render(figure)[1].decode()
    made = safe_svg(svg.encode())
    for tag in ("path", "use", "g", "clipPath", "pattern"):
        assert made.count(f"<{tag} ") == svg.count(f"<{tag} ")
    assert "metadata" not in made
    assert max(len(n) for n in re.findall(r'\bd="M -?\d+\.(\d+)', made)) == 2  # hundredths


def test_a_small_file_cannot_multiply():
    """Ten uses of ten uses of ...: a billion shapes that no browser finishes."""
    rows = "".join(f'<g id="g{i + 1}">' + f'<use href="#g{i}"/>' * 10 + "</g>" for i in range(9))
    made = cleaned(f'<defs><path id="g0" d="M0 0"/>{rows}</defs>{rows}')
    assert made.count("<use") == 10 * 9  # what stands outside the definitions points at these once
    inside = made[made.index("<defs>") : made.index("</defs>")]
    assert "<use" not in inside
    pattern = '<pattern id="p" width="1"><rect fill="url(#p)" width="1"/></pattern>'
    assert "url(" not in cleaned(pattern)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not an SVG picture"),
        (b"<html/>", "not an SVG picture"),
        (b"\xff\xfe<\x00s\x00", "not an SVG picture"),
        (b'<!DOCTYPE svg [<!ENTITY a "aa">]><svg/>', "entities"),
        (HEAD.encode() + b">" + b"<g>" * 100_000, "not an SVG picture"),
        (b" " * 16_000_001, "larger than"),
    ],
    ids=["empty", "html", "utf16", "entities", "deep", "large"],
)
def test_what_is_no_picture_is_refused(data, reason):
    with pytest.raises(InputError, match=reason):
        safe_svg(data, "figures/x.svg")


def test_deep_nesting_that_is_closed_is_refused_too():
    data = f"{HEAD}>{'<g>' * 50_000}{'</g>' * 50_000}</svg>"
    with pytest.raises(InputError, match="not an SVG picture"):
        safe_svg(data.encode())


def test_addresses_hold_the_picture():
    svg = cleaned('<text x="1">50 % # "quoted" é</text>')
    uri = svg_uri(svg)
    assert uri.startswith("data:image/svg+xml,")
    assert not set('<>"#') & set(uri)
    assert unquote(uri.partition(",")[2]).replace("'", '"') == svg.replace("'", '"')
    assert png_uri(PNG) == "data:image/png;base64," + base64.b64encode(PNG).decode()
    with pytest.raises(InputError, match="not a PNG"):
        png_uri(b"GIF89a")


def test_no_link_leads_out_of_the_run(tmp_path):
    run, secret = tmp_path / "run", tmp_path / "secret.json"
    (run / "figures").mkdir(parents=True)
    secret.write_text('{"password": "x"}')
    (run / "config.json").symlink_to(secret)
    (run / "figures" / "a.svg").symlink_to(secret)
    (run / "own.json").write_text('{"a": 1}')
    (run / "within.json").symlink_to(run / "own.json")
    files = Stored(run)
    assert files.json("within.json") == {"a": 1}
    with pytest.raises(InputError, match="link that leads out"):
        files.json("config.json")
    with pytest.raises(InputError, match="link that leads out"):
        files.figure_uri("a")


def test_columns_of_a_run_that_is_still_writing(tmp_path):
    (tmp_path / "a.csv").write_text("step,return\n1,2\n3,\n5")
    columns = Stored(tmp_path).columns("a.csv")
    np.testing.assert_array_equal(columns["step"], [1, 3])
    np.testing.assert_array_equal(columns["return"], [2, np.nan])
    for text, reason in (("step\n", "has no rows"), ("a\nx\n", "could not convert")):
        (tmp_path / "b.csv").write_text(text)
        with pytest.raises(InputError, match=reason):
            Stored(tmp_path).columns("b.csv")
