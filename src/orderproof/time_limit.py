"""A time limit on work that runs third-party code in this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitExceeded(BaseException):
    """The work took too long. Not an `Exception`: handlers of what a model may raise must let it pass."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `TimeLimitExceeded` after this time [s]; no limit outside the main thread or without interval timers.

    A call inside compiled code ends only when it returns to Python.
    """
    can_limit = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if seconds is None or not can_limit:
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
