"""From counts per episode to means with intervals, and from these to the claims of section 5.4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from surefoot.core.stats import Interval, holm, mean_interval, welch
from surefoot.envs import ACTION_NAMES
from surefoot.paper.claims import Claim, graded, held
from surefoot.paper.experiment import Tables
from surefoot.paper.risky_cliff.cells import CliffCell, RiskyCliffConfig
from surefoot.policies import DecidedBy

SECTION = "5.4"
MAIN = "wgf-mixture"


class CliffResults:
    """The episodes of each cell as arrays `[trials, episodes]`, and its paths."""

    def __init__(self, config: RiskyCliffConfig, tables: Tables) -> None:
        self.config = config
        self._columns: dict[str, dict[str, np.ndarray]] = {}
        self._paths: dict[str, dict[str, np.ndarray]] = {}
        for cell in config.cells():
            columns = tables[cell.name]
            trials = len(np.unique(columns["trial"]))
            self._columns[cell.name] = {k: v.reshape(trials, -1) for k, v in columns.items()}
            self._paths[cell.name] = tables[f"path.{cell.name}"]

    def __getitem__(self, cell: CliffCell) -> dict[str, np.ndarray]:
        return self._columns[cell.name]

    def cell(self, loss: str, policy: str) -> CliffCell:
        return CliffCell(loss, policy, self.config.tolerance)

    def visited(self, cell: CliffCell) -> np.ndarray:
        """Share of trials `[S]` whose behaviour walks through each state without exploring."""
        return self._paths[cell.name]["visited"]

    def path(self, cell: CliffCell, whose: str = "own") -> np.ndarray:
        """States in order: the first trial's `own` path without exploring, or the `greedy` one."""
        place = self._paths[cell.name][whose]
        return np.argsort(place, kind="stable")[int((place < 0).sum()) :]

    def fork_std(self, cell: CliffCell) -> dict[str, float]:
        """Learned deviation of each action's return where the two paths part: above the start up
        leads over the top, right along the cliff."""
        fork = self.config.grid.state(self.config.rows - 2, 0)
        return {a: float(self._paths[cell.name][f"std_{a}"][fork]) for a in ACTION_NAMES}

    def per_trial(self, cell: CliffCell, name: str) -> np.ndarray:
        """`[trials]`: falls are added up, everything else averages the last episodes."""
        values = self[cell][name]
        return values.sum(1) if name == "falls" else values[:, -self.config.last :].mean(1)

    def interval(self, cell: CliffCell, name: str) -> Interval:
        """Student t over trials."""
        return mean_interval(self.per_trial(cell, name))

    def decided(self, cell: CliffCell) -> dict[str, float]:
        """Share of steps that each authority decided, over all episodes."""
        steps = self[cell]["steps"].sum()
        names = [who.name.lower() for who in DecidedBy]
        return {who: float(self[cell][f"by_{who}"].sum() / steps) for who in names}

    def ties_by_dominance(self, cell: CliffCell) -> float:
        """Share of the steps with several best means that dominance decided."""
        counts = self[cell]
        return float(counts["ties_by_dominance"].sum() / max(counts["ties"].sum(), 1))

    def summary_of(self, cell: CliffCell) -> dict[str, Any]:
        counts = self[cell]
        return {
            "top_row_share": self.interval(cell, "over_top").as_dict(),
            "falls": self.interval(cell, "falls").as_dict(),
            "steps": self.interval(cell, "steps").as_dict(),
            "return": self.interval(cell, "return").as_dict(),
            "tolerance": cell.tolerance,
            "share_of_steps_with_several_best_actions": float(
                counts["ties"].sum() / counts["steps"].sum()
            ),
            "share_of_ties_decided_by_dominance": self.ties_by_dominance(cell),
            "decided_by": self.decided(cell),
            "learned_std_at_the_fork": self.fork_std(cell),
        }

    def summary(self) -> dict[str, Any]:
        """`losses -> policy -> statistic -> interval`, and the sweep by tolerance."""
        cells: dict[str, dict[str, Any]] = {}
        sweep = []
        for cell in self.config.cells():
            if cell.sweep:
                sweep.append({"policy": cell.policy, **self.summary_of(cell)})
            else:
                cells.setdefault(cell.loss, {})[cell.policy] = self.summary_of(cell)
        return {
            "losses": cells,
            "tolerance_sweep": sweep,
            "last_episodes": self.config.last,
            "true_std_at_the_fork": {"up": 0.0, "right": self.config.true_fork_std},
        }


