"""Learning curves side by side: our QR and WGF, and sb3-contrib's QR-DQN at the same settings.

    python -m benchmarks.learning [--seeds 5] [--only CartPole] [--method sb3] [--plot]
                                  [--gym results/gym] [--out DIR]

Results are kept run by run in `benchmarks/results/learning.json`; a run that is there is not
done again, so an interrupted comparison continues. The figure is made from what is there.
`--steps 300 --seeds 1 --out DIR` tries whether everything works. Our own
runs have the settings and seeds of `surefoot reproduce gym`; `--gym` takes them from such a run
where it has them, since training again would give the same numbers.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("NPROC", "1")
RESULTS = Path(__file__).parent / "results"
METHODS, PAIR = ("qr", "wgf", "sb3"), ("qr", "sb3")
NAMES = {"qr": "surefoot QR", "wgf": "surefoot WGF", "sb3": "sb3-contrib QR-DQN"}


@dataclass(frozen=True)
class Setting:
    """Hyper-parameters all three methods are given."""

    name: str
    env_id: str
    steps: int
    note: str = "paper's settings"
    compiled: bool = False
    particles: int = 2
    learning_rate: float = 1e-3
    batch_size: int = 32
    gamma: float = 0.99
    replay_size: int = 10_000
    learning_starts: int = 100
    target_period: int = 100
    update_every: int = 1
    updates: int = 1
    explore: float = 0.1
    explore_start: float = 0.1
    explore_steps: int = 1
    n_step: int = 1
    max_grad_norm: float | None = 1.0
    step_size: float = 1.0  # of WGF only
    hidden: tuple[int, ...] = (256, 256)
    wrapper: tuple[str, ...] = ()
    picture: bool = False
    methods: tuple[str, ...] = METHODS
    margin: float = 0.0  # a tenth of the range of returns that matters; chosen beforehand
    adam_eps: float = 0.01 / 32  # sb3-contrib's is 0.01 / batch_size
    evaluations: int = 20
    episodes: int = 10

    @property
    def eval_every(self) -> int:
        return self.steps // self.evaluations

    def tried(self, steps: int) -> Setting:
        """The same in so few steps, to see whether it works."""
        begin = min(self.learning_starts, steps // 2)
        return replace(self, steps=steps, learning_starts=begin, evaluations=2, episodes=2)


SETTINGS = (
    Setting("CartPole, paper", "CartPole-v1", 30_000, compiled=True),
    Setting("MountainCar, paper", "MountainCar-v0", 60_000, compiled=True),
    Setting(
        "MountainCar, more exploration", "MountainCar-v0", 120_000, "rl-zoo's, three-step returns",
        compiled=True, learning_rate=4e-3, batch_size=128, gamma=0.98, learning_starts=1000,
        target_period=600, update_every=16, updates=8, explore=0.07, explore_start=1.0,
        explore_steps=24_000, n_step=3,
    ),
    Setting("LunarLander, paper", "LunarLander-v3", 60_000),
    # Of others. Is our QR at least as good? What is bad and what is good is known of each:
    # Acrobot -500 and -80; LavaGap 0 and 1; highway 0 and 30 steps of 1; Breakout 0 and 10.
    Setting(
        "Acrobot", "Acrobot-v1", 30_000, "rl-zoo's, 3 tenths of the steps", particles=25,
        learning_rate=6.3e-4, batch_size=128, replay_size=50_000, target_period=250, update_every=4,
        updates=4, explore_start=1.0, explore_steps=6_000, max_grad_norm=10.0, methods=PAIR,
        margin=42.0, adam_eps=0.01 / 128,
    ),
    Setting(
        "LavaGap", "minigrid:MiniGrid-LavaGapS5-v0", 20_000,
        "three actions, a view of wall, goal and lava", wrapper=("benchmarks.tasks:Lava",),
        particles=25, learning_rate=5e-4, batch_size=64, gamma=0.95, replay_size=20_000,
        learning_starts=1_000, target_period=500, update_every=4, updates=2, explore=0.05,
        explore_start=1.0, explore_steps=10_000, n_step=3, max_grad_norm=10.0, methods=PAIR,
        margin=0.1, adam_eps=0.01 / 64,
    ),
    Setting(
        "highway-fast", "highway_env:highway-fast-v0", 3_000,
        "highway-env's own for DQN, 3 twentieths of the steps: one takes 50 ms",
        particles=25, learning_rate=5e-4, gamma=0.8, replay_size=15_000, learning_starts=200,
        target_period=50, explore=0.05, explore_start=1.0, explore_steps=1_000, max_grad_norm=10.0,
        methods=PAIR, margin=3.0, evaluations=4, episodes=20,
    ),
    Setting(
        "MinAtar Breakout", "benchmarks.tasks:MinAtar/Breakout-v1", 60_000,
        "the MinAtar paper's network", wrapper=("benchmarks.tasks:Fresh",), picture=True,
        particles=25, hidden=(128,), learning_rate=5e-4, replay_size=60_000, learning_starts=2_000,
        target_period=1_000, update_every=4, explore_start=1.0, explore_steps=15_000,
        max_grad_norm=10.0, methods=PAIR, margin=1.0,
    ),
)  # fmt: skip
SHARED = (
    "particles", "learning_rate", "batch_size", "gamma", "replay_size", "learning_starts",
    "target_period", "update_every", "updates", "explore", "explore_start", "explore_steps",
    "step_size", "max_grad_norm", "n_step", "hidden", "adam_eps",
)  # fmt: skip


def ours(setting: Setting, loss: str, seed: int) -> dict[str, Any]:
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    from surefoot.agents.neural.config import PAPER, NeuralConfig
    from surefoot.training.train import Training
    from surefoot.training.trials import run_training

    config = NeuralConfig(
        **PAPER | {"loss": loss} | {name: getattr(setting, name) for name in SHARED}
    )
    start = time.process_time()
    result = run_training(
        Training(
            setting.env_id, config, setting.steps, seed, setting.compiled,
            wrapper=setting.wrapper, eval_every=setting.eval_every, eval_episodes=setting.episodes,
        )
    )  # fmt: skip
    curve = result.returns.mean(axis=1).tolist()
    spent = time.process_time() - start
    return {"steps": result.steps.tolist(), "returns": curve, "cpu_seconds": spent}


def from_gym(folder: Path, setting: Setting, loss: str, seed: int) -> dict[str, Any] | None:
    """The run of `surefoot reproduce gym` with these very settings, if there is one."""
    import polars

    from surefoot.agents.neural.config import PAPER, NeuralConfig
    from surefoot.paper.control import TASKS
    from surefoot.paper.gym import GymConfig, make_trials

    task = next(name for name, about in TASKS.items() if about.env_id == setting.env_id)
    solving = setting.explore_start > setting.explore
    path = folder / f"{task}{'-exploring' if solving else ''}.{loss}-{seed}.parquet"
    if not path.exists():
        return None
    trials = make_trials(GymConfig(), task, setting.steps, solving)
    (like,) = [t for t in trials if (t.config.loss, t.seed) == (loss, seed)]
    ours = {name: getattr(setting, name) for name in SHARED}
    if not solving:  # a constant rate, said in two ways
        ours |= {"explore_start": None, "explore_steps": NeuralConfig().explore_steps}
    assert like.config == NeuralConfig(**PAPER | {"loss": loss} | ours), path
    frame = polars.read_parquet(path)
    assert frame["step"].to_list() == list(
        range(setting.eval_every, setting.steps + 1, setting.eval_every)
    )
    return {"steps": frame["step"].to_list(), "returns": frame["return"].to_list()}


def theirs(setting: Setting, seed: int) -> dict[str, Any]:
    import torch
    from sb3_contrib import QRDQN

    from benchmarks.tasks import torch_convolution
    from surefoot.envs.making import made_env

    torch.set_num_threads(1)
    env, separate = (made_env(setting.env_id, setting.wrapper) for _ in range(2))
    layers: dict[str, Any] = {"n_quantiles": setting.particles, "net_arch": list(setting.hidden)}
    if setting.picture:
        layers["features_extractor_class"] = torch_convolution()
    model = QRDQN(
        "MlpPolicy", env, learning_rate=setting.learning_rate, buffer_size=setting.replay_size,
        learning_starts=setting.learning_starts, batch_size=setting.batch_size,
        gamma=setting.gamma, train_freq=setting.update_every, gradient_steps=setting.updates,
        target_update_interval=setting.target_period, seed=seed, device="cpu",
        exploration_initial_eps=setting.explore_start, exploration_final_eps=setting.explore,
        max_grad_norm=setting.max_grad_norm, n_steps=setting.n_step,
        exploration_fraction=min(1.0, setting.explore_steps / setting.steps),
        policy_kwargs=layers,
    )  # fmt: skip
    steps: list[int] = []
    returns: list[float] = []
    start = time.process_time()

    def look(*_: object) -> bool:
        if model.num_timesteps % setting.eval_every == 0:
            steps.append(model.num_timesteps)
            returns.append(_evaluate(model, separate, seed + 10_000, setting.episodes))
        return True

    model.learn(setting.steps, callback=look)
    cpu = time.process_time() - start
    return {"steps": steps, "returns": returns, "cpu_seconds": cpu}


def _evaluate(model: Any, env: Any, seed: int, episodes: int) -> float:
    total = 0.0
    for episode in range(episodes):
        obs, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(int(action))
            total, over = total + float(reward), terminated or truncated
    return total / episodes


def collect(
    settings: tuple[Setting, ...],
    methods: tuple[str, ...],
    seeds: int,
    gym: Path | None,
    out: Path,
) -> dict[str, Any]:
    from surefoot.runs.files import atomic_write, json_bytes, read_json
    from surefoot.runs.progress import progress

    path = out / "learning.json"
    kept = read_json(path) if path.exists() else {"runs": {}}
    jobs = [(s, m, k) for s in settings for k in range(seeds) for m in methods if m in s.methods]
    with progress(len(jobs), "learning", "runs") as bar:
        for setting, method, seed in jobs:
            key = f"{setting.name} | {setting.steps} steps | {method} | seed {seed}"
            bar.note(key)
            if key not in kept["runs"]:
                run = from_gym(gym, setting, method, seed) if gym and method != "sb3" else None
                if run is None:
                    run = theirs(setting, seed) if method == "sb3" else ours(setting, method, seed)
                # Another process may have added runs meanwhile.
                kept = read_json(path) if path.exists() else {"runs": {}}
                about = {"setting": setting.name, "method": method, "seed": seed}
                kept["runs"][key] = about | {"env": setting.env_id, "note": setting.note} | run
                kept["versions"] = _versions()
                atomic_write(path, json_bytes(kept))
            bar.advance()
    return kept


def _versions() -> dict[str, str]:
    packages = ("jax", "optax", "gymnasium", "numpy", "sb3-contrib", "torch")
    return {name: importlib.metadata.version(name) for name in packages}


def plot(kept: dict[str, Any], settings: tuple[Setting, ...], out: Path) -> Path:
    import numpy as np

    from surefoot.core.bootstrap import interquartile_mean
    from surefoot.plots import legend, new_figure, render, styles
    from surefoot.runs.files import atomic_write

    known = [s for s in settings if any(_runs(kept, s, method) for method in METHODS)]
    looks, across = styles(["qr", "wgf", "sb3"]), min(4, len(known))
    rows = -(-len(known) // across)
    figure, axes = new_figure(
        rows, across, size=(4.4 * across, 3.9 * rows),
        title="Evaluation return: thin lines are seeds, thick the interquartile mean",
    )  # fmt: skip
    for ax in np.ravel(axes)[len(known) :]:
        ax.set_visible(False)
    for ax, setting in zip(np.ravel(axes), known, strict=False):
        for method in METHODS:
            runs = _runs(kept, setting, method)
            if not runs:
                continue
            look, steps = looks[method], np.asarray(runs[0]["steps"])
            curves = np.asarray([r["returns"] for r in runs])
            for curve in curves:
                ax.plot(steps, curve, color=look.color, alpha=0.25, linewidth=0.8)
            middle = [interquartile_mean(column) for column in curves.T]
            label = f"{NAMES[method]} ({len(runs)} seeds)"
            line = ":" if method == "sb3" else look.linestyle
            ax.plot(steps, middle, color=look.color, linestyle=line, label=label)
        ax.set_title(setting.name)
        ax.set_xlabel("thousands of environment steps")
        ax.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}")
        legend(ax, fontsize=8)
    np.ravel(axes)[0].set_ylabel("return, greedy episodes")
    png, _ = render(figure)
    return atomic_write(out / "learning.png", png)


def ends(kept: dict[str, Any], setting: Setting, method: str) -> list[float]:
    """Mean over the last fifth of the evaluations, by seed."""
    import numpy as np

    runs = _runs(kept, setting, method)
    return [float(np.mean(r["returns"][-len(r["returns"]) // 5 :])) for r in runs]


def _runs(kept: dict[str, Any], setting: Setting, method: str) -> list[dict[str, Any]]:
    wanted = (setting.name, method, setting.steps)
    runs = kept["runs"].values()
    found = [r for r in runs if (r["setting"], r["method"], r["steps"][-1]) == wanted]
    return sorted(found, key=lambda run: run["seed"])


def table(kept: dict[str, Any], settings: tuple[Setting, ...] = SETTINGS) -> str:
    """Final returns of every method, then what follows for ours beside sb3-contrib's."""
    import numpy as np

    from surefoot.core.bootstrap import interquartile_mean
    from surefoot.core.stats import equivalence, welch

    lines = [
        "| setting | steps | method | IQM of last fifth | by seed | CPU s a run |",
        "|---|---|---|---|---|---|",
    ]
    words = [
        "",
        "| setting | ours minus sb3-contrib | 95 % interval | p (Welch) | at least as good |",
        "|---|---|---|---|---|",
    ]
    for setting in settings:
        found = {method: ends(kept, setting, method) for method in METHODS}
        for method, values in found.items():
            if values:
                digits = 0 if max(map(abs, values)) >= 20 else 2
                seeds = ", ".join(f"{value:.{digits}f}" for value in values)
                spent = [r.get("cpu_seconds", np.nan) for r in _runs(kept, setting, method)]
                cpu = "" if np.isnan(spent).any() else f"{np.mean(spent):.0f}"
                lines.append(
                    f"| {setting.name} | {setting.steps} | {NAMES[method]} | "
                    f"{interquartile_mean(values):.{digits + 1}f} | {seeds} | {cpu} |"
                )
        for method in ("qr", "wgf"):
            if min(len(found[method]), len(found["sb3"])) > 1:
                test = welch(np.asarray(found[method]), np.asarray(found["sb3"]))
                gap, verdict = test.interval, ""
                digits = 1 if max(map(abs, found["sb3"])) >= 20 else 3
                if setting.margin:  # one-sided: worse by the margin or more?
                    worse = equivalence(
                        found[method], found["sb3"], setting.margin, paired=False
                    ).p_below
                    shown = "yes" if worse < 0.05 else "not shown"
                    verdict = f"{shown} (within {setting.margin:g}, p = {worse:.2g})"
                words.append(
                    f"| {setting.name}, {NAMES[method]} | {gap.mean:+.{digits}f} | "
                    f"{gap.low:.{digits}f} to {gap.high:.{digits}f} | {test.p_value:.2g} | "
                    f"{verdict} |"
                )
    return "\n".join(lines + words)


def main() -> None:
    from surefoot.runs.files import atomic_write

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="settings whose name contains this")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--steps", type=int, help="so few, to see whether it works")
    parser.add_argument("--gym", type=Path, help="folder of a finished `surefoot reproduce gym`")
    parser.add_argument("--plot", action="store_true", help="only draw what is there")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results are kept")
    options = parser.parse_args()
    known = tuple(s.tried(options.steps) if options.steps else s for s in SETTINGS)
    chosen = tuple(s for s in known if options.only in s.name)
    methods, seeds = tuple(options.method or METHODS), 0 if options.plot else options.seeds
    options.out.mkdir(parents=True, exist_ok=True)
    kept = collect(chosen, methods, seeds, options.gym, options.out)
    print(table(kept, known))
    atomic_write(options.out / "learning.md", (table(kept, known) + "\n").encode())
    print(plot(kept, known, options.out))


if __name__ == "__main__":
    main()
