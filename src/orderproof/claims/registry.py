"""Every claim, found by listing this folder: one file, one claim, in a variable named CLAIM."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from orderproof.claims.claim import Claim
from orderproof.errors import UsageError


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, by number."""
    package = importlib.import_module("orderproof.claims")
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        claim = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "CLAIM", None)
        if isinstance(claim, Claim):
            found.append(claim)
    return tuple(sorted(found, key=lambda claim: claim.number))


def numbered(numbers: Iterable[int]) -> tuple[Claim, ...]:
    """The claims with these numbers, in their own order; all where none is given. Raises `UsageError`."""
    wanted = set(numbers)
    known = {claim.number for claim in claims()}
    if unknown := sorted(wanted - known):
        raise UsageError(
            f"expected the number of a claim, one of {', '.join(map(str, sorted(known)))}; got {unknown[0]}"
        )
    return tuple(claim for claim in claims() if not wanted or claim.number in wanted)
