"""The causes, found by listing their folder, and all candidates for a reference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from orderproof import registry
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Reference


@cache
def causes() -> tuple[Cause, ...]:
    """All causes, in the order in which they are tried."""
    return tuple(sorted(registry.discover("orderproof.ports.causes", "CAUSE", Cause), key=lambda cause: cause.order))


def candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    """The candidates of all causes."""
    for cause in causes():
        yield from cause.candidates(reference, defaults)
