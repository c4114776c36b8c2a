"""The registry of encodings: `@register` in each file of this folder, `get` and `names` for everyone else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from orderproof.encodings._encoding import ModelSizes, PositionalEncoding
from orderproof.encodings._own_file import is_in_a_file, load
from orderproof.errors import UsageError
from orderproof.registry import did_you_mean, lookup, modules

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
    """The class registered under a name, or that of `FILE.py:CLASS`. Raises `UsageError` for an unknown name."""
    if is_in_a_file(name):
        return load(name)
    _import_folder()
    return lookup(name, {known: _classes[known] for known in names()}, "an encoding", aliases=_aliases)


def build(name: str, sizes: ModelSizes, options: Mapping[str, Any] | None = None) -> PositionalEncoding:
    """The encoding registered under a name, for a transformer of these sizes, with arguments of its constructor.

    Raises `UsageError` for an unknown name or argument, and `EncodingError` for a value that the encoding refuses.
    """
    encoding = get(name)
    known = [key for key, one in inspect.signature(encoding).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for key in options or {}:
        if key not in known:
            raise UsageError(
                f"encoding {name!r} has no argument {key!r}{did_you_mean(key, known)}; "
                f"it has {', '.join(known) or 'none'}"
            )
    return encoding.for_model(sizes, **(options or {}))


def names() -> tuple[str, ...]:
    """The registered names, in alphabetical order."""
    _import_folder()
    return tuple(sorted(_classes))


@cache
def _import_folder() -> None:
    """Import every module of the folder, so that a new file is registered without being listed anywhere."""
    for _ in modules("orderproof.encodings"):
        pass
