"""The names of the encodings: each class enters its own, once."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TypeVar

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.errors import UsageError

_EncodingClass = TypeVar("_EncodingClass", bound=type[PositionalEncoding])

_classes: dict[str, type[PositionalEncoding]] = {}
_called: dict[str, str] = {}


def register(name: str, *, called: tuple[str, ...] = ()) -> Callable[[_EncodingClass], _EncodingClass]:
    """Enter the decorated class under a name that no other class has.

    ``called`` is what else people call it: whoever asks for that is told the name.
    """

    def enter(encoding: _EncodingClass) -> _EncodingClass:
        if name in _classes:
            raise UsageError(f"encoding name '{name}' belongs to {_classes[name].__qualname__}; choose another")
        encoding.name = name
        _classes[name] = encoding
        _called.update(dict.fromkeys((*called, encoding.__name__.lower()), name))
        return encoding

    return enter


def get(name: str) -> type[PositionalEncoding]:
    """The class registered under a name."""
    if name not in _classes:
        asked = str(name).lower()
        close = difflib.get_close_matches(asked, [*names(), *_called], n=1)
        meant = f"did you mean '{_called.get(close[0], close[0])}'? " if close else ""
        hint = f"{meant}known: {', '.join(names())}"
        raise UsageError(f"no encoding is named '{name}'; {hint}")
    return _classes[name]


def names() -> tuple[str, ...]:
    """The registered names, in alphabetical order."""
    return tuple(sorted(_classes))
