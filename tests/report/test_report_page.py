"""The page as text: nothing is loaded, nothing of a file becomes markup."""

import base64
import hashlib
import html
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.report.page import (
    Badge,
    DataTable,
    Explorer,
    Figure,
    Folded,
    Note,
    Page,
    Section,
    asset,
    guarded,
    render,
)

EVIL = "<script>alert(1)</script>\"'&<!--{{ 7 * 7 }}{% include 'x' %}"
EVERYTHING = (
    Note(EVIL),
    DataTable((EVIL, EVIL), ((EVIL, Badge(EVIL, "good")), ([EVIL, EVIL], EVIL)), EVIL, EVIL),
    Folded(EVIL, ((EVIL, EVIL),), EVIL),
    Figure(EVIL, EVIL, "data:image/png;base64,AAAA", EVIL),
    Explorer(EVIL, {"header": [EVIL], "sentences": [EVIL]}, EVIL),
)


def page_of(*parts, title="A page"):
    return render(Page(title, (Section(title, tuple(parts), "lead"),))).decode()


def without_our_script(page):
    script = f"<script>{asset('report.js')}</script>"
    assert page.count(script) == 1
    return page.replace(script, "")


def test_no_name_becomes_markup():
    page = without_our_script(page_of(*EVERYTHING, title=EVIL))
    assert "alert(1)" in page
    assert re.findall(r"<script[^>]*>", page) == ['<script type="application/json">']
    assert "<!--" not in page
    assert "{{ 7 * 7 }}" in page  # nor a template


def test_nothing_is_loaded():
    page = without_our_script(page_of(*EVERYTHING))
    assert "<link" not in page
    assert "@import" not in page
    sources = re.findall(r'\b(?:src|href|action|srcset)\s*=\s*"([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert not re.search(r"url\(|https?://", page)


def test_only_our_script_and_style_may_run():
    page = page_of(Note("text"))
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        (ours,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(ours.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


@pytest.mark.parametrize("name", ["report.js", "report.css"])
def test_no_asset_can_end_its_element(name):
    assert "</" not in asset(name)


def test_names_in_tables_are_not_broken_in_the_middle():
    (rule,) = re.findall(r"^h1,[^{]*\btd\b[^{]*\{([^}]*)\}", asset("report.css"), re.MULTILINE)
    assert rule.strip() == "overflow-wrap: break-word;"  # `anywhere` breaks them to save width


TEXT = st.text("<>&/!-'\"\\ aé\u2028\u2029\0")  # what a parser might stop at
PLAIN = TEXT | st.integers() | st.none()


@settings(max_examples=30, deadline=None)
@given(st.recursive(PLAIN, lambda x: st.lists(x) | st.dictionaries(TEXT, x), max_leaves=8))
def test_json_survives_html(value):
    page = page_of(Explorer("e", {"header": [], "value": value}))
    (told,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert not set("<>&") & set(told)
    assert json.loads(told)["value"] == value


def test_contents_lead_to_what_is_there():
    parts = (Note("n"), Figure("a", "One", "data:,"), Figure("b", "One", "data:,"))
    sections = Section("First", parts), Section("First", parts)
    for page in (page_of(*parts), render(Page("All", sections)).decode()):
        ids = re.findall(r'\bid="([^"]*)"', page)
        links = re.findall(r'href="#([^"]*)"', page)
        assert len(set(ids)) == len(ids)
        assert len(links) == 2
        assert set(links) <= set(ids)


def test_verdicts_differ_without_colour():
    page = page_of(
        DataTable(("v",) * 4, ((*(Badge("x", t) for t in ("good", "half", "bad", "none")),),), "T")
    )
    signs = re.findall(r'<span aria-hidden="true">(.)</span>', page)
    assert len(set(signs)) == 4


def test_equal_content_gives_equal_bytes():
    assert page_of(*EVERYTHING) == page_of(*EVERYTHING)


def test_what_fails_is_said_in_its_place():
    (note,) = guarded("The table", lambda: [1 / 0])
    assert note.tone == "warning"
    assert note.text.startswith("The table: not shown")
    assert "division by zero" in note.text
