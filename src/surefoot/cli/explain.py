"""`surefoot explain AGENT`: why an agent acts as it does, in words and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.cli.modules import AgentOptions, open_typed
from surefoot.cli.options import parse
from surefoot.errors import InputError, at_least, require

ABOUT = (
    "Why an agent acts as it does on one observation: each action's return distribution, its "
    "cumulative quantile curve, its dispersion space, and who decided."
)
MOST = 400  # particles that stand for columns of unequal lengths


@dataclass(frozen=True)
class ExplainOptions(AgentOptions):
    obs: str | None = None
    """The observation: 36 for a state, 0.1,0,0,0 for numbers; by default the first one."""
    state: int | None = None
    """The same for a state, as a number."""
    policy: str | None = None
    """Decide by this one instead of the agent's evaluation policy: ssd:5e-4, cvar:0.25."""
    returns: Path | None = None
    """Instead of an agent: a CSV or Parquet file, one column of returns per action."""
    seed: int = 0
    """Of the environment's first observation, and of the draw between equals in --returns."""
    out: Path | None = None
    """The picture; an earlier one is replaced. By default figures/explanation.png of the run, or
    beside the file."""


def main(words: list[str]) -> int:
    options = parse(ExplainOptions, words, "surefoot explain", ABOUT)
    if (options.agent is None) == (options.returns is None):
        raise InputError(
            "explain: name an agent's file or run directory, or --returns FILE "
            "(surefoot explain --help)"
        )
    if options.obs is not None and options.state is not None:
        raise InputError("explain: name --obs or --state, not both")
    at_least(0, seed=options.seed)
    require("explain's picture", "report", "matplotlib")
    explanation, title = _of_returns(options) if options.returns else _of_agent(options, words)
    from surefoot.plots import draw_decision, render
    from surefoot.runs.files import atomic_write

    print(title)
    print(explanation)
    png, _ = render(draw_decision(explanation, title))
    out = options.out or default_place(options.returns or options.agent)
    print(f"\ndrawn in {atomic_write(out, png)}")
    return 0


def default_place(source: Any, name: str = "explanation.png") -> Path:
    """In the run that the agent belongs to; beside a file that belongs to none."""
    from surefoot.runs.files import inside

    for place in (source, *source.parents[:2]):
        if (place / "config.json").is_file() or (place == source and place.is_dir()):
            return inside(place, f"figures/{name}")
    return source.with_name(f"{source.stem}.{name}")


def _of_agent(options: ExplainOptions, words: list[str]) -> tuple[Any, str]:
    from surefoot.agents.decisions import beginning
    from surefoot.agents.explain import observation_text

    agent = open_typed(options, words)
    text = str(options.state) if options.state is not None else options.obs
    obs, mask = beginning(agent, options.seed) if text is None else (_read(text, agent), None)
    explanation = agent.explain(obs, options.policy, action_masks=mask)
    spec = getattr(agent.env, "spec", None)
    where = f"{spec.id}, " if spec else ""
    first = f" (the first, seed {options.seed})" if text is None else ""
    seen = f"{where}observation {observation_text(obs)}{first}"
    return explanation, f"{seen}, decided by {explanation.policy}"


def _of_returns(options: ExplainOptions) -> tuple[Any, str]:
    import jax
    import numpy as np

    from surefoot.agents.adapters.libraries import equal_particles
    from surefoot.agents.explain import explain
    from surefoot.comparison import read_returns
    from surefoot.policies import policy_named

    assert options.returns is not None
    if options.env or options.obs or options.state is not None:
        raise InputError("explain: --env, --obs and --state belong to an agent, not to --returns")
    columns = read_returns(options.returns)
    lengths, note = {len(column) for column in columns.values()}, ""
    if len(lengths) > 1:
        size = min(MOST, max(lengths))
        note = f"; columns of unequal lengths as {size} equally likely values each"
        z = np.stack([equal_particles(c, np.full(len(c), 1 / len(c)), size)
                      for c in columns.values()])  # fmt: skip
    else:
        z = np.stack(list(columns.values()))
    policy = policy_named(options.policy or "ssd")
    rows = np.asarray([len(column) for column in columns.values()])
    key = jax.random.key(options.seed)
    explanation = explain(z, policy, key, n=rows, names=tuple(columns))
    return explanation, f"{options.returns.name}, decided by {explanation.policy}{note}"


def _read(text: str, agent: Any) -> Any:
    """`36` or `14,10,0` for whole numbers, `0.1,0,0,0` for the others."""
    import numpy as np
    from gymnasium.spaces import Box

    words = [word for word in text.replace(" ", ",").split(",") if word]
    try:
        values = [float(word) for word in words]
    except ValueError:
        raise InputError(f"obs = {text!r}: write numbers with commas between them") from None
    if not values:
        raise InputError("obs is empty: write numbers with commas between them")
    if isinstance(agent.observation_space, Box):
        return np.asarray(values, np.float32)
    if not all(value.is_integer() for value in values):  # infinity is none either
        raise InputError(f"obs = {text!r}: a state is made of whole numbers")
    numbers = tuple(int(value) for value in values)
    return numbers[0] if len(numbers) == 1 else numbers
