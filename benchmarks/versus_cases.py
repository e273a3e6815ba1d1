"""What `benchmarks.versus` measures, written with public names only: it runs on any version.

`python -m benchmarks.versus_cases` is one side of the race. It reads the name of a case on each
line of its standard input and answers with one line of JSON: the first time a name comes up the
case is prepared (imports, compiling), after that one turn of it is measured.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import surefoot as sf


class Turn(NamedTuple):
    call: Callable[[], Any]
    number: int  # steps or calls in one `call`


Make = Callable[[], Turn]
CASES: dict[str, Make] = {}


def case(name: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        CASES[name] = make
        return make

    return add


# --- learning: CPU time of one environment step ----------------------------------------------


@case("tabular, compiled: risky cliff, SSD")
def tabular_compiled() -> Turn:
    ssd = sf.SSD(tolerance=5e-4)
    agent = sf.TabularAgent(
        "surefoot/RiskyCliff-v0", behaviour=ssd, evaluation=ssd, target="greedy:tolerance=0",
        initial_std=1.0, seed=0,
    )  # fmt: skip
    agent.learn(1_000)
    return Turn(lambda: agent.learn(5_000), 5_000)


@case("tabular, stepped: CliffWalking-v1, SSD")
def tabular_stepped() -> Turn:
    ssd = sf.SSD(tolerance=5e-4)
    agent = sf.TabularAgent(
        "CliffWalking-v1", behaviour=ssd, evaluation=ssd, target="greedy:tolerance=0", seed=0
    )
    agent.learn(200)
    return Turn(lambda: agent.learn(1_000), 1_000)


def _cartpole(loss: str, compiled: bool) -> Any:
    """The paper's settings: two layers of 256, batch 32, a replay of 10,000."""
    own = importlib.import_module(sf.NeuralConfig.__module__)  # 0.1.0 has nothing beyond the paper
    options = getattr(own, "PAPER", {}) | {"loss": loss, "particles": 2, "compiled": compiled}
    agent = sf.NeuralAgent("CartPole-v1", seed=0, **options)
    return agent.learn(600)  # compiles, passes learning_starts and a change of the target network


@case("neural, stepped: CartPole-v1, wgf")
def neural_wgf() -> Turn:
    agent = _cartpole("wgf", compiled=False)
    return Turn(lambda: agent.learn(300), 300)


@case("neural, stepped: CartPole-v1, qr")
def neural_qr() -> Turn:
    agent = _cartpole("qr", compiled=False)
    return Turn(lambda: agent.learn(300), 300)


@case("neural, compiled: CartPole-v1, wgf")
def neural_compiled_wgf() -> Turn:
    agent = _cartpole("wgf", compiled=True)
    return Turn(lambda: agent.learn(500), 500)


@case("neural, compiled: CartPole-v1, qr")
def neural_compiled_qr() -> Turn:
    agent = _cartpole("qr", compiled=True)
    return Turn(lambda: agent.learn(500), 500)


# --- checkpoints -----------------------------------------------------------------------------


@case("checkpoint of a replay of 10,000 transitions")
def checkpoint() -> Turn:
    agent, checkpoints = _cartpole("qr", compiled=False), sf.Checkpoints(_folder())
    return Turn(_repeat(lambda: checkpoints.save(agent), 10), 10)


@case("neural, stepped: qr, a checkpoint every 50 steps")
def checkpoints_while_learning() -> Turn:
    agent, checkpoints = _cartpole("qr", compiled=False), sf.Checkpoints(_folder(), every=50)
    return Turn(lambda: agent.learn(300, checkpoints=checkpoints), 300)


def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="surefoot-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# --- core: CPU time of one call --------------------------------------------------------------


def _repeat(call: Callable[[], Any], number: int) -> Callable[[], None]:
    def calls() -> None:
        for _ in range(number):
            call()

    return calls


def _numpy(
    function: str, *shapes: tuple[int, ...], number: int, more: tuple = (), dtype: Any = np.float64
) -> Make:
    def make() -> Turn:
        rng, apply = np.random.default_rng(0), getattr(sf, function)
        arrays = [np.sort(rng.normal(size=shape), axis=-1).astype(dtype) for shape in shapes]
        return Turn(_repeat(lambda: apply(*arrays, *more), number), number)

    return make


