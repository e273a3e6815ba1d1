"""One progress display for all long work: rich's bars on a terminal, plain lines anywhere else.

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
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Literal

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn
from rich.progress import Task as RichTask
from rich.text import Text

from surefoot.errors import InputError, unknown

Mode = Literal["auto", "bars", "lines", "silent"]
MODES = ("auto", "bars", "lines", "silent")
Clock = Callable[[], float]

RATE_WINDOW = 30.0
"""Seconds the rate looks back: long enough to be calm, short enough to forget compilation."""
SETTLED_SECONDS, SETTLED_ADVANCES = 3.0, 20
"""A rate is shown once it was seen for so long, or so often: before, it is that of compiling, or of
two workers that end together."""
KEPT_FINISHED = 8
"""Finished bars that stay on the terminal beside the running ones."""
MARKS = {"running": "", "done": "✓ ", "interrupted": "interrupted: ", "failed": "failed: "}
STYLES = {"running": "bold", "done": "green"}


class Bar:
    """One count towards a total, or towards no known total."""

    def __init__(
        self, display: _Display, total: float | None, description: str, unit: str, start: float
    ) -> None:
        self._display = display
        fields = {"unit": unit, "note": "", "state": "running", "before": start}
        fields |= {"settled": False}
        number = display.add_task(description, total=total, completed=start, **fields)  # type: ignore[arg-type]
        self.task = next(task for task in display.tasks if task.id == number)
        self._first: float | None = None  # when the first units were done
        self._advances = 0

    def advance(self, n: float = 1) -> None:
        """`n` more units are done."""
        if not n >= 0:
            raise InputError(f"progress can only advance: n is {n!r}")
        self._display.advance(self.task.id, n)
        now = self._display.get_time()
        self._first = now if self._first is None else self._first
        self._advances += 1
        settled = now - self._first >= SETTLED_SECONDS or self._advances >= SETTLED_ADVANCES
        self.task.fields["settled"] = settled
        self._display.write_line(self.task)

    def note(self, text: str) -> None:
        """Say beside the count what is going on; replaces the last note."""
        self._display.update(self.task.id, note=" ".join(str(text).split()))
        self._display.write_line(self.task)

    def end(self, state: str) -> None:
        self._display.stop_task(self.task.id)
        self._display.update(self.task.id, state=state)
        self._display.hide_old()
        self._display.write_line(self.task, always=True)


class _Display(Progress):
    """What all bars of a process share. rich counts, measures and, on a terminal, draws."""

    def __init__(self, mode: Mode, console: Console, clock: Clock, every: float) -> None:
        super().__init__(
            _Description(),
            BarColumn(min(max(console.width - 80, 8), 30)),
            _Numbers(),
            console=console,
            speed_estimate_period=RATE_WINDOW,
            get_time=clock,
            # Prints go above the bars, but only a terminal's: a piped stdout must stay stdout.
            redirect_stdout=sys.stdout.isatty(),
            disable=mode != "bars",
        )
        self._lines, self._every, self._written = mode == "lines", every, float("-inf")

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        notes = [t.fields["note"] for t in self.tasks if t.fields["state"] == "running"]
        for note in list(filter(None, notes))[-1:]:  # below, where a narrow terminal has room
            yield Text(f"  {note}", "dim", no_wrap=True, overflow="ellipsis")

    def hide_old(self) -> None:
        ended = [task for task in self.tasks if task.fields["state"] != "running"]
        for task in ended[:-KEPT_FINISHED]:
            self.update(task.id, visible=False)

    def write_line(self, task: RichTask, *, always: bool = False) -> None:
        """A line at the start, at most one every few seconds, and one at each bar's end."""
        if not self._lines:
            return
        with self._lock:
            now = self.get_time()
            if not always and now - self._written < self._every:
                return
            if not always:
                self._written = now
            # Not console.print: a log line must not be wrapped at the width of no terminal.
            self.console.file.write(line(task) + "\n")
            self.console.file.flush()