def first_steady_episode(share: np.ndarray, level: float = 0.9, width: int = 25) -> int | None:
    """The first episode from which the smoothed curve `[E]` stays at or above the level."""
    smooth = np.convolve(share, np.ones(width) / width, mode="valid")
    below = np.flatnonzero(smooth < level)
    first = 0 if below.size == 0 else int(below[-1]) + 1
    return first if first < smooth.size else None


# --- the claims -------------------------------------------------------------------------


def verdicts(results: CliffResults) -> list[Claim]:
    """As many claims as the cells that were run allow."""
    config = results.config
    others = [p for p in config.policies if p != "ssd"]
    made: list[Claim] = []
    for loss in config.losses:
        if "ssd" in config.policies:
            made.append(_takes_the_top(results, loss))
            if others:
                made += [_more_than_others(results, loss, others), _falls(results, loss, others)]
    if MAIN in config.losses and "greedy" in config.policies:
        made.append(_greedy_takes_the_bottom(results))
    if len(config.tolerances) > 1:
        made += [_against_the_best_greedy(results, name) for name in ("over_top", "falls")]
    if {MAIN, "qr"} <= set(config.losses) and "ssd" in config.policies:
        made += [_same_as_qr(results), _quickest(results)]
    if "zero-start" in config.checks and MAIN in config.losses and "ssd" in config.check_policies:
        made.append(_why_cvar(results))
    return made


def _takes_the_top(results: CliffResults, loss: str) -> Claim:
    cell = results.cell(loss, "ssd")
    share = results.interval(cell, "over_top")
    fine = share.mean >= 0.95
    steady = first_steady_episode(results[cell]["over_top"].mean(0))
    when = "never steady" if steady is None else f"steadily above 90 % from episode {steady}"
    return Claim(
        f"top-{loss}", SECTION,
        "the SSD policy takes the top path on average, from about the 75th episode",
        f"{loss}: share of the last {results.config.last} episodes over the top row; {when}",
        *held(fine, _why_not(results, loss)),
        {"SSD": share},
    )  # fmt: skip


def _more_than_others(results: CliffResults, loss: str, others: list[str]) -> Claim:
    shares = {p: results.interval(results.cell(loss, p), "over_top") for p in ("ssd", *others)}
    ahead = [p for p in others if shares["ssd"].low > shares[p].high]
    return Claim(
        f"share-{loss}", SECTION,
        "the SSD policy induces the least-disperse data distribution",
        f"{loss}: SSD over the top more often, intervals apart, than {_listed(ahead)}",
        graded([p in ahead for p in others]),
        "" if len(ahead) == len(others) else f"not apart from {_listed(set(others) - set(ahead))}",
        shares,
    )  # fmt: skip


def _falls(results: CliffResults, loss: str, others: list[str]) -> Claim:
    falls = {p: results.interval(results.cell(loss, p), "falls") for p in ("ssd", *others)}
    mine = results.per_trial(results.cell(loss, "ssd"), "falls")
    tests = [welch(mine, results.per_trial(results.cell(loss, p), "falls")) for p in others]
    adjusted = holm([t.p_value for t in tests])
    fewer = [
        p for p, t, value in zip(others, tests, adjusted, strict=True)
        if value < 0.05 and t.interval.mean < 0
    ]  # fmt: skip
    return Claim(
        f"falls-{loss}", SECTION,
        "using the SSD policy results in a significantly lower number of cliff falls",
        f"{loss}: falls per trial; significantly fewer (Welch, Holm) than {_listed(fewer)}",
        graded([p in fewer for p in others]),
        "" if len(fewer) == len(others) else f"not fewer than {_listed(set(others) - set(fewer))}",
        falls,
    )  # fmt: skip


def _greedy_takes_the_bottom(results: CliffResults) -> Claim:
    share = results.interval(results.cell(MAIN, "greedy"), "over_top")
    fine = share.high < 0.5
    reason = (
        "epsilon-greedy takes whichever path looks better by its jitter; a noisy path that looks "
        "worse once is hardly tried again and never corrected, so the sure one wins over time "
        "(the less jitter, the weaker the effect: compare --memory 128)"
    )
    return Claim(
        "greedy-bottom", SECTION, "the epsilon-greedy policy chooses the bottom path",
        f"{MAIN}: share of the last {results.config.last} episodes over the top row",
        *held(fine, reason), {"greedy": share},
    )  # fmt: skip


