"""The claims: the number of `CLAIM` in each file of `claims`."""

from __future__ import annotations

from orderproof.catalogue.source import read_modules


def claim_numbers() -> tuple[int, ...]:
    """The numbers of all claims, in order."""
    given = [(module, module.keywords("CLAIM")) for module in read_modules("orderproof.claims")]
    return tuple(sorted(module.value(keywords["number"]) for module, keywords in given if keywords is not None))
