"""What a worker process does before it runs its first job, on any engine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

# XLA reads NPROC when it starts, NumPy's libraries the others when they are imported: they must
# be there before the process is. One thread each: parallel is what the workers are.
ENVIRONMENT = {
    "NPROC": "1",
    "PYTHONSAFEPATH": "1",  # not the working directory: what lies there is no part of us
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# Of another machine's JAX: what changes numbers must come along, a directory of ours must not.
_NOT_SHARED = ("JAX_COMPILATION_CACHE_DIR",)
MODULE_PATHS: list[str] = []
"""Where modules of the user's own environments are; workers look there once JAX has started."""


def remote_environment() -> dict[str, str]:
    """For workers that do not inherit the environment of this process."""
    ours = {name: value for name, value in os.environ.items() if name.startswith(("JAX_", "XLA_"))}
    return {k: v for k, v in ours.items() if k not in _NOT_SHARED} | ENVIRONMENT


def begin() -> None:
    """Settings of JAX that have no variable of their own."""
    import jax

    # A step waits for its action anyway: handing it to another thread only costs.
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def begin_local(parent: int, module_paths: Sequence[str] = ()) -> None:
    """A worker process leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    sys.path[:] = [path for path in sys.path if path not in module_paths]
    begin()
    if module_paths:
        import jax

        jax.local_devices()  # its plugins are not looked for in directories of the user's
        sys.path.extend(module_paths)


def _leave_with(parent: int) -> None:
    """A killed parent cannot say goodbye, and a trial may take hours."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


class Worker:
    """The actor of the Ray engine: a process that keeps what it has imported and compiled."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        begin()
        self._function = function

    def versions(self) -> dict[str, str]:
        return versions()

    def run(self, job: Any) -> tuple[Exception | None, Any]:
        """The job's error is a result like any other: what Ray raises is about the worker."""
        try:
            return None, self._function(job)
        except Exception as error:
            return error, None


def versions() -> dict[str, str]:
    """What must agree between machines for their results to."""
    return {name: metadata.version(name) for name in ("surefoot", "jax", "jaxlib", "numpy")}
