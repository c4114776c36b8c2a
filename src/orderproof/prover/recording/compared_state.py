"""The contents of one object, compared with those that it had before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import Any

SCALARS = (int, float, complex, str, bytes, bool)
_MISSING = object()


@dataclass(slots=True)
class State:
    """The contents of one object: how to read and to restore them."""

    path: str
    read: Callable[[], Any]
    restore: Callable[[Any], None] | None
    before: Any

    def differs(self) -> bool:
        """True if the contents are not the same as `before`."""
        now = self.read()
        if not isinstance(self.before, dict):
            return not _same(self.before, now)
        if len(now) != len(self.before) or not (all(map(is_, now, self.before)) or all(map(_same, now, self.before))):
            return True
        pairs = now.values(), self.before.values()
        return not (all(map(is_, *pairs)) or all(map(_same, *pairs)))

    def changes(self) -> list[str]:
        """The names of what differs from `before`; it is restored where that is possible."""
        if not self.differs():
            return []
        now, changed = self.read(), [self.path]
        if isinstance(self.before, dict):
            keys = [
                key
                for key in {**self.before, **now}
                if not _same(self.before.get(key, _MISSING), now.get(key, _MISSING))
            ]
            changed = [f"{self.path}.{key}".removeprefix(".") for key in keys] or [f"the order of {self.path}"]
        if self.restore is not None:
            self.restore(self.before)
        return changed


def _same(first: Any, second: Any) -> bool:
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple):
        return len(first) == len(second) and (all(map(is_, first, second)) or all(map(_same, first, second)))
    return isinstance(first, SCALARS) and bool(first == second)
