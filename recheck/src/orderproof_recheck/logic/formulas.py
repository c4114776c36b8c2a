"""Formulas without quantifiers, in a normal form.

A formula compares a term with zero, applies an uninterpreted boolean function, or joins formulas. Equal formulas are
one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import Final

from orderproof_recheck.logic.terms import Expression, If, Term, integer, linear, make, of_atom


class Formula(Expression):
    """A statement about integers."""

    def __and__(self, other: Formula) -> Formula:
        return every(self, other)

    def __or__(self, other: Formula) -> Formula:
        return some(self, other)

    def __invert__(self) -> Formula:
        return opposite(self)


class Truth(Formula):
    """True or false: (bool)."""


class AtMostZero(Formula):
    """A term is at most zero: (term)."""


class IsZero(Formula):
    """A term is zero: (term)."""


class Holds(Formula):
    """An uninterpreted boolean function: (name, terms)."""

    is_applied = True


class Not(Formula):
    """The opposite of `IsZero` or `Holds`: (formula)."""


class Every(Formula):
    """All formulas hold: (formulas)."""


class Some(Formula):
    """At least one formula holds: (formulas)."""


TRUE: Final[Formula] = make(Truth, True)
FALSE: Final[Formula] = make(Truth, False)


def holds(name: str, *arguments: Term) -> Formula:
    """An uninterpreted boolean function."""
    return make(Holds, name, arguments)


MOST_CHOICES = 3  # within each other


def _is_choice(term: Term, choices: int = MOST_CHOICES) -> bool:
    """An integer, or one of several by conditions."""
    if term.is_integer:
        return True
    atoms = [atom for atom, _ in term.summands]
    nested = len(atoms) == 1 and isinstance(atoms[0], If) and choices > 0
    return nested and all(_is_choice(part, choices - 1) for part in atoms[0].fields[1:])


def _split_cases(term: Term, compare: Callable[[Term], Formula]) -> Formula | None:
    """The comparison of an `If` of two integers, or of such terms, as the cases of its condition."""
    if len(term.summands) != 1 or not isinstance(term.summands[0][0], If):
        return None
    (atom, factor) = term.summands[0]
    condition, first, second = atom.fields
    if not all(map(_is_choice, (first, second))):
        return None
    yes, no = compare(first * factor + term.constant), compare(second * factor + term.constant)
    return some(every(condition, yes), every(opposite(condition), no))


def at_most(first: Term | int, second: Term | int) -> Formula:
    """First <= second."""
    return at_most_zero((integer(first) if isinstance(first, int) else first) - second)


def at_most_zero(term: Term) -> Formula:
    """A term is at most zero."""
    if term.is_integer:
        return TRUE if term.constant <= 0 else FALSE
    if (cases := _split_cases(term, at_most_zero)) is not None:
        return cases
    divisor = gcd(*(f for _, f in term.summands))
    return make(AtMostZero, linear(-(-term.constant // divisor), {a: f // divisor for a, f in term.summands}))


def less(first: Term | int, second: Term | int) -> Formula:
    """First < second."""
    return at_most((integer(first) if isinstance(first, int) else first) + 1, second)


def equal(first: Term | int, second: Term | int) -> Formula:
    """First = second."""
    return is_zero((integer(first) if isinstance(first, int) else first) - second)


def is_zero(term: Term) -> Formula:
    """A term is zero."""
    if term.is_integer:
        return TRUE if term.constant == 0 else FALSE
    if (cases := _split_cases(term, is_zero)) is not None:
        return cases
    divisor = gcd(*(f for _, f in term.summands))
    if term.constant % divisor:
        return FALSE
    if term.summands[0][1] < 0:
        divisor = -divisor
    return make(IsZero, linear(term.constant // divisor, {a: f // divisor for a, f in term.summands}))


def opposite(formula: Formula) -> Formula:
    """The negation."""
    if formula not in _opposites:
        found = _opposite(formula)
        _opposites[formula], _opposites[found] = found, formula
    return _opposites[formula]


_opposites: dict[Formula, Formula] = {}


def _opposite(formula: Formula) -> Formula:
    match formula:
        case Truth():
            return FALSE if formula is TRUE else TRUE
        case AtMostZero(fields=(term,)):
            return at_most_zero(term * -1 + 1)
        case Not(fields=(inner,)):
            return inner  # type: ignore[no-any-return]
        case Every(fields=(parts,)):
            return some(*map(opposite, parts))
        case Some(fields=(parts,)):
            return every(*map(opposite, parts))
    return make(Not, formula)


def every(*formulas: Formula) -> Formula:
    """All of the formulas."""
    return _joined(Every, TRUE, FALSE, formulas)


def some(*formulas: Formula) -> Formula:
    """At least one of the formulas."""
    return _joined(Some, FALSE, TRUE, formulas)


def _joined(kind: type[Every | Some], neutral: Formula, absorbing: Formula, formulas: Iterable[Formula]) -> Formula:
    parts: dict[Formula, None] = {}
    for formula in formulas:
        for one in formula.fields[0] if isinstance(formula, kind) else (formula,):
            if one is absorbing or opposite(one) in parts:
                return absorbing
            if one is not neutral:
                parts[one] = None
    if len(parts) < 2:
        return next(iter(parts), neutral)
    return make(kind, tuple(sorted(parts, key=lambda f: f.order)))


def implies(premise: Formula, conclusion: Formula) -> Formula:
    """The conclusion holds where the premise does."""
    return some(opposite(premise), conclusion)


def if_else(condition: Formula, first: Term, second: Term) -> Term:
    """The first term where the condition is true, the second elsewhere."""
    if condition is TRUE or first is second:
        return first
    return second if condition is FALSE else of_atom(make(If, condition, first, second))
