"""Signals that are delayed while something must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
