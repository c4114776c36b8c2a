"""Explain the difference of a port: the smallest set of changes found that makes the reference equal to the engine.

A candidate is accepted if the changed reference equals the engine, or if it removes the difference of some tokens (by
`REMOVED` times) and enlarges none. The search goes on from there, so that several causes at once are found one by one.
A set that does not reach equality is reported as a part of the explanation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orderproof.ports.causes.cause import Candidate
from orderproof.ports.comparison import Profile
from orderproof.ports.reference import Change

MAX_CAUSES = 4
REMOVED = 100.0  # a difference that shrinks by this factor is removed
ENLARGED = 10.0
TIME_LIMIT = 120.0  # [s] of one search

ProfileOf = Callable[[Sequence[Change]], Profile]


@dataclass(frozen=True)
class FoundCause:
    """A candidate that was accepted, and the difference that is left with it and those before it."""

    candidate: Candidate
    remaining: Profile


@dataclass(frozen=True)
class Explanation:
    """The causes that were found, in the order of their acceptance."""

    causes: tuple[FoundCause, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if the changed reference equals the engine."""
        return bool(self.causes) and self.causes[-1].remaining.first is None


def explain(profile_of: ProfileOf, start: Profile, candidates: Iterable[Candidate]) -> Explanation:
    """Search for the causes of a difference; ``candidates`` are tried in their order."""
    tried, current = list(candidates), start
    found: list[FoundCause] = []
    end = time.monotonic() + TIME_LIMIT
    while current.first is not None and len(found) < MAX_CAUSES:
        step = _best_candidate(profile_of, current, tried, [each.candidate.change for each in found], end)
        if step is None:
            break
        found.append(step)
        current = step.remaining
        tried = [each for each in tried if each is not step.candidate]
    return Explanation(tuple(found))


def _best_candidate(
    profile_of: ProfileOf, current: Profile, candidates: Sequence[Candidate], accepted: list[Change], end: float
) -> FoundCause | None:
    best: FoundCause | None = None
    for candidate in candidates:
        if time.monotonic() > end:
            break
        try:
            remaining = profile_of([*accepted, candidate.change])
        except Exception:  # noqa: BLE001 - third-party code: a model may refuse a changed configuration in any way
            continue
        if remaining.first is None:
            return FoundCause(candidate, remaining)
        improves = _removes_some(current, remaining)
        if improves and (best is None or misfit(remaining) < misfit(best.remaining)):
            best = FoundCause(candidate, remaining)
    return best


def _removes_some(before: Profile, after: Profile) -> bool:
    """True if some token differs much less than before, and none much more."""
    pairs = list(zip(before.by_token, after.by_token, strict=True))
    removed = any(a > before.tolerance and b * REMOVED < a for a, b in pairs)
    return removed and all(b <= ENLARGED * max(a, before.tolerance) for a, b in pairs)


def misfit(profile: Profile) -> float:
    """The sum over the tokens of the decades by which they exceed the tolerance."""
    return sum(math.log10(value / profile.tolerance) for value in profile.by_token if value > profile.tolerance)
