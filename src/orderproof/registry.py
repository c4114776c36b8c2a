"""Registries: the members of a folder, one file each, and a look-up that suggests the nearest name.

A folder is its own registry: adding a law, an encoding, a claim or a question means adding one file that defines the
agreed variable. Nothing is listed twice.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import TypeVar

from orderproof.errors import UsageError

T = TypeVar("T")


def modules(package: str) -> Iterator[ModuleType]:
    """The public modules of a package, imported, in alphabetical order."""
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if not info.name.startswith("_"):
            yield importlib.import_module(f"{package}.{info.name}")


def discover(package: str, variable: str, kind: type[T]) -> tuple[T, ...]:
    """The instances of `kind` that modules of a package define under this variable name."""
    found = (getattr(module, variable, None) for module in modules(package))
    return tuple(member for member in found if isinstance(member, kind))


def discover_classes(package: str, variable: str, base: type[T]) -> tuple[type[T], ...]:
    """The subclasses of `base` that modules of a package define under this variable name."""
    found = (getattr(module, variable, None) for module in modules(package))
    return tuple(member for member in found if isinstance(member, type) and issubclass(member, base))


def did_you_mean(
    name: str, known: Iterable[str], aliases: Mapping[str, str] = MappingProxyType({}), *, limit: int = 1
) -> str:
    """`; did you mean 'causal'?` for the nearest of the known names and their aliases, or an empty text.

    `limit` is the largest number of suggestions.
    """
    every = [*sorted(known), *aliases]
    close = difflib.get_close_matches(name, every, n=limit) or difflib.get_close_matches(name.lower(), every, n=limit)
    suggestions = dict.fromkeys(repr(aliases.get(match, match)) for match in close)
    return f"; did you mean {', '.join(suggestions)}?" if suggestions else ""


def lookup(
    name: str,
    known: Mapping[str, T],
    what: str,
    *,
    listed: Iterable[str] | None = None,
    aliases: Mapping[str, str] | None = None,
) -> T:
    """The member with this name.

    `what` is the kind of thing with its article ("a law"); `listed` are the names that the error lists where `known`
    has aliases too. `aliases` are other common names, which are not accepted: the error suggests the member's name.
    Raises `UsageError`.
    """
    if name in known:
        return known[name]
    names = ", ".join(known if listed is None else listed)
    raise UsageError(f"expected {what}, one of {names}; got {name!r}{did_you_mean(name, known, aliases or {})}")
