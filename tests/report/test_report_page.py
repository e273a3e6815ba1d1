"""The page as text: nothing is loaded, nothing of a file becomes markup, numbers are right."""

import base64
import hashlib
import html
import json
import math
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surefoot.report.charts import numbers, step_cdf, text
from surefoot.report.page import asset, json_text, plotly_source, render
from surefoot.report.parts import (
    Badge,
    Chart,
    Explorer,
    Facts,
    Key,
    Note,
    Page,
    Panel,
    Picture,
    Section,
    Table,
    one,
)

EVIL = "<script>alert(1)</script>\"'&<!--"


def page_of(*parts, title="A page"):
    return render(Page(title, (Section(title, tuple(parts)),))).decode()


def without_our_scripts(page):
    """What is left when the two scripts that the page runs are taken out."""
    for script in (plotly_source(), asset("report.js")):
        assert page.count(f"<script>{script}</script>") == 1
        page = page.replace(f"<script>{script}</script>", "")
    return page


def everything_evil():
    explorer = {"levels": [], "sentences": [EVIL]}
    return (
        Note(EVIL),
        Table((EVIL, EVIL), ((EVIL, Badge(EVIL, "good")), ([EVIL, EVIL], EVIL)), EVIL),
        Facts(EVIL, ((EVIL, EVIL),), EVIL),
        Picture(EVIL, EVIL, b"png", EVIL),
        Chart(EVIL, EVIL, {EVIL: (Panel(EVIL, ({"name": EVIL},)),)}, (Key(EVIL, "#000000"),), EVIL),
        Explorer(EVIL, EVIL, explorer, EVIL),
    )


def test_no_name_becomes_markup():
    page = without_our_scripts(page_of(*everything_evil(), title=EVIL))
    assert "alert(1)" in page
    assert "<script>alert" not in page
    scripts = re.findall(r"<script[^>]*>", page)
    assert scripts
    assert all(tag.startswith('<script type="application/json" id="data-') for tag in scripts)
    assert "<!--" not in page


def test_nothing_is_loaded():
    page = without_our_scripts(page_of(*everything_evil()))
    assert "<link" not in page
    assert "@import" not in page
    sources = re.findall(r'\b(?:src|href|action|srcset)\s*=\s*"([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert not re.search(r"url\(\s*['\"]?(?!data:)", page)
    assert not re.search(r"https?://", page)


def test_only_our_two_scripts_may_run():
    page = page_of(Note("text"))
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    ours = [
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    ]
    assert rules["script-src"].split() == ours
    assert len(ours) == 2


PLAIN = st.text() | st.integers() | st.none()


@given(st.recursive(PLAIN, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=8))
def test_json_survives_html(value):
    told = json_text(value)
    assert not set("<>&\u2028\u2029") & set(told)
    assert json.loads(told) == value


@given(st.text())
def test_plotly_never_sees_a_tag(name):
    assert "<" not in text(name)
    assert html.unescape(text(name)) == html.unescape(name)


def test_equal_content_gives_equal_bytes():
    assert page_of(Note("a")) == page_of(Note("a"))


def test_rounding_by_hand():
    # The range is 0.004, whose first digit is the third decimal: five of them end at the seventh.
    assert numbers([-12.000123456, -12.004123456]) == [-12.0001235, -12.0041235]
    assert numbers([1.0, 250.0, math.nan, math.inf]) == [1, 250, None, None]
    assert numbers([0.0, 0.0]) == [0, 0]


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30))
def test_rounding_is_finer_than_a_pixel(values):
    shown = np.asarray(numbers(values), float)
    span = np.ptp(values) or np.abs(values).max() or 1.0
    assert np.abs(shown - values).max() <= 1e-4 * span


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.floats(-120, 120))
def test_step_cdf_is_the_share_below(z, x):
    at, share = step_cdf(z, -200.0, 200.0)
    # Held from the left, as `hv` draws it: the last place not right of x.
    found = share[np.searchsorted(at, x, side="right") - 1]
    assert found == np.mean(np.asarray(z) <= x)


def test_a_chart_of_one_variant_has_no_name():
    panel = Panel("p", ())
    assert one(panel) == {"": (panel,)}
