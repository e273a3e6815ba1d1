"""The paper's explanatory figures: dispersion space, and when one return dominates another.

Everything drawn is computed from particles by the library's own functions, and so is every
verdict written on a plot. Beside the drawings, two statements behind them are checked on random
particles: the space's area is half the variance, and dominance by `F^-2` (eq. 5, what the library
compares) is dominance by `F^(2)` (eq. 1, its definition).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefoot import plots as plotting
from surefoot.core import stats
from surefoot.core.dominance import fsd_dominates, ssd_dominates
from surefoot.core.particles import (
    cumulative_cdf,
    cumulative_quantile,
    dispersion_space,
    mean,
    variance,
)
from surefoot.core.stats import Interval
from surefoot.errors import InputError
from surefoot.paper.claims import Claim, read_claims, write_claims
from surefoot.plots import PALETTE
from surefoot.runs.directory import Existing, RunDir
from surefoot.runs.progress import progress

X_COLOR, Y_COLOR = PALETTE[0], PALETTE[1]
BIMODAL = np.array([-4.0, -3.0, -2.5, -2.0, 1.0, 2.0, 2.5, 3.0, 3.5, 4.5])


class Pair(NamedTuple):
    """Two returns of a panel, and what the paper says of such a pair."""

    name: str
    x: np.ndarray
    y: np.ndarray
    paper: tuple[bool, bool]  # x over y at first, at second order


PAIRS = (
    # Every particle of x lies above its partner.
    Pair("first and second order", np.array([1.5, 2.5, 3.5, 4.5, 6.0, 7.0]),
         np.array([0.0, 1.5, 2.0, 3.5, 5.0, 6.0]), (True, True)),
    # The CDFs cross; what x gains left of the crossing outweighs what it gives up right of it.
    Pair("second order only", np.array([2.0, 2.5, 3.0, 3.5, 4.0, 4.5]),
         np.array([0.0, 1.0, 2.5, 3.8, 4.7, 5.5]), (False, True)),
    # x is better on average and worse in its lower tail: tastes differ.
    Pair("neither", np.array([0.0, 1.5, 4.0, 5.5, 6.5, 7.5]),
         np.array([2.0, 2.5, 3.0, 3.5, 4.0, 4.5]), (False, False)),
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """The paper's explanatory figures, and checks of what they say."""

    trials: int = 1000
    """Random pairs of particle sets on which the statements behind the figures are checked."""
    seed: int = 0
    """Decides the random particles; the figures are always the same."""
    particles: int = 8
    """Particles of each random set."""

    def __post_init__(self) -> None:
        if self.trials < 2 or self.particles < 2:
            raise InputError("trials and particles must be at least 2")


def run(config: Config, out: Path, existing: Existing = "error") -> list[Claim]:
    """Draw the figures into the directory `out`, check what they say and give the claims."""
    store = RunDir.create(
        out, config, kind="figures", seeds={"seed": config.seed}, existing=existing
    )
    if store.complete:
        return list(read_claims(store))
    with progress(3, "figures", "parts") as task:
        table = check(config)
        store.write_table(table)
        task.advance()
        plotting.save_figure(draw_dispersion(BIMODAL), store, "dispersion-space")
        task.advance()
        plotting.save_figure(draw_comparisons(), store, "dominance")
        task.advance()
    claims = make_claims(table)
    store.write_summary({"agreement": _share(table["agree"]), "dominating": table["eq_5"].mean()})
    write_claims(store, claims)
    store.mark_complete()
    return claims


# --- the checks --------------------------------------------------------------------------


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


def check(config: Config) -> dict[str, np.ndarray]:
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


def make_claims(table: dict[str, np.ndarray]) -> list[Claim]:
    ratio = stats.mean_interval(table["area_over_variance"])
    half = bool(np.allclose(table["area_over_variance"], 0.5, rtol=1e-9))
    share = _share(table["agree"])
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
        found = orders(pair.x, pair.y)
        right = found == pair.paper
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


def _share(agree: np.ndarray) -> Interval:
    """A share of trials with the exact (Clopper-Pearson) interval: all of them is not certainty."""
    from scipy.stats import binomtest

    test = binomtest(int(agree.sum()), len(agree))
    between = test.proportion_ci(0.95)
    return Interval(float(agree.mean()), float(between.low), float(between.high), len(agree))


# --- the figures -------------------------------------------------------------------------


