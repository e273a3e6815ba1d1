"""The page and the figure of `benchmarks.size_power`, from its stored shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.size_power import LEVEL, RESAMPLES, Cell, cells

REJECTED, ESTABLISHED = "x dominates: rejected", "x dominates: established"


def write(found: dict[str, Any], out: Path) -> bool:
    """README.md and figures; whether every size and every false share is as it should be."""
    mine = [cell for cell in cells() if cell.key in found]
    rows = {part: [c for c in mine if c.part == part] for part in ("size", "false", "power")}
    good = [_size_good(c, found) for c in rows["size"]] + [_false(c, found) for c in mine]
    (out / "README.md").write_text(_page(rows, found, all(good)))
    if rows["power"]:
        _figure(rows["power"], found, out)
    print(f"{sum(good)} of {len(good)} conditions hold; {out / 'README.md'}")
    return all(good)


def _share(cell: Cell, found: dict[str, Any], *names: str) -> list[float]:
    shares = found[cell.key]["shares"]
    return np.mean([shares[name] for name in names], axis=0).tolist()


def _size(cell: Cell, found: dict[str, Any]) -> list[float]:
    """x and y are alike, so both directions count."""
    return _share(cell, found, REJECTED, "y dominates: rejected")


def _size_good(cell: Cell, found: dict[str, Any]) -> bool:
    assert cell.wanted
    low, high = cell.wanted
    return all(low <= share <= high for share in _size(cell, found))


def _false(cell: Cell, found: dict[str, Any]) -> bool:
    """Dominance that does not hold is established in at most 5 % of the trials."""
    if cell.part == "power":  # x is worse, or wilder
        return max(_share(cell, found, ESTABLISHED)) <= LEVEL
    names = (ESTABLISHED, "y dominates: established") if cell.part == "size" else (ESTABLISHED,)
    return all(_share(cell, found, *names)[order - 1] <= LEVEL for order in cell.false)


def _page(rows: dict[str, list[Cell]], found: dict[str, Any], good: bool) -> str:
    trials = sorted({found[c.key]["trials"] for part in rows.values() for c in part})
    count = " to ".join(f"{t:,}" for t in sorted({trials[0], trials[-1]}))
    lines = [
        "# Size and power of `surefoot compare`",
        "",
        f"`make size-power`: {count} trials a cell, {RESAMPLES} resamples, level {LEVEL}, first /",
        "second order. A share of 0.05 has a standard error of 0.005 with 2,000 trials. "
        + ("Every condition below holds." if good else "**Not every condition below holds.**"),
        "",
        "## Size: x and y are alike",
        "",
        'How often "x dominates y" is rejected (both directions taken together), how often',
        "dominance is established, and how often single rows (0.1.0's test) would have rejected.",
        "",
        "| rows | n | rejected | wanted | as wanted | established | single rows | block |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in rows["size"]:
        shares = found[c.key]["shares"]
        single = shares.get("single rows: x dominates: rejected")
        low, high = c.wanted or (0, 1)
        wanted = f"{low:g} to {high:g}" if low else f"at most {high:g}"
        established = _share(c, found, ESTABLISHED, "y dominates: established")
        lines.append(
            f"| {c.name} | {c.n:,} | {_two(_size(c, found))} | {wanted} "
            f"| {'yes' if _size_good(c, found) else '**no**'} | {_two(established)} "
            f"| {_two(single) if single else ''} | {shares['rows of a block'][0]:.1f} |"
        )
    lines += [
        "",
        "## False: x does not dominate y",
        "",
        "How often it is established all the same; at most 0.05 is wanted at the orders at which",
        "it is false. x of *calmer* has a quarter of y's deviation and a mean lower by a hundredth",
        "of it; x of *quantiles* is better at every level but around the median, where it falls",
        "short by 0.01.",
        "",
        "| x over y | n | false at order | established | at most 0.05 |",
        "|---|---|---|---|---|",
    ]
    for c in rows["false"]:
        lines.append(
            f"| {c.name} | {c.n:,} | {' and '.join(map(str, c.false))} "
            f"| {_two(_share(c, found, ESTABLISHED))} | {'yes' if _false(c, found) else '**no**'} |"
        )
    lines += [
        "",
        "## Power",
        "",
        "x worse by a share of the deviation (*shift*), or x with so many times y's deviation.",
        'How often "x dominates y" is rejected; by Barrett and Donald\'s test on a grid of 100',
        "points, samples drawn apart; by the one-sided z test of the means, the best there is for",
        "a shift of independent normals (and no test for a deviation); and how often that y",
        "dominates x is established. With memory (AR) the grid and the z test reject too often to",
        "be compared: their level does not hold there.",
        "",
        "![Power against the shift](power.svg)",
        "",
        "| | n | at | contradicted | on a grid | z test | y over x established | false |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in rows["power"]:
        shares = found[c.key]["shares"]
        lines.append(
            f"| {c.name} | {c.n} | {c.at:g} | {_two(shares[REJECTED])} "
            f"| {_two(shares['grid: x dominates: rejected'])} "
            f"| {shares['z test: rejected'][0]:.3f} "
            f"| {_two(shares['y dominates: established'])} | {_two(shares[ESTABLISHED])} |"
        )
    return "\n".join(lines) + "\n"


def _two(shares: list[float]) -> str:
    return " / ".join(f"{share:.3f}" for share in shares)


def _figure(rows: list[Cell], found: dict[str, Any], out: Path) -> None:
    from surefoot.plots.figures import label, legend_below, new_figure, render

    curves = {
        "second order": (REJECTED, 1, "C0-"),
        "first order": (REJECTED, 0, "C1-"),
        "second order, on a grid": ("grid: x dominates: rejected", 1, "C0:"),
        "z test of the means": ("z test: rejected", 0, "k--"),
        "y over x established, second order": ("y dominates: established", 1, "C2-"),
        "y over x established, first order": ("y dominates: established", 0, "C3-"),
    }
    panels = list(dict.fromkeys((c.name, c.n) for c in rows))
    figure, axes = new_figure(1, len(panels), size=(3.9 * len(panels), 4.2), sharey=True)
    for ax, (name, n) in zip(axes[0], panels, strict=True):
        these = [c for c in rows if (c.name, c.n) == (name, n)]
        for title, (outcome, order, style) in curves.items():
            values = [found[c.key]["shares"][outcome][order] for c in these]
            ax.plot([c.at for c in these], values, style, label=title)
        ax.axhline(LEVEL, color="0.6", linewidth=0.8, zorder=0)
        ax.set_ylim(0, 1)
        label(ax, f"{name}, n = {n}", f"{name.split(',')[0]} of x", "share of the trials")
    legend_below(figure, axes[0, 0], 3)
    for kind, content in zip(("png", "svg"), render(figure), strict=True):
        (out / f"power.{kind}").write_bytes(content)
