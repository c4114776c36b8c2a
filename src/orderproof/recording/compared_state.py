"""The contents of one object, compared with those that it had before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import Any

SCALARS = (int, float, complex, str, bytes, bool)
_MISSING = object()
_SIZE = type.__dict__["__basicsize__"].__get__  # of an object of a class, without its items


@dataclass(slots=True)
class State:
    """The contents of one object: how to read and to restore them.

    Attributes:
        path: Where the object is.
        read: Its contents now.
        restore: Puts contents back; None if that is not possible.
        before: Its contents at first.
        held: All objects that it holds, of which the contents are a part: to see in less time that none is another.

    """

    path: str
    read: Callable[[], Any]
    restore: Callable[[Any], None] | None
    before: Any
    held: Callable[[], tuple[Any, ...]] | None = None
    held_before: tuple[Any, ...] = ()

    def differs(self) -> bool:
        """True if the contents are not the same as `before`."""
        if self.held is None:
            return self._reads_differently()
        held = self.held()
        if len(held) == len(self.held_before) and all(map(is_, held, self.held_before)):
            return False
        different = self._reads_differently()
        if not different:
            self.held_before = held
        return different

    def _reads_differently(self) -> bool:
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
    if issubclass(type(first), tuple) and _SIZE(type(first)) == _SIZE(tuple):
        a, b = (list(tuple.__iter__(x)) for x in (first, second))
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(_same, a, b)))
    return is_plain(first) and as_text(first) == as_text(second)


def is_plain(value: object) -> bool:
    """True of a number, a text or bytes, also of a subclass whose objects have no attributes."""
    base = _scalar(type(value))
    return base is not None and _SIZE(type(value)) == _SIZE(base)


def as_text(value: Any) -> str:
    """A plain value as text, which is that of an equal one: zeros may differ by their sign.

    It does not come from the methods of a subclass, which are code of a model.
    """
    base: Any = _scalar(type(value))
    return str(base.__repr__(value))


def _scalar(kind: type) -> type | None:
    return next((one for one in SCALARS if issubclass(kind, one)), None)
