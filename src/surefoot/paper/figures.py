"""The paper's explanatory figures: dispersion space, and when one return dominates another.

Everything drawn is computed from particles by the library's own functions, and so is every
verdict written on a plot. Beside the drawings, two statements behind them are checked on random
particles: the space's area is half the variance, and dominance by `F^-2` (eq. 5, what the library
compares) is dominance by `F^(2)` (eq. 1, its definition).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.core import stats
from surefoot.core.dominance import fsd_dominates, ssd_dominates
from surefoot.core.particles import (
    cumulative_cdf,
    cumulative_quantile,
    dispersion_space,
    mean,
    variance,
)
from surefoot.errors import at_least
from surefoot.paper.claims import Claim
from surefoot.paper.experiment import Experiment, Tables
from surefoot.plots import curve, dispersion, label, legend, new_figure, styles
from surefoot.plots.styles import BLACK, Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = styles(["X", "Y"])
BIMODAL = np.array([-4.0, -3.0, -2.5, -2.0, 1.0, 2.0, 2.5, 3.0, 3.5, 4.5])


class DrawnPair(NamedTuple):
    """Two returns of a panel, and what the paper says of such a pair."""

    name: str
    x: np.ndarray
    y: np.ndarray
    paper: tuple[bool, bool]  # x over y at first, at second order


PAIRS = (
    # Every particle of x lies above its partner.
    DrawnPair("first and second order", np.array([1.5, 2.5, 3.5, 4.5, 6.0, 7.0]),
         np.array([0.0, 1.5, 2.0, 3.5, 5.0, 6.0]), (True, True)),
    # The CDFs cross; what x gains left of the crossing outweighs what it gives up right of it.
    DrawnPair("second order only", np.array([2.0, 2.5, 3.0, 3.5, 4.0, 4.5]),
         np.array([0.0, 1.0, 2.5, 3.8, 4.7, 5.5]), (False, True)),
    # x is better on average and worse in its lower tail: tastes differ.
    DrawnPair("neither", np.array([0.0, 1.5, 4.0, 5.5, 6.5, 7.5]),
         np.array([2.0, 2.5, 3.0, 3.5, 4.0, 4.5]), (False, False)),
)  # fmt: skip


@dataclass(frozen=True)
class FiguresConfig:
    """The paper's explanatory figures, and checks of what they say."""

    trials: int = 1000
    """Random pairs of particle sets on which the statements behind the figures are checked."""
    seed: int = 0
    """Decides the random particles; the figures are always the same."""
    particles: int = 8
    """Particles of each random set."""

    def __post_init__(self) -> None:
        at_least(2, trials=self.trials, particles=self.particles)


# --- the checks --------------------------------------------------------------------------


def measure(config: FiguresConfig, tables: Tables) -> None:
    if "results" not in tables:
        tables.write("results", check(config))


def read(_: FiguresConfig, tables: Tables) -> dict[str, np.ndarray]:
    return tables["results"]


def summary(table: dict[str, np.ndarray]) -> dict[str, Any]:
    return {"agreement": stats.share_interval(table["agree"]), "dominating": table["eq_5"].mean()}


def area(z: np.ndarray) -> float:
    """Between `F^(2)` and its asymptotes. All three bend only at particles and at the mean, so the
    trapezoid rule on those points is exact."""
    bends = np.sort(np.append(z, mean(z)))
    space = dispersion_space(z, bends)
    above = space.frontier - np.maximum(space.left_asymptote, space.right_asymptote)
    return float(np.trapezoid(above, bends))


def dominates_by_definition(x: np.ndarray, y: np.ndarray) -> bool:
    """Eq. 1 on its own terms: `F^(2)_x <= F^(2)_y` wherever either of the two can bend. Right of
    all particles both rise with slope one."""
    alpha = np.sort(np.concatenate([x, y]))
    return bool(np.all(cumulative_cdf(x, alpha) <= cumulative_cdf(y, alpha) + 1e-12))


def check(config: FiguresConfig) -> dict[str, np.ndarray]:
    """Both statements on random particles; half of the pairs are drawn so that x has the smaller
    spread, else hardly any would dominate."""
    rng = np.random.default_rng(config.seed)
    ratio, by_quantiles, by_definition = [], [], []
    for trial in range(config.trials):
        x, y = rng.normal(size=(2, config.particles))
        if trial % 2:
            x = 0.5 * x + 0.5
        ratio.append(area(x) / float(variance(x)))
        by_quantiles.append(bool(ssd_dominates(x, y)))
        by_definition.append(dominates_by_definition(x, y))
    agree = np.equal(by_quantiles, by_definition)
    return {
        "area_over_variance": np.array(ratio),
        "eq_5": np.array(by_quantiles),
        "eq_1": np.array(by_definition),
        "agree": agree,
    }


def claims_of(table: dict[str, np.ndarray]) -> list[Claim]:
    ratio = stats.mean_interval(table["area_over_variance"])
    half = bool(np.allclose(table["area_over_variance"], 0.5, rtol=1e-9))
    share = stats.share_interval(table["agree"])
    claims = [
        Claim(
            "figures/dispersion", "1, figure 1",
            "The space between the cumulative CDF and its asymptotes shows the uncertainty",
            f"Its area over the variance, {len(table['agree'])} random sets of particles",
            "reproduced" if half else "not reproduced",
            f"The area is {'' if half else 'not '}half the variance in every set",
            {"area / variance": ratio},
        ),
        Claim(
            "figures/equivalence", "3.1, eq. 5",
            "Dominance by cumulative CDFs is dominance by cumulative quantiles",
            f"Both agree on random pairs; {int(table['eq_5'].sum())} of them dominate",
            "reproduced" if share.mean == 1 else "not reproduced",
            "They must agree on every pair",
            {"share that agrees": share},
        ),
    ]  # fmt: skip
    for letter, pair in zip("abc", PAIRS, strict=True):
        right = orders(pair.x, pair.y) == pair.paper
        claims.append(
            Claim(
                f"figures/2{letter}", f"2, figure 2{letter}",
                f"Between such returns there is dominance of {pair.name}"
                if any(pair.paper) else "Between such returns neither dominates",
                verdict(pair.x, pair.y).replace("\n", "; "),
                "reproduced" if right and not any(orders(pair.y, pair.x)) else "not reproduced",
                "The library's verdict on the particles drawn must be the paper's, in one "
                "direction only",
            )
        )  # fmt: skip
    return claims


