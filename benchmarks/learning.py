"""Learning curves side by side: our QR and WGF, and sb3-contrib's QR-DQN at the same settings.

    python -m benchmarks.learning [--seeds 5] [--only CartPole] [--method sb3] [--plot]
                                  [--gym results/gym]

Results are kept run by run in `benchmarks/results/learning.json`; a run that is there is not
done again, so an interrupted comparison continues. The figure is made from what is there. Our own
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
METHODS = ("qr", "wgf", "sb3")
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

    @property
    def eval_every(self) -> int:
        return self.steps // 20


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
)  # fmt: skip
EPISODES = 10
SHARED = (
    "particles", "learning_rate", "batch_size", "gamma", "replay_size", "learning_starts",
    "target_period", "update_every", "updates", "explore", "explore_start", "explore_steps",
    "step_size", "max_grad_norm", "n_step",
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
            eval_every=setting.eval_every, eval_episodes=EPISODES,
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
    import gymnasium as gym
    import torch
    from sb3_contrib import QRDQN

    torch.set_num_threads(1)
    env, separate = gym.make(setting.env_id), gym.make(setting.env_id)
    model = QRDQN(
        "MlpPolicy", env, learning_rate=setting.learning_rate, buffer_size=setting.replay_size,
        learning_starts=setting.learning_starts, batch_size=setting.batch_size,
        gamma=setting.gamma, train_freq=setting.update_every, gradient_steps=setting.updates,
        target_update_interval=setting.target_period, seed=seed, device="cpu",
        exploration_initial_eps=setting.explore_start, exploration_final_eps=setting.explore,
        max_grad_norm=setting.max_grad_norm, n_steps=setting.n_step,
        exploration_fraction=min(1.0, setting.explore_steps / setting.steps),
        policy_kwargs={"n_quantiles": setting.particles, "net_arch": [256, 256]},
    )  # fmt: skip
    steps: list[int] = []
    returns: list[float] = []
    start = time.process_time()

    def look(*_: object) -> bool:
        if model.num_timesteps % setting.eval_every == 0:
            steps.append(model.num_timesteps)
            returns.append(_evaluate(model, separate, seed + 10_000))
        return True

    model.learn(setting.steps, callback=look)
    cpu = time.process_time() - start
    return {"steps": steps, "returns": returns, "cpu_seconds": cpu}


def _evaluate(model: Any, env: Any, seed: int) -> float:
    total = 0.0
    for episode in range(EPISODES):
        obs, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(int(action))
            total, over = total + float(reward), terminated or truncated
    return total / EPISODES


def collect(
    settings: tuple[Setting, ...], methods: tuple[str, ...], seeds: int, gym: Path | None
) -> dict[str, Any]:
    from surefoot.runs.files import atomic_write, json_bytes, read_json
    from surefoot.runs.progress import progress

    path = RESULTS / "learning.json"
    kept = read_json(path) if path.exists() else {"runs": {}}
    jobs = [(s, m, k) for s in settings for k in range(seeds) for m in methods]
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


def plot(kept: dict[str, Any]) -> Path:
    import numpy as np

    from surefoot.core.stats import interquartile_mean
    from surefoot.plots import legend, new_figure, render, styles
    from surefoot.runs.files import atomic_write

    settings = [s for s in SETTINGS if any(r["setting"] == s.name for r in kept["runs"].values())]
    looks = styles(["qr", "wgf", "sb3"])
    figure, axes = new_figure(
        1, len(settings), size=(4.4 * len(settings), 3.9),
        title="Evaluation return: thin lines are seeds, thick the interquartile mean",
    )  # fmt: skip
    for ax, setting in zip(np.ravel(axes), settings, strict=True):
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
            ax.plot(steps, middle, color=look.color, linestyle=look.linestyle, label=label)
        ax.set_title(setting.name)
        ax.set_xlabel("environment steps")
        legend(ax, fontsize=8)
    np.ravel(axes)[0].set_ylabel("return, 10 greedy episodes")
    png, _ = render(figure)
    return atomic_write(RESULTS / "learning.png", png)


def ends(kept: dict[str, Any], setting: Setting, method: str) -> list[float]:
    """Mean over the last fifth of the evaluations, by seed."""
    import numpy as np

    runs = _runs(kept, setting, method)
    return [float(np.mean(r["returns"][-len(r["returns"]) // 5 :])) for r in runs]


def _runs(kept: dict[str, Any], setting: Setting, method: str) -> list[dict[str, Any]]:
    found = [
        r for r in kept["runs"].values() if (r["setting"], r["method"]) == (setting.name, method)
    ]
    return sorted(found, key=lambda run: run["seed"])


def table(kept: dict[str, Any]) -> str:
    """Final returns of every method, then what follows for ours beside sb3-contrib's."""
    import numpy as np

    from surefoot.core.stats import interquartile_mean, welch

    lines = [
        "| setting | steps | method | IQM of last fifth | by seed | CPU s a run |",
        "|---|---|---|---|---|---|",
    ]
    words = [
        "",
        "| setting | ours minus sb3-contrib | 95 % interval | p (Welch) |",
        "|---|---|---|---|",
    ]
    for setting in SETTINGS:
        found = {method: ends(kept, setting, method) for method in METHODS}
        for method, values in found.items():
            if values:
                seeds = ", ".join(f"{value:.0f}" for value in values)
                spent = [r.get("cpu_seconds", np.nan) for r in _runs(kept, setting, method)]
                cpu = "" if np.isnan(spent).any() else f"{np.mean(spent):.0f}"
                lines.append(
                    f"| {setting.name} | {setting.steps} | {NAMES[method]} | "
                    f"{interquartile_mean(values):.1f} | {seeds} | {cpu} |"
                )
        for method in ("qr", "wgf"):
            if min(len(found[method]), len(found["sb3"])) > 1:
                test = welch(np.asarray(found[method]), np.asarray(found["sb3"]))
                gap = test.interval
                words.append(
                    f"| {setting.name}, {NAMES[method]} | {gap.mean:+.1f} | "
                    f"{gap.low:.1f} to {gap.high:.1f} | {test.p_value:.2g} |"
                )
    return "\n".join(lines + words)


def main() -> None:
    from surefoot.runs.files import atomic_write

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="settings whose name contains this")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--steps", type=int, help="instead of the setting's own")
    parser.add_argument("--gym", type=Path, help="folder of a finished `surefoot reproduce gym`")
    parser.add_argument("--plot", action="store_true", help="only draw what is there")
    options = parser.parse_args()
    chosen = tuple(s for s in SETTINGS if options.only in s.name)
    if options.steps:
        chosen = tuple(replace(s, steps=options.steps) for s in chosen)
    methods = tuple(options.method or METHODS)
    kept = collect(chosen, methods, 0 if options.plot else options.seeds, options.gym)
    print(table(kept))
    atomic_write(RESULTS / "learning.md", (table(kept) + "\n").encode())
    print(plot(kept))


if __name__ == "__main__":
    main()
