"""Time limits on work that runs third-party code: of one piece of work in this process, and of all pieces together."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class TimeAllowed:
    """The time for each law, and a budget for all of them together from `began` on [s]; None: no limit."""

    each: float | None = None
    budget: float | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def is_spent(self) -> bool:
        """True if the budget is used up."""
        return self.budget is not None and self._left <= 0

    def for_next(self) -> float | None:
        """The time [s] for a law that begins now."""
        limits = [limit for limit in (self.each, None if self.budget is None else self._left) if limit is not None]
        return min(limits, default=None)

    @property
    def exceeded(self) -> str:
        """The limit that a law has just exceeded, in words: "120 s", "the budget of 10 min"."""
        return f"the budget of {duration_text(self.budget or 0)}" if self.is_spent else f"{self.each:g} s"

    @property
    def not_done(self) -> str:
        """The reason of a law that has just exceeded its time."""
        return f"not done {'within' if self.is_spent else 'after'} {self.exceeded}"

    @property
    def not_reached(self) -> str:
        """The reason of a law that the budget leaves out."""
        return f"not reached within {self.exceeded}"

    @property
    def _left(self) -> float:
        return (self.budget or 0) - (time.monotonic() - self.began)


def duration_text(seconds: float) -> str:
    """A duration as a person states it: "90 s", "10 min", "2 h"."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