def _against_the_best_greedy(results: CliffResults, name: str) -> Claim:
    """What the paper does not ask: SSD and greedy, each at the tolerance that suits it best."""
    sign = 1 if name == "over_top" else -1
    best: dict[str, CliffCell] = {}
    for policy in ("ssd", "greedy"):
        cells = [c for c in results.config.cells() if c.sweep and c.policy == policy]
        best[policy] = max(cells, key=lambda c: sign * results.interval(c, name).mean)
    ssd, greedy = (results.per_trial(best[p], name) for p in ("ssd", "greedy"))
    test = welch(ssd, greedy)
    ahead = test.p_value < 0.05 and sign * test.interval.mean > 0
    what = {"over_top": "takes the top path more often", "falls": "falls less often"}[name]
    reason = (
        f"Welch, p = {test.p_value:.2g}. Learning online, a noisy path that looks bad once is "
        "seldom tried again, so greedy drifts to the sure path unaided; the advantage of SSD is "
        "over greedy with the same tie tolerance"
    )
    return Claim(
        f"best-greedy-{name.replace('_', '-')}", f"{SECTION} (not claimed there)",
        f"the SSD policy {what} than greedy at the tolerance that suits greedy best",
        f"{MAIN}, the best of {len(results.config.tolerances)} tolerances each: SSD "
        f"{best['ssd'].tolerance:g}, greedy {best['greedy'].tolerance:g}",
        *held(bool(ahead), reason),
        {p: results.interval(best[p], name) for p in ("ssd", "greedy")},
    )  # fmt: skip


def _same_as_qr(results: CliffResults) -> Claim:
    pair = {loss: results.interval(results.cell(loss, "ssd"), "over_top") for loss in (MAIN, "qr")}
    fine = pair[MAIN].overlaps(pair["qr"])
    return Claim(
        "qr-like-wgf", SECTION, "QR and WGF induce similar data distributions under SSD",
        "SSD, share of the last episodes over the top row",
        *held(fine, _why_not(results, "qr")), pair,
    )  # fmt: skip


def _quickest(results: CliffResults) -> Claim:
    wgf, qr = (results[results.cell(loss, "ssd")]["return"] for loss in (MAIN, "qr"))
    test = welch(wgf[:, :100].mean(1), qr[:, :100].mean(1))
    fine = test.p_value < 0.05 and test.interval.mean > 0
    return Claim(
        "wgf-quickest", SECTION, "in this domain, the WGF method learns the quickest",
        "SSD, return over the first 100 episodes, WGF with mixture targets minus QR",
        *held(fine, f"the difference is not positive with p = {test.p_value:.2g}"),
        {"difference": test.interval},
    )  # fmt: skip


def _why_cvar(results: CliffResults) -> Claim:
    """What the advantage over CVaR depends on: the dispersion that particles start with."""
    risky = [
        p for p in results.config.check_policies
        if p in results.config.policies and p.startswith("cvar")
    ]  # fmt: skip
    shares = {
        f"{p}, {name}": results.interval(results.cell(loss, p), "over_top")
        for p in ("ssd", *risky)
        for name, loss in (("dispersed start", MAIN), ("zero start", "zero-start"))
    }
    astray = [
        p
        for p in risky
        if shares[f"{p}, dispersed start"].high < shares["ssd, dispersed start"].low
    ]
    cured = [p for p in astray if shares[f"{p}, zero start"].overlaps(shares["ssd, zero start"])]
    return Claim(
        "why-cvar", SECTION, "one risk level leads the CVaR agent away from its goal",
        f"share over the top row by the start of the particles: behind SSD, {_listed(astray)}; "
        f"level with it when all start at zero, {_listed(cured)}",
        "partly" if cured else ("reproduced" if astray else "not reproduced"),
        "CVaR shuns pairs it has not tried while their particles still show the dispersion they "
        "started with, and settles on the first path it finds; without it, it finds the sure path"
        if cured else "CVaR went over the top as often as SSD" if not astray else "",
        shares,
    )  # fmt: skip


def _why_not(results: CliffResults, loss: str) -> str:
    if loss == "wgf-sample":
        return (
            "a single-sample target cannot see reward noise: all particles of a pair move "
            "together, so there is no dispersion for dominance to compare"
        )
    if loss == "qr":
        learned = results.fork_std(results.cell("qr", "ssd"))
        return (
            f"the particles are not there yet: where the paths part their deviation is "
            f"{learned['up']:.2g} (up) and {learned['right']:.2g} (right), in truth 0 and "
            f"{results.config.true_fork_std:.2g}; outer quantiles move at 1/(2N) of the full pace, "
            "still carrying their start and early falls (proximal-qr, the same potential as a "
            "proximal step over pooled transitions, does not)"
        )
    share = results.ties_by_dominance(results.cell(loss, "ssd"))
    return f"dominance decided only {share:.0%} of the ties"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
