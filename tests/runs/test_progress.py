"""The progress display, on a clock and a console of the test's own."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading

import pytest
from rich.console import Console

from surefoot.errors import InputError
from surefoot.runs import progress as module
from surefoot.runs.progress import format_rate, format_seconds, progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def plain() -> Console:
    return Console(file=io.StringIO(), width=40)


@pytest.fixture
def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)


def written(console: Console) -> list[str]:
    return console.file.getvalue().splitlines()


def test_lines_come_at_the_start_every_few_seconds_and_at_the_end(plain, clock):
    with progress(400, "risky-cliff", "episodes", console=plain, clock=clock, every=5) as bar:
        for _ in range(40):
            clock.now += 0.5
            bar.advance(10)
    # 40 advances in 20 s: the start, then 5, 10, 15 and 20 s, then the end. Nothing wraps,
    # though the console is 40 wide. 10 units every 0.5 s are 20 a second.
    assert written(plain) == [
        "risky-cliff: 0/400 episodes (0%), 0:00 elapsed",
        "risky-cliff: 100/400 episodes (25%), 20.0/s, 0:05 elapsed, 0:15 left",
        "risky-cliff: 200/400 episodes (50%), 20.0/s, 0:10 elapsed, 0:10 left",
        "risky-cliff: 300/400 episodes (75%), 20.0/s, 0:15 elapsed, 0:05 left",
        "risky-cliff: 400/400 episodes (100%), 20.0/s, 0:20 elapsed, 0:00 left",
        "risky-cliff: 400/400 episodes done, 20.0/s, 0:20 elapsed",
    ]


def test_notes_stand_beside_the_count(plain, clock):
    with progress(2, "train", console=plain, clock=clock) as bar:
        clock.now += 6
        bar.note("two\nlines  [bold]")
    assert written(plain)[1] == "train: 0/2 (0%), 0:06 elapsed (two lines [bold])"


def test_an_unknown_total_has_no_time_left(plain, clock):
    with progress(None, "rollout", "steps", console=plain, clock=clock) as bar:
        clock.now += 10
        bar.advance(2_500)
    assert written(plain)[-1] == "rollout: 2,500 steps done, 250/s, 0:10 elapsed"


def test_what_a_resumed_run_had_done_does_not_count_towards_the_rate(plain, clock):
    with progress(100, "resumed", start=90, console=plain, clock=clock) as bar:
        for _ in range(2):
            clock.now += 5
            bar.advance(2.5)
    # 5 more in 10 s are one in two seconds, and 5 are left.
    assert written(plain)[-2:] == [
        "resumed: 95/100 (95%), 2.0 s each, 0:10 elapsed, 0:10 left",
        "resumed: 95/100 done, 2.0 s each, 0:10 elapsed",
    ]


def test_the_rate_forgets_compilation(plain, clock):
    with progress(10_000, "jit", console=plain, clock=clock) as bar:
        clock.now += 60  # compiling
        for _ in range(40):
            clock.now += 1
            bar.advance(10)
    assert written(plain)[-2].startswith("jit: 360/10,000 (4%), 10.0/s, 1:36 elapsed, 16:04 left")


def test_no_rate_is_shown_before_there_is_one(plain, clock):
    with progress(6, "cells", console=plain, clock=clock, every=0) as bar:
        for seconds in (10, 0.05, 10, 0.05):  # two workers, ten seconds for a cell
            clock.now += seconds
            bar.advance()
    assert written(plain)[1:] == [
        "cells: 1/6 (17%), 0:10 elapsed",
        "cells: 2/6 (33%), 0:10 elapsed",
        "cells: 3/6 (50%), 5.0 s each, 0:20 elapsed, 0:15 left",
        "cells: 4/6 (67%), 3.4 s each, 0:20 elapsed, 0:07 left",
        "cells: 4/6 done, 5.0 s each, 0:20 elapsed",
    ]


def test_units_slower_than_the_window_have_the_rate_over_all(plain, clock):
    with progress(4, "cells", console=plain, clock=clock, every=0) as bar:
        for _ in range(2):
            clock.now += 60
            bar.advance()
    assert written(plain)[2] == "cells: 2/4 (50%), 60.0 s each, 2:00 elapsed, 2:00 left"


def test_frequent_advances_are_counted_exactly(plain, clock):
    with progress(None, "steps", console=plain, clock=clock, every=1) as bar:
        for _ in range(2_400):
            clock.now += 1e-3
            bar.advance()
        assert bar.task.completed == 2_400
    assert written(plain)[1:] == [
        "steps: 1,000, 1,000/s, 0:01 elapsed",
        "steps: 2,000, 1,000/s, 0:02 elapsed",
        "steps: 2,400 done, 1,000/s, 0:02 elapsed",
    ]


def test_nested_tasks_share_one_display(plain, clock):
    with progress(2, "all", "experiments", console=plain, clock=clock) as everything:
        for name in ("regression", "ablation"):
            # The inner call knows nothing of console and clock: it joins the open display.
            with progress(10, name) as inner:
                clock.now += 2
                inner.advance(10)
            everything.advance()
    assert written(plain) == [
        "all: 0/2 experiments (0%), 0:00 elapsed",
        "regression: 10/10 done, 5.0/s, 0:02 elapsed",
        "ablation: 10/10 done, 5.0/s, 0:02 elapsed",
        "all: 2/2 experiments done, 2.0 s each, 0:04 elapsed",
    ]
    assert module._OPEN.get() is None


def test_silence_is_inherited(plain, clock, capfd):
    with progress(2, "all", mode="silent", console=plain, clock=clock) as outer:
        with progress(2, "inner", console=plain, mode="lines") as inner:
            inner.advance(2)
        outer.advance()
        assert (outer.task.completed, inner.task.completed) == (1, 2)
    with (
        progress(2, "loud", console=plain, clock=clock),
        progress(2, "hidden", mode="silent"),
    ):
        pass
    assert not any("hidden" in line or "inner" in line for line in written(plain))
    assert any("loud" in line for line in written(plain))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "word"), [(KeyboardInterrupt, "interrupted"), (ZeroDivisionError, "failed")]
)
def test_an_interrupt_is_told_and_not_swallowed(plain, terminal, clock, error, word):
    def run(console: Console) -> None:
        with progress(4, "run", console=console, clock=clock) as bar:
            bar.advance(1)
            raise error

    for console in (plain, terminal):
        with pytest.raises(error):
            run(console)
    assert written(plain)[-1] == f"run: {word} at 1/4 (25%), 0:00 elapsed"
    output = terminal.file.getvalue()
    assert f"{word}: run" in output
    assert output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")  # the cursor is back
    assert module._OPEN.get() is None


def test_bars_show_every_task_on_a_terminal(terminal, clock):
    with progress(2, "all", "experiments", console=terminal, clock=clock):
        with progress(10, "first", "trials") as bar:
            bar.advance(10)
        with progress(1000, "second [x]", "trials") as bar:
            for _ in range(2):
                clock.now += 5
                bar.advance(125)
            bar.note("ssd")
            frame = render(terminal)
    assert frame[0].startswith("all ")
    assert frame[1].startswith("✓ first ")
    assert re.match(r"second \[x\] .*━.* 250/1,000 trials 25.0/s 0:10, 0:30 left", frame[2])
    assert frame[3] == "  ssd"


def render(console: Console) -> list[str]:
    display = module._OPEN.get()
    canvas = Console(file=io.StringIO(), width=console.width, color_system=None)
    canvas.print(display.get_renderable())
    return [line.rstrip() for line in written(canvas)]


def test_many_finished_bars_make_room(terminal, clock):
    with progress(30, "all", console=terminal, clock=clock):
        for i in range(30):
            with progress(1, f"part {i}") as bar:
                bar.advance()
        frame = render(terminal)
    assert len(frame) == 1 + module.KEPT_FINISHED
    assert frame[-1].startswith("✓ part 29")


def test_threads_may_advance(plain):
    with progress(4000, "threads", console=plain) as bar:
        workers = [
            threading.Thread(target=lambda: [bar.advance() for _ in range(1000)]) for _ in range(4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert bar.task.completed == 4000


SCRIPT = """
from surefoot.runs.progress import progress
with progress(3, "work", "steps") as bar:
    bar.advance(3)
    print("result", flush=True)
"""


def test_a_real_pipe_gets_lines_on_stderr_and_results_on_stdout():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "result\n"
    assert "\x1b" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("work: 3/3 steps done")


def test_a_real_terminal_gets_bars_and_leaves_a_piped_stdout_alone():
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "90"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=follower, env=environment
    )
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.stdout == b"result\n"
    assert "━" in shown
    assert "\x1b[?25h" in shown


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (5.4, "0:05"), (59.6, "1:00"), (3725, "1:02:05")]
)
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(1234.5, "1,234/s"), (3.21, "3.2/s"), (0.25, "4.0 s each")]
)
def test_rates(rate, text):
    assert format_rate(rate) == text


def test_mistakes_are_named(plain):
    with pytest.raises(InputError, match=r"progress mode 'bar'.*Did you mean 'bars'"):
        progress(1, "x", mode="bar").__enter__()
    with pytest.raises(InputError, match="total must be"):
        progress(-1, "x").__enter__()
    with progress(1, "x", console=plain) as bar, pytest.raises(InputError, match="n is -1"):
        bar.advance(-1)
