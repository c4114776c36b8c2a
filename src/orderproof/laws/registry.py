"""Every law, found by listing this folder: one file, one law, in a variable named LAW."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache

from orderproof.errors import UsageError
from orderproof.laws.law import Law


@cache
def laws() -> tuple[Law, ...]:
    """Every law, in the order of the codes."""
    package = importlib.import_module("orderproof.laws")
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        law = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "LAW", None)
        if isinstance(law, Law):
            found.append(law)
    return tuple(sorted(found, key=lambda law: law.code))


def get(name: str) -> Law:
    """The law with this name or code. Raises `UsageError`."""
    for law in laws():
        if name in (law.name, law.code) or name.upper() == law.code:
            return law
    names = [law.name for law in laws()]
    close = difflib.get_close_matches(name, [*names, *(law.code for law in laws())], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"expected a law, one of {', '.join(names)}; got {name!r}{hint}")
