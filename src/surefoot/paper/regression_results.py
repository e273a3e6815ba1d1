"""What the regression experiment measured: accuracy, paired tests, claims and figures.

Every method is compared with quantile regression on the same trials, per size and moment, twice:
by the absolute error, which is what the paper plots, and by the estimate itself, which shows a
shift that absolute errors hide. Holm's correction runs over all sizes and moments of a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.core import stats
from surefoot.core.stats import Interval
from surefoot.paper.claims import Claim, Finding
from surefoot.paper.experiment import Columns, Tables
from surefoot.paper.fitting import TOLERANCE, rmse
from surefoot.plots import intervals, label, legend, new_figure, styles, violins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from surefoot.paper.regression import Reading, RegressionCell, RegressionConfig

ALPHA = 0.05
SIDES = ("error", "estimate")
ORDINALS = {1: "first", 2: "second"}
PAPER = "No statistical difference between QR and WGF regression"
ACCURATE = "WGF regression produces two accurate moment estimates"
Row = dict[str, Any]


@dataclass(frozen=True)
class RegressionResults:
    """The fits of each reading, number of particles and method, by trial."""

    config: RegressionConfig
    fits: Mapping[tuple[str, int], Mapping[str, Columns]]
    """`fits[reading, particles][method][column]`, in the order of trials."""

    @classmethod
    def read(cls, config: RegressionConfig, tables: Tables) -> RegressionResults:
        fits = {}
        for cell in config.cells():
            table = tables[cell.name]
            fits[cell.reading.name, cell.particles] = {
                method: {name: column[table["method"] == method] for name, column in table.items()}
                for method in dict.fromkeys(table["method"])
            }
        return cls(config, fits)

    @property
    def methods(self) -> list[str]:
        return list(next(iter(self.fits.values())))

    @cached_property
    def accuracy(self) -> list[Row]:
        """RMSE of each method with its interval, beside the sampling error and how it ended."""
        return [
            _accuracy(cell, method, self.fits[cell.reading.name, cell.particles][method], k)
            for cell in self.config.cells()
            for method in self.methods
            for k in (1, 2)
        ]

    @cached_property
    def comparisons(self) -> list[Row]:
        """Each method against QR in each size and moment, by error and by estimate."""
        rows: list[Row] = []
        for reading in self.config.readings():
            for method in self.methods[1:]:
                for side in SIDES:
                    rows += self._family(reading, method, side)
        return rows

    def _family(self, reading: Reading, method: str, side: str) -> list[Row]:
        family = []
        for cell in (c for c in self.config.cells() if c.reading == reading):
            fits = self.fits[reading.name, cell.particles]
            family += [
                compare(cell, method, fits[method], fits["QR"], k, side, self.config.margin)
                for k in (1, 2)
            ]
        for name in ("p", "welch_p"):
            for row, value in zip(family, stats.holm([r[name] for r in family]), strict=True):
                row[f"holm_{name}"] = float(value)
        for row in family:
            row["outcome"] = outcome(row["holm_p"] < ALPHA, row["equivalent"])
        return family

    def summary(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "comparisons": self.comparisons}


def _accuracy(cell: RegressionCell, method: str, fit: Columns, k: int) -> Row:
    ended = fit["converged"]
    error = (fit[f"estimate_{k}"] - fit[f"truth_{k}"])[ended]
    shift = (fit[f"estimate_{k}"] - fit[f"sample_{k}"])[ended]
    return {
        "reading": cell.reading.name,
        "method": method,
        "particles": cell.particles,
        "moment": k,
        "rmse": rmse(error) if len(error) > 1 else None,
        "shift_from_sample": stats.mean_interval(shift) if len(shift) > 1 else None,
        "sampling_error": cell.reading.mixture.standard_error(k, cell.particles),
        "converged": len(error),
        "trials": len(ended),
        "most_distance_left": fit["distance_left"].max(),
        "most_steps": fit["steps"].max(),
        "unsolved_steps": fit["unsolved"].sum(),
    }


def compare(
    cell: RegressionCell, method: str, x: Columns, y: Columns, k: int, side: str, margin: float
) -> Row:
    """Paired difference to QR, `y`, over the trials in which both converged, and equivalence."""
    both = x["converged"] & y["converged"]
    x_values, y_values = (_side(each, k, side)[both] for each in (x, y))
    margin *= cell.reading.mixture.standard_error(k, cell.particles)
    # Both fits end within a tolerance of their solution: a difference this size is not between
    # the methods. It is taken off before the test of a difference, not from the interval.
    step = TOLERANCE * y["range"][both]
    size = np.sqrt(y["sample_2"][both])  # bounds E|z|
    resolution = float(np.mean(2 * step if k == 1 else 4 * size * step))
    excess = np.clip(np.mean(x_values - y_values), -resolution, resolution)
    difference = stats.paired_difference(x_values, y_values)
    tested = stats.paired_difference(x_values - excess, y_values)
    same = stats.equivalence(x_values, y_values, margin, paired=True, alpha=ALPHA)
    return {
        "reading": cell.reading.name,
        "method": method,
        "particles": cell.particles,
        "moment": k,
        "side": side,
        "trials": int(both.sum()),
        "difference": float(difference.interval.mean),
        "low": float(difference.interval.low),
        "high": float(difference.interval.high),
        "resolution": resolution,
        "margin": margin,
        "p": tested.p_value,
        "wilcoxon_p": float(tested.wilcoxon_p_value or 0.0),
        "welch_p": stats.welch(x_values, y_values).p_value,
        "equivalence_p": same.p_value,
        "equivalent": same.equivalent,
    }


def outcome(significant: bool, equivalent: bool) -> str:
    if significant:
        return "differs within the margin" if equivalent else "differs"
    return "same" if equivalent else "undecided"


def _side(fit: Columns, k: int, side: str) -> np.ndarray:
    estimate = fit[f"estimate_{k}"]
    return np.abs(estimate - fit[f"truth_{k}"]) if side == "error" else estimate


def _interval(row: Row, factor: float = 1.0) -> Interval:
    mean, low, high = (factor * row[name] for name in ("difference", "low", "high"))
    return Interval(mean, low, high, row["trials"])


# --- the claims --------------------------------------------------------------------------


def verdicts(results: RegressionResults) -> list[Claim]:
    first, *others = results.config.readings()
    claims = [accuracy_claim(results.accuracy, first)]
    claims += [difference_claim(results.comparisons, first, m) for m in results.methods[1:]]
    claims += [difference_claim(results.comparisons, r, "WGF sinkhorn") for r in others]
    return claims


def accuracy_claim(accuracy: list[Row], reading: Reading) -> Claim:
    """Judged by the largest size: is the RMSE the sampling error, which nothing can beat?"""
    rows = [r for r in accuracy if (r["reading"], r["method"]) == (reading.name, "WGF sinkhorn")]
    most = max(row["particles"] for row in rows)
    rows = [r for r in rows if r["particles"] == most]
    stopped = sum(row["trials"] - row["converged"] for row in rows)
    if any(row["rmse"] is None for row in rows):
        reason = "the flow reached its equilibrium in fewer than two trials"
        return Claim("regression/accurate", "5.1", ACCURATE, reason, "not testable", reason)
    fine = all(row["rmse"].low <= row["sampling_error"] for row in rows)
    verdict: Finding = "partly" if fine and stopped else "reproduced" if fine else "not reproduced"
    where = "is not shown to lie above" if fine else "lies above"
    reason = f"The RMSE {where} the standard error of a plain sample of that size"
    if stopped:
        reason += f"; {stopped} trials that did not converge are left out"
    errors = " and ".join(f"{row['sampling_error']:.3g}" for row in rows)
    return Claim(
        "regression/accurate", "5.1", ACCURATE,
        f"RMSE of WGF (sinkhorn), {most} particles; the sampling errors are {errors}",
        verdict, reason,
        {f"{ORDINALS[row['moment']]} moment": row["rmse"] for row in rows},
    )  # fmt: skip


def difference_claim(comparisons: list[Row], reading: Reading, method: str) -> Claim:
    rows = [r for r in comparisons if (r["reading"], r["method"]) == (reading.name, method)]
    by_side = {side: [r["outcome"] for r in rows if r["side"] == side] for side in SIDES}
    counted = "; ".join(f"{side}s: {_tally(each)}" for side, each in by_side.items())
    unpaired = min(row["holm_welch_p"] for row in rows)
    verdict, reason = judge([row["outcome"] for row in rows])
    least = min(row["trials"] for row in rows)
    paper = PAPER if reading.scale == 1 else f"{PAPER} (the paper only tried the full width)"
    most = max(row["particles"] for row in rows)
    name = method.replace("WGF ", "").replace(" ", "-")
    return Claim(
        f"regression/{reading.name}/{name}", "5.1", paper,
        f"{method}, {reading.title}, {least} paired trials. {counted}. Unpaired, the smallest "
        f"corrected p-value is {unpaired:.2g}",
        verdict, reason,
        {
            f"{ORDINALS[r['moment']]} moment, N = {most}, {method} - QR": _interval(r)
            for r in rows
            if r["particles"] == most and r["side"] == "estimate"
        },
    )  # fmt: skip


def judge(outcomes: Sequence[str]) -> tuple[Finding, str]:
    """The verdict on "no statistical difference" from all comparisons of one method."""
    if "differs" in outcomes:
        clear = sum(each == "differs" for each in outcomes)
        reason = f"{clear} of {len(outcomes)} paired comparisons differ, and not within the margin"
        return "not reproduced", reason
    if "differs within the margin" in outcomes:
        return "partly", "Paired tests see a difference, and it lies within the equivalence margin"
    if "undecided" in outcomes:
        return "partly", "No difference was found, but equivalence was not shown everywhere either"
    return "reproduced", "No paired test differs and all comparisons lie within the margin"


def _tally(outcomes: list[str]) -> str:
    return ", ".join(f"{outcomes.count(o)} {o}" for o in dict.fromkeys(outcomes))


# --- the figures -------------------------------------------------------------------------


def figures(results: RegressionResults) -> dict[str, Figure]:
    readings = results.config.readings()
    drawn = {f"errors-{reading.name}": draw_errors(results, reading) for reading in readings}
    return drawn | {f"differences-{r.name}": draw_differences(results, r) for r in readings}


def draw_errors(results: RegressionResults, reading: Reading) -> Figure:
    config, title = results.config, f"Error of the moments, {reading.title}"
    figure, axes = new_figure(2, 1, size=(10, 7.6), title=title)
    for k, ax in zip((1, 2), axes[:, 0], strict=True):
        fits = [results.fits[reading.name, n] for n in config.particles]
        data = {
            m: [_side(fit[m], k, "error")[fit[m]["converged"]] for fit in fits]
            for m in results.methods
        }
        violins(ax, data, [f"{n} particles" for n in config.particles])
        ax.set_ylim(bottom=0)
        label(ax, f"{ORDINALS[k].capitalize()} moment, {config.trials} trials each",
              y=f"absolute error, {ORDINALS[k]} moment")  # fmt: skip
    legend(axes[0, 0], ncols=3, loc="upper right")
    return figure


def draw_differences(results: RegressionResults, reading: Reading) -> Figure:
    title = f"RMSE and paired differences, {reading.title}"
    figure, axes = new_figure(2, 2, size=(11, 7.4), title=title)
    config, looks = results.config, styles(results.methods)
    sizes = [f"{n} particles" for n in config.particles]
    for k in (1, 2):
        above, below = axes[:, k - 1]
        rows = [r for r in results.accuracy if (r["reading"], r["moment"]) == (reading.name, k)]
        rmses = {m: [r["rmse"] for r in rows if r["method"] == m] for m in results.methods}
        intervals(above, rmses, sizes, looks=looks)
        for i, n in enumerate(config.particles):
            above.hlines(reading.mixture.standard_error(k, n), i - 0.45, i + 0.45, color="black",
                         linestyle="--", linewidth=1.2,
                         label=None if i else "sampling error")  # fmt: skip
        above.set_ylim(bottom=0)
        label(above, f"{ORDINALS[k].capitalize()} moment", y="RMSE, 95 % interval")
        rows = [r for r in results.comparisons if (r["reading"], r["moment"]) == (reading.name, k)]
        apart = {
            m: [_interval(r, 100 * config.margin / r["margin"]) for r in rows
                if (r["method"], r["side"]) == (m, "estimate")]
            for m in results.methods[1:]
        }  # fmt: skip
        below.axhspan(-100 * config.margin, 100 * config.margin, color="#DDDDDD", alpha=0.6, lw=0)
        below.axhline(0, color="black", linewidth=0.8)
        intervals(below, apart, sizes, looks=looks)
        label(below, "Paired differences (grey: equivalence margin)",
              y="mean estimate minus QR's,\n% of the sampling error")  # fmt: skip
    legend(axes[0, 0], loc="upper right")
    return figure
