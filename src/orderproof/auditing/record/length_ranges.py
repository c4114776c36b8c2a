"""Recordings with open sizes, the lengths that each is about, and the lengths that several cover together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orderproof.auditing.record.assumptions import change_assumptions
from orderproof.auditing.record.open_inputs import NoTheorem
from orderproof.logic.rewriting import Substitution, evaluate
from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    And,
    AtMostZero,
    EqualsZero,
    FloorDivision,
    Formula,
    Not,
    Or,
    Term,
    as_term,
    at_most,
    conjunction,
    disjunction,
    equal,
    less,
    negation,
    without_common_factors,
)
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.records.audit import TRACED_ASSUMPTION
from orderproof.theorems.statement import BATCH, TOKENS

EXAMPLE_ROWS = 3
COMPARED_LENGTHS = (2, 5, 11)  # [tokens] of eager calls; the last one, unless a longer call is compared


@dataclass(frozen=True)
class Piece:
    """The recordings for a range of lengths [tokens], both ends included; no greatest length means no end."""

    graphs: tuple[OpenGraph, ...]
    least: int
    greatest: int | None
    others: tuple[Formula, ...]  # conditions besides the bounds of the number of tokens
    patched_because: str  # why parts of the model were replaced; empty if they were not

    @property
    def compared_lengths(self) -> list[int]:
        """The lengths [tokens] of the eager calls with which the recordings are compared."""
        found = [n for n in sorted({self.least, *COMPARED_LENGTHS}) if self.has(n)]
        near = range(self.least, self.least + 2 * max(COMPARED_LENGTHS))
        return found or [n for n in near if self.has(n)][:2]

    def has(self, tokens: int) -> bool:
        """True if this number of tokens fulfils the conditions."""
        if tokens < self.least or (self.greatest is not None and tokens > self.greatest):
            return False
        conditions = dict.fromkeys(c for graph in self.graphs for c in graph.conditions if not c.functions)
        return all(evaluate(c, {"batch": EXAMPLE_ROWS, "tokens": tokens}, {}) for c in conditions)

    @property
    def lengths(self) -> Formula:
        """The lengths, as a formula over the open sizes."""
        return conjunction(*_between(self.least, self.greatest), *self.others)

    def can_fulfil(self, conditions: Sequence[Formula], solver: Solver) -> bool:
        """True if a length that is compared with the recordings fulfils conditions, which do not contradict."""
        own = (*_between(self.least, self.greatest), *conditions)
        fulfilled = any(_can_hold(own, n) for n in self.compared_lengths)
        return fulfilled and not (conditions and _contradict(own, solver))

    @property
    def assumptions(self) -> list[str]:
        """The assumptions of every claim about these recordings."""
        changed = dict.fromkeys(name for graph in self.graphs for name in graph.changed_state)
        found = change_assumptions(list(changed))
        found += dict.fromkeys(text for graph in self.graphs for text in graph.assumptions)
        if self.patched_because:
            found.append(f"{TRACED_ASSUMPTION} {self.patched_because}")
        return found


@dataclass(frozen=True)
class Coverage:
    """The lengths [tokens] that pieces cover together, and the conditions that are left."""

    pieces: tuple[Piece, ...]
    least: int
    greatest: int | None
    conditions: tuple[Formula, ...] = ()


def covered_lengths(pieces: Sequence[Piece], solver: Solver) -> Coverage:
    """The longest range without conditions around the first piece; if there is none, the first piece with its own.

    A piece that adjoins is joined if it needs no further conditions, and some of its lengths fulfil those of the first.
    Raises `NoTheorem` if no length fulfils the conditions of the first piece.
    """
    first = pieces[0]
    if not first.can_fulfil(first.others, solver):  # everything would follow from them, and nothing be said
        raise NoTheorem("no length fulfils the conditions of the recording")
    possible = [first, *(piece for piece in pieces[1:] if piece.can_fulfil(piece.others, solver))]
    if any(piece.others for piece in possible):
        for least, greatest in _ranges(possible):
            inside = tuple(p for p in possible if p.least >= least and _ends_by(p.greatest, greatest))
            premises = (at_most(LEAST_SIZE, BATCH), *_between(least, greatest))
            if solver.implies(premises, disjunction(*(piece.lengths for piece in inside))):
                return Coverage(inside, least, greatest)
    joined, least, greatest = [first], first.least, first.greatest
    for piece in possible[1:]:
        before = piece.greatest is not None and piece.greatest + 1 == least
        after = greatest is not None and piece.least == greatest + 1
        if not (before or after) or not _holds_under(first.others, piece, solver):
            continue
        least, greatest = (piece.least, greatest) if before else (least, piece.greatest)
        joined.append(piece)
    return Coverage(tuple(joined), least, greatest, first.others)


def have_lengths_in_common(covered: Sequence[Coverage], solver: Solver) -> bool:
    """True if some length that was compared with recordings is covered by all of these, with their conditions."""
    conditions = [c for one in covered for c in (*_between(one.least, one.greatest), *one.conditions)]
    lengths = sorted({n for one in covered for piece in one.pieces for n in piece.compared_lengths})
    return any(_can_hold(conditions, n) for n in lengths) and not _contradict(conditions, solver)


def _holds_under(conditions: Sequence[Formula], piece: Piece, solver: Solver) -> bool:
    """True if a piece needs no other conditions than these, and some of its lengths fulfil them."""
    premises = (at_most(LEAST_SIZE, BATCH), *_between(piece.least, piece.greatest), *conditions)
    return piece.can_fulfil(conditions, solver) and all(solver.implies(premises, c) for c in piece.others)


def _can_hold(conditions: Sequence[Formula], tokens: int) -> bool:
    """False if conditions are false for this number of tokens; functions in them may have any values."""
    sizes = {BATCH: EXAMPLE_ROWS, TOKENS: tokens}
    numbers = {v: as_term(number) for size, number in sizes.items() for v in size.variables}
    return Substitution(numbers).formula(conjunction(*conditions)) is not FALSE


def _contradict(conditions: Sequence[Formula], solver: Solver) -> bool:
    return solver.implies((at_most(LEAST_SIZE, BATCH), at_most(LEAST_SIZE, TOKENS), *conditions), FALSE)


def _ranges(pieces: Sequence[Piece]) -> Iterator[tuple[int, int | None]]:
    """The ranges that begin and end with pieces and contain the first one, longer ones first."""
    ends = sorted({p.greatest for p in pieces if p.greatest is not None}, reverse=True)
    endless = [None] if any(p.greatest is None for p in pieces) else []
    for least in sorted({p.least for p in pieces}):
        for greatest in [*endless, *ends]:
            if least <= pieces[0].least and _ends_by(pieces[0].greatest, greatest):
                yield least, greatest


def _ends_by(one: int | None, end: int | None) -> bool:
    return end is None or (one is not None and one <= end)


def _between(least: int, greatest: int | None) -> list[Formula]:
    return [at_most(least, TOKENS), *([] if greatest is None else [at_most(TOKENS, greatest)])]


def length_bounds(conditions: Sequence[Formula], solver: Solver) -> tuple[int, int | None, tuple[Formula, ...]]:
    """The least and the greatest number of tokens that fulfil conditions, and those that do not follow from these."""
    simpler = dict.fromkeys(map(_without_open_factors, conditions))
    least, greatest, left = LEAST_SIZE, None, [c for c in simpler if c is not TRUE]
    # A bound may make another one of an inequation: n > 4 of n != 4, if n > 3 is known.
    for _ in range(2):
        known = (at_most(LEAST_SIZE, BATCH), *_between(least, greatest))
        others: list[Formula] = []
        for condition in left:
            bounds = list(_bounds(_without_equality(condition, known, solver)))
            if not bounds and not solver.implies((*known, *others), condition):
                others.append(condition)
            for low, high in bounds:
                least = least if low is None else max(least, low)
                greatest = high if greatest is None else greatest if high is None else min(greatest, high)
        left = others
    known = (at_most(LEAST_SIZE, BATCH), *_between(least, greatest))
    return least, greatest, tuple(condition for condition in left if not solver.implies(known, condition))


def _without_open_factors(condition: Formula) -> Formula:
    """A condition with open sizes, which are positive, divided out of comparisons of multiples of them with zero."""
    match condition:
        case AtMostZero(parts=(term,)):
            return at_most(_without_open_factor(term), 0)
        case EqualsZero(parts=(term,)):
            return equal(_without_open_factor(term), 0)
        case Not(parts=(inner,)):
            return negation(_without_open_factors(inner))
        case And(parts=(operands,)):
            return conjunction(*map(_without_open_factors, operands))
        case Or(parts=(operands,)):
            return disjunction(*map(_without_open_factors, operands))
    return condition


def _without_open_factor(term: Term) -> Term:
    for size in (BATCH, TOKENS):
        rest, _, common = without_common_factors(term, size)
        if common is size:
            return _without_open_factor(rest)
    return term


def _without_equality(condition: Formula, known: Sequence[Formula], solver: Solver) -> Formula:
    """An inequation as a comparison, if only one side of it is possible."""
    if isinstance(condition, Not) and isinstance(condition.parts[0], EqualsZero):
        (term,) = condition.parts[0].parts
        for side in (term, -term):
            if solver.implies(known, at_most(side, 0)):
                return less(side, 0)
    return condition


def _bounds(condition: Formula) -> Iterator[tuple[int | None, int | None]]:
    """A condition as least and greatest numbers of tokens; nothing if it is not that."""
    match condition:
        case AtMostZero(parts=(term,)) if (term - TOKENS).is_constant:
            yield None, -term.constant
        case AtMostZero(parts=(term,)) if (term + TOKENS).is_constant:
            yield term.constant, None
        case AtMostZero(parts=(term,)) if len(term.summands) == 1 and isinstance(term.summands[0][0], FloorDivision):
            (floor, factor), more = term.summands[0], term.constant
            divided, divisor = floor.parts
            if factor == 1:  # floor(t / d) <= -more
                yield from _bounds(at_most(divided, divisor * (1 - more) - 1))
            elif factor == -1:  # floor(t / d) >= more
                yield from _bounds(at_most(divisor * more, divided))
        case EqualsZero(parts=(term,)):
            sides = [list(_bounds(at_most(side, 0))) for side in (term, -term)]
            if all(sides):
                yield from (*sides[0], *sides[1])
