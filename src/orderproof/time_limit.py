"""A time limit on work that runs third-party code in this process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitExceeded(BaseException):
    """The work took too long. Not an `Exception`: handlers of what a model may raise must let it pass."""


@contextmanager
def time_limit(seconds: float | None, *, apart: bool = False) -> Iterator[None]:
    """Raise `TimeLimitExceeded` after this time [s]; no limit outside the main thread or without interval timers.

    A call inside compiled code ends only when it returns to Python. Within another limit, work has no more time than
    the other leaves; `apart`: it has this time of its own, and takes none of the other's.
    """
    can_limit = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if seconds is None or not can_limit:
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TimeLimitExceeded

    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    before, began = signal.signal(signal.SIGALRM, late), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, min(seconds, left) if left and not apart else seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            spent = 0 if apart else time.monotonic() - began
            signal.setitimer(signal.ITIMER_REAL, max(left - spent, 1e-6))