class _Description(ProgressColumn):
    def render(self, task: RichTask) -> Text:
        state = task.fields["state"]
        text = MARKS[state] + task.description
        return Text(text, STYLES.get(state, "red"), no_wrap=True, overflow="ellipsis")


class _Numbers(ProgressColumn):
    def render(self, task: RichTask) -> Text:
        rate, left = rate_of(task), left_of(task)
        text = Text(count(task), no_wrap=True, overflow="ellipsis")
        text.append(f" {format_rate(rate)}" if rate else "", "cyan")
        text.append(f" {format_seconds(task.elapsed or 0.0)}", "magenta")
        return text.append(f", {format_seconds(left)} left" if left is not None else "", "magenta")


def rate_of(task: RichTask) -> float | None:
    """Units a second, of late while running, over all once ended; None before it is known."""
    running = task.fields["state"] == "running"
    if running and not task.fields["settled"]:
        return None
    units, seconds = task.completed - task.fields["before"], task.elapsed
    over_all = units / seconds if units > 0 and seconds else None
    return (task.speed or over_all) if running else over_all


def left_of(task: RichTask) -> float | None:
    """Seconds to go, or None where that cannot be known."""
    rate = rate_of(task)
    if task.fields["state"] != "running" or task.total is None or not rate:
        return None
    return max(task.total - task.completed, 0.0) / rate


def count(task: RichTask) -> str:
    total = "" if task.total is None else f"/{_number(task.total)}"
    return f"{_number(task.completed)}{total} {task.fields['unit']}".rstrip()


def line(task: RichTask) -> str:
    """The state of a bar in one plain line."""
    state, rate, left = task.fields["state"], rate_of(task), left_of(task)
    head = {"running": count(task), "done": f"{count(task)} done"}.get(
        state, f"{state} at {count(task)}"
    )
    parts = [f"{task.description}: {head}"]
    if task.total and state != "done":
        parts[0] += f" ({task.percentage:.0f}%)"
    if rate:
        parts.append(format_rate(rate))
    parts.append(f"{format_seconds(task.elapsed or 0.0)} elapsed")
    if left is not None:
        parts.append(f"{format_seconds(left)} left")
    return ", ".join(parts) + (f" ({task.fields['note']})" if task.fields["note"] else "")


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
) -> Iterator[Bar]:
    """Show the progress of the block: `advance` the bar, and `note` on it.

    `total` may be None where it is not known; `start` is what a resumed run had already done
    (it does not count towards the rate). `mode` "auto" takes bars on a terminal and in a
    notebook with ipywidgets, elsewhere lines, one every `every` seconds. Inside another `progress`
    block the bar joins that display, whatever its own mode; "silent" always stays silent.
    """
    if mode not in MODES:
        raise unknown("progress mode", mode, MODES)
    if total is not None and not total >= 0:
        raise InputError(f"total must be a number of units or None, not {total!r}")
    outer = _OPEN.get()
    joins = outer is not None and mode != "silent"
    display = outer if outer is not None and joins else _display(mode, console, clock, every)
    token = _OPEN.set(display)
    state = "failed"
    try:
        if not joins:
            display.start()
        bar = Bar(display, total, description, unit, start)
        try:
            display.write_line(bar.task)
            yield bar
            state = "done"
        except (KeyboardInterrupt, GeneratorExit):
            state = "interrupted"
            raise
        finally:
            bar.end(state)
    finally:
        _OPEN.reset(token)
        if not joins:
            display.stop()  # draws the last state, shows the cursor again


def _display(mode: Mode, console: Console | None, clock: Clock, every: float) -> _Display:
    console = console or Console(stderr=True)
    if mode == "auto":
        mode = "bars" if _can_draw(console) else "lines"
    return _Display(mode, console, clock, every)


def _can_draw(console: Console) -> bool:
    """On a terminal that can move its cursor, and in a notebook that has widgets."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal


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
