"""Every measured law, found by listing this folder; and any law, proved or measured, by its name."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache

from orderproof.errors import UsageError
from orderproof.laws.law import Law
from orderproof.laws.measured.law import MeasuredLaw
from orderproof.laws.registry import laws


@cache
def measured_laws() -> tuple[MeasuredLaw, ...]:
    """Every measured law, in the order of the codes."""
    package = importlib.import_module("orderproof.laws.measured")
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        law = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "LAW", None)
        if isinstance(law, MeasuredLaw):
            found.append(law)
    return tuple(sorted(found, key=lambda law: law.code))


def find(name: str) -> Law | MeasuredLaw:
    """The law with this name or code, proved or measured. Raises `UsageError`."""
    every: list[Law | MeasuredLaw] = [*laws(), *measured_laws()]
    for law in every:
        if name == law.name or name.upper() == law.code:
            return law
    names = [law.name for law in every]
    close = difflib.get_close_matches(name, [*names, *(law.code for law in every)], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"expected a law, one of {', '.join(names)}; got {name!r}{hint}")
