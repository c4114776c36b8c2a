"""Explain the difference of a port: the smallest set of changes found that makes the reference equal to the engine.

A candidate is accepted if the changed reference equals the engine, or if it removes the difference of some tokens (by
`REMOVED` times) and enlarges none. The search goes on from there, so that several causes at once are found one by one.
A change that rounds, as a table in float16 does, need not make every token equal: a value next to a boundary is rounded
up by one program and down by another, and the tokens after it see that. It explains a difference if what is left is
distributed over the tokens as the boundary effect of the changed reference itself: how far it moves if its arithmetic
or its weights move by their last digit.
A change that rounds, or a second one, must remove half of the difference of some token: one that changes nothing may
seem to reach equality, since a boundary effect depends on chance.
If no candidate alone removes anything, the likely ones are tried together: keys that an engine does not read hide each
other, and a change that rounds may be as large as another difference. A set that does not reach equality is reported as
a part of the explanation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from orderproof.ports.causes.cause import Candidate
from orderproof.ports.comparison import Profile
from orderproof.ports.reference import Change
from orderproof.tolerances import PORT_FACTOR

MAX_CAUSES = 4
REMOVED = 100.0  # a difference that shrinks by this factor is removed
ENLARGED = 10.0
BOUNDARY_FACTOR = 4.0  # by which a difference that is left may exceed the boundary effect, each sorted by size
MOVED_COPIES = (3, 12)  # of a reference that show its boundary effect: more if it does not suffice, since it is chance
HOPELESS = 100.0  # a difference that exceeds the boundary effect of a few copies by this factor is none
TIME_LIMIT = 120.0  # [s] of processor time of the searches of one engine and model that find no complete explanation
LEAST_TIME = 10.0  # [s] of each search: causes that explain another difference are tried first

ProfileOf = Callable[[Sequence[Change]], Profile]
BoundaryOf = Callable[[Sequence[Change], int], Profile]  # changes, number of copies -> the boundary effect


@dataclass(frozen=True)
class FoundCause:
    """A candidate that was accepted, and the difference that is left with it and those before it."""

    candidate: Candidate
    remaining: Profile


@dataclass(frozen=True)
class Explanation:
    """The causes that were found, in the order of their acceptance."""

    causes: tuple[FoundCause, ...] = ()
    is_complete: bool = False  # the changed reference equals the engine, up to the boundaries of a change that rounds


def explain(
    profile_of: ProfileOf, boundary_of: BoundaryOf, start: Profile, candidates: Iterable[Candidate],
    known: Sequence[Candidate] = (), seconds: float = TIME_LIMIT,
) -> Explanation:  # fmt: skip
    """Search for the causes of a difference; ``known`` explained other differences and are tried first.

    The search ends after this processor time [s], with what it has found.
    """
    search = _Search(profile_of, boundary_of, [*known, *candidates], time.process_time() + seconds)
    found, current = Explanation(), start
    while len(found.causes) < MAX_CAUSES and not found.is_complete:
        accepted = [each.candidate for each in found.causes]
        step = search.best(current, accepted, known) or search.best_together(current, accepted, known)
        step = step or search.best(current, accepted, search.candidates) or search.best_likely(current, accepted)
        if step is None:
            break
        found = Explanation((*found.causes, *step.causes), step.is_complete)
        current = step.causes[-1].remaining
    return found


@dataclass(frozen=True)
class _Search:
    """The candidates of one difference."""

    profile_of: ProfileOf
    boundary_of: BoundaryOf
    candidates: Sequence[Candidate]
    end: float  # of the search, by the processor time of this process [s]

    def best(self, current: Profile, accepted: Sequence[Candidate], among: Sequence[Candidate]) -> Explanation | None:
        """The first candidate that explains the rest, else the one that leaves least; None if none improves."""
        return self._best(current, accepted, ((each,) for each in among))

    def best_together(
        self, current: Profile, accepted: Sequence[Candidate], among: Sequence[Candidate]
    ) -> Explanation | None:
        """The same for sets of two and three candidates of different settings."""
        sets = (group for size in (2, 3) for group in combinations(among, size))
        different = (group for group in sets if len({each.setting for each in group}) == len(group))
        return self._best(current, accepted, different)

    def best_likely(self, current: Profile, accepted: Sequence[Candidate]) -> Explanation | None:
        """The same for sets of likely candidates, and for each candidate with one that rounds."""
        likely = [each for each in self.candidates if each.likely]
        exact, rounding = ([each for each in self.candidates if each.rounds is flag] for flag in (False, True))
        found = self.best_together(current, accepted, likely)
        return found or self._best(current, accepted, product(exact, rounding))

    def _best(
        self, current: Profile, accepted: Sequence[Candidate], groups: Iterable[tuple[Candidate, ...]]
    ) -> Explanation | None:
        best: Explanation | None = None
        for group in groups:
            if time.process_time() > self.end:
                break
            if any(each in accepted for each in group):
                continue
            try:
                remaining = self.profile_of([each.change for each in (*accepted, *group)])
                alone = not accepted and remaining.share == 0
                improves = misfit(remaining) < misfit(current) and (alone or _halves_some(current, remaining))
                reached = improves and self._reached(remaining, [*accepted, *group])
            except Exception:  # noqa: BLE001 - third-party code: a model may refuse a changed configuration
                continue
            found = Explanation(tuple(FoundCause(each, remaining) for each in group), reached)
            if reached:
                return found
            is_better = best is None or misfit(remaining) < misfit(best.causes[-1].remaining)
            if is_better and _removes_some(current, remaining):
                best = found
        return best

    def _reached(self, remaining: Profile, accepted: Sequence[Candidate]) -> bool:
        """True if nothing is left to explain."""
        if remaining.share == 0 or not any(each.rounds for each in accepted):
            return remaining.share == 0
        least = remaining.tolerance / PORT_FACTOR
        for copies in MOVED_COPIES:
            boundary = self.boundary_of([each.change for each in accepted], copies)
            pairs = zip(sorted(remaining.compared), sorted(boundary.compared), strict=True)
            excess = max((left / max(own, least) for left, own in pairs), default=0.0)
            if excess <= BOUNDARY_FACTOR or excess > HOPELESS:
                return excess <= BOUNDARY_FACTOR
        return False


def _halves_some(before: Profile, after: Profile) -> bool:
    """True if the difference of some token is at most half of what it was."""
    pairs = zip(before.compared, after.compared, strict=True)
    return any(a > before.tolerance and 2 * b <= a for a, b in pairs)


def _removes_some(before: Profile, after: Profile) -> bool:
    """True if some token differs much less than before, and none much more."""
    pairs = list(zip(before.by_token, after.by_token, strict=True))
    removed = any(a > before.tolerance and b * REMOVED < a for a, b in pairs)
    return removed and all(b <= ENLARGED * max(a, before.tolerance) for a, b in pairs)


def misfit(profile: Profile) -> float:
    """The sum over the tokens of the decades by which they exceed the tolerance."""
    return sum(math.log10(value / profile.tolerance) for value in profile.by_token if value > profile.tolerance)
