"""Consoles: the report on standard output, progress on standard error.

Colour only on terminals; with NO_COLOR no escape sequence at all. Where a machine-readable format goes to standard
output, nothing else does. Progress is a live display on a terminal. Elsewhere (a pipe, a log) it is one plain line for
each stage.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from orderproof.report.phrases import escape_control_characters

LINE_INTERVAL = 10.0  # [s] between lines of one stage that differ only in a counter, "3 of 40"
SHOWN_FROM = 2.0  # [s] shorter work, or a shorter rest of it, has no estimate
BAR_WIDTH = 24
NUMBERS_WIDTH = 30  # of the time and the estimate: a column that is too wide would cut all others
WIDE = 110  # [characters] the least width of a terminal with room for a bar
REMINDER_INTERVAL = 30.0  # [s] between lines that say that a stage goes on
_COUNTER = re.compile(r"(, )?\d+ of \d+( comparisons)?")


def is_plain() -> bool:
    """True if NO_COLOR asks for text without any escape sequence: neither colours nor bold, and no live display."""
    return bool(os.environ.get("NO_COLOR"))


def new_console(**options: Any) -> Console:
    """A console that obeys NO_COLOR."""
    return Console(highlight=False, color_system=None if is_plain() else "auto", **options)


def report_console(machine_outputs: Iterable[str | None]) -> Console:
    """The console for the report: standard error when a machine format goes to standard output."""
    return new_console(stderr="-" in list(machine_outputs), soft_wrap=False)


class _Stream(io.TextIOBase):
    """A stream that writes to another one, and that a model may close without closing the other."""

    def __init__(self, target: Any) -> None:
        self.target = target

    @property
    def buffer(self) -> Any:
        """The binary stream below."""
        return self.target.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream below."""
        return str(getattr(self.target, "encoding", None) or "utf-8")  # a live display has none

    def reconfigure(self, **options: Any) -> None:
        """Change nothing: the stream below is that of the command."""

    def fileno(self) -> int:
        return int(self.target.fileno())

    def isatty(self) -> bool:
        return bool(self.target.isatty())

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return int(self.target.write(text))

    def flush(self) -> None:
        self.target.flush()

    def close(self) -> None:
        """Close nothing."""


@contextmanager
def model_output_on_stderr() -> Iterator[None]:
    """While a model is loaded and called, standard output is standard error; afterwards both are as they were.

    A report on standard output stays readable whatever a model prints there or closes.
    """
    streams, files = (sys.stdout, sys.stderr), []
    for stream in streams:
        stream.flush()
    with suppress(OSError):  # no such file is open
        files = [os.dup(1), os.dup(2)]
        os.dup2(2, 1)
    sys.stdout = sys.stderr = _Stream(streams[1])
    try:
        yield
    finally:
        for number, file in enumerate(files, 1):
            with suppress(OSError, ValueError):
                streams[number - 1].flush()
            os.dup2(file, number)
            os.close(file)
        sys.stdout, sys.stderr = streams


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress display on standard error, as lines where it is no terminal; nothing if `quiet`."""
    if quiet:
        yield lambda text, done, total: None
        return
    if not has_live_display():
        lines = StageLines()
        with lines.reminding():
            yield lambda text, done, total: lines.write(text)
        return
    text_column = TextColumn("{task.description}", markup=False)  # a path may have brackets
    rest_column = TextColumn("{task.fields[rest]}", markup=False)
    # The file by itself: while a model runs, `sys.stderr` is a stream that writes to this display.
    console = Console(file=sys.stderr)
    bar = [BarColumn(bar_width=BAR_WIDTH)] if console.width >= WIDE else []
    columns = (SpinnerColumn(), text_column, *bar, TimeElapsedColumn(), rest_column)
    room = max(console.width - NUMBERS_WIDTH - (BAR_WIDTH + 1) * len(bar), 1)
    with Progress(*columns, console=console, transient=True) as display:
        task, estimate = display.add_task("loading", total=None, rest=""), RestEstimate()

        def update(text: str, done: int, total: int) -> None:
            rest, shown = estimate.text(done, total), escape_control_characters(text)
            shown = shown if len(shown) <= room else f"{shown[: room - 1]}…"
            display.update(task, description=shown, completed=done, total=total, rest=rest)

        yield update


class RestEstimate:
    """How long the rest of the work takes, if it goes on as until now."""

    def __init__(self) -> None:
        self._began: tuple[float, int, int] | None = None  # when, the work done then, and the work in all

    def text(self, done: int, total: int) -> str:
        """``about 3 min left``; empty in the first seconds, and for a rest of seconds."""
        now = time.monotonic()
        if self._began is None or self._began[2] != total:
            self._began = (now, done, total)
        began, before, _ = self._began
        if now - began < SHOWN_FROM or done <= before:
            return ""
        rest = (now - began) * (total - done) / (done - before)
        if rest < SHOWN_FROM:
            return ""
        return f"about {rest / 60:.0f} min left" if rest >= 90 else f"about {rest:.0f} s left"


def has_live_display() -> bool:
    """True if standard error is a terminal that can redraw a line. FORCE_COLOR does not make a pipe one."""
    return sys.stderr.isatty() and not is_plain() and not Console(stderr=True).is_dumb_terminal


def restore_terminal() -> None:
    """End the line of a live display that its process could not end, and show the cursor again."""
    if has_live_display():
        console = Console(stderr=True)
        console.show_cursor()
        console.line()


class StageLines:
    """Lines on standard error: one at once for a new stage, others seldom within one."""

    def __init__(self) -> None:
        self._text, self._stage, self._began, self._written = "", "", 0.0, 0.0
        self._stream = sys.stderr  # by itself: a model may replace it

    def write(self, text: str) -> None:
        """Write a line for a stage, unless one of the same stage was written shortly before."""
        now, stage = time.monotonic(), _COUNTER.sub("", text)
        if stage == self._stage and now - self._written < LINE_INTERVAL:
            return
        if stage != self._stage:
            self._began = now
        self._text, self._stage, self._written = text, stage, now
        self._write_line(text)

    @contextmanager
    def reminding(self, interval: float = REMINDER_INTERVAL) -> Iterator[None]:
        """Write in the block how long a stage has lasted, at each interval [s] without a line."""
        ended = threading.Event()

        def remind() -> None:
            while not ended.wait(max(self._written + interval - time.monotonic(), interval / 10)):
                now = time.monotonic()
                if self._text and now - self._written >= interval:
                    self._written = now
                    self._write_line(f"{self._text}, for {now - self._began:.0f} s now")

        thread = threading.Thread(target=remind, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _write_line(self, text: str) -> None:
        self._stream.write(f"orderproof: {escape_control_characters(text)} ...\n")
        self._stream.flush()
