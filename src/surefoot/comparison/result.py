"""What `compare` answers: each column's summary, each pair's verdict, and the sets they make."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surefoot.comparison.bands import DifferenceBand, difference_band
from surefoot.comparison.bootstrap import DominanceTest, pair_draws
from surefoot.comparison.dates import Dates
from surefoot.comparison.memory import Blocks, Memory
from surefoot.comparison.more import Further
from surefoot.comparison.returns import Columns
from surefoot.comparison.settings import TestSettings, range_tested
from surefoot.comparison.summaries import LEVELS, Summary
from surefoot.errors import InputError, unknown
from surefoot.runs.files import plain

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure


Relation = Literal["dominates", "dominated", "neither", "equal"]
Correction = Literal["holm", "romano-wolf"]
Word = Literal["established", "not contradicted", "contradicted", "cannot tell"]

ORDERS = (1, 2)
FIGURES = ("distributions", "bands")
WILD = 3.0  # volatility of a year beyond which fractions are probably percents


@dataclass(frozen=True)
class Verdict:
    """a against b at one order."""

    a: str
    b: str
    order: int
    relation: Relation
    """What the two samples show."""
    test: DominanceTest
    """a over b, both hypotheses, before any correction."""
    dominance_p: float
    """Of H0 "a dominates b", corrected over all ordered pairs of this order."""
    nondominance_p: float
    """Of H0 "a does not dominate b", corrected likewise."""
    reverse_dominance_p: float
    """Of H0 "b dominates a", corrected likewise."""
    level: float
    violation: float | None
    """Largest shortfall of `F^-2` of a below that of b (second order only)."""
    almost_ratio: float | None
    """Share of the area between the curves that speaks against a (second order only)."""

    @property
    def word(self) -> Word:
        """What the samples say of "a dominates b" beyond themselves.

        contradicted: "a dominates b" is rejected.
        established: "a does not dominate b" is rejected (on the range of the test).
        not contradicted: "b dominates a" is rejected and "a dominates b" is not, even without the
            correction, which would only make that easier. No evidence that a dominates.
        cannot tell: everything else.
        """
        if self.dominance_p <= self.level:
            return "contradicted"
        if self.nondominance_p <= self.level:
            return "established"
        if self.reverse_dominance_p <= self.level < self.test.dominance_p:
            return "not contradicted"
        return "cannot tell"

    def __getattr__(self, name: str) -> Any:
        """The names of 0.1.0: those that mean the same warn, the others say what to use."""
        renamed = {"adjusted_p": "dominance_p", "reverse_adjusted_p": "reverse_dominance_p"}
        if name in ("finding", "supported"):
            raise AttributeError(f"{name} is gone: `word` says what the samples tell")
        if name not in renamed:
            raise AttributeError(f"a verdict has no {name}")
        text = f"{name} is called {renamed[name]}; the old name goes with 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(self, renamed[name])


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`; print it, or `save` it with its figure."""

    summaries: tuple[Summary, ...]
    verdicts: tuple[Verdict, ...]
    """All ordered pairs at first, then at second order."""
    tolerance: float
    resamples: int
    seed: int
    level: float
    paired: bool
    trim: float | None
    blocks: Blocks
    dependence: str | int
    """As it was asked for."""
    correction: Correction
    memory: dict[str, Memory]
    """What was seen of each column's dependence over time."""
    returns: Columns = field(repr=False)
    """The samples, in the order they came in."""
    dates: dict[str, Dates] = field(default_factory=dict, repr=False)
    """Of each column's rows; empty where they have none."""
    reading: tuple[str, ...] = ()
    """How the returns were read, in sentences without a full stop."""
    source: str | None = None
    further: Further | None = None
    """More tests, where they were asked for."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(summary.name for summary in self.summaries)

    def summary(self, name: str) -> Summary:
        self._check_names(name)
        return self.summaries[self.names.index(name)]

    def verdict(self, a: str, b: str, order: int = 2) -> Verdict:
        self._check_names(a, b)
        _check_order(order)
        for verdict in self.verdicts:
            if (verdict.a, verdict.b, verdict.order) == (a, b, order):
                return verdict
        raise InputError(f"{a!r} cannot be compared with itself")

    def dominant(self, order: int = 2, *, established: bool = False) -> tuple[str, ...]:
        """Those that dominate, or equal, every other one in the sample; often none.

        With `established`: those of which that is established over every other one.
        """
        _check_order(order)

        def beats(v: Verdict) -> bool:
            return v.word == "established" if established else v.relation in ("dominates", "equal")

        return self._all_others(order, beats)

    def efficient(self, order: int = 2) -> tuple[str, ...]:
        """Those that no other dominates: the only ones left to choose from."""
        _check_order(order)
        return self._all_others(order, lambda v: v.relation != "dominated")

    @property
    def has_years(self) -> bool:
        """Whether rows have dates, so that there are measures of a year."""
        return any(s.annual is not None for s in self.summaries)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before believing the tests."""
        tests = len(self.names) * (len(self.names) - 1)
        notes = []
        if self.correction == "holm" and tests / (1 + self.resamples) > self.level:
            needed = int(np.ceil(tests / self.level))
            notes.append(
                f"{self.resamples} resamples cannot reject anything at level {self.level:g} "
                f"after Holm's correction over {tests} ordered pairs: take at least {needed}, "
                'or correction="romano-wolf"'
            )
        smallest = min(self.summaries, key=lambda s: s.n)
        if smallest.n < 20:
            notes.append(
                f"{smallest.name} has {smallest.n} values: the test keeps its level from about "
                "20 values on"
            )
        wild = [s.name for s in self.summaries if s.annual is not None
                and (s.annual.growth is None or s.annual.volatility > WILD)]  # fmt: skip
        if wild:
            notes.append(
                f"{wild[0]} moves by more than {WILD:.0%} a year, or loses everything: returns are "
                "taken as fractions, 0.01 for one percent (in a file 1 % is read as such)"
            )
        return tuple(notes)

    @property
    def correction_name(self) -> str:
        if self.correction == "holm":
            return "Holm's correction"
        return "Romano and Wolf's step-down"

    @property
    def rows_drawn(self) -> str:
        """Which rows a resample draws, and why."""
        lengths = sorted({v.test.length for v in self.verdicts})
        single = "single rows" if self.paired else "single values of each column"
        if lengths == [1]:
            reason = {"auto": "no serial correlation seen"}.get(str(self.dependence), "as asked")
            return f"{single} drawn ({reason})"
        drawn = f"{self.blocks} blocks of {lengths[-1]} rows drawn"
        if len(lengths) > 1:
            low = f"{lengths[0]} to " if lengths[0] > 1 else "up to "
            drawn = f"{self.blocks} blocks of {low}{lengths[-1]} rows drawn"
        if self.dependence != "auto":
            return f"{drawn} (as asked)"
        seen = {name: memory.seen for name, memory in self.memory.items() if memory.length > 1}
        few = "; ".join(f"{name}: {text}" for name, text in list(seen.items())[:4])
        more = f"; and {len(seen) - 4} more columns" if len(seen) > 4 else ""
        return f"{drawn} ({few}{more})"

    @property
    def range_tested(self) -> str:
        """Of which values dominance is established, in words."""
        return range_tested([s.n for s in self.summaries], self.trim)

    @property
    def settings(self) -> dict[str, Any]:
        """What the comparison was made with."""
        names = ("source", "tolerance", "resamples", "seed", "level", "paired", "trim",
                 "dependence", "blocks", "correction")  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the returns, in types that JSON has."""
        return plain(
            {
                "kind": "comparison",
                **self.settings,
                "memory": self.memory,
                "levels": LEVELS,
                "summaries": self.summaries,
                "verdicts": [{**vars(v), "word": v.word} for v in self.verdicts],
                "orders": {
                    str(order): {
                        "dominant": self.dominant(order),
                        "established_dominant": self.dominant(order, established=True),
                        "efficient": self.efficient(order),
                    }
                    for order in ORDERS
                },
                "reading": (*self.reading, self.rows_drawn),
                "notes": self.notes,
                **({"further": self.further} if self.further is not None else {}),
            }
        )

    def to_frame(
        self, what: Literal["verdicts", "summaries", "further"] = "verdicts"
    ) -> polars.DataFrame:
        """A polars table: one row for each ordered pair and order, or for each column.

        "further" has one for each ordered pair, method and order.
        """
        from surefoot.comparison.markup import frame

        return frame(self, what)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from surefoot.comparison.markup import html

        return html(self)

    def to_markdown(self) -> str:
        from surefoot.comparison.words import markdown

        return markdown(self)

    def band(self, a: str, b: str) -> DifferenceBand:
        """`F^-2` of a less that of b, with a band at the comparison's level; drawn as the tests."""
        self._check_names(a, b)
        x, y = self.returns[a], self.returns[b]
        lengths = self.memory[a].length, self.memory[b].length
        if self.paired and a != b:
            lengths = 2 * (self.verdict(a, b).test.length,)
        settings = TestSettings(self.resamples, self.seed, paired=self.paired, blocks=self.blocks)
        draws = pair_draws(len(x), len(y), lengths, settings)
        return difference_band(a, b, x, y, draws, self.level)

    def figure(self, what: Literal["distributions", "bands"] = "distributions") -> Figure:
        """A matplotlib figure: distributions, dominance, lower tails and dispersion of the columns,
        or the differences of `F^-2` of up to six pairs with their bands."""
        from surefoot.plots import draw_bands, draw_comparison

        if what not in FIGURES:
            raise unknown("figure", what, FIGURES)
        if what == "distributions":
            return draw_comparison(
                self.returns,
                dominant=self.dominant(),
                established=self.dominant(established=True),
                efficient=self.efficient(),
            )
        best = sorted(self.summaries, key=lambda s: (s.name not in self.efficient(), -s.mean))
        shown = [name for name in self.names if name in {s.name for s in best[:4]}]
        pairs = list(combinations(shown, 2))
        words = {pair: (self.verdict(*pair).word, self.verdict(*pair[::-1]).word) for pair in pairs}
        return draw_bands([self.band(*pair) for pair in pairs], words)

    def save(
        self,
        directory: str | os.PathLike[str],
        *,
        config: Mapping[str, Any] | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a run directory, for `surefoot report`; returns its path.

        A comparison that is already there is replaced; any other content is refused. `config` and
        `summary` go into config.json and summary.json beside what the comparison writes there.
        """
        from surefoot.comparison.saving import save

        return save(self, directory, config=config, summary=summary)

    def __str__(self) -> str:
        from surefoot.comparison.words import text

        return text(self)

    def _all_others(self, order: int, good: Callable[[Verdict], bool]) -> tuple[str, ...]:
        bad = {v.a for v in self.verdicts if v.order == order and not good(v)}
        return tuple(name for name in self.names if name not in bad)

    def _check_names(self, *names: str) -> None:
        for name in names:
            if name not in self.names:
                raise unknown("column", name, self.names)


def _check_order(order: int) -> None:
    if order not in ORDERS:
        raise InputError(f"order = {order}: dominance is offered at order 1 and 2")
