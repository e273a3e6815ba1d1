"""The public surface as text: every name of `surefoot` with its parameters, the methods of its
classes, every command.

python tests/cli/surface.py > tests/cli/surface-0.2.0.txt      # at a release
"""

import inspect

import surefoot as sf
from surefoot.cli import COMMANDS


def surface() -> dict[str, str]:
    """What a name can be called with, by name; methods as `Class.name`, commands as
    `surefoot NAME`."""
    found = {}
    for name in sf.__all__:
        value = getattr(sf, name)
        found[name] = ""
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception | int)):
            found[name] = parameters(value)
        if inspect.isclass(value):
            found |= {f"{name}.{method}": words for method, words in methods(value).items()}
    return found | {f"surefoot {name}": "" for name in COMMANDS}


def methods(kind: type) -> dict[str, str]:
    """Public methods and properties that surefoot itself defines."""
    found = {}
    for base in kind.__mro__:
        if base.__module__.startswith("surefoot"):
            for name, value in vars(base).items():
                inner = getattr(value, "__func__", value)  # of class and static methods
                if not name.startswith("_") and (inspect.isfunction(inner) or _reads(value)):
                    found.setdefault(name, "" if _reads(value) else parameters(inner))
    return found


def _reads(value: object) -> bool:
    return isinstance(value, property) or type(value).__name__ == "cached_property"


def parameters(value: object) -> str:
    return " ".join(inspect.signature(value).parameters)


def lines() -> list[str]:
    return [f"{name}: {words}".rstrip() for name, words in sorted(surface().items())]


if __name__ == "__main__":
    print("\n".join(lines()))
