"""One progress display for all long work: bars on a terminal, plain lines anywhere else.

    with progress(5, "reproduce all", "experiments") as everything:
        for name in names:
            with progress(400, name, "episodes") as bar:  # joins the display that is open
                bar.advance(10)
                bar.note("ssd, mixture targets")
            everything.advance()

It writes to stderr, so that results on stdout can be piped.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.errors import InputError, unknown

Mode = Literal["auto", "bars", "lines", "silent"]
MODES = ("auto", "bars", "lines", "silent")
Clock = Callable[[], float]

RATE_WINDOW = 30.0
"""Seconds the rate looks back: long enough to be calm, short enough to forget compilation."""
KEPT_FINISHED = 8
"""Finished bars that stay on the terminal beside the running ones."""


class Task:
    """One count towards a total (or towards no known total), with its rate and time left."""

    def __init__(
        self, display: _Display, total: float | None, description: str, unit: str, start: float
    ) -> None:
        self.total, self.description, self.unit = total, description, unit
        self._start, self.done, self.text, self.state = start, start, "", "running"
        self._display = display
        self._began = self._ended = display.clock()
        self._history = deque([(self._began, start)])

    def advance(self, n: float = 1) -> None:
        """`n` more units are done."""
        if not n >= 0:
            raise InputError(f"progress can only advance: n is {n!r}")
        with self._display.lock:
            now = self._display.clock()
            self.done += n
            if len(self._history) > 1 and now - self._history[-1][0] < RATE_WINDOW / 100:
                self._history[-1] = (self._history[-1][0], self.done)  # bounds the memory
            else:
                self._history.append((now, self.done))
            # Keep the newest entry older than the window: the rate is measured from there.
            while len(self._history) > 2 and self._history[1][0] <= now - RATE_WINDOW:
                self._history.popleft()
        self._display.moved(self)

    def note(self, text: str) -> None:
        """Say beside the count what is going on; replaces the last note."""
        self.text = " ".join(str(text).split())
        self._display.moved(self)

    @property
    def elapsed(self) -> float:
        end = self._display.clock() if self.state == "running" else self._ended
        return end - self._began

    @property
    def rate(self) -> float | None:
        """Units a second, of late while running, over all once ended; None before any."""
        (first, counted), (_, done) = self._history[0], self._history[-1]
        # Up to now and not to the last advance, so that a stall lowers the rate.
        now = self._display.clock() if self.state == "running" else self._ended
        if self.state != "running":
            first, counted = self._began, self._start
        seconds, units = now - first, done - counted
        return units / seconds if seconds > 0 and units > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds to go, or None where that cannot be known."""
        if self.total is None or self.state != "running":
            return None
        rest = max(self.total - self.done, 0.0)
        rate = self.rate
        return 0.0 if rest == 0 else (rest / rate if rate else None)

    def line(self) -> str:
        """The state in one plain line."""
        head = {
            "running": self.count,
            "done": f"{self.count} done",
            "interrupted": f"interrupted at {self.count}",
            "failed": f"failed at {self.count}",
        }[self.state]
        parts = [f"{self.description}: {head}"]
        if self.total and self.state != "done":
            parts[0] += f" ({self.fraction:.0%})"
        if self.rate:
            parts.append(format_rate(self.rate))
        parts.append(f"{format_seconds(self.elapsed)} elapsed")
        if self.left is not None:
            parts.append(f"{format_seconds(self.left)} left")
        return ", ".join(parts) + (f" ({self.text})" if self.text else "")

    @property
    def count(self) -> str:
        total = "" if self.total is None else f"/{_number(self.total)}"
        return f"{_number(self.done)}{total} {self.unit}".rstrip()

    @property
    def fraction(self) -> float:
        return min(self.done / self.total, 1.0) if self.total else 1.0

    def _end(self, state: str) -> None:
        self._ended, self.state = self._display.clock(), state


class _Display:
    """What all tasks of a process share; a subclass shows them."""

    def __init__(self, console: Console, clock: Clock, every: float) -> None:
        self.console, self.clock, self.every = console, clock, every
        self.tasks: list[Task] = []
        self.lock = threading.RLock()  # workers' callbacks may advance from other threads

    def begin(self, task: Task) -> None:
        with self.lock:
            self.tasks.append(task)
        self.moved(task)

    def end(self, task: Task, state: str) -> None:
        with self.lock:
            task._end(state)

    def moved(self, task: Task) -> None:
        """A task changed."""

    def start(self) -> None:
        """The first task is about to begin."""

    def stop(self) -> None:
        """The last task has ended."""