CASES |= {
    "ssd_dominates, NumPy, 64 pairs of 32": _numpy("ssd_dominates", (64, 32), (64, 32), number=500),
    "ssd_dominates, NumPy, 10,000 against 10,000": _numpy(
        "ssd_dominates", (10_000,), (10_000,), number=100
    ),
    "ssd_dominates, NumPy, float32, 64 pairs of 51": _numpy(
        "ssd_dominates", (64, 51), (64, 51), number=500, dtype=np.float32
    ),
    "ssd_dominates, NumPy, 1,000 against 1,500": _numpy(
        "ssd_dominates", (1_000,), (1_500,), number=100
    ),
    "fsd_dominates, NumPy, 64 pairs of 32": _numpy("fsd_dominates", (64, 32), (64, 32), number=500),
    "violation, NumPy, 64 pairs of 32": _numpy("violation", (64, 32), (64, 32), number=500),
    "wasserstein, NumPy, 64 pairs of 32": _numpy("wasserstein", (64, 32), (64, 32), number=500),
    "dominance_matrix, NumPy, 64 x 4 x 32": _numpy("dominance_matrix", (64, 4, 32), number=200),
    "dominance_matrix, NumPy, 6 x 200": _numpy("dominance_matrix", (6, 200), number=500),
    "quantile, NumPy, 64 x 32 at one level": _numpy(
        "quantile", (64, 32), number=1000, more=(0.25,)
    ),
    "cvar, NumPy, 64 x 32": _numpy("cvar", (64, 32), number=500, more=(0.25,)),
}


def _compiled(function: str, batch: int, n: int, number: int) -> Make:
    """A function of two samples, `jit(vmap(...))` over a batch in float32."""

    def make() -> Turn:
        import jax

        rng, apply = np.random.default_rng(0), getattr(sf, function)
        x, y = (
            jax.device_put(np.sort(rng.normal(size=(batch, n)) * 3, axis=-1).astype(np.float32))
            for _ in range(2)
        )
        program = jax.jit(jax.vmap(lambda x, y: jax.tree.leaves(apply(x, y))))
        return Turn(_repeat(lambda: jax.block_until_ready(program(x, y)), number), number)

    return make


CASES |= {
    "ssd_dominates, compiled, 64 pairs of 32": _compiled("ssd_dominates", 64, 32, 500),
    "ssd_dominates, compiled, 32 pairs of 200": _compiled("ssd_dominates", 32, 200, 200),
    "sinkhorn, compiled, 50 x 16": _compiled("sinkhorn", 50, 16, 50),
    "proximal_step, compiled, 50 x 16": _compiled("proximal_step", 50, 16, 20),
}


@case("dominance_matrix, compiled, 64 x 4 x 32")
def dominance_matrix_compiled() -> Turn:
    import jax

    z = np.random.default_rng(0).normal(size=(64, 4, 32)).astype(np.float32)
    rows, program = jax.device_put(z), jax.jit(sf.dominance_matrix)
    return Turn(_repeat(lambda: jax.block_until_ready(program(rows)), 200), 200)


def _decisions(policy: Any, *shape: int, ascending: bool = False) -> Make:
    def make() -> Turn:
        import jax

        z = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        z = np.sort(z, axis=-1) if ascending else z
        rows, key = jax.device_put(z), jax.random.key(0)
        decide = jax.jit(jax.vmap(lambda z: policy(z, key, assume_sorted=ascending)))
        return Turn(_repeat(lambda: jax.block_until_ready(decide(rows)), 200), 200)

    return make


CASES |= {
    "SSD policy, compiled, 64 x 4 actions x 32": _decisions(sf.SSD(tolerance=1e-3), 64, 4, 32),
    "SSD policy, compiled, 64 x 4 actions x 51": _decisions(sf.SSD(tolerance=1e-3), 64, 4, 51),
    "SSD policy, compiled, 32 x 6 actions x 200": _decisions(sf.SSD(tolerance=1e-3), 32, 6, 200),
    "SSD policy, compiled, sorted, 64 x 4 actions x 51": _decisions(
        sf.SSD(tolerance=1e-3), 64, 4, 51, ascending=True
    ),
    "SSD policy, compiled, sorted, 32 x 6 actions x 200": _decisions(
        sf.SSD(tolerance=1e-3), 32, 6, 200, ascending=True
    ),
    "greedy policy, compiled, 64 x 4 actions x 32": _decisions(
        sf.Greedy(tolerance=1e-3), 64, 4, 32
    ),
    "CVaR policy, compiled, 64 x 4 actions x 32": _decisions(sf.CVaR(0.25), 64, 4, 32),
}


@case("compare, 4 columns of 10,000, 1,000 resamples")
def comparison() -> Turn:
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(0.05 * i, 1 + 0.1 * i, 10_000) for i, name in enumerate("abcd")}
    return Turn(lambda: sf.compare(columns, resamples=1000), 1)


# --- the worker ------------------------------------------------------------------------------


def main() -> None:
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)  # no hand-over between threads
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a case prints is no answer
    prepared: dict[str, Turn] = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name in prepared:
                turn = prepared[name]
                begin = time.process_time()
                turn.call()
                answer = {"seconds": (time.process_time() - begin) / turn.number}
            else:
                prepared = {name: CASES[name]()}  # the one before is over: free its memory
                prepared[name].call()
                answer = {"ready": sf.__file__}
        except Exception as error:  # this version cannot do it; the others still count
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
