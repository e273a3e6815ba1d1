"""Names that are imported when they are first used (PEP 562): what needs none of them does not wait
for JAX."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `names` lists by submodule what it holds, `modules` is which
    submodule an attribute stands for."""
    home = {name: module for module, own in names.items() for name in own.split()}

    def find(name: str) -> Any:
        if modules and name in modules:
            return importlib.import_module(f"{package}.{modules[name]}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)  # so that this is not called for it again
        return value

    return find
