"""Signals that are delayed while something must not be interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


def sigint_blocked() -> AbstractContextManager[None]:
    """Delay SIGINT: no process is started without being recorded, and none gets a Ctrl-C before it can ignore it."""
    return _blocked({signal.SIGINT})


def interrupts_blocked() -> AbstractContextManager[None]:
    """Delay Ctrl-C and time limits: what the block does is done as a whole."""
    return _blocked({signal.SIGINT, signal.SIGTERM, *((signal.SIGALRM,) if hasattr(signal, "SIGALRM") else ())})


@contextmanager
def _blocked(numbers: set[signal.Signals]) -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
