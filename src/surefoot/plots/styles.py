"""One colour, marker and line style for each policy, loss and transport, in every figure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Okabe and Ito (2008); their yellow is left out, it vanishes on white.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#6E6E6E"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))


@dataclass(frozen=True)
class Style:
    """How one name is drawn, always."""

    color: str
    marker: str
    linestyle: Any


STYLES: dict[str, Style] = {
    # policies
    "ssd": Style(BLUE, "o", "-"),
    "greedy": Style(VERMILION, "s", "--"),
    "cvar-0.05": Style(GREEN, "^", "-."),
    "cvar-0.25": Style(ORANGE, "D", ":"),
    "cvar-0.45": Style(PURPLE, "v", (0, (5, 1, 1, 1, 1, 1))),
    "uniform": Style(GREY, "X", (0, (1, 1))),
    # losses
    "wgf-mixture": Style(BLUE, "o", "-"),
    "wgf-sample": Style(SKY, "P", "--"),
    "wgf": Style(BLUE, "o", "-"),
    "qr": Style(VERMILION, "s", "-."),
    "q-learning": Style(BLACK, "X", ":"),
    "sarsa": Style(GREY, "*", (0, (1, 1))),
    # transports
    "exact": Style(GREEN, "^", "-"),
    "divergence": Style(PURPLE, "v", (0, (5, 1, 1, 1, 1, 1))),
    "sinkhorn": Style(BLUE, "o", "--"),
    "sinkhorn-scaled": Style(ORANGE, "D", ":"),
    # what estimates are compared with
    "truth": Style(BLACK, "X", ":"),
    "monte-carlo": Style(BLACK, "X", ":"),
}
ALIASES = {
    "epsilon-greedy": "greedy",
    "ε-greedy": "greedy",
    "quantile-regression": "qr",
    "wgf-exact": "exact",
    "wgf-divergence": "divergence",
    "wgf-sinkhorn": "sinkhorn",
}
# Who chose an action, as `DecidedBy` names them: colour and hatching.
AUTHORITIES = {
    "dominance": (BLUE, ""),
    "score": (SKY, ""),
    "tie_break": (ORANGE, "//"),
    "fallback": (PURPLE, "xx"),
    "exploration": ("#BBBBBB", ".."),
}


def style(name: str) -> Style:
    """The style of a name. Spelling is free: `CVaR 0.25`, `cvar_0.25` and `CVaR(0.25)` agree.

    A name without a fixed style gets the first free one; ask `styles` for several at once.
    """
    return styles([name])[name]


def styles(names: Iterable[str]) -> dict[str, Style]:
    """The style of each name; those without a fixed one get what no other name here has.

    Beyond 64 names, pairs of colour and marker come again.
    """
    names = list(dict.fromkeys(names))
    chosen = {name: STYLES[_key(name)] for name in names if _key(name) in STYLES}
    for name in names:
        if name not in chosen:
            chosen[name] = _free(list(chosen.values()), len(chosen))
    return {name: chosen[name] for name in names}


def _free(taken: list[Style], count: int) -> Style:
    """A new colour while there is one, then a new pair of colour and marker."""
    colours, pairs = {s.color for s in taken}, {(s.color, s.marker) for s in taken}
    for turn, i in itertools.product(range(len(MARKERS)), range(len(PALETTE))):
        color, marker = PALETTE[i], MARKERS[(i + turn) % len(MARKERS)]
        if (color, marker) not in pairs and (color not in colours or len(colours) == len(PALETTE)):
            return Style(color, marker, LINES[(i + turn) % len(LINES)])
    return taken[count % 64]


def _key(name: str) -> str:
    key = "-".join(re.findall(r"[\w.]+", str(name).lower().replace("_", " ")))
    return ALIASES.get(key, key)