def draw_dispersion(z: np.ndarray) -> Any:
    figure, ax = plotting.new_figure(size=(7.2, 4.6), title="Dispersion space of a return")
    alpha = np.sort(np.concatenate([np.linspace(z.min() - 2, z.max() + 2, 400), z]))
    space = dispersion_space(z, alpha)
    floor = np.maximum(space.left_asymptote, space.right_asymptote)
    ax.fill_between(alpha, floor, space.frontier, color=X_COLOR, alpha=0.2, linewidth=0)
    ax.plot(alpha, space.frontier, color=X_COLOR, label=r"$F^{(2)}_X(\alpha)$")
    dotted = {"color": "black", "linestyle": ":", "linewidth": 1.8}
    ax.plot(alpha, space.left_asymptote, **dotted)
    right = space.right_asymptote >= 0
    line = r"asymptotes $0$ and $\alpha - \mathbf{E}[X]$"
    ax.plot(alpha[right], space.right_asymptote[right], **dotted, label=line)
    # F^(2) bends at the particles: its slope there is the CDF.
    ax.plot(z, cumulative_cdf(z, z), color=X_COLOR, marker="|", markersize=9, linestyle="none",
            label="particles")  # fmt: skip
    centre = float(mean(z))
    ax.annotate(
        f"area = {area(z):.3f}\nvariance / 2 = {float(variance(z)) / 2:.3f}",
        (centre, float(cumulative_cdf(z, centre)) * 0.5), (z.min() - 1.5, 2.6),
        arrowprops={"arrowstyle": "->", "color": "#333333"}, ha="left",
    )  # fmt: skip
    ax.plot(centre, 0, marker="o", color="black", markersize=5, clip_on=False, zorder=5)
    ax.annotate(rf"$\mathbf{{E}}[X] = {centre:.2f}$", (centre, 0), (24, 7),
                textcoords="offset points")  # fmt: skip
    ax.set_xlabel(r"return $\alpha$")
    ax.set_ylabel(r"cumulative CDF $F^{(2)}_X$")
    ax.set_ylim(bottom=-0.12)
    plotting.legend(ax, loc="upper left")
    return figure


def draw_comparisons() -> Any:
    """Figure 2: the CDFs above; below them the curves that the library compares."""
    figure, axes = plotting.new_figure(2, 3, size=(12.5, 7.2), title="Does X dominate Y?")
    for column, pair in enumerate(PAIRS):
        _cdf_panel(axes[0, column], pair)
        _quantile_panel(axes[1, column], pair)
        axes[0, column].set_title(f"({'abc'[column]}) " + verdict(pair.x, pair.y))
    axes[0, 0].set_ylabel("CDF $F$")
    axes[1, 0].set_ylabel(r"cumulative quantile $F^{-2}$")
    plotting.legend(axes[0, 0], loc="upper left")
    plotting.legend(axes[1, 0], loc="upper left")
    return figure


def _cdf_panel(ax: Any, pair: Pair) -> None:
    low, high = min(pair.x.min(), pair.y.min()) - 1, max(pair.x.max(), pair.y.max()) + 1
    for z, name, color, line in ((pair.x, "X", X_COLOR, "-"), (pair.y, "Y", Y_COLOR, "--")):
        at = np.concatenate([[low], np.sort(z), [high]])
        height = np.append(np.arange(len(z) + 1), len(z)) / len(z)
        ax.step(at, height, where="post", color=color, linestyle=line,
                label=f"$F_{name}$, mean {float(mean(z)):.2f}")  # fmt: skip
    support = np.concatenate([[low], np.sort(np.concatenate([pair.x, pair.y])), [high]])
    cdf_x, cdf_y = (
        np.searchsorted(np.sort(z), support, side="right") / len(z) for z in (pair.x, pair.y)
    )
    higher = np.maximum(cdf_x, cdf_y)
    for cdf, name, color in ((cdf_x, "X", X_COLOR), (cdf_y, "Y", Y_COLOR)):
        ax.fill_between(support, cdf, higher, step="post", color=color, alpha=0.2, linewidth=0,
                        label=f"speaks for {name}")  # fmt: skip
    ax.set_xlabel("return")
    ax.set_ylim(-0.02, 1.05)


def _quantile_panel(ax: Any, pair: Pair) -> None:
    tau = np.linspace(0, 1, len(pair.x) + 1)  # both curves are linear in between
    for z, name, color, line in ((pair.x, "X", X_COLOR, "-"), (pair.y, "Y", Y_COLOR, "--")):
        ax.plot(tau, cumulative_quantile(z, tau), color=color, linestyle=line, marker="o",
                markersize=4, label=rf"$F^{{-2}}_{name}$")  # fmt: skip
    ax.set_xlabel(r"quantile level $\tau$")


def orders(x: np.ndarray, y: np.ndarray) -> tuple[bool, bool]:
    """Whether x dominates y at first and at second order, as the library has it."""
    return bool(fsd_dominates(x, y)), bool(ssd_dominates(x, y))


def verdict(x: np.ndarray, y: np.ndarray) -> str:
    """The library's verdict in words, for the plot."""
    told = {(True, False): "X dominates Y", (False, True): "Y dominates X", (True, True): "equal"}
    both = zip(orders(x, y), orders(y, x), strict=True)
    first, second = (told.get(way, "neither dominates") for way in both)
    return f"first order: {first}\nsecond order: {second}"
