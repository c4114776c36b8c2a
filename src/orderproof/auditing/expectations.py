"""The expectations that a user states, checked before anything is loaded or run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import get_args

from orderproof.errors import UsageError
from orderproof.laws.law import Law
from orderproof.records.audit import Expectation
from orderproof.registry import did_you_mean


def check_expectation(expected: str | None, law: str) -> None:
    """Raises `UsageError` for something else than holds, fails, any, or nothing."""
    known = get_args(Expectation)
    if expected is not None and expected not in known:
        hint = did_you_mean(str(expected), known)
        raise UsageError(f"expected {', '.join(known)} as the expectation for {law}; got {expected!r}{hint}")


def checked_expectations(
    expect: Mapping[str, Expectation] | None, find: Callable[[str], Law]
) -> dict[str, Expectation]:
    """The expectations by the names of their laws, where a user may give codes. Raises `UsageError`."""
    checked: dict[str, Expectation] = {}
    for name, expected in (expect or {}).items():
        law = find(name).name
        check_expectation(expected, law)
        checked[law] = expected
    return checked
