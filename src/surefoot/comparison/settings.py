"""How a pair is tested: what all tests of dominance are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.comparison.memory import BLOCKS, Blocks
from surefoot.core.array import check_tolerance
from surefoot.errors import InputError, is_whole, must_fit, real, shown, unknown


def usual_trim(size: int) -> float:
    """Share of so many pooled values that an end of the range leaves out."""
    return min(0.25, max(0.05, 20 / size))


def range_tested(sizes: Sequence[int], trim: float | None) -> str:
    """Of which values dominance is established, between samples of such sizes, in words."""
    sizes = sorted(sizes)
    ends = [usual_trim(sum(two)) if trim is None else trim for two in (sizes[-2:], sizes[:2])]
    share = " to ".join(dict.fromkeys(f"{100 * end:.2g}" for end in ends))
    pooled = f"all but the lowest {share} % of the pooled values"
    return f"on {pooled} (and highest, at the first order)"


@dataclass(frozen=True)
class TestSettings:
    """How a pair is tested; `tolerance` is that of `fsd_dominates` and `ssd_dominates`.

    At the second order it loosens "x dominates y" to `D_x <= D_y + tolerance`, which is the same as
    `F^-2_x >= F^-2_y - tolerance` (the two are convex conjugates); at the first order to quantiles
    of x at most `tolerance` below those of y, so x is shifted by that much.
    """

    __test__ = False  # no tests of pytest's

    resamples: int = 1000
    seed: int = 0
    tolerance: float = 0.0
    paired: bool = False
    """Rows of the two belong together."""
    trim: float | None = None
    """Share of the pooled values left out at an end of the range; None: `usual_trim`."""
    blocks: Blocks = "circular"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        if not is_whole(self.resamples) or self.resamples < 19:
            many = shown(self.resamples)
            raise InputError(f"resamples = {many}: a test at level 0.05 needs 19 or more")
        must_fit(8 * int(self.resamples), f"resamples = {self.resamples}: they")  # a few doubles
        if not is_whole(self.seed) or self.seed < 0:
            seed = shown(self.seed)
            raise InputError(f"seed = {seed}: it must be a whole number that is not negative")
        if not isinstance(self.paired, bool | np.bool_):
            raise InputError(f"paired = {shown(self.paired)}: it must be true or false")
        if self.trim is not None and not 0 <= real(self.trim) < 0.5:
            raise InputError(f"trim = {shown(self.trim)}: it must be at least 0 and below 0.5")
        if self.blocks not in BLOCKS:
            raise unknown("blocks", self.blocks, BLOCKS)
        plain = {
            "resamples": int(self.resamples),
            "seed": int(self.seed),
            "tolerance": float(self.tolerance),
            "paired": bool(self.paired),
        }
        for name, value in plain.items():  # as they are saved
            object.__setattr__(self, name, value)


def plain_settings(settings: Mapping[str, Any]) -> TestSettings:
    """Of tests that forgive nothing and leave no end out."""
    for name in ("tolerance", "trim"):
        if settings.get(name):
            raise InputError(f"{name} = {settings[name]}: these tests have none")
    return TestSettings(**settings)
