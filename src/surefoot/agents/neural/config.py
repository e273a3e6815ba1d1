"""The hyper-parameters of a neural agent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.core.names import ANNEALING, NAMED_LOSSES, POTENTIAL_NAMES, TRANSPORTS
from surefoot.errors import InputError, at_least, unknown

if TYPE_CHECKING:
    from surefoot.policies import Policy

LOSSES = (*NAMED_LOSSES, "qr", "c51", "mse")
MOST_LAYERS = 100
PAPER: dict[str, Any] = {
    "behaviour": "greedy:0.001", "target": "greedy:0.001", "evaluation": "greedy:0.001",
    "ensemble": 0, "averaging": 0, "reward_scale": 1.0, "kappa": 1.0, "replay_size": 10_000,
}  # fmt: skip
"""What the paper does (section 5.3) where the defaults go beyond it."""


@dataclass(frozen=True)
class NeuralConfig:
    """Hyper-parameters of `NeuralAgent`; hashable, so that it is static under `jit`.

    The network and its schedule are the paper's (section 5.3). What the agent learns and how it
    acts is chosen to take the surer of equally good actions: a loss that learns dispersion, an
    ensemble that says how well the means are known, and the policy that asks it.
    """

    loss: str = "qr"
    """`qr`, `proximal-qr`, `c51`; or, blind to the dispersion of random rewards, `wgf` (the
    paper), `wgf-debiased`, `wgf-exact`, `mse` (plain DQN)."""
    particles: int = 32
    """Particles per action, atoms for `c51`; `mse` always has one."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden ReLU layers, after the convolutions if observations are pictures."""
    normalise: bool = False
    """Observations in deviations from their mean, both over all that were seen so far."""
    learning_rate: float = 1e-3
    """Adam's step size, at the start of the schedule if there is one."""
    learning_rate_end: float | None = None
    """Adam's step size at the end of a linear schedule. None: constant."""
    learning_rate_steps: int = 50_000
    """Length of that schedule in environment steps, from the first update on."""
    adam_eps: float = 0.01 / 32
    """Adam's epsilon; the value of the QR-DQN paper, and of sb3-contrib."""
    max_grad_norm: float | None = None
    """Clip the gradient to this global norm; not at all by default."""
    gamma: float = 0.99
    """Discount."""
    batch_size: int = 32
    """Transitions in an update."""
    replay_size: int = 50_000
    """Transitions remembered; the oldest go first."""
    learning_starts: int = 100
    """Environment steps before the first update; actions are random until then, as in SB3."""
    update_every: int = 1
    """Environment steps between updates."""
    updates: int = 1
    """Updates each time."""
    n_envs: int = 1
    """Environments stepped side by side, one compiled call for all. Steps are counted in each of
    them; what is due within one round of steps happens after it, and `learn` ends with a whole
    round."""
    n_step: int = 1
    """Rewards summed before bootstrapping; shorter at the end of an episode."""
    target_period: int = 100
    """Environment steps between changes of the target network."""
    target_mix: float = 1.0
    """Share of the online parameters taken at each change: 1 copies, less is Polyak averaging."""
    double_q: bool = False
    """Choose the bootstrap action with the online network, value it with the target network."""
    explore: float = 0.1
    """Probability of a random action, at the end of the schedule if there is one."""
    explore_start: float | None = None
    """Probability at the first step; from there linear to `explore`. None: constant."""
    explore_steps: int = 10_000
    """Length of that schedule in environment steps."""
    behaviour: Policy = "greedy"  # type: ignore[assignment]  # by name until __post_init__
    """Gathers the data (exploration comes on top)."""
    target: Policy = "ssd"  # type: ignore[assignment]  # by name until __post_init__
    """Chooses the action whose return is bootstrapped; greedy in the paper."""
    evaluation: Policy = "ssd"  # type: ignore[assignment]  # by name until __post_init__
    """Acts in `predict` and `evaluate`."""
    ensemble: int = 20
    """Further estimates of every mean, each from its own resample of the replay: their spread
    says how well the means are known. 0: none, and only policies with a tolerance."""
    member_steps: int = 100
    """Steps for which one member of the ensemble gathers the data, and on to the end of its episode
    (at most ten times as many): the behaviour policy decides by its means, then by those of
    another. So what is not known well is tried, and for long enough. 0: by the particles."""
    reward_scale: float | None = None
    """Learn in units of this reward. None: of the rewards seen so far, their root mean square
    rounded to a power of two. What the agent shows is in the environment's units always."""
    averaging: int = 1000
    """Decide with the average of the network over about so many last steps: without the jitter of
    single gradient steps, smaller differences show. 0: with the network as it is."""
    step_size: float = 1.0
    """JKO time step h of the proximal losses. For the energy potential it is in the units that are
    learned in, see `reward_scale`."""
    transport: str | None = None
    """Of the proximal losses: `sinkhorn`, `divergence` or `exact`; None: what the loss names."""
    potential: str | None = None
    """Of the proximal losses: `bellman` or `energy`; None: what the loss names."""
    temperatures: tuple[float, ...] = ANNEALING
    """Sinkhorn's annealed temperatures, one sweep each."""
    kappa: float = 0.0
    """Where the Huber loss of `qr` turns linear; dispersion below it is not seen. 0 is pure
    quantile regression."""
    value_range: tuple[float, float] | None = None
    """Lowest and highest return `c51` can represent; `c51` needs it."""

    def __post_init__(self) -> None:
        from surefoot.policies import policy_named  # here: help texts do not wait for JAX

        for name in ("behaviour", "target", "evaluation"):
            object.__setattr__(self, name, policy_named(getattr(self, name)))
        for name in ("hidden", "temperatures", "value_range"):  # lists of a TOML file
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.loss == "mse":
            object.__setattr__(self, "particles", 1)
        if self.loss == "c51":  # its atoms are in the environment's units
            object.__setattr__(self, "reward_scale", 1.0)
        self._check_names()
        self._check_numbers()

    def _check_names(self) -> None:
        if self.loss not in LOSSES:
            raise unknown("loss", self.loss, LOSSES)
        for name, known in (("transport", TRANSPORTS), ("potential", POTENTIAL_NAMES)):
            chosen = getattr(self, name)
            if chosen is None:
                continue
            if chosen not in known:
                raise unknown(name, chosen, known)
            if self.loss not in NAMED_LOSSES:
                raise InputError(f"{name} = {chosen!r}: loss {self.loss!r} has no {name}")
        for name in ("behaviour", "target", "evaluation"):
            if getattr(self, name).needs_evidence and self.ensemble < 2:
                raise InputError(
                    f"ensemble = {self.ensemble}: {name} 'ssd' asks how well the means are known; "
                    "set ensemble to 2 at least, or a tolerance ('ssd:0.1'), or another policy"
                )
        if self.loss == "c51" and self.value_range is None:
            raise InputError("loss 'c51' needs value_range = (lowest, highest) return")

    def _check_numbers(self) -> None:
        counts = ("particles", "batch_size", "replay_size", "update_every", "updates", "n_step")
        for name in (*counts, "target_period", "explore_steps", "learning_rate_steps"):
            at_least(1, **{name: getattr(self, name)})
        at_least(1, n_envs=self.n_envs)
        at_least(0, learning_starts=self.learning_starts)
        for name in ("ensemble", "member_steps", "averaging"):
            at_least(0, **{name: getattr(self, name)})
        if self.reward_scale is not None:
            _within("reward_scale", self.reward_scale, 0, math.inf, open_low=True)
        if len(self.hidden) > MOST_LAYERS:
            raise InputError(f"hidden has {len(self.hidden):,} layers: at most {MOST_LAYERS}")
        for width in self.hidden:
            at_least(1, hidden=width)
        for name in ("learning_rate", "adam_eps", "step_size"):
            _within(name, getattr(self, name), 0, math.inf, open_low=True)
        for temperature in self.temperatures:
            _within("temperatures", temperature, 0, math.inf, open_low=True)
        _within("gamma", self.gamma, 0, 1)
        _within("explore", self.explore, 0, 1)
        _within("target_mix", self.target_mix, 0, 1, open_low=True)
        _within("kappa", self.kappa, 0, math.inf)
        if self.learning_rate_end is not None:
            _within("learning_rate_end", self.learning_rate_end, 0, math.inf)
        if self.explore_start is not None:
            _within("explore_start", self.explore_start, 0, 1)
        if self.max_grad_norm is not None:
            _within("max_grad_norm", self.max_grad_norm, 0, math.inf, open_low=True)
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise InputError(f"value_range = {self.value_range}: lowest must lie below highest")
        if self.loss == "c51" and self.particles < 2:
            raise InputError("particles = 1: loss 'c51' needs at least 2 atoms")
        if self.n_step * self.n_envs >= self.replay_size:
            raise InputError(
                f"replay_size = {self.replay_size}: it must be larger than n_step times n_envs, "
                f"{self.n_step} x {self.n_envs}"
            )
        if self.n_envs % self.update_every and self.update_every % self.n_envs:
            raise InputError(
                f"update_every = {self.update_every} and n_envs = {self.n_envs}: one must be a "
                "multiple of the other"
            )

    @property
    def rounds(self) -> int:
        """Updates after a step that is followed by any, of all environments."""
        return self.updates * max(1, self.n_envs // self.update_every)

    @property
    def shaping(self) -> float:
        """Share of the network's outputs that are particles: these shape its layers."""
        return self.particles / (self.particles + self.ensemble)

    @property
    def blind(self) -> bool:
        """Whether the loss cannot learn dispersion from one sampled transition at a time."""
        bellman = self.loss in NAMED_LOSSES and self.proximal[0] == "bellman"
        return bellman or self.loss == "mse"

    @property
    def seeing(self) -> str:
        """What can."""
        return "loss 'qr' or 'proximal-qr'"

    @property
    def proximal(self) -> tuple[str, str]:
        """(potential, transport) of a proximal loss."""
        potential, transport = NAMED_LOSSES[self.loss]
        return self.potential or potential, self.transport or transport


def _within(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fine = number and math.isfinite(value) and low <= value <= high
    if not fine or (open_low and value == low):
        left, right = "(" if open_low else "[", "]" if math.isfinite(high) else ")"
        raise InputError(f"{name} = {value!r}: it must lie in {left}{low}, {high}{right}")
