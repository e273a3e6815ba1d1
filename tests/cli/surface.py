"""The public surface as text: every name of `surefoot` with its parameters, every command.

python tests/cli/surface.py > tests/cli/surface-0.2.0.txt      # at a release
"""

import inspect

import surefoot as sf
from surefoot.cli import COMMANDS


def surface() -> dict[str, str]:
    """What a name can be called with, by name; commands as `surefoot NAME`."""
    found = {}
    for name in sf.__all__:
        value = getattr(sf, name)
        found[name] = ""
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception | int)):
            found[name] = " ".join(inspect.signature(value).parameters)
    return found | {f"surefoot {name}": "" for name in COMMANDS}


def lines() -> list[str]:
    return [f"{name}: {words}".rstrip() for name, words in sorted(surface().items())]


if __name__ == "__main__":
    print("\n".join(lines()))
