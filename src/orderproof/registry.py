"""Registries: the members of a folder, one file each, and a look-up that suggests the nearest name.

A folder is its own registry: adding a law, an encoding, a claim or a question means adding one file that defines the
agreed variable. Nothing is listed twice.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Protocol, TypeVar

from orderproof.errors import UsageError


class Coded(Protocol):
    """A member with a name and a code, such as a law."""

    @property
    def code(self) -> str:
        """The code, in upper case: OP201."""

    @property
    def name(self) -> str:
        """The name."""


LONGEST_LIST = 12  # names in a message that also suggests one of them

T = TypeVar("T")
C = TypeVar("C", bound=Coded)


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
    names, hint = list(known if listed is None else listed), did_you_mean(name, known, aliases or {})
    choice = "" if hint and len(names) > LONGEST_LIST else f", one of {', '.join(names)}"
    raise UsageError(f"expected {what}{choice}; got {name!r}{hint}")


def check_numbers(numbers: Iterable[int], known: Sequence[int], what: str) -> None:
    """Raises `UsageError` for a number that is no member's; `what` is as in `lookup`."""
    if unknown := sorted(set(numbers).difference(known)):
        raise UsageError(f"expected {what}, one of {', '.join(map(str, known))}; got {unknown[0]}")


def lookup_by_code(name: str, members: Sequence[C], what: str) -> C:
    """The member with this name, or with this code in upper or lower case. Raises `UsageError`."""
    names, codes = {each.name: each for each in members}, {each.code: each for each in members}
    key = name.upper() if name.upper() in codes else name
    return lookup(key, {**names, **codes}, what, listed=names)
