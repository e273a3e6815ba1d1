"""`surefoot train ENV_ID`: a training run in a directory, to be stopped and resumed at will."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import shlex
import textwrap
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_type_hints

import tyro

from surefoot.cli.modules import allow_modules
from surefoot.cli.named_words import positional, values_of
from surefoot.cli.options import (
    EXISTING,
    flat,
    option_hints,
    parse,
    read_toml,
    subject,
    take_config,
)
from surefoot.errors import InputError, require, unknown, visible

TEXT = (
    "Train an agent on a Gymnasium environment. Ctrl-C saves and stops, and the same command "
    "takes it up again; the same command with more --steps goes on from the end."
)
KINDS = ("auto", "neural", "tabular")
RUNS = Path("runs")
PLACE = (tyro.conf.Positional, subject("ENV_ID"))

# title: name, type, default, words of the help: what is not a setting of the agent
OptionRow = tuple[str, Any, Any, str]
RUN: list[OptionRow] = [
    ("env", Annotated[str | None, *PLACE], None, "Id of the environment, also module:Id for one of "
     "your own; surefoot/CliffWalk-v0 and surefoot/RiskyCliff-v0 are surefoot's."),
    ("agent", Literal["auto", "neural", "tabular"], "auto", "auto: tabular where the observations "
     "are discrete, else neural. Each has settings of its own: --agent tabular --help."),
    ("steps", int, 50_000, "Environment steps in all; 1e5 is a number too."),
    ("seed", int, 0, "Seed of the network or table, of the environment and of every choice."),
    ("out", Path | None, None, "Run directory; runs/ENV-LOSS-seedSEED by default."),
    ("existing", Literal["error", "resume", "overwrite"], "resume", EXISTING),
    ("env_option", tyro.conf.UseAppendAction[tuple[str, ...]], (), "Argument of the environment: "
     "--env-option is_slippery=false; repeat it for more."),
    ("wrapper", tyro.conf.UseAppendAction[tuple[str, ...]], (), "Wrapper around the environment: "
     "--wrapper minigrid.wrappers:ImgObsWrapper; repeat it for more, the first is innermost."),
    ("on_fault", Literal["stop", "retry"], "stop", "When the environment raises or returns no "
     "number: stop with all that was learned, or go on in a new episode, up to ten times."),
]  # fmt: skip
COMPILED: OptionRow = (
    "compiled", bool, False, "Run the environment inside the compiled loop, 2 to 3 times as fast "
    "(CartPole-v1 and MountainCar-v0).",
)  # fmt: skip
LOGGING: list[OptionRow] = [
    ("eval_every", int | None, None, "Steps between evaluations without exploration; none by "
     "default."),
    ("eval_episodes", int, 10, "Episodes of each evaluation, and of the one at the end."),
    ("watch", tyro.conf.UseAppendAction[tuple[str, ...]], (), "Observation whose return "
     "distributions are saved: start, or numbers such as 0,0,0.05,0; repeat it for more."),
    ("watch_every", int, 1_000, "Steps between those."),
    ("checkpoint_every", int, 5_000, "Steps between checkpoints; the last three are kept."),
    ("tensorboard", bool, False, "Scalars for TensorBoard too, in the run directory."),
    ("wandb", str | None, None, "Project of Weights & Biases, kept offline; sync it later."),
]  # fmt: skip
# Settings of an agent under their headings in the help; the others stand under "learning".
HEADINGS = {
    "policy": "behaviour target evaluation explore explore_start explore_steps ensemble",
    "distribution": "loss particles kappa value_range initial_std reward_scale averaging",
    "proximal_loss": "step_size transport potential temperatures solver",
}


def main(words: list[str]) -> int:
    from surefoot.agents.neural.config import NeuralConfig
    from surefoot.agents.tabular.config import TabularConfig

    kind = agent_kind(words)
    config_class = TabularConfig if kind == "tabular" else NeuralConfig
    made = parse(options_of(kind, config_class), _env_first(words), "surefoot train", TEXT)
    options = SimpleNamespace(**flat(made))
    if options.env is None:
        raise InputError("train: name an environment, such as CartPole-v1 (surefoot train --help)")
    allow_modules([options.env], options.wrapper, words)
    _check_hooks(options)
    from surefoot.training.train import Training, train

    chosen = {f.name: getattr(options, f.name) for f in dataclasses.fields(config_class)}
    training = Training(
        env=options.env,
        config=config_class(**chosen),
        steps=options.steps,
        seed=options.seed,
        compiled=getattr(options, "compiled", False),
        env_options=dict(map(_env_option, options.env_option)),
        wrapper=options.wrapper,
        eval_every=options.eval_every,
        eval_episodes=options.eval_episodes,
        watch=tuple(map(_observation, options.watch)),
        watch_every=options.watch_every,
        checkpoint_every=options.checkpoint_every,
    )
    out = options.out or default_out(training)

    def hooks(directory: Path) -> list[Any]:
        return _hooks(options, directory, training)

    try:
        agent = train(
            training, out, existing=options.existing, hooks=hooks, on_fault=options.on_fault,
            show=True,
        )  # fmt: skip
    except InputError as error:
        if "another configuration" in str(error):
            raise InputError(f"{error}; choose another --out, or --existing overwrite") from None
        raise
    _print_summary(training, out, agent)
    return 0


def _print_summary(training: Any, out: Path, agent: Any) -> None:
    from surefoot.core.stats import Interval
    from surefoot.runs.directory import RunDir

    summary = RunDir.open(out).read_summary()
    print(f"{training.env}, {training.agent} agent, {training.config.loss}: "
          f"{agent.num_timesteps:,} steps, {summary['episodes']:,} episodes")  # fmt: skip
    for name, text in (
        ("training_return", f"return of the last {summary['last_episodes']} episodes, exploring"),
        ("evaluation_return", "return of the evaluation policy"),
    ):
        if summary.get(name):
            print(f"{text}: {Interval.from_dict(summary[name])}")
    for fault in summary["faults"]:
        print(f"went on after: {visible(fault)}")
    place, named = shlex.quote(str(out)), _to_name(training)
    print(f"agent, logs and checkpoints are in {visible(out)}; next: "
          f"{visible(f'surefoot evaluate {place}{named}, surefoot report {place}')}")  # fmt: skip


def _to_name(training: Any) -> str:
    """The options that `evaluate` needs beside the run: a run's file imports nothing."""
    env = [f"--env {training.env}"] if ":" in training.env else []
    return "".join(f" {word}" for word in [*env, *(f"--wrapper {w}" for w in training.wrapper)])


