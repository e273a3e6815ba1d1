"""Where XLA keeps compiled programs between runs: on by default, in the user's cache directory.

Compiling is most of what a short run costs. The directory is `$XDG_CACHE_HOME/surefoot/xla`, by
default `~/.cache/surefoot/xla` (the platform's own place on macOS and Windows). It may be removed
at any time. `SUREFOOT_COMPILE_CACHE=off`, or a directory of one's own, changes it, and so does
`surefoot --compile-cache`; where `JAX_COMPILATION_CACHE_DIR` is set, that is left alone.

Nothing here imports JAX: it reads its variables when it is imported, here and in worker processes.
A directory that cannot be made, is not the user's own or is open to others (a program is code) is
not used, and nothing is said about it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "SUREFOOT_COMPILE_CACHE"
OFF = ("off", "0", "no", "false", "none")
SHORTEST = "0.05"
"""Seconds of compiling below which a program is not worth a file."""
_DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
_set_here: set[str] = set()


def configure(choice: str | None = None) -> Path | None:
    """Choose the directory, "off" for none, and let JAX know; returns the one that is used.

    `choice` comes before the variable, and becomes it for worker processes.
    """
    for name in list(_set_here):  # an earlier choice of ours, not the user's
        os.environ.pop(name, None)
        _set_here.discard(name)
    if choice is not None:
        os.environ[VARIABLE] = choice
    choice = os.environ.get(VARIABLE, "")
    if os.environ.get(_DIRECTORY) or choice.lower() in OFF:
        return None
    directory = _usable(Path(choice).expanduser() if choice else None)
    if directory is None:
        return None
    for name, value in ((_DIRECTORY, str(directory)), (_SECONDS, SHORTEST)):
        if name not in os.environ:
            os.environ[name] = value
            _set_here.add(name)
    if "jax" in sys.modules:  # it has read its variables
        config = sys.modules["jax"].config
        if config.jax_compilation_cache_dir is None:
            config.update("jax_compilation_cache_dir", str(directory))
            config.update("jax_persistent_cache_min_compile_time_secs", float(os.environ[_SECONDS]))
    return directory


def default_directory() -> Path:
    """The platform's place for what can be made again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "surefoot" / "xla"


def _usable(directory: Path | None) -> Path | None:
    try:
        directory = (directory or default_directory()).absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = directory.stat()
        private = os.name == "nt" or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
        return directory if private and os.access(directory, os.R_OK | os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):  # read-only, a file in the way, no home at all
        return None
