"""Where results come from: versions, seeds, command; nothing of the machine or its user."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import surefoot
from surefoot.runs.files import plain, portable_path

PACKAGES = ("jax", "jaxlib", "numpy", "gymnasium", "scipy", "optax")
_ADDRESS = re.compile(
    r"[\w+.-]+://.*"  # ray://head:10001
    r"|[\w.-]+@[\w.-]+.*"  # somebody@somewhere
    r"|\d{1,3}(\.\d{1,3}){3}(:\d+)?"  # 10.0.0.7:6379
    r"|[A-Za-z][\w.-]*:\d{4,5}"  # head:6379
)
_ADDRESS_OPTIONS = ("--address", "--host")
_NO_HOST = ("auto", "local", "")


def provenance(seeds: Any, command: Sequence[str] | None = None) -> dict[str, Any]:
    """What `provenance.json` holds; `command` is this process's by default."""
    versions = {"surefoot": surefoot.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {
        "versions": versions,
        "platform": f"{platform.system()} {platform.machine()}",
        "seeds": plain(seeds, where="seeds"),
        "command": portable_command(sys.argv if command is None else command),
    }


def portable_command(words: Sequence[str]) -> list[str]:
    """The command line with directories, hosts and users taken out, fit to be published."""
    if not words:
        return []
    program = Path(words[0]).name
    out = ["surefoot" if program == "__main__.py" else program]
    previous = ""
    for word in words[1:]:
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        named = (option if equals else previous) in _ADDRESS_OPTIONS and value not in _NO_HOST
        out.append(option + equals + ("ADDRESS" if named else _portable_word(value)))
        previous = word
    return out


def _portable_word(word: str) -> str:
    if _ADDRESS.fullmatch(word):
        return "ADDRESS"
    if word.startswith(("/", "~", "..")):
        return portable_path(word)
    if re.match(r"[A-Za-z]:\\", word):
        return word.rpartition("\\")[2]
    home = os.path.expanduser("~")
    return word.replace(home, "~") if len(home) > 1 else word