def default_out(training: Any) -> Path:
    name = training.env.rpartition(":")[2].replace("/", "-")
    return RUNS / f"{name}-{training.config.loss}-seed{training.seed}"


def _check_hooks(options: Any) -> None:
    """What is not installed is said before anything is made."""
    writer = find_spec("tensorboardX") or (find_spec("torch") and find_spec("tensorboard"))
    if options.tensorboard and not writer:
        raise InputError(
            "--tensorboard needs tensorboardX, or torch with tensorboard: "
            "pip install 'surefoot[tensorboard]'"
        )
    if options.wandb is not None:
        require("--wandb", "wandb", "wandb")


def _hooks(options: Any, out: Path, training: Any) -> list[Any]:
    from surefoot.runs.logs import TensorBoard, WeightsAndBiases

    hooks: list[Any] = []
    if options.tensorboard:
        hooks.append(TensorBoard(out / "tensorboard"))
    if options.wandb is not None:
        hooks.append(WeightsAndBiases(options.wandb, out, config=training.as_dict()))
    return hooks


# --- which agent, and its options --------------------------------------------------------------


def agent_kind(words: list[str]) -> str:
    """neural or tabular: as `--agent` says, or as the environment's observations ask for."""
    rest, source = take_config(words)
    stored = {} if source is None else read_toml(source)
    said = (values_of(rest, "--agent") or [stored.get("agent", "auto")])[-1]
    if said not in KINDS:
        raise unknown("agent", said, KINDS)
    at = _env_at(rest)
    env_id = stored.get("env") if at is None else rest[at]
    wrappers = [*_texts(stored, "wrapper"), *values_of(rest, "--wrapper")]
    allow_modules([env_id], wrappers, words)
    if said != "auto" or not isinstance(env_id, str):
        return "neural" if said == "auto" else said
    from surefoot.envs.making import suited_agent

    own = [*_texts(stored, "env_option"), *values_of(rest, "--env-option")]
    return suited_agent(env_id, wrappers, dict(map(_env_option, own)))


