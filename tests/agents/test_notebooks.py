"""What a notebook shows of agents, decisions, explanations and evaluations, and their figures."""

from html.parser import HTMLParser
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from rich.console import Console
from tiny import TABLE

import surefoot as sf
from surefoot.agents.explain import explain
from surefoot.runs import progress as module
from surefoot.training.evaluation import Evaluated

SURE, RISKY = [4.0, 6.0], [0.0, 10.0]


class Cells(HTMLParser):
    """The rows of all tables, and whether tags are closed as they were opened."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def test_an_explanation_shows_its_words_and_numbers_and_draws_itself():
    made = explain(np.array([SURE, RISKY]), sf.SSD(0.001), 0, names=("<b>sure", "risky"))
    shown = Cells(made._repr_html_())
    assert shown.rows[0][:3] == ["action", "mean", "deviation"]
    assert shown.rows[1][:3] == ["<b>sure", "5", "1"]
    assert made.words[0] in shown.text
    assert "font-weight:600" in made._repr_html_().split("<b>")[0]
    assert made.figure().axes[0].get_title() == "Return distribution"
    assert made.figure()._repr_png_().startswith(b"\x89PNG")
    lines = str(made).splitlines()
    assert lines[-3].startswith("-> <b>sure           5           1")


def test_a_decision_and_a_batch_of_them():
    z = np.array([SURE, RISKY])
    shown = Cells(sf.SSD(0.001).decide(z, 0)._repr_html_())
    assert "action 0, decided by dominance" in shown.text
    assert shown.rows[1] == ["0", "0", "inf", "yes"]
    batch = jax.jit(jax.vmap(lambda z: sf.Greedy().decide(z, jax.random.key(0))))(
        np.stack([z, z + np.array([[0], [1]])])
    )
    assert Cells(batch._repr_html_()).rows[:4] == [
        ["decided by", "of 2"], ["score", "1"], ["dominance", "0"], ["tie-break", "1"]
    ]  # fmt: skip


def test_a_decision_draws_its_gaps():
    z, n = np.array([SURE, RISKY, [0.0, 0.0]]), np.array([50, 50, 50])
    axes = sf.SSD().decide(z, 0, n=n).figure().axes[0]
    assert axes.get_title() == "action 0, decided by dominance"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["0 (taken)", "1", "2"]
    places = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]
    assert places == [0.0, 0.0, -5.0]  # the means are 5, 5 and 0
    full = [
        line.get_markerfacecolor() != "white" for line in axes.lines if line.get_marker() == "o"
    ]
    assert full == [True, True, False]  # worth the same, the third is not
    batch = jax.vmap(lambda z: sf.Greedy().decide(z, jax.random.key(0)))(np.stack([z, z]))
    with pytest.raises(sf.InputError, match="a batch of decisions"):
        batch.figure()


def test_a_whole_number_serves_as_a_key():
    z, n = np.array([SURE, RISKY]), np.array([50, 50])
    for policy in (sf.SSD(), sf.SSD(0.1), sf.Greedy(), sf.CVaR(0.25)):
        drawn, same = policy.decide(z, 3, n=n), policy.decide(z, jax.random.key(3), n=n)
        assert drawn.action == same.action == policy(z, np.int64(3), n=n)
    assert explain(z, sf.Greedy(), 3).action == sf.Greedy()(z, jax.random.key(3))


def test_an_agent_says_where_it_differs_from_the_defaults():
    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", **TABLE, seed=3)
    shown = Cells(agent._repr_html_())
    assert shown.text.startswith("TabularAgent on surefoot/RiskyCliff-v0, seed 3")
    own, usual = agent.config, sf.TabularConfig()
    differing = {name for name in vars(own) if getattr(own, name) != getattr(usual, name)}
    assert {row[0] for row in shown.rows[1:]} == differing


def test_an_evaluation_shows_its_row_and_draws_its_returns():
    one = Evaluated("ssd", np.array([1.0, 3.0]), np.array([4, 6]), {"mean": 1.0})
    rows = Cells(one._repr_html_()).rows
    assert rows[0][:2] == ["policy", "mean return"]
    assert rows[1][0] == "ssd"
    assert rows[1][-1] == "5"
    assert len(one.figure().axes) == 4
    same = np.full(20, -12 - 1 / 3 - 1 / 3 - 1 / 3)  # NumPy's deviation is 1.8e-15
    assert np.std(same, ddof=1) > 0
    assert Evaluated("ssd", same, np.ones(20, np.int64), {}).row()[2] == "0"


@pytest.mark.parametrize(("widgets", "expected"), [(True, True), (False, False)])
def test_a_notebook_has_bars_where_it_has_widgets(widgets, expected, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _: SimpleNamespace() if widgets else None)
    console = Console(force_jupyter=True)
    assert module._can_draw(console) is expected
