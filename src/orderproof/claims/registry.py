"""The claims, found by listing this folder: one file, one claim, in a variable named CLAIM."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from orderproof.claims.claim import Claim
from orderproof.registry import check_numbers, discover


@cache
def claims() -> tuple[Claim, ...]:
    """All claims, by number."""
    return tuple(sorted(discover("orderproof.claims", "CLAIM", Claim), key=lambda claim: claim.number))


def select_claims(numbers: Iterable[int]) -> tuple[Claim, ...]:
    """The claims with these numbers, by number; all claims for no numbers. Raises `UsageError`."""
    selected = set(numbers)
    check_numbers(selected, [claim.number for claim in claims()], "the number of a claim")
    return tuple(claim for claim in claims() if not selected or claim.number in selected)
