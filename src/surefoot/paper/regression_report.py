"""What the regression experiment found: tests, claims and figures from its table.

Every method is compared with quantile regression on the same trials, per size and moment, twice:
by the absolute error, which is what the paper plots, and by the estimate itself, which shows a
shift that absolute errors hide. Holm's correction runs over all sizes and moments of a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot import plots as plotting
from surefoot.core import stats
from surefoot.core.stats import Interval
from surefoot.paper.claims import Claim, Verdict, write_claims
from surefoot.paper.fitting import TOLERANCE, rmse
from surefoot.paper.mixture import paper_mixture
from surefoot.runs.directory import RunDir

if TYPE_CHECKING:
    import polars

    from surefoot.paper.regression import Config, Reading

ALPHA = 0.05
SIDES = ("error", "estimate")
ORDINALS = {1: "first", 2: "second"}
PAPER = "No statistical difference between QR and WGF regression"


def write(store: RunDir, config: Config, readings: Sequence[Reading]) -> list[Claim]:
    """Analyse the stored table; write comparisons, summary, claims and figures."""
    import polars as pl

    table = store.read_table()
    found = [row for reading in readings for row in compare_all(table, config, reading)]
    store.write_table(pl.DataFrame(found), "comparisons")
    accuracy = [row for reading in readings for row in accuracy_of(table, config, reading)]
    claims = make_claims(found, accuracy, readings)
    store.write_summary({"accuracy": accuracy, "comparisons": found})
    for reading in readings:
        plotting.save_figure(violin_figure(table, config, reading), store, f"errors-{reading.name}")
        figure = difference_figure(found, accuracy, config, reading)
        plotting.save_figure(figure, store, f"differences-{reading.name}")
    write_claims(store, claims)
    return claims


# --- the numbers -------------------------------------------------------------------------


def accuracy_of(table: Any, config: Config, reading: Reading) -> list[dict[str, Any]]:
    """RMSE of each method with its interval, beside the sampling error and how the fit ended."""
    mixture = paper_mixture(reading.components, reading.scale)
    rows = []
    for method in _methods(table):
        for n in config.particles:
            part = _part(table, reading, n, method)
            ended = part.filter(part["converged"])
            for k in (1, 2):
                error = (ended[f"estimate_{k}"] - ended[f"truth_{k}"]).to_numpy()
                shift = (ended[f"estimate_{k}"] - ended[f"sample_{k}"]).to_numpy()
                rows.append(
                    {
                        "reading": reading.name,
                        "method": method,
                        "particles": n,
                        "moment": k,
                        "rmse": rmse(error) if len(error) > 1 else None,
                        "shift_from_sample": stats.mean_interval(shift) if len(shift) > 1 else None,
                        "sampling_error": mixture.standard_error(k, n),
                        "converged": len(ended),
                        "trials": len(part),
                        "most_distance_left": part["distance_left"].max(),
                        "most_steps": part["steps"].max(),
                        "unsolved_steps": part["unsolved"].sum(),
                    }
                )
    return rows


def compare_all(table: Any, config: Config, reading: Reading) -> list[dict[str, Any]]:
    """Each method against QR in each size and moment, by error and by estimate."""
    rows = []
    for method in _methods(table)[1:]:
        for side in SIDES:
            family = [
                compare(table, config, reading, n, k, method, side)
                for n in config.particles
                for k in (1, 2)
            ]
            for name in ("p", "welch_p"):
                adjusted = stats.holm([row[name] for row in family])
                for row, value in zip(family, adjusted, strict=True):
                    row[f"holm_{name}"] = float(value)
            for row in family:
                row["outcome"] = outcome(row["holm_p"] < ALPHA, row["equivalent"])
            rows += family
    return rows


def compare(
    table: Any, config: Config, reading: Reading, n: int, k: int, method: str, side: str
) -> dict[str, Any]:
    """Paired difference to QR over the trials in which both converged, and equivalence."""
    x, y = _part(table, reading, n, method), _part(table, reading, n, "QR")
    both = (x["converged"] & y["converged"]).to_numpy()
    x_values, y_values = _side(x, k, side)[both], _side(y, k, side)[both]
    margin = config.margin * paper_mixture(reading.components, reading.scale).standard_error(k, n)
    # Both fits end within a tolerance of their solution: a difference this size is not between
    # the methods. It is taken off before the test of a difference, not from the interval.
    step = TOLERANCE * y["range"].to_numpy()[both]
    size = np.sqrt(y["sample_2"].to_numpy()[both])  # bounds E|z|
    resolution = float(np.mean(2 * step if k == 1 else 4 * size * step))
    excess = np.clip(np.mean(x_values - y_values), -resolution, resolution)
    difference = stats.paired_difference(x_values, y_values)
    tested = stats.paired_difference(x_values - excess, y_values)
    same = stats.equivalence(x_values, y_values, margin, paired=True, alpha=ALPHA)
    return {
        "reading": reading.name,
        "method": method,
        "particles": n,
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


def _side(part: Any, k: int, side: str) -> np.ndarray:
    estimate, truth = part[f"estimate_{k}"].to_numpy(), part[f"truth_{k}"].to_numpy()
    return np.abs(estimate - truth) if side == "error" else estimate


def _part(table: Any, reading: Reading, n: int, method: str) -> polars.DataFrame:
    chosen = (table["reading"] == reading.name) & (table["particles"] == n)
    return table.filter(chosen & (table["method"] == method)).sort("trial")


def _methods(table: Any) -> list[str]:
    return table["method"].unique(maintain_order=True).to_list()


# --- the claims --------------------------------------------------------------------------


def make_claims(found: list[dict], accuracy: list[dict], readings: Sequence[Reading]) -> list:
    first = readings[0]
    methods = list(dict.fromkeys(row["method"] for row in found))
    claims = [accuracy_claim(accuracy, first)]
    claims += [difference_claim(found, first, method) for method in methods]
    claims += [difference_claim(found, reading, "WGF sinkhorn") for reading in readings[1:]]
    return claims


def accuracy_claim(accuracy: list[dict], reading: Reading) -> Claim:
    """Judged by the largest size: is the RMSE the sampling error, which nothing can beat?"""
    rows = [row for row in accuracy if row["reading"] == reading.name]
    most = max(row["particles"] for row in rows)
    rows = [r for r in rows if r["particles"] == most and r["method"] == "WGF sinkhorn"]
    stopped = sum(row["trials"] - row["converged"] for row in rows)
    if any(row["rmse"] is None for row in rows):
        reason = "the flow reached its equilibrium in fewer than two trials"
        return Claim("regression/accurate", "5.1", _ACCURATE, reason, "not testable", reason)
    fine = all(row["rmse"].low <= row["sampling_error"] for row in rows)
    verdict: Verdict = "partly" if fine and stopped else "reproduced" if fine else "not reproduced"
    where = "is not shown to lie above" if fine else "lies above"
    reason = f"The RMSE {where} the standard error of a plain sample of that size"
    if stopped:
        reason += f"; {stopped} trials that did not converge are left out"
    errors = " and ".join(f"{row['sampling_error']:.3g}" for row in rows)
    return Claim(
        "regression/accurate", "5.1", _ACCURATE,
        f"RMSE of WGF (sinkhorn), {most} particles; the sampling errors are {errors}",
        verdict, reason,
        {f"{ORDINALS[row['moment']]} moment": row["rmse"] for row in rows},
    )  # fmt: skip


_ACCURATE = "WGF regression produces two accurate moment estimates"


def difference_claim(found: list[dict], reading: Reading, method: str) -> Claim:
    rows = [r for r in found if r["reading"] == reading.name and r["method"] == method]
    by_side = {side: [r["outcome"] for r in rows if r["side"] == side] for side in SIDES}
    told = "; ".join(f"{side}s: {_tally(each)}" for side, each in by_side.items())
    unpaired = min(row["holm_welch_p"] for row in rows)
    verdict, reason = judge([row["outcome"] for row in rows])
    least = min(row["trials"] for row in rows)
    paper = PAPER if reading.scale == 1 else f"{PAPER} (the paper only tried the full width)"
    most = max(row["particles"] for row in rows)
    shown = {
        f"{ORDINALS[r['moment']]} moment, N = {most}, {method} - QR": Interval(
            r["difference"], r["low"], r["high"], r["trials"]
        )
        for r in rows
        if r["particles"] == most and r["side"] == "estimate"
    }
    name = method.replace("WGF ", "").replace(" ", "-")
    return Claim(
        f"regression/{reading.name}/{name}", "5.1", paper,
        f"{method}, {_title(reading)}, {least} paired trials. {told}. Unpaired, the smallest "
        f"corrected p-value is {unpaired:.2g}",
        verdict, reason, shown,
    )  # fmt: skip


def judge(outcomes: Sequence[str]) -> tuple[Verdict, str]:
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


def violin_figure(table: Any, config: Config, reading: Reading) -> Any:
    figure, axes = plotting.new_figure(
        2, 1, size=(10, 7.6), title=f"Error of the moments, {_title(reading)}"
    )
    names = _methods(table)
    for k, ax in zip((1, 2), axes[:, 0], strict=True):
        parts = {m: [_part(table, reading, n, m) for n in config.particles] for m in names}
        data = {
            m: [_side(p.filter(p["converged"]), k, "error") for p in each]
            for m, each in parts.items()
        }
        plotting.violins(ax, data, [f"{n} particles" for n in config.particles])
        ax.set_ylim(bottom=0)
        ax.set_ylabel(f"absolute error, {ORDINALS[k]} moment")
        ax.set_title(f"{ORDINALS[k].capitalize()} moment, {config.trials} trials each")
    plotting.legend(axes[0, 0], ncols=3, loc="upper right")
    return figure


def difference_figure(found: list, accuracy: list, config: Config, reading: Reading) -> Any:
    figure, axes = plotting.new_figure(
        2, 2, size=(11, 7.4), title=f"RMSE and paired differences, {_title(reading)}"
    )
    for k in (1, 2):
        rows = [r for r in accuracy if r["reading"] == reading.name and r["moment"] == k]
        _rmse_panel(axes[0, k - 1], rows, config, k)
        rows = [r for r in found if r["reading"] == reading.name and r["moment"] == k]
        _difference_panel(axes[1, k - 1], [r for r in rows if r["side"] == "estimate"], config)
    plotting.legend(axes[0, 0], loc="upper right")
    return figure


def _rmse_panel(ax: Any, rows: list[dict], config: Config, k: int) -> None:
    rows = [row for row in rows if row["rmse"] is not None]
    points = [(r["method"], r["particles"], r["rmse"], 1.0) for r in rows]
    _dodged(ax, points, config)
    levels = {row["particles"]: row["sampling_error"] for row in rows}
    for i, n in enumerate(config.particles):
        if n in levels:
            label = "sampling error" if i == 0 else None
            ax.hlines(levels[n], i - 0.45, i + 0.45, color="black", linestyle="--", linewidth=1.2,
                      label=label)  # fmt: skip
    ax.set_ylim(bottom=0)
    ax.set_ylabel("RMSE, 95 % interval")
    ax.set_title(f"{ORDINALS[k].capitalize()} moment")


def _difference_panel(ax: Any, rows: list[dict], config: Config) -> None:
    points = []
    for r in rows:
        between = Interval(r["difference"], r["low"], r["high"], r["trials"])
        points.append((r["method"], r["particles"], between, 100 * config.margin / r["margin"]))
    ax.axhspan(-100 * config.margin, 100 * config.margin, color="#DDDDDD", alpha=0.6, linewidth=0)
    ax.axhline(0, color="black", linewidth=0.8)
    _dodged(ax, points, config)
    ax.set_ylabel("mean estimate minus QR's,\n% of the sampling error")
    ax.set_title("Paired differences (grey: equivalence margin)")


def _dodged(ax: Any, points: list[tuple[str, int, Interval, float]], config: Config) -> None:
    """Intervals side by side within each size, in the style of each method."""
    names = list(dict.fromkeys(name for name, *_ in points))
    looks = plotting.styles(["QR", *names])
    for name in names:
        own = [(n, value, factor) for each, n, value, factor in points if each == name]
        shift = (names.index(name) - (len(names) - 1) / 2) * 0.8 / len(names)
        at = [config.particles.index(n) + shift for n, _, _ in own]
        mean, low, high = (
            np.array([getattr(value, part) * factor for _, value, factor in own])
            for part in ("mean", "low", "high")
        )
        ax.errorbar(at, mean, [mean - low, high - mean], label=name, linestyle="none", capsize=3,
                    color=looks[name].color, marker=looks[name].marker)  # fmt: skip
    ax.set_xticks(range(len(config.particles)), [f"{n} particles" for n in config.particles])
    ax.set_xlim(-0.5, len(config.particles) - 0.5)
    ax.grid(visible=False, axis="x")


def _title(reading: Reading) -> str:
    narrow = f", values times {reading.scale:g}" if reading.scale != 1 else ""
    return f"{reading.components}-component mixture{narrow}"