# --- the figures -------------------------------------------------------------------------


def figures(_: object = None) -> dict[str, Figure]:
    return {"dispersion-space": draw_dispersion(BIMODAL), "dominance": draw_comparisons()}


def draw_dispersion(z: np.ndarray) -> Figure:
    figure, ax = new_figure(size=(7.2, 4.6), title="Dispersion space of a return")
    alpha = np.sort(np.concatenate([np.linspace(z.min() - 2, z.max() + 2, 200), z]))
    dispersion(ax, z, alpha, r"$F^{(2)}_X(\alpha)$", LOOKS["X"], marker=None,
               label=r"$F^{(2)}_X(\alpha)$")  # fmt: skip
    ax.lines[0].set(
        color=BLACK, linewidth=1.8, label=r"asymptotes $0$ and $\alpha - \mathbf{E}[X]$"
    )
    # F^(2) bends at the particles: its slope there is the CDF.
    curve(ax, z, cumulative_cdf(z, z), "particles", Style(LOOKS["X"].color, "|", "none"),
          markersize=9, markevery=1, markeredgecolor=None)  # fmt: skip
    centre = float(mean(z))
    ax.annotate(
        f"area = {area(z):.3f}\nvariance / 2 = {float(variance(z)) / 2:.3f}",
        (centre, float(cumulative_cdf(z, centre)) * 0.5), (z.min() - 1.5, 2.6),
        arrowprops={"arrowstyle": "->", "color": "#333333"}, ha="left",
    )  # fmt: skip
    ax.plot(centre, 0, marker="o", color=BLACK, markersize=5, clip_on=False, zorder=5)
    ax.annotate(rf"$\mathbf{{E}}[X] = {centre:.2f}$", (centre, 0), (24, 7),
                textcoords="offset points")  # fmt: skip
    label(ax, x=r"return $\alpha$", y=r"cumulative CDF $F^{(2)}_X$")
    ax.set_ylim(bottom=-0.12)
    legend(ax, loc="upper left")
    return figure


def draw_comparisons() -> Figure:
    """Above: distributions, shaded where they speak for one; below: what is compared."""
    figure, axes = new_figure(2, 3, size=(12.5, 7.2), title="Does X dominate Y?")
    for column, pair in enumerate(PAIRS):
        _cdf_panel(axes[0, column], pair)
        _quantile_panel(axes[1, column], pair)
        axes[0, column].set_title(f"({'abc'[column]}) " + verdict(pair.x, pair.y))
    label(axes[0, 0], y="CDF $F$")
    label(axes[1, 0], y=r"cumulative quantile $F^{-2}$")
    for ax in axes[:, 0]:
        legend(ax, loc="upper left")
    return figure


def _cdf_panel(ax: Any, pair: DrawnPair) -> None:
    every = np.sort(np.concatenate([pair.x, pair.y]))
    at = np.concatenate([[every[0] - 1], every, [every[-1] + 1]])
    cdf = {
        name: np.searchsorted(np.sort(z), at, side="right") / len(z)
        for name, z in (("X", pair.x), ("Y", pair.y))
    }
    higher = np.maximum(cdf["X"], cdf["Y"])
    for name, z in (("X", pair.x), ("Y", pair.y)):
        text = f"$F_{name}$, mean {float(mean(z)):.2f}"
        ax.step(at, cdf[name], where="post", color=LOOKS[name].color,
                linestyle=LOOKS[name].linestyle, label=text)  # fmt: skip
        ax.fill_between(at, cdf[name], higher, step="post", color=LOOKS[name].color, alpha=0.2,
                        linewidth=0, label=f"speaks for {name}")  # fmt: skip
    label(ax, x="return")
    ax.set_ylim(-0.02, 1.05)


def _quantile_panel(ax: Any, pair: DrawnPair) -> None:
    tau = np.linspace(0, 1, len(pair.x) + 1)  # both curves are linear in between
    for z, name in ((pair.x, "X"), (pair.y, "Y")):
        text = rf"$F^{{-2}}_{name}$"
        curve(ax, tau, cumulative_quantile(z, tau), name, LOOKS[name], markevery=1, label=text)
    label(ax, x=r"quantile level $\tau$")


def orders(x: np.ndarray, y: np.ndarray) -> tuple[bool, bool]:
    """Whether x dominates y at first and at second order, as the library has it."""
    return bool(fsd_dominates(x, y)), bool(ssd_dominates(x, y))


def verdict(x: np.ndarray, y: np.ndarray) -> str:
    """The library's verdict in words, for the plot."""
    words = {(True, False): "X dominates Y", (False, True): "Y dominates X", (True, True): "equal"}
    both = zip(orders(x, y), orders(y, x), strict=True)
    first, second = (words.get(way, "neither dominates") for way in both)
    return f"first order: {first}\nsecond order: {second}"


EXPERIMENT = Experiment("figures", FiguresConfig, measure, read, summary, claims_of, figures)
run = EXPERIMENT.run