def _env_at(words: list[str]) -> int | None:
    """Where the environment stands among the words, whichever agent is to learn in it."""
    from surefoot.agents.neural.config import NeuralConfig
    from surefoot.agents.tabular.config import TabularConfig

    kinds = {"tabular": TabularConfig, "neural": NeuralConfig}
    hints = [option_hints(options_of(kind, config)) for kind, config in kinds.items()]
    return positional(words, dict(itertools.chain(*hints)))


def _env_first(words: list[str]) -> list[str]:
    """The environment before all options, so that none with several values takes it for one."""
    rest, source = take_config(words)
    at = _env_at(rest)
    first = [] if at is None else [rest.pop(at)]
    return [*first, *rest, *([] if source is None else ["--config", str(source)])]


def _texts(stored: dict[str, Any], name: str) -> list[str]:
    """A list of a file; what is none is complained about where all options are read."""
    value = stored.get(name)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def options_of(kind: str, config: type[Any]) -> type[Any]:
    """The common options and every field of the agent's configuration, policies by name; those
    that belong together in a dataclass of their own, for which the help has a frame."""
    hints, docs = get_type_hints(config, localns={"Policy": str}), field_docs(config)
    heading = {name: title for title, names in HEADINGS.items() for name in names.split()}
    groups: dict[str, list[OptionRow]] = {"policy": [], "distribution": [], "learning": []}
    for field in dataclasses.fields(config):
        row = (field.name, hints[field.name], field.default, docs[field.name])
        groups.setdefault(heading.get(field.name, "learning"), []).append(row)
    groups["logging"] = LOGGING
    own = [(name, made, dataclasses.field(default_factory=made))
           for name, rows in groups.items() for made in [_dataclass(name, rows)]]  # fmt: skip
    run = [*RUN, COMPILED] if kind == "neural" else RUN
    return _dataclass("TrainOptions", run, own)


def _dataclass(name: str, rows: list[OptionRow], more: Sequence[Any] = ()) -> type[Any]:
    fields = [(name, _helped(hint, text), value) for name, hint, value, text in rows]
    return dataclasses.make_dataclass(name, [*fields, *more], frozen=True)


def _helped(hint: Any, text: str) -> Any:
    return Annotated[hint, tyro.conf.arg(help=text)]


def field_docs(kind: type[Any]) -> dict[str, str]:
    """The text below each field of a dataclass, which Python itself does not keep."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    docs: dict[str, str] = {}
    for before, node in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            words = str(node.value.value) if text else ""  # type: ignore[attr-defined]
            docs[before.target.id] = " ".join(words.split())
    return docs


# --- words to values ---------------------------------------------------------------------------


def _env_option(text: str) -> tuple[str, Any]:
    """`name=value`, the value as TOML has it, or plain text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"env-option {text!r}: write it as name=value")
    try:
        return name, tomllib.loads(f"x = {value}")["x"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return name, value


def _observation(text: str) -> Any:
    """`start`, one whole number, or numbers separated by commas."""
    if text == "start":
        return text
    try:
        numbers = [ast.literal_eval(part.strip()) for part in text.split(",") if part.strip()]
    except (ValueError, SyntaxError):
        numbers = []
    if not numbers or any(type(n) not in (int, float) for n in numbers):
        raise InputError(f"watch: {text!r} is neither start nor numbers such as 0,0,0.05,0")
    return numbers[0] if len(numbers) == 1 else tuple(numbers)
