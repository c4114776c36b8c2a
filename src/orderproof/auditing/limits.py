"""A time limit on work that runs code of others in this very process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTime(BaseException):
    """Past everything that catches what a model may raise: the work as a whole is to end."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTime` after so long; no limit outside the main thread, or where there are no timers.

    A call that stays inside compiled code ends only when it comes back to Python.
    """
    here = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if seconds is None or not here:
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
