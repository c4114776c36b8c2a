"""Numbers that the conditions of a recording fix, in place of the terms that the call computes.

Where floor(tokens / 64) is 1 by a condition, an axis of that size has one element; where a condition decides a case,
only that case is left. Under the conditions, which stay, both sides of each replacement are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    Atom,
    Conditional,
    EqualsZero,
    Expression,
    Formula,
    Term,
    Variable,
    as_term,
    flat,
    negation,
)


def fixed_numbers(conditions: Sequence[Formula]) -> Substitution:
    """The terms for what conditions fix."""
    fixed: dict[Atom, Term] = dict(_decided(conditions)[0])
    for condition in conditions:
        if isinstance(condition, EqualsZero):
            (term,) = condition.parts
            if len(term.summands) == 1 and abs(term.summands[0][1]) == 1:
                ((atom, factor),) = term.summands
                if not isinstance(atom, Variable):
                    fixed[atom] = as_term(-term.constant * factor)
    return Substitution(fixed)


def with_decided_cases(conditions: Sequence[Formula]) -> list[Formula]:
    """The conditions, of which those that decide no case contain no case that another one decides."""
    decided, deciding = _decided(conditions)
    substitution = Substitution(decided)
    return [c if c in deciding else substitution.formula(c) for c in conditions]


def _decided(conditions: Sequence[Formula]) -> tuple[dict[Atom, Term], set[Formula]]:
    """The case of each conditional that a condition decides, and the conditions that do so."""
    given = set(conditions)
    cases: dict[Atom, Term] = {}
    deciding: set[Formula] = set()
    for one in dict.fromkeys(found for c in conditions for found in _conditionals(c)):
        test, first, second = one.parts
        for condition, case in ((test, first), (negation(test), second)):
            if condition in given and one not in cases:
                cases[one] = case
                deciding.add(condition)
    return cases, deciding


def _conditionals(e: Expression) -> Iterator[Conditional]:
    """The conditionals inside an expression."""
    if isinstance(e, Conditional):
        yield e
    for part in flat(e.parts):
        if isinstance(part, Expression):
            yield from _conditionals(part)
