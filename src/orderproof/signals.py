"""Signals: which end a command, and how they are delayed while something must not be interrupted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_TERMINATION = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
ENDING = (signal.SIGINT, *_TERMINATION)  # what ends a command
_interrupted: list[int] = []  # the process that these signals interrupt


def interrupt_on_termination() -> None:
    """Let the signals that ask a process to end do what Ctrl-C does: temporary files go, and results are written.

    They are sent by `kill`, by a time limit of CI, and when a terminal is closed. Where one of them is ignored, as
    under nohup, it stays so. Forked processes end as by default, unless they call this.
    """
    _interrupted[:] = [os.getpid()]
    for number in _TERMINATION:
        if signal.getsignal(number) in (signal.SIG_DFL, _interrupt):
            signal.signal(number, _interrupt)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if os.getpid() in _interrupted:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Delay SIGINT: no process is started without being recorded, and none gets a Ctrl-C before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Handle signals after the block, such as those of a Ctrl-C and of a time limit.

    Python handles signals in the main thread. A mask of that thread does not delay them: another thread may get them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in signal.valid_signals() if callable(signal.getsignal(n))]
    received: list[int] = []
    before = {n: signal.signal(n, lambda number, _frame: received.append(number)) for n in numbers}
    try:
        yield
    finally:
        for delayed, handler in before.items():
            signal.signal(delayed, handler)
        for number in received:
            signal.raise_signal(number)
