"""Make the explanatory pictures of docs/assets from the library's own functions.

    python tools/pictures.py [DIRECTORY]

Every curve, title and number on them is computed here and now, so a picture cannot say what the
code does not do; the tolerance sweep is read from the committed results. Equal code gives equal
bytes.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import surefoot as sf
from surefoot.plots import PALETTE, legend, new_figure, render, style
from surefoot.transport import project

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "docs" / "assets"
A_COLOR, B_COLOR, GREY = PALETTE[0], PALETTE[1], "#6E6E6E"
LOOKS = ((A_COLOR, "-"), (B_COLOR, "--"))
WORDS = {
    sf.DecidedBy.DOMINANCE: "dominance decided",
    sf.DecidedBy.TIE_BREAK: "a tie, one is drawn",
    sf.DecidedBy.FALLBACK: "no dominance, larger mean",
}


def normal(mean: float, deviation: float, n: int = 40) -> np.ndarray:
    """N equally likely values, normal in shape, with exactly this mean and this deviation."""
    z = np.array([NormalDist().inv_cdf((2 * i + 1) / (2 * n)) for i in range(n)])
    return mean + deviation * (z - z.mean()) / z.std()


# --- what dominance is -------------------------------------------------------------------


def same_mean() -> Any:
    """Two returns with one mean: outcomes, CDF, integrated CDF, cumulative quantiles."""
    returns = {"sure": normal(5, 0.6), "risky": normal(5, 2.0)}
    figure, axes = new_figure(2, 2, size=(8, 6.2))
    for row, (name, z) in enumerate(returns.items()):
        color, line = LOOKS[row]
        axes[0, 0].plot(z, np.full(z.shape, 1 - row), "|", color=color, markersize=22)
        axes[0, 0].plot(z.mean(), 1 - row, "o", color=color, markeredgecolor="black")
        axes[0, 1].step(
            [-1, *z, 11], [*np.arange(len(z) + 1) / len(z), 1], where="post",
            color=color, linestyle=line, label=name,
        )  # fmt: skip
        _dispersion(axes[1, 0], z, name, color, line)
        tau = np.linspace(0, 1, 101)
        axes[1, 1].plot(
            tau, sf.cumulative_quantile(z, tau), color=color, linestyle=line, label=name
        )
    _label(axes[0, 0], "1. Outcomes, equally likely (dot: mean)", "return", "")
    axes[0, 0].set_yticks([0, 1], ["risky", "sure"])
    axes[0, 0].set_ylim(-0.6, 1.6)
    _label(axes[0, 1], "2. Distribution: the curves cross", "return x", "share of outcomes ≤ x")
    _label(
        axes[1, 0], "3. Its integral (area: half the variance)", "return x",
        "mean shortfall below x",
    )  # fmt: skip
    lead = "sure" if sf.ssd_dominates(returns["sure"], returns["risky"]) else "neither"
    _label(
        axes[1, 1], f"4. F$^{{-2}}$ nowhere below: {lead} dominates",
        "share of outcomes τ, worst first", "their part of the mean, F$^{-2}$(τ)",
    )  # fmt: skip
    for ax in axes.flat[:2]:
        ax.set_xlim(-0.5, 10.5)
    for ax in axes.flat[1:]:
        legend(ax, loc="upper left")
    return figure


def _dispersion(ax: Any, z: np.ndarray, name: str, color: str, line: str) -> None:
    alpha = np.linspace(2, 8, 241)
    space = sf.dispersion_space(z, alpha)
    floor = np.maximum(space.left_asymptote, space.right_asymptote)
    ax.fill_between(alpha, floor, space.frontier, color=color, alpha=0.15, linewidth=0)
    ax.plot(alpha, space.frontier, color=color, linestyle=line, label=name)
    if name == "risky":
        ax.plot(alpha, floor, color="black", linestyle=":", label="a certain 5")


# --- when it decides ---------------------------------------------------------------------


def decisions() -> Any:
    """Four pairs of actions and what the SSD policy makes of them."""
    cases = {
        "Same mean, A surer": (normal(5, 0.6), normal(5, 2.0)),
        "B better in every way": (normal(4, 1.0), normal(5, 1.0)),
        "B riskier, and better on average": (normal(5, 0.6), normal(5.6, 2.0)),
        "Equal up to the tolerance": (normal(5, 1.0), normal(5.0004, 1.0)),
    }
    figure, axes = new_figure(2, 2, size=(8, 7.0))
    policy = sf.SSD(tolerance=1e-3)
    tau = np.linspace(0, 1, 101)
    for ax, (title, pair) in zip(axes.flat, cases.items(), strict=True):
        decision = policy.decide(jnp.asarray(np.stack(pair)), jax.random.key(0))
        best = np.maximum(*(sf.cumulative_quantile(z, tau) for z in pair))
        for name, z, (color, line) in zip("AB", pair, LOOKS, strict=True):
            below = sf.cumulative_quantile(z, tau) - best
            text = f"{name}: mean {z.mean():.5g}, deviation {z.std():.2g}"
            ax.plot(tau, below, color=color, linestyle=line, label=text)
        who = sf.DecidedBy(int(decision.decided_by))
        taken = "A or B" if int(decision.candidates.sum()) == 2 else "AB"[int(decision.action)]
        words = f"{title}\ntakes {taken}: {WORDS[who]}"
        _label(ax, words, "share of outcomes τ, worst first", "F$^{-2}$(τ) below the higher one")
        if who is sf.DecidedBy.TIE_BREAK:
            ax.axhspan(-policy.tolerance, 0, color=GREY, alpha=0.15, label="tolerance 0.001")
            ax.set_ylim(-0.0026, 0.0001)
        inside = {"loc": "center", "bbox_to_anchor": (0.5, 0.62)}  # the curve hangs around it
        legend(ax, **(inside if "Same" in title else {"loc": "lower left"}))
    return figure


def cvar_levels() -> Any:
    """Two returns whose CVaR curves cross: which one CVaR takes hangs on its level."""
    pair = (normal(5, 0.6), normal(5.6, 2.0))
    figure, ax = new_figure(size=(6.6, 4.2))
    levels = np.linspace(0.025, 1, 157)
    for name, z, (color, line) in zip("AB", pair, LOOKS, strict=True):
        curve = [float(sf.cvar(z, level)) for level in levels]
        ax.plot(levels, curve, color=color, linestyle=line, label=f"{name}, mean {z.mean():.2g}")
    z, key = jnp.asarray(np.stack(pair)), jax.random.key(0)
    edges = np.linspace(0, 1, 41)  # one stretch per particle: in it the choice cannot change twice
    taken = [int(sf.CVaR(alpha=float(a))(z, key)) for a in (edges[1:] + edges[:-1]) / 2]
    for name, action in (("A", 0), ("B", 1)):
        at = edges[:-1][np.equal(taken, action)]
        ax.barh(0.5, len(at) / 40, 0.4, left=at[0], color=LOOKS[action][0])
        ax.text(at.mean() + 1 / 80, 0.5, f"CVaR takes {name}", color="white", ha="center",
                va="center", fontsize=9.5, fontweight="bold")  # fmt: skip
    swap = edges[int(np.argmax(taken))]
    ax.axvline(swap, color=GREY, linestyle=":", linewidth=1.2)
    ax.set_ylim(bottom=0.3)
    _label(ax, "", "risk level: share of outcomes τ, worst first", "mean of the worst share (CVaR)")
    legend(ax, loc="upper left", bbox_to_anchor=(0.02, 0.93))
    return figure


def tolerance() -> Any:
    """The measured sweep of the tie tolerance on the risky cliff."""
    summary = json.loads((ROOT / "results" / "risky-cliff" / "summary.json").read_text())
    figure, axes = new_figure(1, 2, size=(8, 3.9))
    panels = (("top_row_share", "Over the sure top row"), ("falls", "Falls off the cliff"))
    # The curves of a sure and of a normal return lie at most 0.4 deviations apart, at tau = 1/2.
    gap = summary["true_std_at_the_fork"]["right"] * NormalDist().pdf(0)
    for ax, (field, title) in zip(axes.flat, panels, strict=True):
        for policy, name in (("ssd", "SSD"), ("greedy", "greedy")):
            cells = [c for c in summary["tolerance_sweep"] if c["policy"] == policy]
            at = np.arange(len(cells))  # evenly, for most of a log axis would be empty
            mean, low, high = ([c[field][k] for c in cells] for k in ("mean", "low", "high"))
            look = style(policy)
            error = np.abs(np.array([low, high]) - mean)
            ax.errorbar(at, mean, error, color=look.color, linestyle=look.linestyle, capsize=3,
                        marker=look.marker, label=name)  # fmt: skip
        swept = [c["tolerance"] for c in cells]
        where = np.interp(np.log(gap), np.log(swept), at)
        ax.axvline(where, color=GREY, linestyle=":", label=f"widest gap, {gap:.2g}")
        ax.set_xticks(at, [f"{t:g}" for t in swept])
        trials = summary["tolerance_sweep"][0][field]["n"]
        _label(ax, f"{title} (95 %, {trials} trials)", "tolerance, in units of the return", "")
        ax.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("share of the last 100 episodes")
    axes[0, 1].set_ylabel("falls in 400 episodes")
    legend(axes[0, 0], loc="lower left")
    return figure


# --- learning ----------------------------------------------------------------------------


def jko_steps() -> Any:
    """Particles under repeated proximal steps, and what entropy makes of a narrow return."""
    start = jnp.asarray(normal(0, 1, 16))
    target = jnp.sort(jnp.concatenate([normal(-3, 0.4, 8), normal(3, 0.8, 8)]))
    flow = sf.jko_flow(start, target, 6, step_size=1.0, transport="exact")
    figure, axes = new_figure(1, 2, size=(8, 4.1), width_ratios=[1.5, 1])
    ax = axes[0, 0]
    ax.plot(np.arange(7), flow.path, color=A_COLOR, linewidth=1.1, marker="o", markersize=3.5)
    ax.plot(np.full(16, 6.6), target, color="black", marker="_", markersize=14, linestyle="none")
    _label(ax, "Each step goes half the way (h = 1)", "proximal step", "return of each particle")
    ax.set_xticks([*range(7), 6.6], [*range(7), "target"])
    wide = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.5, 2, 3])
    for name in ("exact", "divergence", "sinkhorn"):
        look = style(name)
        kept = _kept(wide, name)
        axes[0, 1].plot(wide, kept, color=look.color, linestyle=look.linestyle,
                        marker=look.marker, label=name)  # fmt: skip
    _label(
        axes[0, 1], "Deviation kept in the end", "target's deviation", "learned / true deviation"
    )
    axes[0, 1].set_xscale("log")
    axes[0, 1].set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    axes[0, 1].minorticks_off()
    axes[0, 1].set_ylim(0, 1.08)
    legend(axes[0, 1], loc="lower right")
    return figure


def _kept(deviations: np.ndarray, transport: str) -> np.ndarray:
    targets = jnp.asarray(np.stack([normal(0, each, 16) for each in deviations]))

    def last(target: jax.Array) -> jax.Array:
        return sf.jko_flow(target, target, 60, step_size=1.0, transport=transport).path[-1]

    return np.std(jax.vmap(last)(targets), axis=1) / deviations


def noise() -> Any:
    """Particles of a noisy reward r ~ N(-1, 1) under three kinds of targets."""
    rewards = -1 + jax.random.normal(jax.random.key(3), (240,))
    kinds = {
        "one sample,\nsquared residual": ("bellman", 1, 1.0),
        "mixture of the last 32,\nsquared residual": ("bellman", 32, 1.0),
        "one sample,\nenergy distance, h = 0.1": ("energy", 1, 0.1),
    }
    figure, axes = new_figure(1, 3, size=(8, 3.9), sharey=True)
    for ax, (title, (potential, memory, step_size)) in zip(axes.flat, kinds.items(), strict=True):
        path = _learn(rewards, potential, memory, step_size)
        ax.plot(path, color=A_COLOR, linewidth=0.7, alpha=0.8)
        ax.axhspan(-2, 0, color=GREY, alpha=0.18, linewidth=0)
        spread = float(np.std(path[-120:], axis=1).mean())
        _label(ax, f"{title}\ndeviation {spread:.2f}", "update", "")
    axes[0, 0].set_ylabel("return of each particle")
    axes[0, 0].text(5, 1.35, "grey: in truth -1 ± 1", fontsize=9)
    axes[0, 0].set_ylim(-4, 1.7)
    return figure


def _learn(rewards: jax.Array, potential: str, memory: int, step_size: float) -> np.ndarray:
    def update(z: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array]:
        target = project(jnp.repeat(last, 16 // min(memory, 16)), 16)
        moved = sf.proximal_step(z, target, step_size, "exact", potential, assume_sorted=True).z
        return moved, moved

    now, back = jnp.arange(len(rewards))[:, None], jnp.arange(memory)
    pooled = rewards[now - back % (now + 1)]  # before K are seen, those few several times
    _, path = jax.lax.scan(update, jnp.asarray(normal(0, 0.5, 16)), pooled)
    return np.asarray(path)


# --- guides ------------------------------------------------------------------------------


def strategies() -> Any:
    """The figure of `docs/guides/comparing-strategies.md`, from the data made on that page."""
    page = (ROOT / "docs" / "guides" / "comparing-strategies.md").read_text()
    block = page.split("```python\n", 1)[1].split("```", 1)[0]
    with tempfile.TemporaryDirectory() as folder:
        code = block.replace('"returns.csv"', repr(str(Path(folder) / "returns.csv")))
        names: dict[str, Any] = {}
        exec(compile(code, "comparing-strategies.md", "exec"), names)
    return sf.compare(names["returns"], seed=0).figure()


def real_prices() -> tuple[Any, Any]:
    """The figures of `docs/guides/real-prices.md`; the prices come with skfolio (`make peers`)."""
    page = (ROOT / "docs" / "guides" / "real-prices.md").read_text()
    blocks = [part.split("```", 1)[0] for part in page.split("```python\n")[1:]]
    names: dict[str, Any] = {"sf": sf}
    for block in (blocks[0], *(b for b in blocks if "stocks = " in b or "def walk" in b)):
        code = "\n".join(x for x in block.splitlines() if not re.match(r"print|prices\.to_csv", x))
        exec(compile(code, "real-prices.md", "exec"), names)
    return names["result"].figure(), names["stocks"].figure("bands")


def _label(ax: Any, title: str, x: str, y: str) -> None:
    ax.set_title(title)
    ax.set_xlabel(x)
    ax.set_ylabel(y)


PICTURES: dict[str, Callable[[], Any]] = {
    "same-mean": same_mean,
    "decisions": decisions,
    "cvar-levels": cvar_levels,
    "tolerance": tolerance,
    "jko-steps": jko_steps,
    "noise": noise,
    "strategies": strategies,
}


def main(directory: Path = ASSETS, png: bool = False) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    figures = {name: make() for name, make in PICTURES.items()}
    if importlib.util.find_spec("skfolio"):
        figures["real-prices"], figures["real-prices-bands"] = real_prices()
    for name, made in figures.items():
        image, vector = render(made)
        (directory / f"{name}.svg").write_bytes(vector)
        if png:
            (directory / f"{name}.png").write_bytes(image)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS)
