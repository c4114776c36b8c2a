"""The names of the encodings: each class enters its own, once."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TypeVar

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.errors import UsageError

_EncodingClass = TypeVar("_EncodingClass", bound=type[PositionalEncoding])

_classes: dict[str, type[PositionalEncoding]] = {}


def register(name: str) -> Callable[[_EncodingClass], _EncodingClass]:
    """Enter the decorated class under a name that no other class has."""

    def enter(encoding: _EncodingClass) -> _EncodingClass:
        if name in _classes:
            raise UsageError(f"encoding name '{name}' belongs to {_classes[name].__qualname__}; choose another")
        encoding.name = name
        _classes[name] = encoding
        return encoding

    return enter


def get(name: str) -> type[PositionalEncoding]:
    """The class registered under a name."""
    if name not in _classes:
        close = difflib.get_close_matches(str(name).lower(), names(), n=1)
        meant = f"did you mean '{close[0]}'? " if close else ""
        hint = f"{meant}known: {', '.join(names())}"
        raise UsageError(f"no encoding is named '{name}'; {hint}")
    return _classes[name]


def names() -> tuple[str, ...]:
    """The registered names, in alphabetical order."""
    return tuple(sorted(_classes))