class _Lines(_Display):
    """A line at the start, at most one every few seconds, and one at each task's end."""

    _last = float("-inf")

    def moved(self, task: Task) -> None:
        with self.lock:
            now = self.clock()
            if now - self._last >= self.every:
                self._last = now
                self._print(task)

    def end(self, task: Task, state: str) -> None:
        super().end(task, state)
        with self.lock:
            self._print(task)

    def _print(self, task: Task) -> None:
        # Not console.print: a log line must not be wrapped at the width of no terminal.
        self.console.file.write(task.line() + "\n")
        self.console.file.flush()


class _Bars(_Display):
    """A live table of bars."""

    def __init__(self, console: Console, clock: Clock, every: float) -> None:
        super().__init__(console, clock, every)
        # Prints go above the bars, but only a terminal's: a piped stdout must stay stdout.
        self._live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=5,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=True,
        )

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        self._live.stop()  # draws the last state, shows the cursor again

    def render(self) -> RenderableType:
        with self.lock:
            finished = [task for task in self.tasks if task.state != "running"]
            hidden = set(map(id, finished[:-KEPT_FINISHED]))
            shown = [task for task in self.tasks if id(task) not in hidden]
            table = Table.grid(padding=(0, 1))
            bar_width = min(max(self.console.width - 80, 8), 30)
            for task in shown:
                table.add_row(*_cells(task, bar_width))
            notes = [task.text for task in shown if task.text and task.state == "running"]
            # Below the bars, where even a narrow terminal has room for it.
            return Group(table, *(_text(f"  {note}", "dim") for note in notes[-1:]))


def _cells(task: Task, bar_width: int) -> list[RenderableType]:
    marks = {"running": "", "done": "✓ ", "interrupted": "interrupted: ", "failed": "failed: "}
    style = {"running": "bold", "done": "green"}.get(task.state, "red")
    pulse = task.total is None and task.state == "running"
    total = None if pulse else (task.total or 1)
    bar = ProgressBar(total, task.fraction * (total or 1), bar_width, animation_time=task.elapsed)
    times = format_seconds(task.elapsed)
    if task.left is not None:
        times += f", {format_seconds(task.left)} left"
    return [
        _text(marks[task.state] + task.description, style),
        bar,
        _text(task.count, justify="right"),
        _text(format_rate(task.rate) if task.rate else "", "cyan"),
        _text(times, "magenta"),
    ]


def _text(text: str, style: str = "", justify: Any = None) -> Text:
    return Text(text, style, justify=justify, no_wrap=True, overflow="ellipsis")


_OPEN: ContextVar[_Display | None] = ContextVar("surefoot_progress", default=None)


@contextmanager
def progress(
    total: float | None,
    description: str,
    unit: str = "",
    *,
    start: float = 0,
    mode: Mode = "auto",
    console: Console | None = None,
    clock: Clock = time.monotonic,
    every: float = 5.0,
) -> Iterator[Task]:
    """Show the progress of the block; gives a `Task` to `advance` and to `note` on.

    `total` may be None where it is not known; `start` is what a resumed run had already done
    (it does not count towards the rate). `mode` "auto" takes bars on a terminal and lines,
    one every `every` seconds, elsewhere. Inside another `progress` block the task joins that
    display, whatever its own mode; "silent" always stays silent.
    """
    if mode not in MODES:
        raise unknown("progress mode", mode, MODES)
    if total is not None and not total >= 0:
        raise InputError(f"total must be a number of units or None, not {total!r}")
    outer = _OPEN.get()
    joins = outer is not None and mode != "silent"
    display = outer if outer is not None and joins else _display(mode, console, clock, every)
    task = Task(display, total, description, unit, start)
    token = _OPEN.set(display)
    state = "failed"
    try:
        if not joins:
            display.start()
        display.begin(task)
        yield task
        state = "done"
    except (KeyboardInterrupt, GeneratorExit):
        state = "interrupted"
        raise
    finally:
        _OPEN.reset(token)
        try:
            display.end(task, state)
        finally:
            if not joins:
                display.stop()


def _display(mode: Mode, console: Console | None, clock: Clock, every: float) -> _Display:
    console = console or Console(stderr=True)
    if mode == "auto":
        mode = "bars" if console.is_terminal and not console.is_dumb_terminal else "lines"
    kinds: dict[str, type[_Display]] = {"bars": _Bars, "lines": _Lines, "silent": _Display}
    return kinds[mode](console, clock, every)


def format_seconds(seconds: float) -> str:
    """5.4 -> 0:05, 3725 -> 1:02:05."""
    minutes, rest = divmod(int(max(seconds, 0.0) + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_rate(rate: float) -> str:
    """1234.5 -> 1,234/s, 3.21 -> 3.2/s, 0.25 -> 4.0 s each."""
    if rate >= 100:
        return f"{rate:,.0f}/s"
    return f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:,.1f} s each"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
