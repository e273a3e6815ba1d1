"""Jobs that misbehave on purpose; a module of its own, so that workers can import it."""

import os
import signal
import time
from pathlib import Path

from surefoot.errors import RunError


def square(x: int) -> int:
    return x * x


def environment(name: str) -> tuple[int, str | None]:
    return os.getpid(), os.environ.get(name)


def die_once(job: tuple[str, int]) -> int:
    """Kills its own process the first time it is run, and tells so by a file."""
    folder, x = job
    if once(Path(folder) / f"died-{x}"):
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def poison(x: int) -> int:
    """Job 2 takes every worker with it."""
    if x == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def refuse(x: int) -> int:
    if x == 1:
        raise RunError("step 3: reward nan is not finite", partial=[1, 2])
    return x


def slow_square(job: tuple[str, int, float]) -> int:
    """Leaves a file for each time it has begun."""
    folder, x, seconds = job
    (Path(folder) / f"{x}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(seconds)
    return x * x


def jax_sum(n: int) -> float:
    import jax
    import jax.numpy as jnp

    return float(jax.random.normal(jax.random.key(n), (500,)).sum() + jnp.float32(0.1))


def once(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
