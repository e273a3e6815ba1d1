"""Claims: what is refused, and the three forms of the table."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper.claims import (
    VERDICTS,
    Claim,
    from_json,
    tally,
    to_json,
    to_markdown,
    to_table,
)
from surefoot.runs.files import json_bytes

TOP = Claim(
    id="risky-cliff/top-row",
    section="5.4",
    paper="SSD takes the sure path",
    measured="share of the last 100 episodes over the top row",
    verdict="reproduced",
    intervals={
        "SSD": Interval(0.983, 0.979, 0.987, 50),
        "greedy": Interval(0.67, 0.62, 0.72, 50, 0.9),
    },
)
SAME = Claim(
    "regression/no-difference", "5.1", "QR | WGF *equal*", "differs\nin size", "partly", "p < 0.05"
)


def test_the_evidence_carries_the_intervals_and_their_level():
    assert TOP.evidence == [
        "share of the last 100 episodes over the top row",
        "SSD 0.983 [0.979, 0.987]",
        "greedy 0.670 [0.620, 0.720] (90% interval)",
    ]


def test_markdown_is_a_table_whatever_the_text():
    lines = to_markdown([TOP, SAME]).splitlines()
    assert lines[0] == "2 claims: 1 reproduced, 1 partly."
    table = lines[2:]
    assert len(table) == 4
    # Unescaped bars are the only separators: five columns in every line.
    assert {line.replace("\\|", "").count("|") for line in table} == {6}
    assert "QR \\| WGF \\*equal\\*" in table[3]
    assert "differs in size" in table[3]
    assert "<br>SSD 0.983 [0.979, 0.987]<br>" in table[2]
    assert "**reproduced**" in table[2]


def test_json_gives_the_claims_back_in_their_order():
    content = json.loads(json_bytes(to_json([TOP, SAME])))
    back = from_json(content)
    assert back == (TOP, SAME)
    assert list(back[0].intervals) == ["SSD", "greedy"]


def test_the_terminal_table_shows_brackets_and_verdicts():
    console = Console(file=io.StringIO(), width=160, color_system=None)
    console.print(to_table([TOP, SAME], title="Claims"))
    text = console.file.getvalue()
    assert "[0.979, 0.987]" in text
    assert "not reproduced" not in text
    assert "reproduced" in text
    assert "2 claims: 1 reproduced, 1 partly" in text


def test_the_tally_counts_every_verdict():
    claims = [Claim(f"c{i}", "5", "a", "b", v, "why") for i, v in enumerate(VERDICTS)]
    assert tally(claims) == ("4 claims: 1 reproduced, 1 partly, 1 not reproduced, 1 not testable")
    assert tally([]) == "0 claims"
    assert tally(claims[:1]) == "1 claim: 1 reproduced"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": "reprodced"}, "Did you mean 'reproduced'"),
        ({"verdict": "partly", "reason": " "}, "it needs a reason"),
        ({"measured": ""}, "needs a text for measured"),
        ({"section": 5}, "needs a text for section"),
    ],
)
def test_incomplete_claims_are_refused(changes, message):
    base = {"id": "x", "section": "5", "paper": "a", "measured": "b", "verdict": "reproduced"}
    with pytest.raises(InputError, match=message):
        Claim(**base | changes)


def test_one_id_names_one_claim():
    for form in (to_json, to_markdown, to_table):
        with pytest.raises(InputError, match="two claims have the id 'risky-cliff/top-row'"):
            form([TOP, SAME, TOP])


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"format": 1},
        {"format": 2, "claims": []},
        {"format": 1, "claims": ["text"]},
        {"format": 1, "claims": [{"id": "x"}]},
        {"format": 1, "claims": [{"id": "x", "other": 1}]},
        {"format": 1, "claims": [{**TOP.as_dict(), "intervals": [{"name": "a", "mean": "x"}]}]},
        {"format": 1, "claims": [{**TOP.as_dict(), "intervals": 3}]},
    ],
)
def test_damaged_content_is_refused_by_name(content):
    with pytest.raises(InputError, match=r"^claims.json: "):
        from_json(content, "claims.json")
