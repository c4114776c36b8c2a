"""The operators that a recording keeps whole. An operator that no rule is about is decomposed.

Rules are in the rooms above, which a recording must not import: they hand it a function that knows theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

_known: list[Callable[[object], bool]] = []


def keep(has_rule: Callable[[object], bool]) -> None:
    """Keep the operators of which this is true in every later recording."""
    if has_rule not in _known:
        _known.append(has_rule)
        is_kept.cache_clear()


@cache
def is_kept(operator: object) -> bool:
    """True if some rule is about an operator.

    Raises `RuntimeError` if no room of rules is imported: a recording would then decompose all that it can.
    """
    if not _known:
        raise RuntimeError("expected rules before a recording; import orderproof.diagnosis.rule first")
    return any(has_rule(operator) for has_rule in _known)
