"""The command line. Every command is a module with `main(words) -> exit code`, loaded on use."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings

from surefoot import compile_cache
from surefoot.errors import InputError, RunError, SurefootError, unknown, visible

COMMANDS = {
    "train": "train an agent on a Gymnasium environment; stop and resume at any time",
    "evaluate": "let several policies act on what one agent has learned, and compare them",
    "explain": "why an agent acts as it does on one observation, in words and as a picture",
    "watch": "episodes of an agent as a GIF, with what it expects of each action",
    "compare": "compare columns of returns by stochastic dominance, with a test",
    "report": "one offline HTML page of a run, a comparison or a training",
    "reproduce": "run an experiment of the paper, or all of them",
    "suite": "tasks whose right action is known: who takes it, and at what price",
    "sweep": "train over a grid of settings and seeds",
    "demo": "see the sure path being taken: a small run of the main experiment",
}
CACHE = "--compile-cache"
INTERRUPTED = 130


def main(words: list[str] | None = None) -> int:
    """0 done, 1 failed, 2 wrong use or input, 3 a run had to stop, 130 interrupted."""
    words = list(sys.argv[1:] if words is None else words)
    try:
        _choose_cache(words)
        if not words or words[0] in ("-h", "--help"):
            print(_help())
            return 0 if words else 2
        if words[0] == "--version":
            from surefoot import __version__

            print(f"surefoot {__version__}")
            return 0
        if words[0] not in COMMANDS:
            raise unknown("command", words[0], COMMANDS)
        return importlib.import_module(f"surefoot.cli.{words[0]}").main(words[1:])
    except SurefootError as error:
        print(f"surefoot: {visible(error)}", file=sys.stderr)
        return error.exit_code
    except UnicodeError as error:
        print(f"surefoot: a text that is no Unicode: {visible(error)}", file=sys.stderr)
        return InputError.exit_code
    except MemoryError as error:
        print(f"surefoot: not enough memory: {visible(error)}", file=sys.stderr)
        return RunError.exit_code
    except KeyboardInterrupt:
        print("surefoot: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _choose_cache(words: list[str]) -> None:
    """Take `--compile-cache off` or `--compile-cache DIR` out of the words, before JAX starts."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == CACHE:
            if not equals and i + 1 == len(words):
                raise InputError(f"{CACHE} needs off, or a directory")
            compile_cache.configure(value if equals else words[i + 1])
            del words[i : i + (1 if equals else 2)]
            return


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: surefoot COMMAND [--help] ...",
            "",
            "Risk-aware distributional RL by second-order stochastic dominance.",
            "",
            *lines,
            "",
            "surefoot COMMAND --help shows the options of a command and their defaults.",
            f"{CACHE} off, or a directory: where compiled programs are kept between runs",
            f"(by default {_shown(compile_cache.default_directory())}).",
            "Exit codes: 0 done, 1 failed, 2 wrong use or input, 3 a run had to stop, "
            "130 interrupted.",
        ]
    )


def _shown(path: object) -> str:
    home = os.path.expanduser("~")
    return str(path).replace(home, "~", 1) if len(home) > 1 else str(path)


def plain_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning of ours in one line, without the place in the source that Python adds."""
    if issubclass(category, UserWarning) and filename.startswith(os.path.dirname(__path__[0])):
        return f"surefoot: {visible(message)}\n"
    return _with_place(message, category, filename, lineno, line)


_with_place = warnings.formatwarning


def run() -> None:
    """The installed script. Python itself must not look for modules in the working directory, in
    worker processes neither."""
    warnings.formatwarning = plain_warning
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows fewer letters
    sys.exit(main())
