"""What `compare` answers: each column's summary, each pair's verdict, and the sets they make."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.inference import DominanceTest
from surefoot.comparison.reading import Columns
from surefoot.errors import InputError, unknown
from surefoot.runs.files import atomic_write, json_bytes, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Relation = Literal["dominates", "dominated", "neither", "equal"]
Finding = Literal["dominates", "dominated", "neither", "undecided"]

LEVELS = np.arange(1, 101) / 100
"""Where the curves are kept: every hundredth share of the worst outcomes."""
ORDERS = (1, 2)


@dataclass(frozen=True)
class Summary:
    """One column on its own."""

    name: str
    n: int
    mean: float
    deviation: float
    """Sample standard deviation (n - 1 in the denominator)."""
    worst: float
    median: float
    best: float
    quantile: Array = field(repr=False)
    """`F^-1` at `LEVELS`."""
    cumulative_quantile: Array = field(repr=False)
    """`F^-2` at `LEVELS`."""
    cvar_curve: Array = field(repr=False)
    """Mean of the worst share, at `LEVELS`; the last is the mean."""

    def cvar(self, share: float) -> float:
        """Mean of the worst `share`, one of `LEVELS`."""
        at = round(share * 100)
        if not 1 <= at <= 100 or abs(share * 100 - at) > 1e-9:
            raise InputError(f"share = {share}: the curve is kept at 0.01, 0.02, ..., 1")
        return float(self.cvar_curve[at - 1])


@dataclass(frozen=True)
class Verdict:
    """a against b at one order."""

    a: str
    b: str
    order: int
    relation: Relation
    """What the two samples show."""
    finding: Finding
    """What they support beyond themselves; `undecided` where they are too few to tell."""
    violation: float | None
    """Largest shortfall of `F^-2` of a below that of b (second order only)."""
    almost_ratio: float | None
    """Share of the area between the curves that speaks against a (second order only)."""
    test: DominanceTest
    """H0 "a dominates b"."""
    adjusted_p: float
    """Its p-value after Holm's correction over all ordered pairs of this order."""
    reverse_test: DominanceTest
    """H0 "b dominates a"."""
    reverse_adjusted_p: float

    @property
    def supported(self) -> bool:
        """Whether the sample supports the relation it shows; equality never is."""
        return self.finding == self.relation


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
    returns: Columns = field(repr=False)
    """The samples, ascending."""
    source: str | None = None

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

    def dominant(self, order: int = 2, *, supported: bool = False) -> tuple[str, ...]:
        """Those that dominate, or equal, every other one; often none.

        With `supported`: those of which the sample supports that they dominate every other.
        """
        _check_order(order)

        def beats(v: Verdict) -> bool:
            return v.finding == "dominates" if supported else v.relation in ("dominates", "equal")

        return self._all_others(order, beats)

    def efficient(self, order: int = 2) -> tuple[str, ...]:
        """Those that no other dominates: the only ones left to choose from."""
        _check_order(order)
        return self._all_others(order, lambda v: v.relation != "dominated")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before believing the tests."""
        tests = len(self.names) * (len(self.names) - 1)
        notes = []
        if tests / (1 + self.resamples) > self.level:
            needed = int(np.ceil(tests / self.level))
            notes.append(
                f"{self.resamples} resamples cannot reject anything at level {self.level:g} "
                f"after Holm's correction over {tests} ordered pairs: take at least {needed}"
            )
        smallest = min(self.summaries, key=lambda s: s.n)
        if smallest.n < 20:
            notes.append(
                f"{smallest.name} has {smallest.n} values: the test keeps its level from about "
                "20 values on"
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the returns, as what JSON knows."""
        return plain(
            {
                "kind": "comparison",
                "source": self.source,
                "tolerance": self.tolerance,
                "resamples": self.resamples,
                "seed": self.seed,
                "level": self.level,
                "paired": self.paired,
                "levels": LEVELS,
                "summaries": self.summaries,
                "verdicts": [{**vars(v), "supported": v.supported} for v in self.verdicts],
                "orders": {
                    str(order): {
                        "dominant": self.dominant(order),
                        "supported_dominant": self.dominant(order, supported=True),
                        "efficient": self.efficient(order),
                    }
                    for order in ORDERS
                },
                "notes": self.notes,
            }
        )

    def to_markdown(self) -> str:
        from surefoot.comparison.words import markdown

        return markdown(self)

    def figure(self) -> Figure:
        """Distributions, dominance, lower tails and dispersion, as a matplotlib figure."""
        from surefoot.plots import draw_comparison

        return draw_comparison(
            self.returns,
            dominant=self.dominant(),
            supported=self.dominant(supported=True),
            efficient=self.efficient(),
        )

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write comparison.json, .md, .png and .svg into `directory`; gives the directory."""
        from surefoot.plots import render

        directory = Path(directory)
        png, svg = render(self.figure())
        atomic_write(directory / "comparison.json", json_bytes(self.to_dict()))
        atomic_write(directory / "comparison.md", self.to_markdown().encode())
        atomic_write(directory / "comparison.png", png)
        atomic_write(directory / "comparison.svg", svg)
        return directory

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
