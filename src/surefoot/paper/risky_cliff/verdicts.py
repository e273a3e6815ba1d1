"""The paper's claims of section 5.4 against what was measured."""

from __future__ import annotations

from collections.abc import Iterable

from surefoot.core.stats import holm, welch
from surefoot.paper.claims import Claim, Verdict
from surefoot.paper.risky_cliff.results import CliffResults, first_steady_episode

SECTION = "5.4"
MAIN = "wgf-mixture"


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
        "reproduced" if fine else "not reproduced",
        "" if fine else _why_not(results, loss),
        {"SSD": share},
    )  # fmt: skip


def _more_than_others(results: CliffResults, loss: str, others: list[str]) -> Claim:
    shares = {p: results.interval(results.cell(loss, p), "over_top") for p in ("ssd", *others)}
    ahead = [p for p in others if shares["ssd"].low > shares[p].high]
    return Claim(
        f"share-{loss}", SECTION,
        "the SSD policy induces the least-disperse data distribution",
        f"{loss}: SSD over the top more often, intervals apart, than {_listed(ahead)}",
        _graded(ahead, others),
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
        _graded(fewer, others),
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
        "reproduced" if fine else "not reproduced", "" if fine else reason, {"greedy": share},
    )  # fmt: skip


def _same_as_qr(results: CliffResults) -> Claim:
    pair = {loss: results.interval(results.cell(loss, "ssd"), "over_top") for loss in (MAIN, "qr")}
    fine = pair[MAIN].overlaps(pair["qr"])
    return Claim(
        "qr-like-wgf", SECTION, "QR and WGF induce similar data distributions under SSD",
        "SSD, share of the last episodes over the top row",
        "reproduced" if fine else "not reproduced", "" if fine else _why_not(results, "qr"), pair,
    )  # fmt: skip


def _quickest(results: CliffResults) -> Claim:
    wgf, qr = (results[results.cell(loss, "ssd")]["return"] for loss in (MAIN, "qr"))
    test = welch(wgf[:, :100].mean(1), qr[:, :100].mean(1))
    fine = test.p_value < 0.05 and test.interval.mean > 0
    return Claim(
        "wgf-quickest", SECTION, "in this domain, the WGF method learns the quickest",
        "SSD, return over the first 100 episodes, WGF with mixture targets minus QR",
        "reproduced" if fine else "not reproduced",
        "" if fine else f"the difference is not positive with p = {test.p_value:.2g}",
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


def _graded(won: list[str], of: list[str]) -> Verdict:
    return "reproduced" if len(won) == len(of) else ("partly" if won else "not reproduced")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
