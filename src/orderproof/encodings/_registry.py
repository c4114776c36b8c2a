"""The registry of encodings: `@register` in each file of this folder, `get` and `names` for everyone else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.errors import UsageError
from orderproof.registry import lookup, modules

_EncodingClass = TypeVar("_EncodingClass", bound=type[PositionalEncoding])

_classes: dict[str, type[PositionalEncoding]] = {}
_aliases: dict[str, str] = {}


def register(name: str, *, aliases: tuple[str, ...] = ()) -> Callable[[_EncodingClass], _EncodingClass]:
    """Register the decorated class under a unique name.

    ``aliases`` are other names in use. `get` does not accept them; its error suggests the registered name.
    """

    def enter(encoding: _EncodingClass) -> _EncodingClass:
        if name in _classes:
            raise UsageError(f"encoding name '{name}' belongs to {_classes[name].__qualname__}; choose another")
        encoding.name = name
        _classes[name] = encoding
        _aliases.update(dict.fromkeys((*aliases, encoding.__name__.lower()), name))
        return encoding

    return enter


def get(name: str) -> type[PositionalEncoding]:
    """The class registered under a name. Raises `UsageError` for an unknown name."""
    _import_folder()
    return lookup(name, {known: _classes[known] for known in names()}, "an encoding", aliases=_aliases)


def names() -> tuple[str, ...]:
    """The registered names, in alphabetical order."""
    _import_folder()
    return tuple(sorted(_classes))


@cache
def _import_folder() -> None:
    """Import every module of the folder, so that a new file is registered without being listed anywhere."""
    for _ in modules("orderproof.encodings"):
        pass
